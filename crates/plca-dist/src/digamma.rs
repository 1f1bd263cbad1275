//! Digamma, its exponential, its inverse, and trigamma, of positive numbers.
//!
//! ```math
//! \psi(x) = \frac{\mathrm{d} \ln \Gamma(x)}{\mathrm{d} x},
//! \qquad \psi(x + 1) = \psi(x) + \frac{1}{x},
//! \qquad \psi(x) = 0 \text{ at } 1.4616\dots
//! ```
//!
//! Written here because the library in use loses four digits near the zero of `ψ` and recurses once per unit below 8.
//! `[DLMF 5.5.2]`, `[DLMF 5.11.2]`.

use crate::{
    DistError,
    elementary::LN_2,
    error::{domain, positive, same_length},
    simd::{LANES, lanes, wide},
};

/// The zero of `ψ` in two parts.
const ROOT: (f64, f64) = (1.461_632_144_968_362_2, 9.549_995_429_965_697e-17);

/// `ψ(3/2 + t/2) / (3/2 + t/2 - root)` on `|t| ≤ 1`, powers of `t`; 1e-19 of it is left out.
#[rustfmt::skip]
const NEAR_ROOT: [f64; 25] = [
    0.9510558760318328, -0.21181371064073024, 0.06013562106019673, -0.018550615381739837,
    0.0059367952783072235, -0.0019350666647357589, 0.0006368880302846364, -0.00021074841288832956,
    6.995018923408578e-05, -2.3258232475310846e-05, 7.741228917125823e-06, -2.5781348596283653e-06,
    8.589262341522206e-07, -2.8620913305524894e-07, 9.538512882131195e-08, -3.1812511684429887e-08,
    1.0603457246127488e-08, -3.503398923223047e-09, 1.167771177499064e-09, -4.1965284357280646e-10,
    1.3988314142821704e-10, -2.7517988497113302e-11, 9.172618879913334e-12, -1.0006438997505267e-11,
    3.335477322544212e-12,
];

/// `B_2k / (2k)`.
pub(crate) const PSI_TERMS: [f64; 10] = [
    1.0 / 12.0,
    -1.0 / 120.0,
    1.0 / 252.0,
    -1.0 / 240.0,
    5.0 / 660.0,
    -691.0 / 32_760.0,
    1.0 / 12.0,
    -3617.0 / 8160.0,
    43_867.0 / 14_364.0,
    -174_611.0 / 6600.0,
];

/// `B_2k`.
const BERNOULLI: [f64; 9] = [
    1.0 / 6.0,
    -1.0 / 30.0,
    1.0 / 42.0,
    -1.0 / 30.0,
    5.0 / 66.0,
    -691.0 / 2730.0,
    7.0 / 6.0,
    -3617.0 / 510.0,
    43_867.0 / 798.0,
];

fn polynomial(coefficients: &[f64], x: f64) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, c| c + x * sum)
}

/// The digamma function `ψ(x)`, for `x > 0`.
///
/// ```math
/// \psi(x) = \frac{\mathrm{d} \ln \Gamma(x)}{\mathrm{d} x}
/// ```
///
/// Relative error at most 4 eps, near the zero of `ψ` too. `-inf` below 5.6e-309, where `1/x` overflows.
///
/// # Errors
///
/// [`DistError::Domain`] unless `x` is positive and finite.
///
/// ```
/// assert!((plca_dist::digamma(1.0)? + 0.577_215_664_901_532_9).abs() < 1e-15);
/// # Ok::<(), plca_dist::DistError>(())
/// ```
pub fn digamma(x: f64) -> Result<f64, DistError> {
    positive("x", x)?;
    Ok(digamma_of(x))
}

/// [`digamma`] of a positive number.
fn digamma_of(x: f64) -> f64 {
    if x >= 10.0 {
        // [DLMF 5.11.2]
        let inv = 1.0 / x;
        let inv2 = inv * inv;
        return x.ln() - (0.5 * inv + inv2 * polynomial(&PSI_TERMS, inv2));
    }
    if x < 1.0 {
        return near_root(x + 1.0) - 1.0 / x;
    }
    // [DLMF 5.5.2]
    let (mut x, mut shift) = (x, 0.0);
    while x > 2.0 {
        x -= 1.0;
        shift += 1.0 / x;
    }
    near_root(x) + shift
}

/// `ψ` on `[1, 2]`.
fn near_root(x: f64) -> f64 {
    ((x - ROOT.0) - ROOT.1) * polynomial(&NEAR_ROOT, 2.0 * x - 3.0)
}

