//! A run's place on disk, from which it goes on bit for bit.

use std::path::{Path, PathBuf};

use nalgebra::DMatrix;
use plca_fit::{Checkpoint, Parameters, Solver, Status, blocks::FileLayout};
use plca_io::{Element, ModelFile};
use plca_run::models;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use skellam_snmf::Replicates;

use crate::args::FitArgs;
use crate::blocks::{Arrays, matrix};
use crate::failure::Failure;
use crate::models::Kind;
use crate::outputs::merge;
use crate::restored::Restored;
use crate::solver;

/// Before the names of the arrays of the best finished start in a checkpoint.
const BEST: &str = "best.";

/// A start that has ended.
pub(crate) struct FinishedStart<T: Element> {
    pub(crate) parameters: Parameters<T>,
    pub(crate) outcome: Outcome,
}

/// How a start ended.
#[derive(Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) status: Status,
    pub(crate) iterations: usize,
    pub(crate) objective: f64,
    pub(crate) held_out_perplexity: Option<f64>,
    /// What starts are compared by: larger is better.
    pub(crate) score: f64,
    #[serde(default)]
    pub(crate) restored: Restored,
}

/// Where a run over several starts stands.
pub(crate) struct RunProgress<T: Element> {
    /// The best of the starts before the present one.
    pub(crate) best: Option<FinishedStart<T>>,
    /// The present start, from 0.
    pub(crate) start: u64,
    /// Where it stands; drawn anew if nothing is known.
    pub(crate) running: Option<(Checkpoint<T>, Restored)>,
}

impl<T: Element + Serialize + DeserializeOwned> RunProgress<T> {
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
        settings: &Value,
        checksum: &str,
    ) -> Result<Self, Failure> {
        let mut file = plca_io::read_checkpoint(path)?;
        belongs(path, &file, kind, settings, checksum)?;
        let saved = &file.metadata["checkpoint"];
        let best = match &saved["best"] {
            Value::Null => None,
            saved => {
                let from = filled::<T>(path, &saved["run"], &mut file.arrays, BEST)?;
                Some(FinishedStart {
                    parameters: from.parameters().clone(),
                    outcome: Outcome::deserialize(saved).map_err(|e| Failure::by(path, e))?,
                })
            }
        };
        let running = filled(path, &saved["run"], &mut file.arrays, "")?;
        Ok(Self {
            best,
            start: saved["start"].as_u64().unwrap_or(0),
            running: Some((running, Restored::load(&saved["restored"]))),
        })
    }
}

/// A checkpoint from its small parts and its arrays.
fn filled<T: Element + DeserializeOwned>(
    path: &Path,
    small: &Value,
    arrays: &mut Arrays,
    prefix: &str,
) -> Result<Checkpoint<T>, Failure> {
    if small.is_null() {
        let what = "does not say how far the run is: another version of plca wrote it";
        return Err(Failure::of(path, what));
    }
    let mut all: Checkpoint<T> =
        serde_json::from_value(small.clone()).map_err(|e| Failure::by(path, e))?;
    let find = |name: &str| -> Option<DMatrix<f64>> {
        let array = arrays.remove(&format!("{prefix}{name}"))?;
        match array.shape[..] {
            [0, columns] => Some(DMatrix::zeros(0, columns)),
            _ => FileLayout::Matrix.block(&array.shape, &array.values),
        }
    };
    all.put_arrays(find).map_err(|e| Failure::by(path, e))?;
    Ok(all)
}

/// The arrays of a checkpoint, and its small parts.
fn emptied<T: Element + Serialize>(
    mut all: Checkpoint<T>,
    prefix: &str,
) -> Result<(Arrays, Value), Failure> {
    let arrays = all.take_arrays().into_iter();
    let arrays = arrays.map(|(name, block)| (format!("{prefix}{name}"), matrix(&block)));
    let small = serde_json::to_value(&all).map_err(Failure::new)?;
    Ok((arrays.collect(), small))
}

