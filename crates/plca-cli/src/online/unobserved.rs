//! What no block of a stream has shown.

use plca_io::Array;
use serde_json::Value;

use crate::blocks::Arrays;
use crate::data::unobserved_warnings;

/// A mode's array in a checkpoint.
fn name(j: usize) -> String {
    format!("unobserved_{j}")
}

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

    /// Arrays for a checkpoint.
    pub(super) fn save(&self) -> impl Iterator<Item = (String, Array<f64>)> {
        let modes = self.0.iter().flatten().enumerate();
        modes.map(|(j, indices)| {
            let values: Vec<_> = indices.iter().map(|&i| i as f64).collect();
            (name(j), Array::new(vec![values.len()], values))
        })
    }

    /// The inverse of [`save`](Self::save); `listed` is where checkpoints of earlier versions have it.
    pub(super) fn load(arrays: &mut Arrays, listed: &Value) -> serde_json::Result<Self> {
        if !listed.is_null() {
            return serde_json::from_value(listed.clone()).map(Self);
        }
        let modes = (0..).map_while(|j| arrays.remove(&name(j)));
        let modes = modes.map(|array| array.values.iter().map(|&i| i as usize).collect());
        let modes: Vec<_> = modes.collect();
        Ok(Self((!modes.is_empty()).then_some(modes)))
    }
}
