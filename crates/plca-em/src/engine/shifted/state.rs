//! Fitted parameters, and what they say of data.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use nalgebra::{DMatrix, DVector};
use plca_fit::engine::{
    Algorithm, Em, Explained, FileLayout, FitError, Parameters, Reconstruct, State, Transform,
    begin, certify, reached,
};
use plca_tensor::{Data, DenseTensor, Order, Real};

use super::super::placed::{
    Placed, Remembered, check_room, columns, position, specs, weights_block,
};
use super::{ALL, KERNEL, SHAPE, SUPPORTS, Shifted, facts};
use crate::shifted::model::{Columns, Evaluator, Layout};
use crate::shifted::shares::shares;
use crate::{Geometry, Likelihood, Support};

/// Fitted parameters of [`Shifted`].
///
/// ```
/// use nalgebra::{dmatrix, dvector};
/// use plca_em::{Geometry, Likelihood, Support, engine::ShiftedState};
/// use plca_fit::engine::Reconstruct;
/// // The kernel 1 3 at the first and at the last of three places.
/// let geometry = Geometry::new(&[4], &[2], &[Support::Valid])?;
/// let state = ShiftedState::<f64>::new(
///     geometry, Likelihood::Conditional, dvector![1.0], dmatrix![0.25; 0.75], dmatrix![0.5; 0.0; 0.5])?;
/// assert_eq!(state.reconstruct()?.into_parts().1, [0.125, 0.375, 0.125, 0.375]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ShiftedState<T: Real>(Parameters<T>, Arc<Frame>);

/// What follows from the facts of the parameters.
#[derive(Debug)]
struct Frame {
    layout: Layout,
    remembered: Remembered,
    /// What `P` is multiplied by, once that was asked for.
    scale: OnceLock<f64>,
}

impl<T: Real> PartialEq for ShiftedState<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

plca_fit::serialised!(ShiftedState);

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
        let specs = specs(geometry.cells(), weights.len());
        let blocks = vec![weights_block(&weights), kernels, impulses];
        let facts = facts(&geometry, likelihood).into_iter();
        let at = Parameters::new(&specs, blocks)?;
        Self::wrap(facts.fold(at, |at, (name, numbers)| at.with_fact(name, numbers)))
    }

    /// `P(z)`.
    pub fn weights(&self) -> &[T] {
        self.0.at(0).as_slice()
    }

    /// Kernels `K(t | z)`, `|k| x K`: the cells of a kernel in row-major order.
    pub fn kernels(&self) -> &DMatrix<T> {
        self.0.at(1)
    }

    /// Impulses `H(h | z)`, `|m| x K`: the places in row-major order.
    pub fn impulses(&self) -> &DMatrix<T> {
        self.0.at(2)
    }

    /// Shapes of data, kernels and impulses.
    pub fn geometry(&self) -> &Geometry {
        &self.1.layout.geometry
    }

    /// What was maximised.
    pub fn likelihood(&self) -> Likelihood {
        self.1.remembered.likelihood
    }

    /// `Σ_x P(x)` over the window of the data: 1 if all supports are valid.
    pub fn window_mass(&self) -> f64 {
        self.1.layout.window_mass(columns(&self.0))
    }

    /// Explains new data by the learnt kernels: their `P(z)` and impulses, which is positive deconvolution. The problem is concave in
    /// `P(z) H(h | z)`, so that the start does not matter. `[SPEC 5.4]`
    ///
    /// ```
    /// use nalgebra::{dmatrix, dvector};
    /// use plca_em::{Geometry, Likelihood, Support, engine::ShiftedState};
    /// use plca_fit::engine::Transform;
    /// use plca_tensor::{DenseTensor, Order};
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
        if how.along.is_some() {
            let what = "impulses lie along all modes of the data: there is none to explain along";
            return Err(FitError::Conflict { what: what.into() });
        }
        let learnt = self.geometry();
        let mut config = Shifted::builder(self.weights().len(), learnt.kernel_shape().to_vec());
        config = config
            .supports(learnt.supports())
            .likelihood(self.likelihood());
        let config = config.freeze("kernels").build()?;
        let geometry = config.geometry(data.shape())?;
        let (part, dropped) = self.possible(&geometry, data, how)?;
        let data = part.as_ref().map_or(data, |part| part);
        let bound = config.on_data(data)?;
        let blocks = bound.specs.iter().enumerate();
        let blocks = blocks.map(|(j, spec)| match j {
            1 => self.kernels().clone(),
            _ => spec.even(),
        });
        // [SPEC 5.4] only P(z) and the impulses move
        let em = Em(bound.clone());
        let start = begin(&em, blocks.collect())?;
        let shares = shares(&geometry, data, start.at(1))?;
        let gap = |at: &Parameters<T>| Ok(vec![gap_of(&em, at, &shares)?]);
        let (fit, gap) = certify::<Self>(Box::new(Em(bound)), start, how, gap)?;
        let keep = |j: usize, block: &mut DMatrix<T>| {
            if j == 1 {
                block.copy_from(self.kernels());
            }
        };
        Ok(Explained {
            fit: fit.change(|at| at.change(keep))?,
            gap,
            dropped,
            empty: Vec::new(),
        })
    }

    /// The part of the data that some kernel reaches.
    fn possible<'a>(
        &self,
        geometry: &Geometry,
        data: &'a dyn Data<T>,
        how: &Transform,
    ) -> Result<(Option<plca_tensor::Part<'a, T>>, f64), FitError> {
        if self.kernels().iter().all(|&x| x > T::zero()) {
            return Ok((None, 0.0));
        }
        let k = self.weights().len();
        let ones = vec![T::one(); geometry.impulse_cells() * k];
        let everywhere = Layout::new(geometry.clone()).cells(Columns {
            weights: &vec![T::one(); k],
            kernels: self.kernels().as_slice(),
            impulses: &ones,
        });
        let shape = geometry.data_shape();
        let is_reached = |index: &[usize]| everywhere[position(index, shape)] > T::zero();
        reached(data, is_reached, how.impossible)
    }

    fn scale(&self) -> f64 {
        let Frame {
            layout,
            remembered,
            scale,
        } = &*self.1;
        let at = columns(&self.0);
        let outside = !layout.geometry.is_valid();
        let inside = || layout.window_mass(at);
        *scale.get_or_init(|| remembered.scale(&self.0, outside, inside))
    }

    fn cells(&self, at: Columns<'_, T>) -> Result<DenseTensor<T>, FitError> {
        let shape = self.shape();
        check_room::<T>(&shape)?;
        let scale = T::lit(self.scale());
        let mut cells = self.1.layout.cells(at);
        cells.iter_mut().for_each(|p| *p *= scale);
        Ok(DenseTensor::new(shape, cells, Order::RowMajor)?)
    }
}

