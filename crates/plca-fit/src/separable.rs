//! Models of which every factor, the others fixed, falls apart into one problem per row.

use std::fmt::Debug;

use nalgebra::DMatrix;
use plca_tensor::{Data, Real};

use super::{BlockSpec, FitError, Parameters};

pub use super::solver::fast::{Product, transpose_to};

/// A model of which every factor, the others fixed, falls apart into one problem for each row: what coordinate descent asks for.
pub trait Separable<T: Real>: Debug {
    /// The data.
    fn data(&self) -> &dyn Data<T>;

    /// The log-likelihood that no model of the data can exceed, in their [unit](Data::unit): `Σ V ln (V / u)`.
    ///
    /// # Errors
    ///
    /// Data that cannot be read.
    fn self_information(&self) -> Result<f64, FitError> {
        Ok(self.data().self_information_in(self.data().unit())?)
    }

    /// Which modes are free and what their priors add.
    fn plan(&self) -> &Plan;

    /// The parameters as a product; of its scale only what lies within a row of the given mode counts.
    fn product(&self, at: &Parameters<T>) -> Product<T>;

    /// Writes the free blocks.
    fn write(&self, product: &Product<T>, at: &mut Parameters<T>);

    /// The objective without priors, from the likelihood at the best scale, `Σ V ln P - v ln Σ P` over the observed cells. Default: the same.
    fn value(&self, ln_lik: f64) -> f64 {
        ln_lik
    }
}

/// The free modes of a separable model, and what their priors add.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The number of components, `K`.
    pub components: usize,
    /// The free modes, in the order of their updates.
    pub free: Vec<usize>,
    /// The pseudo-counts of every mode, `K x I`, where there is a prior, in the unit of counts.
    pub pseudo: Vec<Option<DMatrix<f64>>>,
    /// Pseudo-counts of the weights.
    pub weights: Option<Vec<f64>>,
    /// The mode whose rows are distributions, those of the others being columns.
    pub given: Option<usize>,
}

impl Plan {
    /// Whether the objective has more than the likelihood.
    pub fn has_priors(&self) -> bool {
        self.weights.is_some() || self.pseudo.iter().any(Option::is_some)
    }
}

/// Pseudo-counts of a block's prior, if it has one that adds any.
///
/// # Errors
///
/// [`FitError::NotSeparable`] for a prior that is more than pseudo-counts, and for frozen components.
pub fn pseudo_counts<T: Real>(spec: &BlockSpec<T>) -> Result<Option<DMatrix<f64>>, FitError> {
    refuse(
        spec.is_partly_frozen(),
        &format!("frozen components of `{}`", spec.name),
    )?;
    let Some(prior) = &spec.prior else {
        return Ok(None);
    };
    let counts = prior.rules().pseudo_counts(spec.shape);
    let counts = counts.ok_or_else(|| FitError::NotSeparable {
        what: format!("the prior on `{}`", spec.name),
    })?;
    Ok(counts.iter().any(|&c| c > 0.0).then_some(counts))
}

/// Refuses what only plain iterations can do.
///
/// # Errors
///
/// [`FitError::NotSeparable`] if `unfit`.
pub fn refuse(unfit: bool, what: &str) -> Result<(), FitError> {
    match unfit {
        true => Err(FitError::NotSeparable { what: what.into() }),
        false => Ok(()),
    }
}
