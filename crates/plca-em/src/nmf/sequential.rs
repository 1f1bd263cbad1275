//! The sequential form: `W`, then `H` from a fresh ratio.

use nalgebra::DMatrix;
use plca_tensor::{Factor, Modes, Real, Request, Rule, divide_columns, divide_rows};

use super::{NmfEm, NmfState};
use crate::EmError;
use crate::init::check_measured;

impl<T: Real> NmfEm<'_, T> {
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
        let wanted = Request::counts(Modes::one(mode)).value(measure);
        let mut e = state.with_model(|m| self.data.e_step(m, &wanted))?;
        let ln_lik = measure.then(|| e.value());
        state.with_model(|m| check_measured(ln_lik, self.data, m))?;
        let seen = match self.data.is_complete() {
            true => None,
            false => {
                let exposure = wanted.value(true).rule(Rule::Exposure);
                Some(state.with_model(|m| self.data.e_step(m, &exposure))?)
            }
        };
        let value = ln_lik.map(|ln_lik| {
            let seen = seen.as_ref();
            let mass = seen.map_or_else(|| state.with_model(|m| m.mass()), |seen| seen.value());
            self.divergence(ln_lik, mass)
        });
        if frozen {
            return Ok((value, None));
        }
        let mut counts = e.take(mode);
        let factor = if mode == 0 { &state.w } else { &state.h };
        match seen {
            // [SPEC 4] F <- F ∘ C / X; a wholly hidden row or column keeps its value
            Some(seen) => counts.zip_zip_apply(factor, seen.counts(mode), |c, f, x| {
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
