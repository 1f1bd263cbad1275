//! Sparse matrices larger than memory: the same passes over blocks that are read when they are needed.

mod block;
mod tiling;

use std::error::Error;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nalgebra::DMatrix;

pub use block::Block;
pub use tiling::{TileCounts, Tiling};

use crate::kernel::aligned::Pool;
use crate::kernel::panel::Panel;
use crate::kernel::strata::TilePass;
use crate::kernel::{Accumulate, Rule, Sums};
use crate::observed::{Pass, finite_total, require_mass, whole_exposures};
use crate::{CompensatedSum, Expected, Model, Observed, Real, SourceError, TensorError, Wanted};

/// Where the blocks of a matrix are read from.
///
/// Every tile's blocks, in order, hold its rows in order, each row in one block. Blocks are made by [`Tiling::place`] and
/// [`Block::push_row`]; how many rows one holds does not matter to the results.
///
/// ```
/// use std::convert::Infallible;
/// use std::ops::Range;
/// use plca_tensor::{Block, BlockSource, Observed, OutOfCore, TileCounts, Tiling};
///
/// /// Blocks in memory; tile `t` has those of `ends[t]..ends[t + 1]`.
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
/// assert_eq!((v.total(), v.marginal(0)), (3.0, vec![2.0, 0.0, 1.0]));
/// # Ok::<(), plca_tensor::TensorError>(())
/// ```
pub trait BlockSource<T>: Sync {
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
    /// The source's own; the pass then ends, and with it every later one.
    fn read(&self, block: usize, into: &mut Block<T>) -> Result<(), Self::Error>;
}

/// A sparse matrix of which only a few blocks are in memory at a time: [`SparseTensor`](crate::SparseTensor) to the bit, for any blocks and any
/// number of threads.
///
/// Memory of a pass: the factors as the kernels read them, as many sums, and a block for every thread; where an average column has 512 entries and
/// more, also up to seven more arrays of sums of the shorter mode. Nothing is kept between passes.
/// Time: that of [`SparseTensor`](crate::SparseTensor) and of reading everything once.
///
/// Methods of [`Observed`] return no errors. Where the source fails, [`failure`](Observed::failure) says why from then on, and every
/// sum is NaN. The models of `plca-em` ask it after every pass: their step then returns the error and leaves the state as it was.
///
/// See [`BlockSource`] for an example.
///
/// ```
/// use std::io;
/// use std::ops::Range;
/// use plca_tensor::{Block, BlockSource, OutOfCore, TensorError, TileCounts, Tiling};
/// # #[derive(Debug)]
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
/// let TensorError::Source(source) = error else { panic!("{error}") };
/// let source = source.get_ref().downcast_ref::<io::Error>();
/// assert_eq!(source.map(io::Error::kind), Some(io::ErrorKind::NotFound));
/// # Ok::<(), TensorError>(())
/// ```
#[derive(Debug)]
pub struct OutOfCore<T, S> {
    source: S,
    shape: [usize; 2],
    total: f64,
    stored: u64,
    marginals: [Vec<f64>; 2],
    /// The first failure.
    failure: Mutex<Option<TensorError>>,
    /// Blocks that no thread is at work on.
    spare: Mutex<Vec<Block<T>>>,
    pool: Pool<T>,
}

/// What a thread that panicked left behind is still what it was.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T: Real, S: BlockSource<T>> OutOfCore<T, S> {
    /// Reads everything once, for the sums that models ask for.
    ///
    /// # Errors
    ///
    /// [`TensorError`]: the source's failure or a block that does not belong to this matrix ([`Source`](TensorError::Source)), no positive value,
    /// a sum that overflows.
    ///
    /// # Examples
    ///
    /// See [`BlockSource`].
    pub fn new(source: S) -> Result<Self, TensorError> {
        let shape = source.tiling().shape();
        let mut data = Self {
            source,
            shape,
            total: 0.0,
            stored: 0,
            marginals: shape.map(|n| vec![0.0; n]),
            failure: Mutex::default(),
            spare: Mutex::default(),
            pool: Pool::none(),
        };
        let (mut total, mut stored) = (CompensatedSum::default(), 0);
        let [mut rows, mut columns] = std::mem::take(&mut data.marginals);
        let scale = data.source.tiling().scale().to_f64();
        data.visit(|[i, j], x| {
            total += x.to_f64();
            stored += 1;
            rows[i] += x.to_f64() / scale;
            columns[j] += x.to_f64() / scale;
        });
        if let Some(failure) = data.failure() {
            return Err(failure);
        }
        require_mass(total.value() > 0.0)?;
        data.total = finite_total::<T>(total.value() / scale)?;
        data.stored = stored;
        data.marginals = [rows, columns];
        Ok(data)
    }

    /// Number of stored entries, duplicates merged.
    ///
    /// ```
    /// # use std::{convert::Infallible, ops::Range};
    /// # use plca_tensor::{Block, BlockSource, OutOfCore, TensorError, TileCounts, Tiling};
    /// # struct Kept { tiling: Tiling<f64>, block: Block<f64> }
    /// # impl BlockSource<f64> for Kept {
    /// #     type Error = Infallible;
    /// #     fn tiling(&self) -> &Tiling<f64> { &self.tiling }
    /// #     fn blocks(&self, _: usize) -> Range<usize> { 0..1 }
    /// #     fn read(&self, _: usize, into: &mut Block<f64>) -> Result<(), Infallible> {
    /// #         into.clone_from(&self.block);
    /// #         Ok(())
    /// #     }
    /// # }
    /// let mut block = Block::default();
    /// block.push_row(1, &mut [(0, 2.0), (1, 3.0), (0, 0.5)]);
    /// let v = OutOfCore::new(Kept { tiling: TileCounts::new(&[3, 2])?.tiling(), block })?;
    /// assert_eq!(v.stored(), 2);
    /// # Ok::<(), TensorError>(())
    /// ```
    pub fn stored(&self) -> u64 {
        self.stored
    }

    fn fail(&self, why: impl Into<Box<dyn Error + Send + Sync>>) {
        let failure = || TensorError::Source(SourceError::new(why));
        lock(&self.failure).get_or_insert_with(failure);
    }

    /// Calls `work` with every block of a tile in order, as long as nothing fails.
    fn for_each_block(&self, tile: usize, mut work: impl FnMut(&Block<T>)) {
        let tiling = self.source.tiling();
        let mut buffer = lock(&self.spare).pop().unwrap_or_default();
        for block in self.source.blocks(tile) {
            if lock(&self.failure).is_some() {
                break;
            }
            if let Err(e) = self.source.read(block, &mut buffer) {
                self.fail(e);
                break;
            }
            if let Err(what) = buffer.check(tiling.size(tile)) {
                self.fail(format!("block {block}: {what}"));
                break;
            }
            work(&buffer);
        }
        lock(&self.spare).push(buffer);
    }

    /// Visits every entry, tile by tile, with its stored value.
    fn visit(&self, mut visit: impl FnMut([usize; 2], T)) {
        let tiling = self.source.tiling();
        for tile in 0..tiling.tiles() {
            let place = tiling.grid.place(tile);
            self.for_each_block(tile, |block| {
                let cells = block.cells();
                cells.for_each(|row, column, value| visit(place(row, column), value));
            });
        }
        lock(&self.spare).clear();
    }
}

