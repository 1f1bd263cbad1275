//! The sequential form of the updates: `W`, then `H` from a fresh ratio.

use nalgebra::DMatrix;
use plca_fit::{
    Expectation, Exposure, Factored, FitError, Parameters, Sense, Stepped, with_priors,
};
use plca_tensor::{Factor, Modes, Real, Request, Rule};

use super::NmfState;
use super::counts::NmfCounts;
use crate::blocks::is_free;
use crate::product::check_measured;
use crate::sequential::Sweep;

impl<T: Real> NmfCounts<'_, T> {
    /// Renews one factor; with `measure`, the objective before that.
    fn renew(
        &self,
        at: &mut Parameters<T>,
        mode: usize,
        measure: bool,
    ) -> Result<Stepped, FitError> {
        let Self { data, specs, .. } = self;
        let free = is_free(&specs[mode]);
        if !free && !measure {
            return Ok(Stepped::default());
        }
        let wanted = Request::counts(Modes::one(mode)).value(measure);
        let mut e = NmfState::with_model_at(at, |cp| {
            let e = data.e_step(cp, &wanted)?;
            check_measured(measure.then(|| e.value()), *data, cp)?;
            Ok::<_, FitError>(e)
        })?;
        let exposure = wanted.value(true).rule(Rule::Exposure);
        let mut seen = match data.is_complete() {
            true => None,
            false => Some(NmfState::with_model_at(at, |cp| {
                data.e_step(cp, &exposure)
            })?),
        };
        let value = measure.then(|| {
            let seen = seen.as_ref().map(|seen| seen.value());
            let mass = seen.unwrap_or_else(|| NmfState::with_model_at(at, |cp| cp.mass()));
            with_priors(self.divergence(e.value(), mass), Sense::Minimise, specs, at)
        });
        let mut stepped = Stepped::of(value);
        if free {
            let exposure = match &mut seen {
                // [SPEC 4] F <- F ∘ C / X; a wholly hidden row or column keeps its value
                Some(seen) => Exposure::PerEntry(seen.take(mode)),
                // [LS eq. 5] [LV eq. 1] [SPEC 3] from a fresh ratio, divided by the current sums of the partner
                None => Exposure::PerComponent(match mode {
                    0 => Factor::Rows(at.at(1)).component_sums(),
                    _ => Factor::Columns(at.at(0)).component_sums(),
                }),
            };
            let old = at.at(mode);
            let (mut new, lost) = specs[mode].m_step(
                e.take(mode),
                old,
                Some(exposure),
                at.iteration().saturating_add(1),
            )?;
            let put = |at: &mut Parameters<T>, new: &DMatrix<T>| {
                at.change(|j, block| {
                    if j == mode {
                        block.copy_from(new);
                    }
                });
            };
            put(at, &new);
            // The other factor is renewed from a ratio with this one.
            if lost && self.unsupported(at)?.is_some() {
                specs[mode].restore(&mut new);
                put(at, &new);
                stepped.restored.push(mode);
            }
        }
        Ok(stepped)
    }
}

impl<T: Real> Sweep<T> for NmfCounts<'_, T> {
    fn sweep(&self, at: &mut Parameters<T>, measure: bool) -> Result<Stepped, FitError> {
        let mut stepped = self.renew(at, 0, measure)?;
        stepped.restored.extend(self.renew(at, 1, false)?.restored);
        Ok(stepped)
    }
}
