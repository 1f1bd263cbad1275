//! Iterations of shifted models, plain and accelerated.

use plca_fit::{Accelerate, Algorithm};
use plca_tensor::Real;

use super::settings::{pack, restore_blocks};
use super::{ShiftedEm, ShiftedState};
use crate::EmError;
use crate::blocks::following;

impl<T: Real> Algorithm for ShiftedEm<'_, T> {
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

impl<T: Real> Accelerate for ShiftedEm<'_, T> {
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