/// Arrays of a checkpoint after an iteration, and its own part of the metadata.
pub(crate) fn checkpoint<T: Element + Serialize>(
    at: Checkpoint<T>,
    (start, restored): (u64, &Restored),
    best: Option<&FinishedStart<T>>,
) -> Result<(Arrays, Value), Failure> {
    let iteration = at.iteration();
    let (mut arrays, run) = emptied(at, "")?;
    let mut kept = Value::Null;
    if let Some(best) = best {
        let (blocks, run) = emptied(Checkpoint::new(best.parameters.clone()), BEST)?;
        arrays.extend(blocks);
        kept = json!(best.outcome);
        kept["run"] = run;
    }
    let place = json!({
        "run": run, "progress": { "iteration": iteration },
        "start": start, "restored": restored, "best": kept,
    });
    Ok((arrays, json!({ "checkpoint": place })))
}

/// Everything that changes the numbers of a run; a checkpoint is continued under the same settings only.
pub(crate) fn settings(args: &FitArgs, rank: usize) -> Result<Value, Failure> {
    let content = |path: &Option<PathBuf>| path.as_deref().map(plca_io::sha256_file).transpose();
    let mut all = json!({
        "rank": rank,
        "seed": args.seed,
        "init": content(&args.init)?,
        "mask": content(&args.hidden.mask)?,
        "priors": content(&args.priors)?,
        "shape": args.hidden.shape.as_ref().map(|s| &s.0),
        "array": args.hidden.array,
        "first_index": args.hidden.first_index,
        "transpose": args.hidden.transpose.then_some(true),
        "header": args.hidden.table.header.map(|h| format!("{h:?}").to_lowercase()),
        "delimiter": args.hidden.table.delimiter.map(|c| char::from(c).to_string()),
        "labels": args.hidden.table.labels(),
        "tol": args.tol,
        "kkt_tol": args.kkt_tol,
        "check_every": args.check_every,
        "restarts": args.restarts,
        "fix": args.fix,
        "freeze_entries": content(&args.freeze_entries)?,
        "prior": args.prior,
        "missing": args.hidden.missing.map(|m| format!("{m:?}").to_lowercase()),
        "solver": solver::asked(args).name(),
        "accelerate": if args.accelerate == Solver::Em { "none" } else { args.accelerate.name() },
        "precision": format!("{:?}", args.precision).to_lowercase(),
    });
    let entry = args.model;
    let mut own = args.options.to_json(&entry.specs());
    if let Some(mode) = own.get_mut("given").filter(|given| given.is_null()) {
        *mode = json!(1);
    }
    if let Some(m) = own.get_mut("m") {
        let asked = args.options.get::<Replicates>("m")?.unwrap_or_default();
        *m = match asked {
            Replicates::Auto => json!(entry.default_of("m")),
            m => json!(m.number().to_string()),
        };
    }
    merge(&mut all, Value::Object(own));
    Ok(all)
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
        return Err(Failure::of(
            path,
            "is not a checkpoint: expected a file that --checkpoint of a run wrote",
        ));
    }
    let (then, now) = (&file.metadata["model"], kind.name);
    if then != now {
        let what = format!("is a checkpoint of the model {then}, not of \"{now}\"");
        return Err(Failure::of(path, what));
    }
    let then = &file.metadata["settings"];
    // What only one of the two has is null for the other; settings of other models, which files of before wrote too, count as nothing.
    let has = |of: &Kind, name: &str| of.specs().iter().any(|spec| spec.name == name);
    let foreign = |name: &str| !has(&kind, name) && models().iter().any(|other| has(&other, name));
    let names = [then, settings].into_iter().filter_map(Value::as_object);
    let names = names.flat_map(serde_json::Map::keys);
    let other =
        names.filter(|&name| name != FREE && !foreign(name) && then[name] != settings[name]);
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
