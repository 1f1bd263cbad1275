//! `pntf`: weights and factors on the simplex under squared error, any order.

use plca_fit::AnyModel;
use plca_io::Element;
use plca_tensor::Cp;
use pntf_l2::{Pntf, PntfState};

use super::options::{refuse, refuse_signed, refuse_unsigned};
use super::{ModelKind, Takes, of_state};
use crate::approximation::{Approximation, Products};
use crate::args::{FitArgs, TransformArgs};
use crate::blocks::matrix;
use crate::failure::Failure;
use crate::saved::Saved;
use crate::transform::{Found, along, explain};

/// The model `pntf`.
pub(crate) struct OnSimplex;

impl ModelKind for OnSimplex {
    of_state!(PntfState<f64>, boxed);

    fn about(&self) -> &'static str {
        "Factorization on the simplex of any order, under squared error"
    }

    fn component_axis(&self, block: &str) -> usize {
        usize::from(block != "weights")
    }

    fn takes(&self) -> Takes {
        Takes::Numbers
    }

    fn objective(&self, _: bool) -> &'static str {
        "squared_error"
    }

    fn normalises(&self) -> bool {
        true
    }

    fn transform(&self, file: Saved, args: &TransformArgs) -> Result<Found, Failure> {
        let order = file.order()?;
        let along = along(args, order - 1, |d| d < order)?;
        let state: PntfState<f64> = file.state()?;
        explain(
            &OnSimplex,
            args,
            along,
            state.weights().len(),
            |data, how| {
                let explained = state.transform(data, &how.along(along))?;
                let mixture = matrix(explained.fit.state().mixture());
                Ok((
                    explained.untyped(),
                    [("mixture".to_string(), mixture)].into(),
                ))
            },
        )
    }

    fn approximation(&self, file: Saved) -> Result<Box<dyn Approximation>, Failure> {
        let with_model =
            |state: &_, f: &mut dyn FnMut(&Cp<'_, f64>)| PntfState::with_model(state, |cp| f(cp));
        Ok(Box::new(Products::<PntfState<f64>>::of(file, with_model)?))
    }
}

/// Refuses what models under squared error do not have.
pub(super) fn refuse_likelihoods(args: &FitArgs, model: &str) -> Result<(), Failure> {
    refuse_unsigned(args, model)?;
    refuse_signed(args, model)?;
    refuse(!args.prior.is_empty(), "--prior", model)?;
    refuse(args.priors.is_some(), "--priors", model)
}

/// The model of the command line.
fn boxed<T: Element>(
    args: &FitArgs,
    rank: usize,
    _: &[usize],
) -> Result<Box<dyn AnyModel<T>>, Failure> {
    refuse_likelihoods(args, "pntf")?;
    let mut builder = Pntf::builder(rank).normalise(!args.no_normalise);
    for name in &args.fix {
        builder = builder.freeze(name);
    }
    Ok(Box::new(builder.build()?))
}
