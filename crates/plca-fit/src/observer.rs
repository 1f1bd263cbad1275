//! Watching a run, and ending it.

use std::ops::ControlFlow;

use crate::{Progress, TracePoint};

/// What an observer sees after an iteration.
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
/// use plca_fit::{Iteration, Stop, run};
/// let mut seen = Vec::new();
/// let keep = |i: &Iteration<'_, f64>| {
///     seen.push((i.iteration, *i.state));
///     ControlFlow::Continue(())
/// };
/// let outcome = run(&Halving, 8.0, &Stop { max_iter: 2, ..Stop::default() }, keep)?;
/// assert_eq!(seen, [(1, 4.0), (2, 2.0)]);
/// # Ok::<(), StopError>(())
/// ```
#[derive(Debug)]
pub struct Iteration<'a, S> {
    /// Iterations done so far, this one included.
    pub iteration: usize,
    /// The objective measured during this iteration; it belongs to the state *before* it.
    pub measured: Option<TracePoint>,
    /// The state after this iteration.
    pub state: &'a S,
    /// What, together with the state, continues this run bit for bit: see [`run_from`](crate::run_from).
    pub progress: Progress,
}

/// Told about every iteration. `()`, closures and pairs of observers are observers.
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
/// use plca_fit::{Iteration, Stop, StopReason, run};
/// let small = |i: &Iteration<'_, f64>| if *i.state < 0.1 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
/// let outcome = run(&Halving, 8.0, &Stop::default(), small)?;
/// assert_eq!((outcome.state, outcome.reason), (0.0625, StopReason::Interrupted));
/// # Ok::<(), StopError>(())
/// ```
pub trait Observer<S> {
    /// Called after every iteration; `Break` ends the run.
    fn on_iteration(&mut self, iteration: &Iteration<'_, S>) -> ControlFlow<()>;
}

impl<S> Observer<S> for () {
    fn on_iteration(&mut self, _: &Iteration<'_, S>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl<S, F: FnMut(&Iteration<'_, S>) -> ControlFlow<()>> Observer<S> for F {
    fn on_iteration(&mut self, iteration: &Iteration<'_, S>) -> ControlFlow<()> {
        self(iteration)
    }
}

impl<S, A: Observer<S>, B: Observer<S>> Observer<S> for (A, B) {
    /// Both are told, then the first `Break` counts.
    fn on_iteration(&mut self, iteration: &Iteration<'_, S>) -> ControlFlow<()> {
        let first = self.0.on_iteration(iteration);
        let second = self.1.on_iteration(iteration);
        if first.is_break() { first } else { second }
    }
}
