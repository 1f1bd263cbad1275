//! PLCA under acceleration.

use plca_fit::Accelerate;
use plca_tensor::Real;

use super::{PlcaEm, PlcaState};
use crate::EmError;
use crate::blocks::{Extrapolated, check_steady, check_untempered, following, pack};

impl<T: Real> Accelerate for PlcaEm<'_, T> {
    /// Refuses powers other than 1, and priors that still change or whose step no objective guards.
    fn accelerable(&self, state: &PlcaState<T>) -> Result<(), EmError> {
        check_untempered(state.power)?;
        let iteration = following(state.iteration);
        check_steady("weights", self.config.weights_prior.as_ref(), iteration)?;
        (0..state.factors.len()).try_for_each(|j| {
            check_steady(
                &format!("factor_{j}"),
                self.config.factor_prior(j),
                iteration,
            )
        })
    }

    /// `(P(z), F_1, F_2, …)`.
    fn pack(&self, state: &PlcaState<T>) -> Vec<f64> {
        let factors = state.factors.iter().map(|f| f.as_slice());
        pack(std::iter::once(state.weights.as_slice()).chain(factors))
    }

    fn unpack(&self, template: &PlcaState<T>, flat: &[f64], fallback: &[f64]) -> PlcaState<T> {
        let mut state = template.clone();
        let mut values = Extrapolated::new(flat, fallback);
        values.take_weights(&mut state.weights, self.config.freeze_weights);
        for (j, factor) in state.factors.iter_mut().enumerate() {
            values.take_columns(factor, self.config.frozen.contains(&j));
        }
        state
    }
}
