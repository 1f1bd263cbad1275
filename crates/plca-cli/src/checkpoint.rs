//! A run's place on disk, from which it goes on bit for bit.

use std::path::{Path, PathBuf};

use plca_fit::{Carried, Iteration, Outcome, Progress};
use plca_io::ModelFile;
use serde_json::{Value, json};

use crate::args::FitArgs;
use crate::blocks::Arrays;
use crate::failure::Failure;
use crate::models::accelerated::{recall, remember};
use crate::models::fast::solver;
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

/// Everything that changes the numbers of a run; a checkpoint is continued under the same settings only.
pub(crate) fn settings(args: &FitArgs, rank: usize) -> Result<Value, Failure> {
    let content = |path: &Option<PathBuf>| path.as_deref().map(plca_io::sha256_file).transpose();
    Ok(json!({
        "rank": rank,
        "seed": args.seed,
        "init": content(&args.init)?,
        "mask": content(&args.hidden.mask)?,
        "priors": content(&args.priors)?,
        "shape": args.hidden.shape.as_ref().map(|s| &s.0),
        "header": args.hidden.table.header.map(|h| format!("{h:?}").to_lowercase()),
        "delimiter": args.hidden.table.delimiter.map(|c| char::from(c).to_string()),
        "labels": args.hidden.table.labels.is_some().then_some("first-column"),
        "tol": args.tol(),
        "kkt_tol": args.kkt_tol,
        "check_every": args.check_every(),
        "restarts": args.restarts,
        "fix": args.fix,
        "prior": args.prior,
        "kernel": args.shifts.kernel.as_ref().map(|k| &k.0),
        "domain": args.shifts.places.domain.iter().map(|d| format!("{d:?}").to_lowercase()).collect::<Vec<_>>(),
        "likelihood": args.shifts.places.likelihood.map(|l| format!("{l:?}").to_lowercase()),
        "anneal": args.shifts.places.anneal.map(|a| [a.alpha0, a.over]),
        "impulse_power": args.shifts.places.impulse_power.map(|a| [a.alpha0, a.over]),
        "given": args.given.unwrap_or(1),
        "update": args.update.map(|u| format!("{u:?}").to_lowercase()),
        "m": args.signed.m.unwrap_or_default().number().to_string(),
        "real_data": args.signed.real_data,
        "floor": args.floor,
        "no_normalise": args.no_normalise,
        "seeding": args.seeding.map(|s| format!("{s:?}").to_lowercase()),
        "temper": args.temper,
        "temper_prior": args.temper_prior,
        "missing": args.hidden.missing.map(|m| format!("{m:?}").to_lowercase()),
        "missing_method": args.missing_method.map(|m| format!("{m:?}").to_lowercase()),
        "solver": format!("{:?}", solver(args)).to_lowercase(),
        "accelerate": format!("{:?}", args.accelerate).to_lowercase(),
        "precision": format!("{:?}", args.precision).to_lowercase(),
    }))
}

/// Set by every call anew: a run may be continued to another number of iterations.
const FREE: &str = "max_iter";

/// Refuses a checkpoint of another model, other settings or other data.
pub(crate) fn belongs(
    path: &Path,
    file: &ModelFile,
    kind: Kind,
    settings: &Value,
    checksum: &str,
) -> Result<(), Failure> {
    if file.metadata["checkpoint"].is_null() {
        return Err(Failure::of(path, "is no checkpoint"));
    }
    let (then, now) = (&file.metadata["model"], kind.name());
    if then != now {
        let what = format!("is a checkpoint of the model {then}, not of \"{now}\"");
        return Err(Failure::of(path, what));
    }
    let then = &file.metadata["settings"];
    // What only one of the two has is null for the other.
    let names = [then, settings].into_iter().filter_map(Value::as_object);
    let names = names.flat_map(serde_json::Map::keys);
    let other = names.filter(|&name| name != FREE && then[name] != settings[name]);
    // The solver may follow from another option, which is then the one to name.
    if let Some(name) = other.min_by_key(|&name| name == "solver") {
        let (then, now) = (&then[name], &settings[name]);
        let what = format!("was made with {name} = {then}, not {now}");
        return Err(Failure::of(path, what));
    }
    if file.metadata["data"]["sha256"] != checksum {
        return Err(Failure::of(path, "belongs to other data"));
    }
    Ok(())
}
