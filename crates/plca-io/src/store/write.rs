//! Making a store.

use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use plca_tensor::{Block, TileCounts, Tiling};

use super::format::{HEADER, footer, header};
use super::sort::{Buckets, Limits};
use super::{BLOCK, BlockLocation, Input, explained};
use crate::IoError;
use crate::atomic::write_atomically;
use crate::data::{Element, ReadOptions, affordable, sha256_file};
use crate::entries::for_each_entry;
use crate::error::Fault;

pub(crate) const LIMITS: Limits = Limits {
    sorted: 1 << 20,
    piles: 1 << 9,
    waiting: 1 << 24,
    block: BLOCK,
};

/// The entries of a sparse file on their way into a [`Store`](super::Store): never all of them in memory.
///
/// [`read`](Self::read) reads the file, its checksum before and after, and sorts its entries into temporary files without names,
/// which need 32 bytes of disk for an entry in `f64` and vanish with this value or with the process (beyond about 3e7 entries they
/// are sorted twice); [`write`](Self::write) writes 12 bytes for an entry and 8 for every row of a tile. Memory: about 40 MB, 20 bytes
/// for every row and column, and 30 for every entry of the longest row.
///
/// See [`Store`](super::Store) for an example.
pub struct StoreWriter<T> {
    input: Input,
    tiling: Tiling<T>,
    parts: Parts,
    buckets: Buckets<T>,
    limits: Limits,
    folder: PathBuf,
}

/// What is done with every entry.
pub(crate) type Visit<'a, T> = dyn FnMut([u32; 2], T) -> Result<(), Fault> + 'a;

impl<T> std::fmt::Debug for StoreWriter<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let fields = &mut f.debug_struct("StoreWriter");
        fields.field("input", &self.input).finish_non_exhaustive()
    }
}

/// Groups of rows, cut into parts of a few entries: the bucket of an entry is that of its part and its group of columns, and buckets
/// are in the order of the blocks.
struct Parts {
    /// The part of every row within its group.
    of_row: Vec<u32>,
    /// How many every group has.
    of_group: Vec<usize>,
    /// The first bucket of every group.
    first: Vec<usize>,
    /// Groups of columns.
    columns: usize,
    buckets: usize,
}

impl Parts {
    fn new(bounds: &[Vec<usize>; 2], counts: &[u32], most: u64) -> Self {
        let [rows, columns] = bounds;
        let mut parts = Self {
            columns: columns.len() - 1,
            of_row: Vec::with_capacity(counts.len()),
            of_group: Vec::new(),
            first: Vec::new(),
            buckets: 0,
        };
        for ends in rows.windows(2) {
            let (mut part, mut entries) = (0, 0);
            for &count in &counts[ends[0]..ends[1]] {
                if entries > 0 && entries + u64::from(count) > most {
                    (part, entries) = (part + 1, 0);
                }
                entries += u64::from(count);
                parts.of_row.push(part);
            }
            parts.of_group.push(part as usize + 1);
            parts.first.push(parts.buckets);
            parts.buckets += (part as usize + 1) * parts.columns;
        }
        parts
    }

