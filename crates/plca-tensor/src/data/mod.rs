//! Data as every model sees them: which cells were observed, and what a model adds up over them.

mod compressed;
mod cut;
mod dense;
mod out_of_core;
mod part;
mod pass;
mod reference;
mod request;
mod sparse;

use std::fmt::Debug;

use crate::kernel::coordinate::Lender;
use crate::kernel::panel::{pow2, unit_exponent};
use crate::{CompensatedSum, Cp, DataError, Real};

pub use compressed::Compressed;
pub use cut::{cut, entries_along, even_ends};
pub use dense::{DenseTensor, DenseView, MAX_ORDER, Order};
pub(crate) use dense::{check_columns, check_shape, matrix_shape, position, unravel};
pub use out_of_core::{Block, BlockSource, OutOfCore, TileCounts, Tiling};
pub use part::{Part, unobserved};
pub use pass::check_counts;
pub(crate) use pass::{data_scale, wanted};
pub use reference::e_step_by_visits;
pub use request::{CellLikelihood, Expected, Modes, Request, Rule};
pub use sparse::{Coordinates, SparseTensor};
pub(crate) use sparse::{check_index, rescale};

/// The cells that [`Data::visit_mask`] lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mask {
    /// None: every cell was observed.
    Complete,
    /// The hidden cells.
    Hidden,
    /// The observed cells.
    Observed,
}

/// The facts that are known of data as a whole.
///
/// ```
/// use plca_tensor::{Data, DenseTensor, Mask, Order};
/// let v = DenseTensor::masked(vec![2, 2], vec![3.0, f64::NAN, 0.0, 1.5], Order::RowMajor)?;
/// let summary = v.summary();
/// assert_eq!((summary.total, summary.nnz, summary.integers), (4.5, 2, false));
/// assert_eq!((summary.squares, summary.mask), (11.25, Mask::Hidden));
/// let signed = DenseTensor::new(vec![2], vec![3.0, -1.0], Order::RowMajor)?;
/// let summary = signed.summary();
/// assert_eq!((summary.total, summary.absolute, &summary.negative), (2.0, 4.0, &Some((vec![1], -1.0))));
/// # Ok::<(), plca_tensor::DataError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// The sum of the observed cells, `v`.
    pub total: f64,
    /// The sum of their absolute values.
    pub absolute: f64,
    /// The sum of their squares; infinite, or 0, where that leaves the range of `f64`.
    pub squares: f64,
    /// Index and value of the first negative cell: in row-major order of dense data, in the order given of sparse data.
    pub negative: Option<(Vec<usize>, f64)>,
    /// The number of observed cells that are not 0.
    pub nnz: u64,
    /// Whether all observed cells are whole numbers.
    pub integers: bool,
    /// Which cells [`Data::visit_mask`] lists.
    pub mask: Mask,
}

impl Summary {
    /// The summary of cells that `visit` goes through: for a storage of your own.
    ///
    /// # Errors
    ///
    /// Those of `visit`.
    pub fn of(
        mask: Mask,
        visit: impl FnOnce(&mut dyn FnMut(&[usize], f64)) -> Result<(), DataError>,
    ) -> Result<Self, DataError> {
        let (mut sums, mut negative) = (Sums::default(), None);
        visit(&mut |index, value| {
            sums.add(value, value);
            if value < 0.0 && negative.is_none() {
                negative = Some((index.to_vec(), value));
            }
        })?;
        Ok(sums.summary(1.0, negative, mask))
    }
}

/// Whether a finite number has no fraction; those from 2^52 on have none.
#[inline(always)]
fn is_whole(x: f64) -> bool {
    x.abs() >= 4_503_599_627_370_496.0 || x as i64 as f64 == x
}

/// What a storage adds up over its cells, as it holds them.
#[derive(Default)]
struct Sums {
    total: CompensatedSum,
    /// From the first negative cell on; before it the total is the same.
    absolute: Option<CompensatedSum>,
    squares: CompensatedSum,
    nnz: u64,
    fractions: bool,
}

impl Sums {
    /// One more cell, as it is held and as it was given.
    #[inline(always)]
    fn add(&mut self, held: f64, given: f64) {
        if held < 0.0 {
            self.absolute.get_or_insert(self.total);
        }
        if let Some(absolute) = &mut self.absolute {
            *absolute += held.abs();
        }
        self.total += held;
        self.squares += held * held;
        self.nnz += u64::from(held != 0.0);
        self.fractions = self.fractions || !is_whole(given);
    }

