//! The loop of every model.

use std::fmt;
use std::marker::PhantomData;
use std::ops::ControlFlow;

use plca_tensor::{Data, Real};
use rand::Rng;

use super::block::names;
use super::cool::{Cooled, Held};
use super::init::scaled;
use super::stop::Deadline;
use super::{
    Algorithm, AnyModel, Checkpoint, Cooling, Event, Fit, FitError, Init, Need, Parameters,
    Progress, Solver, State, Status, Steps, Stop, StopError, TracePoint,
};

/// The state of a run as an observer sees it after an iteration.
///
/// It measures on its way, so [`measured`](Self::measured) and the counter [`iteration`](Self::iteration) are those of the parameters before it, and
/// [`parameters`](Self::parameters) and their counter [`done`](Self::done) those after it.
///
/// ```
/// use std::ops::ControlFlow;
/// use plca_em::{Init, Iteration, Model, Plca, Solver, Stop};
/// use plca_tensor::{DenseTensor, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let v = DenseTensor::<f64>::new(vec![2, 2], vec![1.0, 2.0, 3.0, 6.5], Order::RowMajor)?;
/// let mut lines = Vec::new();
/// let progress = |it: &Iteration<'_, f64>| {
///     if it.iteration % 50 == 0 && let Some(point) = it.measured {
///         lines.push(format!("{}: {:.6}", it.iteration, point.objective));
///     }
///     ControlFlow::Continue(())
/// };
/// let model = Plca::new(2);
/// let stop = Stop::default().tol(None).max_iter(120);
/// let run = model.on(&v)?.solver(Solver::Em).stop(stop).observe(progress);
/// let _fit = run.run(Init::default(), &mut ChaCha8Rng::seed_from_u64(0))?;
/// assert_eq!(lines.len(), 3);                                          // 0, 50 and 100
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Iteration<'a, T: Real> {
    /// Which start of several this is, counted from 0.
    pub start: u32,
    /// Iterations done before this one: the counter of [`measured`](Self::measured), 0 at the first.
    pub iteration: usize,
    /// The objective measured during this iteration, of the parameters *before* it.
    pub measured: Option<TracePoint>,
    /// The events of this iteration.
    pub events: &'a [Event],
    at: &'a Checkpoint<T>,
    steps: &'a dyn Steps<T>,
}

impl<T: Real> Iteration<'_, T> {
    /// Iterations done, this one included: the counter of [`parameters`](Self::parameters).
    pub fn done(&self) -> usize {
        self.at.iteration
    }

    /// The parameters after this iteration.
    pub fn parameters(&self) -> &Parameters<T> {
        &self.at.parameters
    }

    /// The checkpoint that continues the run from here.
    pub fn checkpoint(&self) -> Checkpoint<T> {
        Checkpoint {
            memory: self.steps.memory(),
            ..self.at.clone()
        }
    }
}

/// A listener that is told about every iteration, and may end the run. Closures are observers.
pub trait Observer<T: Real> {
    /// Called after every iteration; `Break` ends the run with this status.
    fn on_iteration(&mut self, iteration: &Iteration<'_, T>) -> ControlFlow<Status>;

    /// Called while a start is computed, before each of its steps, of which `done` of `of` are made: one of a start that is drawn, more of
    /// one that is computed. `Break` ends the run: with the best of the starts before, or, where there is none, as [`FitError::Interrupted`]. Default: goes on.
    fn on_start(&mut self, done: usize, of: usize) -> ControlFlow<Status> {
        let _ = (done, of);
        ControlFlow::Continue(())
    }
}

impl<T: Real, F: FnMut(&Iteration<'_, T>) -> ControlFlow<Status>> Observer<T> for F {
    fn on_iteration(&mut self, iteration: &Iteration<'_, T>) -> ControlFlow<Status> {
        self(iteration)
    }
}

/// What ends a run from outside.
struct Ends<'a, T: Real> {
    observers: Vec<Box<dyn Observer<T> + 'a>>,
    limit: Deadline,
}

