//! Rounds of stepwise EM over shards.

use nalgebra::{DMatrix, DVector};
use plca_fit::shards::{Learner, Learns, Learnt, Round, Shared};
use plca_fit::{FitError, Parameters, Settings};
use plca_tensor::{Data, Real};

use super::{BatchStep, Explanation, Online, OnlineState, Streamed};
use crate::product::conflict;

/// A model that learns from shards in rounds.
#[derive(Debug)]
pub(crate) struct Rounds<'a, M>(pub(crate) &'a M);

/// The state of its rounds.
#[derive(Debug)]
struct Learning<M, T: Real> {
    learner: Online<M>,
    state: OnlineState<T>,
}

/// The state of a stream from the shared blocks: weights, where they are among them, and factors.
fn state_of<T: Real>(shared: &Parameters<T>, k: usize) -> Result<OnlineState<T>, FitError> {
    let mut factors = shared.matrices().to_vec();
    let even = DVector::from_element(k, T::one());
    let weights = match has_weights(shared) {
        true => DVector::from_column_slice(factors.remove(0).as_slice()),
        false => even,
    };
    OnlineState::new(weights, factors)
}

fn has_weights<T: Real>(shared: &Parameters<T>) -> bool {
    shared.block("weights").is_some()
}

impl<T: Real, M: Streamed<T> + Clone + 'static> Learns<T> for Rounds<'_, M> {
    fn learn(
        &self,
        shard: &dyn Data<T>,
        shared: &Shared<T>,
        round: Round,
        own: &mut [DMatrix<T>],
    ) -> Result<Option<Learnt>, FitError> {
        if shard.total() <= 0.0 {
            return Ok(None);
        }
        let learner = Online::new(self.0.clone());
        let at = shared.parameters();
        let state = state_of(at, learner.model.components())?;
        let specs = learner.shared_by(&state, shard)?;
        let turn = BatchStep {
            local: learner.local,
            batch: round.number as usize,
            by_means: false,
            interrupt: None,
        };
        let (factors, _) = learner.admit(&state, &specs, shard)?;
        let found = learner.model.explain(factors, shard, None, turn)?;
        let mass = mass(&found, shard);
        learner
            .model
            .keep(&found.state, mass / shared.survey().total, own);
        Ok(Some(Learnt {
            counts: found.counts.iter().map(|c| c.map(|x| x.to_f64())).collect(),
            mass,
        }))
    }

    fn begin(&self, shared: &Shared<T>) -> Result<Box<dyn Learner<T>>, FitError> {
        let learner = Online::new(self.0.clone()).total(shared.survey().total);
        learner.check()?;
        let state = state_of(shared.parameters(), learner.model.components())?;
        Ok(Box::new(Learning { learner, state }))
    }
}

impl<T: Real, M: Streamed<T>> Learner<T> for Learning<M, T> {
    fn renew(&mut self, learnt: Learnt, shared: &mut Parameters<T>) -> Result<(), FitError> {
        let counts = learnt.counts.into_iter().map(|c| c.map(T::lit));
        let counts: Vec<DMatrix<T>> = counts.collect();
        let shapes = |all: &[DMatrix<T>]| all.iter().map(DMatrix::shape).collect::<Vec<_>>();
        if shapes(&counts) != shapes(&self.state.factors)
            || learnt.mass.is_nan()
            || learnt.mass <= 0.0
        {
            return conflict("what a round has learnt belongs to another model or shape");
        }
        // As long as the streamed mode is not looked at.
        let factors = self.state.factors.clone();
        let along = self.learner.model.streamed(factors.len() + 1);
        let mut shape: Vec<usize> = factors.iter().map(DMatrix::nrows).collect();
        shape.insert(along, 1);
        let specs = self.learner.shared(&shape)?;
        let next = self
            .learner
            .absorbed(&self.state, &specs, factors, counts, learnt.mass)?;
        self.state = next.0;
        let weights = has_weights(shared);
        shared.change(|j, block| match j {
            0 if weights => block.copy_from_slice(self.state.weights.as_slice()),
            _ => block.copy_from(&self.state.factors[j - usize::from(weights)]),
        });
        Ok(())
    }

    fn complete(&self, shared: &mut Parameters<T>) {
        let weights = has_weights(shared);
        shared.change(|j, block| {
            if weights && j == 0 {
                let even = T::one() / T::lit(block.len() as f64);
                block.fill(even);
            }
        });
    }
}

/// The sum of a batch, hidden cells imputed: those are among the counts.
pub(super) fn mass<T: Real, S>(found: &Explanation<T, S>, batch: &dyn Data<T>) -> f64 {
    match found.counts.first() {
        Some(counts) if !batch.is_complete() => counts.iter().map(|c| c.to_f64()).sum(),
        _ => batch.total(),
    }
}
