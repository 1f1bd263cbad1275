//! Making a store.

use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use plca_tensor::{Block, TileCounts, Tiling};

use super::format::{HEADER, footer, header};
use super::sort::{Buckets, Spool};
use super::{BLOCK, Input, Place, explained};
use crate::IoError;
use crate::atomic::write_atomically;
use crate::data::{Element, ReadOptions, affordable, sha256_file};
use crate::entries::for_each_entry;
use crate::error::Fault;

/// Entries that are sorted in memory at a time, but that a row is sorted at once.
const SORTED: u64 = 1 << 20;

/// The entries of a sparse file on their way into a [`Store`](super::Store): never all of them in memory.
///
/// [`read`](Self::read) reads the file, its checksum before and after, and sorts its entries into temporary files without names, which need 32 bytes of disk
/// for an entry in `f64` and vanish with this value or with the process; [`write`](Self::write) writes 12 bytes for an entry and 8 for
/// every row of a tile. Memory: about 40 MB, 20 bytes for every row and column, and 30 for every entry of the longest row.
///
/// See [`Store`](super::Store) for an example.
pub struct StoreWriter<T> {
    input: Input,
    tiling: Tiling<T>,
    /// The parts of every group of rows.
    parts: Vec<usize>,
    buckets: Buckets<T>,
}

/// What is done with every entry.
type Visit<'a, T> = dyn FnMut([u32; 2], T) -> Result<(), Fault> + 'a;

impl<T> std::fmt::Debug for StoreWriter<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let fields = &mut f.debug_struct("StoreWriter");
        fields.field("input", &self.input).finish_non_exhaustive()
    }
}

/// Cuts every group of rows into parts of about [`SORTED`] entries; the part of every row, and how many each group has.
fn parts(bounds: &[usize], counts: &[u32]) -> (Vec<u32>, Vec<usize>) {
    let (mut of_row, mut of_group) = (Vec::with_capacity(counts.len()), Vec::new());
    let mut part = 0;
    for ends in bounds.windows(2) {
        let (before, mut entries) = (part, 0);
        for &count in &counts[ends[0]..ends[1]] {
            if entries > 0 && entries + u64::from(count) > SORTED {
                (part, entries) = (part + 1, 0);
            }
            entries += u64::from(count);
            of_row.push(part);
        }
        part += 1;
        of_group.push((part - before) as usize);
    }
    (of_row, of_group)
}

impl<T: Element> StoreWriter<T> {
    /// Reads and sorts the entries of a sparse matrix, with temporary files in `folder`.
    ///
    /// # Errors
    ///
    /// [`IoError`] naming the input, as [`read_data_with`](crate::read_data_with) and the tensor types refuse it; a file
    /// that is dense or no matrix, or that was changed while it was read; `folder` if there is no room in it.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_io::{ReadOptions, StoreWriter};
    /// # let folder = tempfile::tempdir()?;
    /// # let folder = folder.path();
    /// let input = folder.join("v.tns");
    /// std::fs::write(&input, "1 1 3\n2 0 0.5\n")?;
    /// let e = StoreWriter::<f64>::read(&input, &ReadOptions::default(), folder).unwrap_err();
    /// assert!(e.to_string().ends_with("v.tns: line 2: index 0 in mode 1 is below 1"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read(input: &Path, options: &ReadOptions, folder: &Path) -> Result<Self, IoError> {
        Self::sort(input, options, folder, |visit| {
            for_each_entry(input, options, visit)
        })
    }

    /// Sorts what `entries` finds in the input; it returns the shape.
    fn sort(
        input: &Path,
        options: &ReadOptions,
        folder: &Path,
        entries: impl FnOnce(&mut Visit<'_, T>) -> Result<Vec<usize>, Fault>,
    ) -> Result<Self, IoError> {
        let sha256 = sha256_file(input)?;
        let full = |e| Fault::from(e).of(folder);
        let mut spool = Spool::new(folder).map_err(full)?;
        let mut unwritten = None;
        let shape = entries(&mut |index, value| {
            spool.push(index, value).map_err(|e| {
                unwritten = Some(full(e));
                Fault::new("could not be sorted")
            })
        });
        let shape = shape.map_err(|e| unwritten.unwrap_or_else(|| e.of(input)))?;
        // Otherwise the store would bear the checksum of one file and hold another.
        if sha256_file(input)? != sha256 {
            return Err(IoError::new(input, "was changed while it was read"));
        }
        affordable(&shape).map_err(|e| e.of(input))?;
        let refused = |e: plca_tensor::TensorError| IoError::new(input, e);
        let mut counts = TileCounts::new(&shape).map_err(refused)?;
        // What was written a moment ago is read back.
        let back = |e: Either| match e {
            Either::File(e) => full(e),
            Either::Tensor(e) => refused(e),
        };
        let count = |index, value: T| counts.add(index, value).map_err(Either::Tensor);
        spool.for_each(count).map_err(back)?;
        let tiling = counts.tiling();
        let bounds = tiling.bounds();
        let groups = bounds[0].len() - 1;
        let (of_row, parts) = parts(&bounds[0], counts.rows());
        let all: usize = parts.iter().sum();
        let mut buckets = Buckets::new(folder, all * groups).map_err(full)?;
        let scale = tiling.scale();
        let sort = |index, value: T| {
            let (tile, row, column) = tiling.place(index);
            let part = of_row[bounds[0][tile / groups] + row as usize] as usize;
            buckets.push(part * groups + tile % groups, [row, column], value * scale)
        };
        spool.for_each(sort).map_err(full)?;
        Ok(Self {
            input: Input::new(input, &sha256, options),
            tiling,
            parts,
            buckets,
        })
    }

    /// Writes the store, beside its target and then renamed.
    ///
    /// # Errors
    ///
    /// [`IoError`] naming the target; nothing is left or changed by a failure. Where duplicates and zeros leave too few entries for
    /// the shape to be believed, it is to be asked for.
    ///
    /// # Examples
    ///
    /// See [`Store`](super::Store).
    pub fn write(mut self, path: &Path) -> Result<(), IoError> {
        write_atomically(path, |w| self.put(w))
    }

    fn put(&mut self, w: &mut (impl Write + Seek)) -> std::io::Result<()> {
        w.write_all(&[0; HEADER])?;
        let mut file = Blocks {
            writer: w,
            offset: HEADER as u64,
            places: Vec::new(),
            bytes: Vec::new(),
        };
        let groups = self.parts.len();
        let (mut ends, mut before) = (Vec::new(), 0);
        let (mut entries, mut row_entries) = (Vec::new(), Vec::new());
        let mut block = Block::default();
        for &parts in &self.parts {
            for column in 0..groups {
                for part in before..before + parts {
                    self.buckets.take(part * groups + column, &mut entries)?;
                    // Stable: duplicates keep the order of the file.
                    entries.sort_by_key(|&([row, _], _)| row);
                    for row in entries.chunk_by(|a, b| a.0[0] == b.0[0]) {
                        row_entries.clear();
                        row_entries.extend(row.iter().map(|&([_, column], x)| (column, x)));
                        block.push_row(row[0].0[0], &mut row_entries);
                        if block.values.len() >= BLOCK {
                            file.put(&mut block)?;
                        }
                    }
                }
                if !block.values.is_empty() {
                    file.put(&mut block)?;
                }
                ends.push(file.places.len());
            }
            before += parts;
        }
        let Blocks { offset, places, .. } = file;
        // Fewer than were read, and what no reader would believe is not written.
        explained(&self.input, self.tiling.shape(), &places)
            .map_err(|e| std::io::Error::other(e.what))?;
        let footer = footer(&self.input, &self.tiling, &ends, &places);
        w.write_all(&footer)?;
        w.seek(SeekFrom::Start(0))?;
        w.write_all(&header(size_of::<T>(), offset, &footer))
    }
}

