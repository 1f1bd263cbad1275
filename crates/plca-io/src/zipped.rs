//! Arrays inside `.npz` archives, plain or from `scipy.sparse.save_npz`.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};

use plca_tensor::Coordinates;
use zip::read::ZipFile;
use zip::{CompressionMethod, ZipArchive};

use crate::data::{Array, DataFile, Element};
use crate::error::Fault;
use crate::npy::{self, Supply};

/// Deflate never shrinks by more than this factor.
const MAX_DEFLATE: u64 = 1040;

/// An archive and the length of its file.
pub(crate) struct Archive {
    zip: ZipArchive<BufReader<File>>,
    length: u64,
}

pub(crate) fn open(mut file: File) -> Result<Archive, Fault> {
    let length = file.metadata()?.len();
    // The directory's end, when no comment follows it, says how many members were written.
    let mut end = [0; 22];
    let mut announced = None;
    if length >= 22 {
        file.seek(SeekFrom::End(-22))?;
        file.read_exact(&mut end)?;
        file.rewind()?;
        if end.starts_with(b"PK\x05\x06") {
            announced = Some(usize::from(u16::from_le_bytes([end[10], end[11]])));
        }
    }
    let zip = ZipArchive::new(BufReader::new(file))
        .map_err(|e| Fault::new(format!("not a .npz archive: {e}")))?;
    match announced {
        Some(n) if n != zip.len() && n != usize::from(u16::MAX) => Err(Fault::new(format!(
            "{n} members with {} names: some name occurs twice",
            zip.len()
        ))),
        _ => Ok(Archive { zip, length }),
    }
}

type Member<'a> = BufReader<ZipFile<'a, BufReader<File>>>;

fn member<'a>(archive: &'a mut Archive, name: &str) -> Result<(Member<'a>, Supply), Fault> {
    let length = archive.length;
    let file = archive.zip.by_name(name).map_err(|e| Fault::at(name, e))?;
    let stored = file.compression() == CompressionMethod::Stored;
    let packed = file.compressed_size().min(length);
    let bound = if stored {
        packed
    } else {
        packed.saturating_mul(MAX_DEFLATE)
    };
    Ok((BufReader::new(file), Supply { bound, stored }))
}

/// One array of an archive by member name.
pub(crate) fn array<T: Element>(archive: &mut Archive, name: &str) -> Result<Array<T>, Fault> {
    let (mut reader, supply) = member(archive, name)?;
    npy::read_array(&mut reader, supply).map_err(|e| e.within(name))
}

/// Whole numbers of a one-dimensional array, each made by `make` from its place and value.
fn whole<U>(
    archive: &mut Archive,
    name: &str,
    make: impl Fn(usize, u64) -> Result<U, Fault>,
) -> Result<Vec<U>, Fault> {
    let (mut reader, supply) = member(archive, name)?;
    npy::read_whole(&mut reader, supply, make).map_err(|e| e.within(name))
}

/// A text member, at most `limit` bytes.
pub(crate) fn text(archive: &mut Archive, name: &str, limit: u64) -> Result<String, Fault> {
    let mut out = String::new();
    let read = member(archive, name)?
        .0
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
        .zip
        .file_names()
        .map(|name| name.map(|n| n.into_owned()));
    let mut names = names
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| Fault::new(format!("not a .npz archive: {e}")))?;
    names.sort();
    Ok(names)
}

/// A check for indices below `size`.
fn below(size: u64) -> impl Fn(usize, u64) -> Result<u32, Fault> {
    move |at, i| {
        u32::try_from(i).ok().filter(|_| i < size).ok_or_else(|| {
            Fault::at(
                format!("entry {at}"),
                format!("index {i} is outside 0..{size}"),
            )
        })
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
    let format = npy::read_text(&mut member(archive, "format.npy")?.0)
        .map_err(|e| e.within("format.npy"))?;
    if !["coo", "csr", "csc"].contains(&format.as_str()) {
        return Err(Fault::at(
            "format.npy",
            format!("`{format}` is none of coo, csr, csc"),
        ));
    }
    let shape = whole(archive, "shape.npy", |_, n| Ok(n))?;
    let &[rows, columns] = &shape[..] else {
        return Err(Fault::at("shape.npy", format!("{shape:?} is no matrix")));
    };
    if let Some(size) = shape.iter().find(|&&n| n > u64::from(u32::MAX)) {
        return Err(Fault::at(
            "shape.npy",
            format!("size {size} is above {}", u32::MAX),
        ));
    }
    let data: Array<T> = array(archive, "data.npy")?;
    if data.shape.len() != 1 {
        return Err(Fault::at(
            "data.npy",
            format!("shape {:?} where one dimension is needed", data.shape),
        ));
    }
    let values = data.values;
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
    let mut indices = Vec::new();
    if format == "coo" {
        let row = whole(archive, "row.npy", below(rows))?;
        same_length("row.npy", row.len())?;
        let column = whole(archive, "col.npy", below(columns))?;
        same_length("col.npy", column.len())?;
        indices.reserve_exact(2 * values.len());
        for (&i, &j) in row.iter().zip(&column) {
            indices.extend([i, j]);
        }
    } else {
        let by_rows = format == "csr";
        let (major_size, minor_size) = if by_rows {
            (rows, columns)
        } else {
            (columns, rows)
        };
        let minor = whole(archive, "indices.npy", below(minor_size))?;
        same_length("indices.npy", minor.len())?;
        let stored = values.len();
        let pointers = whole(archive, "indptr.npy", |at, p| {
            usize::try_from(p)
                .ok()
                .filter(|&p| p <= stored)
                .ok_or_else(|| {
                    Fault::at(
                        format!("entry {at}"),
                        format!("{p} is above the {stored} stored entries"),
                    )
                })
        })?;
        if pointers.len() as u64 != major_size + 1
            || pointers.first() != Some(&0)
            || pointers.last() != Some(&stored)
        {
            return Err(Fault::at(
                "indptr.npy",
                format!("does not describe {major_size} runs of {stored} entries"),
            ));
        }
        indices.reserve_exact(2 * stored);
        for (major, ends) in (0..).zip(pointers.windows(2)) {
            let Some(run) = minor.get(ends[0]..ends[1]) else {
                return Err(Fault::at(
                    format!("indptr.npy: entry {}", major + 1),
                    format!("{} after {}", ends[1], ends[0]),
                ));
            };
            for &i in run {
                indices.extend(if by_rows { [major, i] } else { [i, major] });
            }
        }
    }
    Ok(Coordinates {
        shape: vec![rows as usize, columns as usize],
        indices,
        values,
    })
}
