//! Data of either sign, explained by the difference of two non-negative models.
//!
//! ```math
//! V \approx (A^+ - A^-) H,
//! \qquad p = A^+ H,
//! \quad q = A^- H
//! ```
//!
//! What a datum makes of its two rates is a [`SplitRule`]; this crate knows none.

mod column;
mod listed;

use std::fmt::Debug;

use column::Column;
use listed::Listed;
use nalgebra::DMatrix;

use super::visit;
use crate::data::{check_columns, matrix_shape};
use crate::kernel::aligned::Pool;
use crate::kernel::signed::{Blocks, pass};
use crate::{Data, DataError, DenseTensor, Mask, Order, Real};

/// A rule that judges a datum and its two rates, cell by cell. A hidden cell is NaN: it multiplies by 1 and adds nothing.
///
/// ```math
/// p = A^+ H, \qquad q = A^- H, \qquad (G^+, G^-) = \text{multipliers}(V, p, q), \qquad J = \sum \text{value}(V, p, q)
/// ```
///
/// `V` is the data, `F x N`; `p` and `q` are the rates and `G⁺` and `G⁻` what an update multiplies them with, all in the shape of the data.
///
/// ```
/// use plca_tensor::SplitRule;
/// /// Squared distance of the datum and the difference of its rates.
/// #[derive(Debug)]
/// struct Squares;
/// impl SplitRule<f64> for Squares {
///     fn multipliers(&self, cells: &[f64], plus: &mut [f64], minus: &mut [f64]) {
///         for ((v, p), q) in cells.iter().zip(plus).zip(minus) {
///             let up = (*q + f64::max(*v, 0.0)) / (*p + f64::max(-*v, 0.0));
///             (*p, *q) = if v.is_nan() { (1.0, 1.0) } else { (up, 1.0 / up) };
///         }
///     }
///     fn value(&self, cells: &[f64], plus: &[f64], minus: &[f64]) -> f64 {
///         let squares = (0..cells.len()).map(|i| (cells[i] - plus[i] + minus[i]).powi(2));
///         squares.filter(|x| !x.is_nan()).sum()
///     }
/// }
/// let (cells, mut plus, mut minus) = ([4.0, -1.0, f64::NAN], [2.0, 1.0, 3.0], [4.0, 1.0, 5.0]);
/// assert_eq!(Squares.value(&cells, &plus, &minus), 37.0);             // (4 - 2 + 4)² + (-1 - 1 + 1)²
/// Squares.multipliers(&cells, &mut plus, &mut minus);
/// assert_eq!((plus, minus), ([4.0, 0.5, 1.0], [0.25, 2.0, 1.0]));
/// ```
pub trait SplitRule<T>: Debug + Sync {
    /// Replaces the rates `p` and `q` of every cell by what an update multiplies them with. Slices of equal length.
    fn multipliers(&self, cells: &[T], plus: &mut [T], minus: &mut [T]);

    /// Sum over the cells of the objective.
    fn value(&self, cells: &[T], plus: &[T], minus: &[T]) -> f64;
}

/// A model of data of either sign: two factors of the rows and one of the columns.
///
/// ```math
/// V \approx (A^+ - A^-) H
/// ```
///
/// `V` is the data, `F x N`.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_tensor::SignedModel;
/// let (plus, minus, right) = (dmatrix![2.0f64; 0.0], dmatrix![0.0; 1.0], dmatrix![1.0, 3.0]);
/// let model = SignedModel { plus: &plus, minus: &minus, right: &right };
/// assert_eq!((model.plus - model.minus) * model.right, dmatrix![2.0, 6.0; -1.0, -3.0]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SignedModel<'a, T> {
    /// The positive factor, `A⁺`, `F x K`.
    pub plus: &'a DMatrix<T>,
    /// The negative factor, `A⁻`, `F x K`.
    pub minus: &'a DMatrix<T>,
    /// The factor of the columns, `H`, `K x N`.
    pub right: &'a DMatrix<T>,
}

/// The parts that a pass is to compute; see [`SignedSums`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignedWanted {
    /// Whether the sums `S⁺` and `S⁻` are wanted.
    pub left: bool,
    /// Whether the sums `R` are wanted.
    pub right: bool,
    /// Whether the objective is wanted.
    pub value: bool,
}

