//! What a batch does to the state.

use nalgebra::DMatrix;
use plca_fit::{
    FitError, Settings,
    blocks::{Axis, BlockSpec, Frozen},
    explain::check_shape,
};
use plca_tensor::{Data, Factor, Real, check_counts, normalise_columns};

use super::{After, Batch, BatchStep, Explanation, Online, OnlineState, Streamed};
use crate::blocks::is_free;
use crate::product::conflict;

impl<M> Online<M> {
    pub(super) fn learn<T: Real>(
        &self,
        state: &mut OnlineState<T>,
        batch: &dyn Data<T>,
        start: Option<&M::State>,
    ) -> Result<Batch<M::State>, FitError>
    where
        M: Streamed<T>,
    {
        let shared = self.shared_by(state, batch)?;
        let t = state.batches.saturating_add(1);
        let rule = BatchStep {
            local: self.local,
            batch: t as usize,
            // [EXT 3] as the start of a fit of all data
            by_means: self.drawn && state.seen < self.early(),
            interrupt: self.interrupt.as_ref(),
        };
        let (factors, mut restored) = self.admit(state, &shared, batch)?;
        let found = (self.model).explain(factors.clone(), batch, start, rule)?;
        let mass = mass(&found, batch);
        restored.extend(found.restored);
        let amount = self.model.amount(batch, mass);
        let (next, rho) = self.absorbed(state, &shared, factors, found.counts, amount)?;
        *state = next;
        Ok(Batch {
            state: found.state,
            ln_lik: found.ln_lik,
            mass,
            rho,
            iterations: found.iterations,
            restored,
        })
    }

    /// The amount that is learnt from by EM after a start that is drawn.
    fn early(&self) -> f64
    where
        M: Settings,
    {
        let [documents, passes] = EARLY;
        let most = documents * self.model.components() as f64;
        self.total.map_or(most, |total| most.min(passes * total))
    }

    /// The state after a batch of these counts and this amount, which met these factors, and its weight.
    fn absorbed<T: Real>(
        &self,
        state: &OnlineState<T>,
        shared: &[BlockSpec<T>],
        factors: Vec<DMatrix<T>>,
        counts: Vec<DMatrix<T>>,
        amount: f64,
    ) -> Result<(OnlineState<T>, f64), FitError>
    where
        M: Streamed<T>,
    {
        let t = state.batches.saturating_add(1);
        let (seen, pass) = (state.seen + amount, state.pass + amount);
        let rho = self.step.rho(t, amount / seen);
        let mut statistics = counts;
        for (counts, s) in statistics.iter_mut().zip(&state.statistics) {
            blend(counts, s, rho, amount);
        }
        let mut next = OnlineState {
            weights: state.weights.clone(),
            factors,
            statistics,
            batches: t,
            seen,
            pass,
            total: state.total.max(pass),
        };
        self.m_steps(state, &mut next, shared, rho)?;
        // Statistics that are no shares, of a state from elsewhere, may have left the numbers.
        next.check()?;
        Ok((next, rho))
    }

    /// The shared blocks, for which state and batch must be made.
    fn shared_by<T: Real>(
        &self,
        state: &OnlineState<T>,
        batch: &dyn Data<T>,
    ) -> Result<Vec<BlockSpec<T>>, FitError>
    where
        M: Streamed<T>,
    {
        self.check()?;
        state.check()?;
        let (k, got) = (self.model.components(), state.weights.len());
        if got != k {
            return Err(FitError::Shape {
                block: "weights".into(),
                got: (got, 1),
                expected: (k, 1),
            });
        }
        let along = self.model.streamed(state.factors.len() + 1);
        let factors = state.factors.iter();
        let mut learnt: Vec<_> = factors.map(|f| Some(Factor::Columns(f))).collect();
        learnt.insert(along, None);
        check_shape(batch.shape(), &learnt)?;
        check_counts(batch)?;
        self.shared(batch.shape())
    }

    /// The shared blocks for batches of this shape.
    pub(super) fn shared<T: Real>(&self, shape: &[usize]) -> Result<Vec<BlockSpec<T>>, FitError>
    where
        M: Streamed<T>,
    {
        let specs = self.model.specs(shape)?.into_iter();
        let is_local = |spec: &BlockSpec<T>| self.model.is_local(spec.axes, shape.len());
        let (own, shared): (Vec<_>, Vec<_>) = specs.partition(is_local);
        // That of PLSA's marginal is its own.
        let from_data = |spec: &BlockSpec<T>| matches!(spec.axes.components(), Axis::None);
        let frozen = |spec: &&BlockSpec<T>| spec.frozen != Frozen::No && !from_data(spec);
        match own.iter().find(frozen) {
            Some(BlockSpec { name, .. }) => conflict(format!(
                "`{name}` belongs to the batches: it cannot be frozen"
            )),
            None => Ok(shared),
        }
    }

