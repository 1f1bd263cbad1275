//! Blocks that lost cells of the data to their priors and were given a trace of everything back.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// In how many iterations that happened, by block.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Restored(BTreeMap<String, u64>);

impl Restored {
    /// Counts one iteration for each of these blocks.
    pub(crate) fn note(&mut self, blocks: Vec<String>) {
        for block in blocks {
            *self.0.entry(block).or_default() += 1;
        }
    }

    /// A warning for every block.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|(block, n)| {
            format!(
                "the prior of `{block}` emptied it where the data are positive: in {n} iterations every entry was given 1e-12 back, so the objective may have fallen"
            )
        })
    }

    /// For a checkpoint.
    pub(crate) fn save(&self) -> Value {
        json!(self.0)
    }

    /// The inverse of [`save`](Self::save); nothing where there is none.
    pub(crate) fn load(saved: &Value) -> Self {
        let counts = saved.as_object().into_iter().flatten();
        let counts = counts.filter_map(|(block, n)| Some((block.clone(), n.as_u64()?)));
        Self(counts.collect())
    }
}
