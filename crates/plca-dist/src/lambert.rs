//! Lambert W on its two real branches, for arguments and for logarithms of arguments.
//!
//! ```math
//! W e^W = x,
//! \qquad W_0 \ge -1 \text{ on } [-1/e, \infty),
//! \qquad W_{-1} \le -1 \text{ on } [-1/e, 0)
//! ```
//!
//! An M-step under an entropic prior asks for `W(-w e^s)` with `|s|` of several hundred, where the argument itself
//! overflows or underflows. The forms that take its logarithm solve instead, for real unknowns of moderate size,
//!
//! ```math
//! \begin{aligned}
//! u - \ln u &= y, & u &= -W_{-1}(-e^{-y}) \ge 1 \\
//! e^q - q &= y, & q &= \ln(-W_0(-e^{-y})) \le 0 \\
//! q + e^q &= l, & q &= \ln W_0(e^l)
//! \end{aligned}
//! ```
//!
//! At the branch point `x = -1/e` a rounding of `x` moves `W` by its square root. The forms that end in `_gap` take
//! `g = y - 1 = -1 - ln|x|` itself and are exact there. Every function ends after a fixed number of Halley steps.
//! `[SPEC 6]`, `[DLMF 4.13]`.

use crate::{
    DistError,
    elementary::{exp_m1_minus_x, x_minus_ln_1p},
    error::domain,
};

/// `1/e` rounded, and the rest of it.
const INV_E: (f64, f64) = (0.367_879_441_171_442_33, -1.242_875_367_278_836_3e-17);

/// One step of Halley's method for a root, given `f`, `f'` and `f''` there.
#[inline(always)]
fn halley(at: f64, f: f64, d1: f64, d2: f64) -> f64 {
    at - f / (d1 - 0.5 * f * d2 / d1)
}

/// `p ≥ 0` with `p - ln(1 + p) = g`, `g ≥ 0`.
fn above(g: f64) -> f64 {
    let s = (2.0 * g).sqrt();
    if g < 1e-20 {
        return s + s * s / 3.0;
    }
    let mut p = if g < 2.0 {
        s * (1.0 + s * (1.0 / 3.0 + s * (1.0 / 36.0 - s / 270.0)))
    } else {
        g + (1.0 + g + (1.0 + g).ln()).ln()
    };
    // [DLMF 4.13] [SPEC 6] -W_-1 = 1 + p
    for _ in 0..3 {
        let u = 1.0 + p;
        p = halley(p, x_minus_ln_1p(p) - g, p / u, 1.0 / (u * u));
    }
    p
}

/// `q ≤ 0` with `e^q - 1 - q = g`, `g ≥ 0`.
fn below(g: f64) -> f64 {
    let s = (2.0 * g).sqrt();
    if g < 1e-20 {
        return -s - s * s / 6.0;
    }
    if g > 40.0 {
        // e^q is below the rounding of q.
        return -1.0 - g;
    }
    let mut q = if g < 1.0 {
        -s * (1.0 + s * (1.0 / 6.0 + s * (1.0 / 36.0)))
    } else {
        (-1.0 - g).exp() - 1.0 - g
    };
    // [DLMF 4.13] [SPEC 6] -W_0 = e^q
    for _ in 0..3 {
        q = halley(q, exp_m1_minus_x(q) - g, q.exp_m1(), q.exp());
    }
    q
}

/// `g = -1 - ln(-x)` for `x` near `-1/e`, from the distance to the branch point and not from the logarithm.
fn gap(x: f64) -> f64 {
    let delta = ((INV_E.0 + x) + INV_E.1) * std::f64::consts::E;
    -(-delta.max(0.0)).ln_1p()
}

/// The lower branch of the Lambert W function, `W_-1(x)` for `-1/e ≤ x < 0`.
///
/// ```math
/// W_{-1}(x) \, e^{W_{-1}(x)} = x, \qquad W_{-1}(x) \le -1
/// ```
///
/// Relative error at most 4 eps, at the branch point too. The double nearest to `-1/e`, which is below it, gives -1.
///
/// # Errors
///
/// [`DistError::Domain`] outside `[-1/e, 0)`.
///
/// ```
/// let w = plca_dist::lambert_wm1(-0.1)?;
/// assert!((w * w.exp() + 0.1).abs() < 1e-16 && w < -1.0);
/// # Ok::<(), plca_dist::DistError>(())
/// ```
pub fn lambert_wm1(x: f64) -> Result<f64, DistError> {
    domain("x", x, (-INV_E.0..0.0).contains(&x))?;
    // [SPEC 6]
    Ok(-1.0 - above(if x < -0.25 { gap(x) } else { -1.0 - (-x).ln() }))
}

/// The principal branch of the Lambert W function, `W_0(x)` for `x ≥ -1/e`.
///
/// ```math
/// W_0(x) \, e^{W_0(x)} = x, \qquad W_0(x) \ge -1
/// ```
///
/// Relative error at most 4 eps, at the branch point too. The double nearest to `-1/e`, which is below it, gives -1.
///
/// # Errors
///
/// [`DistError::Domain`] below `-1/e`, for infinity and for NaN.
///
/// ```
/// assert_eq!(plca_dist::lambert_w0(std::f64::consts::E)?, 1.0);
/// # Ok::<(), plca_dist::DistError>(())
/// ```
pub fn lambert_w0(x: f64) -> Result<f64, DistError> {
    domain("x", x, (-INV_E.0..f64::INFINITY).contains(&x))?;
    if x < -0.25 {
        return Ok(-below(gap(x)).exp());
    }
    if x > 2.0 {
        return Ok(product_log(x.ln()));
    }
    // Padé at 0, then the residual W - x e^-W, whose rounding is that of W.
    let mut w = x * (1.0 + 4.0 / 3.0 * x) / (1.0 + x * (7.0 / 3.0 + 5.0 / 6.0 * x));
    for _ in 0..4 {
        let decayed = x * (-w).exp();
        w = halley(w, w - decayed, 1.0 + decayed, -decayed);
    }
    Ok(w)
}

