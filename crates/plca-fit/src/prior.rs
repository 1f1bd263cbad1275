//! A prior on a block, of either kind.

use std::sync::Arc;

use nalgebra::DMatrix;
use plca_priors::{PriorRules, RatePrior, SimplexPrior, Step};
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
    /// What does not depend on the scalar.
    pub fn rules(&self) -> &dyn PriorRules {
        match self {
            Self::Simplex(prior) => &**prior,
            Self::Rate(prior) => &**prior,
        }
    }

    /// The log-density of a block.
    pub fn ln_density(&self, block: &DMatrix<T>, step: &Step<'_>) -> f64 {
        match self {
            Self::Simplex(prior) => prior.ln_density(block, step),
            Self::Rate(prior) => prior.ln_density(block, step),
        }
    }
}
