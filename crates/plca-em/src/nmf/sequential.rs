//! The sequential form: `W`, then `H` from a fresh ratio.

use nalgebra::DMatrix;
use plca_tensor::{Factor, Observed, Real, Wanted, divide_columns, divide_rows};

use super::em::mass;
use super::{NmfEm, NmfState};
use crate::EmError;
use crate::init::{check_measured, check_read};

impl<T: Real, X: Observed<T> + ?Sized> NmfEm<'_, T, X> {
    pub(super) fn sequential(
        &self,
        state: &mut NmfState<T>,
        measure: bool,
    ) -> Result<Option<f64>, EmError> {
        let (value, before) = self.sweep(state, 0, self.config.freeze_w, measure)?;
        let swept = self.sweep(state, 1, self.config.freeze_h, false);
        if let (Err(_), Some(before)) = (&swept, before) {
            // Half an iteration is none.
            state.w = before;
        }
        swept.map(|_| value)
    }

    /// The update of one factor; the divergence before it if `measure`, and the factor before it.
    fn sweep(
        &self,
        state: &mut NmfState<T>,
        mode: usize,
        frozen: bool,
        measure: bool,
    ) -> Result<(Option<f64>, Option<DMatrix<T>>), EmError> {
        if frozen && !measure {
            return Ok((None, None));
        }
        let modes = [mode == 0, mode == 1];
        let wanted = Wanted {
            modes: &modes,
            ln_lik: measure,
        };
        let mut e = state.with_model(|m| self.data.expect(m, wanted));
        state.with_model(|m| check_measured(Some(e.ln_lik), self.data, m))?;
        let seen = if self.data.is_complete() {
            None
        } else {
            state.with_model(|m| self.data.exposure(m, &modes))[mode].take()
        };
        check_read(self.data)?;
        let value = measure.then(|| {
            let seen = seen.as_ref();
            let mass = seen.map_or_else(|| state.with_model(|m| m.mass()), mass);
            self.divergence(e.ln_lik, mass)
        });
        let Some(mut counts) = e.counts[mode].take().filter(|_| !frozen) else {
            return Ok((value, None));
        };
        let factor = if mode == 0 { &state.w } else { &state.h };
        match seen {
            // [SPEC 4] F <- F ∘ C / X; a wholly hidden row or column keeps its value
            Some(seen) => counts.zip_zip_apply(factor, &seen, |c, f, x| {
                *c = if x > T::zero() { f * (*c / x) } else { f }
            }),
            // [LS eq. 5] [LV eq. 1] [SPEC 3] from a fresh ratio, divided by the current sums of the partner
            None if mode == 0 => {
                divided_columns(
                    &mut counts,
                    &Factor::Rows(&state.h).component_sums(),
                    factor,
                );
            }
            None => divided_rows(
                &mut counts,
                &Factor::Columns(&state.w).component_sums(),
                factor,
            ),
        }
        let factor = if mode == 0 {
            &mut state.w
        } else {
            &mut state.h
        };
        Ok((value, Some(std::mem::replace(factor, counts))))
    }
}

/// `W` from its counts and the sums of its partner; a dead component, which has none, keeps its column. `[SPEC 0]`
pub(super) fn divided_columns<T: Real>(counts: &mut DMatrix<T>, sums: &[T], w: &DMatrix<T>) {
    divide_columns(counts, sums);
    for z in (0..sums.len()).filter(|&z| sums[z] <= T::zero()) {
        counts.set_column(z, &w.column(z));
    }
}

/// The same of `H`, whose components are rows.
pub(super) fn divided_rows<T: Real>(counts: &mut DMatrix<T>, sums: &[T], h: &DMatrix<T>) {
    divide_rows(counts, sums);
    for z in (0..sums.len()).filter(|&z| sums[z] <= T::zero()) {
        counts.set_row(z, &h.row(z));
    }
}
