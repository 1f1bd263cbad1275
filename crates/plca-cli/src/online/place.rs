//! A stream's place on disk, from which it goes on bit for bit.

use std::path::Path;

use nalgebra::DMatrix;
use plca_em::OnlineState;
use plca_io::{Array, Element, ModelFile};
use serde_json::json;

use super::Run;
use super::unobserved::Unobserved;
use crate::blocks::{lacking, matrix, needed, vector};
use crate::checkpoint::belongs;
use crate::failure::Failure;
use crate::restored::Restored;

/// Where a stream stands.
pub(super) struct Place<T: Element> {
    pub(super) state: OnlineState<T>,
    /// Passes done.
    pub(super) passes: u64,
    /// Blocks of the present pass.
    pub(super) blocks: usize,
    /// Log-likelihood of the present pass so far, and of the last one.
    pub(super) ln_lik: [f64; 2],
    /// Sums of the data over the streamed indices, in the order of the stream, from the first pass.
    pub(super) sums: Vec<f64>,
    /// Of the first pass.
    pub(super) unobserved: Unobserved,
    pub(super) restored: Restored,
}

const PLACE: &str = "place";
const SUMS: &str = "sums";
const STATISTICS: &str = "statistics_";

impl Run<'_> {
    /// All that the stream goes on from.
    pub(super) fn checkpoint<T: Element>(&self, place: &Place<T>) -> ModelFile {
        let state = &place.state;
        let mut arrays = self.shared(state);
        arrays.insert("weights".into(), vector(&state.weights));
        for (j, s) in state.statistics.iter().enumerate() {
            arrays.insert(format!("{STATISTICS}{j}"), matrix(s));
        }
        let numbers = vec![
            state.batches as f64,
            state.seen,
            state.pass,
            state.total,
            place.passes as f64,
            place.blocks as f64,
            place.ln_lik[0],
            place.ln_lik[1],
        ];
        let list = |values: Vec<f64>| Array::new(vec![values.len()], values);
        arrays.insert(PLACE.into(), list(numbers));
        arrays.insert(SUMS.into(), list(place.sums.clone()));
        arrays.extend(place.unobserved.save());
        let metadata = json!({
            "model": self.args.model.name,
            "settings": self.settings,
            "data": { "sha256": self.checksum },
            "checkpoint": { "restored": place.restored },
        });
        ModelFile { arrays, metadata }
    }

    /// Reads a checkpoint made under these settings from data of this checksum.
    pub(super) fn resume<T: Element>(&self, path: &Path) -> Result<Place<T>, Failure> {
        let file = plca_io::read_checkpoint(path)?;
        belongs(path, &file, self.args.model, &self.settings, &self.checksum)?;
        let saved = &file.metadata["checkpoint"];
        let restored = Restored::load(&saved["restored"]);
        let mut arrays = file.arrays;
        // Earlier versions have a list in the metadata.
        let unobserved = Unobserved::load(&mut arrays, &saved["unobserved"]);
        let unobserved = unobserved.map_err(|e| Failure::by(path, e))?;
        let mut list = |name: &str| {
            let array = arrays.remove(name).ok_or_else(|| lacking(path, name))?;
            Ok::<_, Failure>(array.values)
        };
        let (place, sums) = (list(PLACE)?, list(SUMS)?);
        let &[blocks, seen, pass, total, passes, at, running, last] = &place[..] else {
            return Err(lacking(path, PLACE));
        };
        let mut block = |name: &str| needed::<T>(path, &mut arrays, name);
        let weights = block("weights")?.column(0).into_owned();
        let count = self.shape.len() - 1;
        let statistics = (0..count).map(|j| block(&format!("{STATISTICS}{j}")));
        let statistics: Vec<DMatrix<T>> = statistics.collect::<Result<_, _>>()?;
        let factors = self.names.iter().map(|name| block(name));
        let factors = factors.collect::<Result<_, _>>()?;
        let state = OnlineState {
            weights,
            factors,
            statistics,
            batches: blocks as u64,
            seen,
            pass,
            total,
        };
        state.check().map_err(|e| Failure::by(path, e))?;
        Ok(Place {
            state,
            passes: passes as u64,
            blocks: at as usize,
            ln_lik: [running, last],
            sums,
            unobserved,
            restored,
        })
    }
}
