//! The fits of a sweep over ranks and restarts, as many at a time as there are threads. Finished ones may be kept in a folder, from which an
//! interrupted sweep goes on.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use nalgebra::DMatrix;
use plca_fit::{FitError, Init, Solver, Status, setting::SettingValue};
use plca_io::ModelFile;
use plca_tensor::Data;
use plca_tensor::parallel::apart;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::{Value, json};

use crate::args::ConsensusArgs;
use crate::blocks::{matrix, needed};
use plca_run::{AnyModel, ModelEntry, Options, Scalar};

use crate::failure::Failure;
use crate::interrupt;
use crate::models::made::of_options;
use crate::models::{Kind, models};
use crate::outputs::merge;
use crate::solver;

/// A model whose components many fits may agree on, the block whose columns are the spectra, and the dimension of the samples.
pub(crate) struct Candidate {
    pub(crate) model: Box<dyn AnyModel>,
    pub(crate) block: &'static str,
    pub(crate) samples: usize,
}

impl Candidate {
    /// The model with this number of components.
    pub(crate) fn new(
        args: &ConsensusArgs,
        kind: Kind,
        components: usize,
    ) -> Result<Self, Failure> {
        let Some(block) = kind.spectra else {
            let all = models().iter().filter(|other| other.spectra.is_some());
            let all: Vec<String> = all.map(ModelEntry::called).collect();
            return Err(Failure::usage(format!(
                "{} has no consensus; expected one of {}",
                args.called,
                all.join(", ")
            )));
        };
        let mut options = Options::default();
        let mut samples = 1;
        if kind.has("given") {
            samples = args.given.unwrap_or(1).into();
            options.set("given", SettingValue::Number(samples as f64));
        }
        let request = of_options(&options, components);
        Ok(Self {
            model: kind.build(&request, &[0, 0])?,
            block,
            samples,
        })
    }
}

/// All fits of a sweep.
pub(crate) struct Runs<'a> {
    pub(crate) args: &'a ConsensusArgs,
    pub(crate) model: Kind,
    pub(crate) path: &'a Path,
    pub(crate) data: &'a dyn Data<f64>,
    pub(crate) ranks: &'a [usize],
    pub(crate) sha256: &'a str,
}

/// The fits of one rank.
pub(crate) struct OfRank {
    /// The spectra of all restarts, one after the other, in columns.
    pub(crate) spectra: DMatrix<f64>,
    pub(crate) objectives: Vec<f64>,
    /// A fit was ended by `--max-iter`.
    pub(crate) cut: bool,
    /// The dimension of the samples.
    pub(crate) samples: usize,
}

/// One fit, as far as it is needed.
struct FinishedFit {
    spectra: DMatrix<f64>,
    objective: f64,
    /// By `--max-iter`.
    cut: bool,
}

/// Files are written one at a time: only so a second interruption knows whether it comes within a write.
static WRITING: Mutex<()> = Mutex::new(());

