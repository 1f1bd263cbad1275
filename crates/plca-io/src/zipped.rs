//! Arrays inside `.npz` archives, plain or from `scipy.sparse.save_npz`.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use std::rc::Rc;

use zip::read::ZipFile;
use zip::{CompressionMethod, ZipArchive};

use crate::allowance::Allowance;
use crate::data::{self, Array, Element, plausible};
use crate::entries::Found;
use crate::error::Fault;
use crate::npy::{self, Supply};
use crate::runs::{self, Stream};

/// Deflate never shrinks by more than this factor.
pub(crate) const MAX_DEFLATE: u64 = 1040;

/// An archive and the length of its file.
pub(crate) struct Archive {
    zip: ZipArchive<BufReader<File>>,
    length: u64,
    allowance: Rc<Allowance>,
}

/// An archive, of whose arrays no more memory is taken than 64 MiB and 50 times the file, or this limit.
pub(crate) fn open(path: &Path, unpack_limit: Option<u64>) -> Result<Archive, Fault> {
    let file = data::open(path)?;
    let length = file.metadata()?.len();
    let fault = |e| Fault::new(format!("not a .npz archive: {e}"));
    let mut zip = ZipArchive::new(BufReader::new(file)).map_err(fault)?;
    if zip.has_duplicate_names() {
        return Err(Fault::new("a name occurs twice"));
    }
    // A few bytes that many members share would unpack to any size.
    if zip.has_overlapping_files().map_err(fault)? {
        return Err(Fault::new("members overlap in the file"));
    }
    Ok(Archive {
        zip,
        length,
        allowance: Rc::new(Allowance::new(length, unpack_limit)),
    })
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
    let allowance = archive.allowance.clone();
    let (mut reader, supply) = member(archive, name)?;
    npy::read_array(&mut reader, supply, &allowance).map_err(|e| e.within(name))
}

/// Expects memory for all members of an archive, as far as their heads say so.
pub(crate) fn expect_all(archive: &mut Archive) -> Result<(), Fault> {
    let mut all: u64 = 0;
    for name in names(archive)? {
        let (reader, supply) = member(archive, &name)?;
        let bytes = match name.ends_with(".npy") {
            // What is wrong with it is told where it is read.
            true => npy::Values::new(reader, supply).map_or(0, |values| {
                (values.cells as u64).saturating_mul(size_of::<f64>() as u64)
            }),
            false => JSON.saturating_mul(reader.get_ref().size()),
        };
        all = all.saturating_add(bytes);
    }
    archive.allowance.expect(all);
    Ok(())
}

/// How many times the text of JSON its values take.
const JSON: u64 = 16;

/// A text member of JSON, at most `limit` bytes.
pub(crate) fn text(archive: &mut Archive, name: &str, limit: u64) -> Result<String, Fault> {
    let mut out = String::new();
    let size = member(archive, name)?.0.into_inner().size().min(limit);
    // Numbers and names of JSON take more than their text.
    archive
        .allowance
        .claim(JSON * size)
        .map_err(|e| e.within(name))?;
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

/// The member of the metadata of a model, which data may have too.
pub(crate) const METADATA: &str = "model.json";

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

/// The array of this name, or the only one of an archive.
pub(crate) fn dense<T: Element>(
    path: &Path,
    asked: Option<&str>,
    unpack_limit: Option<u64>,
) -> Result<Array<T>, Fault> {
    let mut archive = open(path, unpack_limit)?;
    let mut members = names(&archive)?;
    members.retain(|member| member != METADATA);
    let bare = |member: &str| member.strip_suffix(".npy").unwrap_or(member).to_string();
    let names: Vec<String> = members.iter().map(|member| bare(member)).collect();
    let at = chosen(&names, asked)?;
    array(&mut archive, &members[at])
}

/// Where the array of this name, or the only one, is in a list.
pub(crate) fn chosen(names: &[String], asked: Option<&str>) -> Result<usize, Fault> {
    let held = names.join(", ");
    match (asked, names.len()) {
        (Some(asked), _) => {
            let at = names.iter().position(|name| name == asked);
            at.ok_or_else(|| Fault::new(format!("has no array `{asked}`; it holds {held}")))
        }
        (None, 1) => Ok(0),
        (None, n) => Err(Fault::new(format!(
            "holds {n} arrays, expected one; of a file of data --array NAME chooses: {held}"
        ))),
    }
}

/// Whether an archive holds a sparse matrix.
pub(crate) fn is_sparse(path: &Path) -> Result<bool, Fault> {
    Ok(names(&open(path, None)?)?.iter().any(|n| n == "format.npy"))
}

/// The numbers of one member.
fn stream<'a>(archive: &'a mut Archive, name: &'static str) -> Result<Stream<Member<'a>>, Fault> {
    let (reader, supply) = member(archive, name)?;
    let values = npy::Values::new(reader, supply).map_err(|e| e.within(name))?;
    Ok(Stream::new(name, values, supply.stored))
}

/// A member of indices, as many as there are values.
fn of_indices<'a>(
    archive: &'a mut Archive,
    name: &'static str,
    stored: usize,
) -> Result<Stream<Member<'a>>, Fault> {
    let stream = stream(archive, name)?;
    let n = stream.integers()?;
    if n == stored {
        Ok(stream)
    } else {
        let what = format!("has {n} entries, data.npy has {stored}");
        Err(Fault::at(name, what))
    }
}

