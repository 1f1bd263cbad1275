//! Plain iterations.

use plca_tensor::Real;

use super::Memory;
use crate::engine::{Algorithm, FitError, Parameters, Stepped};

pub(super) fn step<T: Real>(
    algorithm: &dyn Algorithm<T>,
    at: &mut Parameters<T>,
    _: &mut Memory,
    measure: bool,
) -> Result<Stepped, FitError> {
    algorithm.step(at, measure)
}
