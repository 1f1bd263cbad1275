//! The model `communities` of the command.

#[allow(unreachable_pub, reason = "it is written for a library")]
mod communities;

use plca_io::Element;

use super::priors::{Block, priors};
use super::{ModelKind, of_state};
use crate::approximation::{Approximation, Fitted};
use crate::args::FitArgs;
use crate::failure::Failure;
use crate::saved::Saved;
use communities::{Communities, CommunitiesState};

/// The model `communities`.
pub(crate) struct OfGraphs;

impl ModelKind for OfGraphs {
    of_state!(CommunitiesState<f64>, model);

    fn about(&self) -> &'static str {
        "Communities of a graph: PLCA with one factor for both modes"
    }

    fn options(&self) -> &'static str {
        "--prior --priors --fix --accelerate"
    }

    fn approximation(&self, file: Saved) -> Result<Box<dyn Approximation>, Failure> {
        Ok(Fitted::lawless(file.state::<CommunitiesState<f64>>()?))
    }
}

fn model<T: Element>(
    args: &FitArgs,
    rank: usize,
    shape: &[usize],
) -> Result<Communities<T>, Failure> {
    let model = Communities::new(rank);
    let mut model = args.fix.iter().fold(model, |b, name| b.freeze(name));
    let blocks = [
        Block::vector("weights", rank),
        Block::matrix("members", shape[0], rank),
    ];
    for (name, prior) in priors(&args.prior, args.priors.as_deref(), &blocks)? {
        model = model.prior(name, prior);
    }
    Ok(model.checked()?)
}
