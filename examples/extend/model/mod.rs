//! The model `communities` by name, for the command and for Python.

#[allow(unreachable_pub, reason = "it is written for a library")]
mod communities;

use plca_fit::setting::{Named, SettingSpec};
use plca_priors::PriorSpec;

pub(super) use communities::Communities;
use communities::CommunitiesState;

use crate::approximation::Fitted;
use crate::kind::{Kind, named};
use crate::{Approximation, Law, Options, RunError, Saved, Scalar};

impl Kind for Communities {
    types!(CommunitiesState);
    by_name!(k => Communities::new(k));
    priors!();
    const ABOUT: &'static str = "Communities of a graph: PLCA with one factor for both modes";
    const RUNS: &'static str = "prior priors freeze accelerate";
    const LAWS: &'static [(&'static str, Law)] =
        &[("weights", Law::Simplex), ("members", Law::Simplex)];

    fn approximation(file: Saved) -> Result<Box<dyn Approximation>, RunError> {
        Ok(Fitted::lawless(file.state::<CommunitiesState<f64>>()?))
    }
}
