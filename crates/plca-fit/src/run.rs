//! The loop.

use crate::{Algorithm, Iteration, Need, Observer, Stop, StopError, StopReason};

/// The objective after some number of iterations, in the unit of [`Algorithm::objective`].
///
/// ```
/// # use plca_fit::{Algorithm, StopError};
/// # struct Halving;
/// # impl Algorithm for Halving {
/// #     type State = f64;
/// #     type Error = StopError;
/// #     fn step(&self, x: &mut f64, measure: bool) -> Result<Option<f64>, StopError> {
/// #         let before = measure.then(|| -x.powi(2));
/// #         *x /= 2.0;
/// #         Ok(before)
/// #     }
/// #     fn objective(&self, x: &f64) -> Result<f64, StopError> { Ok(-x.powi(2)) }
/// # }
/// use plca_fit::{Stop, TracePoint, run};
/// let outcome = run(&Halving, 8.0, &Stop { max_iter: 2, ..Stop::default() }, ())?;
/// assert_eq!(outcome.trace, [TracePoint { iteration: 0, objective: -64.0 }, TracePoint { iteration: 2, objective: -4.0 }]);
/// # Ok::<(), StopError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TracePoint {
    /// Iterations done, 0 for the start; those before a resumption included.
    pub iteration: usize,
    /// Objective of the state after them; of a run's last point, of the state that it [ends](crate::Algorithm::finish) with.
    pub objective: f64,
}

/// Where a run stands: with the state, all that is needed to go on as if it had not been interrupted.
///
/// ```
/// use plca_fit::Progress;
/// assert_eq!(Progress::default().iteration, 0);                   // a run that has not begun
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Progress {
    /// Iterations done (default 0).
    pub iteration: usize,
    /// The last check, which the next is compared with (default none).
    pub checked: Option<TracePoint>,
    /// How many checks in a row, up to the last, found a change within [`Stop::tol`] (default 0).
    #[cfg_attr(feature = "serde", serde(default))]
    pub small_changes: usize,
    /// Why the run ended, if this was its last iteration (default none): a run resumed from here ends at once, as it did.
    pub ended: Option<StopReason>,
}

/// What a run gives back.
///
/// ```
/// # use plca_fit::{Algorithm, StopError};
/// # struct Halving;
/// # impl Algorithm for Halving {
/// #     type State = f64;
/// #     type Error = StopError;
/// #     fn step(&self, x: &mut f64, measure: bool) -> Result<Option<f64>, StopError> {
/// #         let before = measure.then(|| -x.powi(2));
/// #         *x /= 2.0;
/// #         Ok(before)
/// #     }
/// #     fn objective(&self, x: &f64) -> Result<f64, StopError> { Ok(-x.powi(2)) }
/// # }
/// use plca_fit::{Stop, StopReason, run};
/// let outcome = run(&Halving, 8.0, &Stop { max_iter: 3, ..Stop::default() }, ())?;
/// assert_eq!((outcome.state, outcome.objective), (1.0, -1.0));
/// assert_eq!((outcome.iterations, outcome.reason), (3, StopReason::MaxIterations));
/// # Ok::<(), StopError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Outcome<S> {
    /// The final state.
    pub state: S,
    /// The objective at every check of this run, and at its end.
    pub trace: Vec<TracePoint>,
    /// Why the run ended.
    pub reason: StopReason,
    /// Iterations done, those before a resumption included.
    pub iterations: usize,
    /// Objective of [`state`](Self::state).
    pub objective: f64,
}

impl<S> Outcome<S> {
    /// The same with another state.
    ///
    /// ```
    /// # use plca_fit::{Outcome, StopReason};
    /// # let reason = StopReason::MaxIterations;
    /// let outcome = Outcome { state: 2, trace: Vec::new(), reason, iterations: 1, objective: 0.5 };
    /// assert_eq!(outcome.map(|n| n.to_string()).state, "2");
    /// ```
    pub fn map<R>(self, state: impl FnOnce(S) -> R) -> Outcome<R> {
        Outcome {
            state: state(self.state),
            trace: self.trace,
            reason: self.reason,
            iterations: self.iterations,
            objective: self.objective,
        }
    }
}

