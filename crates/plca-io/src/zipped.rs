//! Arrays inside `.npz` archives, plain or from `scipy.sparse.save_npz`.

use std::fs::File;
use std::io::{BufReader, Read};

use plca_tensor::Coordinates;
use zip::ZipArchive;
use zip::read::ZipFile;

use crate::data::{Array, DataFile, Element};
use crate::error::Fault;
use crate::npy;

type Archive = ZipArchive<BufReader<File>>;

pub(crate) fn open(file: File) -> Result<Archive, Fault> {
    ZipArchive::new(BufReader::new(file))
        .map_err(|e| Fault::new(format!("not a .npz archive: {e}")))
}

fn member<'a>(
    archive: &'a mut Archive,
    name: &str,
) -> Result<BufReader<ZipFile<'a, BufReader<File>>>, Fault> {
    let file = archive.by_name(name).map_err(|e| Fault::at(name, e))?;
    Ok(BufReader::new(file))
}

/// One array of an archive by member name.
pub(crate) fn array<T: Element>(archive: &mut Archive, name: &str) -> Result<Array<T>, Fault> {
    npy::read_array(&mut member(archive, name)?).map_err(|e| e.within(name))
}

/// A text member, at most `limit` bytes.
pub(crate) fn text(archive: &mut Archive, name: &str, limit: u64) -> Result<String, Fault> {
    let mut out = String::new();
    let read = member(archive, name)?
        .take(limit + 1)
        .read_to_string(&mut out)
        .map_err(|e| Fault::at(name, e))?;
    if read as u64 > limit {
        Err(Fault::at(name, format!("is longer than {limit} bytes")))
    } else {
        Ok(out)
    }
}

/// Names of all members, sorted.
pub(crate) fn names(archive: &Archive) -> Result<Vec<String>, Fault> {
    let names = archive
        .file_names()
        .map(|name| name.map(|n| n.into_owned()));
    let mut names = names
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| Fault::new(format!("not a .npz archive: {e}")))?;
    names.sort();
    Ok(names)
}

/// Whole numbers from an array that must be one-dimensional.
fn whole(archive: &mut Archive, name: &str) -> Result<Vec<u64>, Fault> {
    let array: Array<f64> = array(archive, name)?;
    if array.shape.len() != 1 {
        return Err(Fault::at(
            name,
            format!("has shape {:?}, one dimension is needed", array.shape),
        ));
    }
    (array.values.iter().enumerate())
        .map(|(i, &x)| {
            if x >= 0.0 && x.fract() == 0.0 && x < 9e15 {
                Ok(x as u64)
            } else {
                Err(Fault::at(
                    format!("{name}: entry {i}"),
                    format!("{x} is no index"),
                ))
            }
        })
        .collect()
}

/// An index below `size`.
fn bounded(i: u64, size: u64, name: &str, at: usize) -> Result<u32, Fault> {
    if i < size && i <= u64::from(u32::MAX) {
        Ok(i as u32)
    } else {
        Err(Fault::at(
            format!("{name}: entry {at}"),
            format!("index {i} is outside 0..{size}"),
        ))
    }
}

pub(crate) fn read_data<T: Element>(file: File) -> Result<DataFile<T>, Fault> {
    let mut archive = open(file)?;
    let names = names(&archive)?;
    if names.iter().any(|n| n == "format.npy") {
        return read_scipy(&mut archive).map(DataFile::Sparse);
    }
    match &names[..] {
        [one] => array(&mut archive, one).map(DataFile::Dense),
        _ => Err(Fault::new(format!(
            "holds {} arrays where one is needed: {}",
            names.len(),
            names.join(", ")
        ))),
    }
}

fn read_scipy<T: Element>(archive: &mut Archive) -> Result<Coordinates<T>, Fault> {
    let format =
        npy::read_text(&mut member(archive, "format.npy")?).map_err(|e| e.within("format.npy"))?;
    let shape = whole(archive, "shape.npy")?;
    let &[rows, columns] = &shape[..] else {
        return Err(Fault::at("shape.npy", format!("{shape:?} is no matrix")));
    };
    let values: Vec<T> = array(archive, "data.npy")?.values;
    let mut indices = Vec::with_capacity(2 * values.len());
    let same_length = |name: &str, n: usize| {
        if n == values.len() {
            Ok(())
        } else {
            Err(Fault::at(
                name,
                format!("has {n} entries, data.npy has {}", values.len()),
            ))
        }
    };
    match format.as_str() {
        "coo" => {
            let (row, column) = (whole(archive, "row.npy")?, whole(archive, "col.npy")?);
            same_length("row.npy", row.len())?;
            same_length("col.npy", column.len())?;
            for (at, (&i, &j)) in row.iter().zip(&column).enumerate() {
                indices.extend([
                    bounded(i, rows, "row.npy", at)?,
                    bounded(j, columns, "col.npy", at)?,
                ]);
            }
        }
        "csr" | "csc" => {
            let (pointers, minor) = (
                whole(archive, "indptr.npy")?,
                whole(archive, "indices.npy")?,
            );
            same_length("indices.npy", minor.len())?;
            let (major_size, minor_size) = if format == "csr" {
                (rows, columns)
            } else {
                (columns, rows)
            };
            if pointers.len() as u64 != major_size + 1
                || pointers.first() != Some(&0)
                || pointers.last() != Some(&(values.len() as u64))
            {
                return Err(Fault::at(
                    "indptr.npy",
                    format!(
                        "does not describe {major_size} runs of {} entries",
                        values.len()
                    ),
                ));
            }
            for (major, ends) in pointers.windows(2).enumerate() {
                if ends[0] > ends[1] || ends[1] > values.len() as u64 {
                    return Err(Fault::at(
                        format!("indptr.npy: entry {}", major + 1),
                        format!("{} after {}", ends[1], ends[0]),
                    ));
                }
                let major = bounded(major as u64, major_size, "indptr.npy", major)?;
                for (at, &i) in minor
                    .iter()
                    .enumerate()
                    .take(ends[1] as usize)
                    .skip(ends[0] as usize)
                {
                    let i = bounded(i, minor_size, "indices.npy", at)?;
                    indices.extend(if format == "csr" {
                        [major, i]
                    } else {
                        [i, major]
                    });
                }
            }
        }
        other => {
            return Err(Fault::at(
                "format.npy",
                format!("`{other}` is none of coo, csr, csc"),
            ));
        }
    }
    let shape = [rows, columns]
        .map(|n| usize::try_from(n).unwrap_or(usize::MAX))
        .to_vec();
    Ok(Coordinates {
        shape,
        indices,
        values,
    })
}
