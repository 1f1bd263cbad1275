//! The `.npy` format, versions 1 to 3.

use std::io::{Read, Write};

use crate::allowance::Allowance;
use crate::data::{Array, Element, check_order};
use crate::error::Fault;

/// Longest header that is read.
const MAX_HEADER: usize = 1 << 16;
/// Values read at a time: memory grows with what is really there.
const CHUNK: usize = 1 << 16;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Float,
    Signed,
    Unsigned,
    Bool,
    Text,
}

#[derive(Clone, Debug)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    pub(crate) size: usize,
    pub(crate) big_endian: bool,
    pub(crate) fortran: bool,
    pub(crate) shape: Vec<usize>,
}

/// The text after `'key':` in the header's dictionary.
fn field<'a>(header: &'a str, key: &str) -> Result<&'a str, Fault> {
    for quote in ['\'', '"'] {
        if let Some((_, rest)) = header.split_once(&format!("{quote}{key}{quote}")) {
            let rest = rest.trim_start();
            if let Some(rest) = rest.strip_prefix(':') {
                return Ok(rest.trim_start());
            }
        }
    }
    Err(Fault::at("header", format!("no field `{key}`")))
}

pub(crate) fn read_header(reader: &mut impl Read) -> Result<Header, Fault> {
    let mut start = [0; 8];
    reader.read_exact(&mut start)?;
    if &start[..6] != b"\x93NUMPY" {
        return Err(Fault::new("not a .npy file (wrong magic number)"));
    }
    let length = match start[6] {
        1 => {
            let mut n = [0; 2];
            reader.read_exact(&mut n)?;
            usize::from(u16::from_le_bytes(n))
        }
        2 | 3 => {
            let mut n = [0; 4];
            reader.read_exact(&mut n)?;
            u32::from_le_bytes(n) as usize
        }
        v => return Err(Fault::new(format!("unknown .npy version {v}"))),
    };
    if length > MAX_HEADER {
        return Err(Fault::at(
            "header",
            format!("claims {length} bytes, more than {MAX_HEADER}"),
        ));
    }
    let mut header = vec![0; length];
    reader.read_exact(&mut header)?;
    let header = std::str::from_utf8(&header).map_err(|_| Fault::at("header", "is not text"))?;

    let descr = field(header, "descr")?;
    let quote = descr.chars().next().filter(|&c| c == '\'' || c == '"');
    let Some(descr) = quote.and_then(|q| descr[1..].split(q).next()) else {
        return Err(Fault::at("header", "structured types are not numbers"));
    };
    let unknown = || {
        let hint = match descr.contains('c') {
            true => "; of complex numbers save the absolute values",
            false => "",
        };
        Fault::at(
            "header",
            format!("type `{descr}` is not a real number{hint}"),
        )
    };
    let mut chars = descr.chars();
    let mut code = chars.next().ok_or_else(unknown)?;
    let mut big_endian = false;
    if "<>|=".contains(code) {
        big_endian = code == '>';
        code = chars.next().ok_or_else(unknown)?;
    }
    let size: usize = chars.as_str().parse().map_err(|_| unknown())?;
    let kind = match (code, size) {
        ('f', 2 | 4 | 8) => Kind::Float,
        ('i', 1 | 2 | 4 | 8) => Kind::Signed,
        ('u', 1 | 2 | 4 | 8) => Kind::Unsigned,
        ('b', 1) => Kind::Bool,
        ('S', 1..=64) => Kind::Text,
        ('U', 1..=64) => Kind::Text,
        _ => return Err(unknown()),
    };
    let size = if code == 'U' { 4 * size } else { size };
    let fortran = field(header, "fortran_order")?.starts_with("True");
    let shape = field(header, "shape")?;
    let shape = shape
        .strip_prefix('(')
        .and_then(|s| s.split_once(')'))
        .map(|(s, _)| s);
    let shape = shape.ok_or_else(|| Fault::at("header", "the shape is not a tuple"))?;
    let shape = (shape.split(',').map(str::trim).filter(|s| !s.is_empty()))
        .map(|s| {
            s.trim_end_matches('L')
                .parse()
                .map_err(|_| Fault::at("header", format!("size `{s}` in the shape")))
        })
        .collect::<Result<Vec<usize>, _>>()?;
    check_order(shape.len()).map_err(|e| e.within("header"))?;
    Ok(Header {
        kind,
        size,
        big_endian,
        fortran,
        shape,
    })
}

impl Header {
    pub(crate) fn cells(&self) -> Result<usize, Fault> {
        let cells = self.shape.iter().try_fold(1usize, |n, &m| n.checked_mul(m));
        cells
            .filter(|n| n.checked_mul(self.size.max(8)).is_some())
            .ok_or_else(|| Fault::at("header", format!("shape {:?} is too large", self.shape)))
    }

