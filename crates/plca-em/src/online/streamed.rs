//! What online learning asks of a model, and the models that answer.

use std::fmt::Debug;

use std::sync::Arc;

use nalgebra::{DMatrix, DVector};
use plca_fit::Algorithm;
use plca_priors::{PriorError, PriorRules, SimplexPrior, Step};
use plca_tensor::{Data, Modes, Real};

use super::Local;
use super::state::name;
use crate::blocks::{column, m_step, restore};
use crate::init::{check_block, check_measured, check_support, check_weights};
use crate::{EmError, Missing, ParamError, Plca, PlcaState, Plsa, PlsaState, Prior};

/// A model of which one mode may come in blocks: what belongs to the indices of that mode is found block by block, and all else is
/// learnt from the counts.
///
/// ```
/// use plca_em::{Plca, Streamed};
/// let plca = Plca::<f64>::builder(2).build()?;
/// assert_eq!(Streamed::streamed(&plca, 3), 2);                        // the last mode
/// # Ok::<(), plca_em::ParamError>(())
/// ```
pub trait Streamed<T: Real>: Debug + sealed::Sealed {
    /// The model of one block.
    type State: Clone + Debug;

    /// Refuses settings that tie the blocks of a stream together.
    ///
    /// # Errors
    ///
    /// [`ParamError::Conflict`].
    fn check(&self) -> Result<(), ParamError>;

    /// Number of components `K`.
    fn components(&self) -> usize;

    /// The mode that is streamed, of data of this order.
    fn streamed(&self, order: usize) -> usize;

    /// Name of the `j`-th of the other factors, and its prior; `None` where it stays as it is.
    #[doc(hidden)]
    fn free(&self, j: usize) -> Option<(String, Option<&Prior<T>>)>;

    /// Finds what belongs to the block under these factors, and counts.
    #[doc(hidden)]
    fn explain(
        &self,
        factors: Vec<DMatrix<T>>,
        block: &dyn Data<T>,
        start: Option<&Self::State>,
        how: Rule,
    ) -> Result<Explanation<T, Self::State>, EmError>;
}

mod sealed {
    pub trait Sealed {}
    impl<T: plca_tensor::Real> Sealed for crate::Plsa<T> {}
    impl<T: plca_tensor::Real> Sealed for crate::Plca<T> {}
}

/// When a block counts as explained, and which block it is, from 1.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    pub(super) local: Local,
    pub(super) block: usize,
}

/// A block explained.
#[doc(hidden)]
#[derive(Debug)]
pub struct Explanation<T: Real, S> {
    /// Expected counts of the factors that are not streamed.
    pub(super) counts: Vec<DMatrix<T>>,
    pub(super) state: S,
    pub(super) ln_lik: f64,
    pub(super) iterations: usize,
    /// The block's own part whose prior had emptied it.
    pub(super) restored: Option<String>,
}

/// Iterates what belongs to the block until few of its counts change their component; `joint` is `P(z, y)` up to rounding.
fn settle<A: Algorithm<Error = EmError>>(
    em: &A,
    state: &mut A::State,
    local: Local,
    joint: impl Fn(&A::State) -> Vec<f64>,
) -> Result<usize, EmError> {
    let mut iterations = 1;
    while iterations < local.max_iter {
        let before = joint(state);
        em.step(state, false)?;
        iterations += 1;
        // [SPEC 13.1] Σ |P_new(z, y) - P(z, y)| / 2, the share of the counts that changed its component
        let moved: f64 = (joint(state).iter().zip(&before))
            .map(|(a, b)| (a - b).abs())
            .sum();
        if moved <= 2.0 * local.tol {
            break;
        }
    }
    Ok(iterations)
}

/// The counts of a pass that asked for all.
fn wanted<T: Real>(counts: Option<DMatrix<T>>) -> DMatrix<T> {
    counts.unwrap_or_else(|| DMatrix::zeros(0, 0))
}

/// A prior as it is in force at a batch, whatever the iteration within it.
#[derive(Debug)]
struct OfBatch<T: Real> {
    prior: Prior<T>,
    batch: usize,
}

