//! The solver that suits the model.

use plca_tensor::Real;

use super::{BoxedSteps, Memory, em, fast};
use crate::{Algorithm, FitError};

pub(super) fn bind<T: Real>(algorithm: &dyn Algorithm<T>, memory: Memory) -> BoxedSteps<'_, T> {
    match algorithm.separable() {
        Err(FitError::NotSeparable { .. }) => em::bind(algorithm, memory),
        Err(error) => Err(error),
        Ok(_) => fast::bind(algorithm, memory),
    }
}
