//! Acceleration of EM-like algorithms, always under a monotone guard.

mod parabolic;
mod squarem;

pub use parabolic::Parabolic;
pub use squarem::Squarem;

use crate::Algorithm;

/// An algorithm whose parameters can be extrapolated.
pub trait Accelerate: Algorithm {
    /// The parameters as one list of numbers, in a fixed order.
    fn pack(&self, state: &Self::State) -> Vec<f64>;

    /// A valid state from extrapolated parameters: everything else from `template`, entries that left their domain
    /// replaced by a tenth of `fallback`'s (the last EM values), constrained blocks renormalised.
    fn unpack(&self, template: &Self::State, flat: &[f64], fallback: &[f64]) -> Self::State;
}
