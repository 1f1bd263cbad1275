//! EM for PLCA.

use nalgebra::DMatrix;
use plca_fit::Algorithm;
use plca_priors::Step;
use plca_tensor::{Data, Expected, Factor, Modes, Real};

use super::{Missing, Plca, PlcaState};
use crate::blocks::{
    Free, column, following, largest, lost, m_step, residual, restore, whole_or_not,
};
use crate::expectation::completed;
use crate::init::{check_measured, check_support};
use crate::{EmError, ParamError};

/// [`Plca`] bound to data: one EM iteration, its objective and its KKT residual.
///
/// ```
/// use plca_em::{before::Plca, Algorithm, PlcaInit};
/// use plca_tensor::{DenseTensor, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
/// let mut rng = ChaCha8Rng::seed_from_u64(0);
/// let plca = Plca::builder(2).build()?;
/// let mut state = plca.init(&v, &PlcaInit::default(), &mut rng)?;
/// let em = plca.on(&v)?;
/// for _ in 0..200 { em.step(&mut state, false)?; }
/// assert!(em.residual(&state)?.expect("PLCA has conditions") < 1e-6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct PlcaEm<'a, T: Real> {
    pub(crate) config: &'a Plca<T>,
    pub(crate) data: &'a dyn Data<T>,
}

impl<T: Real> PlcaEm<'_, T> {
    /// `Σ ln p(block)` over the blocks that have a prior, under those in force at the next iteration.
    pub(crate) fn ln_prior(&self, state: &PlcaState<T>) -> f64 {
        let step = Step::at(following(state.iteration));
        let weights = (self.config.weights_prior.as_ref())
            .map_or(0.0, |p| p.ln_density(&column(&state.weights), &step));
        (state.factors.iter().enumerate())
            .filter_map(|(j, f)| Some(self.config.factor_prior(j)?.ln_density(f, &step)))
            .fold(weights, |a, b| a + b)
    }

    pub(crate) fn check(&self, state: &PlcaState<T>) -> Result<(), EmError> {
        state.check_blocks(self.data.shape(), self.config.components)
    }

    /// Log-likelihood of the observed data, without priors and untempered. One pass without counts.
    ///
    /// # Errors
    ///
    /// As [`PlcaState::check`], or data that could not be read.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{before::Plca, Algorithm, PlcaInit};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
    /// let mut rng = ChaCha8Rng::seed_from_u64(0);
    /// let plca = Plca::builder(2).build()?;
    /// let mut state = plca.init(&v, &PlcaInit::default(), &mut rng)?;
    /// let em = plca.on(&v)?;
    /// assert_eq!(em.ln_lik(&state)?, em.objective(&state)?);           // there is no prior
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn ln_lik(&self, state: &PlcaState<T>) -> Result<f64, EmError> {
        self.check(state)?;
        state.check_sums()?;
        self.likelihood(state)
    }

    /// Log-likelihood of a state that was checked.
    fn likelihood(&self, state: &PlcaState<T>) -> Result<f64, EmError> {
        let e = state.with_model(|model| completed(self.data, model, Modes::NONE, true))?;
        Ok(e.value())
    }

    /// The modes whose counts a step needs: those of free factors, or any for the weights.
    fn wanted(&self, state: &PlcaState<T>) -> Modes {
        let factors = 0..state.factors.len();
        let modes: Modes = factors
            .filter(|j| !self.config.frozen.contains(j))
            .collect();
        if modes.is_empty() && !self.config.freeze_weights {
            return Modes::one(0);
        }
        modes
    }

    /// The E-step: expected counts of every wanted mode, and the objective's data term if `measure`.
    pub(crate) fn e_step(
        &self,
        state: &PlcaState<T>,
        modes: Modes,
        measure: bool,
    ) -> Result<(Expected<T>, Option<f64>), EmError> {
        if state.power == 1.0 {
            let e = state.with_model(|model| completed(self.data, model, modes, measure))?;
            let value = measure.then(|| e.value());
            return Ok((e, value));
        }
        // [SPEC 1.4] the ordinary step on (P(z)^s, F^b); neither is normalised and that does not matter
        let b = T::lit(state.power);
        let tempered = PlcaState {
            weights: if self.config.temper_prior {
                state.weights.map(|w| w.powf(b))
            } else {
                state.weights.clone()
            },
            factors: state.factors.iter().map(|f| f.map(|x| x.powf(b))).collect(),
            power: 1.0,
            iteration: state.iteration,
        };
        let e = tempered.with_model(|model| completed(self.data, model, modes, false))?;
        let value = measure.then(|| self.likelihood(state)).transpose()?;
        Ok((e, value))
    }

    /// The M-step of the weights; whether their prior emptied one.
    fn weights_step(
        &self,
        state: &mut PlcaState<T>,
        counts: &Expected<T>,
        iteration: usize,
    ) -> Result<bool, EmError> {
        let first = (0..state.factors.len()).find_map(|j| counts.get(j));
        let (false, Some(first)) = (self.config.freeze_weights, first) else {
            return Ok(false);
        };
        // [SI eq. 3] [SI eq. 39] [LV eq. 13] [SPEC 1.1] [SPEC 1.2] P(z) <- n / Σ n
        let n = DMatrix::from_vec(first.ncols(), 1, Factor::Columns(first).component_sums());
        let mut weights = column(&state.weights);
        let prior = self.config.weights_prior.as_ref();
        let emptied = m_step("weights", prior, n, &mut weights, iteration)?;
        state.weights.copy_from_slice(weights.as_slice());
        Ok(emptied)
    }

    /// The M-steps of the factors; those that their priors emptied of something.
    fn factor_steps(
        &self,
        state: &mut PlcaState<T>,
        mut counts: Expected<T>,
        iteration: usize,
    ) -> Result<Vec<usize>, EmError> {
        let mut emptied = Vec::new();
        for j in (0..state.factors.len()).filter(|j| !self.config.frozen.contains(j)) {
            let counts = counts.take(j);
            let block = format!("factor_{j}");
            let prior = self.config.factor_prior(j);
            if m_step(&block, prior, counts, &mut state.factors[j], iteration)? {
                emptied.push(j);
            }
        }
        Ok(emptied)
    }

    /// All M-steps, and the support of the data restored where priors took it away.
    fn m_steps(&self, state: &mut PlcaState<T>, counts: Expected<T>) -> Result<(), EmError> {
        let iteration = following(state.iteration);
        let emptied_weights = self.weights_step(state, &counts, iteration)?;
        let emptied = self.factor_steps(state, counts, iteration)?;
        let support = || state.with_model(|model| check_support(self.data, model));
        if (emptied_weights || !emptied.is_empty()) && lost(support())? {
            if emptied_weights {
                restore(state.weights.as_mut_slice(), self.config.components);
            }
            for j in emptied {
                let rows = state.factors[j].nrows();
                restore(state.factors[j].as_mut_slice(), rows);
            }
        }
        state.iteration = iteration;
        Ok(())
    }
}

