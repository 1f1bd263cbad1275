//! Dense tensors of any order.

use nalgebra::DMatrix;

use crate::{Real, TensorError};

/// Which end of the shape is contiguous in memory.
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
/// normalised. Memory: the values and nothing else.
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
    shape: Vec<usize>,
    values: Vec<T>,
    order: Order,
}

/// Checks a shape; returns the number of cells, or `None` where it exceeds `usize`.
pub(crate) fn check_shape(shape: &[usize]) -> Result<Option<usize>, TensorError> {
    if shape.is_empty() {
        return Err(TensorError::OrderZero);
    }
    if let Some(mode) = shape.iter().position(|&n| n == 0) {
        return Err(TensorError::EmptyMode { mode, shape: shape.to_vec() });
    }
    if shape.iter().any(|&n| n > u32::MAX as usize) {
        return Err(TensorError::TooLarge { shape: shape.to_vec() });
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

impl<T: Real> DenseTensor<T> {
    /// A tensor from its values in the given memory order. Cost: one pass over the values.
    ///
    /// # Errors
    ///
    /// [`TensorError`]: order 0, an empty mode, a wrong number of values, a value that is negative
    /// or not finite (the first one is named), or no positive value at all.
    pub fn new(shape: Vec<usize>, values: Vec<T>, order: Order) -> Result<Self, TensorError> {
        let cells = check_shape(&shape)?.ok_or_else(|| TensorError::TooLarge { shape: shape.clone() })?;
        if cells != values.len() {
            return Err(TensorError::Length { shape, expected: cells, got: values.len() });
        }
        let mut positive = false;
        for (i, &x) in values.iter().enumerate() {
            if !(x.is_finite() && x >= T::zero()) {
                return Err(TensorError::Value { index: unravel(i, &shape, order), value: x.to_f64() });
            }
            positive |= x > T::zero();
        }
        if !positive {
            return Err(TensorError::NoMass);
        }
        Ok(Self { shape, values, order })
    }

    /// Size of each mode.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The values in memory order.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// The memory order of [`values`](Self::values).
    pub fn order(&self) -> Order {
        self.order
    }

    /// Gives the values back: shape, values, order.
    pub fn into_parts(self) -> (Vec<usize>, Vec<T>, Order) {
        (self.shape, self.values, self.order)
    }

    /// Position of a multi-index in [`values`](Self::values).
    ///
    /// # Panics
    ///
    /// If `index` has another order than the tensor or lies outside it.
    pub fn position(&self, index: &[usize]) -> usize {
        position(index, &self.shape, self.order)
    }

    /// The value of one cell.
    ///
    /// # Panics
    ///
    /// As [`position`](Self::position).
    pub fn get(&self, index: &[usize]) -> T {
        self.values[self.position(index)]
    }
}

/// Linear position of a multi-index.
pub(crate) fn position(index: &[usize], shape: &[usize], order: Order) -> usize {
    assert_eq!(index.len(), shape.len(), "one index per mode");
    let step = |acc: usize, m: usize| {
        assert!(index[m] < shape[m], "index {index:?} outside shape {shape:?}");
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
