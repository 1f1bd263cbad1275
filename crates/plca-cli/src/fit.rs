//! `plca fit`.

use std::io::{IsTerminal, Write};
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
use crate::data::{Data, load, unobserved_warnings};
use crate::failure::Failure;
use crate::interrupt;
use crate::models::nmf_kl::NmfCommand;
use crate::models::plca::PlcaCommand;
use crate::models::plsa::PlsaCommand;
use crate::models::tempered::TemperedCommand;
use crate::models::{CommandModel, block_names};

/// More threads than any kernel has work for.
const MOST_THREADS: usize = 256;

/// Runs `work` on the asked number of threads.
pub(crate) fn on_threads<O: Send>(
    threads: Option<usize>,
    work: impl FnOnce() -> O + Send,
) -> Result<O, Failure> {
    let Some(threads) = threads else {
        return Ok(work());
    };
    if threads == 0 {
        return Err(Failure::usage("--threads 0: at least one thread is needed"));
    }
    let pool = rayon::ThreadPoolBuilder::new()
        // Results do not depend on it.
        .num_threads(threads.min(MOST_THREADS))
        .build()
        .map_err(Failure::new)?;
    Ok(pool.install(work))
}

/// Largest number of parameters that anyone can mean.
const MOST_PARAMETERS: usize = 1 << 33;

/// Refuses a rank whose parameters could not be held.
pub(crate) fn reasonable(option: &str, rank: usize, shape: &[usize]) -> Result<(), Failure> {
    let parameters = rank.checked_mul(shape.iter().sum());
    match parameters.filter(|&n| n <= MOST_PARAMETERS) {
        Some(_) => Ok(()),
        None => Err(Failure::usage(format!(
            "{option}: {rank} components are too many for data of shape {shape:?}"
        ))),
    }
}

/// Refuses, before any work, a file that could not be written at its end.
pub(crate) fn writable(path: &Path, extensions: &[&str]) -> Result<(), Failure> {
    let known = extensions.is_empty()
        || path
            .extension()
            .is_some_and(|e| extensions.iter().any(|k| e == *k));
    if !known {
        return Err(Failure::of(
            path,
            format!("unknown extension; known are .{}", extensions.join(", .")),
        ));
    }
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
    if folder.is_some_and(|p| !p.is_dir()) {
        return Err(Failure::of(path, "there is no such folder"));
    }
    if path.is_dir() {
        return Err(Failure::of(path, "is a folder"));
    }
    Ok(())
}

/// Extensions of model files.
pub(crate) const MODEL_FILES: &[&str] = &["npz", "safetensors"];

/// Random numbers of what is held out, apart from those of any start.
pub(crate) const HELD_OUT_STREAM: u64 = u64::MAX;

/// Whether two paths name one file, there or yet to be written.
fn same_file(a: &Path, b: &Path) -> bool {
    let place = |path: &Path| {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let written = folder.canonicalize().ok().zip(path.file_name());
        path.canonicalize()
            .ok()
            .or(written.map(|(folder, name)| folder.join(name)))
    };
    place(a).is_some_and(|a| place(b) == Some(a))
}

/// Refuses outputs that would overwrite each other or the data.
fn distinct(args: &FitArgs) -> Result<(), Failure> {
    let outputs = [
        ("--output", Some(&args.output)),
        ("--trace", args.trace.as_ref()),
        ("--checkpoint", args.checkpoint.as_ref()),
    ];
    let mut seen = vec![("the data", &args.data)];
    for (name, path) in outputs {
        let Some(path) = path else { continue };
        if let Some((other, _)) = seen.iter().find(|(_, p)| same_file(p, path)) {
            let path = path.display();
            return Err(Failure::usage(format!(
                "{name} {path}: the same file as {other}"
            )));
        }
        seen.push((name, path));
    }
    Ok(())
}

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
    interrupt::note()?;
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

/// Before the names of the blocks of the best finished start in a checkpoint.
const BEST: &str = "best.";

