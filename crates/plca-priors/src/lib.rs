//! Priors on the blocks of a probabilistic factorization.
//!
//! A block is a matrix whose columns are distributions. A [`SimplexPrior`] turns the expected counts of the E-step into
//! the block that maximises the expected log-posterior: the M-step. The trait is object-safe, so models hold
//! `Arc<dyn SimplexPrior<T>>` and users add priors of their own. A [`RatePrior`] does the same for a block of rates.
//!
//! ```
//! use nalgebra::dmatrix;
//! use plca_priors::{Dirichlet, SimplexPrior, Step};
//! let prior = Dirichlet::symmetric(1.5)?;
//! let mut theta = dmatrix![0.5; 0.5];
//! prior.update(&dmatrix![3.0; 0.0], &mut theta, &Step::at(1))?;
//! assert_eq!(theta, dmatrix![3.5 / 4.0; 0.5 / 4.0]);
//! # Ok::<(), plca_priors::PriorError>(())
//! ```

mod columns;
mod cross_entropy;
mod dirichlet;
mod entropic;
mod flat;
mod gamma;
#[cfg(feature = "laws")]
pub mod laws;
mod logistic_normal;
mod rate_prior;
mod schedule;
mod simplex_prior;

pub use cross_entropy::{CrossEntropy, CrossEntropyOrder, CrossEntropyStep, pair_divergences};
pub use dirichlet::Dirichlet;
pub use entropic::Entropic;
pub use flat::Flat;
pub use gamma::{Gamma, Values};
pub use logistic_normal::LogisticNormal;
pub use rate_prior::RatePrior;
pub use schedule::{Schedule, Scheduled, Weighted};
pub use simplex_prior::{PriorError, PriorRules, SimplexPrior, Step, check_counts};
