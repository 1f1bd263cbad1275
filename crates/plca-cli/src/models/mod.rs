//! What the command does with single models besides what all have.

pub(crate) mod made;
pub(crate) mod options;
pub(crate) mod priors;
pub(crate) mod skellam;

use plca_run::ModelEntry;
pub(crate) use plca_run::{Scalar, Takes};
use serde_json::Value;

/// Every model that the command knows.
pub(crate) fn models() -> &'static [ModelEntry] {
    plca_run::models()
}

/// A model by its name.
pub(crate) type Kind = &'static ModelEntry;

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
