//! Data of either sign, explained by the difference of two non-negative models.
//!
//! ```text
//! V ~ (A⁺ - A⁻) H,      p = A⁺ H,  q = A⁻ H
//! ```
//!
//! What a datum makes of its two rates is a [`SplitRule`]; this crate knows none.

use std::fmt::Debug;

use nalgebra::DMatrix;

use crate::dense::check_shape;
use crate::kernel::aligned::Pool;
use crate::kernel::signed::{Blocks, WIDTH, pass};
use crate::{Real, TensorError};

/// How a datum and its two rates are judged, cell by cell. A hidden cell is NaN: it multiplies by 1 and adds nothing.
pub trait SplitRule<T>: Debug + Sync {
    /// Replaces the rates `p` and `q` of every cell by what an update multiplies them with. Slices of equal length.
    fn multipliers(&self, cells: &[T], plus: &mut [T], minus: &mut [T]);

    /// Sum over the cells of the objective.
    fn value(&self, cells: &[T], plus: &[T], minus: &[T]) -> f64;
}

/// Two factors of the rows and one of the columns.
#[derive(Clone, Copy, Debug)]
pub struct SignedModel<'a, T> {
    /// `A⁺`, `F x K`.
    pub plus: &'a DMatrix<T>,
    /// `A⁻`, `F x K`.
    pub minus: &'a DMatrix<T>,
    /// `H`, `K x N`.
    pub right: &'a DMatrix<T>,
}

/// What a pass is to compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignedWanted {
    /// `S⁺` and `S⁻`.
    pub left: bool,
    /// `R`.
    pub right: bool,
    /// The objective.
    pub value: bool,
}

/// What a pass gives: `S± = G± Hᵀ` (`F x K`), `R = A⁺ᵀ G⁺ + A⁻ᵀ G⁻` (`K x N`), hidden cells with `G± = 1`. Empty where not
/// wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct SignedSums<T> {
    /// `S⁺`.
    pub plus: DMatrix<T>,
    /// `S⁻`.
    pub minus: DMatrix<T>,
    /// `R`.
    pub right: DMatrix<T>,
    /// Sum of the rule's values over the observed cells; 0 if not wanted.
    pub value: f64,
}

/// What a model of signed data asks of its data.
pub trait Signed<T: Real>: Debug + Sync {
    /// Rows and columns.
    fn shape(&self) -> (usize, usize);

    /// Number of observed cells.
    fn observed(&self) -> usize;

    /// Visits the observed cells.
    fn for_each(&self, visit: &mut dyn FnMut(usize, usize, f64));

    /// One pass over the cells.
    ///
    /// # Panics
    ///
    /// If the model has another shape.
    fn pass<R: SplitRule<T> + ?Sized>(
        &self,
        model: &SignedModel<'_, T>,
        rule: &R,
        wanted: SignedWanted,
    ) -> SignedSums<T>;
}

/// Rows of `2K` values as two matrices.
pub(crate) fn split_left<T: Real>(sums: &[T], rows: usize, k: usize) -> [DMatrix<T>; 2] {
    let rows = if sums.is_empty() { 0 } else { rows };
    [0, k].map(|first| {
        let mut side = DMatrix::zeros(rows, if rows == 0 { 0 } else { k });
        for (z, mut column) in side.column_iter_mut().enumerate() {
            let source = sums.chunks_exact(2 * k).map(|row| row[first + z]);
            column.iter_mut().zip(source).for_each(|(x, s)| *x = s);
        }
        side
    })
}

/// Refuses factors that do not belong to data of this shape.
pub(crate) fn check_model<T: Real>(model: &SignedModel<'_, T>, (rows, columns): (usize, usize)) {
    let k = model.right.nrows();
    assert_eq!(
        model.plus.shape(),
        (rows, k),
        "one row for every row of the data"
    );
    assert_eq!(
        model.minus.shape(),
        (rows, k),
        "one row for every row of the data"
    );
    assert_eq!(
        model.right.ncols(),
        columns,
        "one column for every column of the data"
    );
}

/// A dense matrix of either sign, some of whose cells may be hidden.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_tensor::{Signed, SignedMatrix};
/// let v = SignedMatrix::new(&dmatrix![1.0, -2.0; f64::NAN, 0.0])?;     // NaN hides a cell
/// assert_eq!((v.shape(), v.observed(), v.get(0, 1)), ((2, 2), 3, -2.0));
/// # Ok::<(), plca_tensor::TensorError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SignedMatrix<T> {
    blocks: Blocks<T>,
    observed: usize,
    pool: Pool<T>,
}

