//! EM for shifted models.

use plca_tensor::{Data, Real, check_counts};
use rand::Rng;

use super::engine::{Counts, Wanted};
use super::geometry::Geometry;
use super::model::{Columns, Evaluator};
use super::{Likelihood, Shifted, ShiftedInit, ShiftedState};
use crate::{EmError, ParamError};

/// [`Shifted`] bound to data: one EM iteration, its objective and its KKT residual.
///
/// ```
/// use plca_em::{Algorithm, Shifted, ShiftedInit};
/// use plca_tensor::{DenseTensor, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let v = DenseTensor::<f64>::new(vec![6], vec![0.0, 1.0, 3.0, 2.0, 6.0, 0.0], Order::RowMajor)?;
/// let shifted = Shifted::builder(1, vec![2]).build()?;
/// let em = shifted.on(&v)?;
/// let mut state = em.init(&ShiftedInit::default(), &mut ChaCha8Rng::seed_from_u64(2))?;
/// for _ in 0..500 { em.step(&mut state, false)?; }
/// assert!(em.residual(&state)?.expect("no priors") < 1e-6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ShiftedEm<'a, T: Real> {
    pub(super) config: &'a Shifted<T>,
    data: &'a dyn Data<T>,
    evaluator: Evaluator<T>,
}

impl<'a, T: Real> ShiftedEm<'a, T> {
    pub(super) fn new(config: &'a Shifted<T>, data: &'a dyn Data<T>) -> Result<Self, EmError> {
        check_counts(data)?;
        let geometry = config.geometry(data.shape())?;
        if config.likelihood == Likelihood::Literal && !geometry.is_valid() && !data.is_complete() {
            return Err(EmError::LiteralWithHidden);
        }
        config.settings.check_priors(geometry.cells())?;
        if !config.evaluation.is_available() {
            let what = "`Evaluation::Fft` without the feature `fft`";
            return Err(ParamError::Conflict(what).into());
        }
        let (likelihood, evaluation) = (config.likelihood, config.evaluation);
        let k = config.components();
        let evaluator = Evaluator::new(geometry, likelihood, evaluation, k, data)?;
        Ok(Self {
            config,
            data,
            evaluator,
        })
    }

