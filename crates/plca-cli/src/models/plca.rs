//! `plca`: symmetric, any order.

use plca_fit::Settings;
use nalgebra::{DMatrix, DVector};
use plca_em::{Plca, PlcaState};

use super::options::{missing, temper};
use super::priors::{Block, priors};
use super::{ModelKind, of_state};
use crate::approximation::{Approximation, Fitted};
use crate::args::{ConsensusArgs, FitArgs, Precision, SelectArgs, TransformArgs};
use crate::consensus::Candidate;
use crate::failure::Failure;
use crate::given;
use crate::online::{self, Beside};
use crate::saved::Saved;
use crate::select::{self, Table, Validated};
use crate::shards;
use crate::transform::{Answer, Found, along, explain};

/// The model `plca`.
pub(crate) struct Symmetric;

impl ModelKind for Symmetric {
    of_state!(PlcaState<f64>, model);

    fn about(&self) -> &'static str {
        "Symmetric PLCA of any order"
    }

    fn options(&self) -> &'static str {
        "--temper --temper-prior --missing-method --kkt-tol --prior --priors --fix --freeze-entries --accelerate --out-of-core --shards --stepwise --online"
    }

    fn shards(&self, args: &FitArgs) -> Result<(), Failure> {
        match args.precision {
            Precision::F64 => shards::fit::<f64, _>(args, model),
            Precision::F32 => shards::fit::<f32, _>(args, model),
        }
    }

    fn separates(&self) -> bool {
        true
    }

    fn online(&self, args: &FitArgs) -> Result<(), Failure> {
        match args.precision {
            Precision::F64 => online::fit::<f64, _>(args, factor, Beside::Weights, model),
            Precision::F32 => online::fit::<f32, _>(args, factor, Beside::Weights, model),
        }
    }

    fn select(&self, args: &SelectArgs) -> Result<Table, Failure> {
        select::likelihood(args)
    }

    fn cross_validates(&self) -> bool {
        true
    }

    fn cross_validate(&self, args: &SelectArgs) -> Result<Validated, Failure> {
        select::validated(args, |rank| {
            let model = Plca::new(rank);
            let model = match missing(args.validation.missing_method) {
                Some(missing) => model.missing(missing),
                None => model,
            };
            Ok(model.checked()?)
        })
    }

    fn consensus(&self, _: &ConsensusArgs, rank: usize) -> Result<Candidate, Failure> {
        Ok(Candidate::new(Plca::new(rank), "factor_0"))
    }

    fn transform(&self, mut file: Saved, args: &TransformArgs) -> Result<Found, Failure> {
        let order = file.order()?;
        let along = along(args, order - 1, |d| d < order)?;
        // A stream has no factor of what is looked for.
        let streamed = !file.metadata["settings"]["online"].is_null();
        let learnt = (0..order).filter(|&j| j != along || !streamed);
        let learnt = learnt.map(|j| file.distributions(&factor(j)));
        let mut factors = learnt.collect::<Result<Vec<_>, _>>()?;
        let k = match factors.first() {
            Some(factor) => factor.ncols(),
            None => file.block("weights")?.nrows(),
        };
        if streamed {
            factors.insert(along, DMatrix::from_element(1, k, 1.0));
        }
        let even = DVector::from_element(k, 1.0 / k as f64);
        let state = PlcaState::new(even, factors).map_err(|e| file.failure(e))?;
        let blocks = ["weights", &factor(along), "scale"];
        let found = explain(self, args, (along, k), &blocks, |data, how| {
            let how = how.along(along);
            Ok(match args.each {
                true => Answer::Each(state.transform_each(data, &how)?),
                false => state.transform(data, &how)?.untyped().into(),
            })
        })?;
        Ok(match args.each {
            true => found,
            false => found.with_one_gap(),
        })
    }

    fn approximation(&self, file: Saved) -> Result<Box<dyn Approximation>, Failure> {
        Ok(Fitted::factored(file.state::<PlcaState<f64>>()?))
    }
}

/// Name of the block of dimension `j`.
pub(super) fn factor(j: usize) -> String {
    format!("factor_{j}")
}

fn model(args: &FitArgs, rank: usize, shape: &[usize]) -> Result<Plca, Failure> {
    let model = Plca::new(rank).temper(temper(args)?.0);
    let model = model.temper_prior(args.temper_prior);
    let mut model = given::freeze(args, shape, model)?;
    let factors = shape.iter().enumerate();
    let factors = factors.map(|(j, &n)| Block::matrix(factor(j), n, rank));
    let blocks: Vec<_> = factors.chain([Block::vector("weights", rank)]).collect();
    for (name, prior) in priors(&args.prior, args.priors.as_deref(), &blocks)? {
        model = model.prior(name, prior);
    }
    if let Some(missing) = missing(args.missing_method) {
        model = model.missing(missing);
    }
    Ok(model.checked()?)
}
