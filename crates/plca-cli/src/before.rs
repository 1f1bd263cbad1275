//! Runs of models that are not on the common engine.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use plca_fit::{Carried, Iteration, Outcome, Progress, Stop};
use plca_io::ModelFile;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::{Value, json};

use crate::args::{FitArgs, Precision};
use crate::before_checkpoint::{Place, checkpoint};
use crate::blocks::{Arrays, SCALE};
use crate::checkpoint::settings;
use crate::data::Dataset;
use crate::failure::Failure;
use crate::fit::{has_priors, merge, progress_bar, sealed};
use crate::given;
use crate::interrupt;
use crate::models::CommandModel;
use crate::models::priors::any_density;
use crate::outputs::{Leaving, warn};
use crate::restored::Restored;

/// Fits a model to data, and leaves its files and its summary.
pub(crate) fn fit<M: CommandModel>(
    args: &FitArgs,
    data: &M::Data,
    make: impl FnOnce(usize) -> Result<M, Failure>,
) -> Result<(), Failure> {
    let (given, implied) = given::blocks(args, data.sizes().len())?;
    let rank = given::rank(args, implied, data.sizes())?;
    let stop = Stop {
        max_iter: args.max_iter(),
        tol: args.tol(),
        check_every: args.check_every(),
        residual_tol: args.kkt_tol,
        ..Stop::default()
    };
    if args.check_every() == 0 {
        return Err(Failure::usage("--check-every 0: at least 1 is needed"));
    }
    stop.check().map_err(Failure::usage)?;
    if args.restarts == 0 {
        return Err(Failure::usage("--restarts 0: at least one start is needed"));
    }
    let model = make(rank)?;
    let settings = settings(args, rank)?;
    let checksum = sealed(args)?.sha256()?.to_string();
    let run = Run {
        args,
        data,
        model,
        given,
        stop,
        settings,
        checksum,
        // With all files read.
        started: Instant::now(),
    };
    let mut trace = String::new();
    let (outcome, restored) = run.starts(&mut trace)?;
    run.leave(&outcome, &restored, &trace)
}

/// One call of `plca fit`.
struct Run<'a, M: CommandModel> {
    args: &'a FitArgs,
    data: &'a M::Data,
    model: M,
    given: Arrays,
    stop: Stop,
    settings: Value,
    checksum: String,
    started: Instant,
}