impl<T: Real> PriorRules for OfBatch<T> {
    fn check(&self, shape: (usize, usize)) -> Result<(), PriorError> {
        self.prior.check(shape)
    }

    fn may_empty(&self) -> bool {
        self.prior.may_empty()
    }

    fn steady(&self, _: usize) -> bool {
        self.prior.steady(self.batch)
    }

    fn pseudo_counts(&self, shape: (usize, usize)) -> Option<DMatrix<f64>> {
        self.prior.pseudo_counts(shape)
    }
}

impl<T: Real> SimplexPrior<T> for OfBatch<T> {
    fn update(
        &self,
        counts: &DMatrix<T>,
        theta: &mut DMatrix<T>,
        step: &Step<'_>,
    ) -> Result<(), PriorError> {
        let step = Step::at(self.batch).frozen(step.frozen);
        self.prior.update(counts, theta, &step)
    }

    fn ln_density(&self, theta: &DMatrix<T>, _: &Step<'_>) -> f64 {
        self.prior.ln_density(theta, &Step::at(self.batch))
    }
}

impl<T: Real> Streamed<T> for Plsa<T> {
    type State = PlsaState<T>;

    fn check(&self) -> Result<(), ParamError> {
        if self.freeze_basis {
            let what = "there is nothing to learn from a stream under a frozen basis: use fold_in";
            return Err(ParamError::Conflict(what));
        }
        if self.freeze_mixture {
            let what = "the mixtures of a stream belong to its blocks: they cannot be frozen";
            return Err(ParamError::Conflict(what));
        }
        Ok(())
    }

    fn components(&self) -> usize {
        self.components
    }

    fn streamed(&self, _: usize) -> usize {
        self.given.mode()
    }

    fn free(&self, _: usize) -> Option<(String, Option<&Prior<T>>)> {
        Some(("basis".into(), self.basis_prior.as_ref()))
    }

    fn explain(
        &self,
        mut factors: Vec<DMatrix<T>>,
        block: &dyn Data<T>,
        start: Option<&PlsaState<T>>,
        Rule { local, block: t }: Rule,
    ) -> Result<Explanation<T, PlsaState<T>>, EmError> {
        let (k, n) = (self.components, block.shape()[self.given.mode()]);
        let mixture = match start {
            Some(start) => {
                check_block("mixture", &start.mixture, (k, n))?;
                start.mixture.clone()
            }
            None => DMatrix::from_element(k, n, T::one() / T::lit(k as f64)),
        };
        let mut state = PlsaState {
            basis: factors.swap_remove(0),
            mixture,
            power: self.temper,
            iteration: t - 1,
        };
        state.with_model(self.given, |m| check_support(block, m))?;
        // Schedules of priors go by blocks.
        let prior = self.mixture_prior.clone();
        let of_block = |prior: Prior<T>| Arc::new(OfBatch { prior, batch: t }) as _;
        let fixed = Self {
            freeze_basis: true,
            basis_prior: None,
            mixture_prior: prior.clone().map(of_block),
            ..self.clone()
        };
        let sums = block.marginal(self.given.mode())?;
        let total: f64 = sums.iter().sum();
        let joint = |state: &PlsaState<T>| {
            let columns = state.mixture.column_iter().zip(&sums);
            let share = |(column, v): (nalgebra::DVectorView<'_, T>, &f64)| {
                column.iter().map(|g| g.to_f64() * v / total).collect()
            };
            columns.map(share).collect::<Vec<Vec<f64>>>().concat()
        };
        let iterations = settle(&fixed.on(block)?, &mut state, local, joint)?;
        let em = self.on(block)?;
        let ([basis, mixture], ln_lik) = em.e_step(&state, true)?;
        state.with_model(self.given, |m| check_measured(ln_lik, block, m))?;
        let own = &mut state.mixture;
        let emptied = m_step("mixture", prior.as_ref(), wanted(mixture), own, t)?;
        let lost = emptied && em.lost(&state)?;
        if lost {
            restore(state.mixture.as_mut_slice(), k);
        }
        state.iteration = t;
        Ok(Explanation {
            counts: vec![wanted(basis)],
            state,
            ln_lik: ln_lik.unwrap_or(f64::NAN),
            iterations,
            restored: lost.then(|| "mixture".into()),
        })
    }
}