    /// Little-endian bytes of one number, filled with zeros.
    fn raw(&self, bytes: &[u8]) -> [u8; 8] {
        let mut raw = [0u8; 8];
        raw[..self.size].copy_from_slice(bytes);
        if self.big_endian {
            raw[..self.size].reverse();
        }
        raw
    }

    /// The number of a signed type.
    fn signed(&self, raw: [u8; 8]) -> i64 {
        let shift = 64 - 8 * self.size as u32;
        (i64::from_le_bytes(raw) << shift) >> shift
    }

    #[inline]
    pub(crate) fn decode<T: Element>(&self, bytes: &[u8]) -> T {
        let raw = self.raw(bytes);
        match (self.kind, self.size) {
            (Kind::Float, 2) => T::lit(half::f16::from_le_bytes([raw[0], raw[1]]).into()),
            (Kind::Float, 4) => T::lit(f32::read_le(&raw).into()),
            (Kind::Float, _) => T::lit(f64::from_le_bytes(raw)),
            (Kind::Signed, _) => T::lit(self.signed(raw) as f64),
            _ => T::lit(u64::from_le_bytes(raw) as f64),
        }
    }
}

/// How many bytes may follow: what a header claims is held against it before anything is allocated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Supply {
    /// No more bytes than these can come.
    pub(crate) bound: u64,
    /// The bound is a length of stored bytes, not a guess from a compressed length.
    pub(crate) stored: bool,
}

/// The values of an array one after the other.
pub(crate) struct Values<R> {
    pub(crate) header: Header,
    reader: R,
    /// Bytes of values that were read, and where the next one begins.
    buffer: Vec<u8>,
    next: usize,
    /// How many values were taken, of how many.
    pub(crate) taken: usize,
    pub(crate) cells: usize,
}

impl<R: Read> Values<R> {
    /// Reads the header and holds what it claims against the bytes that are there.
    pub(crate) fn new(mut reader: R, supply: Supply) -> Result<Self, Fault> {
        let header = read_header(&mut reader)?;
        if header.kind == Kind::Text {
            return Err(Fault::at("header", "text where numbers are needed"));
        }
        let cells = header.cells()?;
        if (cells * header.size) as u64 > supply.bound {
            return Err(Fault::at(
                "header",
                format!(
                    "shape {:?} needs {} bytes, at most {} follow",
                    header.shape,
                    cells * header.size,
                    supply.bound
                ),
            ));
        }
        Ok(Self::behind(header, reader, cells))
    }

    /// The values behind a header that is not to be read.
    pub(crate) fn behind(header: Header, reader: R, cells: usize) -> Self {
        Self {
            header,
            reader,
            buffer: Vec::new(),
            next: 0,
            taken: 0,
            cells,
        }
    }

    /// The bytes of the next value, beside the header; nothing may follow the last one.
    pub(crate) fn next(&mut self) -> Result<Option<(&Header, &[u8])>, Fault> {
        let size = self.header.size;
        if self.next == self.buffer.len() {
            if self.taken == self.cells {
                return self.finish().map(|()| None);
            }
            self.fill()?;
        }
        let at = self.next;
        self.next += size;
        self.taken += 1;
        Ok(Some((&self.header, &self.buffer[at..self.next])))
    }

    fn fill(&mut self) -> Result<(), Fault> {
        let count = CHUNK.min(self.cells - self.taken);
        self.buffer.resize(count * self.header.size, 0);
        self.next = 0;
        let read = self.reader.read_exact(&mut self.buffer);
        read.map_err(|e| {
            Fault::at(
                format!("entry {}", self.taken),
                match e.kind() {
                    std::io::ErrorKind::UnexpectedEof => format!(
                        "the file ends here, shape {:?} needs {} values",
                        self.header.shape, self.cells
                    ),
                    _ => e.to_string(),
                },
            )
        })
    }

    /// Reading to the end also lets archives verify their checksums.
    fn finish(&mut self) -> Result<(), Fault> {
        if self.reader.read(&mut [0])? == 0 {
            return Ok(());
        }
        Err(Fault::new(format!(
            "bytes after the {} values of shape {:?}",
            self.cells, self.header.shape
        )))
    }
}

/// Makes room, or says that there is none: running out of it later would end the process without a word.
pub(crate) fn reserve<U>(all: &mut Vec<U>, more: usize) -> Result<(), Fault> {
    let room = all.try_reserve_exact(more);
    room.map_err(|_| Fault::new(format!("there is no memory for {more} values")))
}

/// All values, each by `decode` from the header and its place and bytes.
pub(crate) fn read_values<R: Read, U>(
    mut values: Values<R>,
    stored: bool,
    decode: impl Fn(&Header, usize, &[u8]) -> Result<U, Fault>,
) -> Result<Vec<U>, Fault> {
    let cells = values.cells;
    let mut all: Vec<U> = Vec::new();
    if stored {
        reserve(&mut all, cells)?;
    }
    while let Some((header, word)) = values.next()? {
        // Once an eighth is really there, the rest is worth reserving in one piece.
        if all.capacity() == all.len() && all.len() >= cells / 8 {
            let left = cells - all.len();
            reserve(&mut all, left)?;
        }
        all.push(decode(header, all.len(), word)?);
    }
    Ok(all)
}

