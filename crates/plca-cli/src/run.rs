//! One fit: its starts, of which the best is kept.

use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use plca_em::HeldOut;
use plca_fit::blocks::BlockSpec;
use plca_fit::far::far_hidden_cell;
use plca_fit::{
    Algorithm, AnyModel, Checkpoint, Cooling, Deadline, Event, FitError, Init, Iteration, Progress,
    Sense, Status, Stop,
};
use plca_io::{Element, ModelFile};
use plca_tensor::{Data, DataError};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::{Value, json};

use crate::args::FitArgs;
use crate::blocks::Arrays;
use crate::checkpoint::{FinishedStart, Outcome, RunProgress, checkpoint};
use crate::data::{self, sealed};
use crate::failure::Failure;
use crate::fitted::{described, leave, plain, summary, unfinished};
use crate::given;
use crate::interrupt;
use crate::limits;
use crate::models::Scalar;
use crate::models::options::has;
use crate::models::skellam;
use crate::named;
use crate::outputs::{Trace, merge};
use crate::precision;
use crate::restored::Restored;
use crate::saved::Saved;
use crate::separate::along_frequency;
use crate::solver;
use crate::spectrogram::{comparable, recorded};

/// Fits a model to data, and leaves its files and its summary.
pub(crate) fn fit_on<T: Scalar>(
    args: &FitArgs,
    data: &dyn Data<T>,
    model: &dyn AnyModel<T>,
    mut given: Arrays,
    cooling: Option<(Cooling, HeldOut<'_, T>)>,
    settings: Value,
) -> Result<(), Failure> {
    let metadata = plca_io::read_metadata(&args.data, limits::unpack())?;
    if let Some(path) = &args.init {
        let learnt = recorded(&given::metadata(path)?);
        let shifted = has(args.model, "--kernel");
        comparable((&args.data, recorded(&metadata)), (path, learnt), shifted)?;
    }
    let along = along(args, data.shape());
    let names = named::read(&args.data, &args.hidden, data.shape(), along)?;
    let warnings = given::arrange(args, &settings, &names, &mut given)?;
    let run = Run {
        args,
        data,
        model,
        given,
        warnings,
        stop: stop(args)?,
        cooling,
        settings,
        checksum: sealed(args)?.sha256()?.to_string(),
        sound: metadata["sound"].clone(),
        components: given::called(args)?,
        names,
    };
    // With all files read.
    let mut trace = Trace::new(args.trace.as_deref(), Instant::now());
    let best = run.starts(&mut trace)?;
    run.leave(best, &trace)
}

/// When a run ends.
pub(crate) fn stop(args: &FitArgs) -> Result<Stop, Failure> {
    if args.check_every == 0 {
        return Err(Failure::usage("--check-every 0: at least 1 is needed"));
    }
    if args.restarts == 0 {
        return Err(Failure::usage("--restarts 0: at least one start is needed"));
    }
    let mut stop = Stop::default().max_iter(args.max_iter);
    stop = stop.check_every(args.check_every);
    stop.tol = Some(args.tol).filter(|&tol| tol > 0.0);
    stop.residual_tol = args.kkt_tol;
    stop.time_limit = args.time_limit;
    stop.check().map_err(Failure::usage)?;
    Ok(stop)
}

/// One call of `plca fit`.
struct Run<'a, T: Element> {
    args: &'a FitArgs,
    data: &'a dyn Data<T>,
    model: &'a dyn AnyModel<T>,
    given: Arrays,
    /// Warnings of what was given.
    warnings: Vec<String>,
    stop: Stop,
    cooling: Option<(Cooling, HeldOut<'a, T>)>,
    settings: Value,
    checksum: String,
    /// What the indices of the dimensions are called.
    names: Vec<Option<Vec<String>>>,
    /// What the file says of the sound whose spectrogram it is.
    sound: Value,
    /// What the components that are kept are called.
    components: Value,
}

impl<T: Scalar> Run<'_, T> {
    /// The best of all starts.
    fn starts(&self, trace: &mut Trace<'_>) -> Result<FinishedStart<T>, Failure> {
        let free = self.args.model.free_blocks(self.data.shape().len());
        let complete = free.iter().all(|n| self.given.contains_key(n));
        // With every block given all starts are the same.
        let starts = if complete { 1 } else { self.args.restarts };
        let mut place = match &self.args.resume {
            Some(path) => RunProgress::read(path, self.args.model, &self.settings, &self.checksum)?,
            None => RunProgress::beginning(),
        };
        if let (Some((from, _)), Some(path)) = (&place.running, &self.args.resume)
            && from.iteration() > self.stop.max_iter
        {
            let (there, most) = (from.iteration(), self.stop.max_iter);
            let what = format!("stands at iteration {there}, beyond --max-iter {most}");
            return Err(Failure::of(path, what));
        }
        let limit = self.stop.deadline();
        for start in place.start..starts {
            if place.best.is_some() && limit.is_past() {
                break;
            }
            let from = place.running.take();
            let ended = self.start((start, limit), from, place.best.as_ref(), trace)?;
            let better = |best: &FinishedStart<T>| ended.outcome.score > best.outcome.score;
            if place.best.as_ref().is_none_or(better) {
                place.best = Some(ended);
            }
        }
        (place.best).ok_or_else(|| Failure::usage("--restarts 0: at least one start is needed"))
    }

    /// The parameters that a start begins with: the blocks given, and the others drawn from the seed.
    fn begin(&self, start: u64, algorithm: &dyn Algorithm<T>) -> Result<Checkpoint<T>, Failure> {
        let args = self.args;
        let mut rng = ChaCha8Rng::seed_from_u64(args.seed);
        rng.set_stream(start);
        let path = args.init.as_deref().unwrap_or(Path::new("--init"));
        let mut init = Init::default();
        for (name, array) in &self.given {
            let block = args.model.block(name, array);
            let block = block.map_err(|what| Failure::of(path, what))?;
            init = init.block(name, block.map(T::lit));
        }
        let file = args.init.as_deref().unwrap_or(&args.data);
        let bar = progress_bar(args, "the start: {bar:30} {pos}/{len}, {elapsed}");
        let mut progress = |done: usize, of: usize| {
            bar.set_length(of as u64);
            bar.set_position(done as u64);
            interrupt::going()
        };
        let parameters =
            init.parameters_with(algorithm, &mut rng, &mut Progress::to(&mut progress));
        bar.finish_and_clear();
        let parameters = parameters.map_err(|e| {
            if e == FitError::Interrupted {
                return interrupt::failure();
            }
            if let (FitError::Support { index, value }, Some(init)) = (&e, &args.init) {
                let what = format!(
                    "entry {index:?} is {value}, but the start in {} gives it the probability 0: add a small number, such as 1e-6, to the zeros of its blocks, or leave blocks out of it that --freeze does not keep",
                    init.display()
                );
                return Failure::of(&args.data, what);
            }
            let of_size = matches!(e, FitError::Shape { .. }) && args.init.is_some();
            match (of_size, Failure::from(e).about(file)) {
                (true, e) => e.and("--init may hold some of the blocks, or --freeze keep some: then the others may be of other data"),
                (false, e) => e,
            }
        })?;
        Ok(Checkpoint::new(parameters))
    }

    /// Runs one start to its end.
    fn start(
        &self,
        (start, limit): (u64, Deadline),
        from: Option<(Checkpoint<T>, Restored)>,
        best: Option<&FinishedStart<T>>,
        trace: &mut Trace<'_>,
    ) -> Result<FinishedStart<T>, Failure> {
        let args = self.args;
        let run = self
            .model
            .on(self.data)
            .map_err(|e| about_data::<T>(args, e))?;
        // What it refuses is refused before a start is learnt.
        let solver = solver::of(args, run.algorithm())?;
        let (from, mut restored) = match from {
            Some(from) => from,
            None => (self.begin(start, run.algorithm())?, Restored::default()),
        };
        // An interruption of the first start ends the process at once: there is nothing to keep.
        interrupt::iterating();
        let sense = run.algorithm().sense();
        let posterior = has_density(run.algorithm().blocks()) || args.options.has("sparsity");
        let mut stop = self.stop.clone();
        stop.time_limit = limit.left();
        let mut run = run.solver(solver).stop(stop);
        if let Some((cooling, parts)) = &self.cooling {
            run = run.cool(*cooling, &parts.train, &parts.held);
        }
        let bar = progress_bar(args, PROGRESS);
        let (mut failure, mut interrupted, mut kept) = (None, false, args.resume.as_ref());
        let observer = |it: &Iteration<'_, T>| {
            bar.set_position(it.done() as u64);
            if let Some(point) = it.measured {
                bar.set_message(format!("{:.6e}", point.objective));
                failure = trace.line(start, (point.iteration, point.objective)).err();
            }
            let blocks = it.events.iter().filter_map(|event| match event {
                Event::SupportRestored { block, .. } => Some(block.clone()),
                _ => None,
            });
            restored.note(blocks.collect());
            interrupted = interrupt::requested();
            if let (Some(path), Some(every)) = (&args.checkpoint, args.checkpoint_every)
                && failure.is_none()
                && (interrupted || (it.done() as u64).is_multiple_of(every))
            {
                let written = checkpoint(it.checkpoint(), (start, &restored), best);
                let written = written.and_then(|(arrays, extra)| {
                    let mut metadata = self.describe(posterior);
                    merge(&mut metadata, extra);
                    let file = ModelFile { arrays, metadata };
                    Ok(interrupt::writing(|| {
                        plca_io::write_checkpoint(path, &file)
                    })?)
                });
                failure = written.err();
                kept = Some(path);
            }
            match interrupted || failure.is_some() {
                true => ControlFlow::Break(Status::Interrupted),
                false => ControlFlow::Continue(()),
            }
        };
        let fit = run.observe(observer).resume(from);
        let fit = fit.map_err(|e| match (Failure::from(e), kept) {
            (e, Some(path)) if e.is_unread() => {
                e.and(format_args!("{} continues the run", path.display()))
            }
            (e, _) => e.about(&args.data),
        })?;
        bar.finish_and_clear();
        let (iterations, objective) = (fit.iterations(), fit.objective());
        if let Some(e) = failure {
            return Err(e);
        }
        if interrupted {
            let done = format!("{iterations} iterations of start {start}");
            return Err(interrupt::after(&done, args.checkpoint.as_deref()));
        }
        trace.line(start, (iterations, objective))?;
        if !objective.is_finite() {
            let what = format!("the objective became {objective} after {iterations} iterations");
            return Err(Failure::of(&args.data, what));
        }
        let held_out_perplexity = fit.held_out_perplexity();
        let outcome = Outcome {
            score: match (held_out_perplexity, sense) {
                (Some(perplexity), _) => -perplexity,
                (None, Sense::Maximise) => fit.compared(),
                (None, Sense::Minimise) => -fit.compared(),
            },
            status: fit.status().clone(),
            iterations,
            objective,
            held_out_perplexity,
            restored,
        };
        Ok(FinishedStart {
            parameters: fit.into_state(),
            outcome,
        })
    }

    /// The metadata of a file. The objective is a posterior where a prior has a density.
    fn describe(&self, posterior: bool) -> Value {
        let (sha256, total) = (&self.checksum, self.data.total());
        let data = json!({ "shape": self.data.shape(), "sha256": sha256, "total": total });
        described(self.args, self.settings.clone(), data, posterior)
    }

    /// Writes the model and says what it is.
    fn leave(&self, best: FinishedStart<T>, trace: &Trace<'_>) -> Result<(), Failure> {
        let (args, data) = (self.args, self.data);
        let (outcome, best) = (best.outcome, best.parameters);
        let mut summary = summary(args, outcome.iterations, &outcome.status, outcome.objective);
        let mut posterior = false;
        let sparse = args.options.has("sparsity");
        if let Some(name) = plain(args).filter(|_| args.has_priors() || sparse) {
            let run = self.model.on(data).map_err(|e| about_data::<T>(args, e))?;
            posterior = sparse || has_density(run.algorithm().blocks());
            let value = run.algorithm().likelihood(&best);
            summary[name] = json!(value.map_err(|e| about_data::<T>(args, e))?);
        }
        if let Some(perplexity) = outcome.held_out_perplexity {
            summary["held_out_perplexity"] = json!(perplexity);
            summary["power"] = json!(best.power());
        }
        let mut warnings = data::warnings(args.model, data);
        warnings.extend(data::transposed(
            args.model,
            &args.data,
            args.options.get("given")?,
            &args.hidden,
        ));
        warnings.extend(outcome.restored.warnings());
        warnings.extend(self.warnings.iter().cloned());
        warnings.extend(given::left_out(args, data.shape().len())?);
        let free = args.model.free_blocks(data.shape().len());
        let fixed = free.iter().all(|name| args.fix.contains(name));
        let cut = outcome.status == Status::MaxIterations && !fixed;
        warnings.extend(unfinished(cut, args.max_iter, args.tol));
        if outcome.status == Status::TimeLimit {
            let iterations = outcome.iterations;
            warnings.push(format!(
                "--time-limit ended the run after {iterations} iterations, before it converged"
            ));
        }
        let mut model = args.model.file(&best.widened());
        if !args.fix.iter().any(|fixed| fixed.starts_with("kernels")) {
            warnings.extend(points(&model));
        }
        merge(&mut model.metadata, self.describe(posterior));
        if has(args.model, "--replicates") {
            let observed = data.observed().map_err(|e| Failure::by(&args.data, e))?;
            let cells: f64 = data.shape().iter().map(|&n| n as f64).product();
            // As much for a hidden cell as for an observed one.
            let absolute = data.summary().absolute / observed * cells;
            warnings.extend(skellam::describe(args, absolute, &mut model, &mut summary));
        }
        warnings.extend(far(args, &model, data)?);
        warnings.extend(named::doubtful(&args.data, &self.names, &args.hidden)?);
        warnings.extend(named::repeated(&self.names));
        warnings.extend(named::columns_as_names(
            &args.data,
            &args.hidden,
            &self.names,
            data,
        )?);
        warnings.extend(without_counts(args, &self.names, data)?);
        let (names, left_out) = named::kept(self.names.clone());
        if !names.is_null() {
            model.metadata["names"] = names;
        }
        if !self.components.is_null() {
            model.metadata["components"] = self.components.clone();
        }
        if self.sound.is_object() {
            warnings.extend(along_frequency(&model.metadata));
            model.metadata["sound"] = self.sound.clone();
        }
        warnings.extend(left_out);
        leave(args, model, summary, warnings, trace)
    }
}