impl Runs<'_> {
    /// The fits of every rank; bit-identical for any number of threads, and to those of `plca fit --restarts`.
    pub(crate) fn all(&self) -> Result<Vec<OfRank>, Failure> {
        if let Some(folder) = &self.args.runs {
            std::fs::create_dir_all(folder).map_err(|e| Failure::by(folder, e))?;
        }
        let restarts = self.args.restarts as usize;
        let count = self.ranks.len() * restarts;
        let bar = self.bar(count);
        let (failed, done) = (AtomicBool::new(false), AtomicUsize::new(0));
        interrupt::iterating();
        let ended = apart(count, |task| {
            if failed.load(Ordering::Relaxed) || interrupt::requested() {
                return Ok(None);
            }
            let ended = self.one(self.ranks[task / restarts], (task % restarts) as u64);
            match &ended {
                Ok(Some(_)) => {
                    done.fetch_add(1, Ordering::Relaxed);
                    bar.inc(1);
                }
                Ok(None) => {}
                Err(_) => failed.store(true, Ordering::Relaxed),
            }
            ended
        });
        bar.finish_and_clear();
        // A failure is told before that others were not begun because of it.
        let ended = ended.into_iter().collect::<Result<Vec<_>, _>>()?;
        let Some(ended) = ended.into_iter().collect::<Option<Vec<_>>>() else {
            let done = format!("{} of {count} runs", done.into_inner());
            return Err(interrupt::after(&done, self.args.runs.as_deref()));
        };
        let mut ended = ended.into_iter();
        let of_rank = |&rank: &usize| {
            let samples = Candidate::new(self.args, self.model, rank)?.samples;
            let runs: Vec<FinishedFit> = ended.by_ref().take(restarts).collect();
            let columns = runs.iter().flat_map(|run| run.spectra.iter().copied());
            Ok(OfRank {
                spectra: DMatrix::from_iterator(runs[0].spectra.nrows(), restarts * rank, columns),
                objectives: runs.iter().map(|run| run.objective).collect(),
                cut: runs.iter().any(|run| run.cut),
                samples,
            })
        };
        self.ranks.iter().map(of_rank).collect()
    }

    /// One fit, or `None` if it was interrupted.
    fn one(&self, rank: usize, restart: u64) -> Result<Option<FinishedFit>, Failure> {
        let candidate = Candidate::new(self.args, self.model, rank)?;
        let mut settings = self.settings();
        settings["rank"] = json!(rank);
        settings["restart"] = json!(restart);
        let place = |folder: &PathBuf| folder.join(format!("k{rank}-r{restart}.npz"));
        let place = self.args.runs.as_ref().map(place);
        if let Some(path) = place.as_ref().filter(|path| path.exists()) {
            return stored(path, &settings, candidate.block).map(Some);
        }
        let about = |e| Failure::from(e).about(self.path);
        // Start r of `plca fit`.
        let mut rng = ChaCha8Rng::seed_from_u64(self.args.seed);
        rng.set_stream(restart);
        let run = f64::of(&*candidate.model)
            .model()
            .on(self.data)
            .map_err(about)?;
        let run = run
            .solver(self.solver())
            .stop(self.args.ends.stop())
            .observe(interrupt::Requested);
        let fit = match run.run(Init::default(), &mut rng) {
            Err(FitError::Interrupted) => return Ok(None),
            fit => fit.map_err(about)?,
        };
        if *fit.status() == Status::Interrupted {
            return Ok(None);
        }
        let (objective, iterations) = (fit.objective(), fit.iterations());
        if !objective.is_finite() {
            let what = format!(
                "rank {rank}, restart {restart}: the objective became {objective} after {iterations} iterations"
            );
            return Err(Failure::of(self.path, what));
        }
        let cut = *fit.status() == Status::MaxIterations;
        let status = fit.status().to_string();
        let state = fit.into_state();
        let spectra = state.block(candidate.block).cloned();
        let spectra = spectra.expect("a block of the model");
        if let Some(path) = place {
            merge(
                &mut settings,
                json!({ "objective": objective, "iterations": iterations, "stop_reason": status }),
            );
            let file = ModelFile {
                arrays: [(candidate.block.to_string(), matrix(&spectra))].into(),
                metadata: settings,
            };
            let _alone = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
            interrupt::writing(|| plca_io::write_checkpoint(&path, &file))?;
        }
        Ok(Some(FinishedFit {
            spectra,
            objective,
            cut,
        }))
    }

    /// Everything that changes the numbers of a fit, but its rank and restart.
    pub(crate) fn settings(&self) -> Value {
        let (args, table) = (self.args, &self.args.hidden.table);
        json!({
            "model": self.model.name,
            "sha256": self.sha256,
            "seed": args.seed,
            "max_iter": args.ends.max_iter,
            "tol": args.ends.tol,
            "solver": self.solver().name(),
            "given": args.given.unwrap_or(1),
            "shape": args.hidden.shape.as_ref().map(|s| &s.0),
            "array": args.hidden.array,
            "first_index": args.hidden.first_index,
            "transpose": args.hidden.transpose.then_some(true),
            "header": table.header.map(|h| format!("{h:?}").to_lowercase()),
            "delimiter": table.delimiter.map(|c| char::from(c).to_string()),
            "labels": table.labels(),
        })
    }

    /// As of `plca fit`.
    fn solver(&self) -> Solver {
        match self.args.solver {
            Solver::Auto if !self.model.separates => Solver::Em,
            named => solver::until(named, self.args.ends.tol),
        }
    }

    fn bar(&self, count: usize) -> ProgressBar {
        if self.args.quiet || !std::io::stderr().is_terminal() {
            return ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        }
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} runs, {elapsed}");
        ProgressBar::new(count as u64)
            .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
    }
}

/// A fit that was kept, made under these settings.
fn stored(path: &Path, settings: &Value, block: &str) -> Result<FinishedFit, Failure> {
    let mut file = plca_io::read_checkpoint(path)?;
    let now = settings.as_object().into_iter().flatten();
    if let Some((name, now)) = { now }.find(|(name, now)| file.metadata[name.as_str()] != **now) {
        let then = &file.metadata[name.as_str()];
        let what = format!("was made with {name} = {then}, not {now}");
        return Err(Failure::of(path, what));
    }
    let Some(objective) = file.metadata["objective"].as_f64() else {
        return Err(Failure::of(path, "is not a run of a consensus"));
    };
    Ok(FinishedFit {
        spectra: needed(path, &mut file.arrays, block)?,
        objective,
        cut: file.metadata["stop_reason"] == Status::MaxIterations.to_string(),
    })
}