/// The sums of one pass over data of either sign, empty where not wanted.
///
/// ```math
/// S^\pm = G^\pm H^\top, \qquad R = (A^+)^\top G^+ + (A^-)^\top G^-
/// ```
///
/// `S±` is `F x K` and `R` is `K x N`; `G±` are the multipliers of the [`SplitRule`], 1 in hidden cells.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_tensor::{SignedModel, SignedWanted, SplitRule, arrange::Signed};
/// # #[derive(Debug)]
/// # struct Ones;
/// # impl SplitRule<f64> for Ones {
/// #     fn multipliers(&self, _: &[f64], plus: &mut [f64], minus: &mut [f64]) {
/// #         plus.fill(1.0);
/// #         minus.fill(1.0);
/// #     }
/// #     fn value(&self, cells: &[f64], _: &[f64], _: &[f64]) -> f64 {
/// #         cells.iter().filter(|v| !v.is_nan()).sum()
/// #     }
/// # }
/// let v = Signed::from_matrix(dmatrix![1.0, -2.0; f64::NAN, 4.0])?;
/// let (plus, minus, right) = (dmatrix![2.0; 0.0], dmatrix![0.0; 1.0], dmatrix![1.0, 3.0]);
/// let model = SignedModel { plus: &plus, minus: &minus, right: &right };
/// let sums = v.pass(&model, &Ones, SignedWanted { left: true, right: true, value: true });
/// // A rule that multiplies by 1, and whose value is the datum.
/// assert_eq!((sums.plus, sums.minus), (dmatrix![4.0; 4.0], dmatrix![4.0; 4.0]));
/// assert_eq!((sums.right, sums.value), (dmatrix![3.0, 3.0], 3.0));
/// # Ok::<(), plca_tensor::DataError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SignedSums<T> {
    /// The sums `S⁺`, `F x K`.
    pub plus: DMatrix<T>,
    /// The sums `S⁻`, `F x K`.
    pub minus: DMatrix<T>,
    /// The sums `R`, `K x N`.
    pub right: DMatrix<T>,
    /// Sum of the rule's values over the observed cells; 0 if not wanted.
    pub value: f64,
}

/// A matrix of either sign as the pass over two rates reads it, some of its cells hidden.
///
/// Few observed cells, those of data whose mask is [`Mask::Observed`], are a list: a pass costs `O(nnz K + (F + N) K)`, because hidden cells
/// multiply by 1, so that what they add is known without visiting them. All other data are held as a dense matrix, zeros included, a single column along its rows. Memory:
/// [`new`](Self::new) copies; [`from_dense`](Self::from_dense) and [`from_matrix`](Self::from_matrix) arrange the values where they lie.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_tensor::{Coordinates, SparseTensor, arrange::Signed};
/// let mean = |data: &Signed<f64>| {
///     let mut sum = 0.0;
///     data.for_each(&mut |_, _, value| sum += value);
///     sum / data.observed() as f64
/// };
/// let dense = Signed::from_matrix(dmatrix![1.0, f64::NAN; f64::NAN, -3.0])?;              // NaN hides a cell
/// let cells = Coordinates { shape: vec![2, 2], indices: vec![0, 0, 1, 1], values: vec![1.0, -3.0] };
/// let listed = Signed::new(&SparseTensor::stored_only(cells)?)?;
/// assert_eq!((mean(&dense), mean(&listed)), (-1.0, -1.0));
/// # Ok::<(), plca_tensor::DataError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Signed<T>(Cells<T>);

#[derive(Clone, Debug, PartialEq)]
enum Cells<T> {
    Blocks {
        blocks: Blocks<T>,
        observed: usize,
        pool: Pool<T>,
    },
    Listed(Listed<T>),
    /// Blocks are of many columns: one alone would leave most of their lanes empty.
    Column(Column<T>),
}

impl<T: Real> Signed<T> {
    /// A copy of a matrix of any storage.
    ///
    /// # Errors
    ///
    /// [`DataError`]: another order than 2, a matrix too large to be held, duplicates whose sum is beyond `T`, data that could not be read.
    pub fn new(data: &dyn Data<T>) -> Result<Self, DataError> {
        let [rows, columns] = matrix_shape(data.shape())?;
        if data.summary().mask == Mask::Observed {
            return Ok(Self(Cells::Listed(Listed::new([rows, columns], data)?)));
        }
        if columns == 1 {
            let mut values = vec![T::zero(); rows];
            data.visit_mask(&mut |index| values[index[0]] = T::lit(f64::NAN))?;
            visit(data, &mut |index, x| values[index[0]] = x)?;
            return Ok(Self(Cells::Column(Column::new(values))));
        }
        let mut blocks = Blocks::zeros(rows, columns)?;
        let mut hidden = 0;
        data.visit_mask(&mut |index| {
            hidden += 1;
            blocks.set(index[0], index[1], T::lit(f64::NAN));
        })?;
        visit(data, &mut |index, x| blocks.set(index[0], index[1], x))?;
        Ok(Self::of(blocks, hidden))
    }

