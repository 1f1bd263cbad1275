//! EM for shifted models.

use plca_tensor::{Data, Real, check_counts};
use rand::Rng;

use super::engine::{self, Counts, Direct, Engine, Measured, Parts, Wanted};
use super::folded::Folded;
use super::geometry::{Geometry, advance};
use super::window::Window;
use super::{Likelihood, Shifted, ShiftedInit, ShiftedState};
use crate::EmError;

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
    geometry: Geometry,
    pub(super) folded: Folded,
    engine: Box<dyn Engine<T>>,
}

impl<'a, T: Real> ShiftedEm<'a, T> {
    pub(super) fn new(config: &'a Shifted<T>, data: &'a dyn Data<T>) -> Result<Self, EmError> {
        check_counts(data)?;
        let geometry = config.geometry(data.shape())?;
        if config.likelihood == Likelihood::Literal && !geometry.is_valid() && !data.is_complete() {
            return Err(EmError::LiteralWithHidden);
        }
        config.settings.check_priors(geometry.cells())?;
        let folded = Folded::new(&geometry);
        let engine = engine::choose(&folded, config.components(), config.evaluation, data)?;
        Ok(Self {
            config,
            data,
            geometry,
            folded,
            engine,
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
        &self.geometry
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
        let state = (self.config.settings).init(self.geometry.cells(), init, rng)?;
        let positive = |values: &[T]| values.iter().all(|&x| x > T::zero());
        if !(positive(state.kernels.as_slice()) && positive(state.impulses.as_slice())) {
            self.check_support(&state)?;
        }
        Ok(state)
    }

    /// `Σ_t K H` of every component at one cell of the data, as the model is written.
    fn cell(&self, state: &ShiftedState<T>, index: &[usize]) -> f64 {
        let g = &self.geometry;
        let mut t = vec![0; index.len()];
        let mut p = 0.0;
        for tap in 0..g.kernel_cells() {
            // [SI eq. 6] [SI eq. 11] [SPEC 5.1] h = x - t + o
            let place = (0..t.len()).try_fold(0, |place, d| {
                let h = (index[d] + g.offset()[d]).checked_sub(t[d])?;
                (h < g.impulse_shape()[d]).then(|| place * g.impulse_shape()[d] + h)
            });
            if let Some(place) = place {
                for (z, w) in state.weights.iter().enumerate() {
                    let product =
                        state.kernels[(tap, z)].to_f64() * state.impulses[(place, z)].to_f64();
                    p += w.to_f64() * product;
                }
            }
            advance(&mut t, g.kernel_shape());
        }
        p
    }

    /// Refuses a model that excludes something observed: names the first such cell, in row-major order.
    pub(super) fn check_support(&self, state: &ShiftedState<T>) -> Result<(), EmError> {
        let mut first: Option<(Vec<usize>, f64)> = None;
        self.data.visit(&mut |index, value| {
            let earlier = first.as_ref().is_none_or(|(i, _)| index < i.as_slice());
            if earlier && self.cell(state, index) <= 0.0 {
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
        let f = &self.folded;
        let blocks = self.fold(state);
        let window = self.window(&blocks);
        let parts = blocks.parts(window.as_ref());
        let p = Direct::model(f, &parts);
        let mut scale = self.data.total();
        if self.conditional() {
            scale /= self.expect(&blocks, [false, false], false).measured.seen;
        }
        let shape = self.geometry.data_shape();
        let mut index = vec![0; shape.len()];
        let mut out = Vec::with_capacity(p.len());
        loop {
            let [c, d, x] = f.cell(&index);
            out.push(p[(c * f.lanes + d) * f.positions() + x] * T::lit(scale));
            if !advance(&mut index, shape) {
                return Ok(out);
            }
        }
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
        let blocks = self.fold(state);
        self.window(&blocks).map_or(1.0, |w| w.mass)
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
        Ok(self.ln_lik_of(&self.expect(&self.fold(state), [false, false], true)))
    }

    pub(super) fn check(&self, state: &ShiftedState<T>) -> Result<(), EmError> {
        state.check_blocks(self.geometry.cells(), self.config.components())
    }

    fn conditional(&self) -> bool {
        let outside =
            !self.geometry.is_valid() && self.config.likelihood == Likelihood::Conditional;
        outside || !self.data.is_complete()
    }

    pub(super) fn ln_lik_of(&self, counts: &Counts<T>) -> f64 {
        let Measured { ln_lik, seen, .. } = counts.measured;
        if self.conditional() {
            // [SPEC 4] [SPEC 5.2] Σ V ln P - v ln Σ_obs P
            ln_lik - self.data.total() * seen.ln()
        } else {
            ln_lik
        }
    }

    pub(super) fn fold(&self, state: &ShiftedState<T>) -> Blocks<T> {
        Blocks {
            weights: state.weights.as_slice().to_vec(),
            kernels: self.folded.fold_kernels(state.kernels.as_slice()),
            impulses: self.folded.fold_impulses(state.impulses.as_slice()),
        }
    }

    fn window(&self, b: &Blocks<T>) -> Option<Window> {
        let outside = !self.geometry.is_valid();
        outside.then(|| Window::new(&self.folded, &b.weights, &b.kernels, &b.impulses))
    }

    /// The E-step, with what lies outside the window imputed where the likelihood asks for it.
    pub(super) fn expect(
        &self,
        blocks: &Blocks<T>,
        [kernels, impulses]: [bool; 2],
        ln_lik: bool,
    ) -> Counts<T> {
        let window = self.window(blocks);
        let wanted = Wanted {
            kernels,
            impulses,
            ln_lik,
        };
        let mut counts = self.engine.expect(&blocks.parts(window.as_ref()), wanted);
        if let (Some(window), Likelihood::Conditional) = (&window, self.config.likelihood) {
            // [SPEC 4] [SPEC 5.2] s = v / Σ_obs P
            let s = self.data.total() * counts.scale / counts.measured.seen;
            let w = &blocks.weights;
            let Counts {
                kernels, impulses, ..
            } = &mut counts;
            if wanted.kernels {
                Window::impute_outside(kernels, &blocks.kernels, w, &window.taps, s);
            }
            if wanted.impulses {
                Window::impute_outside(impulses, &blocks.impulses, w, &window.places, s);
            }
        }
        counts
    }
}

/// Folded copies of a state's blocks.
pub(super) struct Blocks<T> {
    weights: Vec<T>,
    kernels: Vec<T>,
    impulses: Vec<T>,
}

impl<T> Blocks<T> {
    fn parts<'a>(&'a self, window: Option<&'a Window>) -> Parts<'a, T> {
        Parts {
            weights: &self.weights,
            kernels: &self.kernels,
            impulses: &self.impulses,
            window,
        }
    }
}
