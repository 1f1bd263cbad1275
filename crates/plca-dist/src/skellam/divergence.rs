//! The divergence that the Skellam likelihood tends to as counts are replicated without end.

use super::{check, width};
use crate::{DistError, stirling::deviance, stirling::deviance_at};

/// Derivatives of [`skellam_divergence`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SkellamGradient {
    /// By `v`: the maximising `t`.
    pub v: f64,
    /// By `p`: `1 - e^t`.
    pub plus: f64,
    /// By `q`: `1 - e^-t`.
    pub minus: f64,
}

/// What `v` exceeds the mean by, `v - p + q`, rounded about once.
pub(crate) fn excess(v: f64, plus: f64, minus: f64) -> f64 {
    let (a, a_rest) = two_sum(v, -plus);
    let (b, b_rest) = two_sum(a, minus);
    b + (a_rest + b_rest)
}

/// Sum and what its rounding lost (Knuth).
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let s = a + b;
    let seen = s - a;
    (s, (a - (s - seen)) + (b - seen))
}

/// [`skellam_divergence`] within the domain.
pub(crate) fn divergence_of(v: f64, plus: f64, minus: f64) -> f64 {
    // At v = 0 too, so that mirrored arguments give the same bits.
    let (v, plus, minus) = if v < 0.0 || (v == 0.0 && plus < minus) {
        (-v, minus, plus)
    } else {
        (v, plus, minus)
    };
    if plus == 0.0 {
        return if v > 0.0 { f64::INFINITY } else { minus };
    }
    if minus == 0.0 {
        return deviance(v, plus);
    }
    // [SKELLAM eq. 31]
    let (w, root) = width(v, plus, minus);
    let x = 0.5 * w + 0.5 * v;
    let y = root * (root / x);
    let delta = excess(v, plus, minus);
    let total = w + plus + minus;
    if y == 0.0 || x == 0.0 {
        // Products below the smallest double.
        return deviance(x, plus) + deviance(y, minus);
    }
    deviance_at(x, plus, delta * ((x + plus) / total))
        + deviance_at(y, minus, -delta * ((y + minus) / total))
}

/// `D(v | p,q) = sup_t [t v - p (e^t - 1) - q (e^-t - 1)]`, the rate function of the Skellam law.
///
/// Also the least `KL(x|p) + KL(y|q)` over `x - y = v`, `x, y ≥ 0`. Never negative, 0 only at `v = p - q`, jointly convex,
/// homogeneous of degree 1; `+inf` where `v` has no support. `|v|, p, q ≤ 1e300`. The textbook form
/// `p + q - w + |v| ln(…)` loses all digits near `v = p - q`; here the relative error is at most
/// `9 eps (1 + (|v| + p + q) / |v - p + q|)`.
///
/// # Errors
///
/// [`DistError::Domain`] for NaN and out-of-range arguments.
///
/// ```
/// let d = plca_dist::skellam_divergence(0.0, 4.0, 1.0)?;
/// assert!((d - 1.0).abs() < 1e-15);                     // (√p - √q)²
/// assert_eq!(plca_dist::skellam_divergence(3.0, 5.0, 2.0)?, 0.0);
/// # Ok::<(), plca_dist::DistError>(())
/// ```
pub fn skellam_divergence(v: f64, plus: f64, minus: f64) -> Result<f64, DistError> {
    check(v, plus, minus)?;
    Ok(divergence_of(v, plus, minus))
}

/// Gradient of [`skellam_divergence`]: `(t, 1 - e^t, 1 - e^-t)` with `e^t = (v + w)/(2p)`.
///
/// Taken from `v - p + q`, so that it keeps its digits near `v = p - q`. Infinite where a rate that `v` needs is 0.
///
/// # Errors
///
/// [`DistError::Domain`] for NaN and out-of-range arguments, and if `v = p = q = 0`, where there is none.
///
/// ```
/// let g = plca_dist::skellam_divergence_gradient(0.0, 4.0, 1.0)?;
/// assert!((g.plus - 0.5).abs() < 1e-15 && (g.minus + 1.0).abs() < 1e-15);
/// # Ok::<(), plca_dist::DistError>(())
/// ```
pub fn skellam_divergence_gradient(
    v: f64,
    plus: f64,
    minus: f64,
) -> Result<SkellamGradient, DistError> {
    check(v, plus, minus)?;
    crate::error::domain("v", v, v != 0.0 || plus > 0.0 || minus > 0.0)?;
    Ok(gradient_of(v, plus, minus))
}

/// [`skellam_divergence_gradient`] within the domain.
pub(crate) fn gradient_of(v: f64, plus: f64, minus: f64) -> SkellamGradient {
    let (w, _) = width(v, plus, minus);
    let large = 0.5 * w + 0.5 * v.abs();
    let total = w + plus + minus;
    // e^t and e^-t, each from the side without cancellation; neither is 0/0.
    let (e, inv) = if v > 0.0 {
        (large / plus, plus / large)
    } else if v < 0.0 {
        (minus / large, large / minus)
    } else {
        let root = (minus / plus).sqrt();
        (root, 1.0 / root)
    };
    let slope = excess(v, plus, minus) / total;
    let (by_plus, by_minus) = if (0.5..=2.0).contains(&e) {
        (-slope * (1.0 + e), slope * (1.0 + inv))
    } else {
        (1.0 - e, 1.0 - inv)
    };
    SkellamGradient {
        v: if (0.5..=2.0).contains(&e) {
            (-by_plus).ln_1p()
        } else if e.is_finite() && e > 0.0 {
            e.ln()
        } else {
            -inv.ln()
        },
        plus: by_plus,
        minus: by_minus,
    }
}
