//! EM for transformed models.

use plca_fit::{Accelerate, Algorithm};
use plca_tensor::{Data, Real};
use rand::Rng;

use super::Transformed;
use super::evaluator::Evaluator;
use crate::blocks::following;
use crate::shifted::engine::{Counts, Wanted};
use crate::shifted::model::Columns;
use crate::shifted::settings::{pack, restore_blocks};
use crate::{EmError, ShiftedInit, ShiftedState};

/// [`Transformed`] bound to data: one EM iteration, its objective and its KKT residual.
///
/// ```
/// use plca_em::{Algorithm, IndexMaps, ShiftedInit, Transformed};
/// use plca_tensor::{DenseTensor, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let v = DenseTensor::new(vec![3], vec![1.0, 5.0, 2.0], Order::RowMajor)?;
/// let model = Transformed::builder(1, IndexMaps::new(3, 2, &[0, 1,  1, 2])?).build()?;
/// let em = model.on(&v)?;
/// let mut state = em.init(&ShiftedInit::default(), &mut ChaCha8Rng::seed_from_u64(0))?;
/// for _ in 0..200 { em.step(&mut state, false)?; }
/// assert!(em.residual(&state)?.expect("no priors") < 1e-6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TransformedEm<'a, T: Real> {
    pub(super) config: &'a Transformed<T>,
    pub(super) data: &'a dyn Data<T>,
    pub(super) evaluator: Evaluator<T>,
}

impl<T: Real> TransformedEm<'_, T> {
    /// A start. Blocks that `init` does not give are drawn from `rng`.
    ///
    /// # Errors
    ///
    /// As [`ShiftedEm::init`](crate::ShiftedEm::init).
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{Algorithm, IndexMaps, ShiftedInit, Transformed};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let v = DenseTensor::new(vec![3], vec![1.0, 5.0, 2.0], Order::RowMajor)?;
    /// let model = Transformed::builder(1, IndexMaps::new(3, 2, &[0, 1,  1, 2])?).build()?;
    /// let em = model.on(&v)?;
    /// let mut state = em.init(&ShiftedInit::default(), &mut ChaCha8Rng::seed_from_u64(0))?;
    /// assert_eq!((state.kernels.shape(), state.impulses.shape()), ((2, 1), (2, 1)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn init<R: Rng + ?Sized>(
        &self,
        init: &ShiftedInit<T>,
        rng: &mut R,
    ) -> Result<ShiftedState<T>, EmError> {
        let maps = &self.config.maps;
        let state = self
            .config
            .settings
            .init([maps.kernel, maps.maps], init, rng)?;
        self.check_support(&state)?;
        Ok(state)
    }

    /// `v P(x)` over the data, in row-major order; under the conditional likelihood scaled so that the observed cells have the
    /// mass of the data.
    ///
    /// # Errors
    ///
    /// As [`ShiftedState::check`].
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{Algorithm, IndexMaps, ShiftedInit, Transformed};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let v = DenseTensor::new(vec![3], vec![1.0, 5.0, 2.0], Order::RowMajor)?;
    /// let model = Transformed::builder(1, IndexMaps::new(3, 2, &[0, 1,  1, 2])?).build()?;
    /// let em = model.on(&v)?;
    /// let mut state = em.init(&ShiftedInit::default(), &mut ChaCha8Rng::seed_from_u64(0))?;
    /// let model = em.reconstruct(&state)?;
    /// assert!((model.iter().sum::<f64>() - 8.0).abs() < 1e-12);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reconstruct(&self, state: &ShiftedState<T>) -> Result<Vec<T>, EmError> {
        self.check(state)?;
        let mut scale = self.data.total();
        if self.evaluator.is_conditional() {
            scale /= self.expect(state, [false; 2], false).measured.seen;
        }
        let mut p = self.config.maps.cells_of(columns(state));
        p.iter_mut().for_each(|p| *p *= T::lit(scale));
        Ok(p)
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
    /// use plca_em::{Algorithm, IndexMaps, ShiftedInit, Transformed};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let v = DenseTensor::new(vec![3], vec![1.0, 5.0, 2.0], Order::RowMajor)?;
    /// let model = Transformed::builder(1, IndexMaps::new(3, 2, &[0, 1,  1, 2])?).build()?;
    /// let em = model.on(&v)?;
    /// let mut state = em.init(&ShiftedInit::default(), &mut ChaCha8Rng::seed_from_u64(0))?;
    /// assert_eq!(em.ln_lik(&state)?, em.objective(&state)?);           // there is no prior
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn ln_lik(&self, state: &ShiftedState<T>) -> Result<f64, EmError> {
        self.check(state)?;
        state.check_sums()?;
        let counts = self.expect(state, [false; 2], true);
        Ok(self.evaluator.ln_lik(&counts.measured))
    }

    fn check(&self, state: &ShiftedState<T>) -> Result<(), EmError> {
        let maps = &self.config.maps;
        state.check_blocks([maps.kernel, maps.maps], self.config.components())
    }

    fn expect(
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

    /// Refuses a model that excludes something observed: names the first such cell, in row-major order.
    fn check_support(&self, state: &ShiftedState<T>) -> Result<(), EmError> {
        let p = self.config.maps.cells_of(columns(state));
        let shape = self.data.shape();
        let mut first: Option<(Vec<usize>, f64)> = None;
        self.data.visit(&mut |index, value| {
            let earlier = first.as_ref().is_none_or(|(i, _)| index < i.as_slice());
            let at = index.iter().zip(shape).fold(0, |at, (i, n)| at * n + i);
            if earlier && p[at] <= T::zero() {
                first = Some((index.to_vec(), value));
            }
        })?;
        first.map_or(Ok(()), |(index, value)| {
            Err(EmError::Support { index, value })
        })
    }
}

