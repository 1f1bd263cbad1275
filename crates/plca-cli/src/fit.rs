//! `plca fit`.

use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use plca_em::hold_out;
use plca_fit::{Iteration, Outcome, Progress, Stop};
use plca_io::{Element, ModelFile};
use plca_tensor::Observed;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::{Value, json};

use crate::args::{FitArgs, ModelName, Precision, Solver};
use crate::blocks::Arrays;
use crate::checkpoint::{Place, checkpoint, settings};
use crate::data::{Data, load, unobserved_warnings};
use crate::failure::Failure;
use crate::interrupt;
use crate::limits::{on_threads, reasonable};
use crate::models::nmf_kl::NmfCommand;
use crate::models::plca::PlcaCommand;
use crate::models::plsa::PlsaCommand;
use crate::models::tempered::TemperedCommand;
use crate::models::{CommandModel, block_names};
use crate::outputs::{Leaving, MODEL_FILES, distinct, warn, writable};

/// Random numbers of what is held out, apart from those of any start.
pub(crate) const HELD_OUT_STREAM: u64 = u64::MAX;

pub(crate) fn run<T: Element>(args: &FitArgs) -> Result<(), Failure> {
    writable(&args.output, MODEL_FILES)?;
    for path in [&args.trace, &args.checkpoint].into_iter().flatten() {
        writable(path, &[])?;
    }
    distinct(args)?;
    if args.solver == Solver::Fast {
        return Err(Failure::usage(
            "--solver fast is not available in this version; --solver em reaches the same optima",
        ));
    }
    if args.kkt_tol.is_some() && has_priors(args) {
        return Err(Failure::usage(
            "--kkt-tol does not go with priors: its conditions are those of the likelihood",
        ));
    }
    on_threads(args.threads, || {
        let schedule = crate::models::schedule(args)?;
        if schedule.is_some() && args.model == ModelName::NmfKl {
            return Err(Failure::usage("nmf-kl has no option --temper"));
        }
        let data: Data<T> = load(&args.data, &args.hidden)?;
        let (data, shape) = (&*data, data.shape());
        let Some(schedule) = schedule else {
            return match args.model {
                ModelName::Plca => fit(args, data, |k| PlcaCommand::new(args, k, shape)),
                ModelName::Plsa => fit(args, data, |k| PlsaCommand::new(args, k, shape)),
                ModelName::NmfKl => fit(args, data, |k| NmfCommand::new(args, k, shape)),
            };
        };
        let mut rng = ChaCha8Rng::seed_from_u64(args.seed);
        rng.set_stream(HELD_OUT_STREAM);
        let parts =
            hold_out(data, schedule.share, &mut rng).map_err(|e| Failure::of(&args.data, e))?;
        let (train, held) = (&parts.train, &parts.held);
        match args.model {
            ModelName::Plsa => fit(args, data, |k| {
                let model = PlsaCommand::new(args, k, shape)?;
                Ok(TemperedCommand {
                    model,
                    schedule,
                    train,
                    held,
                })
            }),
            _ => fit(args, data, |k| {
                let model = PlcaCommand::new(args, k, shape)?;
                Ok(TemperedCommand {
                    model,
                    schedule,
                    train,
                    held,
                })
            }),
        }
    })?
}

/// Checks the blocks named in `--init` and `--fix`, and the rank that they imply.
fn given_blocks(args: &FitArgs, order: usize) -> Result<(Arrays, Option<usize>), Failure> {
    let names = block_names(args.model, order);
    let mut given = match &args.init {
        Some(path) => plca_io::read_model(path)?.arrays,
        None => Arrays::new(),
    };
    let known = names.join(", ");
    if let (Some(name), Some(path)) = (given.keys().find(|n| !names.contains(n)), &args.init) {
        return Err(Failure::of(
            path,
            format!("`{name}` is no block of this model; there are {known}"),
        ));
    }
    if let Some(name) = args
        .fix
        .iter()
        .find(|n| !names.contains(n) || *n == "marginal")
    {
        return Err(Failure::usage(format!(
            "--fix {name}: no such block; there are {known}"
        )));
    }
    if let Some(name) = args.fix.iter().find(|n| !given.contains_key(*n)) {
        return Err(Failure::usage(format!(
            "--fix {name}: no initial value is given for it"
        )));
    }
    // The marginal always comes from the data.
    given.remove("marginal");
    let rank = given.iter().find_map(|(name, array)| match name.as_str() {
        "weights" | "mixture" | "h" => array.shape.first().copied(),
        _ => array.shape.get(1).copied(),
    });
    Ok((given, rank))
}