/// The trigamma function `ψ'(x)`, for `x > 0`.
///
/// ```math
/// \psi'(x) = \frac{\mathrm{d}^2 \ln \Gamma(x)}{\mathrm{d} x^2}
/// ```
///
/// Relative error at most 4 eps. `+inf` below 7.4e-155, where `1/x²` overflows.
///
/// # Errors
///
/// [`DistError::Domain`] unless `x` is positive and finite.
///
/// ```
/// let exact = std::f64::consts::PI.powi(2) / 6.0;
/// assert!((plca_dist::trigamma(1.0)? - exact).abs() < 1e-15);
/// # Ok::<(), plca_dist::DistError>(())
/// ```
pub fn trigamma(x: f64) -> Result<f64, DistError> {
    positive("x", x)?;
    Ok(trigamma_of(x))
}

/// [`trigamma`] of a positive number.
fn trigamma_of(x: f64) -> f64 {
    let shift = (12.0 - x).ceil().max(0.0);
    let inv = 1.0 / (x + shift);
    let inv2 = inv * inv;
    // [DLMF 5.15.8]
    let mut sum = inv + 0.5 * inv2 + inv * inv2 * polynomial(&BERNOULLI, inv2);
    // The small terms first.
    let mut i = shift;
    while i > 0.0 {
        i -= 1.0;
        let t = 1.0 / (x + i);
        sum += t * t;
    }
    sum
}

/// The inverse of the [`digamma`] function: the `x > 0` with `ψ(x) = y`.
///
/// Relative error at most `4.5 eps (1 + |y|)`, which is the conditioning of `e^y` for large `y`; `+inf` above 709.78,
/// where `e^y` overflows.
///
/// # Errors
///
/// [`DistError::Domain`] for NaN and infinities.
///
/// ```
/// let x = plca_dist::inverse_digamma(plca_dist::digamma(0.3)?)?;
/// assert!((x - 0.3).abs() < 1e-15);
/// # Ok::<(), plca_dist::DistError>(())
/// ```
pub fn inverse_digamma(y: f64) -> Result<f64, DistError> {
    domain("y", y, y.is_finite())?;
    if y > 20.0 {
        // [DLMF 5.11.2] about x - 1/2.
        return Ok(y.exp() + 0.5);
    }
    let mut x = if y >= -2.22 {
        y.exp() + 0.5
    } else {
        // ψ(x) = -1/x + ψ(1) + O(x).
        -1.0 / (y + 0.577_215_664_901_532_9)
    };
    if y < -1e9 {
        return Ok(x);
    }
    // [SKELLAM 10] Newton.
    for _ in 0..6 {
        x -= (digamma_of(x) - y) / trigamma_of(x);
    }
    Ok(x)
}

/// `i (11-i)`: twelve steps of a recurrence are six pairs `(x+i) (x+11-i) = x (x+11) + i (11-i)`.
pub(crate) const PAIRS: [f64; 6] = [0.0, 10.0, 18.0, 24.0, 28.0, 30.0];
/// Beyond it twelve steps change nothing, and their product overflows.
pub(crate) const FAR: f64 = 1e20;

/// `e^ψ(x)` of several numbers at once, without a logarithm.
///
/// Twelve steps of the recurrence, taken two by two: with `u = x(x+11)` the pairs `1/(x+i) + 1/(x+11-i)` are
/// `(2x+11)/(u + i(11-i))`, and their sum one quotient of polynomials of `u`.
#[inline(always)]
fn exp_digamma_lanes<const L: usize>(x: &[f64; L], out: &mut [f64; L]) {
    /// `e^ψ(y + 1/2) / y` in powers of `y^-2`.
    const CENTRED: [f64; 9] = [
        1.0,
        1.0 / 24.0,
        -37.0 / 5760.0,
        10_313.0 / 2_903_040.0,
        -5_509_121.0 / 1_393_459_200.0,
        0.007_365_033_269_308_669,
        -0.020_734_675_824_368_137,
        0.082_381_852_238_787_76,
        -0.439_604_436_860_081_27,
    ];
    let (mut q, mut dq, mut s) = ([1.0f64; L], [0.0f64; L], [0.0; L]);
    let (mut near, mut y, mut inv2) = ([0.0; L], [0.0; L], [0.0; L]);
    for i in 0..L {
        near[i] = x[i].min(FAR);
    }
    for pair in PAIRS {
        for i in 0..L {
            let factor = near[i].mul_add(near[i] + 11.0, pair);
            dq[i] = dq[i].mul_add(factor, q[i]);
            q[i] *= factor;
        }
    }
    for i in 0..L {
        s[i] = -(2.0 * near[i] + 11.0) * (dq[i] / q[i]);
        let shifted = near[i] + 11.5;
        y[i] = if x[i] > FAR { x[i] } else { shifted };
        let inv = 1.0 / y[i];
        inv2[i] = inv * inv;
    }
    let series = powers(&inv2, &CENTRED);
    let e = exp_lanes(&s);
    for i in 0..L {
        out[i] = y[i] * series[i] * e[i];
    }
}