fn columns<T: Real>(state: &ShiftedState<T>) -> Columns<'_, T> {
    Columns {
        weights: state.weights.as_slice(),
        kernels: state.kernels.as_slice(),
        impulses: state.impulses.as_slice(),
    }
}

impl<T: Real> Algorithm for TransformedEm<'_, T> {
    type State = ShiftedState<T>;
    type Error = EmError;

    /// The objective is not measured while a power moves towards 1: such iterations are no EM, and must not end a run.
    fn step(&self, state: &mut ShiftedState<T>, measure: bool) -> Result<Option<f64>, EmError> {
        self.check(state)?;
        let settings = &self.config.settings;
        let measure = measure && !settings.annealing(following(state.iteration));
        let counts = self.expect(state, settings.wanted(), measure);
        if counts.measured.lost {
            self.check_support(state)?;
            return Err(EmError::NoMass);
        }
        let value =
            measure.then(|| self.evaluator.ln_lik(&counts.measured) + settings.ln_prior(state));
        let of_blocks = [counts.kernels, counts.impulses];
        let emptied = settings.maximise(state, of_blocks, counts.scale)?;
        if emptied.contains(&true) && self.expect(state, [false; 2], true).measured.lost {
            restore_blocks(state, emptied);
        }
        Ok(value)
    }

    fn objective(&self, state: &ShiftedState<T>) -> Result<f64, EmError> {
        Ok(self.ln_lik(state)? + self.config.settings.ln_prior(state))
    }

    /// `max |θ (g - 1)|` over the free blocks and live components, a probability; 0 exactly at a stationary point of the likelihood.
    /// From the counts `C` of a block `θ` under weights `P(z)`: `θ g = C / (v P(z))`, or `C / n` where the weights are frozen, and
    /// `|n / v - P(z)|` for the weights. `None` with a prior or a power that stays, infinite while a power moves. `[SPEC 1.1]`
    fn residual(&self, state: &ShiftedState<T>) -> Result<Option<f64>, EmError> {
        self.check(state)?;
        Ok(self.config.settings.residual(state, |wanted| {
            let counts = self.expect(state, wanted, false);
            [counts.kernels, counts.impulses]
        }))
    }
}

impl<T: Real> Accelerate for TransformedEm<'_, T> {
    /// Refuses priors that still change or whose step no objective guards, and powers that stay.
    fn accelerable(&self, state: &ShiftedState<T>) -> Result<(), EmError> {
        self.config
            .settings
            .check_accelerable(following(state.iteration))
    }

    fn pack(&self, state: &ShiftedState<T>) -> Vec<f64> {
        pack(state)
    }

    fn unpack(
        &self,
        template: &ShiftedState<T>,
        flat: &[f64],
        fallback: &[f64],
    ) -> ShiftedState<T> {
        self.config.settings.unpack(template, flat, fallback)
    }
}