/// `max (g - 1)` over components and places. With `a = P(z) H(h | z)` one EM step multiplies `a` by `r = 1 + e (g - 1)`, what is hidden or outside
/// being imputed as the model has it; `e` is how much of a copy falls on observed cells.
fn gap_of<T: Real>(
    em: &Em<Placed<'_, T, Evaluator<T>>>,
    at: &Parameters<T>,
    shares: &DMatrix<f64>,
) -> Result<f64, FitError> {
    let mut next = at.clone();
    match Algorithm::step(em, &mut next, false) {
        Ok(_) => {}
        Err(error) if error.rejects_point() => return Ok(f64::INFINITY),
        Err(error) => return Err(error),
    }
    let free =
        |at: &Parameters<T>, h: usize, z: usize| at.at(0)[z].to_f64() * at.at(2)[(h, z)].to_f64();
    let mut worst: f64 = 0.0;
    for z in 0..shares.ncols() {
        for h in 0..shares.nrows() {
            let (now, share) = (free(at, h, z), shares[(h, z)]);
            if now > 0.0 && share > 0.0 {
                // [SPEC 1.5] L* - L <= v (max g - 1)
                worst = worst.max((free(&next, h, z) / now - 1.0) / share);
            }
        }
    }
    Ok(worst)
}

impl<T: Real> Reconstruct for ShiftedState<T> {
    fn shape(&self) -> Vec<usize> {
        self.geometry().data_shape().to_vec()
    }

    fn components(&self) -> usize {
        self.weights().len()
    }

    fn cell(&self, index: &[usize]) -> f64 {
        self.scale() * self.1.layout.cell(columns(&self.0), index)
    }

    /// Under the conditional likelihood scaled so that the observed cells have the sum of the data.
    fn reconstruct(&self) -> Result<DenseTensor<T>, FitError> {
        self.cells(columns(&self.0))
    }

    fn component(&self, z: usize) -> Result<DenseTensor<T>, FitError> {
        let components = self.components();
        if z >= components {
            return Err(FitError::NoComponent {
                component: z,
                components,
            });
        }
        self.cells(columns(&self.0).component(z))
    }
}

impl<T: Real> State for ShiftedState<T> {
    type Scalar = T;
    const NAME: &'static str = "siplca";

    fn block_names(_: usize) -> Vec<Cow<'static, str>> {
        ["weights", "kernels", "impulses"].map(Cow::from).into()
    }

    fn layout(block: &str) -> FileLayout {
        match block {
            "weights" => FileLayout::Vector,
            "kernels" => FileLayout::Stack("kernel"),
            _ => FileLayout::Stack("places"),
        }
    }

    fn wrap(parameters: Parameters<T>) -> Result<Self, FitError> {
        let supports = parameters.whole(SUPPORTS)?.into_iter();
        let supports = supports.map(|s| ALL.get(s).copied().ok_or(s));
        let supports = supports.collect::<Result<Vec<Support>, _>>();
        let supports = supports.map_err(|s| FitError::Fact {
            name: SUPPORTS,
            got: s.to_string(),
            expected: "0, valid, 1, same, or 2, full".into(),
        })?;
        let (shape, kernel) = (parameters.whole(SHAPE)?, parameters.whole(KERNEL)?);
        let geometry = Geometry::fitting(&shape, &kernel, &supports)?;
        let k = parameters.matrices().first().map_or(0, |w| w.nrows());
        parameters.check(&specs(geometry.cells(), k))?;
        let remembered = Remembered::of(&parameters)?;
        parameters.check_scale(1)?;
        let frame = Frame {
            layout: Layout::new(geometry),
            remembered,
            scale: OnceLock::new(),
        };
        Ok(Self(parameters, Arc::new(frame)))
    }

    fn parameters(&self) -> &Parameters<T> {
        &self.0
    }
}
