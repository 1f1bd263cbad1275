//! MATLAB files of level 5, as `save -v6` and `-v7` and `scipy.io.savemat` write them: one array of real numbers, dense or sparse.
//!
//! A reader of our own, because the packages for this format trust the file: `matrw` unpacks it without a limit and panics where it cannot, `matfile`
//! gives no sparse arrays away, and `matio-rs` needs a C library.
//!
//! A file is a header of 128 bytes and elements: a type, a number of bytes, the bytes. An element is an array or, packed by zlib, an element that is
//! one. The bytes of an array are elements in turn, each padded to a multiple of eight: flags, sizes, name, numbers; of a sparse one flags, sizes, name,
//! rows, ends of columns, numbers. Numbers may be stored in a narrower type than that of the array.

use std::collections::BTreeSet;
use std::io::{BufReader, Cursor, Read, Seek, SeekFrom, copy, sink};
use std::path::{Path, PathBuf};

use flate2::read::ZlibDecoder;

use crate::allowance::Allowance;
use crate::data::{Array, Element, check_order, open, plausible};
use crate::entries::Found;
use crate::error::Fault;
use crate::npy::{Header, Kind, Values};
use crate::runs::{self, Stream};
use crate::zipped::{MAX_DEFLATE, chosen};

/// Bytes before the first element.
const HEADER: u64 = 128;
/// Most bytes of a name; MATLAB's own have 63.
const MAX_NAME: u32 = 1 << 10;
/// Most bytes of sizes.
const MAX_SIZES: u32 = 1 << 10;

/// Types of elements.
const MATRIX: u32 = 14;
const COMPRESSED: u32 = 15;
/// The class of a sparse array.
const SPARSE: u8 = 5;
/// The class of an object, which has no sizes before its name.
const OPAQUE: u8 = 17;
/// A flag of an array.
const COMPLEX: u32 = 1 << 11;
const LATER: &str = "is of version 7.3 (HDF5), expected 5 to 7: save it with `-v7`";
/// What is to be done about a file that holds something else.
const EXPECTED: &str = "save a numeric array, full or sparse";

/// An array of real numbers in a file.
pub(crate) struct Variable {
    path: PathBuf,
    place: ElementLocation,
    head: Head,
}

/// The bytes of an element in a file.
#[derive(Clone, Copy)]
struct ElementLocation {
    big_endian: bool,
    offset: u64,
    length: u32,
    packed: bool,
}

/// What comes before the numbers of an array.
struct Head {
    flags: u32,
    shape: Vec<usize>,
    name: String,
}

impl Head {
    fn class(&self) -> u8 {
        self.flags as u8
    }

    /// What the array is, if it is not one of real numbers.
    fn other(&self) -> Option<&'static str> {
        match self.class() {
            5..=15 if self.flags & COMPLEX != 0 => Some("complex"),
            5..=15 => None,
            1 => Some("a cell array"),
            2 => Some("a struct"),
            4 => Some("text"),
            16 => Some("a function"),
            _ => Some("an object"),
        }
    }
}

/// A number of four bytes.
fn word(bytes: [u8; 4], big_endian: bool) -> u32 {
    match big_endian {
        true => u32::from_be_bytes(bytes),
        false => u32::from_le_bytes(bytes),
    }
}

/// The byte order, from the header.
fn big_endian(reader: impl Read) -> Result<bool, Fault> {
    let mut header = Vec::new();
    reader.take(HEADER).read_to_end(&mut header)?;
    let hdf = header.starts_with(b"\x89HDF");
    match header.get(124..) {
        Some([0, 1, b'I', b'M']) if !hdf => Ok(false),
        Some([1, 0, b'M', b'I']) if !hdf => Ok(true),
        Some([0, 2, b'I', b'M'] | [2, 0, b'M', b'I']) => Err(Fault::new(LATER)),
        _ if hdf => Err(Fault::new(LATER)),
        _ => Err(Fault::new(
            "is not a MATLAB file of version 5 to 7: save it with `-v7`",
        )),
    }
}

/// An element within an array, up to its bytes.
struct Part {
    kind: u32,
    length: u32,
    /// Up to four bytes share the eight of type and length.
    short: Option<[u8; 4]>,
}

/// The bytes of an array, unpacked.
struct Body {
    reader: Box<dyn Read>,
    big_endian: bool,
    /// Bytes that follow, as far as the file says the truth.
    left: u64,
    packed: bool,
}

