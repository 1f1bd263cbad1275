//! A prior on a block, of either kind.

use std::sync::Arc;

use nalgebra::DMatrix;
use plca_priors::{PriorError, PriorRules, RatePrior, SimplexPrior, Step};
use plca_tensor::Real;

/// A prior on a block: of distributions or of rates.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Prior<T: Real> {
    /// On columns that are distributions.
    Simplex(Arc<dyn SimplexPrior<T>>),
    /// On non-negative values.
    Rate(Arc<dyn RatePrior<T>>),
}

impl<T: Real> Prior<T> {
    fn rules(&self) -> &dyn PriorRules {
        match self {
            Self::Simplex(prior) => &**prior,
            Self::Rate(prior) => &**prior,
        }
    }

    /// Refuses a shape that the prior does not fit; see [`PriorRules::check`].
    ///
    /// # Errors
    ///
    /// [`PriorError::Shape`].
    pub fn check(&self, shape: (usize, usize)) -> Result<(), PriorError> {
        self.rules().check(shape)
    }

    /// The pseudo-counts of the prior; see [`PriorRules::pseudo_counts`].
    pub fn pseudo_counts(&self, shape: (usize, usize)) -> Option<DMatrix<f64>> {
        self.rules().pseudo_counts(shape)
    }

    /// Whether the prior has a density; see [`PriorRules::has_density`].
    pub fn has_density(&self) -> bool {
        self.rules().has_density()
    }

    /// Whether the prior may empty an entry; see [`PriorRules::may_empty`].
    pub fn may_empty(&self) -> bool {
        self.rules().may_empty()
    }

    /// Whether the prior changes no more; see [`PriorRules::steady`].
    pub fn steady(&self, iteration: usize) -> bool {
        self.rules().steady(iteration)
    }

    /// The log-density of a block.
    pub fn ln_density(&self, block: &DMatrix<T>, step: &Step<'_>) -> f64 {
        match self {
            Self::Simplex(prior) => prior.ln_density(block, step),
            Self::Rate(prior) => prior.ln_density(block, step),
        }
    }
}
