//! What the solver asks of a model.

use nalgebra::DMatrix;
use plca_fit::Algorithm;
use plca_tensor::{Data, Real};

use super::Product;
use crate::{EmError, Prior};

/// A model of which every factor, the others fixed, is one problem per row.
pub trait Separable<T: Real>: Algorithm<Error = EmError> {
    /// What the model is fitted to.
    /// The data.
    fn data(&self) -> &dyn Data<T>;
    /// `Σ V ln V`.
    fn self_information(&self) -> Result<f64, EmError> {
        Ok(self.data().self_information()?)
    }
    /// Which modes are free and what their priors add.
    ///
    /// # Errors
    ///
    /// [`EmError::NotSeparable`].
    fn plan(&self) -> Result<Plan, EmError>;
    /// Refuses a state that is no model of the data, or a tempered one.
    ///
    /// # Errors
    ///
    /// Those of a step.
    fn check_state(&self, state: &Self::State) -> Result<(), EmError>;
    /// The state as a product; of its scale only what lies within a row of the given mode counts.
    fn product(&self, state: &Self::State) -> Product<T>;
    /// Writes the free blocks.
    fn write(&self, plan: &Plan, product: &Product<T>, state: &mut Self::State);
    /// The objective of a state from its likelihood at the best scale, `Σ V ln P - v ln Σ P` over the observed cells.
    fn reached(&self, ln_lik: f64, state: &Self::State) -> f64;
}

/// How a model separates.
#[derive(Clone, Debug)]
pub struct Plan {
    /// `K`.
    pub(crate) components: usize,
    /// The free modes, in the order of their updates.
    pub(crate) free: Vec<usize>,
    /// Pseudo-counts of every mode, `K x I`, where there is a prior.
    pub(crate) pseudo: Vec<Option<DMatrix<f64>>>,
    /// Pseudo-counts of the weights.
    pub(crate) weights: Option<Vec<f64>>,
    /// The mode whose rows are distributions, those of the others being columns.
    pub(crate) given: Option<usize>,
}

/// Pseudo-counts of a prior on a block of this shape.
pub(crate) fn pseudo_counts<T: Real>(
    block: &str,
    prior: Option<&Prior<T>>,
    shape: (usize, usize),
) -> Result<Option<DMatrix<f64>>, EmError> {
    let Some(prior) = prior else {
        return Ok(None);
    };
    let counts = prior
        .pseudo_counts(shape)
        .ok_or_else(|| EmError::NotSeparable {
            what: format!("the prior on `{block}`"),
        })?;
    Ok(counts.iter().any(|&c| c > 0.0).then_some(counts))
}

/// Refuses what only EM can do.
pub(crate) fn refuse(unfit: bool, what: &str) -> Result<(), EmError> {
    if unfit {
        Err(EmError::NotSeparable { what: what.into() })
    } else {
        Ok(())
    }
}

impl Plan {
    /// Whether the objective has more than the likelihood.
    pub(super) fn has_priors(&self) -> bool {
        self.weights.is_some() || self.pseudo.iter().any(Option::is_some)
    }
}
