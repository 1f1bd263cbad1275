//! `plca-vb`: PLCA of any order by variational Bayes.

use std::path::Path;

use plca_em::{Plca, PlcaVb, PlcaVbState};
use plca_fit::{Settings, Model, State};

use super::bayes::{self, refused};
use super::priors::{Block, Laws, priors};
use super::skellam::prior_specs;
use super::{ModelKind, of_state};
use crate::approximation::{Approximation, Fitted};
use crate::args::{FitArgs, Precision, SelectArgs, TransformArgs};
use crate::failure::Failure;
use crate::given;
use crate::saved::Saved;
use crate::select::Table;
use crate::shards;
use crate::transform::{Answer, Found, along, explain};

/// The model `plca-vb`.
pub(crate) struct SymmetricVb;

impl ModelKind for SymmetricVb {
    of_state!(PlcaVbState<f64>, model);

    fn about(&self) -> &'static str {
        "Symmetric PLCA of any order, by variational Bayes"
    }

    fn options(&self) -> &'static str {
        "--prior --priors --fix --accelerate --shards"
    }

    fn priors(&self) -> String {
        "dirichlet:A".into()
    }

    fn objective(&self, _: bool) -> &'static str {
        "elbo"
    }

    fn shards(&self, args: &FitArgs) -> Result<(), Failure> {
        match args.precision {
            Precision::F64 => shards::fit::<f64, _>(args, model),
            Precision::F32 => shards::fit::<f32, _>(args, model),
        }
    }

    fn select(&self, args: &SelectArgs) -> Result<Table, Failure> {
        let make = |rank, shape: &[usize]| {
            let model = settings(&args.prior, None, rank, shape)?.checked();
            model.map_err(Failure::usage)
        };
        bayes::scores(args, make, |state, data| {
            let plca = Plca::new(state.weights_shape().len());
            let means = state.means()?;
            plca.bind(data)?.likelihood(means.parameters())
        })
    }

    fn transform(&self, file: Saved, args: &TransformArgs) -> Result<Found, Failure> {
        let order = file.order()?;
        let along = along(args, order - 1, |d| d < order)?;
        let specs = prior_specs(&file);
        let learnt: PlcaVbState<f64> = file.state()?;
        let k = learnt.weights_shape().len();
        let shape: Vec<usize> = learnt.factors_shape().map(|f| f.nrows()).collect();
        let model = settings(&specs, None, k, &shape)?.checked()?;
        let (factor, means) = (format!("factor_{along}_shape"), format!("factor_{along}"));
        let blocks = ["weights_shape", "weights", &factor, &means];
        explain(self, args, (along, k), &blocks, |data, how| {
            let how = how.along(along);
            Ok(match args.each {
                true => Answer::Each(model.transform_each(&learnt, data, &how)?),
                false => model.transform(&learnt, data, &how)?.untyped().into(),
            })
        })
    }

    fn approximation(&self, file: Saved) -> Result<Box<dyn Approximation>, Failure> {
        let means = file.state::<PlcaVbState<f64>>()?.means();
        Ok(Fitted::factored(means?))
    }
}

fn settings(
    specs: &[String],
    file: Option<&Path>,
    rank: usize,
    shape: &[usize],
) -> Result<PlcaVb, Failure> {
    let factors = shape.iter().enumerate();
    let factors = factors.map(|(j, &n)| Block::matrix(format!("factor_{j}"), n, rank));
    let blocks = std::iter::once(Block::vector("weights", rank)).chain(factors);
    let blocks: Vec<_> = blocks.map(|b| b.under(Laws::Dirichlet)).collect();
    let priors = priors(specs, file, &blocks)?.into_iter();
    Ok(priors.fold(PlcaVb::new(rank), |b, (name, prior)| {
        b.prior(name, prior)
    }))
}

fn model(args: &FitArgs, rank: usize, shape: &[usize]) -> Result<PlcaVb, Failure> {
    let file = args.priors.as_deref();
    let model = settings(&args.prior, file, rank, shape)?;
    let model = given::freeze(args, shape, model)?;
    model.checked().map_err(|e| refused(file, e))
}