    /// Of cells that are held times `scale`.
    fn summary(&self, scale: f64, negative: Option<(Vec<usize>, f64)>, mask: Mask) -> Summary {
        Summary {
            total: self.total.value() / scale,
            absolute: self.absolute.unwrap_or(self.total).value() / scale,
            squares: self.squares.value() / scale / scale,
            negative,
            nnz: self.nnz,
            integers: !self.fractions,
            mask,
        }
    }
}

/// Rows of one mode of sparse data as they lie in memory; what [`arrange`](crate::arrange) makes of them needs no copy.
///
/// ```
/// use plca_tensor::{Coordinates, Data, SparseTensor};
/// let v = SparseTensor::new(Coordinates { shape: vec![3, 2], indices: vec![2, 1], values: vec![5.0] })?;
/// assert!(v.listed(0).is_some() && v.listed(1).is_none());            // the longer mode
/// # Ok::<(), plca_tensor::DataError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ListedView<'a, T> {
    pub(crate) rows: &'a dyn Lender<T>,
    /// Held values are those given times this power of two.
    pub(crate) scale: T,
}

/// Data that models are fitted to: dense, sparse, masked, larger than memory, or a storage of your own.
///
/// A storage of your own implements four methods; a slow E-step on one thread is provided, and a storage with a kernel overrides it. All values
/// are as given: an internal scale, a power of two, keeps subnormal and huge data from underflow and overflow.
///
/// ```
/// use plca_tensor::{Coordinates, Data, DenseTensor, Order, SparseTensor};
/// fn mean(data: &dyn Data<f64>) -> f64 {
///     data.total() / data.shape().iter().product::<usize>() as f64
/// }
/// let dense = DenseTensor::new(vec![2, 2], vec![3.0, 0.0, 0.0, 1.0], Order::RowMajor)?;
/// let sparse = SparseTensor::new(Coordinates { shape: vec![2, 2], indices: vec![0, 0, 1, 1], values: vec![3.0, 1.0] })?;
/// assert_eq!((mean(&dense), mean(&sparse)), (1.0, 1.0));
/// # Ok::<(), plca_tensor::DataError>(())
/// ```
pub trait Data<T: Real>: Debug + Send + Sync {
    /// The size of each mode.
    fn shape(&self) -> &[usize];

    /// The facts that are known of the data as a whole.
    fn summary(&self) -> &Summary;

    /// Visits every observed cell that is not 0, in a fixed order: each once, with its sum where a storage holds several entries of a cell, which
    /// is finite. What is visited, and what [`visit_mask`](Self::visit_mask) lists, is what [`summary`](Self::summary) tells:
    /// [`Summary::of`] makes it from the visits.
    ///
    /// # Errors
    ///
    /// [`DataError::Source`] if the data cannot be read. So for all methods that go through them.
    fn visit(&self, each: &mut dyn FnMut(&[usize], f64)) -> Result<(), DataError>;

    /// Visits the cells that [`Summary::mask`] says, in a fixed order, each once; observed cells with those that are 0. Provided for complete data,
    /// which list none.
    ///
    /// # Errors
    ///
    /// As [`visit`](Self::visit).
    fn visit_mask(&self, each: &mut dyn FnMut(&[usize])) -> Result<(), DataError> {
        let _ = each;
        Ok(())
    }

    /// Makes the E-step: expected counts and the log-likelihood under `model`, in one pass over the data.
    ///
    /// ```math
    /// \begin{aligned}
    /// C_j[i,z] &= \sum_{x : x_j = i} V[x] \, \frac{w_z \prod_m F_m[x_m, z]}{P[x]}, \qquad P[x] = \sum_z w_z \prod_m F_m[x_m, z] \\
    /// L &= \sum_x V[x] \ln P[x]
    /// \end{aligned}
    /// ```
    ///
    /// `V` is the data, of which the observed cells count, and `C_j` are the counts of mode `j`, `I_j x K`. Other [rules](Rule) than the
    /// Poisson law have other counts and another value.
    ///
    /// An entry of a factor below `√TINY` times the largest of its row (1e-154 in `f64`, 1e-19 in `f32`; `w_z` is part of the first
    /// factor) counts as 0, as in [`Cp::cell`]: products of such entries would be subnormal. A cell that only such entries explain has
    /// `p = 0`, and the log-likelihood is `-inf`. A cell whose `p` is below `√TINY` times the product of its rows' largest entries may lose
    /// digits, or count as 0.
    ///
    /// Provided by [`e_step_by_visits`]: `O(N K)` for every cell visited, one thread.
    ///
    /// # Errors
    ///
    /// As [`visit`](Self::visit).
    ///
    /// # Panics
    ///
    /// If the model's shape is not that of the data, if it has no components, or if counts of a mode are requested that the data do not have.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_tensor::{Cp, Data, DenseTensor, Factor, Modes, Order, Request};
    /// let (a, b) = (dmatrix![0.5, 1.0; 0.5, 0.0], dmatrix![0.25, 0.5; 0.75, 0.5]);
    /// let model = Cp { weights: Some(&[0.5, 0.5]), factors: &[Factor::Columns(&a), Factor::Columns(&b)] };
    /// let v = DenseTensor::new(vec![2, 2], vec![5.0, 1.0, 1.0, 3.0], Order::RowMajor)?;
    /// let e = v.e_step(&model, &Request::counts(Modes::all(2)).value(true))?;
    /// // Row 0 of the data has mass 6, shared between the components.
    /// assert!((e.counts(0).row(0).sum() - 6.0f64).abs() < 1e-12);
    /// let ln_lik = [(5.0, [0, 0]), (1.0, [0, 1]), (1.0, [1, 0]), (3.0, [1, 1])].map(|(v, x)| v * model.cell(&x).ln());
    /// assert!((e.value() - ln_lik.iter().sum::<f64>()).abs() < 1e-12);
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    fn e_step(
        &self,
        model: &Cp<'_, T>,
        request: &Request<'_, T>,
    ) -> Result<Expected<T>, DataError> {
        e_step_by_visits(self, model, request)
    }

