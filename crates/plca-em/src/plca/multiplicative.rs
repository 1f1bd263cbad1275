//! Masked multiplicative updates of PLCA.

use plca_tensor::{Modes, Real, Request, Rule, normalise_columns};

use super::{PlcaEm, PlcaState};
use crate::EmError;
use crate::init::check_measured;

impl<T: Real> PlcaEm<'_, T> {
    /// Masked multiplicative updates on `W = F_1`, `H = diag(P(z)) F_2^T`, mapped back.
    pub(super) fn multiplicative_step(
        &self,
        state: &mut PlcaState<T>,
        measure: bool,
    ) -> Result<Option<f64>, EmError> {
        let mut first = None;
        for mode in 0..2 {
            let measured = measure && mode == 0;
            let wanted = Request::counts(Modes::one(mode));
            let exposure = wanted.value(true).rule(Rule::Exposure);
            let (e, seen) = state.with_model(|model| {
                let e = self.data.e_step(model, &wanted.value(measured))?;
                check_measured(measured.then(|| e.value()), self.data, model)?;
                Ok::<_, EmError>((e, self.data.e_step(model, &exposure)?))
            })?;
            let (counts, mass) = (e.counts(mode), seen.value());
            let seen = seen.counts(mode);
            if measured {
                first = Some(e.value() - self.data.total() * mass.ln());
            }
            if self.config.frozen.contains(&mode) {
                continue;
            }
            // [SPEC 4] F <- F ∘ C / (s X), s = v_obs / Σ_obs P: the model keeps its scale, and so do rows that were not seen
            let s = T::lit(self.data.total() / mass);
            let old = state.factors[mode].clone();
            for ((f, &c), &x) in state.factors[mode].iter_mut().zip(counts).zip(seen) {
                if x > T::zero() {
                    *f *= c / s / x;
                }
            }
            let sums = normalise_columns(&mut state.factors[mode]);
            // A component that is left no counts keeps its factors; its weight is 0.
            for (z, _) in sums.iter().enumerate().filter(|&(_, &s)| s <= T::zero()) {
                state.factors[mode].set_column(z, &old.column(z));
            }
            state
                .weights
                .iter_mut()
                .zip(sums)
                .for_each(|(w, s)| *w *= s);
            let total = state.weights.sum();
            state.weights /= total;
        }
        Ok(first)
    }
}