impl ElementLocation {
    /// The bytes of the array, from its flags on.
    fn body(self, path: &Path) -> Result<Body, Fault> {
        let mut file = open(path)?;
        file.seek(SeekFrom::Start(self.offset))?;
        let mut body = Body {
            reader: Box::new(BufReader::new(file.take(self.length.into()))),
            big_endian: self.big_endian,
            left: self.length.into(),
            packed: self.packed,
        };
        if self.packed {
            body.reader = Box::new(BufReader::new(ZlibDecoder::new(body.reader)));
            let [kind, length] = body.words()?.map(|bytes| word(bytes, self.big_endian));
            if kind != MATRIX {
                let what = format!("packs an element of type {kind}, not an array");
                return Err(Fault::new(what));
            }
            let most = u64::from(self.length) * MAX_DEFLATE;
            if u64::from(length) > most {
                let what = format!("claims {length} bytes, at most {most} can come");
                return Err(Fault::new(what));
            }
            body.left = length.into();
        }
        Ok(body)
    }
}

impl Body {
    fn words(&mut self) -> Result<[[u8; 4]; 2], Fault> {
        let mut bytes = [[0; 4]; 2];
        self.reader.read_exact(bytes.as_flattened_mut())?;
        Ok(bytes)
    }

    /// Counts bytes that are read.
    fn take(&mut self, bytes: u64) -> Result<(), Fault> {
        let left = self.left.checked_sub(bytes);
        self.left = left.ok_or_else(|| Fault::new("the array ends too early"))?;
        Ok(())
    }

    /// Leaves bytes behind.
    fn pass(&mut self, bytes: u64) -> Result<(), Fault> {
        self.take(bytes)?;
        match copy(&mut (&mut self.reader).take(bytes), &mut sink())? == bytes {
            true => Ok(()),
            false => Err(Fault::new("the file ends too early")),
        }
    }

    /// Leaves what pads an element behind; the last one may have nothing.
    fn pad(&mut self, part: &Part) -> Result<(), Fault> {
        let length = u64::from(part.length);
        self.pass((length.next_multiple_of(8) - length).min(self.left))
    }

    /// The next element, up to its bytes.
    fn part(&mut self) -> Result<Part, Fault> {
        self.take(8)?;
        let bytes = self.words()?;
        let [kind, length] = bytes.map(|bytes| word(bytes, self.big_endian));
        match kind >> 16 {
            0 if u64::from(length) <= self.left => Ok(Part {
                kind,
                length,
                short: None,
            }),
            0 => {
                let what = format!("claims {length} bytes, {} follow", self.left);
                Err(Fault::new(what))
            }
            length @ 1..=4 => Ok(Part {
                kind: kind & 0xffff,
                length,
                short: Some(bytes[1]),
            }),
            length => Err(Fault::new(format!("claims {length} bytes of four"))),
        }
    }

    /// The bytes of the next element, at most `limit`.
    fn bytes(&mut self, limit: u32) -> Result<Vec<u8>, Fault> {
        let part = self.part()?;
        let length = part.length as usize;
        if let Some(bytes) = part.short {
            return Ok(bytes[..length].to_vec());
        }
        if part.length > limit {
            return Err(Fault::new(format!("has {length} bytes, more than {limit}")));
        }
        let mut bytes = vec![0; length];
        self.take(part.length.into())?;
        self.reader.read_exact(&mut bytes)?;
        self.pad(&part)?;
        Ok(bytes)
    }

    /// Leaves the next element behind.
    fn skip(&mut self) -> Result<(), Fault> {
        let part = self.part()?;
        match part.short {
            Some(_) => Ok(()),
            None => {
                self.pass(part.length.into())?;
                self.pad(&part)
            }
        }
    }

    fn head(&mut self) -> Result<Head, Fault> {
        let flags = self.bytes(8).map_err(|e| e.within("flags"))?;
        let flags = flags
            .first_chunk()
            .map(|&bytes| word(bytes, self.big_endian));
        let mut head = Head {
            flags: flags.ok_or_else(|| Fault::at("flags", "less than four bytes"))?,
            shape: Vec::new(),
            name: String::new(),
        };
        if head.class() != OPAQUE {
            head.shape = self.sizes().map_err(|e| e.within("sizes"))?;
        }
        let name = self.bytes(MAX_NAME).map_err(|e| e.within("name"))?;
        let name = String::from_utf8_lossy(&name);
        head.name = name.trim_end_matches('\0').to_string();
        Ok(head)
    }

