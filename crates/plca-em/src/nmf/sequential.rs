//! The sequential form: `W`, then `H` from a fresh ratio.

use plca_tensor::{Factor, Observed, Real, Wanted, divide_columns, divide_rows};

use super::em::mass;
use super::{NmfEm, NmfState};

impl<T: Real, X: Observed<T> + ?Sized> NmfEm<'_, T, X> {
    pub(super) fn sequential(&self, state: &mut NmfState<T>, measure: bool) -> Option<f64> {
        let value = self.sweep(state, 0, self.config.freeze_w, measure);
        self.sweep(state, 1, self.config.freeze_h, false);
        value
    }

    /// The update of one factor; the divergence before it if `measure`.
    fn sweep(
        &self,
        state: &mut NmfState<T>,
        mode: usize,
        frozen: bool,
        measure: bool,
    ) -> Option<f64> {
        if frozen && !measure {
            return None;
        }
        let modes = [mode == 0, mode == 1];
        let wanted = Wanted {
            modes: &modes,
            ln_lik: measure,
        };
        let mut e = state.with_model(|m| self.data.expect(m, wanted));
        let seen = if self.data.is_complete() {
            None
        } else {
            state.with_model(|m| self.data.exposure(m, &modes))[mode].take()
        };
        let value = measure.then(|| {
            let seen = seen.as_ref();
            let mass = seen.map_or_else(|| state.with_model(|m| m.mass()), mass);
            self.divergence(e.ln_lik, mass)
        });
        let Some(mut counts) = e.counts[mode].take().filter(|_| !frozen) else {
            return value;
        };
        let factor = if mode == 0 { &state.w } else { &state.h };
        match seen {
            // [SPEC 4] F <- F ∘ C / X; a wholly hidden row or column keeps its value
            Some(seen) => counts.zip_zip_apply(factor, &seen, |c, f, x| {
                *c = if x > T::zero() { f * (*c / x) } else { f }
            }),
            // [LS eq. 5] [LV eq. 1] [SPEC 3] from a fresh ratio, divided by the current sums of the partner
            None if mode == 0 => {
                divide_columns(&mut counts, &Factor::Rows(&state.h).component_sums());
            }
            None => divide_rows(&mut counts, &Factor::Columns(&state.w).component_sums()),
        }
        if mode == 0 {
            state.w = counts;
        } else {
            state.h = counts;
        }
        value
    }
}
