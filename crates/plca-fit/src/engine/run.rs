//! The loop of every model.

use std::fmt;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::time::Instant;

use plca_tensor::Real;
use rand::Rng;

use super::{
    Algorithm, Checkpoint, Event, Fit, FitError, Init, Need, Parameters, Solver, State, Status,
    Steps, Stop, TracePoint,
};

/// What an observer sees after an iteration.
#[derive(Debug)]
#[non_exhaustive]
pub struct Iteration<'a, T: Real> {
    /// Iterations done so far, this one included.
    pub iteration: usize,
    /// The objective measured during this iteration, of the parameters *before* it.
    pub measured: Option<TracePoint>,
    /// What happened in it.
    pub events: &'a [Event],
    at: &'a Checkpoint<T>,
    steps: &'a dyn Steps<T>,
}

impl<T: Real> Iteration<'_, T> {
    /// The parameters after this iteration.
    pub fn parameters(&self) -> &Parameters<T> {
        &self.at.parameters
    }

    /// What continues the run from here.
    pub fn checkpoint(&self) -> Checkpoint<T> {
        Checkpoint {
            memory: self.steps.memory(),
            ..self.at.clone()
        }
    }
}

/// Told about every iteration. Closures are observers.
pub trait Observer<T: Real> {
    /// Called after every iteration; `Break` ends the run with this status.
    fn on_iteration(&mut self, iteration: &Iteration<'_, T>) -> ControlFlow<Status>;
}

impl<T: Real, F: FnMut(&Iteration<'_, T>) -> ControlFlow<Status>> Observer<T> for F {
    fn on_iteration(&mut self, iteration: &Iteration<'_, T>) -> ControlFlow<Status> {
        self(iteration)
    }
}

/// A model on data, ready to run.
#[must_use = "call `.run(init, rng)`"]
pub struct Run<'a, S: State> {
    algorithm: Box<dyn Algorithm<S::Scalar> + 'a>,
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
            solver: Solver::default(),
            stop: Stop::default(),
            observers: Vec::new(),
            state: PhantomData,
        }
    }

    /// Chooses the solver.
    pub fn solver(mut self, solver: Solver) -> Self {
        self.solver = solver;
        self
    }

    /// Sets the stop rule.
    pub fn stop(mut self, stop: Stop) -> Self {
        self.stop = stop;
        self
    }

    /// Adds an observer. All are told of an iteration; of several that end the run the first one's status counts.
    pub fn observe(mut self, observer: impl Observer<S::Scalar> + 'a) -> Self {
        self.observers.push(Box::new(observer));
        self
    }

    /// Iterates from a start until the stop rule says so.
    ///
    /// # Errors
    ///
    /// Those of the start ([`Init::parameters`]), the stop rule, the algorithm and the solver; [`FitError::NoResidual`] before the first step.
    pub fn run(
        self,
        init: impl Into<Init<S::Scalar>>,
        rng: &mut dyn Rng,
    ) -> Result<Fit<S>, FitError> {
        let start = init.into().parameters(&*self.algorithm, rng)?;
        self.go_on(Checkpoint::new(start))
    }

    /// Continues a run: the same bits and the same end as without the interruption.
    ///
    /// # Errors
    ///
    /// [`FitError::Checkpoint`] for one of other blocks; and as [`run`](Self::run).
    pub fn resume(self, from: Checkpoint<S::Scalar>) -> Result<Fit<S>, FitError> {
        let specs = self.algorithm.blocks();
        if !from.parameters.fits(specs) {
            let names: Vec<_> = specs.iter().map(|spec| &*spec.name).collect();
            let what = format!("its blocks or shapes are others than {}", names.join(", "));
            return Err(FitError::Checkpoint { what });
        }
        self.go_on(from)
    }

    fn go_on(mut self, mut at: Checkpoint<S::Scalar>) -> Result<Fit<S>, FitError> {
        self.stop.check()?;
        for spec in self.algorithm.blocks() {
            spec.check()?;
        }
        let mut observers = std::mem::take(&mut self.observers);
        let mut steps = (self.solver).on(&*self.algorithm, std::mem::take(&mut at.memory))?;
        let limit = self.stop.time_limit.map(|limit| (Instant::now(), limit));
        let (mut trace, mut events) = (Vec::new(), Vec::new());
        let mut cut = None;
        while at.ended.is_none() && at.iteration < self.stop.max_iter {
            let measure = at.iteration.is_multiple_of(self.stop.check_every);
            let near = match measure {
                true => self.is_near(&at)?,
                false => false,
            };
            if near && self.residual_ends() {
                cut = Some(Status::Stationary);
                break;
            }
            let first = events.len();
            let measured = self.iterate(&mut *steps, &mut at, measure, near, &mut events)?;
            trace.extend(measured);
            let iteration = Iteration {
                iteration: at.iteration,
                measured,
                events: &events[first..],
                at: &at,
                steps: &*steps,
            };
            for observer in &mut observers {
                if let ControlFlow::Break(status) = observer.on_iteration(&iteration) {
                    cut.get_or_insert(status);
                }
            }
            if cut.is_none() && limit.is_some_and(|(start, limit)| start.elapsed() >= limit) {
                cut = Some(Status::TimeLimit);
            }
            if cut.is_some() {
                break;
            }
        }
        at.memory = steps.memory();
        let status = cut.or_else(|| at.ended.clone());
        let end = match status {
            // Of parameters that a residual has chosen none other are asked for.
            Some(Status::Stationary) => None,
            _ => steps.finish(&at.parameters)?,
        };
        let end = end.unwrap_or_else(|| at.parameters.clone());
        let objective = self.algorithm.objective(&end)?;
        trace.push(TracePoint {
            iteration: at.iteration,
            objective,
        });
        Ok(Fit {
            state: S::wrap(end)?,
            status: status.unwrap_or(Status::MaxIterations),
            objective,
            trace,
            events,
            checkpoint: at,
        })
    }

    /// Whether the residual is within its tolerance, at a check.
    fn is_near(&self, at: &Checkpoint<S::Scalar>) -> Result<bool, FitError> {
        match self.stop.residual_tol {
            Some(tol) => Ok(self.algorithm.residual(&at.parameters)? <= tol),
            None => Ok(false),
        }
    }

    /// Whether a small residual ends a run whatever the objective does.
    fn residual_ends(&self) -> bool {
        self.stop.need == Need::Any || self.stop.tol.is_none()
    }

    /// One iteration, and what the stop rule makes of it.
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
