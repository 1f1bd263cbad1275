//! Dense tensors of any order.

use nalgebra::DMatrix;

use crate::kernel::aligned::Pool;
use crate::kernel::dense::Grid;
use crate::observed::{Pass, data_scale, finite_total, require_mass};
use crate::{CompensatedSum, Expected, Model, Observed, Real, TensorError, Wanted};

/// Which end of the shape is contiguous in memory.
///
/// ```
/// use plca_tensor::{DenseTensor, Order};
/// let values = vec![1.0, 2.0, 3.0, 4.0];
/// let c = DenseTensor::new(vec![2, 2], values.clone(), Order::RowMajor)?;
/// let fortran = DenseTensor::new(vec![2, 2], values, Order::ColumnMajor)?;
/// assert_eq!((c.get(&[0, 1]), fortran.get(&[0, 1])), (2.0, 3.0));
/// # Ok::<(), plca_tensor::TensorError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Order {
    /// C order: the last index runs fastest.
    RowMajor,
    /// Fortran order: the first index runs fastest (the order of nalgebra).
    ColumnMajor,
}

/// A non-negative dense tensor of order at least 1.
///
/// Values are checked once, here: finite and `>= 0`, with at least one positive. They are never
/// normalised. Memory: the values, and from the first pass on the buffers that passes work in.
///
/// ```
/// use plca_tensor::{DenseTensor, Order};
/// let v = DenseTensor::new(vec![2, 3], vec![1.0, 0.0, 2.0, 3.0, 4.0, 0.5], Order::RowMajor)?;
/// assert_eq!(v.get(&[1, 0]), 3.0);
/// let err = DenseTensor::new(vec![2], vec![1.0, -2.0], Order::RowMajor).unwrap_err();
/// assert_eq!(err.to_string(), "entry [1] is -2, not a finite number >= 0");
/// # Ok::<(), plca_tensor::TensorError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct DenseTensor<T> {
    grid: Grid<T>,
    /// Stored values are those given times this power of two.
    scale: T,
    total: f64,
    pub(crate) pool: Pool<T>,
}

/// Most modes of a tensor, as many as numpy's arrays have: work goes with the square of their number.
///
/// ```
/// use plca_tensor::{Coordinates, MAX_ORDER, SparseTensor, TensorError};
/// let one = |order| Coordinates { shape: vec![1; order], indices: vec![0; order], values: vec![1.0] };
/// assert!(SparseTensor::<f64>::new(one(MAX_ORDER)).is_ok());
/// assert!(matches!(SparseTensor::<f64>::new(one(MAX_ORDER + 1)), Err(TensorError::Order { order: 65 })));
/// ```
pub const MAX_ORDER: usize = 64;

/// Checks a shape; returns the number of cells, or `None` where it exceeds `usize`.
pub(crate) fn check_shape(shape: &[usize]) -> Result<Option<usize>, TensorError> {
    if shape.is_empty() {
        return Err(TensorError::OrderZero);
    }
    if shape.len() > MAX_ORDER {
        return Err(TensorError::Order { order: shape.len() });
    }
    if let Some(mode) = shape.iter().position(|&n| n == 0) {
        return Err(TensorError::EmptyMode {
            mode,
            shape: shape.to_vec(),
        });
    }
    if shape.iter().any(|&n| n > u32::MAX as usize) {
        return Err(TensorError::TooLarge {
            shape: shape.to_vec(),
        });
    }
    Ok(shape.iter().try_fold(1usize, |n, &m| n.checked_mul(m)))
}

/// The multi-index of a linear position.
pub(crate) fn unravel(mut position: usize, shape: &[usize], order: Order) -> Vec<usize> {
    let mut index = vec![0; shape.len()];
    let mut take = |m: usize| {
        index[m] = position % shape[m];
        position /= shape[m];
    };
    match order {
        Order::RowMajor => (0..shape.len()).rev().for_each(&mut take),
        Order::ColumnMajor => (0..shape.len()).for_each(&mut take),
    }
    index
}

