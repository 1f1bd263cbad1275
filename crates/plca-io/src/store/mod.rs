//! Sparse matrices larger than memory: a file of blocks, each with a checksum that every read verifies.

mod format;
mod sort;
mod write;

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use plca_tensor::{Block, BlockSource, Tiling};
use serde::{Deserialize, Serialize};

use format::u32_at;
pub(crate) use sort::{Buckets, Limits};
pub(crate) use write::LIMITS;
pub use write::StoreWriter;

use crate::IoError;
use crate::data::{Element, ReadOptions, extension, open, plausible};
use crate::error::Fault;

/// Bytes that are read, verified and taken apart at a time; a multiple of every number's size.
const CHUNK: usize = 1 << 16;

/// Entries of a block, but that a row is never cut. Fewer of them need another version: readers expect no more blocks than this makes.
const BLOCK: usize = 1 << 16;

/// Where a block is, and what it must be; in a footer a list of the four numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "(u64, u32, u32, u32)")]
struct BlockLocation {
    offset: u64,
    runs: u32,
    entries: u32,
    checksum: u32,
}

impl BlockLocation {
    /// Bytes of the block.
    fn length<T>(&self) -> u64 {
        8 * u64::from(self.runs) + (4 + size_of::<T>() as u64) * u64::from(self.entries)
    }
}

impl From<BlockLocation> for (u64, u32, u32, u32) {
    fn from(at: BlockLocation) -> Self {
        (at.offset, at.runs, at.entries, at.checksum)
    }
}

/// Refuses a matrix that its entries do not explain, unless its shape was asked for.
fn explained(input: &Input, shape: [usize; 2], blocks: &[BlockLocation]) -> Result<(), Fault> {
    let entries = blocks.iter().map(|block| block.entries as usize).sum();
    match input.shape {
        Some(_) => Ok(()),
        None => plausible(&shape, entries),
    }
}

/// What a store was made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Input {
    /// Its extension, by which it was read.
    format: String,
    /// SHA-256 of the file.
    sha256: String,
    /// The shape that was asked for.
    shape: Option<Vec<usize>>,
    /// The array that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    array: Option<String>,
}

impl Input {
    pub(crate) fn new(path: &Path, sha256: &str, options: &ReadOptions) -> Self {
        Self {
            sha256: sha256.into(),
            format: extension(path).0,
            shape: options.shape.clone(),
            array: options.array.clone(),
        }
    }
}

/// A sparse matrix in a file, for [`OutOfCore`](plca_tensor::OutOfCore): see [`StoreWriter`], which makes it.
///
/// ```
/// use plca_io::{ReadOptions, Store, StoreWriter};
/// use plca_tensor::{Data, OutOfCore};
/// # let folder = tempfile::tempdir()?;
/// # let folder = folder.path();
/// let input = folder.join("v.tns");
/// std::fs::write(&input, "1 1 3\n2 3 0.5\n1 1 1\n")?;
/// let path = folder.join("v.store");
/// StoreWriter::<f64>::read(&input, &ReadOptions::default(), folder)?.write(&path)?;
/// let v = OutOfCore::new(Store::<f64>::open(&path)?)?;
/// assert_eq!((v.shape(), v.marginal(0)?), (&[2, 3][..], vec![4.0, 0.5]));
///
/// // From now on anything that happens to the file is noticed when it is next read.
/// let mut bytes = std::fs::read(&path)?;
/// bytes[50] ^= 1;
/// std::fs::write(&path, bytes)?;
/// let error = v.self_information().expect_err("a flipped bit");
/// assert!(error.to_string().contains("v.store: block 0: the file was changed"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Store<T> {
    path: PathBuf,
    /// Bytes of the whole file.
    length: u64,
    input: Input,
    tiling: Tiling<T>,
    /// End of every tile's blocks.
    ends: Vec<usize>,
    blocks: Vec<BlockLocation>,
}

