//! Exact draws of counts: Poisson, binomial, and what else has a log-concave law.
//!
//! Every law is drawn by the same rejection of Devroye (1987, X.2.1): with the mode `m` and its probability `P(m)`,
//! `P(k) ≤ min(P(m), P(m) e^(1 - P(m)|k - m|))` for every log-concave law on the integers. About four trials a draw
//! whatever the parameters, no table, and exact up to the rounding of the law itself.

use rand::Rng;

use crate::{
    DistError, deviance,
    error::domain,
    random::{exponential, uniform},
    stirling::{HALF_LN_TAU, poisson_ln_pmf_of, stirling_error_of},
};

/// Largest count that is drawn: every smaller whole number is a double.
pub(crate) const LARGEST: f64 = 9_007_199_254_740_992.0;

/// Draws from a log-concave law on `low..=high` given its mode and `ln P`. Never leaves the range.
pub(crate) fn log_concave<R: Rng + ?Sized>(
    mode: f64,
    (low, high): (f64, f64),
    ln_p: impl Fn(f64) -> f64,
    rng: &mut R,
) -> f64 {
    let ln_mode = ln_p(mode);
    // A mode found in floating point may be off by one; the hat has room for that.
    let p = ln_mode.exp().max(f64::MIN_POSITIVE);
    let flat = 1.0 + 0.5 * p;
    loop {
        let distance = if uniform(rng) * (1.0 + flat) <= flat {
            uniform(rng) * flat / p
        } else {
            (flat + exponential(rng)) / p
        };
        let sign = if rng.next_u64() >> 63 == 0 { 1.0 } else { -1.0 };
        let k = mode + sign * distance.round();
        let u = uniform(rng);
        if !(low..=high).contains(&k) {
            continue;
        }
        if u.ln() + (flat - p * distance).min(0.0) <= ln_p(k) - ln_mode {
            return k;
        }
    }
}

/// Draws by inversion from 0, given `P(0)` and `P(k + 1) / P(k)`, at most `most`.
fn invert<R: Rng + ?Sized>(mut p: f64, most: f64, ratio: impl Fn(f64) -> f64, rng: &mut R) -> f64 {
    let (mut u, mut k) = (uniform(rng), 0.0);
    while u > p && k < most {
        u -= p;
        p *= ratio(k);
        k += 1.0;
    }
    k
}

/// One Poisson count, for rates known to be within `0..=LARGEST/2`.
pub(crate) fn poisson_of<R: Rng + ?Sized>(rate: f64, rng: &mut R) -> f64 {
    if rate < 10.0 {
        return invert((-rate).exp(), 150.0, |k| rate / (k + 1.0), rng);
    }
    log_concave(
        rate.floor(),
        (0.0, LARGEST),
        |k| poisson_ln_pmf_of(k, rate),
        rng,
    )
}

/// Draws one count of the Poisson law, for rates from 0 to 2^52.
///
/// ```math
/// P(n) = \frac{\lambda^n e^{-\lambda}}{n!}, \qquad n = 0, 1, 2, \dots
/// ```
///
/// # Errors
///
/// [`DistError::Domain`] for a rate outside.
///
/// ```
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let mut rng = ChaCha8Rng::seed_from_u64(0);
/// assert_eq!(plca_dist::draw_poisson(0.0, &mut rng)?, 0);
/// # Ok::<(), plca_dist::DistError>(())
/// ```
pub fn draw_poisson<R: Rng + ?Sized>(rate: f64, rng: &mut R) -> Result<u64, DistError> {
    domain("rate", rate, (0.0..=0.5 * LARGEST).contains(&rate))?;
    Ok(poisson_of(rate, rng) as u64)
}

/// `ln P(k)` of the binomial law for whole `0 ≤ k ≤ n`, `0 < p < 1`, `q = 1 - p`, in the form of Loader (2000).
fn binomial_ln_pmf_of(k: f64, n: f64, p: f64, q: f64) -> f64 {
    if k == 0.0 {
        return n * (-p).ln_1p();
    }
    if k == n {
        return n * p.ln();
    }
    let rest = n - k;
    stirling_error_of(n)
        - stirling_error_of(k)
        - stirling_error_of(rest)
        - deviance(k, n * p)
        - deviance(rest, n * q)
        - HALF_LN_TAU
        - 0.5 * (k.ln() + (rest / n).ln())
}

/// One binomial count, for whole `0 ≤ n ≤ LARGEST` and `0 ≤ p ≤ 1`.
pub(crate) fn binomial_of<R: Rng + ?Sized>(n: f64, p: f64, rng: &mut R) -> f64 {
    if p > 0.5 {
        return n - binomial_of(n, 1.0 - p, rng);
    }
    if n <= 0.0 || p <= 0.0 {
        return 0.0;
    }
    let q = 1.0 - p;
    if n * p < 10.0 {
        // (1-p)^n ≥ e^-14
        let none = (n * (-p).ln_1p()).exp();
        return invert(none, n.min(150.0), |k| (n - k) / (k + 1.0) * (p / q), rng);
    }
    let mode = ((n + 1.0) * p).floor().min(n);
    log_concave(mode, (0.0, n), |k| binomial_ln_pmf_of(k, n, p, q), rng)
}

/// Keeps each of `count` events with probability `keep`, independently, and says how many were kept: binomial thinning.
///
/// ```math
/// P(\text{kept} = k) = \binom{n}{k} \, p^k (1 - p)^{n - k}, \qquad n = \text{count}, \quad p = \text{keep}
/// ```
///
/// What is kept of a Poisson count is Poisson, and independent of what is not: the way to split counts into a part to fit
/// and a part to judge by. Counts up to 2^53.
///
/// # Errors
///
/// [`DistError::Domain`] for a probability outside `[0, 1]` and a larger count.
///
/// ```
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let mut rng = ChaCha8Rng::seed_from_u64(0);
/// assert_eq!(plca_dist::thin(1000, 1.0, &mut rng)?, 1000);
/// assert!(plca_dist::thin(1000, 0.5, &mut rng)? < 1000);
/// # Ok::<(), plca_dist::DistError>(())
/// ```
pub fn thin<R: Rng + ?Sized>(count: u64, keep: f64, rng: &mut R) -> Result<u64, DistError> {
    domain("keep", keep, (0.0..=1.0).contains(&keep))?;
    domain("count", count as f64, count <= LARGEST as u64)?;
    Ok(binomial_of(count as f64, keep, rng) as u64)
}

/// Splits `total` events over `n` weights (not all zero, unless `total` is) by successive binomials: a multinomial draw.
pub(crate) fn multinomial_of<R: Rng + ?Sized>(
    total: f64,
    n: usize,
    weight: impl Fn(usize) -> f64,
    mut out: impl FnMut(usize, f64),
    rng: &mut R,
) {
    let mass_from = |i: usize| (i..n).map(&weight).sum::<f64>();
    let (mut left, mut mass) = (total, mass_from(0));
    let mut exact = mass;
    // The last weight above 0 takes what is left, whatever the rounding of `mass`.
    let last = (0..n).rev().find(|&i| weight(i) > 0.0);
    for i in 0..n {
        let w = weight(i);
        let share = if Some(i) == last {
            left
        } else if w > 0.0 && left > 0.0 {
            binomial_of(left, (w / mass).min(1.0), rng)
        } else {
            0.0
        };
        left -= share;
        mass -= w;
        // Summed anew before the rounding of what was subtracted matters.
        if mass < 0.5 * exact {
            mass = mass_from(i + 1);
            exact = mass;
        }
        out(i, share);
    }
}
