//! Sparse tensors of any order.

use crate::dense::check_shape;
use crate::kernel::{Accumulate, Rule, Sums, fibres::Fibres, panel::Panel, strata::Strata};
use crate::{Real, TensorError};

/// Stored cells in coordinate form, in any order, duplicates allowed (they are summed).
///
/// ```
/// use plca_tensor::{Coordinates, SparseTensor};
/// let c = Coordinates { shape: vec![4, 3], indices: vec![0, 1,  3, 2,  0, 1], values: vec![1.0, 2.0, 0.5] };
/// let v = SparseTensor::new(c)?;
/// assert_eq!((v.stored(), v.total()), (2, 3.5));
/// # Ok::<(), plca_tensor::TensorError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Coordinates<T> {
    /// Size of each mode; the product may exceed `u64::MAX`.
    pub shape: Vec<usize>,
    /// `order` numbers for each entry, entry after entry.
    pub indices: Vec<u32>,
    /// One number per entry.
    pub values: Vec<T>,
}

/// Stored cells arranged for the kernels: strata of tiles for matrices, fibres for other orders.
#[derive(Clone, Debug)]
pub(crate) enum Cells<T> {
    Matrix(Strata<T>),
    Tensor(Fibres<T>),
}

impl<T: Real> Cells<T> {
    /// Checks and arranges the entries; duplicates are summed, zeros dropped unless `keep_zeros`.
    pub(crate) fn new(entries: Coordinates<T>, keep_zeros: bool) -> Result<Self, TensorError> {
        check_shape(&entries.shape)?;
        let order = entries.shape.len();
        if entries.indices.len() != order * entries.values.len() {
            return Err(TensorError::Length {
                expected: order * entries.values.len(),
                got: entries.indices.len(),
                shape: entries.shape,
            });
        }
        for (position, (index, &value)) in entries.indices.chunks_exact(order).zip(&entries.values).enumerate() {
            for (mode, (&i, &size)) in index.iter().zip(&entries.shape).enumerate() {
                if i as usize >= size {
                    return Err(TensorError::OutOfRange { position, mode, index: i as usize, size });
                }
            }
            if !(value.is_finite() && value >= T::zero()) {
                let index = index.iter().map(|&i| i as usize).collect();
                return Err(TensorError::Value { index, value: value.to_f64() });
            }
        }
        Ok(if order == 2 {
            Self::Matrix(Strata::new(entries, keep_zeros))
        } else {
            Self::Tensor(Fibres::new(entries, keep_zeros))
        })
    }

    pub(crate) fn stored(&self) -> usize {
        match self {
            Self::Matrix(s) => s.stored(),
            Self::Tensor(s) => s.stored(),
        }
    }

    /// Visits every stored cell in a fixed order.
    pub(crate) fn for_each(&self, visit: &mut dyn FnMut(&[usize], T)) {
        match self {
            Self::Matrix(s) => s.for_each(visit),
            Self::Tensor(s) => s.for_each(visit),
        }
    }
}

impl<T: Real> Accumulate<T> for Cells<T> {
    fn accumulate(&self, panels: &[Panel<T>], rule: Rule, wanted: &[bool], log: bool) -> Sums<T> {
        match self {
            Self::Matrix(s) => s.accumulate(panels, rule, wanted, log),
            Self::Tensor(s) => s.accumulate(panels, rule, wanted, log),
        }
    }
}
