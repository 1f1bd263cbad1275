//! Plain iterations.

use plca_tensor::Real;

use super::{BoxedSteps, Memory, function};
use crate::{Algorithm, FitError, Parameters, Stepped};

fn step<T: Real>(
    algorithm: &dyn Algorithm<T>,
    at: &mut Parameters<T>,
    _: &mut Memory,
    measure: bool,
) -> Result<Stepped, FitError> {
    algorithm.step(at, measure)
}

pub(super) fn bind<T: Real>(algorithm: &dyn Algorithm<T>, memory: Memory) -> BoxedSteps<'_, T> {
    function(algorithm, memory, step)
}