/// `W_0(e^l)` for `l ≥ 0`: `w + ln w = l`.
fn product_log(l: f64) -> f64 {
    let mut w = if l < 3.0 {
        // About l = 1, where w = 1.
        let d = l - 1.0;
        1.0 + d * (0.5 + d * (1.0 / 16.0 - d / 192.0))
    } else {
        l - l.ln() + l.ln() / l
    };
    for _ in 0..3 {
        w = halley(w, (w - l) + w.ln(), 1.0 + 1.0 / w, -1.0 / (w * w));
    }
    w
}

/// The principal branch of the Lambert W function of `e^l`, for any finite `l`; 0 where `e^l` underflows.
///
/// ```math
/// w = W_0(e^l), \qquad w + \ln w = l
/// ```
///
/// Relative error at most `4 eps max(1, |l|)` for `l < 0`, where it is that of `e^l`, and 4 eps elsewhere.
///
/// # Errors
///
/// [`DistError::Domain`] for NaN and infinities.
///
/// ```
/// let w = plca_dist::lambert_w0_exp(1e5)?;              // e^100000 overflows
/// assert!((w + w.ln() - 1e5).abs() < 1e-10);
/// # Ok::<(), plca_dist::DistError>(())
/// ```
pub fn lambert_w0_exp(l: f64) -> Result<f64, DistError> {
    domain("l", l, l.is_finite())?;
    Ok(if l >= 0.0 {
        product_log(l)
    } else {
        ln_product_log(l).exp()
    })
}

/// The logarithm of the principal branch of the Lambert W function of `e^l`, for any finite `l`.
///
/// ```math
/// q = \ln W_0(e^l), \qquad q + e^q = l
/// ```
///
/// Relative error at most 4 eps, at the zero `l = 1` too.
///
/// # Errors
///
/// [`DistError::Domain`] for NaN and infinities.
///
/// ```
/// assert_eq!(plca_dist::ln_lambert_w0_exp(1.0)?, 0.0);
/// assert_eq!(plca_dist::ln_lambert_w0_exp(-1e300)?, -1e300);
/// # Ok::<(), plca_dist::DistError>(())
/// ```
pub fn ln_lambert_w0_exp(l: f64) -> Result<f64, DistError> {
    domain("l", l, l.is_finite())?;
    Ok(ln_product_log(l))
}

fn ln_product_log(l: f64) -> f64 {
    if l > 3.0 {
        return product_log(l).ln();
    }
    if l < -40.0 {
        return l - l.exp();
    }
    let d = l - 1.0;
    let mut q = if l > -1.0 {
        d * (0.5 - d * (1.0 / 16.0 - d / 192.0))
    } else {
        l - l.exp() / (1.0 + l.exp())
    };
    for _ in 0..3 {
        // q + e^q - l, from the part that vanishes at l = 1.
        q = halley(q, (q - d) + q.exp_m1(), 1.0 + q.exp(), q.exp());
    }
    q
}

/// The lower branch of the Lambert W function of `-e^(-1-g)`, for a gap `g ≥ 0`.
///
/// ```math
/// w = W_{-1} \left( -e^{-1-g} \right), \qquad \ln(-w) + w = -1 - g, \quad w \le -1
/// ```
///
/// The gap is how far the argument's logarithm lies from that of the branch point `-1/e`.
///
/// Relative error of `W + 1`, and so of `W`, at most 4 eps.
///
/// # Errors
///
/// [`DistError::Domain`] for negative, infinite and NaN gaps.
///
/// ```
/// let w = plca_dist::lambert_wm1_gap(0.5e-12)?;          // -1 - √(2g) - 2g/3 - …
/// assert!((w + 1.000_001_000_000_333).abs() < 1e-15);
/// # Ok::<(), plca_dist::DistError>(())
/// ```
pub fn lambert_wm1_gap(g: f64) -> Result<f64, DistError> {
    domain("g", g, g.is_finite() && g >= 0.0)?;
    // [SPEC 6]
    Ok(-1.0 - above(g))
}

/// The logarithm of minus the principal branch of the Lambert W function of `-e^(-1-g)`, for a gap `g ≥ 0`.
///
/// ```math
/// q = \ln \left( -W_0 \left( -e^{-1-g} \right) \right), \qquad e^q - q = 1 + g, \quad q \le 0
/// ```
///
/// The gap is that of [`lambert_wm1_gap`].
///
/// Relative error at most 4 eps.
///
/// # Errors
///
/// [`DistError::Domain`] for negative, infinite and NaN gaps.
///
/// ```
/// let q = plca_dist::ln_neg_lambert_w0_gap(0.5e-12)?;    // -√(2g) - g/3 - …
/// assert!((q + 1.000_000_166_667e-6).abs() < 1e-18);
/// # Ok::<(), plca_dist::DistError>(())
/// ```
pub fn ln_neg_lambert_w0_gap(g: f64) -> Result<f64, DistError> {
    domain("g", g, g.is_finite() && g >= 0.0)?;
    // [SPEC 6]
    Ok(below(g))
}
