//! Masked multiplicative updates.

use plca_fit::{
    Factored, FitError, Parameters,
    em::{Expectation, Stepped},
};
use plca_tensor::{Modes, Real, Request, Rule, normalise_columns};

use super::PlcaState;
use super::counts::PlcaCounts;
use crate::blocks::is_free;
use crate::product::check_measured;
use crate::sequential::Sweep;

/// Masked multiplicative updates of a matrix: on `W = F_1`, `H = diag(P(z)) F_2ᵀ`, one after the other, mapped back.
impl<T: Real> Sweep<T> for PlcaCounts<'_, T> {
    fn sweep(&self, at: &mut Parameters<T>, measure: bool) -> Result<Stepped, FitError> {
        let mut value = None;
        for mode in 0..2 {
            let measured = measure && mode == 0;
            let unit = self.count_unit();
            let wanted = Request::counts(Modes::one(mode)).count_unit(unit);
            let exposure = wanted.value(true).rule(Rule::Exposure);
            let (e, seen) = PlcaState::with_model_at(at, |cp| {
                let e = self.data.e_step(cp, &wanted.value(measured))?;
                check_measured(measured.then(|| e.value()), self.data, cp)?;
                Ok::<_, FitError>((e, self.data.e_step(cp, &exposure)?))
            })?;
            let total = self.data.total();
            if measured {
                value = Some(e.value() - total * seen.value().ln());
            }
            if !is_free(&self.specs[mode + 1]) {
                continue;
            }
            // [SPEC 4] F <- F ∘ C / (s X), s = v_obs / Σ_obs P: the model keeps its scale, and so do rows that were not seen
            let s = T::lit(total / unit / seen.value());
            let mut factor = at.at(mode + 1).clone();
            for ((f, &c), &x) in factor.iter_mut().zip(e.counts(mode)).zip(seen.counts(mode)) {
                if x > T::zero() {
                    *f *= c / s / x;
                }
            }
            let sums = normalise_columns(&mut factor);
            at.change(|j, block| {
                if j == 0 {
                    block.iter_mut().zip(&sums).for_each(|(w, &s)| *w *= s);
                    let total = block.sum();
                    *block /= total;
                } else if j == mode + 1 {
                    // A component that is left no counts keeps its factors; its weight is 0.
                    for (z, _) in sums.iter().enumerate().filter(|&(_, &s)| s > T::zero()) {
                        block.set_column(z, &factor.column(z));
                    }
                }
            });
        }
        Ok(Stepped::of(value))
    }
}
