//! The divergence that the Skellam likelihood tends to as counts are replicated without end.

use super::{check, width};
use crate::{
    DistError, deviance,
    divergence::deviance_at,
    elementary::LN_2,
    error::same_length,
    simd::{lanes, wide},
};

/// What `v` exceeds the mean by, `v - p + q`, rounded about once.
#[inline(always)]
pub(crate) fn excess(v: f64, plus: f64, minus: f64) -> f64 {
    let (a, a_rest) = two_sum(v, -plus);
    let (b, b_rest) = two_sum(a, minus);
    b + (a_rest + b_rest)
}

/// Sum and what its rounding lost (Knuth).
#[inline(always)]
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let s = a + b;
    let seen = s - a;
    (s, (a - (s - seen)) + (b - seen))
}

/// [`skellam_divergence`] where a rate is 0 or a product leaves the exponent.
#[cold]
fn divergence_at_the_border(v: f64, plus: f64, minus: f64) -> f64 {
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

/// `atanh s - s` of every lane, as [`atanh_tail`](crate::elementary::atanh_tail): one coefficient at a time, so that the
/// loop over lanes is the inner one.
#[inline(always)]
fn atanh_tails<const L: usize>(s: &[f64; L]) -> [f64; L] {
    const TERMS: [f64; 16] = {
        let mut terms = [0.0; 16];
        let mut n = 0;
        while n < 16 {
            terms[n] = 1.0 / (2 * n + 3) as f64;
            n += 1;
        }
        terms
    };
    let (mut square, mut sum) = ([0.0f64; L], [0.0f64; L]);
    for i in 0..L {
        square[i] = s[i] * s[i];
    }
    for c in TERMS.iter().rev() {
        for i in 0..L {
            sum[i] = square[i].mul_add(sum[i], *c);
        }
    }
    for i in 0..L {
        sum[i] *= s[i] * square[i];
    }
    sum
}

/// `ln r = e ln 2 + 2 atanh s` of a positive normal number, `|s| < 0.18`: `(e, s)`.
#[inline(always)]
fn reduced(r: f64) -> (f64, f64) {
    /// `2^52`: its last bits hold a whole number.
    const WHOLE: u64 = 0x4330_0000_0000_0000;
    const MANTISSA: u64 = 0x000f_ffff_ffff_ffff;
    let bits = r.to_bits();
    let e = f64::from_bits((bits >> 52) | WHOLE) - (4_503_599_627_370_496.0 + 1023.0);
    let m = f64::from_bits((bits & MANTISSA) | 1.0f64.to_bits());
    let upper = m > std::f64::consts::SQRT_2;
    let m = if upper { 0.5 * m } else { m };
    (if upper { e + 1.0 } else { e }, (m - 1.0) / (m + 1.0))
}

/// `e ln 2 + 2 (s + tail)`.
#[inline(always)]
fn ln_of(e: f64, s: f64, tail: f64) -> f64 {
    e.mul_add(LN_2.0, e.mul_add(LN_2.1, 2.0 * (s + tail)))
}

/// `ln r` of positive normal numbers, to 2 ulp or so, by arithmetic alone.
#[inline(always)]
pub(crate) fn ln_lanes<const L: usize>(r: &[f64; L]) -> [f64; L] {
    let (mut s, mut exponent) = ([0.0; L], [0.0; L]);
    for i in 0..L {
        (exponent[i], s[i]) = reduced(r[i]);
    }
    let tail = atanh_tails(&s);
    let mut out = [0.0; L];
    for i in 0..L {
        out[i] = ln_of(exponent[i], s[i], tail[i]);
    }
    out
}

/// [`skellam_divergence`] of several cells at once, within the domain. Lane by lane the same operations whatever the width.
///
/// With `v >= 0`, `x - y = v` and `xy = pq` the maximising `t = ln(x/p) = -ln(y/q)` is `2 atanh s`, where both `x - p = s (x + p)` and
/// `y - q = -s (y + q)`:
///
/// ```math
/// \begin{aligned}
/// s &= \frac{v - p + q}{w + p + q} \\
/// D &= v t - s (v + p - q) = s (v - p + q) + 2 v (\mathrm{atanh}\, s - s)
/// \end{aligned}
/// ```
///
/// the second form where `|s|` is small and the first cancels.
#[inline(always)]
fn divergence_lanes<const L: usize>(v: &[f64; L], plus: &[f64; L], minus: &[f64; L]) -> [f64; L] {
    // No product of two numbers between these leaves the exponent.
    const LEAST: f64 = 1e-140;
    const MOST: f64 = 1e140;
    let (mut inside, mut close) = ([false; L], [false; L]);
    let [mut n, mut delta, mut slope, mut opposite, mut e, mut s] = [[0.0; L]; 6];
    for i in 0..L {
        // At v = 0 too, so that mirrored arguments give the same bits.
        let flip = (v[i] < 0.0) | ((v[i] == 0.0) & (plus[i] < minus[i]));
        let p = if flip { minus[i] } else { plus[i] };
        let q = if flip { plus[i] } else { minus[i] };
        n[i] = v[i].abs();
        // [SKELLAM eq. 31]
        let w = (n[i] * n[i] + 4.0 * (p * q)).sqrt();
        let x = 0.5 * w + 0.5 * n[i];
        delta[i] = excess(n[i], p, q);
        opposite[i] = n[i] + (p - q);
        slope[i] = delta[i] / (w + p + q);
        close[i] = slope[i].abs() <= 1.0 / 3.0;
        let far = reduced(x / p);
        e[i] = far.0;
        s[i] = if close[i] { slope[i] } else { far.1 };
        let range = (p.min(q) >= LEAST) & (p.max(q).max(n[i]) <= MOST);
        // The smaller side, pq/x, must not lose digits.
        inside[i] = range & (p * q >= x * (f64::MIN_POSITIVE / f64::EPSILON));
    }
    let tail = atanh_tails(&s);
    let mut out = [0.0; L];
    for i in 0..L {
        let near = slope[i] * delta[i] + 2.0 * n[i] * tail[i];
        let far = n[i] * ln_of(e[i], s[i], tail[i]) - slope[i] * opposite[i];
        out[i] = if !inside[i] {
            divergence_at_the_border(v[i], plus[i], minus[i])
        } else if close[i] {
            near
        } else {
            far
        };
    }
    out
}

/// [`skellam_divergence`] within the domain.
pub(crate) fn divergence_of(v: f64, plus: f64, minus: f64) -> f64 {
    let mut out = 0.0;
    wide(
        #[inline(always)]
        || out = divergence_lanes(&[v], &[plus], &[minus])[0],
    );
    out
}

/// The [`skellam_divergence`] of every cell, with the widest instructions of the machine; the bits are those of the scalar function.
///
/// # Errors
///
/// [`DistError::Length`] for slices of different lengths, [`DistError::Domain`] for the first argument outside; then
/// `out` is untouched.
///
/// ```
/// let mut d = [0.0; 2];
/// plca_dist::skellam_divergence_slice(&[3.0, 0.0], &[5.0, 4.0], &[2.0, 1.0], &mut d)?;
/// assert_eq!(d, [0.0, plca_dist::skellam_divergence(0.0, 4.0, 1.0)?]);
/// # Ok::<(), plca_dist::DistError>(())
/// ```
pub fn skellam_divergence_slice(
    v: &[f64],
    plus: &[f64],
    minus: &[f64],
    out: &mut [f64],
) -> Result<(), DistError> {
    /// Cells whose arithmetic is in flight at once.
    const WIDTH: usize = 16;
    same_length("plus", plus.len(), v.len())?;
    same_length("minus", minus.len(), v.len())?;
    same_length("out", out.len(), v.len())?;
    let mut good = true;
    wide(
        #[inline(always)]
        || {
            // Without a way out of the loop it is compiled for vectors.
            let most = 1e300;
            good = (v.iter().zip(plus).zip(minus)).fold(true, |good, ((v, p), q)| {
                good & (v.abs() <= most) & (*p >= 0.0) & (*p <= most) & (*q >= 0.0) & (*q <= most)
            });
            if !good {
                return;
            }
            for at in (0..v.len()).step_by(WIDTH) {
                let end = v.len().min(at + WIDTH);
                let (v, p, q) = (&v[at..end], &plus[at..end], &minus[at..end]);
                let d = divergence_lanes::<WIDTH>(&lanes(v), &lanes(p), &lanes(q));
                out[at..end].copy_from_slice(&d[..end - at]);
            }
        },
    );
    if good {
        return Ok(());
    }
    (v.iter().zip(plus).zip(minus)).try_for_each(|((&v, &p), &q)| check(v, p, q))
}

/// The divergence of a real number `v` from two rates `p` and `q`: what the Skellam likelihood tends to as counts are replicated without
/// end.
///
/// ```math
/// \begin{aligned}
/// D(v \mid p,q) &= \sup_t \left[ t v - p (e^t - 1) - q (e^{-t} - 1) \right] \\
///   &= - \lim_{M \to \infty} \frac{1}{M} \ln \mathrm{Sk}(M v; M p, M q)
/// \end{aligned}
/// ```
///
/// It is the rate function of the Skellam law `Sk`.
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

#[cfg(test)]
mod tests {
    use super::two_sum;

    /// Sum and error together are the terms, in either order.
    #[test]
    fn sums_keep_their_errors() {
        for (a, b, sum) in [
            (1.0, 1e-20, (1.0, 1e-20)),
            (9_007_199_254_740_992.0, 1.0, (9_007_199_254_740_992.0, 1.0)),
            (1e16, -1e16 + 2.0, (2.0, 0.0)),
            (-1.0, 1e-20, (-1.0, 1e-20)),
        ] {
            assert_eq!((two_sum(a, b), two_sum(b, a)), (sum, sum));
        }
    }
}
