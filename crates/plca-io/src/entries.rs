//! Entries of sparse data one after the other, never all of them in memory.

use std::path::Path;

use crate::data::{Element, ReadOptions, accept, askable, extension, open, plausible, unpacked};
use crate::error::Fault;
use crate::text;
use crate::zipped::{self, Entry};

/// What may be read entry by entry.
const STREAMED: &str = ".mtx, .mtx.gz, .tns, .tns.gz, .npz";

/// Calls `visit` with every entry of a sparse matrix in the order of the file; returns the shape.
pub(crate) fn for_each_entry<T: Element>(
    path: &Path,
    options: &ReadOptions,
    mut visit: impl FnMut([u32; 2], T) -> Result<(), Fault>,
) -> Result<Vec<usize>, Fault> {
    let (extension, gz) = extension(path);
    let asked = options.shape.as_deref();
    askable(asked)?;
    let mut entries = 0;
    let mut count = |index, x| {
        entries += 1;
        visit(index, x)
    };
    let dense = || Fault::new("is dense: only sparse data are read entry by entry");
    let shape = match extension.as_str() {
        "mtx" => {
            let mut reader = unpacked(open(path)?, gz);
            let announced =
                text::visit_matrix_market(&mut reader, accept(options), |index, x| match index {
                    Some(index) => count(index, x),
                    None => Err(dense()),
                })?;
            if !announced.coordinate {
                return Err(dense());
            }
            announced.shape.to_vec()
        }
        "tns" => {
            let mut reader = unpacked(open(path)?, gz);
            text::visit_frostt(&mut reader, asked, accept(options), |index, x| {
                let matrix = <[u32; 2]>::try_from(index);
                let index = matrix.map_err(|_| {
                    let order = index.len();
                    Fault::new(format!("has {order} indices, those of a matrix are two"))
                })?;
                count(index, x)
            })?
        }
        "npz" if !gz => {
            if !zipped::is_sparse(path)? {
                return Err(dense());
            }
            zipped::visit_scipy(path, asked, |entry| match entry {
                Entry::Expected(_) => Ok(()),
                Entry::Found(index, x) => count(index, x),
            })?
        }
        _ => {
            let what = format!("is not read entry by entry; that are {STREAMED}");
            return Err(Fault::new(what));
        }
    };
    match asked {
        Some(want) if want != shape => {
            Err(Fault::new(format!("has shape {shape:?}, not {want:?}")))
        }
        Some(_) => Ok(shape),
        None => plausible(&shape, entries).map(|()| shape),
    }
}
