//! Memory that a packed file may take: a few kilobytes can unpack to gigabytes.

use std::cell::Cell;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::rc::Rc;

use flate2::bufread::MultiGzDecoder;

use crate::data::{extension, open};
use crate::error::Fault;

/// What any file may take, and how many times its own bytes besides.
const FREE: u64 = 64 << 20;
const TIMES: u64 = 50;

/// What is left of it.
#[derive(Debug)]
pub(crate) struct Allowance {
    /// Bytes of the file.
    packed: u64,
    most: u64,
    /// Bytes that all of the file unpacks to, as far as it says so.
    total: Option<u64>,
    /// Memory that all of it will take, as far as its heads say so.
    expected: Cell<u64>,
    /// Bytes of the file that were unpacked, and to how many.
    consumed: Cell<u64>,
    unpacked: Cell<u64>,
    used: Cell<u64>,
}

/// More memory than a packed file may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Needs {
    pub(crate) bytes: u64,
    most: u64,
    packed: u64,
}

impl fmt::Display for Needs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            bytes,
            most,
            packed,
        } = self;
        write!(
            f,
            "needs about {bytes} bytes of memory, more than the {most} that a packed file of {packed} bytes may take"
        )
    }
}

impl std::error::Error for Needs {}

impl Allowance {
    /// Of a file of this length, unless a person says another limit.
    pub(crate) fn new(packed: u64, limit: Option<u64>) -> Self {
        let usual = FREE.saturating_add(packed.saturating_mul(TIMES));
        Self {
            packed,
            most: limit.unwrap_or(usual),
            total: None,
            expected: Cell::new(0),
            consumed: Cell::new(0),
            unpacked: Cell::new(0),
            used: Cell::new(0),
        }
    }

    /// Of a file by its ending.
    pub(crate) fn shared(path: &Path, limit: Option<u64>) -> Result<Rc<Self>, Fault> {
        Self::of(path, limit).map(Rc::new)
    }

    fn of(path: &Path, limit: Option<u64>) -> Result<Self, Fault> {
        let (extension, gz) = extension(path);
        if !gz && !["npz", "mat", "parquet"].contains(&&*extension) {
            return Ok(Self::new(0, Some(u64::MAX)));
        }
        let mut file = open(path)?;
        let length = file.metadata()?.len();
        let mut allowance = Self::new(length, limit);
        if gz && length >= 18 {
            allowance.total = Some(size_of_gz(&mut file)?);
        }
        Ok(allowance)
    }

    /// Takes memory for what was read: twice its size, since arrays grow by more than they need.
    pub(crate) fn take(&self, bytes: usize) -> Result<(), Fault> {
        let used = self.used.get().saturating_add(2 * bytes as u64);
        self.used.set(used);
        match used <= self.most {
            true => Ok(()),
            false => Err(self.needs(used).into()),
        }
    }

    /// Whether this much more may be taken for a while.
    pub(crate) fn spare(&self, bytes: usize) -> Result<(), Fault> {
        let used = self.used.get().saturating_add(bytes as u64);
        match used <= self.most {
            true => Ok(()),
            false => Err(self.needs(used).into()),
        }
    }

    /// Takes memory for an array whose size is known, before it is read.
    pub(crate) fn claim(&self, bytes: u64) -> Result<(), Fault> {
        let used = self.used.get().saturating_add(bytes);
        if used > self.most {
            let needs = Needs {
                bytes: used.max(self.expected.get()),
                ..self.needs(used)
            };
            return Err(needs.into());
        }
        self.used.set(used);
        Ok(())
    }

    /// Expects this much in all: what is refused says so.
    pub(crate) fn expect(&self, bytes: u64) {
        self.expected.set(bytes);
    }

    /// Expects entries of a sparse matrix, and numbers that say where its rows or columns begin. Entries whose number only a head claims take memory as they
    /// come, twice as much as those that are all there.
    pub(crate) fn expect_entries<T>(&self, entries: usize, all_there: bool, pointers: u64) {
        let each = size_of::<[u32; 2]>() + size_of::<T>();
        let each = if all_there { each } else { 2 * each } as u64;
        self.expect(each.saturating_mul(entries as u64).saturating_add(pointers));
    }

    /// That for all of a file of which this part needs so much.
    fn needs(&self, used: u64) -> Needs {
        // What the file says of its size may be that of its last part alone.
        let share = |all: u64, part: &Cell<u64>| match part.get() {
            0 => 2.0,
            part => all as f64 / part as f64,
        };
        let by_size = self.total.map_or(1.0, |all| share(all, &self.unpacked));
        let parts = by_size.max(share(self.packed, &self.consumed));
        let used = used.max(self.used.get()).max(self.unpacked.get());
        // A quarter more: its parts are not alike.
        let estimated = (used as f64 * parts.max(1.0) * 1.25) as u64;
        let expected = self.expected.get();
        Needs {
            bytes: if expected > used { expected } else { estimated },
            most: self.most,
            packed: self.packed,
        }
    }

    /// A reader of what a `.gz` file unpacks to, of which no more may come than memory may be taken.
    pub(crate) fn unpacked(self: Rc<Self>, file: File) -> impl Read {
        let packed = Counted {
            file: BufReader::new(file),
            allowance: self.clone(),
        };
        LimitedReader {
            reader: MultiGzDecoder::new(packed),
            allowance: self,
        }
    }
}

/// Counts what the decoder takes, which is less than what is read ahead for it.
struct Counted {
    file: BufReader<File>,
    allowance: Rc<Allowance>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.fill_buf()?.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}

impl BufRead for Counted {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        self.file.fill_buf()
    }

    fn consume(&mut self, read: usize) {
        let consumed = &self.allowance.consumed;
        consumed.set(consumed.get().saturating_add(read as u64));
        self.file.consume(read);
    }
}

/// What the last bytes of a gzip file say, which may be less than the truth.
fn size_of_gz(file: &mut File) -> std::io::Result<u64> {
    let mut bytes = [0; 4];
    file.seek(SeekFrom::End(-4))?;
    file.read_exact(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes).into())
}

struct LimitedReader<R> {
    reader: R,
    allowance: Rc<Allowance>,
}

impl<R: Read> Read for LimitedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.reader.read(buffer)?;
        let all = self.allowance.unpacked.get().saturating_add(read as u64);
        self.allowance.unpacked.set(all);
        match all <= self.allowance.most {
            true => Ok(read),
            false => Err(std::io::Error::other(self.allowance.needs(all))),
        }
    }
}
