//! Fitted parameters, and what they say of data.

use std::sync::Arc;

use nalgebra::{DMatrix, DVector};
use plca_fit::{Explained, FitError, Parameters, Reconstruct, State, Transform, blocks::Blocks};
use plca_tensor::{Data, DenseTensor, Real};

use super::{ALL, KERNEL, SHAPE, SUPPORTS, Shifted, facts};
use crate::placed::{
    Frame, Placement, explain, parameters, parts, placed_state, possible, refuse_along,
};
use crate::shifted::model::Layout;
use crate::shifted::shares::shares;
use crate::{Geometry, Likelihood, Support};

/// The fitted parameters of [`Shifted`]: weights, kernels, and impulses that say where the kernels are placed.
///
/// ```math
/// P(x) = \sum_z P(z) \sum_t K(t \mid z) \, H(x - t + o \mid z)
/// ```
///
/// ```
/// use plca_em::nalgebra::{self, dmatrix, dvector};
/// use plca_em::{Geometry, Likelihood, Reconstruct, ShiftedState, Support};
/// // The kernel 1 3 at the first and at the last of three places.
/// let geometry = Geometry::new(&[4], &[2], &[Support::Valid])?;
/// let state = ShiftedState::<f64>::new(
///     geometry, Likelihood::Conditional, dvector![1.0], dmatrix![0.25; 0.75], dmatrix![0.5; 0.0; 0.5])?;
/// assert_eq!(state.reconstruct()?.into_parts().1, [0.125, 0.375, 0.125, 0.375]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ShiftedState<T: Real>(Parameters<T>, Arc<Frame<Layout>>);

placed_state!(
    ShiftedState,
    "siplca",
    kernels: "Kernels `K(t | z)`, `|k| x K`: the cells of a kernel in row-major order.",
    impulses: "Impulses `H(h | z)`, `|m| x K`: the places in row-major order."
);

impl<T: Real> ShiftedState<T> {
    /// The state of weights `P(z)`, kernels, a column of `|k|` numbers for every component, and impulses, a column of `|m|`.
    ///
    /// # Errors
    ///
    /// [`FitError::Shape`], [`FitError::Value`], [`FitError::Sum`].
    pub fn new(
        geometry: Geometry,
        likelihood: Likelihood,
        weights: DVector<T>,
        kernels: DMatrix<T>,
        impulses: DMatrix<T>,
    ) -> Result<Self, FitError> {
        let facts = facts(&geometry, likelihood);
        let blocks = [kernels, impulses];
        Self::wrap(parameters(geometry.cells(), &weights, blocks, facts)?)
    }

    /// Where the facts of parameters place the kernels.
    fn place(parameters: &Parameters<T>) -> Result<Layout, FitError> {
        let supports = parameters.whole(SUPPORTS)?.into_iter();
        let supports = supports.map(|s| ALL.get(s).copied().ok_or(s));
        let supports = supports.collect::<Result<Vec<Support>, _>>();
        let supports = supports.map_err(|s| FitError::Fact {
            name: SUPPORTS,
            got: s.to_string(),
            expected: "0, valid, 1, same, or 2, full".into(),
        })?;
        let (shape, kernel) = (parameters.whole(SHAPE)?, parameters.whole(KERNEL)?);
        Ok(Layout::new(Geometry::new(&shape, &kernel, &supports)?))
    }

    /// The shapes of data, kernels and impulses.
    pub fn geometry(&self) -> &Geometry {
        &self.1.place.geometry
    }

    /// The mass that the model has within the window of the data, `Σ_x P(x)`: 1 if all supports are valid.
    pub fn window_mass(&self) -> f64 {
        self.1.place.inside(parts(&self.0))
    }

    /// Finds `P(z)` and impulses of new data under the learnt kernels, which is positive deconvolution. The problem is concave in
    /// `P(z) H(h | z)`, so that the start does not matter. `[SPEC 5.4]`
    ///
    /// ```
    /// use plca_em::nalgebra::{self, dmatrix, dvector};
    /// use plca_em::{Geometry, Likelihood, ShiftedState, Support, Transform};
    /// use plca_em::tensor::{DenseTensor, Order};
    /// let geometry = Geometry::new(&[2], &[2], &[Support::Valid])?;
    /// let learnt = ShiftedState::<f64>::new(
    ///     geometry, Likelihood::Conditional, dvector![1.0], dmatrix![0.25; 0.75], dmatrix![1.0])?;
    /// let new = DenseTensor::new(vec![4], vec![1.0, 3.0, 2.0, 6.0], Order::RowMajor)?;
    /// let explained = learnt.transform(&new, &Transform::default())?;
    /// let impulse = explained.fit.state().impulses();
    /// assert!((impulse[0] - 4.0 / 12.0).abs() < 1e-3 && (impulse[2] - 8.0 / 12.0).abs() < 1e-3);
    /// assert!(explained.gap[0] <= 1e-6);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`FitError::DataShape`], [`FitError::Impossible`], [`FitError::Conflict`] for a mode to explain along, which there is not, and those of a
    /// run.
    pub fn transform(
        &self,
        data: &dyn Data<T>,
        how: &Transform,
    ) -> Result<Explained<Self>, FitError> {
        refuse_along(how)?;
        let learnt = self.geometry();
        let config = Shifted::new(self.weights().len(), learnt.kernel_shape().to_vec());
        let config = config
            .supports(learnt.supports())
            .likelihood(self.likelihood());
        let config = config.freeze("kernels");
        let layout = Layout::new(config.geometry(data.shape())?);
        // Positive kernels reach every cell.
        let (part, dropped) = match self.kernels().iter().all(|&x| x > T::zero()) {
            true => (None, 0.0),
            false => possible(&layout, self.kernels(), data, how)?,
        };
        let data = part.as_ref().map_or(data, |part| part);
        let bound = config.on_data(data)?;
        let seen = |kernels: &DMatrix<T>| Ok(shares(&layout.geometry, data, kernels)?);
        explain(bound, self.kernels(), how, dropped, seen)
    }
}
