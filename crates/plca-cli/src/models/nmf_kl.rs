//! `nmf-kl`: KL-NMF, never renormalised.

use plca_em::{Nmf, NmfState, Update};
use plca_fit::AnyModel;
use plca_io::Element;

use super::options::{missing, need_matrix, refuse, refuse_signed};
use super::{ModelKind, of_state};
use crate::approximation::{Approximation, Products};
use crate::args::{self, FitArgs, SelectArgs, TransformArgs};
use crate::blocks::matrix;
use crate::failure::Failure;
use crate::saved::Saved;
use crate::select::{self, Table};
use crate::transform::{Found, along, explain};

/// The model `nmf-kl`.
pub(crate) struct Unnormalised;

impl ModelKind for Unnormalised {
    of_state!(NmfState<f64>, boxed);

    fn about(&self) -> &'static str {
        "KL-NMF of a matrix"
    }

    fn component_axis(&self, block: &str) -> usize {
        usize::from(block == "w")
    }

    fn separates(&self) -> bool {
        true
    }

    fn out_of_core(&self) -> bool {
        true
    }

    fn objective(&self, _: bool) -> &'static str {
        "kl_divergence"
    }

    fn select(&self, args: &SelectArgs) -> Result<Table, Failure> {
        select::likelihood(args)
    }

    fn transform(&self, file: Saved, args: &TransformArgs) -> Result<Found, Failure> {
        let along = along(args, 1, |d| d < 2)?;
        let state: NmfState<f64> = file.state()?;
        explain(
            &Unnormalised,
            args,
            along,
            state.w().ncols(),
            |data, how| {
                let how = how.along(along);
                let explained = state.transform(data, &how)?;
                let found = explained.fit.state();
                let (name, block) = [("w", found.w()), ("h", found.h())][along];
                let blocks = [(name.to_string(), matrix(block))];
                Ok((explained.untyped(), blocks.into()))
            },
        )
    }

    fn approximation(&self, file: Saved) -> Result<Box<dyn Approximation>, Failure> {
        Ok(Box::new(Products::<NmfState<f64>>::of(
            file,
            |state, f| state.with_model(|cp| f(cp)),
        )?))
    }
}

/// The model of the command line, for data of this shape.
fn boxed<T: Element>(
    args: &FitArgs,
    rank: usize,
    shape: &[usize],
) -> Result<Box<dyn AnyModel<T>>, Failure> {
    refuse(args.temper.is_some(), "--temper", "nmf-kl")?;
    refuse(args.given.is_some(), "--given", "nmf-kl")?;
    refuse_signed(args, "nmf-kl")?;
    refuse(args.temper_prior, "--temper-prior", "nmf-kl")?;
    let none = "(its blocks are no distributions; use plca)";
    refuse(!args.prior.is_empty(), &format!("--prior {none}"), "nmf-kl")?;
    refuse(args.priors.is_some(), &format!("--priors {none}"), "nmf-kl")?;
    need_matrix(&args.data, "nmf-kl", shape)?;
    let mut builder = Nmf::builder(rank);
    if let Some(update) = args.update {
        builder = builder.update(match update {
            args::Update::Simultaneous => Update::Simultaneous,
            args::Update::Sequential => Update::Sequential,
        });
    }
    if let Some(missing) = missing(args) {
        builder = builder.missing(missing);
    }
    for name in &args.fix {
        builder = builder.freeze(name);
    }
    Ok(Box::new(builder.build()?))
}