    /// Arranges dense data in place: no second array of the values exists at any time.
    ///
    /// # Errors
    ///
    /// [`DataError`]: another order than 2, a matrix too large to be held.
    pub fn from_dense(data: DenseTensor<T>) -> Result<Self, DataError> {
        let hidden = data.hidden();
        let (shape, values, order) = data.into_parts();
        let [rows, columns] = matrix_shape(&shape)?;
        if columns == 1 {
            return Ok(Self(Cells::Column(Column::new(values))));
        }
        let blocks = Blocks::from_values(rows, columns, values, order)?;
        Ok(Self::of(blocks, hidden))
    }

    /// Arranges a matrix in place, in which NaN marks a hidden cell.
    ///
    /// # Errors
    ///
    /// Those of [`DenseTensor::masked`].
    pub fn from_matrix(values: DMatrix<T>) -> Result<Self, DataError> {
        let (rows, columns) = values.shape();
        let hidden = check_columns([rows, columns], values.as_slice())?;
        let values = values.data.into();
        let blocks = Blocks::from_values(rows, columns, values, Order::ColumnMajor)?;
        Ok(Self::of(blocks, hidden))
    }

    fn of(blocks: Blocks<T>, hidden: usize) -> Self {
        Self(Cells::Blocks {
            observed: blocks.rows * blocks.columns - hidden,
            blocks,
            pool: Pool::default(),
        })
    }

    /// Rows and columns.
    pub fn shape(&self) -> (usize, usize) {
        match &self.0 {
            Cells::Blocks { blocks, .. } => (blocks.rows, blocks.columns),
            Cells::Listed(cells) => cells.shape,
            Cells::Column(column) => (column.values.len(), 1),
        }
    }

    /// Number of observed cells.
    pub fn observed(&self) -> usize {
        match &self.0 {
            Cells::Blocks { observed, .. } => *observed,
            Cells::Listed(cells) => cells.values.len(),
            Cells::Column(column) => column.observed,
        }
    }

    /// Visits the observed cells, zeros included, with row, column and value.
    pub fn for_each(&self, visit: &mut dyn FnMut(usize, usize, f64)) {
        match &self.0 {
            Cells::Blocks { blocks, .. } => blocks.for_each(visit),
            Cells::Listed(cells) => cells.for_each(visit),
            Cells::Column(column) => column.for_each(visit),
        }
    }

    /// Hides the observed cells, given by row, column and value, for which `hidden` says so.
    pub fn hide(&mut self, mut hidden: impl FnMut(usize, usize, f64) -> bool) {
        match &mut self.0 {
            Cells::Listed(cells) => cells.hide(&mut hidden),
            Cells::Column(column) => column.hide(&mut hidden),
            Cells::Blocks {
                blocks, observed, ..
            } => *observed -= blocks.hide(&mut hidden),
        }
    }

    /// Makes one pass over the cells; see [`SignedSums`].
    ///
    /// # Panics
    ///
    /// If the model has another shape.
    pub fn pass(
        &self,
        model: &SignedModel<'_, T>,
        rule: &dyn SplitRule<T>,
        wanted: SignedWanted,
    ) -> SignedSums<T> {
        check_model(model, self.shape());
        match &self.0 {
            Cells::Listed(cells) => cells.pass(model, rule, wanted),
            Cells::Column(column) => column.pass(model, rule, wanted),
            Cells::Blocks { blocks, pool, .. } => {
                pool.next_pass();
                pass(blocks, model, rule, wanted, pool)
            }
        }
    }
}

/// Refuses factors that do not belong to data of this shape.
fn check_model<T: Real>(model: &SignedModel<'_, T>, (rows, columns): (usize, usize)) {
    let k = model.right.nrows();
    for side in [model.plus, model.minus] {
        assert_eq!(side.shape(), (rows, k), "one row for every row of the data");
    }
    assert_eq!(
        model.right.ncols(),
        columns,
        "one column for every column of the data"
    );
}
