//! Tail probabilities of the Skellam law.

use super::{density::ln_pmf_of, divergence::excess, tilts, width};
use crate::{bessel::rho, elementary::exp_m1_minus_x};

/// From this variance of the tilted law on, the contour takes fewer terms than the sum.
const WIDE: f64 = 100.0;

/// `P(V ≥ k)` for whole `k` not below the mean.
///
/// ```math
/// P(V \ge k) = \frac{1}{2 \pi i} \oint \frac{e^{K(s) - s k}}{1 - e^{-s}} \, \mathrm{d} s,
/// \qquad K(s) = p (e^s - 1) + q (e^{-s} - 1)
/// ```
///
/// on `s = c + iθ`, `-π < θ ≤ π`, with `c` the saddle point, kept two standard deviations away from the pole. The trapezoidal
/// rule with `n` points adds the probabilities `n`, `2n`, … places away, weighted by the tilted law: nothing at sixteen of
/// its standard deviations. The integrand has vanished after some fifty points, whatever the rates.
pub(crate) fn upper_tail(k: f64, plus: f64, minus: f64) -> f64 {
    let (w, root) = width(k, plus, minus);
    if w < WIDE {
        return sum(k, plus, minus, 2.0 * root);
    }
    let above = excess(k, plus, minus);
    let (tilt, inverse) = tilts(w, k, plus, minus);
    // Near 0 from the difference, which keeps its digits.
    let saddle = if (0.5..=2.0).contains(&tilt) {
        (above / (w + plus + minus) * (1.0 + tilt)).ln_1p()
    } else if tilt.is_finite() && tilt > 0.0 {
        tilt.ln()
    } else {
        -inverse.ln()
    };
    let c = saddle.max(2.0 / w.sqrt());
    let (up, down) = (plus * c.exp(), minus * (-c).exp());
    let spread = up + down;
    // K(c) - c k and K'(c) - k, both from differences.
    let height = plus * exp_m1_minus_x(c) + minus * exp_m1_minus_x(-c) - c * above;
    let drift = plus * c.exp_m1() - minus * (-c).exp_m1() - above;
    let n = (40.0 / c + 16.0 * spread.sqrt()).ceil();
    let step = std::f64::consts::TAU / n;
    let fall = (-c).exp();
    let mut total = -0.5 / (-c).exp_m1();
    for j in 1..100_000 {
        let theta = f64::from(j) * step;
        let half = (0.5 * theta).sin();
        // 1 - cos θ.
        let versine = 2.0 * half * half;
        if spread * versine > 45.0 || theta > std::f64::consts::PI {
            break;
        }
        let phase = drift * theta.sin() - k * (theta - theta.sin());
        let (sin, cos) = phase.sin_cos();
        let (re, im) = (fall * versine - (-c).exp_m1(), fall * theta.sin());
        total += (-spread * versine).exp() * (cos * re + sin * im) / (re * re + im * im);
    }
    (height.exp() * 2.0 * total / n).clamp(0.0, 1.0)
}

/// The same as a sum away from the mean, where the terms fall faster than geometrically.
fn sum(k: f64, plus: f64, minus: f64, z: f64) -> f64 {
    let (mut v, mut term) = (k, ln_pmf_of(k, plus, minus).exp());
    let mut total = 0.0;
    for _ in 0..1000 {
        total += term;
        // [SKELLAM 1] Sk(v+1)/Sk(v) = p ρ_v for v ≥ 0, and mirrored below.
        term *= if v >= 0.0 {
            plus * rho(v, z)
        } else {
            1.0 / (minus * rho(-v - 1.0, z))
        };
        if term <= 1e-18 * total {
            break;
        }
        v += 1.0;
    }
    total.min(1.0)
}