    fn sizes(&mut self) -> Result<Vec<usize>, Fault> {
        let bytes = self.bytes(MAX_SIZES)?;
        let (words, rest) = bytes.as_chunks::<4>();
        if words.len() < 2 || !rest.is_empty() {
            let what = format!("{} bytes, expected two sizes or more", bytes.len());
            return Err(Fault::new(what));
        }
        check_order(words.len())?;
        let size = |&bytes: &[u8; 4]| {
            let size = word(bytes, self.big_endian) as i32;
            usize::try_from(size).map_err(|_| Fault::new(format!("{size} is below 0")))
        };
        words.iter().map(size).collect()
    }

    /// The numbers of the next element: as many as it has, or as `shape` says.
    fn numbers(
        mut self,
        name: &'static str,
        shape: Option<Vec<usize>>,
    ) -> Result<Stream<impl Read>, Fault> {
        let part = self.part().map_err(|e| e.within(name))?;
        let (kind, size) = match part.kind {
            1 => (Kind::Signed, 1),
            2 => (Kind::Unsigned, 1),
            3 => (Kind::Signed, 2),
            4 => (Kind::Unsigned, 2),
            5 => (Kind::Signed, 4),
            6 => (Kind::Unsigned, 4),
            7 => (Kind::Float, 4),
            9 => (Kind::Float, 8),
            12 => (Kind::Signed, 8),
            13 => (Kind::Unsigned, 8),
            kind => {
                let what = format!("elements of type {kind} are not numbers");
                return Err(Fault::at(name, what));
            }
        };
        let there = part.length as usize / size;
        let header = Header {
            kind,
            size,
            big_endian: self.big_endian,
            fortran: true,
            shape: shape.unwrap_or_else(|| vec![there]),
        };
        let cells = header.cells().map_err(|e| e.within(name))?;
        if cells > there {
            let what = format!("{there} numbers, shape {:?} needs {cells}", header.shape);
            return Err(Fault::at(name, what));
        }
        let short: Vec<u8> = part.short.into_iter().flatten().collect();
        let (stored, left) = (!self.packed, (cells * size) as u64);
        let bytes = Bytes {
            reader: Cursor::new(short).chain(self.reader),
            left,
            packed: self.packed,
        };
        Ok(Stream::new(
            name,
            Values::behind(header, bytes, cells),
            stored,
        ))
    }
}

/// The bytes of an element. At their end all that is packed with them is unpacked too: its checksum follows.
struct Bytes<R> {
    reader: R,
    left: u64,
    packed: bool,
}

impl<R: Read> Read for Bytes<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX);
        let most = most.min(into.len());
        let read = self.reader.read(&mut into[..most])?;
        self.left -= read as u64;
        if self.left == 0 && self.packed {
            copy(&mut self.reader, &mut sink())?;
        }
        Ok(read)
    }
}

/// The array of this name, or the only one of real numbers.
pub(crate) fn find(path: &Path, asked: Option<&str>) -> Result<Variable, Fault> {
    let mut file = open(path)?;
    let end = file.metadata()?.len();
    let big_endian = big_endian(&mut file)?;
    let (mut variables, mut others) = (Vec::new(), Vec::new());
    let mut at = HEADER;
    while at < end {
        let (place, head) = element(path, &mut file, big_endian, at, end)
            .map_err(|e| e.within(format!("byte {at}")))?;
        at = place.offset + u64::from(place.length);
        match head.other() {
            // What MATLAB keeps of objects is an array without a name.
            _ if head.name.is_empty() => {}
            Some(what) => others.push((head.name, what)),
            None => variables.push(Variable {
                path: path.into(),
                place,
                head,
            }),
        }
    }
    let what = |(name, what): &(String, &str)| format!("`{name}` is {what}");
    if let Some(other) = others.iter().find(|(name, _)| asked == Some(name)) {
        return Err(Fault::new(format!("{}: {EXPECTED}", what(other))));
    }
    if variables.is_empty() {
        let others: Vec<_> = others.iter().map(what).collect();
        let others = match others.is_empty() {
            true => "is empty".into(),
            false => others.join(", "),
        };
        return Err(Fault::new(format!(
            "holds no array of real numbers ({others}): {EXPECTED}"
        )));
    }
    let names: Vec<_> = variables.iter().map(|v| v.head.name.clone()).collect();
    let mut seen = BTreeSet::new();
    if let Some(name) = names.iter().find(|name| !seen.insert(*name)) {
        return Err(Fault::new(format!(
            "an array's name occurs twice: `{name}`"
        )));
    }
    Ok(variables.swap_remove(chosen(&names, asked)?))
}

