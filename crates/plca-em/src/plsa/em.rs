//! EM for PLSA.

use nalgebra::DMatrix;
use plca_fit::{Accelerate, Algorithm};
use plca_priors::Step;
use plca_tensor::{Data, Modes, Real};

use super::{Plsa, PlsaState};
use crate::blocks::{
    Extrapolated, check_steady, check_untempered, following, largest, lost, m_step, pack, restore,
    whole_or_not,
};
use crate::init::{check_measured, check_support};
use crate::{EmError, Prior};

/// Counts of the basis and of the mixture, where they are learnt.
type Free<T> = [Option<DMatrix<T>>; 2];

/// [`Plsa`] bound to data.
///
/// ```
/// use plca_em::{before::Plsa, Algorithm, PlsaInit};
/// use plca_tensor::{DenseTensor, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
/// let mut rng = ChaCha8Rng::seed_from_u64(0);
/// let plsa = Plsa::builder(2).build()?;
/// let mut state = plsa.init(&v, &PlsaInit::default(), &mut rng)?;
/// let em = plsa.on(&v)?;
/// let measured = em.step(&mut state, true)?;                      // of the state before the step
/// assert!(em.objective(&state)? >= measured.expect("asked for"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct PlsaEm<'a, T: Real> {
    pub(crate) config: &'a Plsa<T>,
    pub(crate) data: &'a dyn Data<T>,
    /// `Σ V` over the observed cells of every given index.
    pub(super) marginal: Vec<f64>,
}

impl<T: Real> PlsaEm<'_, T> {
    /// `P(y)`: the share of every given index in the data.
    ///
    /// ```
    /// use plca_em::before::Plsa;
    /// use plca_tensor::{DenseTensor, Order};
    /// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
    /// let plsa = Plsa::<f64>::builder(2).build()?;
    /// let em = plsa.on(&v)?;
    /// assert_eq!(em.marginal(), [0.5, 0.5]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn marginal(&self) -> Vec<f64> {
        let total: f64 = self.marginal.iter().sum();
        // [SPEC 2] P(x2) = colsum(V) / v
        self.marginal.iter().map(|m| m / total).collect()
    }

    /// `Σ ln p(block)` under the priors in force at the next iteration.
    pub(crate) fn ln_prior(&self, state: &PlsaState<T>) -> f64 {
        let step = Step::at(following(state.iteration));
        let density = |prior: &Option<Prior<T>>, block| {
            prior.as_ref().map_or(0.0, |p| p.ln_density(block, &step))
        };
        density(&self.config.basis_prior, &state.basis)
            + density(&self.config.mixture_prior, &state.mixture)
    }

    /// Conditional log-likelihood `Σ V ln P(x | y)`, given what was observed of every `y` where cells are hidden.
    ///
    /// # Errors
    ///
    /// As [`PlsaState::check`], or data that could not be read.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{before::Plsa, Algorithm, PlsaInit};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
    /// let mut rng = ChaCha8Rng::seed_from_u64(0);
    /// let plsa = Plsa::builder(2).build()?;
    /// let state = plsa.init(&v, &PlsaInit::default(), &mut rng)?;
    /// let em = plsa.on(&v)?;
    /// assert_eq!(em.ln_lik(&state)?, em.objective(&state)?);           // there is no prior
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn ln_lik(&self, state: &PlsaState<T>) -> Result<f64, EmError> {
        self.check(state)?;
        state.check_sums()?;
        self.likelihood(state)
    }

    /// Log-likelihood of a state that was checked.
    fn likelihood(&self, state: &PlsaState<T>) -> Result<f64, EmError> {
        // [SPEC 2] L_c = Σ V ln (W G)
        let e = self.expect(&state.basis, &state.mixture, Modes::NONE, true)?;
        Ok(e.value())
    }

    pub(crate) fn check(&self, state: &PlsaState<T>) -> Result<(), EmError> {
        let (shape, k) = (self.data.shape(), self.config.components);
        state.check_blocks(shape, self.config.given, k)
    }

    /// Counts of basis and mixture where they are free, and the likelihood if `measure`.
    pub(crate) fn e_step(
        &self,
        state: &PlsaState<T>,
        measure: bool,
    ) -> Result<(Free<T>, Option<f64>), EmError> {
        let given = self.config.given;
        let mut modes = Modes::NONE;
        if !self.config.freeze_basis {
            modes = modes.with(given.explained());
        }
        if !self.config.freeze_mixture {
            modes = modes.with(given.mode());
        }
        let (mut e, value) = if state.power == 1.0 {
            let e = self.expect(&state.basis, &state.mixture, modes, measure)?;
            let value = measure.then(|| e.value());
            (e, value)
        } else {
            // [HOFMANN alg. TEM] [SPEC 1.4] both factors of the asymmetric model
            let b = T::lit(state.power);
            let [basis, mixture] = [&state.basis, &state.mixture].map(|m| m.map(|x| x.powf(b)));
            let e = self.expect(&basis, &mixture, modes, false)?;
            (e, measure.then(|| self.likelihood(state)).transpose()?)
        };
        let order = [given.explained(), given.mode()];
        let counts = order.map(|mode| modes.contains(mode).then(|| e.take(mode)));
        Ok((counts, value))
    }

    /// The M-steps, and the support of the data restored where priors took it away.
    fn m_steps(&self, state: &mut PlsaState<T>, [basis, mixture]: Free<T>) -> Result<(), EmError> {
        let iteration = following(state.iteration);
        let (basis_prior, mixture_prior) = (&self.config.basis_prior, &self.config.mixture_prior);
        let mut emptied = [false; 2];
        if let Some(counts) = basis {
            // [LV eq. 10] [SPEC 2] W <- W ∘ (Q Gᵀ), columns normalised
            let prior = basis_prior.as_ref();
            emptied[0] = m_step("basis", prior, counts, &mut state.basis, iteration)?;
        }
        if let Some(counts) = mixture {
            // [LV eq. 10] [SPEC 2] G <- G ∘ (Wᵀ Q) / colsum(V), the normalised counts of every column
            let prior = mixture_prior.as_ref();
            emptied[1] = m_step("mixture", prior, counts, &mut state.mixture, iteration)?;
        }
        if emptied.contains(&true) && self.lost(state)? {
            let blocks = [&mut state.basis, &mut state.mixture];
            for (block, _) in blocks.into_iter().zip(emptied).filter(|(_, e)| *e) {
                let rows = block.nrows();
                restore(block.as_mut_slice(), rows);
            }
        }
        state.iteration = iteration;
        Ok(())
    }

    /// Whether a cell of the data has probability 0.
    pub(crate) fn lost(&self, state: &PlsaState<T>) -> Result<bool, EmError> {
        lost(state.with_model(self.config.given, |m| check_support(self.data, m)))
    }
}

