//! The confluent limit function `0F1`, which is a modified Bessel function without its power.
//!
//! ```math
//! {}_0F_1(; \nu+1; x) = \sum_n \frac{x^n}{n! \, (\nu+1)_n} = \Gamma(\nu+1) \, x^{-\nu/2} I_\nu(2 \sqrt{x})
//! ```
//!
//! `[SKELLAM 10]`, `[DLMF 10.39.9]`.

use crate::{
    DistError,
    debye::{FAR, LN_DEBYE},
    error::domain,
    stirling::{HALF_LN_TAU, ln_gamma_of, stirling_error_of},
};

/// `ln Σ U_k w^-k`, the logarithm of the Debye expansion, for `w ≥ 30` and `t = ν/w`.
pub(crate) fn ln_debye(w: f64, t: f64) -> f64 {
    let y = t * t;
    LN_DEBYE.iter().rev().fold(0.0, |sum, row| {
        let poly = row.iter().rev().fold(0.0, |p, c| c + y * p);
        (sum + poly) / w
    })
}

/// `ln 0F1(; ν+1; (z/2)²)` for `ν ≥ 0`, `z ≥ 0`.
pub(crate) fn ln_0f1_of(nu: f64, z: f64) -> f64 {
    let w = nu.hypot(z);
    let x = 0.25 * z * z;
    if w < FAR || x <= nu + 1.0 {
        // The terms fall by at least x/(n (ν + n)); 200 are far more than are ever used.
        let (mut term, mut sum) = (1.0, 0.0);
        for n in 1..200 {
            let n = f64::from(n);
            term *= x / (n * (nu + n));
            sum += term;
            if term <= 1e-17 * sum {
                break;
            }
        }
        return sum.ln_1p();
    }
    let debye = ln_debye(w, nu / w);
    // [DLMF 10.39.9] [SKELLAM 10]
    if nu < 16.0 {
        let power = if nu > 0.0 {
            nu * (0.5 * nu + 0.5 * w).ln()
        } else {
            0.0
        };
        return w - power + ln_gamma_of(nu + 1.0) - HALF_LN_TAU - 0.5 * w.ln() + debye;
    }
    let d = (z / (w + nu)) * (z / nu);
    nu * (d - (0.5 * d).ln_1p()) - 0.5 * d.ln_1p() + stirling_error_of(nu) + debye
}

/// The logarithm of the confluent hypergeometric limit function, `ln 0F1(; ν+1; x)`; note that the parameter of `0F1` is `ν + 1`.
///
/// ```math
/// {}_0F_1(; \nu+1; x) = \sum_{n \ge 0} \frac{x^n}{n! \, (\nu+1)_n}, \qquad (\nu+1)_n = (\nu+1)(\nu+2) \cdots (\nu+n)
/// ```
///
/// `0 ≤ ν ≤ 1e300`, `0 ≤ x ≤ 1e300`; relative error at most 18 eps (4e-15).
///
/// # Errors
///
/// [`DistError::Domain`] for an argument outside.
///
/// ```
/// let exact = (4f64.sinh() / 4.0).ln();                 // 0F1(; 3/2; x) = sinh(2√x) / (2√x)
/// assert!((plca_dist::ln_0f1(0.5, 4.0)? - exact).abs() < 1e-15);
/// # Ok::<(), plca_dist::DistError>(())
/// ```
pub fn ln_0f1(nu: f64, x: f64) -> Result<f64, DistError> {
    domain("nu", nu, (0.0..=1e300).contains(&nu))?;
    domain("x", x, (0.0..=1e300).contains(&x))?;
    // The series itself, where the square of the root would underflow.
    if x < 1e-30 {
        return Ok(x / (nu + 1.0));
    }
    Ok(ln_0f1_of(nu, 2.0 * x.sqrt()))
}
