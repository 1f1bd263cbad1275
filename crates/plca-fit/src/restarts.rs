//! The best of several starts.

use crate::{Direction, Outcome};

/// Runs `fit(0), fit(1), …, fit(n - 1)` and keeps the outcome with the best objective; of equal ones the first. Only the best
/// is kept in memory.
///
/// # Errors
///
/// The first error of a run.
///
/// # Panics
///
/// If `n` is 0.
///
/// # Examples
///
/// ```
/// use std::convert::Infallible;
/// use plca_fit::{Direction, Outcome, StopReason, best_of};
/// let fit = |start: u64| Ok::<_, Infallible>(Outcome {
///     state: start, trace: vec![], reason: StopReason::MaxIterations, iterations: 0, objective: (start as f64 - 2.0).abs(),
/// });
/// assert_eq!(best_of(5, Direction::Minimise, fit)?.state, 2);
/// # Ok::<(), Infallible>(())
/// ```
pub fn best_of<S, E>(
    n: u64,
    direction: Direction,
    mut fit: impl FnMut(u64) -> Result<Outcome<S>, E>,
) -> Result<Outcome<S>, E> {
    assert!(n > 0, "at least one start");
    let mut best = fit(0)?;
    for start in 1..n {
        let outcome = fit(start)?;
        if !direction.not_worse(best.objective, outcome.objective) {
            best = outcome;
        }
    }
    Ok(best)
}
