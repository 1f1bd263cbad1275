//! Fits as the Skellam paper runs them, plain iterations first, then accelerated ones, by methods that need a fraction of the passes of
//! the paper's parabolic extrapolation (figure `sk_acceleration`).

use plca_fit::{Accelerate, Carried, Momentum, Outcome, Parabolic, Squarem, Stop, run};
use rand_chacha::ChaCha8Rng;
use skellam_snmf::{Posterior, Signed, Snmf, SnmfInit, SnmfState, SnmfVb, VbInit};

use crate::Result;

/// How a fit goes on after its plain iterations.
#[derive(Clone, Copy, Debug)]
pub(super) enum By {
    /// Passes by no plateau.
    Squarem,
    /// Goes on where SQUAREM all but stands still: on the shuttle data it gets further in 500 iterations than SQUAREM in 15 000.
    Momentum,
    /// The paper's own.
    Parabolic,
}

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

fn accelerated<A: Accelerate>(
    by: By,
    algorithm: A,
    state: A::State,
    stop: &Stop,
) -> std::result::Result<Outcome<A::State>, A::Error> {
    match by {
        By::Squarem => run(&Squarem(algorithm), state, stop, ()),
        By::Momentum => {
            let done = run(&Momentum(algorithm), Carried::new(state), stop, ())?;
            Ok(done.map(Carried::into_inner))
        }
        By::Parabolic => {
            let done = run(&Parabolic(algorithm), Carried::new(state), stop, ())?;
            Ok(done.map(Carried::into_inner))
        }
    }
}

/// Accelerated EM with at most `max_iter` accelerated iterations.
pub(super) fn em(
    snmf: &Snmf,
    data: &Signed<f64>,
    init: &SnmfInit<f64>,
    (by, max_iter): (By, usize),
    rng: &mut ChaCha8Rng,
) -> Result<Outcome<SnmfState<f64>>> {
    let (plain, stop) = stops(max_iter);
    let warm = snmf.fit(data, init, &plain, rng)?;
    Ok(accelerated(by, snmf.on(data)?, warm.state, &stop)?)
}

/// Accelerated variational Bayes with at most `max_iter` accelerated iterations.
pub(super) fn vb(
    vb: &SnmfVb,
    data: &Signed<f64>,
    init: &VbInit<f64>,
    (by, max_iter): (By, usize),
    rng: &mut ChaCha8Rng,
) -> Result<Outcome<Posterior<f64>>> {
    let (plain, stop) = stops(max_iter);
    let warm = vb.fit(data, init, &plain, rng)?;
    Ok(accelerated(by, vb.on(data)?, warm.state, &stop)?)
}