impl<T: Real> Ends<'_, T> {
    /// Tells all observers of a step of a start.
    fn before(&mut self, done: usize, of: usize) -> ControlFlow<Status> {
        let mut cut = ControlFlow::Continue(());
        for observer in &mut self.observers {
            let answer = observer.on_start(done, of);
            if cut.is_continue() {
                cut = answer;
            }
        }
        cut
    }

    /// Tells all observers; why the run is to end, if it is.
    fn after(&mut self, iteration: &Iteration<'_, T>) -> Option<Status> {
        let mut cut = None;
        for observer in &mut self.observers {
            if let ControlFlow::Break(status) = observer.on_iteration(iteration) {
                cut.get_or_insert(status);
            }
        }
        cut.or_else(|| self.limit.is_past().then_some(Status::TimeLimit))
    }
}

/// How far parameters are from stationary.
type Residual<'a, T> = Box<dyn Fn(&Parameters<T>) -> Result<f64, FitError> + 'a>;

/// A model on data, ready to run.
#[must_use = "call `.run(init, rng)`"]
pub struct Run<'a, S: State> {
    algorithm: Box<dyn Algorithm<S::Scalar> + 'a>,
    pub(super) model: Option<&'a dyn AnyModel<S::Scalar>>,
    /// What takes the place of the algorithm's residual.
    pub(super) residual: Option<Residual<'a, S::Scalar>>,
    held: Option<Held<'a, S::Scalar>>,
    restarts: u32,
    solver: Solver,
    stop: Stop,
    observers: Vec<Box<dyn Observer<S::Scalar> + 'a>>,
    state: PhantomData<S>,
}

impl<S: State> fmt::Debug for Run<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut run = f.debug_struct("Run");
        run.field("algorithm", &self.algorithm);
        run.field("solver", &self.solver);
        run.field("stop", &self.stop).finish_non_exhaustive()
    }
}

impl<'a, S: State> Run<'a, S> {
    /// A run of an algorithm.
    pub fn new(algorithm: Box<dyn Algorithm<S::Scalar> + 'a>) -> Self {
        Self {
            algorithm,
            model: None,
            residual: None,
            held: None,
            restarts: 1,
            solver: Solver::default(),
            stop: Stop::default(),
            observers: Vec::new(),
            state: PhantomData,
        }
    }

