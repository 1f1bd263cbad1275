//! The simultaneous form: both factors from one ratio.

use plca_tensor::{Expected, Factor, Observed, Real, Wanted};

use super::em::mass;
use super::sequential::{divided_columns, divided_rows};
use super::{NmfEm, NmfState};
use crate::EmError;
use crate::expectation::add_hidden;
use crate::init::{check_measured, check_read};

impl<T: Real, X: Observed<T> + ?Sized> NmfEm<'_, T, X> {
    pub(super) fn simultaneous(
        &self,
        state: &mut NmfState<T>,
        measure: bool,
    ) -> Result<Option<f64>, EmError> {
        let modes = [!self.config.freeze_w, !self.config.freeze_h];
        let wanted = Wanted {
            modes: &modes,
            ln_lik: measure,
        };
        let mut e = state.with_model(|m| self.data.expect(m, wanted));
        state.with_model(|m| check_measured(Some(e.ln_lik), self.data, m))?;
        let seen = (!self.data.is_complete()).then(|| self.impute(state, &mut e, modes));
        check_read(self.data)?;
        let value = measure.then(|| {
            let mass = seen.unwrap_or_else(|| state.with_model(|m| m.mass()));
            self.divergence(e.ln_lik, mass)
        });
        let [w, h] = &mut e.counts[..] else {
            return Ok(value);
        };
        if let Some(mut h) = h.take() {
            // [SI eq. 79] [SPEC 3] H' = diag(1ᵀW)⁻¹ (H ∘ Wᵀ Q)
            divided_rows(
                &mut h,
                &Factor::Columns(&state.w).component_sums(),
                &state.h,
            );
            state.h = h;
        }
        if let Some(mut w) = w.take() {
            // [SI eq. 80] [SPEC 3] W' = (W ∘ Q Hᵀ) diag(H' 1)⁻¹, the new H'
            divided_columns(&mut w, &Factor::Rows(&state.h).component_sums(), &state.w);
            state.w = w;
        }
        Ok(value)
    }

    /// Adds the counts of hidden cells; returns the mass of `W H` over the observed ones.
    fn impute(&self, state: &NmfState<T>, e: &mut Expected<T>, modes: [bool; 2]) -> f64 {
        let seen = state.with_model(|m| self.data.exposure(m, &[true, modes[1]]));
        let mass = seen[0].as_ref().map_or(0.0, mass);
        // [SPEC 4] s = v_obs / Σ_obs P
        let s = T::lit(self.data.total() / mass);
        for (mode, counts) in e.counts.iter_mut().enumerate() {
            if let (Some(counts), Some(seen)) = (counts, &seen[mode]) {
                state.with_model(|m| add_hidden(counts, seen, m, mode, s));
            }
        }
        mass
    }
}
