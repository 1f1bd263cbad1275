//! What Stirling's formula leaves of `ln Γ`, and the Poisson law in the form that keeps its digits.

use crate::{
    DistError, deviance,
    elementary::atanh_tail,
    error::{domain, positive},
};

/// `½ ln 2π`.
pub(crate) const HALF_LN_TAU: f64 = 0.918_938_533_204_672_8;

/// `B_2k / (2k (2k-1))`.
pub(crate) const TERMS: [f64; 10] = [
    1.0 / 12.0,
    -1.0 / 360.0,
    1.0 / 1260.0,
    -1.0 / 1680.0,
    5.0 / 5940.0,
    -691.0 / 360_360.0,
    7.0 / 1092.0,
    -3617.0 / 122_400.0,
    43_867.0 / 244_188.0,
    -174_611.0 / 125_400.0,
];

/// The logarithm of the gamma function, `ln Γ(x)` for `x > 0`.
///
/// ```math
/// \ln \Gamma(x) = \ln \int_0^\infty t^{x-1} e^{-t} \, \mathrm{d} t
/// ```
///
/// Relative error at most 4 eps; at the zeros 1 and 2 the error is absolute.
///
/// # Errors
///
/// [`DistError::Domain`] unless `x` is positive and finite.
///
/// ```
/// assert!((plca_dist::ln_gamma(5.0)? - 24f64.ln()).abs() < 1e-15);
/// # Ok::<(), plca_dist::DistError>(())
/// ```
pub fn ln_gamma(x: f64) -> Result<f64, DistError> {
    positive("x", x)?;
    Ok(ln_gamma_of(x))
}

/// [`ln_gamma`] of a positive number.
pub(crate) fn ln_gamma_of(x: f64) -> f64 {
    libm::lgamma_r(x).0
}

/// The error of Stirling's formula for `ln n!`, for `n > 0`, not necessarily whole.
///
/// ```math
/// \delta(n) = \ln n! - \left( \left( n + \tfrac{1}{2} \right) \ln n - n + \tfrac{1}{2} \ln 2 \pi \right), \qquad n! = \Gamma(n+1)
/// ```
///
/// `0 < δ(n) < 1/(12 n)`. Relative error at most 8 eps from 1 on; below, absolute and at most `2 eps (1 - ln n)`.
///
/// # Errors
///
/// [`DistError::Domain`] unless `n` is positive and finite.
///
/// ```
/// assert!((plca_dist::stirling_error(1e6)? - 1.0 / 12e6).abs() < 1e-20);
/// # Ok::<(), plca_dist::DistError>(())
/// ```
pub fn stirling_error(n: f64) -> Result<f64, DistError> {
    positive("n", n)?;
    Ok(stirling_error_of(n))
}

/// [`stirling_error`] of a positive number.
pub(crate) fn stirling_error_of(n: f64) -> f64 {
    if n < 1.0 {
        return ln_gamma_of(n + 1.0) - (n + 0.5) * n.ln() + n - HALF_LN_TAU;
    }
    // δ(n) - δ(n+1) = (n + 1/2) ln(1 + 1/n) - 1, which with s = 1/(2n+1) is atanh(s)/s - 1: nothing cancels.
    let (mut n, mut steps) = (n, 0.0);
    while n < 10.0 {
        let s = 1.0 / (2.0 * n + 1.0);
        steps += atanh_tail(s) / s;
        n += 1.0;
    }
    // [DLMF 5.11.1]
    let inv = 1.0 / n;
    let inv2 = inv * inv;
    steps + inv * TERMS.iter().rev().fold(0.0, |sum, c| c + inv2 * sum)
}

/// `ln (c^n e^-c / Γ(n+1))` for `n ≥ 0`, `c ≥ 0`, `n` not necessarily whole.
///
/// In the form of Loader (2000), `-deviance(n, c) - ½ ln 2πn - δ(n)`: nothing of the size of `ln n!` cancels.
pub(crate) fn poisson_ln_pmf_of(n: f64, c: f64) -> f64 {
    if c == 0.0 {
        return if n == 0.0 { 0.0 } else { f64::NEG_INFINITY };
    }
    if n < 1.0 {
        let power = if n > 0.0 { n * c.ln() } else { 0.0 };
        return power - c - ln_gamma_of(n + 1.0);
    }
    -deviance(n, c) - 0.5 * n.ln() - HALF_LN_TAU - stirling_error_of(n)
}

/// The logarithm of the probability of a count `n` under the Poisson law with rate `λ`, continued to real `n`.
///
/// ```math
/// \ln P(n) = \ln \frac{\lambda^n e^{-\lambda}}{\Gamma(n+1)}
/// ```
///
/// `0 ≤ n ≤ 1e300`, `0 ≤ λ ≤ 1e300`; error at most 1e-14 max(1, |value|).
///
/// # Errors
///
/// [`DistError::Domain`] for an argument outside.
///
/// ```
/// assert_eq!(plca_dist::poisson_ln_pmf(0.0, 3.0)?, -3.0);
/// # Ok::<(), plca_dist::DistError>(())
/// ```
pub fn poisson_ln_pmf(n: f64, rate: f64) -> Result<f64, DistError> {
    domain("n", n, (0.0..=1e300).contains(&n))?;
    domain("rate", rate, (0.0..=1e300).contains(&rate))?;
    Ok(poisson_ln_pmf_of(n, rate))
}
