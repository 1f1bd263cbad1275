//! Sparse matrices larger than memory: the same passes over blocks that are read when they are needed.

mod block;
mod tiling;

use std::error::Error;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

pub use block::Block;
pub use tiling::{TileCounts, Tiling};

use super::pass::{Stored, check_counts, check_sums};
use super::{Data, Expected, Mask, Request, Summary, Sums as CellSums};
use crate::kernel::aligned::Pool;
use crate::kernel::blocks::lock;
use crate::kernel::panel::Panel;
use crate::kernel::strata::TilePass;
use crate::kernel::{Accumulate, Rule, Sums};
use crate::{CompensatedSum, Cp, DataError, Real, SourceError};

/// A source from which the blocks of a matrix are read.
///
/// Every tile's blocks, in order, hold its rows in order, each row in one block. Blocks are made by [`Tiling::place`] and
/// [`Block::push_row`]; how many rows one holds does not matter to the results.
///
/// ```
/// use std::convert::Infallible;
/// use std::ops::Range;
/// use plca_tensor::{Block, BlockSource, Data, OutOfCore, TileCounts, Tiling};
///
/// /// Blocks in memory; tile `t` has those of `ends[t]..ends[t + 1]`.
/// #[derive(Debug)]
/// struct Kept { tiling: Tiling<f64>, ends: Vec<usize>, blocks: Vec<Block<f64>> }
///
/// impl BlockSource<f64> for Kept {
///     type Error = Infallible;
///     fn tiling(&self) -> &Tiling<f64> { &self.tiling }
///     fn blocks(&self, tile: usize) -> Range<usize> { self.ends[tile]..self.ends[tile + 1] }
///     fn read(&self, block: usize, into: &mut Block<f64>) -> Result<(), Infallible> {
///         into.clone_from(&self.blocks[block]);
///         Ok(())
///     }
/// }
///
/// let cells = [([0, 1], 2.0), ([2, 0], 1.0)];
/// let mut counts = TileCounts::new(&[3, 2])?;
/// for (index, value) in cells { counts.add(index, value)?; }
/// let tiling = counts.tiling();
/// assert_eq!(tiling.tiles(), 1);                                  // few entries are one tile
/// let mut block = Block::default();
/// for (index, value) in cells {
///     let (_, row, column) = tiling.place(index);
///     block.push_row(row, &mut [(column, value * tiling.scale())]);
/// }
/// let v = OutOfCore::new(Kept { tiling, ends: vec![0, 1], blocks: vec![block] })?;
/// assert_eq!((v.total(), v.marginal(0)?), (3.0, vec![2.0, 0.0, 1.0]));
/// # Ok::<(), plca_tensor::DataError>(())
/// ```
pub trait BlockSource<T>: Debug + Send + Sync {
    /// Why a block could not be read: a message of one line that names the place, and what caused it.
    type Error: Error + Send + Sync + 'static;

    /// How the matrix is cut.
    fn tiling(&self) -> &Tiling<T>;

    /// The blocks of a tile.
    fn blocks(&self, tile: usize) -> Range<usize>;

    /// Reads a block into a buffer with any content. Called from several threads at once.
    ///
    /// # Errors
    ///
    /// The source's own; the pass then ends with it.
    fn read(&self, block: usize, into: &mut Block<T>) -> Result<(), Self::Error>;
}

/// A sparse matrix of which only a few blocks are in memory at a time: [`SparseTensor`](crate::SparseTensor) bit for bit, for any blocks and any
/// number of threads.
///
/// Memory of a pass: the factors as the kernels read them, as many sums, and a block for every thread; where an average column has 512 entries and
/// more, also up to seven more arrays of sums of the shorter mode. Nothing is kept between passes.
/// Time: that of [`SparseTensor`](crate::SparseTensor) and of reading everything once.
///
/// Where the source fails, the call that read ends with [`DataError::Source`]; a later call may succeed.
///
/// See [`BlockSource`] for an example.
///
/// ```
/// use std::io;
/// use std::ops::Range;
/// use plca_tensor::{Block, BlockSource, OutOfCore, DataError, TileCounts, Tiling};
/// #[derive(Debug)]
/// struct Lost(Tiling<f64>);
/// impl BlockSource<f64> for Lost {
///     type Error = io::Error;
///     fn tiling(&self) -> &Tiling<f64> { &self.0 }
///     fn blocks(&self, _: usize) -> Range<usize> { 0..1 }
///     fn read(&self, block: usize, _: &mut Block<f64>) -> io::Result<()> {
///         Err(io::Error::new(io::ErrorKind::NotFound, format!("block {block} is gone")))
///     }
/// }
/// let error = OutOfCore::new(Lost(TileCounts::new(&[3, 2])?.tiling())).unwrap_err();
/// assert_eq!(error.to_string(), "block 0 is gone");
/// let DataError::Source(source) = error else { panic!("{error}") };
/// let source = source.get_ref().downcast_ref::<io::Error>();
/// assert_eq!(source.map(io::Error::kind), Some(io::ErrorKind::NotFound));
/// # Ok::<(), DataError>(())
/// ```
#[derive(Debug)]
pub struct OutOfCore<T, S> {
    source: S,
    shape: [usize; 2],
    summary: Summary,
    marginals: [Vec<f64>; 2],
    /// Blocks that no thread is at work on.
    spare: Mutex<Vec<Block<T>>>,
    pool: Pool<T>,
}

