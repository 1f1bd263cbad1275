//! How much of the machine a run may ask for.

use std::path::Path;
use std::sync::OnceLock;

use crate::failure::Failure;

/// More threads than any kernel has work for.
const MOST_THREADS: usize = 256;

/// What `--unpack-limit` says.
static UNPACK: OnceLock<u64> = OnceLock::new();

/// Memory that packed files may take, in bytes, where a person said it.
pub(crate) fn unpack() -> Option<u64> {
    UNPACK.get().copied()
}

/// Limits of the process: what its command line and its environment ask for.
pub(crate) fn set(unpack_limit: Option<u64>) -> Result<(), Failure> {
    if let Some(limit) = unpack_limit {
        UNPACK.get_or_init(|| limit);
    }
    let threads = std::env::var("RAYON_NUM_THREADS").ok();
    let asked: Option<usize> = threads.and_then(|threads| threads.parse().ok());
    if asked.is_some_and(|threads| threads > MOST_THREADS) {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(MOST_THREADS);
        pool.build_global().map_err(Failure::new)?;
    }
    Ok(())
}

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

/// Copies of the parameters that a run holds at least: the state, its counts, and both as the kernels read them.
const COPIES: usize = 4;

/// Refuses a rank whose parameters could not be held.
pub(crate) fn reasonable(option: &str, rank: usize, shape: &[usize]) -> Result<(), Failure> {
    let indices = shape.iter().fold(0usize, |sum, &n| sum.saturating_add(n));
    let what = || format!("{option}: {rank} components are too many for data of shape {shape:?}");
    parameters(rank.saturating_mul(indices), what)
}

/// Refuses data with this number of observations if their parameters, `each` numbers for an observation, do not fit into memory.
pub(crate) fn describable(data: &Path, each: usize, observations: usize) -> Result<(), Failure> {
    let room = plca_io::room::<f64>(&[COPIES, each, observations]);
    let refused = |e| Failure::of(data, format!("{observations} observations: {e}"));
    room.map(drop).map_err(refused)
}

/// Refuses this number of parameters if they do not fit into memory; `what` names them.
pub(crate) fn parameters(count: usize, what: impl FnOnce() -> String) -> Result<(), Failure> {
    let room = plca_io::room::<f64>(&[COPIES, count]);
    let refused = |e| Failure::usage(format!("{}: {e}", what()));
    room.map(drop).map_err(refused)
}

/// More ranks than anyone can wait for.
const MOST_RANKS: usize = 100_000;

/// The numbers of components of `--ranks`: `2..12`, both ends included, or `2,4,8`.
pub(crate) fn ranks(spec: &str) -> Result<Vec<usize>, Failure> {
    let bad = || {
        Failure::usage(format!(
            "--ranks {spec}: expected A..B or A,B,C with 1 <= A <= B <= {MOST_RANKS}"
        ))
    };
    let number = |s: &str| {
        let n = s.trim().parse::<usize>().ok();
        n.filter(|n| (1..=MOST_RANKS).contains(n)).ok_or_else(bad)
    };
    let ranks: Vec<usize> = match spec.split_once("..") {
        Some((a, b)) => (number(a)?..=number(b.trim_start_matches('='))?).collect(),
        None => spec.split(',').map(number).collect::<Result<_, _>>()?,
    };
    (!ranks.is_empty()).then_some(ranks).ok_or_else(bad)
}
