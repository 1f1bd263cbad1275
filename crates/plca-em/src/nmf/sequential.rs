//! The sequential form of the updates.

use plca_fit::{
    Algorithm, BlockSpec, Em, Expectation, Exposure, FitError, Frozen, Parameters, Sense,
    Separable, Stepped,
};
use plca_tensor::{Factor, Modes, Real, Request, Rule};

use super::counts::NmfCounts;
use super::with_model;
use crate::product::check_measured;

/// The sequential form: `W`, then `H` from a fresh ratio.
#[derive(Debug)]
pub(super) struct Sequential<'a, T: Real>(pub(super) Em<NmfCounts<'a, T>>);

impl<T: Real> Sequential<'_, T> {
    /// Renews one factor; with `measure`, the divergence before that.
    fn sweep(
        &self,
        at: &mut Parameters<T>,
        mode: usize,
        measure: bool,
    ) -> Result<Option<f64>, FitError> {
        let NmfCounts { data, specs, .. } = &self.0.0;
        let free = specs[mode].frozen != Frozen::Whole;
        if !free && !measure {
            return Ok(None);
        }
        let wanted = Request::counts(Modes::one(mode)).value(measure);
        let mut e = with_model(at, |cp| {
            let e = data.e_step(cp, &wanted)?;
            check_measured(measure.then(|| e.value()), *data, cp)?;
            Ok::<_, FitError>(e)
        })?;
        let exposure = wanted.value(true).rule(Rule::Exposure);
        let mut seen = match data.is_complete() {
            true => None,
            false => Some(with_model(at, |cp| data.e_step(cp, &exposure))?),
        };
        let value = measure.then(|| {
            let seen = seen.as_ref().map(|seen| seen.value());
            let mass = seen.unwrap_or_else(|| with_model(at, |cp| cp.mass()));
            self.0.0.divergence(e.value(), mass)
        });
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
            let new = specs[mode].divided(e.take(mode), at.at(mode), exposure);
            at.change(|j, block| {
                if j == mode {
                    block.copy_from(&new);
                }
            });
        }
        Ok(value)
    }
}

impl<T: Real> Algorithm<T> for Sequential<'_, T> {
    fn blocks(&self) -> &[BlockSpec<T>] {
        &self.0.0.specs
    }

    fn step(&self, at: &mut Parameters<T>, measure: bool) -> Result<Stepped, FitError> {
        // Half an iteration is none.
        let mut new = at.clone();
        let value = self.sweep(&mut new, 0, measure)?;
        self.sweep(&mut new, 1, false)?;
        new.count();
        *at = new;
        Ok(Stepped {
            value,
            restored: Vec::new(),
        })
    }

    fn objective(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        self.0.objective(at)
    }

    fn sense(&self) -> Sense {
        Sense::Minimise
    }

    fn unit(&self) -> f64 {
        self.0.0.unit()
    }

    fn extrapolates(&self, at: &Parameters<T>) -> Result<(), FitError> {
        self.0.extrapolates(at)
    }

    fn check_start(&self, at: &Parameters<T>) -> Result<(), FitError> {
        self.0.check_start(at)
    }

    fn residual(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        Algorithm::residual(&self.0, at)
    }

    fn separable(&self) -> Result<&dyn Separable<T>, FitError> {
        self.0.0.separable()
    }
}