    /// Shapes of kernels and impulses.
    ///
    /// ```
    /// use plca_em::{Algorithm, Shifted, ShiftedInit};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let v = DenseTensor::<f64>::new(vec![6], vec![0.0, 1.0, 3.0, 2.0, 6.0, 0.0], Order::RowMajor)?;
    /// let shifted = Shifted::builder(1, vec![2]).build()?;
    /// let em = shifted.on(&v)?;
    /// let mut state = em.init(&ShiftedInit::default(), &mut ChaCha8Rng::seed_from_u64(2))?;
    /// assert_eq!((em.geometry().kernel_shape(), em.geometry().impulse_shape()), (&[2][..], &[5][..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn geometry(&self) -> &Geometry {
        &self.evaluator.layout.geometry
    }

    /// A start. Blocks that `init` does not give are drawn from `rng`, each consuming the same numbers whether or not the
    /// others are given.
    ///
    /// # Errors
    ///
    /// [`EmError`]: a given block of the wrong shape, with a bad value or a column of zeros; a frozen block that is not
    /// given; a model that is 0 where the data are positive.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{Algorithm, Shifted, ShiftedInit};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let v = DenseTensor::<f64>::new(vec![6], vec![0.0, 1.0, 3.0, 2.0, 6.0, 0.0], Order::RowMajor)?;
    /// let shifted = Shifted::builder(1, vec![2]).build()?;
    /// let em = shifted.on(&v)?;
    /// let mut state = em.init(&ShiftedInit::default(), &mut ChaCha8Rng::seed_from_u64(2))?;
    /// // The kernel is known, the impulses are drawn.
    /// let known = ShiftedInit { kernels: Some(nalgebra::dmatrix![0.25; 0.75]), ..ShiftedInit::default() };
    /// state = em.init(&known, &mut ChaCha8Rng::seed_from_u64(2))?;
    /// assert_eq!(state.kernels, nalgebra::dmatrix![0.25; 0.75]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn init<R: Rng + ?Sized>(
        &self,
        init: &ShiftedInit<T>,
        rng: &mut R,
    ) -> Result<ShiftedState<T>, EmError> {
        let state = (self.config.settings).init(self.geometry().cells(), init, rng)?;
        let positive = |values: &[T]| values.iter().all(|&x| x > T::zero());
        if !(positive(state.kernels.as_slice()) && positive(state.impulses.as_slice())) {
            self.check_support(&state)?;
        }
        Ok(state)
    }

    /// Refuses a model that excludes something observed: names the first such cell, in row-major order.
    pub(super) fn check_support(&self, state: &ShiftedState<T>) -> Result<(), EmError> {
        let mut first: Option<(Vec<usize>, f64)> = None;
        self.data.visit(&mut |index, value| {
            let earlier = first.as_ref().is_none_or(|(i, _)| index < i.as_slice());
            if earlier && self.evaluator.layout.cell(columns(state), index) <= 0.0 {
                first = Some((index.to_vec(), value));
            }
        })?;
        first.map_or(Ok(()), |(index, value)| {
            Err(EmError::Support { index, value })
        })
    }

    /// `v P(x)` over the window of the data, in row-major order; under the conditional likelihood scaled so that the observed
    /// cells have the mass of the data.
    ///
    /// # Errors
    ///
    /// As [`ShiftedState::check`].
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{Algorithm, Shifted, ShiftedInit};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let v = DenseTensor::<f64>::new(vec![6], vec![0.0, 1.0, 3.0, 2.0, 6.0, 0.0], Order::RowMajor)?;
    /// let shifted = Shifted::builder(1, vec![2]).build()?;
    /// let em = shifted.on(&v)?;
    /// let mut state = em.init(&ShiftedInit::default(), &mut ChaCha8Rng::seed_from_u64(2))?;
    /// for _ in 0..500 { em.step(&mut state, false)?; }
    /// let model = em.reconstruct(&state)?;
    /// assert!((model[4] - 6.0).abs() < 1e-3 && model[5].abs() < 1e-3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reconstruct(&self, state: &ShiftedState<T>) -> Result<Vec<T>, EmError> {
        self.check(state)?;
        let mut scale = self.data.total();
        if self.evaluator.is_conditional() {
            scale /= self.expect(state, [false, false], false).measured.seen;
        }
        let mut cells = self.evaluator.layout.cells(columns(state));
        cells.iter_mut().for_each(|p| *p *= T::lit(scale));
        Ok(cells)
    }

    /// `Σ_x P(x)` over the window of the data: 1 if all supports are valid; NaN for a state that
    /// [`check`](ShiftedState::check) refuses.
    ///
    /// ```
    /// use plca_em::{Algorithm, Shifted, ShiftedInit};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let v = DenseTensor::<f64>::new(vec![6], vec![0.0, 1.0, 3.0, 2.0, 6.0, 0.0], Order::RowMajor)?;
    /// let shifted = Shifted::builder(1, vec![2]).build()?;
    /// let em = shifted.on(&v)?;
    /// let mut state = em.init(&ShiftedInit::default(), &mut ChaCha8Rng::seed_from_u64(2))?;
    /// assert_eq!(em.window_mass(&state), 1.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn window_mass(&self, state: &ShiftedState<T>) -> f64 {
        if self.check(state).is_err() {
            return f64::NAN;
        }
        self.evaluator.layout.window_mass(columns(state))
    }

    /// Log-likelihood of the observed data, without priors.
    ///
    /// # Errors
    ///
    /// As [`ShiftedState::check`], or data that could not be read.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{Algorithm, Shifted, ShiftedInit};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let v = DenseTensor::<f64>::new(vec![6], vec![0.0, 1.0, 3.0, 2.0, 6.0, 0.0], Order::RowMajor)?;
    /// let shifted = Shifted::builder(1, vec![2]).build()?;
    /// let em = shifted.on(&v)?;
    /// let mut state = em.init(&ShiftedInit::default(), &mut ChaCha8Rng::seed_from_u64(2))?;
    /// assert_eq!(em.ln_lik(&state)?, em.objective(&state)?);           // there is no prior
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn ln_lik(&self, state: &ShiftedState<T>) -> Result<f64, EmError> {
        self.check(state)?;
        state.check_sums()?;
        let counts = self.expect(state, [false, false], true);
        Ok(self.evaluator.ln_lik(&counts.measured))
    }

    pub(super) fn check(&self, state: &ShiftedState<T>) -> Result<(), EmError> {
        state.check_blocks(self.geometry().cells(), self.config.components())
    }

    pub(super) fn ln_lik_of(&self, counts: &Counts<T>) -> f64 {
        self.evaluator.ln_lik(&counts.measured)
    }

    /// The E-step, with what lies outside the window imputed where the likelihood asks for it.
    pub(super) fn expect(
        &self,
        state: &ShiftedState<T>,
        [kernels, impulses]: [bool; 2],
        ln_lik: bool,
    ) -> Counts<T> {
        let wanted = Wanted {
            kernels,
            impulses,
            ln_lik,
        };
        self.evaluator.expect(columns(state), wanted)
    }
}

fn columns<T: Real>(state: &ShiftedState<T>) -> Columns<'_, T> {
    Columns {
        weights: state.weights.as_slice(),
        kernels: state.kernels.as_slice(),
        impulses: state.impulses.as_slice(),
    }
}
