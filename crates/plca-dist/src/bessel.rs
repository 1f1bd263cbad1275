//! Ratios of modified Bessel functions of the first kind.
//!
//! ```math
//! r_\nu(z) = \frac{I_{\nu+1}(z)}{I_\nu(z)},
//! \qquad \rho_\nu(z) = \frac{2}{z} \, r_\nu(z)
//!   = \frac{{}_0F_1(; \nu+2; z^2/4)}{(\nu+1) \, {}_0F_1(; \nu+1; z^2/4)}
//! ```
//!
//! The Skellam E-step needs `ρ`, once per cell: it neither underflows nor overflows where `I_ν` does both.
//!
//! With `w = √(ν² + z²) ≥ 30` the uniform expansion in `1/w` has reached its last digit after 14 terms. Below, the order is
//! raised until `w ≥ 30` and brought back by `ρ_ν = 1/(ν + 1 + (z²/4) ρ_{ν+1})`, whose terms are all positive and which
//! contracts errors. Orders and arguments from 0 to 1e300 take the same time. `[SKELLAM 10]`, `[DLMF 10.41]`.

use crate::{
    DistError,
    debye::{FAR, RATIO},
    error::domain,
};

/// `ρ` of several pairs at once. Every lane does the same operations whatever the width, so one pair has a bit-identical result.
#[inline(always)]
pub(crate) fn rho_lanes<const L: usize>(nu: &[f64; L], z: &[f64; L]) -> [f64; L] {
    let mut raise = [0.0; L];
    let mut most = 0.0f64;
    for i in 0..L {
        let room = (FAR * FAR - z[i] * z[i]).max(0.0).sqrt() - nu[i];
        raise[i] = room.max(0.0).ceil();
        most = most.max(raise[i]);
    }
    let (mut top, mut inv_w, mut y, mut w) = ([0.0; L], [0.0; L], [0.0; L], [0.0; L]);
    for i in 0..L {
        top[i] = nu[i] + raise[i];
        // The larger of the two out of the root, so that the squares stay in range.
        let large = top[i].max(z[i]);
        let (a, b) = (top[i] / large, z[i] / large);
        w[i] = large * (a * a + b * b).sqrt();
        inv_w[i] = 1.0 / w[i];
        let t = top[i] * inv_w[i];
        y[i] = t * t;
    }
    // [DLMF 10.41] the uniform expansion
    let mut sum = [0.0; L];
    for row in RATIO.iter().rev() {
        let mut poly = [0.0; L];
        for &c in row.iter().rev() {
            for i in 0..L {
                poly[i] = c + y[i] * poly[i];
            }
        }
        for i in 0..L {
            sum[i] = (sum[i] + poly[i]) * inv_w[i];
        }
    }
    // [DLMF 10.29.1] [SKELLAM 10] ρ = a/b, so that the recurrence needs no division until its end.
    let (mut a, mut b, mut quarter) = ([0.0; L], [1.0; L], [0.0; L]);
    for i in 0..L {
        a[i] = 2.0 / (w[i] + top[i]) + 2.0 * sum[i] * inv_w[i];
        quarter[i] = if raise[i] > 0.0 {
            0.25 * z[i] * z[i]
        } else {
            0.0
        };
    }
    let mut j = most;
    while j > 0.0 {
        for i in 0..L {
            let below = (nu[i] + j) * b[i] + quarter[i] * a[i];
            let active = j <= raise[i];
            a[i] = if active { b[i] } else { a[i] };
            b[i] = if active { below } else { b[i] };
        }
        j -= 1.0;
    }
    for i in 0..L {
        a[i] /= b[i];
    }
    a
}

/// `ρ_ν(z)` for arguments known to be within the domain.
pub(crate) fn rho(nu: f64, z: f64) -> f64 {
    rho_lanes(&[nu], &[z])[0]
}

/// Variance of the Bessel law `P(m) ∝ (z/2)^2m / (m! Γ(m+ν+1))`: `(z/2)² r_ν (r_{ν+1} - r_ν) + (z/2) r_ν`.
///
/// Far out it is `(z/2) d/dz` of the mean's expansion, term by term: the formula would lose the digits of `w`.
pub(crate) fn spread(nu: f64, z: f64) -> f64 {
    let quarter = 0.25 * z * z;
    let w = nu.hypot(z);
    if w < FAR {
        let (at, above) = (rho(nu, z), rho(nu + 1.0, z));
        // [SKELLAM 2]
        return quarter * at * (1.0 - quarter * (at - above));
    }
    let y = (nu / w) * (nu / w);
    // Σ h_n w^-n, and the same with every term c y^j w^-n times 2j + n + 1.
    let (mut sum, mut slope) = (0.0, 0.0);
    for (n, row) in RATIO.iter().enumerate().rev() {
        let (mut poly, mut weighted) = (0.0, 0.0);
        for (j, &c) in row.iter().enumerate().rev() {
            poly = c + y * poly;
            weighted = (2 * j + n + 2) as f64 * c + y * weighted;
        }
        sum = (sum + poly) / w;
        slope = (slope + weighted) / w;
    }
    quarter / w * (1.0 + 2.0 * sum - (z / w) * (z / w) * slope)
}

fn check(nu: f64, z: f64) -> Result<(), DistError> {
    domain("nu", nu, (0.0..=1e300).contains(&nu))?;
    domain("z", z, (0.0..=1e300).contains(&z))
}

/// The ratio of the modified Bessel functions of orders `ν + 1` and `ν`, times `2/z`.
///
/// ```math
/// \rho_\nu(z) = \frac{2}{z} \, \frac{I_{\nu+1}(z)}{I_\nu(z)}, \qquad \rho_\nu(0) = \frac{1}{\nu+1}
/// ```
///
/// `0 ≤ ν ≤ 1e300`, `0 ≤ z ≤ 1e300`; decreases in both; relative error at most 4.5 eps (1e-15).
///
/// # Errors
///
/// [`DistError::Domain`] for an argument outside.
///
/// ```
/// let exact = 2.0 / 3.0 * (1.0 / 3f64.tanh() - 1.0 / 3.0);  // I_{3/2}(z) / I_{1/2}(z) = coth z - 1/z
/// assert!((plca_dist::bessel_rho(0.5, 3.0)? - exact).abs() < 1e-15);
/// # Ok::<(), plca_dist::DistError>(())
/// ```
pub fn bessel_rho(nu: f64, z: f64) -> Result<f64, DistError> {
    check(nu, z)?;
    Ok(rho(nu, z))
}

/// The ratio of the modified Bessel functions of orders `ν + 1` and `ν`, in `[0, 1]`.
///
/// ```math
/// r_\nu(z) = \frac{I_{\nu+1}(z)}{I_\nu(z)}
/// ```
///
/// Domain of [`bessel_rho`]; increases in `z`, decreases in `ν`; relative error at most 5 eps where it is a normal number.
///
/// # Errors
///
/// [`DistError::Domain`] for an argument outside.
///
/// ```
/// assert_eq!(plca_dist::bessel_ratio(3.0, 0.0)?, 0.0);
/// assert!((plca_dist::bessel_ratio(0.5, 2.0)? - (1.0 / 2f64.tanh() - 0.5)).abs() < 1e-15);
/// # Ok::<(), plca_dist::DistError>(())
/// ```
pub fn bessel_ratio(nu: f64, z: f64) -> Result<f64, DistError> {
    check(nu, z)?;
    Ok((0.5 * z * rho(nu, z)).min(1.0))
}