impl<T: Element> Store<T> {
    /// Opens a store and verifies all but its blocks, which are verified whenever they are read.
    ///
    /// # Errors
    ///
    /// [`IoError`] naming the file: one that is missing, is not a store, holds another scalar, was truncated or changed, was
    /// written by another version, or describes what no store holds. A shape is accepted if there are enough entries for it, or
    /// if the store says that it was asked for and there is memory for it.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_io::Store;
    /// # let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("v.store");
    /// std::fs::write(&path, "something else")?;
    /// assert!(Store::<f64>::open(&path).unwrap_err().to_string().ends_with("v.store: is not a store of sparse data"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(path: &Path) -> Result<Self, IoError> {
        format::open(path).map_err(|e| e.of(path))
    }

    /// Whether a file begins as a store does: nothing else is ever replaced by one.
    ///
    /// # Errors
    ///
    /// [`IoError`] if the file cannot be read.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_io::Store;
    /// # let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("thesis.txt");
    /// std::fs::write(&path, "It was a dark and stormy night.")?;
    /// assert!(!Store::<f64>::is_one(&path)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_one(path: &Path) -> Result<bool, IoError> {
        let attempt = || -> Result<bool, Fault> {
            let mut start = Vec::new();
            let length = format::MAGIC.len() as u64;
            open(path)?.take(length).read_to_end(&mut start)?;
            Ok(start == format::MAGIC)
        };
        attempt().map_err(|e| e.of(path))
    }

    /// Refuses an input that it was not made from: one with another extension or another [checksum](crate::sha256_file), or read for
    /// another shape or array.
    ///
    /// # Errors
    ///
    /// [`IoError`] naming the store and what it was made from.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_io::{ReadOptions, Store, StoreWriter, sha256_file};
    /// # let folder = tempfile::tempdir()?;
    /// # let folder = folder.path();
    /// let (input, path, options) = (folder.join("v.tns"), folder.join("v.store"), ReadOptions::default());
    /// std::fs::write(&input, "1 1 3\n")?;
    /// StoreWriter::<f64>::read(&input, &options, folder)?.write(&path)?;
    /// let store = Store::<f64>::open(&path)?;
    /// assert!(store.made_from(&input, &sha256_file(&input)?, &options).is_ok());
    /// std::fs::write(&input, "1 1 4\n")?;
    /// let other = store.made_from(&input, &sha256_file(&input)?, &options).unwrap_err();
    /// assert!(other.to_string().ends_with("v.store: was made from a file with other contents"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn made_from(
        &self,
        input: &Path,
        sha256: &str,
        options: &ReadOptions,
    ) -> Result<(), IoError> {
        let Input {
            sha256: own,
            format,
            shape,
            array,
        } = &self.input;
        let wanted = Input::new(input, sha256, options);
        let what = if *format != wanted.format {
            format!("was made from a .{format} file")
        } else if *own != wanted.sha256 {
            "was made from a file with other contents".into()
        } else if *shape != wanted.shape {
            match shape {
                Some(shape) => format!("was made for the shape {shape:?}"),
                None => "was made for the shape that the entries need".into(),
            }
        } else if *array != wanted.array {
            match array {
                Some(array) => format!("was made from the array `{array}`"),
                None => "was made from the only array".into(),
            }
        } else {
            return Ok(());
        };
        Err(IoError::new(&self.path, what))
    }

    fn read_block(&self, block: usize, into: &mut Block<T>) -> Result<(), Fault> {
        let place = self.blocks[block];
        // By its name every time: a file that was moved away or replaced is not read on.
        let mut file = open(&self.path)?;
        let length = file.metadata()?.len();
        if length != self.length {
            return Err(Fault::new(format!(
                "the file was changed: it has {length} bytes, {} were written",
                self.length
            )));
        }
        #[cfg(target_os = "linux")]
        if let Some(next) = self.blocks.get(block + 1) {
            let length = std::num::NonZeroU64::new(next.length::<T>());
            let ahead = rustix::fs::Advice::WillNeed;
            // The system fetches it while this one is worked on; where it cannot, nothing is lost but time.
            let _ = rustix::fs::fadvise(&file, next.offset, length, ahead);
        }
        file.seek(SeekFrom::Start(place.offset))?;
        let mut reader = Verified {
            file,
            buffer: vec![0; CHUNK],
            checksum: crc32fast::Hasher::new(),
        };
        into.clear();
        reader.numbers(place.runs as usize, 8, |bytes| {
            into.runs.push([u32_at(bytes, 0), u32_at(bytes, 4)]);
        })?;
        reader.numbers(place.entries as usize, 4, |bytes| {
            into.columns.push(u32_at(bytes, 0));
        })?;
        reader.numbers(place.entries as usize, size_of::<T>(), |bytes| {
            into.values.push(T::read_le(bytes));
        })?;
        let found = reader.checksum.finalize();
        if found == place.checksum {
            Ok(())
        } else {
            Err(Fault::new(format!(
                "the file was changed: checksum {found:08x}, expected {:08x}",
                place.checksum
            )))
        }
    }
}

/// A part of a file, and the checksum of what was read of it.
struct Verified {
    file: File,
    buffer: Vec<u8>,
    checksum: crc32fast::Hasher,
}

impl Verified {
    /// Calls `push` with the bytes of every number.
    fn numbers(
        &mut self,
        count: usize,
        size: usize,
        mut push: impl FnMut(&[u8]),
    ) -> Result<(), Fault> {
        let mut left = count * size;
        while left > 0 {
            let bytes = &mut self.buffer[..left.min(CHUNK)];
            let read = self.file.read_exact(bytes);
            read.map_err(|e| match e.kind() {
                ErrorKind::UnexpectedEof => Fault::new("the file was changed: it ends here"),
                _ => e.into(),
            })?;
            self.checksum.update(bytes);
            bytes.chunks_exact(size).for_each(&mut push);
            left -= bytes.len();
        }
        Ok(())
    }
}

impl<T: Element> BlockSource<T> for Store<T> {
    type Error = IoError;

    fn tiling(&self) -> &Tiling<T> {
        &self.tiling
    }

    fn blocks(&self, tile: usize) -> Range<usize> {
        let first = tile.checked_sub(1).map_or(0, |before| self.ends[before]);
        first..self.ends[tile]
    }

    fn read(&self, block: usize, into: &mut Block<T>) -> Result<(), IoError> {
        let read = self.read_block(block, into);
        read.map_err(|e| e.within(format!("block {block}")).of(&self.path))
    }
}
