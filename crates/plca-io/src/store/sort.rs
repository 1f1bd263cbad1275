//! Sorting more entries than fit into memory, by files that have no name.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Result, Seek, SeekFrom, Write};
use std::marker::PhantomData;
use std::path::Path;

use crate::data::Element;

/// Bytes that wait to be written, in all buckets together.
const WAITING: usize = 1 << 24;

/// Entries in the order in which they came.
pub(super) struct Spool<T> {
    file: BufWriter<File>,
    entries: u64,
    record: Vec<u8>,
    scalar: PhantomData<T>,
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
    let word = |at: usize| u32::from_le_bytes(record[at..].first_chunk().map_or([0; 4], |b| *b));
    ([word(0), word(4)], T::read_le(&record[8..]))
}

impl<T: Element> Spool<T> {
    pub(super) fn new(folder: &Path) -> Result<Self> {
        Ok(Self {
            file: BufWriter::with_capacity(1 << 18, tempfile::tempfile_in(folder)?),
            entries: 0,
            record: Vec::with_capacity(size::<T>()),
            scalar: PhantomData,
        })
    }

    pub(super) fn push(&mut self, index: [u32; 2], value: T) -> Result<()> {
        self.record.clear();
        encode(index, value, &mut self.record);
        self.entries += 1;
        self.file.write_all(&self.record)
    }

    /// Calls `visit` with every entry.
    pub(super) fn for_each<E: From<std::io::Error>>(
        &mut self,
        mut visit: impl FnMut([u32; 2], T) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        self.file.flush()?;
        let mut file = self.file.get_ref();
        file.rewind()?;
        let mut reader = BufReader::with_capacity(1 << 18, file);
        let mut record = vec![0; size::<T>()];
        for _ in 0..self.entries {
            reader.read_exact(&mut record)?;
            let (index, value) = decode(&record);
            visit(index, value)?;
        }
        Ok(())
    }
}

/// Entries apart by bucket, in each in the order in which they came.
pub(super) struct Buckets<T> {
    file: File,
    end: u64,
    /// Bytes of a bucket that are written at a time.
    most: usize,
    waiting: Vec<Vec<u8>>,
    /// Where the bytes of every bucket are that were written, and how many they are.
    written: Vec<Vec<(u64, usize)>>,
    scalar: PhantomData<T>,
}

impl<T: Element> Buckets<T> {
    pub(super) fn new(folder: &Path, count: usize) -> Result<Self> {
        Ok(Self {
            file: tempfile::tempfile_in(folder)?,
            end: 0,
            most: (WAITING / count.max(1)).clamp(size::<T>(), 1 << 16),
            waiting: vec![Vec::new(); count],
            written: vec![Vec::new(); count],
            scalar: PhantomData,
        })
    }

    pub(super) fn push(&mut self, bucket: usize, pair: [u32; 2], value: T) -> Result<()> {
        let waiting = &mut self.waiting[bucket];
        encode(pair, value, waiting);
        if waiting.len() + size::<T>() > self.most {
            self.file.write_all(waiting)?;
            self.written[bucket].push((self.end, waiting.len()));
            self.end += waiting.len() as u64;
            waiting.clear();
        }
        Ok(())
    }

    /// Takes the entries of a bucket.
    pub(super) fn take(&mut self, bucket: usize, into: &mut Vec<([u32; 2], T)>) -> Result<()> {
        into.clear();
        let mut bytes = Vec::new();
        let mut add = |bytes: &[u8]| into.extend(bytes.chunks_exact(size::<T>()).map(decode));
        for (offset, length) in std::mem::take(&mut self.written[bucket]) {
            bytes.resize(length, 0);
            self.file.seek(SeekFrom::Start(offset))?;
            self.file.read_exact(&mut bytes)?;
            add(&bytes);
        }
        add(&std::mem::take(&mut self.waiting[bucket]));
        Ok(())
    }
}
