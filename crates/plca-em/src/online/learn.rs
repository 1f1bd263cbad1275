//! What a block does to the state.

use nalgebra::DMatrix;
use plca_tensor::{Data, Factor, Real, check_counts, normalise_columns};

use super::{Learnt, Online, OnlineState, Rule, Streamed};
use crate::blocks::{check_prior, column, m_step};
use crate::fold_in::check_shape;
use crate::{EmError, Prior};

impl<T: Real, M: Streamed<T>> Online<M, T> {
    pub(super) fn learn(
        &self,
        state: &mut OnlineState<T>,
        block: &dyn Data<T>,
        start: Option<&M::State>,
    ) -> Result<Learnt<M::State>, EmError> {
        self.check(state, block)?;
        let t = state.blocks.saturating_add(1);
        let rule = Rule {
            local: self.local,
            block: t as usize,
        };
        let (factors, mut restored) = self.admit(state, block)?;
        let found = (self.model).explain(factors.clone(), block, start, rule)?;
        restored.extend(found.restored);
        let sum = |counts: &DMatrix<T>| counts.iter().map(|c| c.to_f64()).sum::<f64>();
        let block_mass = match found.counts.first() {
            // Hidden cells are among the counts.
            Some(counts) if !block.is_complete() => sum(counts),
            _ => block.total(),
        };
        let (seen, pass) = (state.seen + block_mass, state.pass + block_mass);
        let rho = self.step.rho(t, block_mass / seen);
        let mut statistics = found.counts;
        for (counts, s) in statistics.iter_mut().zip(&state.statistics) {
            blend(counts, s, rho, block_mass);
        }
        let mut next = OnlineState {
            weights: state.weights.clone(),
            factors,
            statistics,
            blocks: t,
            seen,
            pass,
            total: state.total.max(pass),
        };
        self.m_steps(&mut next, rule.block)?;
        // Statistics that are no shares, of a state from elsewhere, may have left the numbers.
        next.check()?;
        *state = next;
        Ok(Learnt {
            state: found.state,
            ln_lik: found.ln_lik,
            mass: block_mass,
            rho,
            iterations: found.iterations,
            restored,
        })
    }

    fn check(&self, state: &OnlineState<T>, block: &dyn Data<T>) -> Result<(), EmError> {
        state.check()?;
        let (k, got) = (self.model.components(), state.weights.len());
        if got != k {
            return Err(EmError::Shape {
                block: "weights".into(),
                got: (got, 1),
                expected: (k, 1),
            });
        }
        let along = self.model.streamed(state.factors.len() + 1);
        let mut learned: Vec<_> = state
            .factors
            .iter()
            .map(|f| Some(Factor::Columns(f)))
            .collect();
        learned.insert(along, None);
        check_shape(block.shape(), &learned)?;
        for (j, factor) in state.factors.iter().enumerate() {
            if let Some((name, prior)) = self.model.free(j) {
                check_prior(&name, prior, factor.shape())?;
            }
        }
        Ok(check_counts(block)?)
    }

    /// The factors, with a trace of what the block has and no component reaches; the names of those whose priors may be why.
    fn admit(
        &self,
        state: &OnlineState<T>,
        block: &dyn Data<T>,
    ) -> Result<(Vec<DMatrix<T>>, Vec<String>), EmError> {
        let (mut factors, mut restored) = (state.factors.clone(), Vec::new());
        let positive = |f: &DMatrix<T>| f.iter().all(|&x| x > T::zero());
        if factors.iter().all(positive) {
            return Ok((factors, restored));
        }
        let k = self.model.components();
        let along = self.model.streamed(factors.len() + 1);
        let mode = |j: usize| j + usize::from(j >= along);
        let free: Vec<bool> = (0..factors.len())
            .map(|j| self.model.free(j).is_some())
            .collect();
        // Rows of which some component gets a trace.
        let mut rows: Vec<Vec<bool>> = factors.iter().map(|f| vec![false; f.nrows()]).collect();
        let mut impossible = None;
        block.visit(&mut |index, value| {
            let reaches = |z: usize, j: usize| factors[j][(index[mode(j)], z)] > T::zero();
            if (0..k).any(|z| (0..factors.len()).all(|j| reaches(z, j))) {
                return;
            }
            if !(0..k).any(|z| (0..factors.len()).all(|j| free[j] || reaches(z, j))) {
                impossible.get_or_insert_with(|| (index.to_vec(), value));
            }
            for (j, rows) in rows.iter_mut().enumerate().filter(|&(j, _)| free[j]) {
                rows[index[mode(j)]] = true;
            }
        })?;
        if let Some((index, value)) = impossible {
            return Err(EmError::Impossible { index, value });
        }
        for (j, (factor, rows)) in factors.iter_mut().zip(&rows).enumerate() {
            if !rows.contains(&true) {
                continue;
            }
            let emptied =
                |(_, prior): &(_, Option<&Prior<T>>)| prior.is_some_and(|p| p.may_empty());
            restored.extend(self.model.free(j).filter(emptied).map(|(name, _)| name));
            for (i, _) in rows.iter().enumerate().filter(|&(_, &new)| new) {
                // [SPEC 13.3] [SPEC 8] a zero becomes 1e-12
                let zeros = factor.row_iter_mut().nth(i).into_iter();
                zeros.for_each(|mut row| row.iter_mut().for_each(|x| *x = (*x).max(T::lit(TRACE))));
            }
            normalise_columns(factor);
        }
        Ok((factors, restored))
    }

    /// The parameters that follow from the statistics.
    fn m_steps(&self, state: &mut OnlineState<T>, t: usize) -> Result<(), EmError> {
        let mass = T::lit(self.total.unwrap_or(state.total));
        let parts = state.factors.iter_mut().zip(&state.statistics).enumerate();
        for (j, (factor, joint)) in parts {
            if let Some((name, prior)) = self.model.free(j) {
                // [SPEC 13.1] F_j <- M-step of v s_j
                m_step(&name, prior, joint * mass, factor, t)?;
            }
        }
        let first = state.statistics.first();
        let sums = first
            .map(|s| Factor::Columns(s).component_sums())
            .unwrap_or_default();
        let n = DMatrix::from_vec(sums.len(), 1, sums);
        let mut weights = column(&state.weights);
        // [SPEC 13.1] P(z) <- Σ_x s[x, z]
        m_step("weights", None, n, &mut weights, t)?;
        state.weights.copy_from_slice(weights.as_slice());
        Ok(())
    }
}

/// What a component gets of something new.
const TRACE: f64 = 1e-12;

/// `(1 - ρ) s + ρ C / v` in the place of the counts `C`.
fn blend<T: Real>(counts: &mut DMatrix<T>, s: &DMatrix<T>, rho: f64, mass: f64) {
    let (old, new) = (T::lit(1.0 - rho), T::lit(rho / mass));
    // [SPEC 13.1] s <- (1 - rho) s + rho C_B / v_B
    counts.zip_apply(s, |c, s| *c = s * old + *c * new);
}
