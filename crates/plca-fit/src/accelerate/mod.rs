//! Acceleration of EM-like algorithms, always under a monotone guard.

mod carried;
mod momentum;
mod parabolic;
mod squarem;

pub use carried::{Carried, Plain};
pub use momentum::Momentum;
pub use parabolic::Parabolic;
pub use squarem::Squarem;

use crate::Algorithm;

/// An algorithm whose parameters can be extrapolated.
///
/// ```
/// use plca_fit::{Accelerate, Algorithm, Squarem, Stop, StopError, run};
///
/// /// Approaches 3 by a hundredth of the distance.
/// struct Slow;
/// impl Algorithm for Slow {
///     type State = f64;
///     type Error = StopError;
///     fn step(&self, x: &mut f64, measure: bool) -> Result<Option<f64>, StopError> {
///         let before = measure.then(|| -(*x - 3.0).powi(2));
///         *x += (3.0 - *x) / 100.0;
///         Ok(before)
///     }
///     fn objective(&self, x: &f64) -> Result<f64, StopError> { Ok(-(*x - 3.0).powi(2)) }
/// }
/// impl Accelerate for Slow {
///     fn pack(&self, x: &f64) -> Vec<f64> { vec![*x] }
///     fn unpack(&self, _: &f64, flat: &[f64], _: &[f64]) -> f64 { flat[0] }
/// }
///
/// let stop = Stop { max_iter: 1, tol: 0.0, ..Stop::default() };
/// assert!(run(&Slow, 0.0, &stop, ())?.state < 0.1);
/// assert!((run(&Squarem(Slow), 0.0, &stop, ())?.state - 3.0).abs() < 1e-9);
/// # Ok::<(), StopError>(())
/// ```
pub trait Accelerate: Algorithm {
    /// The parameters as one list of numbers, in a fixed order.
    fn pack(&self, state: &Self::State) -> Vec<f64>;

    /// A valid state from extrapolated parameters: everything else from `template`, entries that left their domain
    /// replaced by a tenth of `fallback`'s (the last EM values), constrained blocks renormalised.
    fn unpack(&self, template: &Self::State, flat: &[f64], fallback: &[f64]) -> Self::State;

    /// Whether steps from this state may be accelerated: the guard needs an objective that plain steps never make worse.
    ///
    /// # Errors
    ///
    /// The algorithm's own, if not; the accelerated step then fails with it.
    fn accelerable(&self, _state: &Self::State) -> Result<(), Self::Error> {
        Ok(())
    }
}

impl<A: Accelerate> Accelerate for &A {
    fn pack(&self, state: &A::State) -> Vec<f64> {
        (**self).pack(state)
    }

    fn unpack(&self, template: &A::State, flat: &[f64], fallback: &[f64]) -> A::State {
        (**self).unpack(template, flat, fallback)
    }

    fn accelerable(&self, state: &A::State) -> Result<(), A::Error> {
        (**self).accelerable(state)
    }
}
