//! Blocks that lost cells of the data to their priors and were given a trace of everything back.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Their names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
                "the prior of `{block}` set entries to 0 that the data need: 1e-12 was added to every entry, so the objective may have fallen: expected a weaker prior; Dirichlet shapes below 1 remove entries, those of LDA are for plsa-vb"
            )
        })
    }

    /// From a checkpoint; nothing where there is none.
    pub(crate) fn load(saved: &Value) -> Self {
        Self::deserialize(saved).unwrap_or_default()
    }
}
