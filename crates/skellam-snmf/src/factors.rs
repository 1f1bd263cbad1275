//! Factors as plain matrices.

use nalgebra::DMatrix;
use plca_tensor::{Real, SignedModel};

/// The factors of a Skellam factorization as plain matrices: atoms with a positive and a negative side, and activations.
///
/// ```math
/// E[V] = (T^+ - T^-) H
/// ```
///
/// A posterior has them for means, and hyperparameters are learnt from them where factors are known. `F` rows, `N` columns, `K` components;
/// those of a fit are an [`SnmfState`](crate::SnmfState).
///
/// ```
/// use skellam_snmf::nalgebra::{self, dmatrix};
/// use skellam_snmf::Factors;
/// let factors = Factors { plus: dmatrix![0.5; 0.0], minus: dmatrix![0.0; 0.5], activations: dmatrix![4.0, 8.0] };
/// assert_eq!(factors.plus.sum() + factors.minus.sum(), 1.0);
/// assert_eq!(&factors.plus * &factors.activations, dmatrix![2.0, 4.0; 0.0, 0.0]);        // L⁺
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(bound(deserialize = "T: serde::Deserialize<'de>"))
)]
pub struct Factors<T: Real> {
    /// The positive side of the atoms, `T⁺`, `F x K`.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::checked::matrix"))]
    pub plus: DMatrix<T>,
    /// The negative side of the atoms, `T⁻`, `F x K`; column `k` of both sides together is an atom.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::checked::matrix"))]
    pub minus: DMatrix<T>,
    /// The activations, `H`, `K x N`, in the units of the data.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::checked::matrix"))]
    pub activations: DMatrix<T>,
}

impl<T: Real> Factors<T> {
    /// `W = T⁺ - T⁻`.
    pub(crate) fn signed_atoms(&self) -> DMatrix<T> {
        &self.plus - &self.minus
    }

    pub(crate) fn model(&self) -> SignedModel<'_, T> {
        SignedModel {
            plus: &self.plus,
            minus: &self.minus,
            right: &self.activations,
        }
    }
}