    /// The bucket of an entry.
    fn bucket<T: Element>(&self, tiling: &Tiling<T>, index: [u32; 2]) -> usize {
        let (tile, row, _) = tiling.place(index);
        let (group, column) = (tile / self.columns, tile % self.columns);
        let part = self.of_row[tiling.bounds()[0][group] + row as usize] as usize;
        self.first[group] + column * self.of_group[group] + part
    }
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
        Self::sort(input, options, folder, LIMITS, |visit| {
            for_each_entry(input, options, visit)
        })
    }

    /// Sorts what `entries` finds in the input; it returns the shape.
    fn sort(
        input: &Path,
        options: &ReadOptions,
        folder: &Path,
        limits: Limits,
        entries: impl FnOnce(&mut Visit<'_, T>) -> Result<Vec<usize>, Fault>,
    ) -> Result<Self, IoError> {
        let sha256 = sha256_file(input)?;
        let of = Input::new(input, &sha256, options);
        let sorted = Self::sort_of(of, input, folder, limits, entries)?;
        // Otherwise the store would bear the checksum of one file and hold another.
        match sha256_file(input)? == sha256 {
            true => Ok(sorted),
            false => Err(IoError::new(input, "was changed while it was read")),
        }
    }

    /// Sorts what `entries` finds; `path` is what they are said to be of.
    pub(crate) fn sort_of(
        input: Input,
        path: &Path,
        folder: &Path,
        limits: Limits,
        entries: impl FnOnce(&mut Visit<'_, T>) -> Result<Vec<usize>, Fault>,
    ) -> Result<Self, IoError> {
        let full = |e| Fault::from(e).of(folder);
        // One pile of all entries: nothing is known of the buckets yet.
        let mut spool = Buckets::new(folder, 0..1, &limits).map_err(full)?;
        let mut unwritten = None;
        let shape = entries(&mut |index, value| {
            spool.push(0, index, value).map_err(|e| {
                unwritten = Some(full(e));
                Fault::new("could not be sorted")
            })
        });
        let shape = shape.map_err(|e| unwritten.unwrap_or_else(|| e.of(path)))?;
        affordable(&shape).map_err(|e| e.of(path))?;
        let refused = |e: plca_tensor::DataError| IoError::new(path, e);
        let mut counts = TileCounts::new(&shape).map_err(refused)?;
        let count = |index, value: T| counts.add(index, value).map_err(refused);
        spool.read(0, full, count)?;
        let tiling = counts.tiling();
        let parts = Parts::new(tiling.bounds(), counts.rows(), limits.sorted);
        let mut buckets = Buckets::new(folder, 0..parts.buckets, &limits).map_err(full)?;
        let scale = tiling.scale();
        let sort = |index, value: T| {
            let bucket = parts.bucket(&tiling, index);
            buckets.push(bucket, index, value * scale).map_err(full)
        };
        spool.read(0, full, sort)?;
        Ok(Self {
            input,
            tiling,
            parts,
            buckets,
            limits,
            folder: folder.into(),
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
    pub fn write(self, path: &Path) -> Result<(), IoError> {
        self.write_while(path, || true)
    }

    /// As [`write`](Self::write), as long as `proceed` says so, which is asked for every few million entries.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write); also if `proceed` said no.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_io::{ReadOptions, StoreWriter};
    /// # let folder = tempfile::tempdir()?;
    /// # let folder = folder.path();
    /// let (input, store) = (folder.join("v.tns"), folder.join("v.store"));
    /// std::fs::write(&input, "1 1 3\n")?;
    /// let sorted = StoreWriter::<f64>::read(&input, &ReadOptions::default(), folder)?;
    /// assert!(sorted.write_while(&store, || false).is_err() && !store.exists());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn write_while(self, path: &Path, proceed: impl Fn() -> bool) -> Result<(), IoError> {
        write_atomically(path, |w| self.put(w, &proceed))
    }

    fn put(self, w: &mut (impl Write + Seek), proceed: &dyn Fn() -> bool) -> std::io::Result<()> {
        let Self {
            input,
            tiling,
            parts,
            buckets,
            limits,
            folder,
        } = self;
        w.write_all(&[0; HEADER])?;
        let mut file = Blocks {
            writer: w,
            offset: HEADER as u64,
            places: Vec::new(),
            bytes: Vec::new(),
        };
        let (mut ends, mut done) = (Vec::new(), 0);
        let (mut block, mut row_entries) = (Block::default(), Vec::new());
        let of = |index| parts.bucket(&tiling, index);
        buckets.for_each(&folder, &limits, &of, &mut |entries| {
            if !proceed() {
                return Err(std::io::ErrorKind::Interrupted.into());
            }
            for (index, _) in entries.iter_mut() {
                let (_, row, column) = tiling.place(*index);
                *index = [row, column];
            }
            // Stable: duplicates keep the order of the file.
            entries.sort_by_key(|&([row, _], _)| row);
            for row in entries.chunk_by(|a, b| a.0[0] == b.0[0]) {
                row_entries.clear();
                row_entries.extend(row.iter().map(|&([_, column], x)| (column, x)));
                block.push_row(row[0].0[0], &mut row_entries);
                if block.values.len() >= limits.block {
                    file.put(&mut block)?;
                }
            }
            done += 1;
            if done == parts.of_group[ends.len() / parts.columns] {
                // The tile ends here.
                if !block.values.is_empty() {
                    file.put(&mut block)?;
                }
                ends.push(file.places.len());
                done = 0;
            }
            Ok(())
        })?;
        let Blocks { offset, places, .. } = file;
        // Fewer than were read, and what no reader would believe is not written.
        explained(&input, tiling.shape(), &places).map_err(|e| std::io::Error::other(e.what))?;
        let footer = footer(input, &tiling, ends, places)?;
        w.write_all(&footer)?;
        w.seek(SeekFrom::Start(0))?;
        w.write_all(&header(size_of::<T>(), offset, &footer))
    }
}

/// The blocks written so far.
struct Blocks<'a, W> {
    writer: &'a mut W,
    offset: u64,
    places: Vec<BlockLocation>,
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
        self.places.push(BlockLocation {
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
    use plca_tensor::{Coordinates, Data, OutOfCore, SparseTensor};
    use proptest::prelude::*;

    use super::super::Store;
    use super::super::sort::Found;
    use super::*;

    /// The bytes of a store made within these limits, how many buckets its first piles had, and the store.
    fn made(
        shape: [usize; 2],
        entries: &[Found<f64>],
        limits: Limits,
    ) -> (Vec<u8>, usize, Store<f64>) {
        let folder = tempfile::tempdir().unwrap();
        let (input, path) = (folder.path().join("v.tns"), folder.path().join("v.store"));
        std::fs::write(&input, "").unwrap();
        let options = ReadOptions::default();
        let sorted = StoreWriter::<f64>::sort(&input, &options, folder.path(), limits, |visit| {
            entries.iter().try_for_each(|&(index, x)| visit(index, x))?;
            Ok(shape.into())
        });
        let sorted = sorted.unwrap();
        let width = sorted.buckets.width();
        sorted.write(&path).unwrap();
        let store = Store::open(&path).unwrap();
        let memory = Coordinates {
            shape: shape.into(),
            indices: entries.iter().flat_map(|(index, _)| *index).collect(),
            values: entries.iter().map(|&(_, x)| x).collect(),
        };
        // A store without a positive entry is refused, as models of counts refuse such data.
        let memory = SparseTensor::new(memory).unwrap();
        if memory.summary().nnz > 0 {
            let listed = |data: &dyn Data<f64>| {
                let mut all = Vec::new();
                data.visit(&mut |index, x| all.push((index.to_vec(), x.to_bits())))
                    .unwrap();
                all
            };
            let out = OutOfCore::new(Store::<f64>::open(&path).unwrap()).unwrap();
            assert!(listed(&out) == listed(&memory));
        }
        (std::fs::read(&path).unwrap(), width, store)
    }

    /// Indices of a small matrix, many of them the same, with values whose sums depend on the order.
    fn entries(rows: u32, columns: u32, count: usize) -> impl Strategy<Value = Vec<Found<f64>>> {
        let value = (0..9u32).prop_map(|n| f64::from(n) / 7.0);
        let entry = (0..rows, 0..columns, value).prop_map(|(i, j, x)| ([i, j], x));
        prop::collection::vec(entry, 1..count)
    }

    proptest! {
        /// Passes, piles and pieces are not a property of the store, which is that of memory.
        #[test]
        fn stores_are_the_same_within_any_limits(
            entries in entries(40, 9, 400),
            (sorted, piles, waiting, block) in (1..40u64, 2..5usize, 0..400usize, 1..40usize),
        ) {
            let plain = made([40, 9], &entries, Limits { block, ..LIMITS });
            let limits = Limits { sorted, piles, waiting, block };
            prop_assert!(made([40, 9], &entries, limits).0 == plain.0);
        }
    }

    #[test]
    fn many_passes_make_the_same_store() {
        // One lane and three, of 64 tiles each.
        for (columns, tiles) in [(160, 64), (50, 192)] {
            let mut state = 1u64;
            let mut next = |n: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005);
                state = state.wrapping_add(99);
                ((state >> 33) % n) as u32
            };
            let entry = |_| ([next(900), next(columns)], f64::from(next(9)) / 7.0);
            let entries: Vec<Found<f64>> = (0..40_000).map(entry).collect();
            let (block, shape) = (64, [900, columns as usize]);
            let (plain, width, _) = made(shape, &entries, Limits { block, ..LIMITS });
            assert_eq!(width, 1);
            let limits = Limits {
                sorted: 16,
                piles: 16,
                waiting: 16 * 64,
                block,
            };
            let (bytes, width, store) = made(shape, &entries, limits);
            // Four passes, and several blocks in most tiles.
            assert_eq!(width, 16 * 16 * 16);
            let blocks = store.blocks.len();
            assert_eq!(store.ends.len(), tiles);
            assert!(blocks > 2 * tiles, "{blocks} blocks");
            assert!(bytes == plain);
        }
    }

    #[test]
    fn a_file_that_changes_while_it_is_read_is_refused() {
        let options = ReadOptions::default();
        let read_and = |then: &dyn Fn(&Path)| {
            let folder = tempfile::tempdir().unwrap();
            let input = folder.path().join("v.tns");
            std::fs::write(&input, "1 1 3\n").unwrap();
            let sorted =
                StoreWriter::<f64>::sort(&input, &options, folder.path(), LIMITS, |visit| {
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
