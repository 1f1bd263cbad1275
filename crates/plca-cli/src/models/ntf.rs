//! `ntf-l2`: non-negative factors of any order under squared error, the baseline.

use plca_fit::{AnyModel, Reconstruct as _};
use plca_io::Element;
use plca_tensor::Cp;
use pntf_l2::{Ntf, NtfState};

use super::options::refuse;
use super::pntf::refuse_likelihoods;
use super::{ModelKind, Takes, of_state};
use crate::approximation::{Approximation, Products};
use crate::args::{FitArgs, TransformArgs};
use crate::blocks::matrix;
use crate::failure::Failure;
use crate::saved::Saved;
use crate::solver::extrapolated;
use crate::transform::{Found, along, explain};

/// The model `ntf-l2`.
pub(crate) struct LeeSeung;

impl ModelKind for LeeSeung {
    of_state!(NtfState<f64>, boxed);

    fn about(&self) -> &'static str {
        "Non-negative factors of any order under squared error (Lee and Seung)"
    }

    fn component_axis(&self, _: &str) -> usize {
        1
    }

    fn takes(&self) -> Takes {
        Takes::Numbers
    }

    fn objective(&self, _: bool) -> &'static str {
        "squared_error"
    }

    fn transform(&self, file: Saved, args: &TransformArgs) -> Result<Found, Failure> {
        let order = file.order()?;
        let along = along(args, order - 1, |d| d < order)?;
        let state: NtfState<f64> = file.state()?;
        explain(&LeeSeung, args, along, state.components(), |data, how| {
            let explained = state.transform(data, &how.along(along))?;
            let factor = matrix(explained.fit.state().factor(along));
            let blocks = [(format!("factor_{along}"), factor)];
            Ok((explained.untyped(), blocks.into()))
        })
    }

    fn approximation(&self, file: Saved) -> Result<Box<dyn Approximation>, Failure> {
        let with_model =
            |state: &_, f: &mut dyn FnMut(&Cp<'_, f64>)| NtfState::with_model(state, |cp| f(cp));
        Ok(Box::new(Products::<NtfState<f64>>::of(file, with_model)?))
    }
}

/// The model of the command line.
fn boxed<T: Element>(
    args: &FitArgs,
    rank: usize,
    _: &[usize],
) -> Result<Box<dyn AnyModel<T>>, Failure> {
    refuse_likelihoods(args, "ntf-l2")?;
    if let Some(option) = extrapolated(args) {
        refuse(true, option, "ntf-l2")?;
    }
    let mut builder = Ntf::builder(rank);
    for name in &args.fix {
        builder = builder.freeze(name);
    }
    Ok(Box::new(builder.build()?))
}
