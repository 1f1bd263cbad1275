//! Fits as the Skellam paper runs them, plain iterations first, then accelerated ones, by methods that need a fraction of the passes of
//! the paper's parabolic extrapolation (figure `sk_acceleration`).

use std::ops::ControlFlow;

use plca_fit::{Fit, Init, Iteration, Model, Observer, Solver, Status, Stop};
use plca_tensor::Data;
use rand_chacha::ChaCha8Rng;

use crate::Result;

/// Passes by no plateau.
pub(super) const SQUAREM: Solver = Solver::Squarem;
/// Goes on where SQUAREM all but stands still: on the shuttle data it gets further in 500 iterations than SQUAREM in 15 000.
pub(super) const MOMENTUM: Solver = Solver::Momentum;
/// The paper's own.
pub(super) const PARABOLIC: Solver = Solver::Parabolic;

/// Plain iterations before the accelerated ones.
const PLAIN: usize = 200;
/// Iterations from one test of the change to the next.
const CHECKS: usize = 50;
/// The change of the objective over this number of iterations, relative to the objective, that ends a fit.
const CHANGE: f64 = 1e-7;

/// The paper's rule: ends a fit whose objective changes by no more than a part of itself from check to check.
// [SKELLAM 9]
pub(super) fn paper() -> impl Observer<f64> {
    let mut last = f64::NAN;
    move |iteration: &Iteration<'_, f64>| {
        let Some(point) = iteration.measured else {
            return ControlFlow::Continue(());
        };
        let before = std::mem::replace(&mut last, point.objective);
        match (point.objective - before).abs() <= CHANGE * point.objective.abs() {
            true => ControlFlow::Break(Status::Converged),
            false => ControlFlow::Continue(()),
        }
    }
}

/// As many iterations as allowed, measured where the paper's rule needs it.
pub(super) fn at_most(max_iter: usize) -> Stop {
    Stop::default()
        .max_iter(max_iter)
        .tol(None)
        .check_every(CHECKS)
}

/// An accelerated fit with at most `max_iter` accelerated iterations.
pub(super) fn fit<M: Model<f64>>(
    model: &M,
    data: &dyn Data<f64>,
    init: impl Into<Init<f64>>,
    (solver, max_iter): (Solver, usize),
    rng: &mut ChaCha8Rng,
) -> Result<Fit<M::State>> {
    let plain = model.on(data)?.solver(Solver::Em);
    let warm = plain.stop(at_most(max_iter.min(PLAIN))).run(init, rng)?;
    let run = model.on(data)?.solver(solver).stop(at_most(max_iter));
    Ok(run.observe(paper()).run(warm.state(), rng)?)
}
