//! The data as a fitted state approximates them.

use nalgebra::DMatrix;
use plca_tensor::{Cp, DenseTensor, Factor, Order, Real};

use super::{FitError, Parameters, SCALE, State};

/// A state that approximates the data, in their units. Every state that is [`Factored`] implements it; a state of your own that is no
/// product of factors writes [`cell`](Self::cell) and [`cells`](Self::cells) itself.
///
/// ```
/// use plca_em::Plca;
/// use plca_fit::{Model, Reconstruct};
/// use plca_tensor::{DenseTensor, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let v = DenseTensor::<f64>::new(vec![2, 2], vec![1.0, 2.0, 3.0, 6.0], Order::RowMajor)?;      // rank one
/// let model = Plca::new(1);
/// let fit = model.fit(&v, &mut ChaCha8Rng::seed_from_u64(0))?;
/// assert!((fit.state().cell(&[1, 1]) - 6.0).abs() < 1e-6);
/// assert_eq!(fit.state().shape(), [2, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Reconstruct: State {
    /// The shape of the data.
    fn shape(&self) -> Vec<usize>;

    /// The number of components.
    fn components(&self) -> usize;

    /// The approximation of one cell, in the units of the data. For many cells [`cells`](Self::cells) costs less, or
    /// [`Factored::with_model`] called once.
    ///
    /// # Panics
    ///
    /// For an index outside the shape.
    fn cell(&self, index: &[usize]) -> f64;

    /// The approximation of all cells as a dense tensor; with `Some(z)` only the part that component `z`, counted from 0, adds to it. A state
    /// of your own asks [`check_component`](Self::check_component) first.
    ///
    /// # Errors
    ///
    /// [`FitError::NoComponent`] if there is no such component; [`FitError::Data`] for a tensor that is too large for memory.
    fn cells(&self, component: Option<usize>) -> Result<DenseTensor<Self::Scalar>, FitError>;

    /// The approximation of all cells, in memory for as many numbers as the data have cells.
    ///
    /// # Errors
    ///
    /// As [`cells`](Self::cells).
    fn reconstruct(&self) -> Result<DenseTensor<Self::Scalar>, FitError> {
        self.cells(None)
    }

    /// The part of the approximation that component `z`, counted from 0, adds. These parts sum to [`reconstruct`](Self::reconstruct).
    ///
    /// # Errors
    ///
    /// As [`cells`](Self::cells).
    fn component(&self, z: usize) -> Result<DenseTensor<Self::Scalar>, FitError> {
        self.cells(Some(z))
    }

    /// Refuses a component that there is not.
    ///
    /// # Errors
    ///
    /// [`FitError::NoComponent`].
    fn check_component(&self, component: Option<usize>) -> Result<(), FitError> {
        let components = self.components();
        match component {
            Some(component) if component >= components => Err(FitError::NoComponent {
                component,
                components,
            }),
            _ => Ok(()),
        }
    }
}

/// The weights of the components, one each, or `None` if all are 1; and the factors, one for every mode.
pub type WeightedFactors<'a, T> = (Option<&'a [T]>, Vec<Factor<'a, T>>);

/// A state whose components are products of a weight and a factor for every mode (a CP model). It then implements [`Reconstruct`].
///
/// ```math
/// P[x] = s \sum_z w_z \prod_m F_m[x_m, z]
/// ```
///
/// `w` are the weights, `F_m` the factor of mode `m`, and `s` the [scale](Self::scale), which may depend on the index along one mode. The
/// kernels take the product without `s`, as a [`Cp`].
pub trait Factored: State {
    /// The weights and factors that these parameters hold, without the scale.
    fn product(at: &Parameters<Self::Scalar>) -> WeightedFactors<'_, Self::Scalar>;

    /// The mode of which every index has its own scale, counted from 0. Default: `None`, one scale for all cells.
    fn scaled_mode(&self) -> Option<usize> {
        None
    }

    /// The number by which the product is multiplied to approximate the data. `index` is one along the [`scaled_mode`](Self::scaled_mode);
    /// without such a mode it has no effect. Default: the fact [`SCALE`] if the parameters have it, else their [`mass`](Parameters::mass).
    fn scale(&self, index: usize) -> f64 {
        let _ = index;
        let at = self.parameters();
        match at.fact(SCALE) {
            Some(&[scale]) => scale,
            _ => at.mass(),
        }
    }

    /// Calls `f` with the product of these parameters, without the scale, as a [`Cp`], and returns its result.
    fn with_model_at<O>(
        at: &Parameters<Self::Scalar>,
        f: impl FnOnce(&Cp<'_, Self::Scalar>) -> O,
    ) -> O {
        let (weights, factors) = Self::product(at);
        let factors = &factors;
        f(&Cp { weights, factors })
    }

    /// Calls `f` with the product of this state, without the scale, as a [`Cp`], and returns its result.
    fn with_model<O>(&self, f: impl FnOnce(&Cp<'_, Self::Scalar>) -> O) -> O {
        Self::with_model_at(self.parameters(), f)
    }

    /// Calls `f` with the product and its scale. If there is a [`scaled_mode`](Self::scaled_mode), its factor is multiplied by the scales,
    /// and the scale given to `f` is 1.
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
        self.check_component(component)?;
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