/// What may go wrong between two temporary files.
enum Either {
    File(std::io::Error),
    Tensor(plca_tensor::TensorError),
}

impl From<std::io::Error> for Either {
    fn from(e: std::io::Error) -> Self {
        Self::File(e)
    }
}

/// The blocks written so far.
struct Blocks<'a, W> {
    writer: &'a mut W,
    offset: u64,
    places: Vec<Place>,
    bytes: Vec<u8>,
}

impl<W: Write> Blocks<'_, W> {
    /// Writes a block and empties it.
    fn put<T: Element>(&mut self, block: &mut Block<T>) -> std::io::Result<()> {
        self.bytes.clear();
        let words = block.runs.as_flattened().iter().chain(&block.columns);
        words.for_each(|n| self.bytes.extend(n.to_le_bytes()));
        block
            .values
            .iter()
            .for_each(|x| x.write_le(&mut self.bytes));
        self.places.push(Place {
            offset: self.offset,
            runs: block.runs.len() as u32,
            entries: block.values.len() as u32,
            checksum: crc32fast::hash(&self.bytes),
        });
        self.offset += self.bytes.len() as u64;
        block.clear();
        self.writer.write_all(&self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_changes_while_it_is_read_is_refused() {
        let options = ReadOptions::default();
        let read_and = |then: &dyn Fn(&Path)| {
            let folder = tempfile::tempdir().unwrap();
            let input = folder.path().join("v.tns");
            std::fs::write(&input, "1 1 3\n").unwrap();
            let sorted = StoreWriter::<f64>::sort(&input, &options, folder.path(), |visit| {
                let shape = for_each_entry(&input, &options, visit);
                then(&input);
                shape
            });
            (sorted, input)
        };
        let replaced = |input: &Path| {
            let new = input.with_file_name("new");
            std::fs::write(&new, "1 1 4\n").unwrap();
            std::fs::rename(new, input).unwrap();
        };
        let changed = |input: &Path| std::fs::write(input, "1 1 3\n2 2 1\n").unwrap();
        for then in [&replaced as &dyn Fn(&Path), &changed] {
            let (sorted, input) = read_and(then);
            let e = sorted.unwrap_err();
            assert_eq!(e, IoError::new(&input, "was changed while it was read"));
        }
        let removed = |input: &Path| std::fs::remove_file(input).unwrap();
        let (sorted, input) = read_and(&removed);
        assert_eq!(sorted.unwrap_err().path(), input);
        // Another file with the same bytes is the same data.
        let same = |input: &Path| std::fs::write(input, "1 1 3\n").unwrap();
        assert!(read_and(&same).0.is_ok());
    }
}
