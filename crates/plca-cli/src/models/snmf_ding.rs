//! `snmf-ding`: semi-NMF in squared error, the baseline.

use plca_fit::AnyModel;
use plca_io::Element;
use skellam_snmf::{Ding, DingState};

use super::options::{refuse, refuse_signed, refuse_unsigned};
use super::{ModelKind, Takes, of_state};
use crate::approximation::{Approximation, Cells};
use crate::args::FitArgs;
use crate::failure::Failure;
use crate::saved::Saved;
use crate::solver::extrapolated;

/// The model `snmf-ding`.
pub(crate) struct DingSemiNmf;

impl ModelKind for DingSemiNmf {
    of_state!(DingState<f64>, boxed);

    fn about(&self) -> &'static str {
        "Semi-NMF of a matrix of either sign in squared error (Ding 2010)"
    }

    /// The basis follows from the activations.
    fn free_blocks(&self, _: usize) -> Vec<String> {
        vec!["activations".into()]
    }

    fn component_axis(&self, block: &str) -> usize {
        usize::from(block == "basis")
    }

    fn takes(&self) -> Takes {
        Takes::SignedMatrix
    }

    fn objective(&self, _: bool) -> &'static str {
        "squared_error"
    }

    fn approximation(&self, file: Saved) -> Result<Box<dyn Approximation>, Failure> {
        Ok(Box::new(Cells(file.state::<DingState<f64>>()?)))
    }
}

/// Refuses what the baselines do not have.
pub(super) fn refuse_all(args: &FitArgs, model: &str) -> Result<(), Failure> {
    refuse_unsigned(args, model)?;
    refuse(!args.prior.is_empty(), "--prior", model)?;
    refuse(args.priors.is_some(), "--priors", model)?;
    refuse(!args.fix.is_empty(), "--fix", model)?;
    match extrapolated(args) {
        Some(option) => refuse(true, option, model),
        None => Ok(()),
    }
}

/// The model of the command line.
fn boxed<T: Element>(
    args: &FitArgs,
    rank: usize,
    _: &[usize],
) -> Result<Box<dyn AnyModel<T>>, Failure> {
    refuse_all(args, "snmf-ding")?;
    refuse_signed(args, "snmf-ding")?;
    Ok(Box::new(Ding::builder(rank).build()?))
}
