//! The sequential form of the updates: `W`, then `H` from a fresh ratio.

use nalgebra::DMatrix;
use plca_fit::shards::{Divided, InTurn};
use plca_fit::{
    Factored, FitError, Parameters, Sense,
    blocks::Exposure,
    em::{Counts, Expectation, Stepped, with_priors},
};
use plca_tensor::{Factor, Modes, Real, Request, Rule};

use super::NmfState;
use super::counts::{NmfCounts, in_unit};
use crate::blocks::is_free;
use crate::product::check_measured;
use crate::sequential::Sweep;

/// The counts of a factor and what they are divided by, if it is free; and the divergence, if it was asked for.
type Half<T> = (Option<(DMatrix<T>, Exposure<T>)>, Option<f64>);

impl<T: Real> NmfCounts<'_, T> {
    /// The pass over the data that renews a factor, in this unit; with `measure`, the divergence.
    fn half(
        &self,
        at: &Parameters<T>,
        mode: usize,
        measure: bool,
        unit: f64,
    ) -> Result<Half<T>, FitError> {
        let Self { data, specs, .. } = self;
        let free = is_free(&specs[mode]);
        if !free && !measure {
            return Ok((None, None));
        }
        let wanted = Request::counts(Modes::one(mode))
            .value(measure)
            .unit(data.unit())
            .count_unit(unit);
        let mut e = NmfState::with_model_at(at, |cp| data.e_step(cp, &wanted))?;
        let exposure = wanted.value(true).rule(Rule::Exposure);
        let mut seen = match self.complete {
            true => None,
            false => Some(NmfState::with_model_at(at, |cp| {
                in_unit(cp, unit, |cp| data.e_step(cp, &exposure))
            })?),
        };
        let value = measure.then(|| {
            let seen = seen.as_ref().map(|seen| seen.value() * unit);
            let mass = seen.unwrap_or_else(|| NmfState::with_model_at(at, |cp| cp.mass()));
            self.divergence(e.value(), mass)
        });
        let exposure = match &mut seen {
            // [SPEC 4] F <- F ∘ C / X; a wholly hidden row or column keeps its value
            Some(seen) => Exposure::PerEntry(seen.take(mode)),
            // [LS eq. 5] [LV eq. 1] [SPEC 3] from a fresh ratio, divided by the current sums of the partner
            None => Exposure::PerComponent(match mode {
                0 => Factor::Rows(at.at(1)).component_sums(),
                _ => Factor::Columns(at.at(0)).component_sums(),
            }),
        };
        Ok((free.then(|| (e.take(mode), exposure)), value))
    }

    /// Renews one factor; with `measure`, the objective before that.
    fn renew(
        &self,
        at: &mut Parameters<T>,
        mode: usize,
        measure: bool,
    ) -> Result<Stepped, FitError> {
        let specs = &self.specs;
        let (counts, value) = self.half(at, mode, measure, self.count_unit())?;
        if value == Some(f64::INFINITY) {
            NmfState::with_model_at(at, |cp| {
                check_measured(Some(f64::NEG_INFINITY), self.data, cp)
            })?;
        }
        let value = value.map(|value| with_priors(value, Sense::Minimise, specs, at));
        let mut stepped = Stepped::of(value);
        if let Some((counts, exposure)) = counts {
            let (mut new, lost) = specs[mode].m_step_in(
                counts,
                self.count_unit(),
                at.at(mode),
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

impl<T: Real> InTurn<T> for NmfCounts<'_, T> {
    fn count(&self, at: &Parameters<T>, value: bool) -> Result<Divided<T>, FitError> {
        let (half, value) = self.half(at, 0, value, 1.0)?;
        let (counts, exposure) = half.unzip();
        let blocks = vec![counts, None];
        Ok((Counts { blocks, value }, vec![exposure, None]))
    }

    fn renew(&self, at: &mut Parameters<T>) -> Result<(), FitError> {
        NmfCounts::renew(self, at, 1, false).map(drop)
    }
}
