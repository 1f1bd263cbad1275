//! What the command does with single models besides what all have.

mod bayes;
pub(crate) mod made;
pub(crate) mod options;
pub(crate) mod priors;
mod siplca_select;
pub(crate) mod skellam;
mod skellam_learn;
mod skellam_vb;

use plca_em::{Nmf, Plca, PlcaVb, Plsa, PlsaVb};
use plca_fit::{Model as _, State as _};
use plca_run::Entry;
pub(crate) use plca_run::{Scalar, Takes};
use serde_json::Value;

use crate::args::{FitArgs, LearnArgs, SelectArgs};
use crate::failure::Failure;
use crate::online::{self, Beside};
use crate::select::{self, Table, Validated};
use made::{of_options, typed, with_priors};

/// Every model that the command knows.
pub(crate) fn models() -> &'static [Entry] {
    plca_run::models()
}

/// A model by its name.
pub(crate) type Kind = &'static Entry;

/// The model that the metadata of a file name.
pub(crate) fn known(metadata: &Value) -> Option<Kind> {
    plca_run::model(metadata["model"].as_str()?)
}

/// Names of the models that have a table of scores.
pub(crate) const SCORED: &[&str] = &[
    "plca",
    "plsa",
    "nmf-kl",
    "siplca",
    "plca-vb",
    "plsa-vb",
    "skellam-vb",
];

/// `plca fit --online`.
pub(crate) fn online<T: Scalar>(args: &FitArgs) -> Result<(), Failure> {
    match args.model.name {
        "plca" => online::fit::<T, Plca>(args, |j| format!("factor_{j}"), Beside::Weights),
        "plsa" => online::fit::<T, Plsa>(args, |_| "basis".into(), Beside::Marginal),
        "plsa-vb" => online::fit::<T, PlsaVb>(args, |_| "basis_shape".into(), Beside::Means),
        name => options::refuse(true, "--online", name),
    }
}

/// `plca select`.
pub(crate) fn select(args: &SelectArgs) -> Result<Table, Failure> {
    let model = args.model;
    let request = |rank, shape: &[usize]| {
        with_priors(model, of_options(&args.options, rank), &args.prior, shape)
    };
    match model.name {
        "plca" | "plsa" | "nmf-kl" => select::likelihood(args),
        "siplca" => siplca_select::scores(args),
        "plca-vb" => {
            let make =
                |rank, shape: &[usize]| typed::<PlcaVb>(model, &request(rank, shape)?, shape);
            bayes::scores(args, make, |state, data| {
                let plca = Plca::new(state.weights_shape().len());
                let means = state.means()?;
                plca.bind(data)?.likelihood(means.parameters())
            })
        }
        "plsa-vb" => {
            let make = |rank, shape: &[usize]| {
                options::need_matrix(&args.data, "plsa-vb", shape)?;
                typed::<PlsaVb>(model, &request(rank, shape)?, shape)
            };
            bayes::scores(args, make, |state, data| {
                let plsa = Plsa::new(state.basis_shape().ncols()).given(state.given());
                let means = state.means()?;
                plsa.bind(data)?.likelihood(means.parameters())
            })
        }
        "skellam-vb" => skellam_vb::select(args),
        name => Err(Failure::usage(format!(
            "{name} has no table of scores; expected one of {}; plca consensus compares numbers of components by what many fits agree on",
            SCORED.join(", ")
        ))),
    }
}

/// Whether `plca select` knows the criterion `cv` of a model, which is then the usual one.
pub(crate) fn cross_validates(model: Kind) -> bool {
    ["plca", "plsa", "nmf-kl"].contains(&model.name)
}

/// `plca select --criterion cv`.
pub(crate) fn cross_validate(args: &SelectArgs) -> Result<Validated, Failure> {
    let model = args.model;
    let request = |rank| of_options(&args.options, rank);
    match model.name {
        "plca" => select::validated(args, |rank| typed::<Plca>(model, &request(rank), &[0, 0])),
        "plsa" => select::validated(args, |rank| typed::<Plsa>(model, &request(rank), &[0, 0])),
        "nmf-kl" => select::validated(args, |rank| typed::<Nmf>(model, &request(rank), &[0, 0])),
        name => Err(Failure::usage(format!(
            "{name} has no criterion cv, which is for the models plca, plsa and nmf-kl"
        ))),
    }
}

/// `plca learn`.
pub(crate) fn learn(args: &LearnArgs) -> Result<(), Failure> {
    match args.model.name {
        "skellam-vb" => skellam_learn::learn(args),
        name => Err(Failure::usage(format!(
            "{name} has no hyperparameters to learn; expected skellam-vb"
        ))),
    }
}
