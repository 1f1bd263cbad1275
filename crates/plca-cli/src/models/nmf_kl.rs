//! `nmf-kl`: KL-NMF, never renormalised.

use plca_fit::Settings;
use plca_em::{Nmf, NmfState, Update};

use super::options::{missing, need_matrix, unknown_update};
use super::priors::{Block, Laws, priors};
use super::{ModelKind, of_state};
use crate::approximation::{Approximation, Fitted};
use crate::args::{
    self, ConsensusArgs, FitArgs, MissingMethod, Precision, SelectArgs, TransformArgs,
};
use crate::consensus::Candidate;
use crate::failure::Failure;
use crate::given;
use crate::saved::Saved;
use crate::select::{self, Table, Validated};
use crate::shards;
use crate::transform::{Found, along, explain};

/// The model `nmf-kl`.
pub(crate) struct Unnormalised;

impl ModelKind for Unnormalised {
    of_state!(NmfState<f64>, model);

    fn about(&self) -> &'static str {
        "KL-NMF of a matrix"
    }

    fn options(&self) -> &'static str {
        "--transpose --update --missing-method --kkt-tol --prior --priors --fix --freeze-entries --accelerate --out-of-core --shards --stepwise"
    }

    fn priors(&self) -> String {
        super::priors::forms(plca_priors::RatePriors::<f64>::ALL)
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

    fn objective(&self, posterior: bool) -> &'static str {
        match posterior {
            true => "penalised_divergence",
            false => "kl_divergence",
        }
    }

    fn select(&self, args: &SelectArgs) -> Result<Table, Failure> {
        select::likelihood(args)
    }

    fn cross_validates(&self) -> bool {
        true
    }

    fn cross_validate(&self, args: &SelectArgs) -> Result<Validated, Failure> {
        let how = &args.validation;
        select::validated(args, |rank| {
            let model = updated(Nmf::new(rank), how.update, how.missing_method)?;
            Ok(model.checked()?)
        })
    }

    fn consensus(&self, _: &ConsensusArgs, rank: usize) -> Result<Candidate, Failure> {
        Ok(Candidate::new(Nmf::new(rank), "w"))
    }

    fn transform(&self, file: Saved, args: &TransformArgs) -> Result<Found, Failure> {
        let along = along(args, 1, |d| d < 2)?;
        let state: NmfState<f64> = file.state()?;
        let k = state.w().ncols();
        explain(self, args, (along, k), &[["w", "h"][along]], |data, how| {
            let mut explained = state.transform(data, &how.along(along))?.untyped();
            // Activations of 0 explain what is 0.
            explained.empty.clear();
            Ok(explained)
        })
    }

    fn approximation(&self, file: Saved) -> Result<Box<dyn Approximation>, Failure> {
        Ok(Fitted::factored(file.state::<NmfState<f64>>()?))
    }
}

fn model(args: &FitArgs, rank: usize, shape: &[usize]) -> Result<Nmf, Failure> {
    need_matrix(&args.data, "nmf-kl", shape)?;
    let mut model = given::freeze(args, shape, Nmf::new(rank))?;
    let blocks = [
        Block::matrix("w", shape[0], rank).under(Laws::Rates),
        Block::matrix("h", rank, shape[1]).under(Laws::Rates),
    ];
    for (name, prior) in priors(&args.prior, args.priors.as_deref(), &blocks)? {
        model = model.prior(name, prior);
    }
    Ok(updated(model, args.update, args.missing_method)?.checked()?)
}

/// The form of the updates that was asked for.
fn updated(
    mut model: Nmf,
    update: Option<args::Update>,
    method: Option<MissingMethod>,
) -> Result<Nmf, Failure> {
    if let Some(update) = update {
        model = model.update(match update {
            args::Update::Simultaneous => Update::Simultaneous,
            args::Update::Sequential => Update::Sequential,
            other => return Err(unknown_update("nmf-kl", other, "simultaneous, sequential")),
        });
    }
    if let Some(missing) = missing(method) {
        model = model.missing(missing);
    }
    Ok(model)
}
