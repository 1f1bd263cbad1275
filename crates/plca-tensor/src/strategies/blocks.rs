//! A source of blocks in memory, which may be told to fail.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{Block, BlockSource, Coordinates, DataError, Real, TileCounts, Tiling};

/// The entries of a matrix in blocks with at least this number of entries each (the last of a tile may have fewer).
///
/// ```
/// use plca_tensor::{Coordinates, Data, OutOfCore, SparseTensor, strategies::KeptBlocks};
/// let v = Coordinates { shape: vec![4, 3], indices: vec![3, 2, 0, 1, 3, 2], values: vec![1.0, 2.0, 0.5] };
/// let cut = OutOfCore::new(KeptBlocks::cut(&v, 1)?)?;
/// assert_eq!((cut.summary().nnz, cut.marginal(1)?), (2, SparseTensor::new(v)?.marginal(1)?));
/// # Ok::<(), plca_tensor::DataError>(())
/// ```
#[derive(Debug)]
pub struct KeptBlocks<T> {
    tiling: Tiling<T>,
    /// Ends of the tiles' blocks.
    ends: Vec<usize>,
    blocks: Vec<Block<T>>,
    reads: AtomicUsize,
    last: usize,
}

impl<T: Real> KeptBlocks<T> {
    /// Cuts a matrix.
    ///
    /// # Errors
    ///
    /// As [`TileCounts`].
    ///
    /// # Examples
    ///
    /// See [`KeptBlocks`].
    pub fn cut(entries: &Coordinates<T>, limit: usize) -> Result<Self, DataError> {
        let mut counts = TileCounts::new(&entries.shape)?;
        let cells = || {
            entries
                .indices
                .as_chunks::<2>()
                .0
                .iter()
                .zip(&entries.values)
        };
        cells().try_for_each(|(&index, &value)| counts.add(index, value))?;
        let tiling = counts.tiling();
        let mut tiles = vec![BTreeMap::<u32, Vec<(u32, T)>>::new(); tiling.tiles()];
        for (&index, &value) in cells() {
            let (tile, row, column) = tiling.place(index);
            let row = tiles[tile].entry(row).or_default();
            row.push((column, value * tiling.scale()));
        }
        let (mut ends, mut blocks) = (vec![0], Vec::new());
        for tile in tiles {
            let mut block = Block::default();
            for (row, mut cells) in tile {
                block.push_row(row, &mut cells);
                if block.values.len() >= limit {
                    blocks.push(std::mem::take(&mut block));
                }
            }
            if !block.values.is_empty() {
                blocks.push(block);
            }
            ends.push(blocks.len());
        }
        Ok(Self {
            tiling,
            ends,
            blocks,
            reads: AtomicUsize::new(0),
            last: usize::MAX,
        })
    }

    /// Fails every read after this number of reads.
    ///
    /// ```
    /// use plca_tensor::{Coordinates, Data, OutOfCore, strategies::KeptBlocks};
    /// let v = Coordinates { shape: vec![2, 2], indices: vec![0, 1], values: vec![1.0] };
    /// let data = OutOfCore::new(KeptBlocks::cut(&v, 1)?.fail_after(1))?;       // one read to begin with
    /// assert!(data.self_information().is_err());
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    pub fn fail_after(mut self, reads: usize) -> Self {
        self.last = self.reads.load(Ordering::Relaxed).saturating_add(reads);
        self
    }

    /// Number of blocks.
    ///
    /// ```
    /// use plca_tensor::{Coordinates, strategies::KeptBlocks};
    /// let v = Coordinates { shape: vec![2, 2], indices: vec![0, 1, 1, 1], values: vec![1.0, 3.0] };
    /// assert_eq!((KeptBlocks::cut(&v, 1)?.count(), KeptBlocks::cut(&v, 2)?.count()), (2, 1));
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    pub fn count(&self) -> usize {
        self.blocks.len()
    }
}

impl<T: Real> BlockSource<T> for KeptBlocks<T> {
    type Error = io::Error;

    fn tiling(&self) -> &Tiling<T> {
        &self.tiling
    }

    fn blocks(&self, tile: usize) -> Range<usize> {
        self.ends[tile]..self.ends[tile + 1]
    }

    fn read(&self, block: usize, into: &mut Block<T>) -> io::Result<()> {
        if self.reads.fetch_add(1, Ordering::Relaxed) >= self.last {
            return Err(io::Error::other(format!("block {block} is gone")));
        }
        into.clone_from(&self.blocks[block]);
        Ok(())
    }
}