fn failed(why: impl Into<Box<dyn Error + Send + Sync>>) -> DataError {
    DataError::Source(SourceError::new(why))
}

impl<T: Real, S: BlockSource<T>> OutOfCore<T, S> {
    /// Reads all blocks once, to compute the sums that models ask for.
    ///
    /// # Errors
    ///
    /// [`DataError::Source`] if something cannot be read or is not a block of this matrix; [`DataError::NoMass`] without a positive entry; a sum
    /// that overflows.
    pub fn new(source: S) -> Result<Self, DataError> {
        let shape = source.tiling().shape();
        let scale = source.tiling().scale().to_f64();
        let mut data = Self {
            source,
            shape,
            summary: CellSums::default().summary(1.0, None, Mask::Complete),
            marginals: shape.map(|n| vec![0.0; n]),
            spare: Mutex::default(),
            pool: Pool::none(),
        };
        let mut sums = CellSums::default();
        let [mut rows, mut columns] = std::mem::take(&mut data.marginals);
        data.visit_held(|[i, j], x| {
            sums.add(x.to_f64(), x.to_f64() / scale);
            rows[i] += x.to_f64() / scale;
            columns[j] += x.to_f64() / scale;
        })?;
        data.summary = check_sums(sums.summary(scale, None, Mask::Complete))?;
        data.marginals = [rows, columns];
        check_counts(&data)?;
        Ok(data)
    }

    /// Reads the blocks of a tile, one after the other.
    fn for_each_block(
        &self,
        tile: usize,
        mut work: impl FnMut(&Block<T>),
    ) -> Result<(), DataError> {
        let tiling = self.source.tiling();
        let mut buffer = lock(&self.spare).pop().unwrap_or_default();
        for block in self.source.blocks(tile) {
            self.source.read(block, &mut buffer).map_err(failed)?;
            let checked = buffer.check(tiling.size(tile));
            checked.map_err(|what| failed(format!("block {block}: {what}")))?;
            work(&buffer);
        }
        lock(&self.spare).push(buffer);
        Ok(())
    }

    /// Every entry in the scale in which it is held.
    fn visit_held(&self, mut visit: impl FnMut([usize; 2], T)) -> Result<(), DataError> {
        let tiling = self.source.tiling();
        for tile in 0..tiling.tiles() {
            let place = tiling.grid.place(tile);
            self.for_each_block(tile, |block| {
                block
                    .tile()
                    .for_each(|row, column, value| visit(place(row, column), value));
            })?;
        }
        lock(&self.spare).clear();
        Ok(())
    }
}

/// A pass that reads, with the failure of the first tile that has one, whatever the order in which threads come to them.
struct Reading<'a, T, S> {
    data: &'a OutOfCore<T, S>,
    failure: Mutex<Option<(usize, DataError)>>,
}

impl<T, S> Reading<'_, T, S> {
    fn failed_before(&self, tile: usize) -> bool {
        matches!(&*lock(&self.failure), Some((first, _)) if *first < tile)
    }
}

impl<T: Real, S: BlockSource<T>> Accumulate<T> for Reading<'_, T, S> {
    fn accumulate(&self, panels: &[Panel<'_, T>], rule: Rule, wanted: &[bool]) -> Sums<T> {
        let grid = &self.data.source.tiling().grid;
        let sums = grid.accumulate(panels, wanted, |mut share| {
            let mut ln_lik = CompensatedSum::default();
            if !self.failed_before(share.tile) {
                let read = self.data.for_each_block(share.tile, |block| {
                    let pass = TilePass::new(block.tile(), &mut share, rule, ln_lik);
                    ln_lik = T::strata_tile(pass);
                });
                if let Err(failure) = read {
                    let mut first = lock(&self.failure);
                    if first.as_ref().is_none_or(|(tile, _)| share.tile < *tile) {
                        *first = Some((share.tile, failure));
                    }
                }
            }
            if share.first {
                // No block: the sums are still to be zeroed.
                let nothing = Block::default();
                let pass = TilePass::new(nothing.tile(), &mut share, rule, ln_lik);
                ln_lik = T::strata_tile(pass);
            }
            ln_lik.value()
        });
        lock(&self.data.spare).clear();
        sums
    }
}

impl<T: Real, S: BlockSource<T>> Data<T> for OutOfCore<T, S> {
    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn visit(&self, each: &mut dyn FnMut(&[usize], f64)) -> Result<(), DataError> {
        let scale = self.source.tiling().scale().to_f64();
        self.visit_held(|index, x| each(&index, x.to_f64() / scale))
    }

    fn e_step(
        &self,
        model: &Cp<'_, T>,
        request: &Request<'_, T>,
    ) -> Result<Expected<T>, DataError> {
        let reading = Reading {
            data: self,
            failure: Mutex::default(),
        };
        let stored = Stored {
            cells: &reading,
            scale: self.source.tiling().scale(),
            pool: &self.pool,
            sparing: true,
        };
        let expected = stored.e_step(self, model, request, |_, modes| model.exposures(modes))?;
        let failure = reading.failure.into_inner();
        match failure.unwrap_or_else(PoisonError::into_inner) {
            None => Ok(expected),
            Some((_, failure)) => Err(failure),
        }
    }

    fn marginal(&self, mode: usize) -> Result<Vec<f64>, DataError> {
        Ok(self.marginals[mode].clone())
    }
}
