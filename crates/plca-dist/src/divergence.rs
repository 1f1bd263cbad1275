//! Terms of the Kullback-Leibler divergence.

/// `x ln x`, 0 at 0.
///
/// ```
/// assert_eq!(plca_dist::x_ln_x(0.0), 0.0);
/// ```
pub fn x_ln_x(x: f64) -> f64 {
    if x > 0.0 { x * x.ln() } else { 0.0 }
}

/// `x ln(x/y) - x + y`, a term of the generalised divergence; never negative, `+inf` where `y = 0 < x`.
///
/// Near `x = y`, where the three parts cancel, the term is taken from `ln(1 + d)`: the relative error stays near
/// `eps / |d|` of the *difference* `d = (x - y)/y`, not of the parts.
///
/// ```
/// let exact = 0.5e-12;                              // d²/2 for x = 1 + 1e-6, y = 1, to first order
/// assert!((plca_dist::kl_term(1.000001, 1.0) - exact).abs() < 1e-18);
/// assert_eq!(plca_dist::kl_term(0.0, 2.0), 2.0);
/// ```
pub fn kl_term(x: f64, y: f64) -> f64 {
    if x <= 0.0 {
        return y;
    }
    if y <= 0.0 {
        return f64::INFINITY;
    }
    let d = (x - y) / y;
    if d.abs() < 1e-3 {
        // (1+d) ln(1+d) - d = d²/2 - d³/6 + d⁴/12 - d⁵/20 + …
        return y * d * d * (0.5 - d * (1.0 / 6.0 - d * (1.0 / 12.0 - d * (0.05 - d / 30.0))));
    }
    (x * (x / y).ln() - x + y).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_branches_meet() {
        for d in [0.999e-3, 1.001e-3, -0.999e-3, -1.001e-3] {
            let direct = (1.0 + d) * f64::ln_1p(d) - d;
            let got = kl_term(1.0 + d, 1.0);
            assert!((got - direct).abs() < 1e-15, "{d}: {got} {direct}");
            assert!(got > 0.0);
        }
        assert_eq!(kl_term(1.0, 0.0), f64::INFINITY);
        assert_eq!(kl_term(3.0, 3.0), 0.0);
    }
}