/// The number of components, from `--rank` and `--init`.
fn rank(args: &FitArgs, implied: Option<usize>, shape: &[usize]) -> Result<usize, Failure> {
    let rank = match (args.rank, implied) {
        (Some(0), _) => return Err(Failure::usage("--rank 0: at least one component is needed")),
        (Some(a), Some(b)) if a != b => {
            return Err(Failure::usage(format!(
                "--rank {a} disagrees with {b} components in --init"
            )));
        }
        (Some(k), _) | (None, Some(k)) => k,
        (None, None) => {
            return Err(Failure::usage(
                "--rank is needed where --init gives no block",
            ));
        }
    };
    reasonable("--rank", rank, shape)?;
    Ok(rank)
}

fn fit<T: Element, M: CommandModel<T>>(
    args: &FitArgs,
    data: &dyn Observed<T>,
    make: impl FnOnce(usize) -> Result<M, Failure>,
) -> Result<(), Failure> {
    let started = Instant::now();
    let order = data.shape().len();
    let (given, implied) = given_blocks(args, order)?;
    let rank = rank(args, implied, data.shape())?;
    let stop = Stop {
        max_iter: args.max_iter,
        tol: args.tol,
        check_every: args.check_every,
        residual_tol: args.kkt_tol,
        ..Stop::default()
    };
    stop.check().map_err(Failure::usage)?;
    if args.restarts == 0 {
        return Err(Failure::usage("--restarts 0: at least one start is needed"));
    }
    let model = make(rank)?;
    let settings = settings(args, rank)?;
    let checksum = plca_io::sha256_file(&args.data)?;
    let describe = |extra: Value| {
        let mut all = json!({
            "model": model_name(args.model),
            "settings": settings,
            "seed": args.seed,
            "version": env!("CARGO_PKG_VERSION"),
            "data": { "shape": data.shape(), "sha256": checksum, "total": data.total() },
            "objective_name": if has_priors(args) { "log_posterior" } else { M::OBJECTIVE },
        });
        if let (Value::Object(all), Value::Object(extra)) = (&mut all, extra) {
            all.extend(extra);
        }
        all
    };
    let complete = block_names(args.model, order)
        .iter()
        .all(|n| n == "marginal" || given.contains_key(n));
    // With every block given all starts are the same.
    let starts = if complete { 1 } else { args.restarts };
    let mut place = match &args.resume {
        Some(path) => Place::read(path, &model, &settings, &checksum)?,
        None => Place::beginning(),
    };
    let mut trace = String::new();
    interrupt::iterating();
    for start in place.start..starts {
        let from = match place.running.take() {
            Some(saved) => saved,
            None => (
                begin(args, &model, data, given.clone(), start)?,
                Progress::default(),
            ),
        };
        let bar = progress_bar(args);
        let (mut failure, mut interrupted) = (None, false);
        let observer = |it: &Iteration<'_, M::State>| {
            bar.set_position(it.iteration as u64);
            if let Some(point) = it.measured {
                bar.set_message(format!("{:.6e}", point.objective));
                trace.push_str(&trace_line(point.iteration, point.objective, started));
            }
            interrupted = interrupt::requested();
            if let (Some(path), Some(every)) = (&args.checkpoint, args.checkpoint_every)
                && (interrupted || (it.iteration as u64).is_multiple_of(every))
            {
                let (arrays, extra) = checkpoint(&model, data, it, start, place.best.as_ref());
                let metadata = describe(extra);
                let file = ModelFile { arrays, metadata };
                let written = interrupt::writing(|| plca_io::write_checkpoint(path, &file));
                failure = written.err();
            }
            if interrupted || failure.is_some() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let outcome = (model.iterate(data, args.accelerate, from, &stop, observer))
            .map_err(|e| e.about(&args.data))?;
        bar.finish_and_clear();
        if let Some(e) = failure {
            return Err(e.into());
        }
        if interrupted {
            let kept = match &args.checkpoint {
                Some(path) => format!("{} continues it", path.display()),
                None => "nothing was written".to_string(),
            };
            return Err(Failure::new(format!(
                "interrupted after {} iterations of start {start}; {kept}",
                outcome.iterations
            )));
        }
        trace.push_str(&trace_line(outcome.iterations, outcome.objective, started));
        if !outcome.objective.is_finite() {
            return Err(Failure::of(
                &args.data,
                format!(
                    "the objective became {} after {} iterations",
                    outcome.objective, outcome.iterations
                ),
            ));
        }
        let better = |best: &Outcome<M::State>| {
            let (old, new) = (model.score(best), model.score(&outcome));
            !model.direction().not_worse(old, new)
        };
        if place.best.as_ref().is_none_or(better) {
            place.best = Some(outcome);
        }
    }
    let Some(outcome) = place.best else {
        return Err(Failure::usage("--restarts 0: at least one start is needed"));
    };

    let mut summary = json!({
        "model": model_name(args.model),
        "iterations": outcome.iterations,
        "stop_reason": outcome.reason.to_string(),
        "objective": outcome.objective,
    });
    if has_priors(args)
        && let Some(ln_lik) =
            (model.ln_lik(data, &outcome.state)).map_err(|e| e.about(&args.data))?
    {
        summary["log_likelihood"] = json!(ln_lik);
    }
    if let (Value::Object(summary), Value::Object(remarks)) =
        (&mut summary, model.remarks(&outcome.state))
    {
        summary.extend(remarks);
    }
    let warnings = unobserved_warnings(data);
    let mut extra = summary.clone();
    if !warnings.is_empty() {
        extra["warnings"] = json!(warnings);
    }
    if let Some(scale) = model.scale(data, &outcome.state) {
        extra["scale"] = scale;
    }
    // Wall time is no property of the model: equal runs write equal files.
    summary["seconds"] = json!(started.elapsed().as_secs_f64());
    let model = ModelFile {
        arrays: model.arrays(data, &outcome.state),
        metadata: describe(extra),
    };
    let trace = args.trace.as_deref().map(|path| (path, trace.as_str()));
    let leaving = Leaving {
        output: &args.output,
        model: &model,
        single: args.precision == Precision::F32,
        trace,
        summary: &summary,
        json: args.json,
        quiet: args.quiet,
    };
    leaving.leave()?;
    warn(args.quiet, &warnings);
    Ok(())
}

