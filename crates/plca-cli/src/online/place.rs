//! A stream's place on disk, from which it goes on bit for bit.

use std::path::Path;

use nalgebra::DMatrix;
use plca_em::OnlineState;
use plca_io::{Array, Element, ModelFile};
use serde_json::{Value, json};

use super::unobserved::Unobserved;
use crate::blocks::{Arrays, lacking, matrix, needed, vector};
use crate::checkpoint::belongs;
use crate::failure::Failure;
use crate::models::Kind;
use crate::restored::Restored;

/// Where a stream stands.
pub(super) struct StreamProgress<T: Element> {
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

/// The stream that a place belongs to.
pub(super) struct Of<'a> {
    pub(super) model: Kind,
    pub(super) settings: &'a Value,
    pub(super) checksum: &'a str,
    /// Of the factors that the batches share.
    pub(super) names: &'a [String],
    /// Dimensions of the data.
    pub(super) order: usize,
}

const PLACE: &str = "place";
const SUMS: &str = "sums";
const STATISTICS: &str = "statistics_";

impl<T: Element> StreamProgress<T> {
    /// All that the stream goes on from, beside the `arrays` that the batches share.
    pub(super) fn file(&self, mut arrays: Arrays, of: &Of<'_>) -> ModelFile {
        let state = &self.state;
        arrays.insert("weights".into(), vector(&state.weights));
        for (j, s) in state.statistics.iter().enumerate() {
            arrays.insert(format!("{STATISTICS}{j}"), matrix(s));
        }
        let numbers = vec![
            state.batches as f64,
            state.seen,
            state.pass,
            state.total,
            self.passes as f64,
            self.blocks as f64,
            self.ln_lik[0],
            self.ln_lik[1],
        ];
        let list = |values: Vec<f64>| Array::new(vec![values.len()], values);
        arrays.insert(PLACE.into(), list(numbers));
        arrays.insert(SUMS.into(), list(self.sums.clone()));
        arrays.extend(self.unobserved.save());
        let metadata = json!({
            "model": of.model.name,
            "settings": of.settings,
            "data": { "sha256": of.checksum },
            "checkpoint": { "restored": self.restored },
        });
        ModelFile { arrays, metadata }
    }

    /// Reads a checkpoint made under these settings from data of this checksum.
    pub(super) fn read(path: &Path, of: &Of<'_>) -> Result<Self, Failure> {
        let file = plca_io::read_checkpoint(path)?;
        belongs(path, &file, of.model, of.settings, of.checksum)?;
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
        let statistics = (0..of.order - 1).map(|j| block(&format!("{STATISTICS}{j}")));
        let statistics: Vec<DMatrix<T>> = statistics.collect::<Result<_, _>>()?;
        let factors = of.names.iter().map(|name| block(name));
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
        Ok(Self {
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
