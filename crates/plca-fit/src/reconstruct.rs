//! What a fitted state says of the data.

use plca_tensor::{Cp, DenseTensor, Order, Real};

use super::{FitError, State};

/// A state that approximates data cell by cell, in the scale of the data.
pub trait Reconstruct: State {
    /// The shape of the data.
    fn shape(&self) -> Vec<usize>;

    /// Number of components.
    fn components(&self) -> usize;

    /// The approximation of one cell.
    ///
    /// # Panics
    ///
    /// For an index outside the shape.
    fn cell(&self, index: &[usize]) -> f64;

    /// The approximation of all cells.
    ///
    /// # Errors
    ///
    /// [`FitError::Data`] for a tensor that is too large for memory.
    fn reconstruct(&self) -> Result<DenseTensor<Self::Scalar>, FitError>;

    /// The part of the approximation that one component, counted from 0, contributes.
    ///
    /// # Errors
    ///
    /// [`FitError::NoComponent`], and as [`reconstruct`](Self::reconstruct).
    fn component(&self, z: usize) -> Result<DenseTensor<Self::Scalar>, FitError>;
}

/// All cells of a product of factors, times a number.
///
/// ```math
/// Y[x] = \text{scale} \cdot \sum_z w_z \prod_j F_j[x_j, z]
/// ```
///
/// `w` are the weights, `K` numbers, and `F_j` is the factor of mode `j`, `I_j x K`.
///
/// # Errors
///
/// [`FitError::Data`] for a tensor that is too large for memory.
pub fn dense<T: Real>(model: &Cp<'_, T>, scale: f64) -> Result<DenseTensor<T>, FitError> {
    let shape = model.factors.iter().map(|f| f.rows()).collect();
    Ok(DenseTensor::new(
        shape,
        model.dense(scale)?,
        Order::RowMajor,
    )?)
}

/// All cells of one component of a product of factors, times a number.
///
/// ```math
/// Y[x] = \text{scale} \cdot w_z \prod_j F_j[x_j, z]
/// ```
///
/// # Errors
///
/// [`FitError::NoComponent`], and as [`dense`].
pub fn one_component<T: Real>(
    model: &Cp<'_, T>,
    z: usize,
    scale: f64,
) -> Result<DenseTensor<T>, FitError> {
    let components = model.components();
    if z >= components {
        return Err(FitError::NoComponent {
            component: z,
            components,
        });
    }
    let weight = |k: usize| match k == z {
        true => model.weights.map_or(T::one(), |w| w[z]),
        false => T::zero(),
    };
    let weights: Vec<T> = (0..components).map(weight).collect();
    let one = Cp {
        weights: Some(&weights),
        factors: model.factors,
    };
    dense(&one, scale)
}