    /// The values as they lie in memory, if they do: lets an [arrangement](crate::arrange) borrow them. Provided for storages that
    /// hold no dense array; one that wraps a [`DenseTensor`] may pass on what that answers.
    fn dense(&self) -> Option<DenseView<'_, T>> {
        None
    }

    /// The rows of a mode as they lie in memory, if the observed cells that are not 0 are stored row by row of this mode: lets an
    /// [arrangement](crate::arrange) read them. Provided for storages that hold no such rows.
    fn listed(&self, mode: usize) -> Option<ListedView<'_, T>> {
        let _ = mode;
        None
    }

    /// The sum of the observed cells, `v`.
    fn total(&self) -> f64 {
        self.summary().total
    }

    /// The largest power of two that is not above the sum of the observed cells, for subnormal sums `2^-1023`; 1 without mass. Logarithms of data and models in this unit
    /// are those of shares, whatever the data are measured in.
    fn unit(&self) -> f64 {
        match self.total() {
            total if total > 0.0 => pow2(-unit_exponent(total)),
            _ => 1.0,
        }
    }

    /// Whether every cell was observed.
    fn is_complete(&self) -> bool {
        self.summary().mask == Mask::Complete
    }

    /// The number of observed cells, zeros included.
    ///
    /// # Errors
    ///
    /// As [`visit`](Self::visit).
    fn observed(&self) -> Result<f64, DataError> {
        let all: f64 = self.shape().iter().map(|&n| n as f64).product();
        let mut listed = 0.0;
        self.visit_mask(&mut |_| listed += 1.0)?;
        Ok(match self.summary().mask {
            Mask::Complete => all,
            Mask::Hidden => all - listed,
            Mask::Observed => listed,
        })
    }

    /// The sum of the observed cells for every index of mode `j`.
    ///
    /// ```math
    /// \sum_{x : x_j = i} V[x], \qquad i = 0, \dots, I_j - 1
    /// ```
    ///
    /// # Errors
    ///
    /// As [`visit`](Self::visit).
    fn marginal(&self, mode: usize) -> Result<Vec<f64>, DataError> {
        let mut sums = vec![0.0; self.shape()[mode]];
        self.visit(&mut |index, value| sums[index[mode]] += value)?;
        Ok(sums)
    }

    /// The log-likelihood that no model of these data can exceed, up to scale.
    ///
    /// ```math
    /// \sum_x V[x] \ln V[x]
    /// ```
    ///
    /// The sum runs over the observed cells.
    ///
    /// # Errors
    ///
    /// As [`visit`](Self::visit).
    fn self_information(&self) -> Result<f64, DataError> {
        self.self_information_in(1.0)
    }

    /// The same with logarithms of the data in a unit, such as [`unit`](Self::unit).
    ///
    /// ```math
    /// \sum_x V[x] \ln \frac{V[x]}{\text{unit}}
    /// ```
    ///
    /// # Errors
    ///
    /// As [`visit`](Self::visit).
    fn self_information_in(&self, unit: f64) -> Result<f64, DataError> {
        let mut sum = CompensatedSum::default();
        self.visit(&mut |_, value| {
            let share = value / unit;
            // [SPEC 0] Σ V ln V, 0 where a scale leaves nothing of a value
            if share > 0.0 {
                sum += value * share.ln();
            }
        })?;
        Ok(sum.value())
    }
}
