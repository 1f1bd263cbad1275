//! A term of the Kullback-Leibler divergence.

use crate::elementary::entropy_excess;

/// One term of the generalised Kullback-Leibler divergence; never negative, `+inf` where `y = 0 < x`.
///
/// ```math
/// d(x, y) = x \ln \frac{x}{y} - x + y
/// ```
///
/// Near `x = c`, where the three parts cancel, the term is taken from the difference: the relative error is within 4 eps of what the
/// rounding of `x - c` makes. NaN gives NaN.
///
/// ```
/// use plca_dist::deviance;
/// let exact = 0.5e-12;                              // d²/2 for x = 1 + 1e-6, c = 1, to first order
/// assert!((deviance(1.000001, 1.0) - exact).abs() < 1e-18);
/// assert_eq!((deviance(0.0, 2.0), deviance(3.0, 3.0)), (2.0, 0.0));
/// assert!(deviance(1e300, 1e-300).is_finite() && deviance(1.0, 0.0) == f64::INFINITY);
/// assert!(deviance(f64::NAN, 0.0).is_nan() && deviance(0.0, f64::NAN).is_nan());
/// ```
pub fn deviance(x: f64, c: f64) -> f64 {
    if x <= 0.0 {
        return c;
    }
    if c <= 0.0 && x > 0.0 {
        return f64::INFINITY;
    }
    deviance_at(x, c, x - c)
}

/// [`deviance`] of positive numbers with the difference `d = x - c` known better than by rounding.
pub(crate) fn deviance_at(x: f64, c: f64, d: f64) -> f64 {
    let u = d / c;
    if u <= 1e3 {
        return c * entropy_excess(u);
    }
    let ratio = x / c;
    let ln = if ratio.is_finite() {
        ratio.ln()
    } else {
        x.ln() - c.ln()
    };
    x * ln - d
}