    /// The factors, with a trace of what the batch has and no component reaches; the names of those whose priors may be why.
    fn admit<T: Real>(
        &self,
        state: &OnlineState<T>,
        shared: &[BlockSpec<T>],
        batch: &dyn Data<T>,
    ) -> Result<(Vec<DMatrix<T>>, Vec<String>), FitError>
    where
        M: Streamed<T>,
    {
        let (mut factors, mut restored) = (state.factors.clone(), Vec::new());
        let positive = |f: &DMatrix<T>| f.iter().all(|&x| x > T::zero());
        if factors.iter().all(positive) {
            return Ok((factors, restored));
        }
        let k = self.model.components();
        let along = self.model.streamed(factors.len() + 1);
        let mode = |j: usize| j + usize::from(j >= along);
        let free: Vec<bool> = shared.iter().map(is_free).collect();
        // Rows of which some component gets a trace.
        let mut rows: Vec<Vec<bool>> = factors.iter().map(|f| vec![false; f.nrows()]).collect();
        let mut impossible = None;
        batch.visit(&mut |index, value| {
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
            return Err(FitError::Impossible { index, value });
        }
        for (j, (factor, rows)) in factors.iter_mut().zip(&rows).enumerate() {
            if !rows.contains(&true) {
                continue;
            }
            let spec = &shared[j];
            let prior = spec.prior.as_ref();
            if prior.is_some_and(|prior| prior.rules().may_empty()) {
                restored.push(spec.name.to_string());
            }
            for (i, _) in rows.iter().enumerate().filter(|&(_, &new)| new) {
                // [SPEC 13.3] [SPEC 8] a zero becomes 1e-12
                let zeros = factor.row_iter_mut().nth(i).into_iter();
                zeros.for_each(|mut row| row.iter_mut().for_each(|x| *x = (*x).max(T::lit(TRACE))));
            }
            normalise_columns(factor);
        }
        Ok((factors, restored))
    }

    /// The parameters that follow from the statistics, after a batch of this weight.
    fn m_steps<T: Real>(
        &self,
        before: &OnlineState<T>,
        state: &mut OnlineState<T>,
        shared: &[BlockSpec<T>],
        rho: f64,
    ) -> Result<(), FitError>
    where
        M: Streamed<T>,
    {
        let amounts = [before.total, state.total].map(|total| self.total.unwrap_or(total));
        let parts = state.factors.iter_mut().zip(&before.statistics);
        let parts = parts.zip(&state.statistics).zip(shared);
        for (((factor, then), now), spec) in parts.filter(|(_, spec)| is_free(spec)) {
            let after = After {
                block: factor,
                statistics: [then, now],
                amounts,
                rho,
            };
            *factor = (self.model).renewed(spec, after, state.batches as usize)?;
        }
        let Some(first) = state.statistics.first() else {
            return Ok(());
        };
        let mut weights = state.weights.clone();
        weights.copy_from_slice(&Factor::Columns(first).component_sums());
        // [SPEC 13.1] P(z) <- Σ_x s[x, z]
        let sum = weights.sum();
        if sum > T::zero() {
            state.weights = weights / sum;
        }
        Ok(())
    }
}

/// Documents for every component, and passes, that are learnt from by EM after a start that is drawn. Of 1797 newspaper articles, five times in batches of 256, this
/// makes the coherence of topics that of a fit of all at once, with 20 topics and with 50; with half a pass the difference is half of what it is without.
const EARLY: [f64; 2] = [200.0, 2.0];

/// What a component gets of something new.
const TRACE: f64 = 1e-12;

/// `(1 - ρ) s + ρ C / v` in the place of the counts `C`.
fn blend<T: Real>(counts: &mut DMatrix<T>, s: &DMatrix<T>, rho: f64, amount: f64) {
    let (old, new) = (T::lit(1.0 - rho), T::lit(rho / amount));
    // [SPEC 13.1] s <- (1 - rho) s + rho C_B / v_B
    counts.zip_apply(s, |c, s| *c = s * old + *c * new);
}

/// The sum of a batch, hidden cells imputed: those are among the counts.
fn mass<T: Real, S>(found: &Explanation<T, S>, batch: &dyn Data<T>) -> f64 {
    match found.counts.first() {
        Some(counts) if !batch.is_complete() => counts.iter().map(|c| c.to_f64()).sum(),
        _ => batch.total(),
    }
}
