//! Divergences of gamma laws of one rate, many at a time: what the evidence bound asks for once per activation.

use crate::{
    DistError,
    digamma::{FAR, PAIRS, PSI_TERMS},
    error::{domain, same_length},
    simd::{lanes, wide},
    skellam::ln_lanes,
    stirling::{HALF_LN_TAU, TERMS},
};

/// Laws whose arithmetic is in flight at once.
const WIDTH: usize = 16;

/// `(s - a) ψ(s) - ln Γ(s)` of every lane.
///
/// With `y = s + 12` and `P = s (s+1) … (s+11)` it is `ln(P / y^12) + (1/2 - a) ln y + y - …`: the terms of the size of
/// `s ln s` cancel before they are computed.
#[inline(always)]
fn relative<const L: usize>(s: &[f64; L], a: &[f64; L]) -> [f64; L] {
    /// Terms of the asymptotic series; from 12 on the next is below the last digit.
    const SERIES: usize = 8;
    let [mut y, mut q, mut dq, mut psi, mut rest] = [[0.0; L]; 5];
    let mut near = [0.0; L];
    for i in 0..L {
        near[i] = s[i].min(FAR);
        y[i] = if s[i] > FAR { s[i] } else { s[i] + 12.0 };
        q[i] = 1.0;
    }
    for pair in PAIRS {
        for i in 0..L {
            let square = (near[i] + 12.0) * (near[i] + 12.0);
            let factor = (near[i] * (near[i] + 11.0) + pair) / square;
            dq[i] = dq[i] * factor + q[i] / square;
            q[i] *= factor;
        }
    }
    for i in 0..L {
        let inv = 1.0 / y[i];
        let inv2 = inv * inv;
        let (mut of_psi, mut of_gamma) = (0.0, 0.0);
        for (p, g) in PSI_TERMS[..SERIES].iter().zip(&TERMS[..SERIES]).rev() {
            of_psi = p + inv2 * of_psi;
            of_gamma = g + inv2 * of_gamma;
        }
        // [DLMF 5.11.2] and [DLMF 5.5.2]: ψ(s) - ln y
        let steps = (2.0 * near[i] + 11.0) * (dq[i] / q[i]);
        psi[i] = -(if s[i] > FAR { 0.0 } else { steps }) - inv * (0.5 + inv * of_psi);
        // [DLMF 5.11.1]
        rest[i] = y[i] - HALF_LN_TAU - inv * of_gamma;
    }
    let (ln_y, ln_q) = (ln_lanes(&y), ln_lanes(&q));
    let mut out = [0.0; L];
    for i in 0..L {
        out[i] = (ln_q[i] + (0.5 - a[i]) * ln_y[i]) + (rest[i] + (s[i] - a[i]) * psi[i]);
    }
    out
}

/// The Kullback-Leibler divergence of two gamma laws of the same rate, for every pair of shapes, with the widest instructions of the
/// machine.
///
/// ```math
/// \mathrm{KL}(\mathrm{Gamma}(s, \text{rate } b) \,\Vert\, \mathrm{Gamma}(a, \text{rate } b))
///   = (s - a) \, \psi(s) - \ln \Gamma(s) + \ln \Gamma(a)
/// ```
///
/// The rate `b` plays no part.
///
/// 0 where the shapes are equal; elsewhere the error is at most `16 eps (12 + s + a (1 + |ln s|) + 1/s)`.
///
/// # Errors
///
/// [`DistError::Length`] for slices of different lengths, [`DistError::Domain`] for the first shape that is not positive and
/// finite or below 1e-300; then `out` is untouched.
///
/// ```
/// let mut kl = [0.0; 2];
/// plca_dist::gamma_shape_kl_slice(&[2.0, 3.0], &[1.0, 3.0], &mut kl)?;
/// assert!((kl[0] - 0.422_784_335_098_467_1).abs() < 1e-14);        // ψ(2)
/// assert_eq!(kl[1], 0.0);
/// # Ok::<(), plca_dist::DistError>(())
/// ```
pub fn gamma_shape_kl_slice(
    shape: &[f64],
    prior: &[f64],
    out: &mut [f64],
) -> Result<(), DistError> {
    same_length("prior", prior.len(), shape.len())?;
    same_length("out", out.len(), shape.len())?;
    for (name, values) in [("shape", shape), ("prior", prior)] {
        let ok = |x: f64| (1e-300..f64::INFINITY).contains(&x);
        values.iter().try_for_each(|&x| domain(name, x, ok(x)))?;
    }
    wide(
        #[inline(always)]
        || {
            let (mut last, mut own) = ([0.0; WIDTH], [0.0; WIDTH]);
            for at in (0..shape.len()).step_by(WIDTH) {
                let end = shape.len().min(at + WIDTH);
                let s = lanes::<WIDTH>(&shape[at..end]);
                let a = lanes::<WIDTH>(&prior[at..end]);
                // One prior for all is the common case.
                if a != last {
                    (last, own) = (a, relative(&a, &a));
                }
                let crossed = relative(&s, &a);
                for (i, out) in out[at..end].iter_mut().enumerate() {
                    // [SKELLAM 7] KLG
                    *out = crossed[i] - own[i];
                }
            }
        },
    );
    Ok(())
}
