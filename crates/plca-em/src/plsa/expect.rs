//! Expected counts of PLSA.

use nalgebra::DMatrix;
use plca_tensor::{Expected, Modes, Real, Request, Rule};

use super::PlsaEm;
use super::state::with_model;
use crate::EmError;
use crate::expectation::add_hidden;

impl<T: Real> PlsaEm<'_, T> {
    /// Counts in the data's mode order, hidden cells imputed with one scale for every given index.
    pub(super) fn expect(
        &self,
        basis: &DMatrix<T>,
        mixture: &DMatrix<T>,
        modes: Modes,
        measure: bool,
    ) -> Result<Expected<T>, EmError> {
        let request = Request::counts(modes).value(measure);
        let e = with_model(self.config.given, basis, mixture, |model| {
            self.data.e_step(model, &request)
        })?;
        if self.data.is_complete() {
            return Ok(e);
        }
        self.impute(e, basis, mixture, modes, measure)
    }

    /// Adds the counts of hidden cells, and what the likelihood owes to them if `measure`.
    fn impute(
        &self,
        mut e: Expected<T>,
        basis: &DMatrix<T>,
        mixture: &DMatrix<T>,
        modes: Modes,
        measure: bool,
    ) -> Result<Expected<T>, EmError> {
        let given = self.config.given;
        let exposure = |mode| Request::counts(Modes::one(mode)).rule(Rule::Exposure);
        let mut seen = with_model(given, basis, mixture, |model| {
            self.data.e_step(model, &exposure(given.mode()))
        })?;
        let mut seen = seen.take(given.mode());
        // [SPEC 4] one scale v_obs(y) / Σ_obs P(x | y) for every y
        let masses: Vec<f64> = seen
            .column_iter()
            .map(|c| c.iter().map(|x| x.to_f64()).sum())
            .collect();
        let value = measure.then(|| {
            let logs = self.marginal.iter().zip(&masses);
            let logs = logs
                .filter(|&(&v, _)| v > 0.0)
                .map(|(v, mass)| v * mass.ln());
            e.value() - logs.sum::<f64>()
        });
        let mut scaled = mixture.clone();
        for (y, (&v, &mass)) in self.marginal.iter().zip(&masses).enumerate() {
            let s = T::lit(if mass > 0.0 { v / mass } else { 0.0 });
            scaled.column_mut(y).iter_mut().for_each(|x| *x *= s);
            seen.column_mut(y).iter_mut().for_each(|x| *x *= s);
        }
        let mut counts = vec![None, None];
        with_model(given, basis, &scaled, |model| {
            if modes.contains(given.mode()) {
                let mut own = e.take(given.mode());
                add_hidden(&mut own, &seen, model, given.mode(), T::one());
                counts[given.mode()] = Some(own);
            }
            let explained = given.explained();
            if modes.contains(explained) {
                let seen = self.data.e_step(model, &exposure(explained))?;
                let mut own = e.take(explained);
                add_hidden(&mut own, seen.counts(explained), model, explained, T::one());
                counts[explained] = Some(own);
            }
            Ok::<_, EmError>(())
        })?;
        Ok(Expected::new(counts, value))
    }
}