/// The sums of powers of some numbers; all of them take a step, then the next, so that none waits for itself.
#[inline(always)]
fn powers<const L: usize, const N: usize>(x: &[f64; L], coefficients: &[f64; N]) -> [f64; L] {
    let mut sum = [coefficients[N - 1]; L];
    for j in (0..N - 1).rev() {
        for i in 0..L {
            sum[i] = x[i].mul_add(sum[i], coefficients[j]);
        }
    }
    sum
}

/// `e^s` for `s ≤ 0`, `-inf` included, to 1 ulp or so; plain operations, so that it is compiled for vectors.
#[inline(always)]
fn exp_lanes<const L: usize>(s: &[f64; L]) -> [f64; L] {
    /// Adding it leaves a whole number in the last bits.
    const WHOLE: f64 = 6_755_399_441_055_744.0;
    const FACTORIALS: [f64; 14] = [
        1.0,
        1.0,
        1.0 / 2.0,
        1.0 / 6.0,
        1.0 / 24.0,
        1.0 / 120.0,
        1.0 / 720.0,
        1.0 / 5040.0,
        1.0 / 40_320.0,
        1.0 / 362_880.0,
        1.0 / 3_628_800.0,
        1.0 / 39_916_800.0,
        1.0 / 479_001_600.0,
        1.0 / 6_227_020_800.0,
    ];
    let power_of_two =
        |k: f64| f64::from_bits((k + 1023.0 + 4_503_599_627_370_496.0).to_bits() << 52);
    let (mut k, mut r, mut out) = ([0.0; L], [0.0; L], [0.0; L]);
    for i in 0..L {
        let s = s[i].max(-760.0);
        k[i] = (s * std::f64::consts::LOG2_E + WHOLE) - WHOLE;
        r[i] = (-k[i]).mul_add(LN_2.1, (-k[i]).mul_add(LN_2.0, s));
    }
    let sum = powers(&r, &FACTORIALS);
    for i in 0..L {
        // Two factors, so that results below the normal numbers are rounded once.
        let first = k[i].max(-1000.0);
        out[i] = sum[i] * power_of_two(first) * power_of_two(k[i] - first);
    }
    out
}

/// The exponential of the [`digamma`] function, `e^ψ(x)` for `x > 0`: what a variational E-step uses in place of a rate.
///
/// ```math
/// e^{\psi(s) - \ln b} = e^{E[\ln X]}, \qquad X \sim \mathrm{Gamma}(s, \text{rate } b)
/// ```
///
/// Relative error at most `8 eps (1 + 1/x)`: for small `x` it is that of `e^(-1/x)`, which underflows below about 1/745.
///
/// # Errors
///
/// [`DistError::Domain`] unless `x` is positive and finite.
///
/// ```
/// assert!((plca_dist::exp_digamma(1.0)? - (-0.577_215_664_901_532_9f64).exp()).abs() < 1e-15);
/// # Ok::<(), plca_dist::DistError>(())
/// ```
pub fn exp_digamma(x: f64) -> Result<f64, DistError> {
    let mut out = [0.0];
    exp_digamma_slice(&[x], &mut out)?;
    Ok(out[0])
}

/// The [`exp_digamma`] of every element, with the widest instructions of the machine; the bits are those of the scalar function.
///
/// # Errors
///
/// [`DistError::Length`] for slices of different lengths, [`DistError::Domain`] for the first element that is not
/// positive and finite; then `out` is untouched.
///
/// ```
/// let mut out = [0.0; 2];
/// plca_dist::exp_digamma_slice(&[0.5, 1e6], &mut out)?;
/// assert_eq!(out[0], plca_dist::exp_digamma(0.5)?);
/// # Ok::<(), plca_dist::DistError>(())
/// ```
pub fn exp_digamma_slice(x: &[f64], out: &mut [f64]) -> Result<(), DistError> {
    same_length("out", out.len(), x.len())?;
    let mut good = true;
    wide(
        #[inline(always)]
        || {
            // Without a way out of the loop it is compiled for vectors.
            good = x
                .iter()
                .fold(true, |good, &x| good & (x > 0.0) & (x < f64::INFINITY));
            if !good {
                return;
            }
            if let ([x], [out]) = (x, &mut *out) {
                let mut psi = [0.0];
                exp_digamma_lanes(&[*x], &mut psi);
                *out = psi[0];
                return;
            }
            let ((runs, x), (outs, out)) = (x.as_chunks(), out.as_chunks_mut());
            for (x, out) in runs.iter().zip(outs) {
                exp_digamma_lanes::<LANES>(x, out);
            }
            if !x.is_empty() {
                let mut psi = [0.0; LANES];
                exp_digamma_lanes::<LANES>(&lanes(x), &mut psi);
                out.copy_from_slice(&psi[..x.len()]);
            }
        },
    );
    if good {
        Ok(())
    } else {
        x.iter().try_for_each(|&x| positive("x", x))
    }
}