/// Checks values; returns the largest. NaN marks a hidden cell where `nan_is_hidden`.
fn check_values<T: Real>(
    shape: &[usize],
    values: &[T],
    order: Order,
    nan_is_hidden: bool,
) -> Result<T, TensorError> {
    let cells = check_shape(shape)?.ok_or_else(|| TensorError::TooLarge {
        shape: shape.to_vec(),
    })?;
    if cells != values.len() {
        return Err(TensorError::Length {
            shape: shape.to_vec(),
            expected: cells,
            got: values.len(),
        });
    }
    let refused = |&x: &T| !(x.is_finite() && x >= T::zero() || nan_is_hidden && x.is_nan());
    // The first offending index in row-major order, whatever the memory order.
    let worst = values.iter().enumerate().filter(|(_, x)| refused(x));
    if let Some(index) = worst.map(|(i, _)| unravel(i, shape, order)).min() {
        let value = values[position(&index, shape, order)].to_f64();
        return Err(TensorError::Value { index, value });
    }
    let largest = values
        .iter()
        .fold(T::zero(), |a, &x| if x > a { x } else { a });
    require_mass(largest > T::zero())?;
    Ok(largest)
}

/// Checked values in a comfortable scale, with that scale and their sum as given.
pub(crate) fn checked_grid<T: Real>(
    shape: Vec<usize>,
    mut values: Vec<T>,
    order: Order,
    nan_is_hidden: bool,
) -> Result<(Grid<T>, T, f64), TensorError> {
    let scale = data_scale(check_values(&shape, &values, order, nan_is_hidden)?);
    if scale != T::one() {
        values.iter_mut().for_each(|x| *x *= scale);
    }
    let sum: CompensatedSum = values
        .iter()
        .filter(|x| !x.is_nan())
        .map(|x| x.to_f64())
        .collect();
    let total = finite_total::<T>(sum.value() / scale.to_f64())?;
    let grid = Grid {
        shape,
        values,
        order,
    };
    Ok((grid, scale, total))
}

impl<T: Real> DenseTensor<T> {
    /// A tensor from its values in the given memory order. Cost: two passes over the values.
    ///
    /// # Errors
    ///
    /// [`TensorError`]: order 0, an empty mode, a wrong number of values, a value that is negative
    /// or not finite (the first one is named), no positive value at all, a sum that overflows.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_tensor::{DenseTensor, Observed, Order, TensorError};
    /// let v = DenseTensor::new(vec![2, 2], vec![1.0f32, 0.0, 2.0, 0.5], Order::RowMajor)?;
    /// assert_eq!((v.shape(), v.total()), (&[2, 2][..], 3.5));
    /// let zeros = DenseTensor::new(vec![2], vec![0.0, 0.0], Order::RowMajor);
    /// assert_eq!(zeros.unwrap_err(), TensorError::NoMass);
    /// # Ok::<(), plca_tensor::TensorError>(())
    /// ```
    pub fn new(shape: Vec<usize>, values: Vec<T>, order: Order) -> Result<Self, TensorError> {
        let (grid, scale, total) = checked_grid(shape, values, order, false)?;
        Ok(Self {
            grid,
            scale,
            total,
            pool: Pool::default(),
        })
    }

    /// The memory order of the values.
    ///
    /// ```
    /// use plca_tensor::{DenseTensor, Order};
    /// let v = DenseTensor::try_from(nalgebra::dmatrix![1.0, 2.0])?;
    /// assert_eq!(v.order(), Order::ColumnMajor);
    /// # Ok::<(), plca_tensor::TensorError>(())
    /// ```
    pub fn order(&self) -> Order {
        self.grid.order
    }

    /// Gives the values back as they were given: shape, values, order. Where the largest lies outside the middle half of the
    /// scalar's exponents all are kept multiplied by a power of two, and those that underflow then come back as 0.
    ///
    /// ```
    /// use plca_tensor::{DenseTensor, Order};
    /// let v = DenseTensor::new(vec![2], vec![1e-310, 2e-310], Order::RowMajor)?;
    /// assert_eq!(v.into_parts(), (vec![2], vec![1e-310, 2e-310], Order::RowMajor));
    /// # Ok::<(), plca_tensor::TensorError>(())
    /// ```
    pub fn into_parts(self) -> (Vec<usize>, Vec<T>, Order) {
        let Grid {
            shape,
            mut values,
            order,
        } = self.grid;
        if self.scale != T::one() {
            values.iter_mut().for_each(|x| *x /= self.scale);
        }
        (shape, values, order)
    }

