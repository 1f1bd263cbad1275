//! The logarithm of the Skellam law.

use super::{check, divergence::divergence_of, width};
use crate::{
    DistError,
    debye::FAR,
    hypergeometric::{ln_0f1_of, ln_debye},
    stirling::{HALF_LN_TAU, poisson_ln_pmf_of},
};

/// [`skellam_ln_pmf`] within the domain.
pub(crate) fn ln_pmf_of(v: f64, plus: f64, minus: f64) -> f64 {
    let nu = v.abs();
    let (main, other) = if v < 0.0 {
        (minus, plus)
    } else {
        (plus, minus)
    };
    if main == 0.0 && nu > 0.0 {
        return f64::NEG_INFINITY;
    }
    if main == 0.0 || other == 0.0 {
        return poisson_ln_pmf_of(nu, main) - other;
    }
    let (w, root) = width(v, plus, minus);
    // [SKELLAM 10]
    if w < FAR {
        return poisson_ln_pmf_of(nu, main) - other + ln_0f1_of(nu, 2.0 * root);
    }
    -divergence_of(v, plus, minus) - 0.5 * w.ln() - HALF_LN_TAU + ln_debye(w, nu / w)
}

/// The logarithm of the Skellam law with rates `p` and `q`, continued to real `v`.
///
/// ```math
/// \ln \mathrm{Sk}(v; p,q)
///   = -p - q + v^+ \ln p + v^- \ln q - \ln \Gamma(|v| + 1) + \ln {}_0F_1(; |v|+1; p q)
/// ```
///
/// `v⁺ = max(v, 0)` and `v⁻ = max(-v, 0)`.
///
/// `|v|, p, q ≤ 1e300`; error at most 45 eps (1e-14) times max(1, |value|); `-inf` where `v` has no support.
///
/// # Errors
///
/// [`DistError::Domain`] for NaN and out-of-range arguments.
///
/// ```
/// assert_eq!(plca_dist::skellam_ln_pmf(0.0, 2.0, 0.0)?, -2.0);
/// let one_sided = plca_dist::poisson_ln_pmf(3.0, 2.0)?;
/// assert_eq!(plca_dist::skellam_ln_pmf(3.0, 2.0, 0.0)?, one_sided);
/// # Ok::<(), plca_dist::DistError>(())
/// ```
pub fn skellam_ln_pmf(v: f64, plus: f64, minus: f64) -> Result<f64, DistError> {
    check(v, plus, minus)?;
    Ok(ln_pmf_of(v, plus, minus))
}