impl<M: CommandModel> Run<'_, M> {
    /// The best outcome of all starts.
    fn starts(&self, trace: &mut String) -> Result<(Outcome<M::State>, Restored), Failure> {
        let free = self.args.model.free_blocks(self.data.sizes().len());
        let complete = free.iter().all(|n| self.given.contains_key(n));
        // With every block given all starts are the same.
        let starts = if complete { 1 } else { self.args.restarts };
        let mut place = match &self.args.resume {
            Some(path) => {
                let kind = self.args.model;
                Place::read(path, kind, &self.model, &self.settings, &self.checksum)?
            }
            None => Place::beginning(),
        };
        if let (Some((_, progress, _)), Some(path)) = (&place.running, &self.args.resume)
            && progress.iteration > self.stop.max_iter
        {
            let (there, most) = (progress.iteration, self.stop.max_iter);
            let what = format!("stands at iteration {there}, beyond --max-iter {most}");
            return Err(Failure::of(path, what));
        }
        interrupt::iterating();
        for start in place.start..starts {
            let from = match place.running.take() {
                Some(saved) => saved,
                None => (
                    Carried::new(self.begin(start)?),
                    Progress::default(),
                    Restored::default(),
                ),
            };
            let outcome = self.start(start, from, place.best.as_ref(), trace)?;
            let better = |best: &(Outcome<M::State>, Restored)| {
                let (old, new) = (self.model.score(&best.0), self.model.score(&outcome.0));
                !self.model.direction().not_worse(old, new)
            };
            if place.best.as_ref().is_none_or(better) {
                place.best = Some(outcome);
            }
        }
        (place.best).ok_or_else(|| Failure::usage("--restarts 0: at least one start is needed"))
    }

    /// The state that a start begins with: the blocks given, and the others drawn from the seed.
    fn begin(&self, start: u64) -> Result<M::State, Failure> {
        let args = self.args;
        let mut rng = ChaCha8Rng::seed_from_u64(args.seed);
        rng.set_stream(start);
        let path = args.init.as_deref().unwrap_or(Path::new("--init"));
        let file = args.init.as_deref().unwrap_or(&args.data);
        let state = (self.model).start(self.data, self.given.clone(), path, &mut rng);
        state.map_err(|e| e.about(file))
    }

    /// Runs one start to its end.
    fn start(
        &self,
        start: u64,
        (state, progress, mut restored): (Carried<M::State>, Progress, Restored),
        best: Option<&(Outcome<M::State>, Restored)>,
        trace: &mut String,
    ) -> Result<(Outcome<M::State>, Restored), Failure> {
        let args = self.args;
        let bar = progress_bar(args);
        let (mut failure, mut interrupted, mut kept) = (None, false, args.resume.as_ref());
        let observer = |it: &Iteration<'_, Carried<M::State>>| {
            bar.set_position(it.iteration as u64);
            if let Some(point) = it.measured {
                bar.set_message(format!("{:.6e}", point.objective));
                trace.push_str(&self.trace_line(point.iteration, point.objective));
            }
            restored.note(self.model.restored(it.state.inner()));
            interrupted = interrupt::requested();
            if let (Some(path), Some(every)) = (&args.checkpoint, args.checkpoint_every)
                && (interrupted || (it.iteration as u64).is_multiple_of(every))
            {
                let (arrays, extra) =
                    checkpoint(&self.model, self.data, it, (start, &restored), best);
                let metadata = self.describe(extra);
                let file = ModelFile { arrays, metadata };
                let written = interrupt::writing(|| plca_io::write_checkpoint(path, &file));
                failure = written.err();
                kept = Some(path);
            }
            if interrupted || failure.is_some() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let outcome = self.model.iterate(
            self.data,
            args.accelerate,
            (state, progress),
            &self.stop,
            observer,
        );
        let outcome = outcome.map_err(|e| match kept {
            Some(path) if e.is_unread() => {
                e.and(format_args!("{} continues the run", path.display()))
            }
            _ => e.about(&args.data),
        })?;
        let outcome = outcome.map(Carried::into_inner);
        bar.finish_and_clear();
        let (iterations, objective) = (outcome.iterations, outcome.objective);
        if let Some(e) = failure {
            return Err(e.into());
        }
        if interrupted {
            let kept = match &args.checkpoint {
                Some(path) => format!("{} continues it", path.display()),
                None => "nothing was written".to_string(),
            };
            return Err(Failure::interrupted(format!(
                "interrupted after {iterations} iterations of start {start}; {kept}"
            )));
        }
        trace.push_str(&self.trace_line(iterations, objective));
        if !objective.is_finite() {
            let what = format!("the objective became {objective} after {iterations} iterations");
            return Err(Failure::of(&args.data, what));
        }
        Ok((outcome, restored))
    }

    fn trace_line(&self, iteration: usize, objective: f64) -> String {
        let seconds = self.started.elapsed().as_secs_f64();
        let line = json!({ "iteration": iteration, "objective": objective, "seconds": seconds });
        format!("{line}\n")
    }

    /// The metadata of a file, with `extra` of its own.
    fn describe(&self, extra: Value) -> Value {
        let (args, data) = (self.args, self.data);
        // What the checks of a checkpoint leave aside.
        let mut settings = self.settings.clone();
        settings["max_iter"] = json!(args.max_iter());
        let mut all = json!({
            "model": args.model.name(),
            "settings": settings,
            "seed": args.seed,
            "version": env!("CARGO_PKG_VERSION"),
            "data": { "shape": data.sizes(), "sha256": self.checksum, "total": data.sum() },
            "objective_name": if any_density(args) { M::WITH_PRIORS } else { M::OBJECTIVE },
        });
        merge(&mut all, extra);
        all
    }

    /// Writes the model and says what it is.
    fn leave(
        &self,
        outcome: &Outcome<M::State>,
        restored: &Restored,
        trace: &str,
    ) -> Result<(), Failure> {
        let (args, data, model) = (self.args, self.data, &self.model);
        let mut summary = json!({
            "model": args.model.name(),
            "iterations": outcome.iterations,
            "stop_reason": outcome.reason.to_string(),
            "objective": outcome.objective,
        });
        if has_priors(args) {
            let ln_lik = model.ln_lik(data, &outcome.state);
            if let Some(ln_lik) = ln_lik.map_err(|e| e.about(&args.data))? {
                summary["log_likelihood"] = json!(ln_lik);
            }
        }
        merge(&mut summary, model.remarks(&outcome.state));
        let mut warnings = data.warnings();
        warnings.extend(restored.warnings());
        let mut extra = summary.clone();
        if !warnings.is_empty() {
            extra["warnings"] = json!(warnings);
        }
        let mut arrays = model.arrays(data, &outcome.state);
        let scale = model.scale(data, &outcome.state);
        match scale.map_err(|e| e.about(&args.data))? {
            Some(scale) if scale.shape.is_empty() => extra[SCALE] = json!(scale.values[0]),
            Some(scale) => drop(arrays.insert(SCALE.into(), scale)),
            None => (),
        }
        // Wall time is no property of the model: equal runs write equal files.
        summary["seconds"] = json!(self.started.elapsed().as_secs_f64());
        let leaving = Leaving {
            output: &args.output,
            model: &ModelFile {
                arrays,
                metadata: self.describe(extra),
            },
            single: args.precision == Precision::F32,
            trace: args.trace.as_deref().map(|path| (path, trace)),
            summary: &summary,
            json: args.json,
            quiet: args.quiet,
        };
        leaving.leave()?;
        warn(args.quiet, &warnings);
        Ok(())
    }
}
