//! The best of several starts.

use plca_fit::{Direction, Outcome};

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
/// use plca_em::{Plca, PlcaInit, Stop, best_of};
/// use plca_fit::Direction;
/// use plca_tensor::{DenseTensor, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
/// let plca = Plca::builder(1).build()?;
/// let best = best_of(3, Direction::Maximise, |start| {
///     plca.fit(&v, &PlcaInit::default(), &Stop::default(), &mut ChaCha8Rng::seed_from_u64(start))
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
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