/// Calls `visit` with the entries that `scipy.sparse.save_npz` wrote, in the order of the file; returns the shape. Unless a shape was
/// asked for, it must be one that the entries explain.
pub(crate) fn visit_scipy<T: Element>(
    path: &Path,
    asked: Option<&[usize]>,
    allowance: &Allowance,
    mut visit: impl FnMut(Found<'_, T>) -> Result<(), Fault>,
) -> Result<Vec<usize>, Fault> {
    // One for every member that is read at the same time.
    let again = || open(path, None);
    let (archive, second, third) = (&mut again()?, &mut again()?, &mut again()?);
    let format = npy::read_text(&mut member(archive, "format.npy")?.0)
        .map_err(|e| e.within("format.npy"))?;
    if !["coo", "csr", "csc"].contains(&format.as_str()) {
        return Err(Fault::at(
            "format.npy",
            format!("`{format}` is none of coo, csr, csc"),
        ));
    }
    let two = |n: usize| match n {
        2 => Ok(()),
        n => Err(Fault::new(format!(
            "{n} sizes, expected the two of a matrix"
        ))),
    };
    let shape = stream(archive, "shape.npy")?.whole(two, |_, n| Ok(n))?;
    let &[rows, columns] = &shape[..] else {
        return Err(Fault::at("shape.npy", "the file ends too early"));
    };
    if let Some(size) = shape.iter().find(|&&n| n > u64::from(u32::MAX)) {
        return Err(Fault::at(
            "shape.npy",
            format!("size {size} is above {}", u32::MAX),
        ));
    }
    let mut data = stream(second, "data.npy")?;
    let &[stored] = data.shape() else {
        let what = format!("shape {:?}, expected one dimension", data.shape());
        return Err(Fault::at("data.npy", what));
    };
    let sizes = [rows as usize, columns as usize];
    // Before anything of the size of the shape is read.
    if asked != Some(&sizes) {
        plausible(&sizes, stored)?;
    }
    let runs = match &*format {
        "csr" => rows,
        "csc" => columns,
        _ => 0,
    };
    let pointers = (runs + 1).saturating_mul(size_of::<usize>() as u64);
    allowance.expect_entries::<T>(stored, data.all_there, pointers);
    if data.all_there {
        visit(Found::Expected(stored))?;
    }
    if format == "coo" {
        let mut row = of_indices(third, "row.npy", stored)?;
        let mut column = of_indices(archive, "col.npy", stored)?;
        while let Some(x) = data.value()? {
            let index = [row.index(rows)?, column.index(columns)?];
            visit(Found::Entry(&index, x))?;
        }
        row.end()?;
        column.end()?;
    } else {
        let by_rows = format == "csr";
        allowance.claim(pointers)?;
        let pointers = runs::pointers(stream(archive, "indptr.npy")?, runs, stored)?;
        if pointers.last() != Some(&stored) {
            return Err(runs::unfit(runs, stored).within("indptr.npy"));
        }
        let minor = of_indices(third, "indices.npy", stored)?;
        let minor_size = if by_rows { columns } else { rows };
        runs::visit(by_rows, &pointers, (minor, minor_size), data, visit)?;
    }
    Ok(sizes.to_vec())
}