impl<T: Real> Algorithm for PlsaEm<'_, T> {
    type State = PlsaState<T>;
    type Error = EmError;

    fn step(&self, state: &mut PlsaState<T>, measure: bool) -> Result<Option<f64>, EmError> {
        self.check(state)?;
        let ([basis, mixture], value) = self.e_step(state, measure)?;
        state.with_model(self.config.given, |m| check_measured(value, self.data, m))?;
        let value = value.map(|v| v + self.ln_prior(state));
        whole_or_not(state, self.config.has_priors(), |state| {
            self.m_steps(state, [basis, mixture])
        })?;
        Ok(value)
    }

    fn objective(&self, state: &PlsaState<T>) -> Result<f64, EmError> {
        Ok(self.ln_lik(state)? + self.ln_prior(state))
    }

    /// `max |θ_new - θ|` over one plain EM step, a probability; 0 exactly at a stationary point of the likelihood, or of `L_b`
    /// where steps are tempered. `None` with a prior.
    ///
    /// ```text
    /// W_new = W ∘ (Q Gᵀ) / n,   G_new = G ∘ (Wᵀ Q) / colsum(V),   Q = V / (W G)
    /// ```
    ///
    /// So it is `|G (g - 1)|` with the gradient `g = Wᵀ Q / colsum(V)`, and for `W` the change that its own normalisation leaves.
    /// `[SPEC 1.1]` `[SPEC 2]`
    fn residual(&self, state: &PlsaState<T>) -> Result<Option<f64>, EmError> {
        self.check(state)?;
        if self.config.has_priors() {
            return Ok(None);
        }
        let mut next = state.clone();
        self.step(&mut next, false)?;
        let moved = |a: &DMatrix<T>, b: &DMatrix<T>| {
            a.iter()
                .zip(b)
                .fold(0.0, |m, (a, b)| largest(m, (a.to_f64() - b.to_f64()).abs()))
        };
        Ok(Some(largest(
            moved(&next.basis, &state.basis),
            moved(&next.mixture, &state.mixture),
        )))
    }
}

impl<T: Real> Accelerate for PlsaEm<'_, T> {
    /// Refuses powers other than 1, and priors that still change or whose step no objective guards.
    fn accelerable(&self, state: &PlsaState<T>) -> Result<(), EmError> {
        check_untempered(state.power)?;
        let iteration = following(state.iteration);
        check_steady("basis", self.config.basis_prior.as_ref(), iteration)?;
        check_steady("mixture", self.config.mixture_prior.as_ref(), iteration)
    }

    fn pack(&self, state: &PlsaState<T>) -> Vec<f64> {
        pack([state.basis.as_slice(), state.mixture.as_slice()])
    }

    fn unpack(&self, template: &PlsaState<T>, flat: &[f64], fallback: &[f64]) -> PlsaState<T> {
        let mut state = template.clone();
        let mut values = Extrapolated::new(flat, fallback);
        values.take_columns(&mut state.basis, self.config.freeze_basis);
        values.take_columns(&mut state.mixture, self.config.freeze_mixture);
        state
    }
}