impl<T: Real> Streamed<T> for Plca<T> {
    type State = PlcaState<T>;

    fn check(&self) -> Result<(), ParamError> {
        if self.freeze_weights || self.weights_prior.is_some() {
            let what =
                "P(z) of a stream follows from its blocks: it takes neither prior nor freezing";
            return Err(ParamError::Conflict(what));
        }
        if self.missing == Missing::Multiplicative {
            let what =
                "multiplicative treatment of missing cells has no counts to learn online from";
            return Err(ParamError::Conflict(what));
        }
        Ok(())
    }

    fn components(&self) -> usize {
        Plca::components(self)
    }

    fn streamed(&self, order: usize) -> usize {
        order.saturating_sub(1)
    }

    fn free(&self, j: usize) -> Option<(String, Option<&Prior<T>>)> {
        let frozen = self.frozen.contains(&j);
        (!frozen).then(|| (name(j), self.factor_prior(j)))
    }

    fn explain(
        &self,
        mut factors: Vec<DMatrix<T>>,
        block: &dyn Data<T>,
        start: Option<&PlcaState<T>>,
        Rule { local, block: t }: Rule,
    ) -> Result<Explanation<T, PlcaState<T>>, EmError> {
        let (k, along) = (Plca::components(self), block.shape().len() - 1);
        let n = block.shape()[along];
        if self.frozen.contains(&along) || self.factor_prior(along).is_some() {
            let what = "the factor of the streamed mode belongs to the blocks: it takes neither prior nor freezing";
            return Err(ParamError::Conflict(what).into());
        }
        let even = |rows: usize| T::one() / T::lit(rows as f64);
        let (weights, last) = match start {
            Some(start) => {
                check_weights(&start.weights, k)?;
                let last = start.factors.last().cloned();
                let last = last.unwrap_or_else(|| DMatrix::zeros(0, 0));
                check_block(&name(along), &last, (n, k))?;
                (start.weights.clone(), last)
            }
            None => (
                DVector::from_element(k, even(k)),
                DMatrix::from_element(n, k, even(n)),
            ),
        };
        factors.push(last);
        let mut state = PlcaState {
            weights,
            factors,
            power: self.temper,
            iteration: t - 1,
        };
        state.with_model(|m| check_support(block, m))?;
        let mut fixed = self.clone();
        fixed.frozen = (0..along).collect();
        let joint = |state: &PlcaState<T>| {
            let columns = state.factors[along].column_iter().zip(&state.weights);
            let share = |(column, w): (nalgebra::DVectorView<'_, T>, &T)| {
                column.iter().map(|h| h.to_f64() * w.to_f64()).collect()
            };
            columns.map(share).collect::<Vec<Vec<f64>>>().concat()
        };
        let iterations = settle(&fixed.on(block)?, &mut state, local, joint)?;
        let em = self.on(block)?;
        let (mut counts, ln_lik) = em.e_step(&state, Modes::all(along + 1), true)?;
        state.with_model(|m| check_measured(ln_lik, block, m))?;
        let own = counts.take(along);
        let n = DMatrix::from_iterator(k, 1, own.column_iter().map(|c| c.sum()));
        let mut weights = column(&state.weights);
        m_step("weights", None, n, &mut weights, t)?;
        state.weights.copy_from_slice(weights.as_slice());
        m_step(&name(along), None, own, &mut state.factors[along], t)?;
        state.iteration = t;
        Ok(Explanation {
            counts: (0..along).map(|j| counts.take(j)).collect(),
            state,
            ln_lik: ln_lik.unwrap_or(f64::NAN),
            iterations,
            restored: None,
        })
    }
}
