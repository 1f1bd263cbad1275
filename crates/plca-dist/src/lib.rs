//! Scalar mathematics of probabilistic factorization: special functions, distributions, reproducible draws, divergences.
//!
//! All functions take and return `f64`. Random draws use this crate's own algorithms on the 64-bit numbers of any generator, so
//! that a seed gives the same draws with every version of `rand`, except for the last bit of logarithms; see [`random`].
//!
//! Arguments outside the domain of a function give [`DistError`]; inside it no function panics or loops without a bound. Errors are
//! stated in units of `eps = 2^-52` and tested against 60-digit references.

mod bessel;
mod counts;
mod debye;
mod diffnomial;
mod digamma;
mod divergence;
mod elementary;
mod error;
mod gamma_shapes;
mod hypergeometric;
pub mod key;
mod lambert;
mod logarithm;
pub mod random;
#[doc(hidden)]
pub mod simd;
mod skellam;
mod stirling;

pub use bessel::{bessel_ratio, bessel_rho};
pub use counts::{draw_poisson, thin};
pub use diffnomial::Diffnomial;
pub use digamma::{digamma, exp_digamma, exp_digamma_slice, inverse_digamma, trigamma};
pub use divergence::deviance;
pub use error::DistError;
pub use gamma_shapes::gamma_shape_kl_slice;
pub use hypergeometric::ln_0f1;
pub use lambert::{
    lambert_w0, lambert_w0_exp, lambert_wm1, lambert_wm1_gap, ln_lambert_w0_exp,
    ln_neg_lambert_w0_gap,
};
pub use skellam::{
    Skellam, skellam_divergence, skellam_divergence_slice, skellam_limit_ratios, skellam_ln_pmf,
    skellam_ratios, skellam_ratios_slice,
};
pub use stirling::{ln_gamma, poisson_ln_pmf, stirling_error};
