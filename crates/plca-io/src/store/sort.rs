//! Sorting more entries than fit into memory, by files that have no name.

use std::convert::identity;
use std::fs::File;
use std::io::{Error, Read, Result, Seek, SeekFrom, Write};
use std::marker::PhantomData;
use std::ops::Range;
use std::path::Path;

use super::format::u32_at;
use crate::data::Element;

/// An entry: its index and its value.
pub(super) type Found<T> = ([u32; 2], T);

/// How much is held at a time while a store is made. None of it changes the result but `block`.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// Entries that are sorted in memory, but that a row is sorted at once.
    pub(crate) sorted: u64,
    /// Piles that entries are laid on in a pass, at least two.
    pub(crate) piles: usize,
    /// Bytes that wait to be written, on all piles together.
    pub(crate) waiting: usize,
    /// Entries of a block, but that a row is never cut.
    pub(crate) block: usize,
}

/// Bytes of an entry.
const fn size<T>() -> usize {
    8 + size_of::<T>()
}

fn encode<T: Element>(pair: [u32; 2], value: T, out: &mut Vec<u8>) {
    pair.iter().for_each(|i| out.extend(i.to_le_bytes()));
    value.write_le(out);
}

fn decode<T: Element>(record: &[u8]) -> ([u32; 2], T) {
    let index = [u32_at(record, 0), u32_at(record, 4)];
    (index, T::read_le(&record[8..]))
}

/// Entries apart by bucket, in each in the order in which they came.
///
/// Many buckets are some piles of consecutive buckets at first, each of which is taken apart when its turn comes: a piece on disk
/// is as long for any number of buckets, so that the list of pieces is proportional to the entries.
pub(crate) struct Buckets<T> {
    file: File,
    end: u64,
    buckets: Range<usize>,
    /// Buckets of a pile.
    width: usize,
    /// Bytes of a pile that are written at a time.
    most: usize,
    waiting: Vec<Vec<u8>>,
    /// Where the bytes of every pile are that were written, and how many they are.
    written: Vec<Vec<(u64, usize)>>,
    scalar: PhantomData<T>,
}

impl<T: Element> Buckets<T> {
    pub(crate) fn new(folder: &Path, buckets: Range<usize>, limits: &Limits) -> Result<Self> {
        let mut width = 1;
        while buckets.len().div_ceil(width) > limits.piles {
            width *= limits.piles;
        }
        let piles = buckets.len().div_ceil(width);
        Ok(Self {
            file: tempfile::tempfile_in(folder)?,
            end: 0,
            buckets,
            width,
            most: (limits.waiting / piles.max(1)).clamp(size::<T>(), 1 << 16),
            waiting: vec![Vec::new(); piles],
            written: vec![Vec::new(); piles],
            scalar: PhantomData,
        })
    }

    /// Buckets of a pile at first.
    #[cfg(test)]
    pub(super) fn width(&self) -> usize {
        self.width
    }

    pub(crate) fn push(&mut self, bucket: usize, index: [u32; 2], value: T) -> Result<()> {
        let pile = (bucket - self.buckets.start) / self.width;
        let waiting = &mut self.waiting[pile];
        encode(index, value, waiting);
        if waiting.len() + size::<T>() > self.most {
            self.put_away(pile)?;
        }
        Ok(())
    }

    /// Writes what waits on a pile.
    fn put_away(&mut self, pile: usize) -> Result<()> {
        let waiting = &mut self.waiting[pile];
        self.file.write_all(waiting)?;
        self.written[pile].push((self.end, waiting.len()));
        self.end += waiting.len() as u64;
        waiting.clear();
        Ok(())
    }

    /// Calls `visit` with the entries of a pile; `fault` says what it means that what was written cannot be read back.
    pub(crate) fn read<E>(
        &mut self,
        pile: usize,
        fault: impl Fn(Error) -> E,
        mut visit: impl FnMut([u32; 2], T) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let mut each = |bytes: &[u8]| {
            let mut entries = bytes.chunks_exact(size::<T>()).map(decode);
            entries.try_for_each(|(index, value)| visit(index, value))
        };
        let mut bytes = Vec::new();
        for &(offset, length) in &self.written[pile] {
            bytes.resize(length, 0);
            let found = self.file.seek(SeekFrom::Start(offset));
            let read = found.and_then(|_| self.file.read_exact(&mut bytes));
            read.map_err(&fault)?;
            each(&bytes)?;
        }
        each(&self.waiting[pile])
    }

    /// Calls `visit` with the entries of every bucket, bucket after bucket; `of` finds the bucket of an entry.
    pub(super) fn for_each(
        mut self,
        folder: &Path,
        limits: &Limits,
        of: &dyn Fn([u32; 2]) -> usize,
        visit: &mut dyn FnMut(&mut Vec<Found<T>>) -> Result<()>,
    ) -> Result<()> {
        let piles = self.waiting.len();
        if self.width > 1 {
            // Their memory is that of the narrower piles.
            (0..piles).try_for_each(|pile| self.put_away(pile))?;
            self.waiting.fill_with(Vec::new);
        }
        let mut entries = Vec::new();
        for pile in 0..piles {
            if self.width == 1 {
                entries.clear();
                self.read(pile, identity, |index, value| {
                    entries.push((index, value));
                    Ok(())
                })?;
                visit(&mut entries)?;
            } else {
                let first = self.buckets.start + pile * self.width;
                let end = self.buckets.end.min(first + self.width);
                let mut narrower = Self::new(folder, first..end, limits)?;
                self.read(pile, identity, |index, value| {
                    narrower.push(of(index), index, value)
                })?;
                narrower.for_each(folder, limits, of, visit)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces on disk and bytes that wait, after this number of entries in this number of buckets.
    fn held(buckets: usize, entries: usize) -> (usize, usize) {
        let limits = Limits {
            sorted: 16,
            piles: 16,
            waiting: 16 * 64,
            block: 16,
        };
        let folder = tempfile::tempdir().unwrap();
        let mut all = Buckets::<f64>::new(folder.path(), 0..buckets, &limits).unwrap();
        for at in 0..entries {
            all.push(at * 7 % buckets, [at as u32, 0], 1.0).unwrap();
        }
        let pieces = all.written.iter().map(Vec::len).sum();
        (pieces, all.waiting.iter().map(Vec::len).sum())
    }

    #[test]
    fn what_is_held_goes_with_the_entries_for_any_number_of_buckets() {
        for buckets in [1, 5, 16, 17, 255, 4097] {
            for entries in [100, 1000, 10_000] {
                let (pieces, waiting) = held(buckets, entries);
                // Four entries of 16 bytes are a piece at least.
                assert!(pieces <= entries / 4, "{buckets} {entries}: {pieces}");
                assert!(waiting <= 16 * 64, "{buckets} {entries}: {waiting}");
            }
        }
    }
}
