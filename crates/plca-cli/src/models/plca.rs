//! `plca`: symmetric, any order.

use nalgebra::{DMatrix, DVector};
use plca_em::{Plca, PlcaState};
use plca_fit::AnyModel;
use plca_io::Element;

use super::options::{missing, refuse, refuse_signed, temper};
use super::priors::{Block, priors};
use super::{ModelKind, of_state};
use crate::approximation::{Approximation, Products};
use crate::args::{FitArgs, Precision, SelectArgs, TransformArgs};
use crate::blocks::{matrix, vector};
use crate::failure::Failure;
use crate::online;
use crate::saved::Saved;
use crate::select::{self, Table};
use crate::transform::{Found, along, explain};

/// The model `plca`.
pub(crate) struct Symmetric;

impl ModelKind for Symmetric {
    of_state!(PlcaState<f64>, boxed);

    fn about(&self) -> &'static str {
        "Symmetric PLCA of any order"
    }

    fn component_axis(&self, block: &str) -> usize {
        usize::from(block != "weights")
    }

    fn separates(&self) -> bool {
        true
    }

    fn out_of_core(&self) -> bool {
        true
    }

    fn online(&self, args: &FitArgs) -> Result<(), Failure> {
        match args.precision {
            Precision::F64 => online::fit(args, factor, None, model::<f64>),
            Precision::F32 => online::fit(args, factor, None, model::<f32>),
        }
    }

    fn select(&self, args: &SelectArgs) -> Result<Table, Failure> {
        select::likelihood(args)
    }

    fn transform(&self, mut file: Saved, args: &TransformArgs) -> Result<Found, Failure> {
        let order = file.order()?;
        let along = along(args, order - 1, |d| d < order)?;
        // A stream has no factor of what is looked for.
        let streamed = !file.metadata["settings"]["online"].is_null();
        let learnt = (0..order).filter(|&j| j != along || !streamed);
        let learnt = learnt.map(|j| file.distributions(&factor(j)));
        let mut factors = learnt.collect::<Result<Vec<_>, _>>()?;
        file.agree(factors.iter().map(DMatrix::ncols))?;
        let k = match factors.first() {
            Some(factor) => factor.ncols(),
            None => file.vector("weights")?.len(),
        };
        if streamed {
            factors.insert(along, DMatrix::from_element(1, k, 1.0));
        }
        let even = DVector::from_element(k, 1.0 / k as f64);
        let state = PlcaState::new(even, factors).map_err(|e| file.failure(e))?;
        let mut found = explain(&Symmetric, args, along, k, |data, how| {
            let how = how.along(along);
            let explained = state.transform(data, &how)?;
            let found = explained.fit.state();
            let blocks = [
                (
                    "weights".to_string(),
                    vector(&DVector::from_column_slice(found.weights())),
                ),
                (factor(along), matrix(found.factor(along))),
            ];
            Ok((explained.untyped(), blocks.into()))
        })?;
        // There is one gap for all observations.
        if let Some(gap) = found.arrays.get_mut("gap") {
            gap.shape.clear();
        }
        Ok(found)
    }

    fn approximation(&self, file: Saved) -> Result<Box<dyn Approximation>, Failure> {
        Ok(Box::new(Products::<PlcaState<f64>>::of(
            file,
            |state, f| state.with_model(|cp| f(cp)),
        )?))
    }
}

/// Name of the block of dimension `j`.
pub(super) fn factor(j: usize) -> String {
    format!("factor_{j}")
}

fn boxed<T: Element>(
    args: &FitArgs,
    rank: usize,
    shape: &[usize],
) -> Result<Box<dyn AnyModel<T>>, Failure> {
    Ok(Box::new(model::<T>(args, rank, shape)?))
}

/// The model of the command line, for data of this shape.
fn model<T: Element>(args: &FitArgs, rank: usize, shape: &[usize]) -> Result<Plca<T>, Failure> {
    refuse(args.given.is_some(), "--given", "plca")?;
    refuse_signed(args, "plca")?;
    refuse(args.update.is_some(), "--update", "plca")?;
    let mut builder = Plca::builder(rank)
        .temper(temper(args)?.0)
        .temper_prior(args.temper_prior);
    for name in &args.fix {
        builder = builder.freeze(name);
    }
    let factors = shape.iter().enumerate();
    let factors = factors.map(|(j, &n)| Block::matrix(factor(j), n, rank));
    let blocks: Vec<_> = factors.chain([Block::vector("weights", rank)]).collect();
    for (name, prior) in priors(args, &blocks)? {
        builder = builder.prior(name, prior);
    }
    if let Some(missing) = missing(args) {
        builder = builder.missing(missing);
    }
    Ok(builder.build()?)
}
