//! The parameters of a point estimate.

use nalgebra::DMatrix;
use plca_tensor::{Real, SignedModel};

/// The factors: atoms with a positive and a negative side, and activations.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(bound(
        serialize = "T: serde::Serialize",
        deserialize = "T: serde::Deserialize<'de>"
    ))
)]
pub struct SnmfState<T: Real> {
    /// `T⁺`, `F x K`.
    pub plus: DMatrix<T>,
    /// `T⁻`, `F x K`; column `k` of both sides together sums to 1.
    pub minus: DMatrix<T>,
    /// `H`, `K x N`, in the units of the data.
    pub activations: DMatrix<T>,
}

impl<T: Real> SnmfState<T> {
    /// Signed atoms `W = T⁺ - T⁻`.
    pub fn atoms(&self) -> DMatrix<T> {
        &self.plus - &self.minus
    }

    /// `(T⁺ - T⁻) H`, the expected data.
    pub fn reconstruct(&self) -> DMatrix<T> {
        self.atoms() * &self.activations
    }

    pub(crate) fn model(&self) -> SignedModel<'_, T> {
        SignedModel {
            plus: &self.plus,
            minus: &self.minus,
            right: &self.activations,
        }
    }
}

/// Divides every atom, both sides together, by its sum; returns the first whose sum is 0, which is left as it is.
pub(crate) fn normalise_atoms<T: Real>(
    plus: &mut DMatrix<T>,
    minus: &mut DMatrix<T>,
) -> Option<usize> {
    let mut empty = None;
    for (k, (mut plus, mut minus)) in
        (plus.column_iter_mut().zip(minus.column_iter_mut())).enumerate()
    {
        let largest = plus.amax().max(minus.amax());
        if largest <= T::zero() {
            empty = empty.or(Some(k));
            continue;
        }
        // Large entries first: their sum might not be finite.
        plus /= largest;
        minus /= largest;
        let sum = plus.sum() + minus.sum();
        plus /= sum;
        minus /= sum;
    }
    empty
}