/// Iterates `algorithm` from `state` until `stop` says so.
///
/// Checks cost nothing but the logarithm: the objective of a state is measured by the iteration that leaves it. The rule is not
/// checked here ([`Stop::check`] does): 0 for `check_every` or `patience` counts as 1, a tolerance that is not a number is never met.
///
/// # Errors
///
/// The algorithm's own, [`StopError::NoResidual`] among them.
///
/// # Examples
///
/// ```
/// # use plca_fit::{Algorithm, StopError};
/// # struct Halving;
/// # impl Algorithm for Halving {
/// #     type State = f64;
/// #     type Error = StopError;
/// #     fn step(&self, x: &mut f64, measure: bool) -> Result<Option<f64>, StopError> {
/// #         let before = measure.then(|| -x.powi(2));
/// #         *x /= 2.0;
/// #         Ok(before)
/// #     }
/// #     fn objective(&self, x: &f64) -> Result<f64, StopError> { Ok(-x.powi(2)) }
/// # }
/// use plca_fit::{Stop, StopReason, run};
/// let outcome = run(&Halving, 8.0, &Stop { tol: 10.0, check_every: 1, ..Stop::default() }, ())?;
/// assert_eq!(outcome.reason, StopReason::Converged);              // a change of 48 on 16 is within 10 times 16
/// # Ok::<(), StopError>(())
/// ```
pub fn run<A: Algorithm>(
    algorithm: &A,
    state: A::State,
    stop: &Stop,
    observer: impl Observer<A::State>,
) -> Result<Outcome<A::State>, A::Error> {
    run_from(algorithm, state, Progress::default(), stop, observer)
}

/// Continues a run from a saved state and its [`Progress`]: the same bits and the same end as without the interruption.
///
/// # Errors
///
/// The algorithm's own, [`StopError::NoResidual`] among them.
///
/// # Examples
///
/// ```
/// # use plca_fit::{Algorithm, StopError};
/// # struct Halving;
/// # impl Algorithm for Halving {
/// #     type State = f64;
/// #     type Error = StopError;
/// #     fn step(&self, x: &mut f64, measure: bool) -> Result<Option<f64>, StopError> {
/// #         let before = measure.then(|| -x.powi(2));
/// #         *x /= 2.0;
/// #         Ok(before)
/// #     }
/// #     fn objective(&self, x: &f64) -> Result<f64, StopError> { Ok(-x.powi(2)) }
/// # }
/// use std::ops::ControlFlow;
/// use plca_fit::{Iteration, Progress, Stop, run, run_from};
/// let stop = Stop { max_iter: 9, tol: 0.0, ..Stop::default() };
/// let mut saved = (8.0, Progress::default());
/// let checkpoint = |i: &Iteration<'_, f64>| {
///     saved = (*i.state, i.progress);
///     if i.iteration == 4 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
/// };
/// let cancelled = run(&Halving, 8.0, &stop, checkpoint)?;
/// let (resumed, whole) = (run_from(&Halving, saved.0, saved.1, &stop, ())?, run(&Halving, 8.0, &stop, ())?);
/// assert_eq!((resumed.state, resumed.iterations), (whole.state, whole.iterations));
/// # Ok::<(), StopError>(())
/// ```
pub fn run_from<A: Algorithm>(
    algorithm: &A,
    mut state: A::State,
    mut progress: Progress,
    stop: &Stop,
    mut observer: impl Observer<A::State>,
) -> Result<Outcome<A::State>, A::Error> {
    let mut trace = Vec::new();
    let every = stop.check_every.max(1);
    let mut reason = StopReason::MaxIterations;
    while progress.iteration < stop.max_iter {
        if let Some(ended) = progress.ended {
            reason = ended;
            break;
        }
        let measure = progress.iteration.is_multiple_of(every);
        // The change may end a run unless the residual, which is needed too, is too large.
        let mut near = stop.need == Need::Any || stop.residual_tol.is_none();
        if measure && let Some(tol) = stop.residual_tol {
            let residual = algorithm.residual(&state)?;
            if residual.ok_or(StopError::NoResidual(tol))? <= tol {
                if stop.need == Need::Any || stop.tol <= 0.0 {
                    reason = StopReason::Stationary;
                    break;
                }
                near = true;
            }
        }
        let objective = algorithm.step(&mut state, measure)?;
        let measured = objective.map(|objective| TracePoint {
            iteration: progress.iteration,
            objective,
        });
        progress.iteration += 1;
        progress.ended = algorithm.finished(&state);
        if let Some(new) = measured {
            let small = progress.checked.is_some_and(|old| {
                (new.objective - old.objective).abs() <= stop.tol * new.objective.abs()
            });
            progress.small_changes = if small {
                progress.small_changes.saturating_add(1)
            } else {
                0
            };
            if near && stop.tol > 0.0 && progress.small_changes >= stop.patience.max(1) {
                progress.ended = progress.ended.or(Some(StopReason::Converged));
            }
            trace.push(new);
            progress.checked = Some(new);
        }
        let iteration = Iteration {
            iteration: progress.iteration,
            measured,
            state: &state,
            progress,
        };
        if observer.on_iteration(&iteration).is_break() {
            reason = StopReason::Interrupted;
            break;
        }
    }
    if let (Some(ended), StopReason::MaxIterations) = (progress.ended, reason) {
        reason = ended;
    }
    let cut = matches!(reason, StopReason::Stationary | StopReason::Interrupted);
    if progress.iteration > 0 && !cut {
        algorithm.finish(&mut state)?;
    }
    let objective = algorithm.objective(&state)?;
    trace.push(TracePoint {
        iteration: progress.iteration,
        objective,
    });
    Ok(Outcome {
        state,
        trace,
        reason,
        iterations: progress.iteration,
        objective,
    })
}
