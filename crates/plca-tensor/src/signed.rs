//! Data of either sign, explained by the difference of two non-negative models.
//!
//! ```text
//! V ~ (A⁺ - A⁻) H,      p = A⁺ H,  q = A⁻ H
//! ```
//!
//! What a datum makes of its two rates is a [`SplitRule`]; this crate knows none.

use std::fmt::Debug;

use nalgebra::DMatrix;

use crate::data::check_shape;
use crate::kernel::aligned::Pool;
use crate::kernel::signed::{Blocks, WIDTH, pass};
use crate::{DataError, Real};

/// How a datum and its two rates are judged, cell by cell. A hidden cell is NaN: it multiplies by 1 and adds nothing.
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

/// Two factors of the rows and one of the columns.
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
    /// `A⁺`, `F x K`.
    pub plus: &'a DMatrix<T>,
    /// `A⁻`, `F x K`.
    pub minus: &'a DMatrix<T>,
    /// `H`, `K x N`.
    pub right: &'a DMatrix<T>,
}

/// What a pass is to compute.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_tensor::{Signed, SignedMatrix, SignedModel, SignedWanted, SplitRule};
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
/// let v = SignedMatrix::new(&dmatrix![1.0, -2.0; f64::NAN, 4.0])?;
/// let (plus, minus, right) = (dmatrix![2.0; 0.0], dmatrix![0.0; 1.0], dmatrix![1.0, 3.0]);
/// let model = SignedModel { plus: &plus, minus: &minus, right: &right };
/// let value_only = SignedWanted { left: false, right: false, value: true };
/// let sums = v.pass(&model, &Ones, value_only);                       // a rule whose value is the datum
/// assert_eq!((sums.value, sums.plus.len(), sums.right.len()), (3.0, 0, 0));
/// # Ok::<(), plca_tensor::DataError>(())
/// ```
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
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_tensor::{Signed, SignedMatrix, SignedModel, SignedWanted, SplitRule};
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
/// let v = SignedMatrix::new(&dmatrix![1.0, -2.0; f64::NAN, 4.0])?;
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
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_tensor::{Signed, SignedCells, SignedMatrix};
/// fn mean(data: &impl Signed<f64>) -> f64 {
///     let mut sum = 0.0;
///     data.for_each(&mut |_, _, value| sum += value);
///     sum / data.observed() as f64
/// }
/// let dense = SignedMatrix::new(&dmatrix![1.0, f64::NAN; f64::NAN, -3.0])?;
/// let cells = SignedCells::new((2, 2), [(0, 0, 1.0), (1, 1, -3.0)])?;
/// assert_eq!((mean(&dense), mean(&cells)), (-1.0, -1.0));
/// # Ok::<(), plca_tensor::DataError>(())
/// ```
pub trait Signed<T: Real>: Debug + Sync {
    /// Rows and columns.
    ///
    /// ```
    /// use plca_tensor::{Signed, SignedCells};
    /// let v = SignedCells::new((2, 3), [(1, 2, -1.5), (0, 1, 4.0)])?;
    /// assert_eq!(v.shape(), (2, 3));
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    fn shape(&self) -> (usize, usize);

    /// Number of observed cells.
    ///
    /// ```
    /// use plca_tensor::{Signed, SignedCells};
    /// let v = SignedCells::new((2, 3), [(1, 2, -1.5), (0, 1, 4.0)])?;
    /// assert_eq!(v.observed(), 2);
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    fn observed(&self) -> usize;

    /// Visits the observed cells.
    ///
    /// ```
    /// use plca_tensor::{Signed, SignedCells};
    /// let v = SignedCells::new((2, 3), [(1, 2, -1.5), (0, 1, 4.0)])?;
    /// let mut sum = 0.0;
    /// v.for_each(&mut |_, _, value| sum += value);
    /// assert_eq!(sum, 2.5);
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    fn for_each(&self, visit: &mut dyn FnMut(usize, usize, f64));

    /// One pass over the cells.
    ///
    /// # Panics
    ///
    /// If the model has another shape.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_tensor::{Signed, SignedCells, SignedModel, SignedWanted, SplitRule};
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
    /// let v = SignedCells::new((2, 2), [(0, 0, 1.0), (1, 1, 4.0)])?;
    /// let (plus, minus, right) = (dmatrix![2.0; 0.0], dmatrix![0.0; 1.0], dmatrix![1.0, 3.0]);
    /// let model = SignedModel { plus: &plus, minus: &minus, right: &right };
    /// let sums = v.pass(&model, &Ones, SignedWanted { left: true, right: false, value: true });
    /// // A rule that multiplies by 1, and whose value is the datum.
    /// assert_eq!((sums.plus, sums.value), (dmatrix![4.0; 4.0], 5.0));
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
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
/// # Ok::<(), plca_tensor::DataError>(())
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
    /// [`DataError`] for an empty mode, and for the first value, in row-major order, that is infinite.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_tensor::{Signed, SignedMatrix};
    /// assert_eq!(SignedMatrix::new(&dmatrix![0.5, f64::NAN, -1.0])?.observed(), 2);
    /// let error = SignedMatrix::new(&dmatrix![0.5, f64::INFINITY]).unwrap_err();
    /// assert_eq!(error.to_string(), "entry [0, 1] is inf, not a finite number");
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    pub fn new(values: &DMatrix<T>) -> Result<Self, DataError> {
        Self::from_cells(values, |_, _| true)
    }

    /// From a matrix and the cells that were observed. Values of the others are not read.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), where an observed NaN is refused too, and [`DataError::Shape`].
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_tensor::{Signed, SignedMatrix};
    /// let v = SignedMatrix::with_mask(&dmatrix![1.0f64, -9.0], &dmatrix![true, false])?;
    /// assert_eq!((v.observed(), v.get(0, 0)), (1, 1.0));
    /// assert!(v.get(0, 1).is_nan());
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    pub fn with_mask(values: &DMatrix<T>, observed: &DMatrix<bool>) -> Result<Self, DataError> {
        if observed.shape() != values.shape() {
            return Err(DataError::Shape {
                what: "mask",
                got: vec![observed.nrows(), observed.ncols()],
                expected: vec![values.nrows(), values.ncols()],
            });
        }
        for row in 0..values.nrows() {
            for column in 0..values.ncols() {
                if observed[(row, column)] && values[(row, column)].is_nan() {
                    return Err(DataError::NotFinite {
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
    ) -> Result<Self, DataError> {
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
            return Err(DataError::NotFinite {
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
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_tensor::SignedMatrix;
    /// let v = SignedMatrix::new(&dmatrix![1.0, -2.0; f64::NAN, 0.5])?;
    /// assert_eq!(v.get(1, 1), 0.5);
    /// assert!(v.get(1, 0).is_nan());
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
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
        self.pool.next_pass();
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
