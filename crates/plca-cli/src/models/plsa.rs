//! `plsa`: asymmetric, either direction.

use nalgebra::DMatrix;
use plca_em::{Given, Plsa, PlsaState};
use plca_fit::AnyModel;
use plca_io::Element;

use super::options::{missing, need_matrix, refuse, refuse_signed, temper};
use super::priors::{Block, priors};
use super::{ModelKind, of_state};
use crate::approximation::{Approximation, Products};
use crate::args::{FitArgs, Precision, SelectArgs, TransformArgs};
use crate::blocks::matrix;
use crate::failure::Failure;
use crate::online;
use crate::saved::Saved;
use crate::select::{self, Table};
use crate::transform::{Found, along, explain};

/// The model `plsa`.
pub(crate) struct Asymmetric;

impl ModelKind for Asymmetric {
    of_state!(PlsaState<f64>, boxed);

    fn about(&self) -> &'static str {
        "Asymmetric PLSA of a matrix"
    }

    fn free_blocks(&self, _: usize) -> Vec<String> {
        // The marginal and the scale always come from the data and the fit.
        ["basis", "mixture"].map(String::from).to_vec()
    }

    fn component_axis(&self, block: &str) -> usize {
        usize::from(block == "basis")
    }

    fn separates(&self) -> bool {
        true
    }

    fn out_of_core(&self) -> bool {
        true
    }

    fn online(&self, args: &FitArgs) -> Result<(), Failure> {
        let name = |_| "basis".into();
        match args.precision {
            Precision::F64 => online::fit(args, name, Some("marginal"), model::<f64>),
            Precision::F32 => online::fit(args, name, Some("marginal"), model::<f32>),
        }
    }

    fn select(&self, args: &SelectArgs) -> Result<Table, Failure> {
        select::likelihood(args)
    }

    fn transform(&self, mut file: Saved, args: &TransformArgs) -> Result<Found, Failure> {
        // The observations are what was given.
        let given = saved_direction(&file);
        let along = along(args, given.mode(), |d| d == given.mode())?;
        let basis = file.distributions("basis")?;
        let k = basis.ncols();
        let one = DMatrix::from_element(k, 1, 1.0 / k as f64);
        let state = PlsaState::new(given, basis, one, vec![1.0]).map_err(|e| file.failure(e))?;
        explain(&Asymmetric, args, along, k, |data, how| {
            let explained = state.transform(data, &how)?;
            let mixture = matrix(explained.fit.state().mixture());
            let blocks = [("mixture".to_string(), mixture)];
            Ok((explained.untyped(), blocks.into()))
        })
    }

    fn approximation(&self, file: Saved) -> Result<Box<dyn Approximation>, Failure> {
        Ok(Box::new(Products::<PlsaState<f64>>::of(
            file,
            |state, f| state.with_scaled(|cp| f(cp)),
        )?))
    }
}

fn boxed<T: Element>(
    args: &FitArgs,
    rank: usize,
    shape: &[usize],
) -> Result<Box<dyn AnyModel<T>>, Failure> {
    Ok(Box::new(model::<T>(args, rank, shape)?))
}

/// The direction that a model file was fitted in.
fn saved_direction(file: &Saved) -> Given {
    if file.metadata["settings"]["given"] == 0 {
        Given::Rows
    } else {
        Given::Columns
    }
}

/// The model of the command line, for data of this shape.
fn model<T: Element>(args: &FitArgs, rank: usize, shape: &[usize]) -> Result<Plsa<T>, Failure> {
    refuse(args.update.is_some(), "--update", "plsa")?;
    refuse_signed(args, "plsa")?;
    refuse(args.temper_prior, "--temper-prior", "plsa")?;
    need_matrix(&args.data, "plsa", shape)?;
    if missing(args) == Some(plca_em::Missing::Multiplicative) {
        return Err(Failure::usage(
            "--missing-method multiplicative: plsa treats missing cells by imputation only",
        ));
    }
    let given = given(args.given);
    let mut builder = Plsa::builder(rank).given(given).temper(temper(args)?.0);
    for name in &args.fix {
        builder = builder.freeze(name);
    }
    let blocks = [
        Block::matrix("basis", shape[given.explained()], rank),
        Block::matrix("mixture", rank, shape[given.mode()]),
    ];
    for (name, prior) in priors(args, &blocks)? {
        builder = builder.prior(name, prior);
    }
    Ok(builder.build()?)
}

/// The direction of `--given`.
fn given(mode: Option<u8>) -> Given {
    if mode == Some(0) {
        Given::Rows
    } else {
        Given::Columns
    }
}
