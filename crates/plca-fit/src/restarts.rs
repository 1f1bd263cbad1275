//! The best of several starts.

use crate::{Direction, Outcome};

/// Runs `fit(0), fit(1), …, fit(n - 1)` and keeps the outcome with the best objective; of equal ones the first, and one
/// that is not a number only if all are. Only the best is kept in memory.
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
        // NaN compares with nothing: it never displaces a number.
        let better = !direction.not_worse(best.objective, outcome.objective);
        if better && !outcome.objective.is_nan() {
            best = outcome;
        }
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StopReason;

    /// The outcomes in turn, their objectives as given.
    fn best(objectives: &[f64], direction: Direction) -> Result<usize, u64> {
        let fit = |start: u64| match objectives[start as usize] {
            f64::INFINITY => Err(start),
            objective => Ok(Outcome {
                state: start as usize,
                trace: vec![],
                reason: StopReason::Converged,
                iterations: 0,
                objective,
            }),
        };
        best_of(objectives.len() as u64, direction, fit).map(|outcome| outcome.state)
    }

    #[test]
    fn the_best_of_the_starts_in_either_direction() {
        let objectives = [-3.0, -1.0, -2.0, -1.0, -3.0];
        assert_eq!(best(&objectives, Direction::Maximise), Ok(1));
        assert_eq!(best(&objectives, Direction::Minimise), Ok(0));
    }

    #[test]
    fn nan_is_never_better() {
        for direction in [Direction::Maximise, Direction::Minimise] {
            assert_eq!(best(&[f64::NAN, 1.0, f64::NAN], direction), Ok(1));
            assert_eq!(best(&[f64::NAN, f64::NAN], direction), Ok(0));
        }
    }

    #[test]
    fn the_first_error_ends_the_search() {
        let objectives = [-3.0, f64::INFINITY, f64::INFINITY];
        assert_eq!(best(&objectives, Direction::Maximise), Err(1));
    }
}
