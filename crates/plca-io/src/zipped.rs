//! Arrays inside `.npz` archives, plain or from `scipy.sparse.save_npz`.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use zip::read::ZipFile;
use zip::{CompressionMethod, ZipArchive};

use crate::data::{self, Array, Element, plausible};
use crate::entries::Found;
use crate::error::Fault;
use crate::npy::{self, Supply};

/// Deflate never shrinks by more than this factor.
const MAX_DEFLATE: u64 = 1040;

/// An archive and the length of its file.
pub(crate) struct Archive {
    zip: ZipArchive<BufReader<File>>,
    length: u64,
}

pub(crate) fn open(path: &Path) -> Result<Archive, Fault> {
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
    Ok(Archive { zip, length })
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

/// Whole numbers of a one-dimensional array, each made by `make` from its place and value; `enough` looks at how many there
/// are before any is read.
fn whole<U>(
    archive: &mut Archive,
    name: &'static str,
    enough: impl FnOnce(usize) -> Result<(), Fault>,
    make: impl Fn(usize, u64) -> Result<U, Fault>,
) -> Result<Vec<U>, Fault> {
    let Stream {
        values, all_there, ..
    } = Stream::new(archive, name)?;
    let numbers = (values.header.integers()).and_then(enough).and_then(|()| {
        npy::read_values(values, all_there, |header, at, word| {
            make(at, header.whole(at, word)?)
        })
    });
    numbers.map_err(|e| e.within(name))
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

/// The only array of an archive.
pub(crate) fn only_array<T: Element>(path: &Path) -> Result<Array<T>, Fault> {
    let mut archive = open(path)?;
    let names = names(&archive)?;
    match &names[..] {
        [one] => array(&mut archive, one),
        _ => Err(Fault::new(format!(
            "holds {} arrays, expected one: {}",
            names.len(),
            names.join(", ")
        ))),
    }
}

/// Whether an archive holds a sparse matrix.
pub(crate) fn is_sparse(path: &Path) -> Result<bool, Fault> {
    Ok(names(&open(path)?)?.iter().any(|n| n == "format.npy"))
}

/// The numbers of one member, one after the other.
struct Stream<'a> {
    name: &'static str,
    values: npy::Values<Member<'a>>,
    /// The bytes of all numbers are there, not compressed.
    all_there: bool,
}

impl<'a> Stream<'a> {
    fn new(archive: &'a mut Archive, name: &'static str) -> Result<Self, Fault> {
        let (reader, supply) = member(archive, name)?;
        let values = npy::Values::new(reader, supply).map_err(|e| e.within(name))?;
        Ok(Self {
            name,
            values,
            all_there: supply.stored,
        })
    }

    /// A member of indices, as many as there are values.
    fn of_indices(
        archive: &'a mut Archive,
        name: &'static str,
        stored: usize,
    ) -> Result<Self, Fault> {
        let stream = Self::new(archive, name)?;
        let n = stream.values.header.integers();
        let n = n.map_err(|e| e.within(name))?;
        if n == stored {
            Ok(stream)
        } else {
            let what = format!("has {n} entries, data.npy has {stored}");
            Err(Fault::at(name, what))
        }
    }

    /// The next number, made from the header and its place and bytes.
    fn next<U>(
        &mut self,
        make: impl FnOnce(&npy::Header, usize, &[u8]) -> Result<U, Fault>,
    ) -> Result<Option<U>, Fault> {
        let at = self.values.taken;
        let next = self.values.next();
        let made = next.and_then(|word| {
            word.map(|(header, word)| make(header, at, word))
                .transpose()
        });
        made.map_err(|e| e.within(self.name))
    }

    fn index(&mut self, size: u64) -> Result<u32, Fault> {
        let below = below(size);
        let index = self.next(|header, at, word| below(at, header.whole(at, word)?))?;
        index.ok_or_else(|| Fault::at(self.name, "the file ends too early"))
    }

    /// Refuses what follows the last number.
    fn end(mut self) -> Result<(), Fault> {
        self.next(|_, _, _| Ok(())).map(drop)
    }
}

/// Where every run of a compressed matrix begins, and the end of the last one.
fn pointers(archive: &mut Archive, runs: u64, stored: usize) -> Result<Vec<usize>, Fault> {
    let unfit = || Fault::new(format!("does not describe {runs} runs of {stored} entries"));
    let enough = |n: usize| {
        let fits = n as u64 == runs + 1;
        fits.then_some(()).ok_or_else(unfit)
    };
    let pointers = whole(archive, "indptr.npy", enough, |at, p| {
        let within = usize::try_from(p).ok().filter(|&p| p <= stored);
        within.ok_or_else(|| {
            Fault::at(
                format!("entry {at}"),
                format!("{p} is above the {stored} stored entries"),
            )
        })
    })?;
    if pointers.first() != Some(&0) || pointers.last() != Some(&stored) {
        return Err(unfit().within("indptr.npy"));
    }
    if let Some(at) = pointers.windows(2).position(|ends| ends[1] < ends[0]) {
        return Err(Fault::at(
            format!("indptr.npy: entry {}", at + 1),
            format!("{} after {}", pointers[at + 1], pointers[at]),
        ));
    }
    Ok(pointers)
}

/// Calls `visit` with the entries that `scipy.sparse.save_npz` wrote, in the order of the file; returns the shape. Unless a shape was
/// asked for, it must be one that the entries explain.
pub(crate) fn visit_scipy<T: Element>(
    path: &Path,
    asked: Option<&[usize]>,
    mut visit: impl FnMut(Found<'_, T>) -> Result<(), Fault>,
) -> Result<Vec<usize>, Fault> {
    // One for every member that is read at the same time.
    let again = || open(path);
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
    let shape = whole(archive, "shape.npy", two, |_, n| Ok(n))?;
    let &[rows, columns] = &shape[..] else {
        return Err(Fault::at("shape.npy", "the file ends too early"));
    };
    if let Some(size) = shape.iter().find(|&&n| n > u64::from(u32::MAX)) {
        return Err(Fault::at(
            "shape.npy",
            format!("size {size} is above {}", u32::MAX),
        ));
    }
    let mut data = Stream::new(second, "data.npy")?;
    let &[stored] = &data.values.header.shape[..] else {
        let shape = &data.values.header.shape;
        let what = format!("shape {shape:?}, expected one dimension");
        return Err(Fault::at("data.npy", what));
    };
    let sizes = [rows as usize, columns as usize];
    // Before anything of the size of the shape is read.
    if asked != Some(&sizes) {
        plausible(&sizes, stored)?;
    }
    if data.all_there {
        visit(Found::Expected(stored))?;
    }
    let value = |header: &npy::Header, _: usize, word: &[u8]| Ok(header.decode(word));
    if format == "coo" {
        let mut row = Stream::of_indices(third, "row.npy", stored)?;
        let mut column = Stream::of_indices(archive, "col.npy", stored)?;
        while let Some(x) = data.next(value)? {
            let index = [row.index(rows)?, column.index(columns)?];
            visit(Found::Entry(&index, x))?;
        }
        row.end()?;
        column.end()?;
    } else {
        let by_rows = format == "csr";
        let (major_size, minor_size) = if by_rows {
            (rows, columns)
        } else {
            (columns, rows)
        };
        let pointers = pointers(archive, major_size, stored)?;
        let mut minor = Stream::of_indices(third, "indices.npy", stored)?;
        for (major, ends) in (0..).zip(pointers.windows(2)) {
            for _ in ends[0]..ends[1] {
                let (i, x) = (minor.index(minor_size)?, data.next(value)?);
                let x = x.ok_or_else(|| Fault::at("data.npy", "the file ends too early"))?;
                let index = if by_rows { [major, i] } else { [i, major] };
                visit(Found::Entry(&index, x))?;
            }
        }
        minor.end()?;
        data.end()?;
    }
    Ok(sizes.to_vec())
}
