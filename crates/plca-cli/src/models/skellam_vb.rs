//! `skellam-vb`: data of either sign as a difference of rates, by variational Bayes.

use plca_fit::{Model as _, Settings, FitError, Reconstruct as _, State as _, Status};
use plca_priors::PriorSpec;
use plca_tensor::Data;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::json;
use skellam_snmf::{SnmfVb, SnmfVbState, select_components};

use super::priors::priors;
use super::skellam::{blocks, settings, prior_specs, rates, refused, signed};
use super::skellam_learn;
use super::{ModelKind, Takes, of_state};
use crate::approximation::Approximation;
use crate::args::{
    Criterion, FitArgs, LearnArgs, Precision, SelectArgs, SignedArgs, TransformArgs,
};
use crate::data::{self, load_for};
use crate::failure::Failure;
use crate::given;
use crate::limits::reasonable;
use crate::saved::Saved;
use crate::select::{Table, ranks};
use crate::shards;
use crate::transform::{Found, along, explain};

/// The model `skellam-vb`.
pub(crate) struct SkellamVb;

/// The rate of the activations without other word.
pub(super) const RATE: f64 = 1e-3;

impl ModelKind for SkellamVb {
    of_state!(SnmfVbState<f64>, model);

    fn about(&self) -> &'static str {
        "Skellam semi-NMF of a matrix of either sign, by variational Bayes"
    }

    fn options(&self) -> &'static str {
        "--transpose --m --real-data --prior --priors --fix --freeze-entries --accelerate --shards"
    }

    fn priors(&self) -> String {
        "atoms=dirichlet:A, activations=gamma:SHAPE,RATE".into()
    }

    fn takes(&self) -> Takes {
        Takes::SignedMatrix
    }

    fn shards(&self, args: &FitArgs) -> Result<(), Failure> {
        match args.precision {
            Precision::F64 => shards::fit::<f64, _>(args, model),
            Precision::F32 => shards::fit::<f32, _>(args, model),
        }
    }

    fn objective(&self, _: bool) -> &'static str {
        "elbo"
    }

    fn select(&self, args: &SelectArgs) -> Result<Table, Failure> {
        if args.criterion.is_some_and(|c| c != Criterion::Elbo) {
            return Err(Failure::usage(
                "skellam-vb has no such criterion; there is --criterion elbo",
            ));
        }
        let data = load_for::<f64>(args.model, &args.data, &args.hidden)?;
        let ranks = ranks(&args.ranks)?;
        for &rank in &ranks {
            reasonable("--ranks", rank, data.shape())?;
        }
        scores(args, &*data, &ranks)
    }

    fn learn(&self, args: &LearnArgs) -> Result<(), Failure> {
        skellam_learn::learn(args)
    }

    fn transform(&self, file: Saved, args: &TransformArgs) -> Result<Found, Failure> {
        along(args, 1, |d| d == 1)?;
        let (signed, specs) = (signed(&file)?, prior_specs(&file));
        let learnt: SnmfVbState<f64> = file.state()?;
        let (shape, k) = (learnt.shape(), learnt.components());
        let priors = priors(&specs, None, &blocks((shape[0], k, shape[1]), RATE))?;
        let model = config(&signed, &priors, k).checked()?;
        let blocks = ["activations", "activations_shape", "activations_rate"];
        explain(self, args, (1, k), &blocks, |data, how| {
            Ok(model.transform(&learnt, data, &how)?.untyped())
        })
    }

    fn approximation(&self, file: Saved) -> Result<Box<dyn Approximation>, Failure> {
        let signed = signed(&file)?;
        let state = file.state::<SnmfVbState<f64>>()?.means()?;
        Ok(rates(state, &signed))
    }
}

fn model(args: &FitArgs, rank: usize, data: &[usize]) -> Result<SnmfVb, Failure> {
    let shape = (data[0], rank, data[1]);
    let priors = priors(&args.prior, args.priors.as_deref(), &blocks(shape, RATE))?;
    let model = given::freeze(args, data, config(&args.signed, &priors, rank))?;
    model.checked().map_err(|e| refused(args, e))
}

/// The model of a command line.
pub(super) fn config(
    signed: &SignedArgs,
    priors: &[(String, PriorSpec)],
    k: usize,
) -> SnmfVb {
    let model = SnmfVb::new(k).replicates(signed.m.unwrap_or_default());
    let model = model.real_data(signed.real_data);
    let priors = priors.iter().cloned();
    priors.fold(model, |b, (name, prior)| b.prior(name, prior))
}

fn scores(args: &SelectArgs, data: &dyn Data<f64>, ranks: &[usize]) -> Result<Table, Failure> {
    let [f, n] = [data.shape()[0], data.shape()[1]];
    let priors = priors(&args.prior, None, &blocks((f, 1, n), RATE))?;
    let configure = |k| config(&args.signed, &priors, k);
    // Refused here, where it is the command line's fault.
    configure(1).check().map_err(Failure::usage)?;
    let about = |e| Failure::by(&args.data, e);
    let found = select_components(
        data,
        ranks.iter().copied(),
        configure,
        u32::try_from(args.restarts).unwrap_or(u32::MAX),
        &args.ends.stop(),
        &mut ChaCha8Rng::seed_from_u64(args.seed),
    );
    let mut found = found.map_err(about)?;
    found.sort_by_key(|c| c.components);
    let rows = found.iter().map(|c| {
        let means = c.fit.state().means()?;
        let snmf = settings(&args.signed, c.components);
        let ln_lik = snmf.bind(data)?.likelihood(means.parameters())?;
        // Smaller is better.
        let score = -c.score;
        let parameters = c.components * (2 * f - 1 + n);
        Ok(json!({
            "rank": c.components, "score": score, "log_likelihood": ln_lik, "parameters": parameters,
            "elbo": c.fit.objective(),
        }))
    });
    Ok(Table {
        criterion: "elbo",
        sample_size: data.observed().map_err(|e| Failure::by(&args.data, e))?,
        rows: rows.collect::<Result<_, FitError>>().map_err(about)?,
        cut: found
            .iter()
            .any(|c| *c.fit.status() == Status::MaxIterations),
        warnings: [
            data::warnings(args.model, data),
            args.hidden.doubts(&args.data, data)?,
        ]
        .concat(),
    })
}
