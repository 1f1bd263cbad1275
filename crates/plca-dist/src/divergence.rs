//! Terms of the Kullback-Leibler divergence.

/// The product of a number and its logarithm, `x ln x`, with the limit 0 at 0.
///
/// ```
/// assert_eq!(plca_dist::x_ln_x(0.0), 0.0);
/// ```
pub fn x_ln_x(x: f64) -> f64 {
    if x > 0.0 { x * x.ln() } else { 0.0 }
}

/// One term of the generalised Kullback-Leibler divergence; never negative, `+inf` where `y = 0 < x`.
///
/// ```math
/// d(x, y) = x \ln \frac{x}{y} - x + y
/// ```
///
/// Near `x = y`, where the three parts cancel, the term is taken from `ln(1 + d)` or its series: the relative error stays near
/// `eps / |d|` of the *difference* `d = (x - y)/y` and never exceeds 1e-12. NaN gives NaN.
///
/// ```
/// let exact = 0.5e-12;                              // d²/2 for x = 1 + 1e-6, y = 1, to first order
/// assert!((plca_dist::kl_term(1.000001, 1.0) - exact).abs() < 1e-18);
/// assert_eq!(plca_dist::kl_term(0.0, 2.0), 2.0);
/// ```
pub fn kl_term(x: f64, y: f64) -> f64 {
    if x.is_nan() || y.is_nan() {
        return f64::NAN;
    }
    if x <= 0.0 {
        return y;
    }
    if y <= 0.0 {
        return f64::INFINITY;
    }
    let d = (x - y) / y;
    if d.abs() < 1e-2 {
        // (1+d) ln(1+d) - d = Σ_{n≥2} (-d)^n / (n (n-1)); what is left out is below 1e-18 of the sum.
        let series = (2..11)
            .rev()
            .fold(0.0, |sum, n| 1.0 / f64::from(n * (n - 1)) - d * sum);
        return y * d * d * series;
    }
    if d.abs() < 1.0 {
        return y * ((1.0 + d) * d.ln_1p() - d);
    }
    (x * (x.ln() - y.ln()) - x + y).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of `(1+d) ln(1+d) - d` from 30 digits of its series.
    #[test]
    fn cancellation_is_avoided() {
        for (d, exact) in [
            (1e-6, 4.999_998_333_334_166e-13),
            (1e-3, 4.998_334_166_167e-7),
            (0.011, 6.027_937_875_604_185e-5),
            (-0.5, 0.153_426_409_720_027_36),
        ] {
            let got = kl_term(1.0 + d, 1.0);
            // 1 + d is itself rounded: its error of eps/2 moves the value by eps d.
            let tolerance = 1e-10 * exact + f64::EPSILON * f64::abs(d);
            assert!(
                (got - exact).abs() <= tolerance,
                "{d}: {got} instead of {exact}"
            );
        }
    }

    #[test]
    fn borders() {
        assert_eq!(kl_term(1.0, 0.0), f64::INFINITY);
        assert_eq!(kl_term(3.0, 3.0), 0.0);
        assert!(kl_term(f64::NAN, 1.0).is_nan() && kl_term(1.0, f64::NAN).is_nan());
        assert!(kl_term(1e300, 1e-300).is_finite());
    }
}
