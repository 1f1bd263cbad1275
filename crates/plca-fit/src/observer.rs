//! Watching a run, and ending it.

use std::ops::ControlFlow;

use crate::{Progress, TracePoint};

/// What an observer sees after an iteration.
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
