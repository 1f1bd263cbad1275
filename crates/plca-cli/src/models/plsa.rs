//! `plsa`: asymmetric, either direction.

use nalgebra::{DMatrix, DVector};
use plca_em::{Given, Plsa, PlsaState};
use plca_fit::engine::AnyModel;
use plca_io::Element;

use super::options::{missing, need_matrix, refuse, refuse_signed, temper};
use super::priors::{Block, priors};
use super::{Makers, ModelKind};
use crate::approximation::{Approximation, Product};
use crate::args::{FitArgs, Precision, SelectArgs, TransformArgs};
use crate::blocks::{SCALE, matrix};
use crate::failure::Failure;
use crate::fit;
use crate::online;
use crate::saved::Saved;
use crate::select::{self, Table};
use crate::transform::{Found, along, explain};

/// The model `plsa`.
pub(crate) struct Asymmetric;

impl ModelKind for Asymmetric {
    fn name(&self) -> &'static str {
        "plsa"
    }

    fn about(&self) -> &'static str {
        "Asymmetric PLSA of a matrix"
    }

    fn blocks(&self, _: usize) -> Vec<String> {
        ["basis", "mixture", "marginal", SCALE]
            .map(String::from)
            .to_vec()
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

    fn fit(&self, args: &FitArgs) -> Result<(), Failure> {
        let makers = Makers {
            f64: boxed,
            f32: boxed,
        };
        fit::fit(args, makers)
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
        explain(args, along, k, |data, how| {
            let explained = state.transform(data, &how)?;
            let mixture = matrix(explained.fit.state().mixture());
            let blocks = [("mixture".to_string(), mixture)];
            Ok((explained.untyped(), blocks.into()))
        })
    }

    fn approximation(&self, mut file: Saved) -> Result<Box<dyn Approximation>, Failure> {
        let basis = file.matrix("basis")?;
        let mixture = file.matrix("mixture")?;
        let marginal = file.vector("marginal")?;
        file.agree([basis.ncols(), mixture.nrows()])?;
        let count = mixture.ncols();
        if marginal.len() != count {
            let what = format!(
                "`marginal` has {} entries, `mixture` {count}",
                marginal.len()
            );
            return Err(file.failure(what));
        }
        let (shares, scale) = match file.scales(count)? {
            Some(scales) => (scales, 1.0),
            None => (marginal, file.total()),
        };
        let explained =
            DMatrix::from_fn(count, mixture.nrows(), |y, z| mixture[(z, y)] * shares[y]);
        let weights = DVector::from_element(basis.ncols(), 1.0);
        let factors = match saved_direction(&file) {
            Given::Rows => vec![explained, basis],
            Given::Columns => vec![basis, explained],
        };
        Ok(Box::new(Product {
            weights,
            factors,
            scale,
        }))
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
