//! Blocks that lost cells of the data to their priors and were given a trace of everything back.

use std::collections::BTreeSet;

use serde_json::{Value, json};

/// Their names.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Restored(BTreeSet<String>);

impl Restored {
    /// Adds these.
    pub(crate) fn note(&mut self, blocks: Vec<String>) {
        self.0.extend(blocks);
    }

    /// A warning for every block.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|block| {
            format!(
                "the prior of `{block}` emptied it where the data are positive: every entry was given 1e-12 back, so the objective may have fallen"
            )
        })
    }

    /// For a checkpoint.
    pub(crate) fn save(&self) -> Value {
        json!(self.0)
    }

    /// The inverse of [`save`](Self::save); nothing where there is none.
    pub(crate) fn load(saved: &Value) -> Self {
        let names = saved.as_array().into_iter().flatten();
        Self(
            names
                .filter_map(|name| Some(name.as_str()?.to_owned()))
                .collect(),
        )
    }
}
