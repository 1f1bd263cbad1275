//! The Skellam law: differences of two independent Poisson counts.
//!
//! ```math
//! \begin{aligned}
//! V &= S^+ - S^-, \qquad S^+ \sim \mathrm{Poisson}(p), \quad S^- \sim \mathrm{Poisson}(q) \\
//! \mathrm{Sk}(v; p,q) &= e^{-p-q} \, \frac{p^{v^+} q^{v^-}}{|v|!} \, {}_0F_1(; |v|+1; p q)
//!   = e^{-p-q} \left( \frac{p}{q} \right)^{v/2} I_{|v|}(2 \sqrt{p q})
//! \end{aligned}
//! ```
//!
//! Scalar functions take real `v`, the factorial being continued by `Γ`; the distribution [`Skellam`] takes whole ones.

mod density;
mod distribution;
mod divergence;
mod fit;
mod ratio;
#[cfg(feature = "distributions")]
mod tail;
#[cfg(feature = "distributions")]
mod traits;

pub use density::skellam_ln_pmf;
pub use distribution::Skellam;
pub use divergence::{skellam_divergence, skellam_divergence_slice};
pub use ratio::{skellam_limit_ratios, skellam_ratios, skellam_ratios_slice};

pub(crate) use density::ln_pmf_of;
pub(crate) use divergence::ln_lanes;
pub(crate) use ratio::ratios_of;

use crate::{DistError, error::domain};

/// Refuses what no Skellam function accepts.
#[inline]
fn check(v: f64, plus: f64, minus: f64) -> Result<(), DistError> {
    domain("v", v, v.abs() <= 1e300)?;
    domain("plus", plus, (0.0..=1e300).contains(&plus))?;
    domain("minus", minus, (0.0..=1e300).contains(&minus))
}

/// `√(v² + 4pq)` without overflow, and `√(pq)`.
#[inline]
fn width(v: f64, plus: f64, minus: f64) -> (f64, f64) {
    let root = plus.sqrt() * minus.sqrt();
    (v.hypot(2.0 * root), root)
}

/// `e^t = (v + w)/(2p)` and `e^-t`, each from the side without cancellation; 0/0 only where both rates and `v` are 0.
#[inline]
fn tilts(w: f64, v: f64, plus: f64, minus: f64) -> (f64, f64) {
    let large = 0.5 * w + 0.5 * v.abs();
    // [SKELLAM 10]
    if v > 0.0 {
        (large / plus, plus / large)
    } else if v < 0.0 {
        (minus / large, large / minus)
    } else {
        let root = (minus / plus).sqrt();
        (root, 1.0 / root)
    }
}