/// The array that begins at a byte of a file.
fn element(
    path: &Path,
    file: &mut (impl Read + Seek),
    big_endian: bool,
    at: u64,
    end: u64,
) -> Result<(ElementLocation, Head), Fault> {
    file.seek(SeekFrom::Start(at))?;
    let mut bytes = [[0; 4]; 2];
    file.read_exact(bytes.as_flattened_mut())?;
    let [kind, length] = bytes.map(|bytes| word(bytes, big_endian));
    if ![MATRIX, COMPRESSED].contains(&kind) {
        let what = format!("an element of type {kind} where an array is expected");
        return Err(Fault::new(what));
    }
    let place = ElementLocation {
        big_endian,
        offset: at + 8,
        length,
        packed: kind == COMPRESSED,
    };
    if u64::from(length) > end - place.offset {
        let what = format!("claims {length} bytes, {} follow", end - place.offset);
        return Err(Fault::new(what));
    }
    let head = place.body(path)?.head()?;
    Ok((place, head))
}

impl Variable {
    pub(crate) fn is_sparse(&self) -> bool {
        self.head.class() == SPARSE
    }

    /// Its bytes from the numbers on, some elements left behind.
    fn behind(&self, elements: usize) -> Result<Body, Fault> {
        let mut body = self.place.body(&self.path)?;
        body.head()?;
        (0..elements).try_for_each(|_| body.skip())?;
        Ok(body)
    }

    fn within(&self, e: Fault) -> Fault {
        e.within(&self.head.name)
    }

    /// A dense array.
    pub(crate) fn dense<T: Element>(&self, allowance: &Allowance) -> Result<Array<T>, Fault> {
        let shape = self.head.shape.clone();
        let read = || {
            let numbers = self.behind(0)?.numbers("numbers", Some(shape.clone()))?;
            let cells: usize = shape.iter().product();
            allowance.claim((cells as u64).saturating_mul(size_of::<T>() as u64))?;
            numbers.all()
        };
        let values = read().map_err(|e| self.within(e))?;
        Ok(Array {
            shape,
            values,
            fortran: true,
        })
    }

    /// Calls `visit` with the entries of a sparse array, column by column; returns the shape. Unless a shape was asked for, it must be one that the
    /// entries explain.
    pub(crate) fn visit<T: Element>(
        &self,
        asked: Option<&[usize]>,
        allowance: &Allowance,
        visit: impl FnMut(Found<'_, T>) -> Result<(), Fault>,
    ) -> Result<Vec<usize>, Fault> {
        self.entries(asked, allowance, visit)
            .map_err(|e| self.within(e))
    }

    fn entries<T: Element>(
        &self,
        asked: Option<&[usize]>,
        allowance: &Allowance,
        mut visit: impl FnMut(Found<'_, T>) -> Result<(), Fault>,
    ) -> Result<Vec<usize>, Fault> {
        let shape = &self.head.shape;
        let &[rows, columns] = &shape[..] else {
            let what = format!("{} sizes, expected the two of a matrix", shape.len());
            return Err(Fault::at("sizes", what));
        };
        // Before anything of the size of the shape is read. More room than entries may be stored.
        let room = self.behind(0)?.numbers("rows", None)?.integers()?;
        if asked != Some(shape) {
            plausible(shape, room)?;
        }
        let ends = self.behind(1)?.numbers("columns", None)?;
        let claimed = (columns as u64)
            .saturating_add(1)
            .saturating_mul(size_of::<usize>() as u64);
        allowance.expect_entries::<T>(room, false, claimed);
        allowance.claim(claimed)?;
        let pointers = runs::pointers(ends, columns as u64, room)?;
        let entries = pointers.last().copied().unwrap_or(0);
        let minor = self.behind(0)?.numbers("rows", Some(vec![entries]))?;
        minor.integers()?;
        let values = self.behind(2)?.numbers("numbers", Some(vec![entries]))?;
        if values.all_there {
            visit(Found::Expected(entries))?;
        }
        runs::visit(false, &pointers, (minor, rows as u64), values, visit)?;
        Ok(shape.clone())
    }
}
