//! `snmf-ding`: semi-NMF in squared error, the baseline.

use skellam_snmf::{Ding, DingState};

use super::{ModelKind, Takes, of_state};
use crate::approximation::{Approximation, Fitted};
use crate::args::FitArgs;
use crate::failure::Failure;
use crate::saved::Saved;

/// The model `snmf-ding`.
pub(crate) struct DingSemiNmf;

impl ModelKind for DingSemiNmf {
    of_state!(DingState<f64>, model);

    fn about(&self) -> &'static str {
        "Semi-NMF of a matrix of either sign in squared error (Ding 2010)"
    }

    fn options(&self) -> &'static str {
        "--transpose"
    }

    /// The basis follows from the activations.
    fn free_blocks(&self, _: usize) -> Vec<String> {
        vec!["activations".into()]
    }

    fn takes(&self) -> Takes {
        Takes::SignedMatrix
    }

    fn objective(&self, _: bool) -> &'static str {
        "squared_error"
    }

    fn approximation(&self, file: Saved) -> Result<Box<dyn Approximation>, Failure> {
        Ok(Fitted::lawless(file.state::<DingState<f64>>()?))
    }
}

fn model(_: &FitArgs, rank: usize, _: &[usize]) -> Result<Ding, Failure> {
    Ok(Ding::new(rank))
}
