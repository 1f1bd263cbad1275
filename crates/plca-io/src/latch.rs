//! A writer that hides failures until it is asked about them.

use std::io::{Error, Result, Seek, SeekFrom, Write};

/// Passes everything on until the first failure, which it keeps; after that it only counts.
///
/// The archive writer finishes its archive when it is dropped, and prints a line of its own if that fails. Under a latch
/// nothing ever fails before [`finish`](Self::finish), without the archive being held in memory.
pub(crate) struct Latch<W> {
    inner: W,
    failure: Option<Error>,
    position: u64,
    end: u64,
}

impl<W: Write + Seek> Latch<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self {
            inner,
            failure: None,
            position: 0,
            end: 0,
        }
    }

    /// The first failure, if there was one.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.attempt(W::flush);
        self.failure.map_or(Ok(()), Err)
    }

    /// Does this unless something failed before.
    fn attempt(&mut self, act: impl FnOnce(&mut W) -> Result<()>) {
        if self.failure.is_none() {
            self.failure = act(&mut self.inner).err();
        }
    }
}

impl<W: Write + Seek> Write for Latch<W> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.attempt(|inner| inner.write_all(bytes));
        self.position += bytes.len() as u64;
        self.end = self.end.max(self.position);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<()> {
        self.attempt(W::flush);
        Ok(())
    }
}

impl<W: Write + Seek> Seek for Latch<W> {
    fn seek(&mut self, to: SeekFrom) -> Result<u64> {
        let target = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
            SeekFrom::End(by) => self.end.checked_add_signed(by),
        };
        let target = target.ok_or_else(|| Error::other("a position before the start"))?;
        self.attempt(|inner| inner.seek(SeekFrom::Start(target)).map(drop));
        self.position = target;
        Ok(target)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// Takes this number of bytes and then fails, also when seeking; counts what was tried after that.
    struct Full {
        inner: Cursor<Vec<u8>>,
        room: usize,
        tries: usize,
    }

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> Result<usize> {
            if bytes.len() > self.room {
                self.tries += 1;
                return Err(Error::other("no space left"));
            }
            self.room -= bytes.len();
            self.inner.write(bytes)
        }

        fn flush(&mut self) -> Result<()> {
            Ok(())
        }
    }

    impl Seek for Full {
        fn seek(&mut self, to: SeekFrom) -> Result<u64> {
            self.inner.seek(to)
        }
    }

    fn full(room: usize) -> Full {
        Full {
            inner: Cursor::new(Vec::new()),
            room,
            tries: 0,
        }
    }

    #[test]
    fn the_first_failure_is_kept_and_nothing_is_tried_again() {
        let mut disk = full(4);
        let mut latch = Latch::new(&mut disk);
        latch.write_all(b"abc").unwrap();
        latch.write_all(b"def").unwrap();
        latch.write_all(b"g").unwrap();
        assert_eq!(latch.seek(SeekFrom::End(-3)).unwrap(), 4);
        assert_eq!(latch.seek(SeekFrom::Current(1)).unwrap(), 5);
        latch.flush().unwrap();
        assert_eq!(latch.finish().unwrap_err().to_string(), "no space left");
        assert_eq!((disk.tries, disk.inner.into_inner()), (1, b"abc".to_vec()));
    }

    /// However many bytes fit: an archive is the one without a latch, or the failure is reported and was met once.
    #[test]
    fn archives_fail_once_wherever_the_disk_is_full() {
        let mut model = crate::ModelFile {
            metadata: serde_json::json!({ "k": 1 }),
            ..Default::default()
        };
        model
            .arrays
            .insert("w".into(), crate::Array::new(vec![3], vec![1.0, 2.0, 3.0]));
        let metadata = model.metadata.to_string();
        let write =
            |disk: &mut Full| crate::model::write_npz(disk, &model.arrays, &metadata, false);
        let mut disk = full(usize::MAX);
        write(&mut disk).unwrap();
        let whole = disk.inner.into_inner();
        let mut failed = 0;
        for room in 0..whole.len() + 200 {
            let mut disk = full(room);
            match write(&mut disk) {
                Ok(()) => assert_eq!(disk.inner.into_inner(), whole),
                Err(e) => {
                    assert_eq!((e.to_string().as_str(), disk.tries), ("no space left", 1));
                    failed += 1;
                }
            }
        }
        assert!(failed >= whole.len(), "{failed} of {}", whole.len());
    }
}
