//! What no block of a stream has shown.

use serde_json::{Value, json};

use crate::data::unobserved_warnings;

/// Indices of which nothing was observed so far, mode by mode; those of the streamed mode in the order of the stream.
#[derive(Default)]
pub(super) struct Unobserved(Option<Vec<Vec<usize>>>);

impl Unobserved {
    /// Adds a block that follows `before` indices of the mode `along`.
    pub(super) fn note(&mut self, mut block: Vec<Vec<usize>>, along: usize, before: usize) {
        block[along].iter_mut().for_each(|i| *i += before);
        let Some(all) = &mut self.0 else {
            self.0 = Some(block);
            return;
        };
        for (j, (all, block)) in all.iter_mut().zip(block).enumerate() {
            if j == along {
                all.extend(block);
            } else {
                all.retain(|i| block.binary_search(i).is_ok());
            }
        }
    }

    pub(super) fn warnings(&self) -> Vec<String> {
        unobserved_warnings(self.0.clone().unwrap_or_default())
    }

    /// For a checkpoint.
    pub(super) fn save(&self) -> Value {
        json!(self.0)
    }

    /// The inverse of [`save`](Self::save).
    pub(super) fn load(saved: &Value) -> serde_json::Result<Self> {
        serde_json::from_value(saved.clone()).map(Self)
    }
}
