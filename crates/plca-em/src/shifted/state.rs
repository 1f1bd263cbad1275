//! Parameters of shifted models, and their starts.

use nalgebra::{DMatrix, DVector};
use plca_tensor::Real;

/// The parameters, and all that changes from iteration to iteration.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(bound(
        serialize = "T: serde::Serialize",
        deserialize = "T: serde::Deserialize<'de>"
    ))
)]
pub struct ShiftedState<T: Real> {
    /// `P(z)`: `K` numbers that sum to 1.
    pub weights: DVector<T>,
    /// `K(t | z)`: a column of `|k|` numbers for every component, the cells of the kernel in row-major order.
    pub kernels: DMatrix<T>,
    /// `H(h | z)`: a column of `|m|` numbers for every component, the cells of the impulse in row-major order.
    pub impulses: DMatrix<T>,
    /// EM steps done, which powers and schedules of priors go by.
    pub iteration: usize,
}

/// Blocks that a start gives; the others are drawn.
#[derive(Clone, Debug)]
pub struct ShiftedInit<T: Real> {
    /// `P(z)`, any non-negative numbers (they are normalised); default: uniform.
    pub weights: Option<DVector<T>>,
    /// Kernels, columns normalised; default: uniform draws from the simplex.
    pub kernels: Option<DMatrix<T>>,
    /// Impulses, columns normalised; default: uniform draws from the simplex.
    pub impulses: Option<DMatrix<T>>,
}

impl<T: Real> Default for ShiftedInit<T> {
    fn default() -> Self {
        Self {
            weights: None,
            kernels: None,
            impulses: None,
        }
    }
}
