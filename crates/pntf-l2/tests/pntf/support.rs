//! Models iterated by hand.

pub(crate) use plca_fit::seed as rng;
use plca_fit::{Fit, Init, Model, Solver, State, Stop};
use plca_tensor::{Data, Real};

/// So many iterations, and nothing else that ends a run.
pub(crate) fn exactly(n: usize) -> Stop {
    Stop::default().max_iter(n).tol(None)
}

/// What so many iterations make of a start.
pub(crate) fn after<T: Real, M: Model<T>>(
    model: &M,
    data: &dyn Data<T>,
    start: impl Into<Init<T>>,
    n: usize,
) -> Fit<M::State> {
    let run = model.on(data).unwrap().solver(Solver::Em).stop(exactly(n));
    run.run(start, &mut rng(0)).unwrap()
}

/// The best of several runs, of equals the first.
pub(crate) fn best<S: State>(runs: impl Iterator<Item = Fit<S>>) -> Fit<S> {
    runs.min_by(|a, b| a.objective().total_cmp(&b.objective()))
        .unwrap()
}

/// The objective of a state.
pub(crate) fn objective<T: Real, M: Model<T>>(
    model: &M,
    data: &dyn Data<T>,
    state: &M::State,
) -> f64 {
    let algorithm = model.bind(data).unwrap();
    algorithm.objective(state.parameters()).unwrap()
}

/// The residual of a state.
pub(crate) fn residual<T: Real, M: Model<T>>(
    model: &M,
    data: &dyn Data<T>,
    state: &M::State,
) -> f64 {
    let algorithm = model.bind(data).unwrap();
    algorithm.residual(state.parameters()).unwrap()
}