fn fit<T: Element, M: CommandModel<T>>(
    args: &FitArgs,
    data: &dyn Observed<T>,
    make: impl FnOnce(usize) -> Result<M, Failure>,
) -> Result<(), Failure> {
    let started = Instant::now();
    let order = data.shape().len();
    let (given, implied) = given_blocks(args, order)?;
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
    let stop = Stop {
        max_iter: args.max_iter,
        tol: args.tol,
        check_every: args.check_every,
        residual_tol: args.kkt_tol,
    };
    stop.check().map_err(Failure::usage)?;
    if args.restarts == 0 {
        return Err(Failure::usage("--restarts 0: at least one start is needed"));
    }
    reasonable("--rank", rank, data.shape())?;
    let model = make(rank)?;
    let settings = settings(args, rank);
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

    let mut trace = String::new();
    let complete = block_names(args.model, order)
        .iter()
        .all(|n| n == "marginal" || given.contains_key(n));
    // With every block given all starts are the same.
    let starts = if complete { 1 } else { args.restarts };
    let mut best: Option<Outcome<M::State>> = None;
    let (mut first, mut resumed) = (0, None);
    if let Some(path) = &args.resume {
        let mut file = plca_io::read_checkpoint(path)?;
        let (progress, start) = checkpoint_progress(path, &file, &settings, &checksum)?;
        let mut arrays = Arrays::new();
        let names: Vec<_> = file.arrays.keys().cloned().collect();
        for name in names {
            if let (Some(block), Some(array)) =
                (name.strip_prefix(BEST), file.arrays.get(&name).cloned())
            {
                file.arrays.remove(&name);
                arrays.insert(block.to_string(), array);
            }
        }
        let saved = &file.metadata["checkpoint"]["best"];
        if !saved.is_null() {
            let part = |name: &str| saved[name].clone();
            let number = |e| Failure::of(path, e);
            best = Some(Outcome {
                state: model.restore(arrays, path)?,
                trace: Vec::new(),
                reason: serde_json::from_value(part("reason")).map_err(number)?,
                iterations: serde_json::from_value(part("iterations")).map_err(number)?,
                objective: serde_json::from_value(part("objective")).map_err(number)?,
            });
        }
        first = start;
        resumed = Some((model.restore(file.arrays, path)?, progress));
    }
    for start in first..starts {
        let (state, progress) = match resumed.take() {
            Some(saved) => saved,
            None => {
                let mut rng = ChaCha8Rng::seed_from_u64(args.seed);
                rng.set_stream(start);
                let path = args.init.as_deref().unwrap_or(Path::new("--init"));
                let state = model
                    .start(data, given.clone(), path, &mut rng)
                    .map_err(|e| match &args.init {
                        Some(init) if !e.to_string().starts_with(&init.display().to_string()) => {
                            Failure::of(init, e)
                        }
                        None => Failure::of(&args.data, e),
                        _ => e,
                    })?;
                (state, Progress::default())
            }
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
                let mut arrays = model.saved(data, it.state);
                // The best of the starts before this one.
                let kept = best.as_ref().map(|b| {
                    let blocks = model.saved(data, &b.state).into_iter();
                    arrays.extend(blocks.map(|(name, block)| (format!("{BEST}{name}"), block)));
                    json!({ "reason": b.reason, "iterations": b.iterations, "objective": b.objective })
                });
                let checkpoint = json!({ "progress": it.progress, "start": start, "best": kept });
                let file = ModelFile {
                    arrays,
                    metadata: describe(json!({ "checkpoint": checkpoint })),
                };
                if let Err(e) = plca_io::write_checkpoint(path, &file) {
                    failure = Some(e);
                    return ControlFlow::Break(());
                }
            }
            if interrupted {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let from = (state, progress);
        let outcome = model.iterate(data, args.accelerate, from, &stop, observer)?;
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
        if best.as_ref().is_none_or(|b| {
            !model
                .direction()
                .not_worse(model.score(b), model.score(&outcome))
        }) {
            best = Some(outcome);
        }
    }
    let Some(outcome) = best else {
        return Err(Failure::usage("--restarts 0: at least one start is needed"));
    };

    let seconds = started.elapsed().as_secs_f64();
    let mut summary = json!({
        "model": model_name(args.model),
        "iterations": outcome.iterations,
        "stop_reason": outcome.reason.to_string(),
        "objective": outcome.objective,
        "seconds": seconds,
    });
    if has_priors(args)
        && let Some(ln_lik) = model.ln_lik(data, &outcome.state)?
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
    if let Value::Object(extra) = &mut extra {
        // Wall time is no property of the model: equal runs write equal files.
        extra.remove("seconds");
    }
    let file = ModelFile {
        arrays: model.arrays(data, &outcome.state),
        metadata: describe(extra),
    };
    let single = args.precision == Precision::F32;
    if let Some(path) = &args.trace {
        // The model is written once the trace is on the disk under its temporary name: both appear, or none.
        let mut failure = None;
        let written = plca_io::write_atomically(path, |w| {
            w.write_all(trace.as_bytes())?;
            w.flush()?;
            plca_io::write_model(&args.output, &file, single).map_err(|e| {
                failure = Some(e);
                std::io::Error::other("the model could not be written")
            })
        });
        if let Some(e) = failure {
            return Err(e.into());
        }
        written?;
    } else {
        plca_io::write_model(&args.output, &file, single)?;
    }
    warn(args.quiet, &warnings);
    report(args.json, args.quiet, &summary)
}

/// Warnings for a person; with `--quiet` they are in the metadata alone.
#[expect(clippy::print_stderr, reason = "warnings go to standard error")]
pub(crate) fn warn(quiet: bool, warnings: &[String]) {
    for warning in warnings.iter().filter(|_| !quiet) {
        eprintln!("warning: {warning}");
    }
}

/// The summary for a program or for a person.
#[expect(clippy::print_stdout, reason = "the summary is the command's output")]
pub(crate) fn report(as_json: bool, quiet: bool, summary: &Value) -> Result<(), Failure> {
    if as_json {
        println!("{summary}");
    } else if !quiet && let Value::Object(summary) = summary {
        for (name, value) in summary {
            println!(
                "{name:>16}  {}",
                value.as_str().map_or(value.to_string(), str::to_string)
            );
        }
    }
    Ok(())
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

/// Everything that changes the numbers of a run; a checkpoint is continued under the same settings only.
fn settings(args: &FitArgs, rank: usize) -> Value {
    json!({
        "rank": rank,
        "tol": args.tol,
        "kkt_tol": args.kkt_tol,
        "check_every": args.check_every,
        "restarts": args.restarts,
        "fix": args.fix,
        "prior": args.prior,
        "given": args.given.unwrap_or(1),
        "update": args.update.map(|u| format!("{u:?}").to_lowercase()),
        "temper": args.temper,
        "temper_prior": args.temper_prior,
        "missing": args.hidden.missing.map(|m| format!("{m:?}").to_lowercase()),
        "missing_method": args.missing_method.map(|m| format!("{m:?}").to_lowercase()),
        "solver": format!("{:?}", args.solver).to_lowercase(),
        "accelerate": format!("{:?}", args.accelerate).to_lowercase(),
        "precision": format!("{:?}", args.precision).to_lowercase(),
    })
}

/// Where a checkpoint stands, once it is known to belong to this run.
fn checkpoint_progress(
    path: &Path,
    file: &ModelFile,
    settings: &Value,
    checksum: &str,
) -> Result<(Progress, u64), Failure> {
    let saved = &file.metadata["checkpoint"];
    if saved.is_null() {
        return Err(Failure::of(path, "is no checkpoint"));
    }
    if file.metadata["data"]["sha256"] != checksum {
        return Err(Failure::of(path, "belongs to other data"));
    }
    if let (Value::Object(now), then) = (settings, &file.metadata["settings"])
        && let Some((name, value)) = now
            .iter()
            .find(|(name, value)| then[name.as_str()] != **value)
    {
        return Err(Failure::of(
            path,
            format!(
                "was made with {name} = {}, not {value}",
                then[name.as_str()]
            ),
        ));
    }
    let progress =
        serde_json::from_value(saved["progress"].clone()).map_err(|e| Failure::of(path, e))?;
    Ok((progress, saved["start"].as_u64().unwrap_or(0)))
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
