//! Special functions by their series, for definitions that owe nothing to the code they judge.

use std::f64::consts::{LN_2, PI};
use std::sync::LazyLock;

/// `ln Γ(x)` for `x > 0`: Stirling's series where it is exact to a rounding error, reached by `Γ(x + 1) = x Γ(x)`.
pub(crate) fn ln_gamma(x: f64) -> f64 {
    let (mut x, mut below) = (x, 0.0);
    while x < 16.0 {
        below += x.ln();
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    let series =
        (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y * (1.0 / 1680.0 - y / 1188.0)))) / x;
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * PI).ln() + series - below
}

/// `ζ(k) - 1` for `k` from 2: the first terms, and the others by Euler's and Maclaurin's formula.
static ZETA_LESS_ONE: LazyLock<Vec<f64>> = LazyLock::new(|| {
    let zeta_less_one = |k: i32| {
        let (n, s) = (200.0_f64, f64::from(k));
        let first: f64 = (2..200).rev().map(|i| f64::from(i).powi(-k)).sum();
        let corrections = s / (12.0 * n) - s * (s + 1.0) * (s + 2.0) / (720.0 * n.powi(3));
        first + n.powi(-k) * (n / (s - 1.0) + 0.5 + corrections)
    };
    (2..54).map(zeta_less_one).collect()
});

/// `ln Γ(1 + x)` for `x >= 0`, small where `x` is: `x (1 - γ) - ln(1 + x) + Σ_k (-x)^k (ζ(k) - 1) / k`.
pub(crate) fn ln_factorial(x: f64) -> f64 {
    /// `1 - γ`.
    const SLOPE: f64 = 0.422_784_335_098_467_14;
    if x > 0.5 {
        return ln_gamma(1.0 + x);
    }
    let terms = ZETA_LESS_ONE.iter().zip(2..);
    let series: f64 = terms
        .map(|(zeta, k)| (-x).powi(k) * zeta / f64::from(k))
        .sum();
    (x * SLOPE - x.ln_1p()) + series
}

/// `ψ(x)` for `x > 0`.
pub(crate) fn digamma(x: f64) -> f64 {
    let (mut x, mut below) = (x, 0.0);
    while x < 16.0 {
        below += 1.0 / x;
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    let series =
        y * (1.0 / 12.0 - y * (1.0 / 120.0 - y * (1.0 / 252.0 - y * (1.0 / 240.0 - y / 132.0))));
    x.ln() - 0.5 / x - series - below
}

/// `ln Σ e^x`.
pub(crate) fn ln_sum_exp(terms: &[f64]) -> f64 {
    let most = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    match most.is_finite() {
        true => most + terms.iter().map(|x| (x - most).exp()).sum::<f64>().ln(),
        false => most,
    }
}

/// `a ln b`, 0 where `a` is.
pub(crate) fn times_ln(a: f64, ln_b: f64) -> f64 {
    if a == 0.0 { 0.0 } else { a * ln_b }
}

/// A term, and the size of what it is made of.
pub(crate) type Sized = (f64, f64);

/// `-D(v | p, q)` of the logarithms of the rates. `[SKELLAM eq. 31]`
pub(crate) fn minus_divergence(v: f64, ln_p: f64, ln_q: f64) -> Sized {
    let (p, q) = (ln_p.exp(), ln_q.exp());
    let cross = 2.0 * (0.5 * (ln_p + ln_q)).exp();
    let w = v.hypot(cross);
    if v == 0.0 {
        return (w - p - q, p + q + w);
    }
    let ln_c = if v > 0.0 { ln_p } else { ln_q };
    let ln = v.abs() * (((v.abs() + w).ln() - LN_2) - ln_c);
    (w - p - q - ln, p + q + w + ln.abs())
}

/// `ln Sk(v; p, q)`: the sum over the smaller of the two hidden counts of both Poisson laws, outwards from its largest term. `[SKELLAM eq. 5]`
pub(crate) fn ln_skellam(v: f64, ln_p: f64, ln_q: f64) -> Sized {
    let (a, b) = (v.max(0.0), (-v).max(0.0));
    let (p, q) = (ln_p.exp(), ln_q.exp());
    let product = (ln_p + ln_q).exp();
    let mode = (0.5 * ((a + b).hypot(2.0 * product.sqrt()) - (a + b))).floor();
    let ln_term = |m: f64| {
        times_ln(m + a, ln_p) + times_ln(m + b, ln_q) - ln_factorial(m + a) - ln_factorial(m + b)
    };
    let mut sum = 1.0;
    let (mut m, mut term) = (mode, 1.0);
    while m > 0.0 && term > 1e-18 * sum {
        term *= (m + a) * (m + b) / product;
        m -= 1.0;
        sum += term;
    }
    let (mut m, mut term) = (mode, 1.0);
    while term > 1e-18 * sum {
        m += 1.0;
        term *= product / ((m + a) * (m + b));
        sum += term;
    }
    let ln = ln_term(mode) + f64::ln(sum);
    (ln - p - q, p + q + ln.abs())
}

#[test]
fn series_are_right() {
    let close = |a: f64, b: f64| assert!((a - b).abs() <= 1e-14 * (1.0 + b.abs()), "{a} {b}");
    close(ln_gamma(0.5), 0.5 * PI.ln());
    close(ln_gamma(6.0), 120f64.ln());
    close(ln_gamma(1e-200), 200.0 * 10f64.ln());
    // To its own size, where both series meet too.
    let x = 3e-9;
    assert!(
        (ln_factorial(x) + x * 0.577_215_664_901_532_9 - x * x * 0.822_467_033).abs() < 1e-15 * x
    );
    close(ln_factorial(0.5), 0.5 * PI.ln() - LN_2);
    close(ln_factorial(0.500_001), ln_gamma(1.500_001));
    close(ln_factorial(0.25), ln_gamma(1.25));
    close(digamma(1.0), -0.577_215_664_901_532_9);
    close(digamma(0.5), -0.577_215_664_901_532_9 - 2.0 * LN_2);
    // Of two equal rates, e^-2p I_0(2p); I_0(2) = 2.279585302336067.
    close(
        ln_skellam(0.0, 0.0, 0.0).0,
        2.279_585_302_336_067f64.ln() - 2.0,
    );
    // The law of a count where one rate vanishes.
    close(
        ln_skellam(3.0, 2f64.ln(), f64::NEG_INFINITY).0,
        3.0 * 2f64.ln() - 2.0 - 6f64.ln(),
    );
    close(
        minus_divergence(3.0, 2f64.ln(), f64::NEG_INFINITY).0,
        -(3.0 * 1.5f64.ln() - 1.0),
    );
    close(minus_divergence(-2.0, 5f64.ln(), 7f64.ln()).0, 0.0);
    // 1/2 ln(2πMw) / M apart.
    let (m, [p, q]) = (1e4, [3f64, 2.0].map(f64::ln));
    let w = f64::hypot(4.0, 2.0 * 6f64.sqrt());
    let apart = minus_divergence(4.0, p, q).0 - ln_skellam(4.0 * m, p + m.ln(), q + m.ln()).0 / m;
    assert!(
        (apart - 0.5 * (2.0 * PI * m * w).ln() / m).abs() < 1e-8,
        "{apart}"
    );
}
