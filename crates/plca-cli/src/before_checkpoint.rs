//! A run's place on disk, from which it goes on bit for bit.

use std::path::Path;

use plca_fit::{Carried, Iteration, Outcome, Progress};
use serde_json::{Value, json};

use crate::blocks::Arrays;
use crate::checkpoint::belongs;
use crate::failure::Failure;
use crate::models::accelerated::{recall, remember};
use crate::models::{CommandModel, Kind};
use crate::restored::Restored;

/// Before the names of the blocks of the best finished start in a checkpoint.
const BEST: &str = "best.";

/// Where a run over several starts stands.
pub(crate) struct Place<S> {
    /// The best of the starts before the present one.
    pub(crate) best: Option<(Outcome<S>, Restored)>,
    /// The present start, from 0.
    pub(crate) start: u64,
    /// Where it stands; drawn anew if nothing is known.
    pub(crate) running: Option<(Carried<S>, Progress, Restored)>,
}

impl<S> Place<S> {
    /// A run that has not begun.
    pub(crate) fn beginning() -> Self {
        Self {
            best: None,
            start: 0,
            running: None,
        }
    }

    /// Reads a checkpoint of this kind of model, made under these settings from data of this checksum.
    pub(crate) fn read(
        path: &Path,
        kind: Kind,
        model: &impl CommandModel<State = S>,
        settings: &Value,
        checksum: &str,
    ) -> Result<Self, Failure> {
        let file = plca_io::read_checkpoint(path)?;
        belongs(path, &file, kind, settings, checksum)?;
        let saved = &file.metadata["checkpoint"];
        let bad = |e| Failure::by(path, e);
        let (mut running, mut finished) = (Arrays::new(), Arrays::new());
        for (name, array) in file.arrays {
            match name.strip_prefix(BEST) {
                Some(block) => finished.insert(block.into(), array),
                None => running.insert(name, array),
            };
        }
        let part = |name: &str| saved["best"][name].clone();
        let best = if saved["best"].is_null() {
            None
        } else {
            let outcome = Outcome {
                state: model.restore(finished, path)?,
                trace: Vec::new(),
                reason: serde_json::from_value(part("reason")).map_err(bad)?,
                iterations: serde_json::from_value(part("iterations")).map_err(bad)?,
                objective: serde_json::from_value(part("objective")).map_err(bad)?,
            };
            Some((outcome, Restored::load(&saved["best"]["restored"])))
        };
        let (points, numbers) = recall(&mut running);
        let state = model.restore(running, path)?;
        let progress = serde_json::from_value(saved["progress"].clone()).map_err(bad)?;
        Ok(Self {
            best,
            start: saved["start"].as_u64().unwrap_or(0),
            running: Some((
                Carried::from_parts(state, points, numbers),
                progress,
                Restored::load(&saved["restored"]),
            )),
        })
    }
}

/// Blocks of a checkpoint after an iteration, and its own part of the metadata.
pub(crate) fn checkpoint<M: CommandModel>(
    model: &M,
    data: &M::Data,
    it: &Iteration<'_, Carried<M::State>>,
    (start, restored): (u64, &Restored),
    best: Option<&(Outcome<M::State>, Restored)>,
) -> (Arrays, Value) {
    let mut arrays = model.saved(data, it.state.inner());
    remember(it.state, &mut arrays);
    let kept = best.map(|(best, restored)| {
        let blocks = model.saved(data, &best.state).into_iter();
        arrays.extend(blocks.map(|(name, block)| (format!("{BEST}{name}"), block)));
        json!({
            "reason": best.reason, "iterations": best.iterations, "objective": best.objective,
            "restored": restored.save(),
        })
    });
    let place = json!({
        "progress": it.progress, "start": start, "restored": restored.save(), "best": kept,
    });
    (arrays, json!({ "checkpoint": place }))
}