impl<T: Real> Algorithm for PlcaEm<'_, T> {
    type State = PlcaState<T>;
    type Error = EmError;

    fn step(&self, state: &mut PlcaState<T>, measure: bool) -> Result<Option<f64>, EmError> {
        self.check(state)?;
        let iteration = following(state.iteration);
        if self.config.missing == Missing::Multiplicative && !self.data.is_complete() {
            if state.power != 1.0 {
                let what = "multiplicative updates do not go with tempering";
                return Err(ParamError::Conflict(what).into());
            }
            let value = whole_or_not(state, true, |state| {
                self.multiplicative_step(state, measure)
            })?;
            state.iteration = iteration;
            return Ok(value);
        }
        let ln_prior = if measure { self.ln_prior(state) } else { 0.0 };
        let (counts, value) = self.e_step(state, self.wanted(state), measure)?;
        state.with_model(|model| check_measured(value, self.data, model))?;
        whole_or_not(state, self.config.has_priors(), |state| {
            self.m_steps(state, counts)
        })?;
        Ok(value.map(|v| v + ln_prior))
    }

    fn objective(&self, state: &PlcaState<T>) -> Result<f64, EmError> {
        Ok(self.ln_lik(state)? + self.ln_prior(state))
    }

    /// The largest of these over the free blocks and live components; 0 exactly at a stationary point of the likelihood, or of
    /// `L_b` where steps are tempered. A probability. `None` with a prior.
    ///
    /// ```text
    /// |n / v - P(z)|,   |F_j (g_j - 1)| = |C_j / (v P(z)) - F_j|,   |C_j / n - F_j| where the weights are frozen
    /// g_j[i,z] = (1/v) Σ_{x: x_j = i} Q[x] Π_{m≠j} F_m[x_m,z],   Q = V / P,   C_j = v P(z) F_j g_j,   n = Σ_i C_j
    /// ```
    ///
    /// `g_j = 1` where `F_j > 0` is what they measure; that `g_j <= 1` where `F_j = 0` they do not see: EM keeps zeros. Hidden
    /// cells are imputed, with `v` the mass of the completed data. `[SPEC 1.1]`
    fn residual(&self, state: &PlcaState<T>) -> Result<Option<f64>, EmError> {
        self.check(state)?;
        if self.config.has_priors() {
            return Ok(None);
        }
        let (counts, _) = self.e_step(state, self.wanted(state), false)?;
        let blocks = state.factors.iter().enumerate();
        let of_block = |(j, factor): (usize, &DMatrix<T>)| {
            let free = Free {
                weights: !self.config.freeze_weights,
                block: !self.config.frozen.contains(&j),
            };
            Some(residual(counts.get(j)?, factor, &state.weights, free))
        };
        Ok(Some(blocks.filter_map(of_block).fold(0.0, largest)))
    }
}
