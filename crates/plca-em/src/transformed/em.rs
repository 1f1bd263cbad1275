//! EM for transformed models.

use plca_fit::{Accelerate, Algorithm};
use plca_tensor::{Data, Real};
use rand::Rng;

use super::Transformed;
use super::maps::Entry;
use crate::blocks::following;
use crate::shifted::engine::{Cells, Counts, Measured, Parts, Wanted};
use crate::shifted::settings::{pack, restore_blocks};
use crate::{EmError, Likelihood, ShiftedInit, ShiftedState};
use plca_tensor::parallel::for_each_part;

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
    pub(super) cells: Cells<T>,
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
        if self.conditional() {
            scale /= self.expect(state, [false; 2], false).measured.seen;
        }
        let mut p = self.model(state);
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
        Ok(self.ln_lik_of(&self.expect(state, [false; 2], true)))
    }

    fn check(&self, state: &ShiftedState<T>) -> Result<(), EmError> {
        let maps = &self.config.maps;
        state.check_blocks([maps.kernel, maps.maps], self.config.components())
    }

    fn conditional(&self) -> bool {
        let leaves = self.config.maps.any_outside;
        leaves && self.config.likelihood == Likelihood::Conditional || !self.data.is_complete()
    }

    fn ln_lik_of(&self, counts: &Counts<T>) -> f64 {
        let Measured { ln_lik, seen, .. } = counts.measured;
        if self.conditional() {
            // [SPEC 4] [SPEC 5.2] Σ V ln P - v ln Σ_obs P
            ln_lik - self.data.total() * seen.ln()
        } else {
            ln_lik
        }
    }

    /// `P` of every cell of the data.
    fn model(&self, state: &ShiftedState<T>) -> Vec<T> {
        let maps = &self.config.maps;
        let mut p = vec![T::zero(); maps.cells];
        const PART: usize = 256;
        for_each_part(&mut p, PART, |part, p| {
            for (x, p) in (part * PART..).zip(p) {
                for (z, &w) in state.weights.iter().enumerate() {
                    let (kernel, impulse) = (state.kernels.column(z), state.impulses.column(z));
                    // [SPEC 5.7] P[x] = Σ_z P(z) Σ_s H[z,s] Σ_{u: T_s(u) = x} a[s,u] K[z,u]
                    let terms = maps.of_cell(x).iter().map(|e| {
                        T::lit(e.weight) * kernel[e.from as usize] * impulse[e.map as usize]
                    });
                    *p += w * terms.sum::<T>();
                }
            }
        });
        p
    }

    fn expect(&self, state: &ShiftedState<T>, wanted: [bool; 2], ln_lik: bool) -> Counts<T> {
        let mut q = self.model(state);
        let mass = q.iter().map(|p| p.to_f64()).sum();
        let measured = self.cells.ratios(&mut q, ln_lik, mass);
        // Beyond the data: imputed like a hidden cell, or nothing.
        q.push(match self.config.likelihood {
            Likelihood::Conditional => T::lit(self.data.total() * self.cells.scale / measured.seen),
            Likelihood::Literal => T::zero(),
        });
        let parts = Parts {
            weights: state.weights.as_slice(),
            kernels: state.kernels.as_slice(),
            impulses: state.impulses.as_slice(),
            window: None,
        };
        let wanted = Wanted {
            kernels: wanted[0],
            impulses: wanted[1],
            ln_lik,
        };
        let kernels = || self.kernel_sums(state, &q);
        let impulses = || self.impulse_sums(state, &q);
        Counts::assemble(
            &parts,
            wanted,
            self.cells.scale,
            measured,
            kernels,
            impulses,
        )
    }

    /// `Σ_s H[z,s] q[s,u]`, `[z][u]`.
    fn kernel_sums(&self, state: &ShiftedState<T>, q: &[T]) -> Vec<T> {
        let maps = &self.config.maps;
        // [LV eq. 17] [SPEC 5.7] H q, of CK = P(z) K ∘ (H q)
        let mut sums = vec![T::zero(); state.kernels.len()];
        for_each_part(&mut sums, maps.kernel, |z, sums| {
            for (s, &h) in state.impulses.column(z).iter().enumerate() {
                for e in maps.of_map(s) {
                    sums[e.from as usize] += h * ratio(e, q);
                }
            }
        });
        sums
    }

    /// `Σ_u K[z,u] q[s,u]`, `[z][s]`.
    fn impulse_sums(&self, state: &ShiftedState<T>, q: &[T]) -> Vec<T> {
        let maps = &self.config.maps;
        // [LV eq. 17] [SPEC 5.7] K qᵀ, of CH = P(z) H ∘ (K qᵀ)
        let mut sums = vec![T::zero(); state.impulses.len()];
        const PART: usize = 64;
        for_each_part(&mut sums, PART, |part, sums| {
            for (at, sum) in (part * PART..).zip(sums) {
                let kernel = state.kernels.column(at / maps.maps);
                let terms = maps.of_map(at % maps.maps).iter();
                *sum = terms.map(|e| kernel[e.from as usize] * ratio(e, q)).sum();
            }
        });
        sums
    }

    /// Refuses a model that excludes something observed: names the first such cell, in row-major order.
    fn check_support(&self, state: &ShiftedState<T>) -> Result<(), EmError> {
        let p = self.model(state);
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

/// `q[s,u] = a[s,u] Q[T_s(u)]`
fn ratio<T: Real>(e: &Entry, q: &[T]) -> T {
    T::lit(e.weight) * q[e.to as usize]
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
        let value = measure.then(|| self.ln_lik_of(&counts) + settings.ln_prior(state));
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
