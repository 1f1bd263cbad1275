//! The parameters of a point estimate.

use nalgebra::DMatrix;
use plca_tensor::{Real, SignedModel};

use crate::sides::{normalise, split, stack};

/// The factors: atoms with a positive and a negative side, and activations.
///
/// Each atom sums to 1 over its rows and both sides `[SKELLAM eq. 13]`, so that `H` carries the size of the data: `Σ_f L⁺ + L⁻`
/// of a column is the sum of its activations. `F` rows, `N` columns, `K` components.
///
/// ```
/// use nalgebra::dmatrix;
/// use skellam_snmf::SnmfState;
/// let state = SnmfState { plus: dmatrix![0.5; 0.0], minus: dmatrix![0.0; 0.5], activations: dmatrix![4.0, 8.0] };
/// assert_eq!(state.plus.sum() + state.minus.sum(), 1.0);
/// assert_eq!(&state.plus * &state.activations, dmatrix![2.0, 4.0; 0.0, 0.0]);            // L⁺
/// ```
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
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "plca_tensor::checked::matrix")
    )]
    pub plus: DMatrix<T>,
    /// `T⁻`, `F x K`; column `k` of both sides together sums to 1.
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "plca_tensor::checked::matrix")
    )]
    pub minus: DMatrix<T>,
    /// `H`, `K x N`, in the units of the data.
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "plca_tensor::checked::matrix")
    )]
    pub activations: DMatrix<T>,
}

impl<T: Real> SnmfState<T> {
    /// Signed atoms `W = T⁺ - T⁻`, `F x K`.
    ///
    /// # Panics
    ///
    /// If the sides have different shapes.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use skellam_snmf::SnmfState;
    /// let state = SnmfState { plus: dmatrix![0.5; 0.0], minus: dmatrix![0.0; 0.5], activations: dmatrix![4.0, 8.0] };
    /// assert_eq!(state.atoms(), dmatrix![0.5; -0.5]);
    /// ```
    pub fn atoms(&self) -> DMatrix<T> {
        &self.plus - &self.minus
    }

    /// `(T⁺ - T⁻) H`, `F x N`: the expected data `L⁺ - L⁻`, in their units. `[SKELLAM eq. 3]`
    ///
    /// # Panics
    ///
    /// If the factors do not fit together.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use skellam_snmf::SnmfState;
    /// let state = SnmfState { plus: dmatrix![0.5; 0.0], minus: dmatrix![0.0; 0.5], activations: dmatrix![4.0, 8.0] };
    /// assert_eq!(state.reconstruct(), dmatrix![2.0, 4.0; -2.0, -4.0]);
    /// ```
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
    let mut both = stack(plus, minus);
    let sums = normalise(&mut both);
    [*plus, *minus] = split(&both);
    sums.iter().position(|&s| s <= T::zero())
}
