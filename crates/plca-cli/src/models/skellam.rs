//! `skellam`: data of either sign as a difference of rates, by EM.

use plca_fit::{Settings, FitError, Reconstruct};
use plca_io::ModelFile;
use serde_json::{Value, json};
use skellam_snmf::{Prior, Replicates, Snmf, SnmfState};

use super::options::has;
use super::priors::{Block, Laws, priors};
use super::{ModelKind, Takes, of_state};
use crate::approximation::{Approximation, Draws, Fitted};
use crate::args::{self, FitArgs, Precision, SignedArgs, TransformArgs};
use crate::failure::Failure;
use crate::given;
use crate::saved::Saved;
use crate::shards;
use crate::transform::{Found, along, explain};

/// The model `skellam`.
pub(crate) struct SkellamEm;

impl ModelKind for SkellamEm {
    of_state!(SnmfState<f64>, model);

    fn about(&self) -> &'static str {
        "Skellam semi-NMF of a matrix of either sign, by EM"
    }

    fn options(&self) -> &'static str {
        "--transpose --m --real-data --floor --prior --priors --fix --freeze-entries --accelerate --shards"
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

    // Its normaliser is in it without a prior too.
    fn objective(&self, _: bool) -> &'static str {
        "log_posterior"
    }

    fn transform(&self, file: Saved, args: &TransformArgs) -> Result<Found, Failure> {
        along(args, 1, |d| d == 1)?;
        let (signed, specs) = (signed(&file)?, prior_specs(&file));
        let learnt: SnmfState<f64> = file.state()?;
        let (shape, k) = (learnt.shape(), learnt.components());
        let model = settings(&signed, k).priors(Prior::flat());
        let priors = priors(&specs, None, &blocks((shape[0], k, shape[1]), 0.0))?;
        let model = priors
            .into_iter()
            .fold(model, |b, (name, prior)| b.prior(name, prior));
        let model = model.checked()?;
        explain(self, args, (1, k), &["activations"], |data, how| {
            Ok(model.transform(&learnt, data, &how)?.untyped())
        })
    }

    fn approximation(&self, file: Saved) -> Result<Box<dyn Approximation>, Failure> {
        let signed = signed(&file)?;
        Ok(rates(file.state()?, &signed))
    }
}

fn model(args: &FitArgs, rank: usize, data: &[usize]) -> Result<Snmf, Failure> {
    let shape = (data[0], rank, data[1]);
    let priors = priors(&args.prior, args.priors.as_deref(), &blocks(shape, 0.0))?;
    let model = settings(&args.signed, rank).priors(Prior::flat());
    let model = priors
        .into_iter()
        .fold(model, |b, (name, prior)| b.prior(name, prior));
    let model = model.floor(args.floor.unwrap_or(0.0));
    let model = given::freeze(args, data, model)?;
    model.checked().map_err(|e| refused(args, e))
}

/// The blocks that take priors, of `F x N` data and `K` components; of the activations the rate is this unless it is said.
pub(super) fn blocks((f, k, n): (usize, usize, usize), rate: f64) -> [Block; 2] {
    [
        Block::sides("atoms", f, k).under(Laws::Dirichlet),
        Block::matrix("activations", k, n).under(Laws::Gamma(rate)),
    ]
}

/// Why there is no such model: priors come from a file where there is one.
pub(super) fn refused(args: &FitArgs, e: FitError) -> Failure {
    match &args.priors {
        Some(path) => Failure::by(path, e),
        None => Failure::usage(e),
    }
}

/// A model of data that are taken so.
pub(super) fn settings(signed: &SignedArgs, rank: usize) -> Snmf {
    let model = Snmf::new(rank).replicates(signed.m.unwrap_or_default());
    model.real_data(signed.real_data)
}

/// What `--m` of a command line says.
pub(crate) fn asked(args: &FitArgs) -> String {
    match args.signed.m.unwrap_or_default() {
        // Other models have always had this word.
        Replicates::Auto if !has(args.model, "--m") || args.model.name().ends_with("-vb") => {
            "inf".into()
        }
        Replicates::Auto => "auto".into(),
        m => m.number().to_string(),
    }
}

/// Rates that sum to more than this many times the data have run away.
const AWAY: f64 = 10.0;

/// Writes into a model of data of this sum of absolute values, over all cells, and into its summary, how they were taken: the number of replicates, the bound, and what both rates sum
/// to in parts of the data. A warning where they have run away.
pub(crate) fn told(
    args: &FitArgs,
    absolute: f64,
    model: &mut ModelFile,
    summary: &mut Value,
) -> Option<String> {
    let scaled = args.scale_mode.map(|mode| format!("factor_{mode}"));
    let names = scaled.iter().map(String::as_str);
    let mut names = names.chain(["activations", "weights"]);
    let rates = names.find_map(|name| model.arrays.get(name))?;
    let sum: f64 = rates.values.iter().sum();
    let cancellation = if absolute > 0.0 { sum / absolute } else { 0.0 };
    let m = args.signed.m.unwrap_or_default();
    let metadata = &mut model.metadata;
    metadata["m"] = json!(m.number().to_string());
    metadata["bound"] = metadata["facts"]["bound"][0].clone();
    metadata["cancellation"] = json!(cancellation);
    summary["cancellation"] = json!(cancellation);
    let unbounded = m.is_real() && metadata["bound"].is_null();
    (unbounded && cancellation > AWAY).then(|| {
        let remedy = match m {
            _ if args.model.name().ends_with("-vb") => {
                "the priors do not bound them: they have the unit of the data, give one of the activations with --prior BLOCK=gamma:SHAPE,RATE"
            }
            Replicates::Limit => "--m auto bounds them",
            _ => "a prior of them has taken the bound away: leave it out, or raise its rate",
        };
        format!(
            "both rates together sum to {cancellation:.0} times the data: without a bound the objective improves as they grow, whatever is reconstructed; {remedy}"
        )
    })
}

/// How the model of a file took its data.
pub(super) fn signed(file: &Saved) -> Result<SignedArgs, Failure> {
    let settings = &file.metadata["settings"];
    let m = args::replicates(settings["m"].as_str().unwrap_or("inf"));
    Ok(SignedArgs {
        m: Some(m.map_err(|e| file.failure(e))?),
        real_data: settings["real_data"] == true,
    })
}

/// The priors that a model was fitted under, as far as they hold for new columns.
pub(super) fn prior_specs(file: &Saved) -> Vec<String> {
    let specs = file.metadata["settings"]["prior"].as_array();
    let specs = specs.into_iter().flatten();
    specs.filter_map(|s| s.as_str().map(String::from)).collect()
}

/// `L⁺ - L⁻`, and the sum of this number of matrices of the model: `Sk(draws L⁺, draws L⁻)`.
pub(super) fn rates(state: SnmfState<f64>, signed: &SignedArgs) -> Box<dyn Approximation> {
    let replicates = signed.m.unwrap_or_default();
    Fitted::new(state, move |state, draws| {
        if replicates.is_real() {
            return Err(Failure::usage(
                "sample: a model of real data (--m auto or inf) has no distribution to sample from; a fit with --m 1 has one",
            ));
        }
        let Draws { number, rng, into } = draws;
        let drawn = state
            .sample(number, replicates, rng)
            .map_err(Failure::new)?;
        // In row-major order.
        into.values.copy_from_slice(drawn.transpose().as_slice());
        Ok(())
    })
}