/// A warning of hidden cells that are approximated by far more than any datum.
fn far<T: Scalar>(
    args: &FitArgs,
    model: &ModelFile,
    data: &dyn Data<T>,
) -> Result<Option<String>, Failure> {
    let far = far_hidden_cell(data, || {
        let saved = Saved::new(&args.output, model.clone());
        let fitted = args.model.approximation(saved)?;
        match fitted.shape() == data.shape() {
            true => fitted.cells().map_err(Failure::from),
            false => Ok(Vec::new()),
        }
    })?;
    Ok(far.map(|far| {
        format!(
            "the approximation of the hidden cell {:?} is {:.3e}, {:.0} times the largest of the data: the observed cells do not determine it, so take it for unknown; a prior, fewer components or fewer iterations, --max-iter, keep it nearer",
            far.index,
            far.value,
            far.value.abs() / far.largest
        )
    }))
}

/// The dimension of the observations.
fn along(args: &FitArgs, shape: &[usize]) -> usize {
    match has(args.model, "--given") {
        true => args.options.get("given").ok().flatten().unwrap_or(1),
        false => shape.len().saturating_sub(1),
    }
}

/// A warning of observations without a count, whose mixtures are those of the start.
fn without_counts<T: Scalar>(
    args: &FitArgs,
    names: &[Option<Vec<String>>],
    data: &dyn Data<T>,
) -> Result<Option<String>, Failure> {
    if !has(args.model, "--given") {
        return Ok(None);
    }
    let along = along(args, data.shape());
    let sums = data
        .marginal(along)
        .map_err(|e| Failure::by(&args.data, e))?;
    // Of those that are hidden there is a warning already.
    let mut hidden = plca_tensor::unobserved(data).map_err(|e| Failure::by(&args.data, e))?;
    let hidden = hidden.swap_remove(along);
    let empty = sums.iter().enumerate().filter(|&(_, &sum)| sum <= 0.0);
    let empty = empty
        .map(|(at, _)| at)
        .filter(|at| hidden.binary_search(at).is_err());
    let empty: Vec<usize> = empty.collect();
    Ok(data::without_data(&empty, along, names))
}