impl<T: Real, S: BlockSource<T>> Accumulate<T> for OutOfCore<T, S> {
    fn accumulate(
        &self,
        panels: &[Panel<'_, T>],
        rule: Rule,
        wanted: &[bool],
        log: bool,
    ) -> Sums<T> {
        let grid = &self.source.tiling().grid;
        let sums = grid.accumulate(panels, wanted, |mut share| {
            let mut ln_lik = CompensatedSum::default();
            self.for_each_block(share.tile, |block| {
                let pass = TilePass::new(block.cells(), share.next(), (rule, log), ln_lik);
                ln_lik = T::strata_tile(pass);
            });
            if share.first {
                // No block: the sums are still to be zeroed.
                let nothing = Block::default();
                let pass = TilePass::new(nothing.cells(), share.next(), (rule, log), ln_lik);
                ln_lik = T::strata_tile(pass);
            }
            ln_lik.value()
        });
        lock(&self.spare).clear();
        sums
    }
}

impl<T: Real, S: BlockSource<T>> Observed<T> for OutOfCore<T, S> {
    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn total(&self) -> f64 {
        self.total
    }

    fn is_complete(&self) -> bool {
        true
    }

    fn for_each(&self, visit: &mut dyn FnMut(&[usize], f64)) {
        let scale = self.source.tiling().scale().to_f64();
        self.visit(|index, x| visit(&index, x.to_f64() / scale));
    }

    fn expect(&self, model: &Model<'_, T>, wanted: Wanted<'_>) -> Expected<T> {
        let scale = 1.0 / self.source.tiling().scale().to_f64();
        let pass = Pass::new(&self.shape, model, &self.pool);
        let marginal = |mode| self.marginal(mode);
        let mut expected = pass.expect_in_place(self, scale, self.total, wanted, marginal);
        if self.failure().is_some() {
            expected.ln_lik = f64::NAN;
            let counts = expected.counts.iter_mut().flatten();
            counts.for_each(|counts| counts.fill(T::lit(f64::NAN)));
        }
        expected
    }

    fn exposure(&self, model: &Model<'_, T>, modes: &[bool]) -> Vec<Option<DMatrix<T>>> {
        whole_exposures(&self.shape, model, modes)
    }

    fn multiplier(&self, model: &Model<'_, T>, mode: usize) -> DMatrix<T> {
        let scale = 1.0 / self.source.tiling().scale().to_f64();
        let mut sums = Pass::new(&self.shape, model, &self.pool).multiplier(self, scale, mode);
        if self.failure().is_some() {
            sums.fill(T::lit(f64::NAN));
        }
        sums
    }

    fn failure(&self) -> Option<TensorError> {
        lock(&self.failure).clone()
    }

    fn marginal(&self, mode: usize) -> Vec<f64> {
        self.marginals[mode].clone()
    }

    fn self_information(&self) -> f64 {
        let scale = self.source.tiling().scale().to_f64();
        let mut sum = CompensatedSum::default();
        self.visit(|_, x| {
            let value = x.to_f64() / scale;
            // [SPEC 0] Σ V ln V, 0 where the scale leaves nothing of a value
            if value > 0.0 {
                sum += value * value.ln();
            }
        });
        if self.failure().is_some() {
            f64::NAN
        } else {
            sum.value()
        }
    }
}