/// A start: the blocks given, and the others drawn from the seed.
fn begin<T: Element, M: CommandModel<T>>(
    args: &FitArgs,
    model: &M,
    data: &dyn Observed<T>,
    given: Arrays,
    start: u64,
) -> Result<M::State, Failure> {
    let mut rng = ChaCha8Rng::seed_from_u64(args.seed);
    rng.set_stream(start);
    let path = args.init.as_deref().unwrap_or(Path::new("--init"));
    let file = args.init.as_deref().unwrap_or(&args.data);
    (model.start(data, given, path, &mut rng)).map_err(|e| e.about(file))
}

fn trace_line(iteration: usize, objective: f64, started: Instant) -> String {
    let seconds = started.elapsed().as_secs_f64();
    format!(
        "{}\n",
        json!({ "iteration": iteration, "objective": objective, "seconds": seconds })
    )
}

pub(crate) fn model_name(model: ModelName) -> &'static str {
    match model {
        ModelName::Plca => "plca",
        ModelName::Plsa => "plsa",
        ModelName::NmfKl => "nmf-kl",
    }
}

fn has_priors(args: &FitArgs) -> bool {
    !args.prior.is_empty() || args.priors.is_some()
}

fn progress_bar(args: &FitArgs) -> ProgressBar {
    if args.quiet || !std::io::stderr().is_terminal() {
        return ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
    }
    let style =
        ProgressStyle::with_template("{bar:30} {pos}/{len} iterations, objective {msg}, {elapsed}");
    ProgressBar::new(args.max_iter as u64)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
