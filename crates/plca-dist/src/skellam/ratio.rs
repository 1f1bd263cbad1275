//! What an E-step multiplies the rates by: expected hidden counts given their difference, over the rates.

use super::{check, tilts, width};
use crate::{
    DistError,
    bessel::{rho, rho_lanes},
    error::same_length,
    simd::{LANES, lanes, wide},
};

/// `(v⁺/p + q ρ, v⁻/q + p ρ)`; 0 where the rate is 0.
#[inline(always)]
fn combine(v: f64, plus: f64, minus: f64, rho: f64) -> (f64, f64) {
    // [SKELLAM eq. 7]
    let side = |v: f64, main: f64, other: f64| {
        let own = if v > 0.0 { v / main } else { 0.0 };
        if main > 0.0 { own + other * rho } else { 0.0 }
    };
    (side(v, plus, minus), side(-v, minus, plus))
}

/// The expected hidden counts of a Skellam variable, divided by their rates: `E[S⁺ | v]/p` and `E[S⁻ | v]/q`.
///
/// ```math
/// \begin{aligned}
/// & G^+ = \frac{E[S^+ \mid v]}{p} = \frac{v^+}{p} + q \rho,
///   \qquad G^- = \frac{E[S^- \mid v]}{q} = \frac{v^-}{q} + p \rho \\
/// & \rho = \rho_{|v|}(2 \sqrt{p q}), \qquad p G^+ - q G^- = v
/// \end{aligned}
/// ```
///
/// `S⁺` and `S⁻` are independent Poisson counts with rates `p` and `q`, given that `S⁺ - S⁻ = v`; `v⁺ = max(v, 0)`, `v⁻ = max(-v, 0)`, and
/// `ρ` is [`bessel_rho`](crate::bessel_rho).
///
/// `G⁺ - 1` and `G⁻ - 1` are the derivatives of `ln Sk(v; p,q)` by `p` and `q`. A side whose rate is 0 gives 0, so that
/// rate times ratio is 0 there. Real `v`; `|v|, p, q ≤ 1e300`; relative error at most 8 eps.
///
/// # Errors
///
/// [`DistError::Domain`] for NaN and out-of-range arguments.
///
/// ```
/// let (g_plus, g_minus) = plca_dist::skellam_ratios(2.0, 3.0, 1.5)?;
/// assert!((3.0 * g_plus - 1.5 * g_minus - 2.0).abs() < 1e-15);
/// assert_eq!(plca_dist::skellam_ratios(2.0, 4.0, 0.0)?, (0.5, 0.0));
/// # Ok::<(), plca_dist::DistError>(())
/// ```
pub fn skellam_ratios(v: f64, plus: f64, minus: f64) -> Result<(f64, f64), DistError> {
    check(v, plus, minus)?;
    Ok(ratios_of(v, plus, minus))
}

/// [`skellam_ratios`] within the domain.
pub(crate) fn ratios_of(v: f64, plus: f64, minus: f64) -> (f64, f64) {
    let rho = rho(v.abs(), 2.0 * plus.sqrt() * minus.sqrt());
    combine(v, plus, minus, rho)
}

/// The [`skellam_ratios`] of every cell, with the widest instructions of the machine; the bits are those of the scalar function.
///
/// # Errors
///
/// [`DistError::Length`] for slices of different lengths, [`DistError::Domain`] for the first argument outside; then
/// the outputs are untouched.
///
/// ```
/// let (mut g_plus, mut g_minus) = ([0.0; 2], [0.0; 2]);
/// plca_dist::skellam_ratios_slice(&[1.0, -1.0], &[2.0; 2], &[2.0; 2], &mut g_plus, &mut g_minus)?;
/// assert_eq!(g_plus[0], g_minus[1]);
/// # Ok::<(), plca_dist::DistError>(())
/// ```
pub fn skellam_ratios_slice(
    v: &[f64],
    plus: &[f64],
    minus: &[f64],
    g_plus: &mut [f64],
    g_minus: &mut [f64],
) -> Result<(), DistError> {
    same_length("plus", plus.len(), v.len())?;
    same_length("minus", minus.len(), v.len())?;
    same_length("g_plus", g_plus.len(), v.len())?;
    same_length("g_minus", g_minus.len(), v.len())?;
    (v.iter().zip(plus).zip(minus)).try_for_each(|((&v, &p), &q)| check(v, p, q))?;
    wide(
        #[inline(always)]
        || {
            for at in (0..v.len()).step_by(LANES) {
                let end = v.len().min(at + LANES);
                let x = lanes::<LANES>(&v[at..end]);
                let mut p = lanes::<LANES>(&plus[at..end]);
                let mut q = lanes::<LANES>(&minus[at..end]);
                let (mut nu, mut z) = ([0.0; LANES], [0.0; LANES]);
                for i in 0..LANES {
                    nu[i] = x[i].abs();
                    z[i] = 2.0 * p[i].sqrt() * q[i].sqrt();
                }
                let rho = rho_lanes(&nu, &z);
                for i in 0..LANES {
                    (p[i], q[i]) = combine(x[i], p[i], q[i], rho[i]);
                }
                g_plus[at..end].copy_from_slice(&p[..end - at]);
                g_minus[at..end].copy_from_slice(&q[..end - at]);
            }
        },
    );
    Ok(())
}

/// The limit of the [`skellam_ratios`] of `M v`, `M p`, `M q` as `M` grows without end.
///
/// ```math
/// G^+ = \frac{v + w}{2 p}, \qquad G^- = \frac{w - v}{2 q} = \frac{1}{G^+}, \qquad w = \sqrt{v^2 + 4 p q}
/// ```
///
/// `1 - G⁺` and `1 - G⁻` are the derivatives of [`skellam_divergence`](crate::skellam_divergence). A side whose rate is
/// 0 gives 0; a side that `v` does not need is then the limit, `|v|` over its rate or 0. Relative error at most 4 eps.
///
/// # Errors
///
/// [`DistError::Domain`] for NaN and out-of-range arguments.
///
/// ```
/// assert_eq!(plca_dist::skellam_limit_ratios(0.0, 4.0, 1.0)?, (0.5, 2.0));
/// # Ok::<(), plca_dist::DistError>(())
/// ```
pub fn skellam_limit_ratios(v: f64, plus: f64, minus: f64) -> Result<(f64, f64), DistError> {
    check(v, plus, minus)?;
    let (w, _) = width(v, plus, minus);
    let guard = |rate: f64, g: f64| if rate > 0.0 { g } else { 0.0 };
    let (g_plus, g_minus) = tilts(w, v, plus, minus);
    Ok((guard(plus, g_plus), guard(minus, g_minus)))
}