impl<T: Real> SignedMatrix<T> {
    /// From a matrix in which NaN marks a hidden cell.
    ///
    /// # Errors
    ///
    /// [`TensorError`] for an empty mode, and for the first value, in row-major order, that is infinite.
    pub fn new(values: &DMatrix<T>) -> Result<Self, TensorError> {
        Self::from_cells(values, |_, _| true)
    }

    /// From a matrix and the cells that were observed. Values of the others are not read.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), where an observed NaN is refused too, and [`TensorError::Shape`].
    pub fn with_mask(values: &DMatrix<T>, observed: &DMatrix<bool>) -> Result<Self, TensorError> {
        if observed.shape() != values.shape() {
            return Err(TensorError::Shape {
                what: "mask",
                got: vec![observed.nrows(), observed.ncols()],
                expected: vec![values.nrows(), values.ncols()],
            });
        }
        for row in 0..values.nrows() {
            for column in 0..values.ncols() {
                if observed[(row, column)] && values[(row, column)].is_nan() {
                    return Err(TensorError::NotFinite {
                        index: vec![row, column],
                        value: f64::NAN,
                    });
                }
            }
        }
        Self::from_cells(values, |row, column| observed[(row, column)])
    }

    fn from_cells(
        values: &DMatrix<T>,
        seen: impl Fn(usize, usize) -> bool,
    ) -> Result<Self, TensorError> {
        let (rows, columns) = values.shape();
        check_shape(&[rows, columns])?;
        let hidden = T::lit(f64::NAN);
        let mut blocks = Blocks {
            rows,
            columns,
            values: vec![hidden; columns.div_ceil(WIDTH) * rows * WIDTH],
        };
        let (mut observed, mut first) = (0, None);
        for (column, source) in values.column_iter().enumerate() {
            for (row, &x) in source
                .iter()
                .enumerate()
                .filter(|&(row, _)| seen(row, column))
            {
                if x.is_finite() {
                    observed += 1;
                } else if !x.is_nan() && first.is_none_or(|(r, _)| row < r) {
                    first = Some((row, column));
                }
                let at = blocks.position(row, column);
                blocks.values[at] = x;
            }
        }
        if let Some((row, column)) = first {
            return Err(TensorError::NotFinite {
                index: vec![row, column],
                value: values[(row, column)].to_f64(),
            });
        }
        Ok(Self {
            blocks,
            observed,
            pool: Pool::default(),
        })
    }

    /// The value of one cell, NaN if it is hidden.
    ///
    /// # Panics
    ///
    /// If the cell lies outside.
    pub fn get(&self, row: usize, column: usize) -> T {
        assert!(
            row < self.blocks.rows && column < self.blocks.columns,
            "cell ({row}, {column}) outside {:?}",
            self.shape()
        );
        self.blocks.values[self.blocks.position(row, column)]
    }
}

impl<T: Real> Signed<T> for SignedMatrix<T> {
    fn shape(&self) -> (usize, usize) {
        (self.blocks.rows, self.blocks.columns)
    }

    fn observed(&self) -> usize {
        self.observed
    }

    fn for_each(&self, visit: &mut dyn FnMut(usize, usize, f64)) {
        for row in 0..self.blocks.rows {
            for column in 0..self.blocks.columns {
                let x = self.blocks.values[self.blocks.position(row, column)];
                if !x.is_nan() {
                    visit(row, column, x.to_f64());
                }
            }
        }
    }

    fn pass<R: SplitRule<T> + ?Sized>(
        &self,
        model: &SignedModel<'_, T>,
        rule: &R,
        wanted: SignedWanted,
    ) -> SignedSums<T> {
        check_model(model, self.shape());
        let k = model.right.nrows();
        let sums = pass(&self.blocks, model, rule, wanted, &self.pool);
        let [plus, minus] = split_left(&sums.left, self.blocks.rows, k);
        let (nrows, ncols) = if wanted.right {
            model.right.shape()
        } else {
            (0, 0)
        };
        SignedSums {
            plus,
            minus,
            right: DMatrix::from_vec(nrows, ncols, sums.right),
            value: sums.value,
        }
    }
}
