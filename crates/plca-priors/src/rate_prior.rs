//! The trait of all priors on blocks of rates.

use std::sync::Arc;

use nalgebra::DMatrix;
use plca_tensor::Real;

use crate::{PriorError, PriorRules, Step};

/// A prior on a block of non-negative rates: what counts are Poisson with, times their exposure.
///
/// # Laws
///
/// For counts `c >= 0` and exposures `x >= 0`, [`update`](Self::update) leaves in `rate` a maximiser over `θ >= 0` of
///
/// ```math
/// \sum (c \ln \theta - x \theta) + \ln p(\theta)
/// ```
///
/// An entry that has neither counts nor exposure nor an opinion of the prior keeps its value.
pub trait RatePrior<T: Real>: PriorRules {
    /// The M-step, entry by entry. All three blocks have one shape.
    ///
    /// # Errors
    ///
    /// [`PriorError::Shape`] if the prior was made for another shape, [`PriorError::CountsShape`], and [`PriorError::Overflow`] for a rate that is
    /// not finite. `rate` then keeps its value.
    fn update(
        &self,
        counts: &DMatrix<T>,
        exposure: &DMatrix<T>,
        rate: &mut DMatrix<T>,
        step: &Step<'_>,
    ) -> Result<(), PriorError>;

    /// The log-density `ln p(θ)`, summed over the entries, up to a constant, as it is in force at `step`.
    fn ln_density(&self, rate: &DMatrix<T>, step: &Step<'_>) -> f64;
}

impl<T: Real, P: RatePrior<T> + ?Sized> RatePrior<T> for Arc<P> {
    fn update(
        &self,
        counts: &DMatrix<T>,
        exposure: &DMatrix<T>,
        rate: &mut DMatrix<T>,
        step: &Step<'_>,
    ) -> Result<(), PriorError> {
        (**self).update(counts, exposure, rate, step)
    }

    fn ln_density(&self, rate: &DMatrix<T>, step: &Step<'_>) -> f64 {
        (**self).ln_density(rate, step)
    }
}
