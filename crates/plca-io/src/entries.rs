//! Entries of sparse data: all of them in memory, or one after the other.

use std::path::Path;

use plca_tensor::Coordinates;

use crate::allowance::Allowance;
use crate::data::{
    DataFile, Element, ReadOptions, accept, askable, extension, open, plausible, unpacked,
};
use crate::error::Fault;
use crate::lists;
use crate::mat;
use crate::npy::reserve;
use crate::text::{self, Accept, Announced};
use crate::zipped;

/// What may be read entry by entry.
const STREAMED: &str = ".mtx, .tns or docword.*.txt, also with .gz, .npz or .mat";

/// What a file gives, in its order.
pub(crate) enum Found<'a, T> {
    /// The number of entries that follow, from a file that is not compressed and is long enough for them.
    Expected(usize),
    Entry(&'a [u32], T),
    /// The next cell of a dense matrix.
    Cell(T),
}

/// What has been given.
enum Whole {
    /// A tensor of this shape.
    Sparse(Vec<usize>),
    Dense(Announced),
}

/// Calls `visit` with all that a `.mtx`, a `.tns`, a `docword.*.txt`, a sparse `.npz` or a sparse array of a `.mat` holds.
fn for_each<T: Element>(
    path: &Path,
    array: Option<&str>,
    asked: Option<&[usize]>,
    accept: Accept<'_>,
    mut visit: impl FnMut(Found<'_, T>) -> Result<(), Fault>,
) -> Result<Whole, Fault> {
    let (extension, gz) = extension(path);
    if extension == "npz" {
        return zipped::visit_scipy(path, asked, accept.allowance, visit).map(Whole::Sparse);
    }
    if extension == "mat" {
        let variable = mat::find(path, array)?;
        return variable
            .visit(asked, accept.allowance, visit)
            .map(Whole::Sparse);
    }
    let mut reader = unpacked(open(path)?, gz, accept.allowance);
    if extension == "tns" {
        let entry = |index: &[u32], x| visit(Found::Entry(index, x));
        return text::visit_frostt(&mut reader, asked, accept, entry).map(Whole::Sparse);
    }
    if extension == "docword" {
        let entry = |index: [u32; 2], x| visit(Found::Entry(&index, x));
        return lists::visit_docword(&mut reader, accept, entry).map(Whole::Sparse);
    }
    let announced = text::visit_matrix_market(&mut reader, accept, |index, x| match index {
        Some(index) => visit(Found::Entry(&index, x)),
        None => visit(Found::Cell(x)),
    })?;
    Ok(match announced.coordinate {
        true => Whole::Sparse(announced.shape.to_vec()),
        false => Whole::Dense(announced),
    })
}

/// All that a `.mtx`, a `.tns`, a sparse `.npz` or a sparse array of a `.mat` holds.
pub(crate) fn read_all<T: Element>(
    path: &Path,
    array: Option<&str>,
    asked: Option<&[usize]>,
    accept: Accept<'_>,
) -> Result<DataFile<T>, Fault> {
    let (mut indices, mut values) = (Vec::new(), Vec::new());
    let mut claimed = false;
    let whole = for_each(path, array, asked, accept, |found| {
        match found {
            Found::Expected(entries) => {
                let each = size_of::<[u32; 2]>() + size_of::<T>();
                accept
                    .allowance
                    .claim((each as u64).saturating_mul(entries as u64))?;
                claimed = true;
                reserve(&mut indices, entries.saturating_mul(2))?;
                reserve(&mut values, entries)?;
            }
            Found::Entry(index, x) => {
                if !claimed {
                    accept.allowance.take(size_of_val(index) + size_of::<T>())?;
                }
                indices.extend(index);
                values.push(x);
            }
            Found::Cell(x) => values.push(x),
        }
        Ok(())
    })?;
    Ok(match whole {
        Whole::Sparse(shape) => DataFile::Sparse(Coordinates {
            shape,
            indices,
            values,
        }),
        Whole::Dense(announced) => DataFile::Dense(announced.array(values)),
    })
}

/// Calls `visit` with every entry of a sparse matrix in the order of the file; returns the shape.
pub(crate) fn for_each_entry<T: Element>(
    path: &Path,
    options: &ReadOptions,
    mut visit: impl FnMut([u32; 2], T) -> Result<(), Fault>,
) -> Result<Vec<usize>, Fault> {
    let (asked, array) = (options.shape.as_deref(), options.array.as_deref());
    askable(asked)?;
    let dense = || Fault::new("is dense: only sparse data are read entry by entry");
    match extension(path) {
        (e, _) if ["mtx", "tns", "docword"].contains(&e.as_str()) => {}
        (e, false) if e == "npz" => {
            if array.is_some() || !zipped::is_sparse(path)? {
                return Err(dense());
            }
        }
        (e, false) if e == "mat" => {
            if !mat::find(path, array)?.is_sparse() {
                return Err(dense());
            }
        }
        _ => {
            let what = format!("cannot be read entry by entry; expected {STREAMED}");
            return Err(Fault::new(what));
        }
    }
    let mut entries = 0;
    // One after the other they take no memory; what unpacks without end is still refused.
    let allowance = Allowance::shared(path, options.unpack_limit)?;
    let accept = accept(options).within(&allowance);
    let whole = for_each(path, array, asked, accept, |found| match found {
        Found::Expected(_) => Ok(()),
        Found::Entry(&[row, column], x) => {
            entries += 1;
            visit([row, column], x)
        }
        Found::Entry(index, _) => {
            let order = index.len();
            let what = format!("has {order} indices, expected the two of a matrix");
            Err(Fault::new(what))
        }
        Found::Cell(_) => Err(dense()),
    })?;
    let Whole::Sparse(shape) = whole else {
        return Err(dense());
    };
    match asked {
        Some(want) if want != shape => {
            Err(Fault::new(format!("has shape {shape:?}, not {want:?}")))
        }
        Some(_) => Ok(shape),
        None => plausible(&shape, entries).map(|()| shape),
    }
}