    pub(crate) fn into_grid(self) -> (Grid<T>, T) {
        (self.grid, self.scale)
    }

    /// The value of one cell.
    ///
    /// # Panics
    ///
    /// If `index` has another order than the tensor or lies outside it.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_tensor::{DenseTensor, Order};
    /// let v = DenseTensor::new(vec![2, 1, 2], vec![1.0, 2.0, 3.0, 4.0], Order::RowMajor)?;
    /// assert_eq!(v.get(&[1, 0, 0]), 3.0);
    /// # Ok::<(), plca_tensor::TensorError>(())
    /// ```
    pub fn get(&self, index: &[usize]) -> T {
        self.grid.values[position(index, &self.grid.shape, self.grid.order)] / self.scale
    }
}

/// Visits the positive cells of a grid, in memory order, with their values as given.
pub(crate) fn for_each_positive<T: Real>(
    grid: &Grid<T>,
    scale: T,
    visit: &mut dyn FnMut(&[usize], f64),
) {
    let mut index = vec![0; grid.shape.len()];
    for &x in &grid.values {
        if x > T::zero() {
            visit(&index, x.to_f64() / scale.to_f64());
        }
        let mut advance = |m: usize| {
            index[m] = (index[m] + 1) % grid.shape[m];
            index[m] == 0
        };
        let order = grid.shape.len();
        match grid.order {
            Order::RowMajor => (0..order).rev().all(&mut advance),
            Order::ColumnMajor => (0..order).all(&mut advance),
        };
    }
}

impl<T: Real> Observed<T> for DenseTensor<T> {
    fn shape(&self) -> &[usize] {
        &self.grid.shape
    }

    fn total(&self) -> f64 {
        self.total
    }

    fn is_complete(&self) -> bool {
        true
    }

    fn for_each(&self, visit: &mut dyn FnMut(&[usize], f64)) {
        for_each_positive(&self.grid, self.scale, visit);
    }

    fn expect(&self, model: &Model<'_, T>, wanted: Wanted<'_>) -> Expected<T> {
        Pass::new(self.shape(), model, &self.pool).expect(
            &self.grid,
            1.0 / self.scale.to_f64(),
            self.total,
            wanted,
            |mode| self.marginal(mode),
        )
    }

    fn exposure(&self, model: &Model<'_, T>, modes: &[bool]) -> Vec<Option<DMatrix<T>>> {
        Pass::new(self.shape(), model, &self.pool).unit(&self.grid, modes)
    }

    fn multiplier(&self, model: &Model<'_, T>, mode: usize) -> DMatrix<T> {
        Pass::new(self.shape(), model, &self.pool).multiplier(
            &self.grid,
            1.0 / self.scale.to_f64(),
            mode,
        )
    }
}

/// Linear position of a multi-index.
pub(crate) fn position(index: &[usize], shape: &[usize], order: Order) -> usize {
    assert_eq!(index.len(), shape.len(), "one index per mode");
    let step = |acc: usize, m: usize| {
        assert!(
            index[m] < shape[m],
            "index {index:?} outside shape {shape:?}"
        );
        acc * shape[m] + index[m]
    };
    match order {
        Order::RowMajor => (0..shape.len()).fold(0, step),
        Order::ColumnMajor => (0..shape.len()).rev().fold(0, step),
    }
}

impl<T: Real> TryFrom<DMatrix<T>> for DenseTensor<T> {
    type Error = TensorError;

    /// Takes the matrix without copying it.
    fn try_from(m: DMatrix<T>) -> Result<Self, TensorError> {
        let shape = vec![m.nrows(), m.ncols()];
        Self::new(shape, m.data.into(), Order::ColumnMajor)
    }
}
