//! The model `communities` of the command.

#[allow(unreachable_pub, reason = "it is written for a library")]
mod communities;

use plca_fit::AnyModel;
use plca_io::Element;

use super::priors::{Block, priors};
use super::{ModelKind, of_state};
use crate::approximation::{Approximation, Cells};
use crate::args::FitArgs;
use crate::failure::Failure;
use crate::saved::Saved;
use communities::{Communities, CommunitiesState};

/// The model `communities`.
pub(crate) struct OfGraphs;

impl ModelKind for OfGraphs {
    of_state!(CommunitiesState<f64>, boxed);

    fn about(&self) -> &'static str {
        "Communities of a graph: PLCA with one factor for both modes"
    }

    fn component_axis(&self, block: &str) -> usize {
        usize::from(block != "weights")
    }

    fn approximation(&self, file: Saved) -> Result<Box<dyn Approximation>, Failure> {
        Ok(Box::new(Cells(file.state::<CommunitiesState<f64>>()?)))
    }
}

fn boxed<T: Element>(
    args: &FitArgs,
    rank: usize,
    shape: &[usize],
) -> Result<Box<dyn AnyModel<T>>, Failure> {
    let mut builder = Communities::builder(rank);
    for name in &args.fix {
        builder = builder.freeze(name);
    }
    let blocks = [
        Block::vector("weights", rank),
        Block::matrix("members", shape[0], rank),
    ];
    for (name, prior) in priors(args, &blocks)? {
        builder = builder.prior(name, prior);
    }
    Ok(Box::new(builder.build()?))
}