pub(crate) fn read_array<T: Element>(
    reader: &mut impl Read,
    supply: Supply,
    allowance: &Allowance,
) -> Result<Array<T>, Fault> {
    let values = Values::new(reader, supply)?;
    allowance.claim((values.cells as u64).saturating_mul(size_of::<T>() as u64))?;
    decoded(values, supply.stored)
}

fn decoded<T: Element>(values: Values<impl Read>, stored: bool) -> Result<Array<T>, Fault> {
    let Header { shape, fortran, .. } = values.header.clone();
    let values = read_values(values, stored, |header, _, word| Ok(header.decode(word)))?;
    Ok(Array {
        shape,
        values,
        fortran,
    })
}

/// All values behind a header that was read elsewhere.
pub(crate) fn read_values_of<T: Element>(
    reader: &mut impl Read,
    header: Header,
) -> Result<Array<T>, Fault> {
    let cells = header.cells()?;
    // What follows them belongs to others.
    let own = reader.take((cells * header.size) as u64);
    decoded(Values::behind(header, own, cells), true)
}

impl Header {
    /// Refuses what is not a vector.
    pub(crate) fn vector(&self) -> Result<usize, Fault> {
        match self.shape[..] {
            [n] => Ok(n),
            _ => Err(Fault::at(
                "header",
                format!("shape {:?} where one dimension is needed", self.shape),
            )),
        }
    }

    /// Refuses what is not a vector of an integer type.
    pub(crate) fn integers(&self) -> Result<usize, Fault> {
        let n = self.vector()?;
        if !matches!(self.kind, Kind::Signed | Kind::Unsigned) {
            return Err(Fault::at("header", "indices are of an integer type"));
        }
        Ok(n)
    }

    /// The value at a place of an integer type, which must not be below 0.
    pub(crate) fn whole(&self, at: usize, word: &[u8]) -> Result<u64, Fault> {
        let raw = self.raw(word);
        let signed = self.signed(raw);
        if self.kind == Kind::Signed && signed < 0 {
            return Err(Fault::at(
                format!("entry {at}"),
                format!("{signed} is below 0"),
            ));
        }
        Ok(u64::from_le_bytes(raw))
    }
}

/// A short text scalar, as `save_npz` stores the name of the format.
pub(crate) fn read_text(reader: &mut impl Read) -> Result<String, Fault> {
    let header = read_header(reader)?;
    if header.kind != Kind::Text || header.cells()? != 1 {
        return Err(Fault::new("not a text"));
    }
    let mut bytes = vec![0; header.size];
    reader.read_exact(&mut bytes)?;
    Ok(bytes
        .into_iter()
        .filter(|&b| b != 0)
        .map(char::from)
        .collect())
}

/// Writes an array in version 1, in the precision of `T`, little endian, C or Fortran order as it is.
pub(crate) fn write_array<T: Element>(
    array: &Array<impl Element>,
    writer: &mut impl Write,
) -> std::io::Result<()> {
    write_header(T::DESCR, &array.shape, array.fortran, writer)?;
    write_values::<T>(&array.values, writer)
}

/// Writes values alone, in the precision of `T`.
pub(crate) fn write_values<T: Element>(
    values: &[impl Element],
    writer: &mut impl Write,
) -> std::io::Result<()> {
    let mut bytes = Vec::with_capacity(CHUNK);
    for chunk in values.chunks(CHUNK / 8) {
        bytes.clear();
        let narrow = chunk.iter().map(|x| T::lit(x.to_f64()));
        narrow.for_each(|x| x.write_le(&mut bytes));
        writer.write_all(&bytes)?;
    }
    Ok(())
}

fn write_header(
    descr: &str,
    shape: &[usize],
    fortran: bool,
    writer: &mut impl Write,
) -> std::io::Result<()> {
    let shape: Vec<String> = shape.iter().map(usize::to_string).collect();
    let comma = if shape.len() == 1 { "," } else { "" };
    let order = if fortran { "True" } else { "False" };
    let mut header = format!(
        "{{'descr': '{descr}', 'fortran_order': {order}, 'shape': ({}{comma}), }}",
        shape.join(", ")
    );
    // Magic, version and length are 10 bytes; the values start on a multiple of 64.
    header.push_str(&" ".repeat((64 - (11 + header.len()) % 64) % 64));
    header.push('\n');
    let length = u16::try_from(header.len())
        .map_err(|_| std::io::Error::other("too many modes for a .npy header"))?;
    writer.write_all(b"\x93NUMPY\x01\x00")?;
    writer.write_all(&length.to_le_bytes())?;
    writer.write_all(header.as_bytes())
}
