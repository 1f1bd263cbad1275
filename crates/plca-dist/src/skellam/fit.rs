//! Maximum likelihood for the two rates.

use super::ratio::ratios_of;
use crate::{DistError, counts::LARGEST, error::domain};

/// Rates from which on the normal law is nearer than the digits of the Skellam law's slope reach: there both are right to about 1e-7.
const NORMAL: f64 = 2e7;

/// The rates under which the samples are most likely.
pub(crate) fn maximum_likelihood(samples: &[i64]) -> Result<(f64, f64), DistError> {
    domain(
        "number of samples",
        samples.len() as f64,
        !samples.is_empty(),
    )?;
    for &v in samples {
        domain("samples", v as f64, (v as f64).abs() <= 0.25 * LARGEST)?;
    }
    let n = samples.len() as f64;
    // Sums of whole numbers: exact.
    let sum: i128 = samples.iter().map(|&v| i128::from(v)).sum();
    let mean = sum as f64 / n;
    let sign = if mean < 0.0 { -1.0 } else { 1.0 };
    let lesser = lesser_rate(samples, sign, mean.abs());
    let greater = mean.abs() + lesser;
    Ok(if sign > 0.0 {
        (greater, lesser)
    } else {
        (lesser, greater)
    })
}

/// The rate of the rarer side, of samples times `sign`, whose mean is `mean ≥ 0`.
fn lesser_rate(samples: &[i64], sign: f64, mean: f64) -> f64 {
    let n = samples.len() as f64;
    let values = || samples.iter().map(|&v| sign * v as f64);
    // d ln L / dq along p = q + mean: the mean of G⁺ + G⁻ - 2. [SKELLAM eq. 7]
    let slope = |q: f64| {
        values()
            .map(|v| {
                let (a, b) = ratios_of(v, mean + q, q);
                (a - 1.0) + (b - 1.0)
            })
            .sum::<f64>()
            / n
    };
    if values().all(|v| v >= 0.0) {
        // The slope at q = 0, where ρ_v(0) = 1/(v+1).
        let at_zero = mean * values().map(|v| 1.0 / (v + 1.0)).sum::<f64>() / n - 1.0;
        if at_zero <= 0.0 {
            return 0.0;
        }
    }
    let spread = values().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n;
    // The slope is a difference from 1 of about 1 / q, whose digits are lost as q grows; the law tends to the normal one, of variance p + q, to about 1 / q.
    // Far out, where that one is another, the slope has its digits.
    let of_normal = 0.5 * (spread - mean);
    let farthest = values()
        .map(|v| (v - mean) * (v - mean))
        .fold(0.0, f64::max);
    if of_normal > NORMAL && mean < 8.0 * of_normal && farthest < 1e-7 * spread * spread {
        return of_normal;
    }
    let (mut low, mut high) = (1.0f64.max(spread), 1.0f64.max(spread));
    let (mut at_low, mut at_high) = (slope(low), slope(high));
    while at_low < 0.0 && low > 1e-300 {
        (high, at_high) = (low, at_low);
        low *= 0.25;
        at_low = slope(low);
    }
    while at_high > 0.0 && high < LARGEST {
        (low, at_low) = (high, at_high);
        high *= 4.0;
        at_high = slope(high);
    }
    // Illinois: false position that halves the weight of an end kept twice. In 1/q the slope is close to a line.
    for _ in 0..200 {
        if high - low <= 2.0 * f64::EPSILON * high || at_low <= 0.0 || at_high >= 0.0 {
            break;
        }
        let share = at_low / (at_low - at_high);
        let middle = 1.0 / (1.0 / low + share * (1.0 / high - 1.0 / low));
        let middle = if middle > low && middle < high {
            middle
        } else {
            0.5 * (low + high)
        };
        if middle <= low || middle >= high {
            break;
        }
        let at = slope(middle);
        if at > 0.0 {
            (low, at_low) = (middle, at);
            at_high *= 0.5;
        } else {
            (high, at_high) = (middle, at);
            at_low *= 0.5;
            if at == 0.0 {
                return middle;
            }
        }
    }
    0.5 * (low + high)
}
