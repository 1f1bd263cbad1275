//! The trait of all priors on column-stochastic blocks.

use std::fmt::Debug;
use std::sync::Arc;

use nalgebra::DMatrix;
use plca_tensor::Real;

/// Why a prior was refused or could not be applied.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PriorError {
    /// A hyperparameter outside its domain.
    #[error("`{name}` = {value} is outside the domain")]
    Domain {
        /// Name of the hyperparameter.
        name: &'static str,
        /// The offending value.
        value: f64,
    },
    /// Hyperparameters given per entry do not have the block's shape.
    #[error("hyperparameters are {}x{}, the block is {}x{}", got.0, got.1, expected.0, expected.1)]
    Shape {
        /// Rows and columns of the hyperparameters.
        got: (usize, usize),
        /// Rows and columns of the block.
        expected: (usize, usize),
    },
}

/// A prior on the columns of a column-stochastic block.
///
/// # Laws
///
/// For counts `c >= 0` of one column, [`update`](Self::update) leaves in `theta` a maximiser over the simplex of
///
/// ```text
/// Σ_i c_i ln θ_i + ln p(θ)
/// ```
///
/// which is not worse than the `theta` it was given; where the maximiser is not unique or does not exist (no
/// counts and no opinion), `theta` keeps its value. Permuting the entries of a column, where the prior treats them alike,
/// permutes the result.
pub trait SimplexPrior<T: Real>: Debug + Send + Sync {
    /// The M-step, column by column. `counts` and `theta` have one shape, `theta`'s columns sum to 1 before and after.
    ///
    /// # Errors
    ///
    /// [`PriorError::Shape`] if the prior was made for another shape.
    fn update(&self, counts: &DMatrix<T>, theta: &mut DMatrix<T>) -> Result<(), PriorError>;

    /// `ln p(θ)` summed over the columns, up to a constant.
    fn ln_density(&self, theta: &DMatrix<T>) -> f64;

    /// Whether the prior fits a block of this shape.
    ///
    /// # Errors
    ///
    /// [`PriorError::Shape`] if not.
    fn check(&self, _rows: usize, _columns: usize) -> Result<(), PriorError> {
        Ok(())
    }

    /// The prior in force at an iteration, counted from 1, where it changes; `None` if it never does.
    fn at(&self, _iteration: usize) -> Option<Arc<dyn SimplexPrior<T>>> {
        None
    }

    /// Whether the update may set an entry to 0 whose count is positive, so that a model can lose a cell that
    /// the data have. Models then check their support after the step.
    fn may_empty(&self) -> bool {
        false
    }
}