/// Share of a kernel in one cell above which it is called a point.
const POINT: f64 = 0.99;

/// A warning of kernels that are points: these and impulses like the data explain any data.
fn points(model: &ModelFile) -> Option<String> {
    let kernels = model.arrays.get("kernels")?;
    let cells: usize = kernels.shape[1..].iter().product();
    let is_point = |kernel: &[f64]| kernel.iter().any(|&share| share > POINT);
    let points = kernels.values.chunks_exact(cells.max(1)).enumerate();
    let points = points.filter(|(_, kernel)| cells > 1 && is_point(kernel));
    let points: Vec<usize> = points.map(|(z, _)| z).collect();
    (!points.is_empty()).then(|| {
        format!(
            "kernels {} are points, which explain any data: --prior impulses=entropic:.2r, a weaker or a stronger one, or more --restarts may find what recurs",
            data::listed(&points)
        )
    })
}

/// Whether any block has a prior with a density.
pub(crate) fn has_density<T: Element>(blocks: &[BlockSpec<T>]) -> bool {
    let mut priors = blocks.iter().flat_map(|block| &block.prior);
    priors.any(|prior| prior.rules().has_density())
}

/// What is wrong with the data or the run.
pub(crate) fn about_data<T: Element>(args: &FitArgs, e: FitError) -> Failure {
    match e {
        FitError::Data(e @ (DataError::NotFinite { .. } | DataError::NoMass)) => {
            precision::refused::<T>(&args.data, &args.hidden, e)
        }
        FitError::Data(e @ DataError::Negative { .. }) if args.model.name == "ntf-l2" => {
            Failure::of(&args.data, e).and("--update hals takes negative noise")
        }
        FitError::UnknownBlock { .. } => e.into(),
        FitError::Total { .. } => {
            Failure::of(&args.data, e).and("data of either sign are for skellam")
        }
        e => match Failure::from(e) {
            e if e.is_unread() => e,
            e => Failure::of(&args.data, e),
        },
    }
}

/// What a bar of iterations shows.
pub(crate) const PROGRESS: &str = "{bar:30} {pos}/{len} iterations, objective {msg}, {elapsed}";

pub(crate) fn progress_bar(args: &FitArgs, template: &str) -> ProgressBar {
    if args.quiet || !std::io::stderr().is_terminal() {
        return ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
    }
    let style = ProgressStyle::with_template(template);
    ProgressBar::new(args.max_iter as u64)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
