//! How much of the machine a run may ask for.

use crate::failure::Failure;

/// More threads than any kernel has work for.
const MOST_THREADS: usize = 256;

/// Runs `work` on the asked number of threads.
pub(crate) fn on_threads<O: Send>(
    threads: Option<usize>,
    work: impl FnOnce() -> O + Send,
) -> Result<O, Failure> {
    let Some(threads) = threads else {
        return Ok(work());
    };
    if threads == 0 {
        return Err(Failure::usage("--threads 0: at least one thread is needed"));
    }
    let pool = rayon::ThreadPoolBuilder::new()
        // Results do not depend on it.
        .num_threads(threads.min(MOST_THREADS))
        .build()
        .map_err(Failure::new)?;
    Ok(pool.install(work))
}

/// Largest number of parameters that anyone can mean.
pub(crate) const MOST_PARAMETERS: usize = 1 << 33;
/// Copies of the parameters that a run holds at least: the state, its counts, and both as the kernels read them.
const COPIES: usize = 4;

/// Refuses a rank whose parameters could not be held.
pub(crate) fn reasonable(option: &str, rank: usize, shape: &[usize]) -> Result<(), Failure> {
    let indices = shape.iter().try_fold(0usize, |sum, &n| sum.checked_add(n));
    let parameters = indices.and_then(|n| rank.checked_mul(n));
    match parameters.filter(|&n| n <= MOST_PARAMETERS && available(n * COPIES)) {
        Some(_) => Ok(()),
        None => Err(Failure::usage(format!(
            "{option}: {rank} components are too many for data of shape {shape:?}"
        ))),
    }
}

/// Whether the system would give memory for so many numbers: running out of it later ends the process without a word.
pub(crate) fn available(numbers: usize) -> bool {
    Vec::<f64>::new().try_reserve_exact(numbers).is_ok()
}
