//! What a fitted state says of the data.

use nalgebra::DMatrix;
use plca_tensor::{Cp, DenseTensor, Factor, Order, Real};

use super::{FitError, Parameters, SCALE, State};

/// A state that approximates data cell by cell, in the scale of the data. One that is [`Factored`] does so by itself.
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

    /// The approximation of all cells, or what one component, of those that there are, contributes to it.
    ///
    /// # Errors
    ///
    /// [`FitError::Data`] for a tensor that is too large for memory.
    fn cells(&self, component: Option<usize>) -> Result<DenseTensor<Self::Scalar>, FitError>;

    /// The approximation of all cells.
    ///
    /// # Errors
    ///
    /// As [`cells`](Self::cells).
    fn reconstruct(&self) -> Result<DenseTensor<Self::Scalar>, FitError> {
        self.cells(None)
    }

    /// The part of the approximation that one component, counted from 0, contributes.
    ///
    /// # Errors
    ///
    /// [`FitError::NoComponent`], and as [`cells`](Self::cells).
    fn component(&self, z: usize) -> Result<DenseTensor<Self::Scalar>, FitError> {
        let components = self.components();
        match z < components {
            true => self.cells(Some(z)),
            false => Err(FitError::NoComponent {
                component: z,
                components,
            }),
        }
    }
}

/// Weights of the components, `None` where they are all 1, and the factors of all modes.
pub type WeightedFactors<'a, T> = (Option<&'a [T]>, Vec<Factor<'a, T>>);

/// A state whose components are products of weights and factors: what the kernels take as a [`Cp`].
pub trait Factored: State {
    /// The weights and factors that these blocks are.
    fn product(at: &Parameters<Self::Scalar>) -> WeightedFactors<'_, Self::Scalar>;

    /// The mode whose every index has a scale of its own. Default: none, there is one scale.
    fn scaled_mode(&self) -> Option<usize> {
        None
    }

    /// What the product is multiplied by to approximate the data, at an index of the [`scaled_mode`](Self::scaled_mode) if there is one. Default:
    /// the fact [`SCALE`], or the sum of the data.
    fn scale(&self, index: usize) -> f64 {
        let _ = index;
        let at = self.parameters();
        match at.fact(SCALE) {
            Some(&[scale]) => scale,
            _ => at.mass(),
        }
    }

    /// Calls `f` with the product of these blocks as a model for the kernels.
    fn with_model_at<O>(
        at: &Parameters<Self::Scalar>,
        f: impl FnOnce(&Cp<'_, Self::Scalar>) -> O,
    ) -> O {
        let (weights, factors) = Self::product(at);
        let factors = &factors;
        f(&Cp { weights, factors })
    }

    /// Calls `f` with the product, without its scale, as a model for the kernels.
    fn with_model<O>(&self, f: impl FnOnce(&Cp<'_, Self::Scalar>) -> O) -> O {
        Self::with_model_at(self.parameters(), f)
    }

    /// Calls `f` with the product, the scales of the [`scaled_mode`](Self::scaled_mode) in its factor, and with the scale that is left.
    fn with_scaled<O>(&self, f: impl FnOnce(&Cp<'_, Self::Scalar>, f64) -> O) -> O {
        let Some(mode) = self.scaled_mode() else {
            return self.with_model(|cp| f(cp, self.scale(0)));
        };
        let (weights, mut factors) = Self::product(self.parameters());
        let scale = |i: usize| Self::Scalar::lit(self.scale(i));
        let scales: Vec<_> = (0..factors[mode].rows()).map(scale).collect();
        let scaled: DMatrix<_> = match factors[mode] {
            Factor::Columns(m) => m.map_with_location(|i, _, x| x * scales[i]),
            Factor::Rows(m) => m.map_with_location(|_, i, x| x * scales[i]),
        };
        factors[mode] = match factors[mode] {
            Factor::Columns(_) => Factor::Columns(&scaled),
            Factor::Rows(_) => Factor::Rows(&scaled),
        };
        let factors = &factors;
        f(&Cp { weights, factors }, 1.0)
    }
}

impl<S: Factored> Reconstruct for S {
    fn shape(&self) -> Vec<usize> {
        self.with_model(|cp| cp.factors.iter().map(|f| f.rows()).collect())
    }

    fn components(&self) -> usize {
        self.with_model(|cp| cp.weights.map_or(cp.components(), <[_]>::len))
    }

    fn cell(&self, index: &[usize]) -> f64 {
        let at = self.scaled_mode().map_or(0, |mode| index[mode]);
        self.scale(at) * self.with_model(|cp| cp.cell(index))
    }

    fn cells(&self, component: Option<usize>) -> Result<DenseTensor<S::Scalar>, FitError> {
        self.with_scaled(|cp, scale| {
            let one = component.map(|z| of_one(cp.weights, self.components(), z));
            let weights = one.as_deref().or(cp.weights);
            let values = Cp { weights, ..*cp }.dense(scale)?;
            Ok(DenseTensor::new(self.shape(), values, Order::RowMajor)?)
        })
    }
}

/// Weights that leave one component.
fn of_one<T: Real>(weights: Option<&[T]>, components: usize, z: usize) -> Vec<T> {
    let mut one = vec![T::zero(); components];
    one[z] = weights.map_or(T::one(), |w| w[z]);
    one
}
