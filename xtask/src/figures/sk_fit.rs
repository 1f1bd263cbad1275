//! Fits as the Skellam paper runs them, plain iterations first, then accelerated ones; by SQUAREM, which needs a fraction of the
//! passes of the paper's parabolic extrapolation and passes by no plateau (figure `sk_acceleration`).

use plca_fit::{Outcome, Squarem, Stop, run};
use rand_chacha::ChaCha8Rng;
use skellam_snmf::{Posterior, SignedMatrix, Snmf, SnmfInit, SnmfState, SnmfVb, VbInit};

use crate::Result;

/// Plain iterations before the accelerated ones.
const PLAIN: usize = 200;

/// `(plain, accelerated)`: a change below 1e-7, tested every 50 iterations, ends a fit.
fn stops(max_iter: usize) -> (Stop, Stop) {
    // [SKELLAM 9]
    let accelerated = Stop {
        max_iter,
        tol: 1e-7,
        check_every: 50,
        ..Stop::default()
    };
    let plain = Stop {
        max_iter: max_iter.min(PLAIN),
        tol: 0.0,
        ..accelerated
    };
    (plain, accelerated)
}

/// Accelerated EM with at most `max_iter` accelerated iterations.
pub(super) fn em(
    snmf: &Snmf,
    data: &SignedMatrix<f64>,
    init: &SnmfInit<f64>,
    max_iter: usize,
    rng: &mut ChaCha8Rng,
) -> Result<Outcome<SnmfState<f64>>> {
    let (plain, accelerated) = stops(max_iter);
    let warm = snmf.fit(data, init, &plain, rng)?;
    let fast = Squarem(snmf.on(data)?);
    Ok(run(&fast, warm.state, &accelerated, ())?)
}

/// Accelerated variational Bayes with at most `max_iter` accelerated iterations.
pub(super) fn vb(
    vb: &SnmfVb,
    data: &SignedMatrix<f64>,
    init: &VbInit<f64>,
    max_iter: usize,
    rng: &mut ChaCha8Rng,
) -> Result<Outcome<Posterior<f64>>> {
    let (plain, accelerated) = stops(max_iter);
    let warm = vb.fit(data, init, &plain, rng)?;
    let fast = Squarem(vb.on(data)?);
    Ok(run(&fast, warm.state, &accelerated, ())?)
}
