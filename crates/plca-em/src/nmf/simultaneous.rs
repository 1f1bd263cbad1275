//! The simultaneous form: both factors from one ratio.

use plca_tensor::{Expected, Factor, Modes, Real, Request, Rule};

use super::sequential::{divided_columns, divided_rows};
use super::{NmfEm, NmfState};
use crate::EmError;
use crate::expectation::with_hidden;
use crate::init::check_measured;

impl<T: Real> NmfEm<'_, T> {
    pub(super) fn simultaneous(
        &self,
        state: &mut NmfState<T>,
        measure: bool,
    ) -> Result<Option<f64>, EmError> {
        let modes = self.config.free();
        let wanted = Request::counts(modes).value(measure);
        let mut e = state.with_model(|m| self.data.e_step(m, &wanted))?;
        let ln_lik = measure.then(|| e.value());
        state.with_model(|m| check_measured(ln_lik, self.data, m))?;
        let mut mass = None;
        if !self.data.is_complete() {
            let seen;
            (e, seen) = self.impute(state, e, modes)?;
            mass = Some(seen);
        }
        let value = ln_lik.map(|ln_lik| {
            let mass = mass.unwrap_or_else(|| state.with_model(|m| m.mass()));
            self.divergence(ln_lik, mass)
        });
        if modes.contains(1) {
            let mut h = e.take(1);
            // [SI eq. 79] [SPEC 3] H' = diag(1ᵀW)⁻¹ (H ∘ Wᵀ Q)
            divided_rows(
                &mut h,
                &Factor::Columns(&state.w).component_sums(),
                &state.h,
            );
            state.h = h;
        }
        if modes.contains(0) {
            let mut w = e.take(0);
            // [SI eq. 80] [SPEC 3] W' = (W ∘ Q Hᵀ) diag(H' 1)⁻¹, the new H'
            divided_columns(&mut w, &Factor::Rows(&state.h).component_sums(), &state.w);
            state.w = w;
        }
        Ok(value)
    }

    /// Adds the counts of hidden cells; returns the mass of `W H` over the observed ones.
    fn impute(
        &self,
        state: &NmfState<T>,
        e: Expected<T>,
        modes: Modes,
    ) -> Result<(Expected<T>, f64), EmError> {
        let exposure = Request::counts(modes.with(0))
            .value(true)
            .rule(Rule::Exposure);
        state.with_model(|model| {
            let seen = self.data.e_step(model, &exposure)?;
            // [SPEC 4] s = v_obs / Σ_obs P
            let s = T::lit(self.data.total() / seen.value());
            Ok((with_hidden(e, &seen, model, s, None), seen.value()))
        })
    }
}