    /// The same run with plain parameters as its state: one type for all models.
    pub fn untyped(self) -> Run<'a, Parameters<S::Scalar>> {
        Run {
            algorithm: self.algorithm,
            model: self.model,
            residual: self.residual,
            held: self.held,
            restarts: self.restarts,
            solver: self.solver,
            stop: self.stop,
            observers: self.observers,
            state: PhantomData,
        }
    }

    /// The model on its data.
    pub fn algorithm(&self) -> &dyn Algorithm<S::Scalar> {
        &*self.algorithm
    }

    /// Sets the number of starts (default 1). They are drawn one after the other, and the best result is kept, with its own status, also where an observer or a time
    /// limit ended a later one. A start that is the first one again, since what is given
    /// says all, is not iterated again.
    pub fn restarts(mut self, starts: u32) -> Self {
        self.restarts = starts;
        self
    }

    /// Tempered EM on a schedule: it learns from the training counts, and the held-out ones say when to lower the power and when to give up. It
    /// also ends at [`max_iter`](Stop::max_iter) or a time limit; the tolerances of the stop rule are not used.
    pub fn cool(
        mut self,
        cooling: Cooling,
        train: &'a dyn Data<S::Scalar>,
        held: &'a dyn Data<S::Scalar>,
    ) -> Self {
        self.held = Some(Held {
            cooling,
            train,
            held,
        });
        self
    }

    /// Sets the solver.
    pub fn solver(mut self, solver: Solver) -> Self {
        self.solver = solver;
        self
    }

    /// Sets the stop rule.
    pub fn stop(mut self, stop: Stop) -> Self {
        self.stop = stop;
        self
    }

    /// Adds an observer. All are told of every iteration; if several end the run, the status of the first one is kept.
    pub fn observe(mut self, observer: impl Observer<S::Scalar> + 'a) -> Self {
        self.observers.push(Box::new(observer));
        self
    }

    /// Iterates from a start until the stop rule ends the run.
    ///
    /// # Errors
    ///
    /// Those of the start ([`Init::parameters`]), the stop rule, the algorithm and the solver; [`FitError::NoResidual`] before the first step.
    pub fn run(
        mut self,
        init: impl Into<Init<S::Scalar>>,
        rng: &mut dyn Rng,
    ) -> Result<Fit<S>, FitError> {
        let init = init.into();
        if self.restarts == 0 {
            return Err(StopError::Zero { name: "restarts" }.into());
        }
        let mut ends = self.prepare()?;
        let mut best: Option<Fit<S>> = None;
        let mut first = None;
        for start in 0..self.restarts {
            let mut told = |done, of| ends.before(done, of);
            let mut progress = Progress::to(&mut told);
            let at = match init.parameters_with(&*self.algorithm, rng, &mut progress) {
                Err(FitError::Interrupted) if best.is_some() => break,
                at => at?,
            };
            // The same start ends where it ended before; a later one may be another.
            if first.as_ref() == Some(&at) {
                continue;
            }
            if start == 0 && self.restarts > 1 {
                first = Some(at.clone());
            }
            let fit = self.go_on(start, Checkpoint::new(at), &mut ends)?;
            let is_last = fit.status().is_cut();
            // Not a number never displaces a number.
            let sense = self.algorithm.sense();
            let better = |best: &Fit<S>| {
                !sense.not_worse(best.compared, fit.compared) && !fit.compared.is_nan()
            };
            if best.as_ref().is_none_or(better) {
                best = Some(fit);
            }
            if is_last {
                break;
            }
        }
        Ok(best.expect("at least one start"))
    }

    /// Continues a run. The result is bit-identical to that without the interruption. A run that has converged ends at once, whatever the new stop rule is:
    /// to go on from its parameters, `resume(Checkpoint::new(parameters))`.
    ///
    /// # Errors
    ///
    /// [`FitError::Checkpoint`] for one of other blocks or facts; and as [`run`](Self::run).
    pub fn resume(mut self, from: Checkpoint<S::Scalar>) -> Result<Fit<S>, FitError> {
        let specs = self.algorithm.blocks();
        if !from.parameters.fits(specs) {
            let names = names(specs).join(", ");
            let what = format!("its blocks or shapes differ from {names}");
            return Err(FitError::Checkpoint { what });
        }
        from.parameters.check(specs)?;
        if from.parameters.power() != 1.0 && !self.algorithm.tempers() {
            let what = "it is tempered, but this run is not".into();
            return Err(FitError::Checkpoint { what });
        }
        let other =
            |(name, numbers): &(&str, Vec<f64>)| from.parameters.fact(name) != Some(numbers);
        if let Some((name, _)) = self.algorithm.facts().iter().find(|fact| other(fact)) {
            let what = format!("its fact `{name}` differs from that of the model on these data");
            return Err(FitError::Checkpoint { what });
        }
        if !from.memory.is_finite() {
            let what = "the memory of its solver holds a value that is not finite".into();
            return Err(FitError::Checkpoint { what });
        }
        let mut ends = self.prepare()?;
        self.go_on(0, from, &mut ends)
    }

    /// Looks at the settings, and starts the clock if there is a limit.
    fn prepare(&mut self) -> Result<Ends<'a, S::Scalar>, FitError> {
        self.stop.check()?;
        for spec in self.algorithm.blocks() {
            spec.check()?;
        }
        if self.held.is_some() {
            if !matches!(self.solver, Solver::Em | Solver::Auto) {
                let what = format!(
                    "the solver `{}` cannot be combined with cooling",
                    self.solver
                );
                return Err(FitError::Conflict { what });
            }
            // The held-out counts alone say when it is enough.
            (self.stop.tol, self.stop.residual_tol) = (None, None);
        }
        Ok(Ends {
            observers: std::mem::take(&mut self.observers),
            limit: self.stop.deadline(),
        })
    }

    /// The solver at work, from what a checkpoint remembers of it.
    fn steps<'s>(
        &'s self,
        at: &mut Checkpoint<S::Scalar>,
    ) -> Result<Box<dyn Steps<S::Scalar> + 's>, FitError> {
        let memory = std::mem::take(&mut at.memory);
        let algorithm = &*self.algorithm;
        let Some(parts) = &self.held else {
            return self.solver.on(algorithm, memory);
        };
        let Some(model) = self.model else {
            return Err(FitError::Conflict {
                what: "cooling needs a run that was made from a model".into(),
            });
        };
        let bound = [model.bind(parts.train)?, model.bind(parts.held)?];
        let cooled = Cooled::new(algorithm, bound, parts.cooling, &at.parameters, &memory)?;
        Ok(Box::new(cooled))
    }

    fn go_on(
        &self,
        start: u32,
        mut at: Checkpoint<S::Scalar>,
        ends: &mut Ends<'a, S::Scalar>,
    ) -> Result<Fit<S>, FitError> {
        let mut steps = self.steps(&mut at)?;
        let (mut trace, mut events) = (Vec::new(), Vec::new());
        let constant = self.algorithm.constant();
        let mut cut = None;
        while cut.is_none() && at.ended.is_none() && at.iteration < self.stop.max_iter {
            let measure = at.iteration.is_multiple_of(self.stop.check_every);
            let near = match measure {
                true => self.is_near(&at)?,
                false => false,
            };
            if near && self.residual_ends() {
                cut = Some(Status::Stationary);
                break;
            }
            let (first, iteration) = (events.len(), at.iteration);
            let measured = self.iterate(&mut *steps, &mut at, measure, near, &mut events)?;
            let measured = measured.map(|point| TracePoint {
                objective: point.objective + constant,
                ..point
            });
            trace.extend(measured);
            cut = ends.after(&Iteration {
                start,
                iteration,
                measured,
                events: &events[first..],
                at: &at,
                steps: &*steps,
            });
        }
        at.memory = steps.memory();
        let status = cut.or_else(|| at.ended.clone());
        let end = match status {
            // Stationary parameters are returned as they are.
            Some(Status::Stationary) => None,
            // A run without iterations ends where it began.
            _ if at.iteration == 0 => None,
            _ => steps.finish(&at.parameters)?,
        };
        let end = end.unwrap_or_else(|| at.parameters.clone());
        let compared = self.algorithm.objective(&end)?;
        let objective = compared + constant;
        trace.push(TracePoint {
            iteration: at.iteration,
            objective,
        });
        let held_out_perplexity = steps.held_out_perplexity();
        drop(steps);
        let end = scaled(&*self.algorithm, end)?;
        Ok(Fit {
            held_out_perplexity,
            state: S::wrap(end)?,
            status: status.unwrap_or(Status::MaxIterations),
            objective,
            compared,
            trace,
            events,
            checkpoint: at,
        })
    }

    /// Whether the residual is within its tolerance, at a check.
    fn is_near(&self, at: &Checkpoint<S::Scalar>) -> Result<bool, FitError> {
        let Some(tol) = self.stop.residual_tol else {
            return Ok(false);
        };
        let residual = match &self.residual {
            Some(residual) => residual(&at.parameters)?,
            None => self.algorithm.residual(&at.parameters)?,
        };
        Ok(residual <= tol)
    }

    /// Whether a small residual ends a run whatever the objective does.
    fn residual_ends(&self) -> bool {
        self.stop.need == Need::Any || self.stop.tol.is_none()
    }

    /// One iteration, and what the stop rule makes of it. What it measures is without the constant of the objective.
    fn iterate(
        &self,
        steps: &mut dyn Steps<S::Scalar>,
        at: &mut Checkpoint<S::Scalar>,
        measure: bool,
        near: bool,
        events: &mut Vec<Event>,
    ) -> Result<Option<TracePoint>, FitError> {
        let (algorithm, stop) = (&*self.algorithm, &self.stop);
        let stepped = steps.step(&mut at.parameters, measure)?;
        let measured = stepped.value.map(|objective| TracePoint {
            iteration: at.iteration,
            objective,
        });
        at.iteration += 1;
        let restored = |j: usize| Event::SupportRestored {
            block: algorithm.blocks()[j].name.to_string(),
            iteration: at.iteration,
        };
        events.extend(stepped.restored.into_iter().map(restored));
        if algorithm.settled(&at.parameters) {
            at.ended = Some(Status::Settled);
        }
        at.ended = at.ended.take().or_else(|| steps.ended());
        if let (Some(new), Some(tol)) = (measured, stop.tol) {
            let small = at.checked.is_some_and(|old| {
                let iterations = (new.iteration - old.iteration) as f64;
                (new.objective - old.objective).abs() <= tol * algorithm.unit() * iterations
            });
            at.small_changes = match small {
                true => at.small_changes.saturating_add(1),
                false => 0,
            };
            let residual = near || stop.need == Need::Any || stop.residual_tol.is_none();
            if residual && at.small_changes >= stop.patience {
                at.ended.get_or_insert(Status::Converged);
            }
        }
        at.checked = measured.or(at.checked);
        Ok(measured)
    }
}
