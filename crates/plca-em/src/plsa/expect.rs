//! Expected counts of PLSA.

use nalgebra::DMatrix;
use plca_tensor::{Expected, Observed, Real, Wanted};

use super::state::with_model;
use super::{Given, PlsaEm};
use crate::expectation::add_hidden;

impl<T: Real, X: Observed<T> + ?Sized> PlsaEm<'_, T, X> {
    /// Counts in the data's mode order, hidden cells imputed with one scale for every given index.
    pub(super) fn expect(
        &self,
        basis: &DMatrix<T>,
        mixture: &DMatrix<T>,
        modes: [bool; 2],
        measure: bool,
    ) -> Expected<T> {
        let given = self.config.given;
        let mut e = with_model(given, basis, mixture, |m| {
            self.data.expect(
                m,
                Wanted {
                    modes: &modes,
                    ln_lik: measure,
                },
            )
        });
        if !self.data.is_complete() {
            self.impute(&mut e, basis, mixture, measure);
        }
        e
    }

    /// Adds the counts of hidden cells, and what the likelihood owes to them if `measure`.
    fn impute(&self, e: &mut Expected<T>, basis: &DMatrix<T>, mixture: &DMatrix<T>, measure: bool) {
        let given = self.config.given;
        let of_given = [given == Given::Rows, given == Given::Columns];
        let seen = with_model(given, basis, mixture, |m| self.data.exposure(m, &of_given));
        let Some(seen) = &seen[given.mode()] else {
            return;
        };
        // [SPEC 4] one scale v_obs(y) / Σ_obs P(x | y) for every y
        let masses: Vec<f64> = seen
            .column_iter()
            .map(|c| c.iter().map(|x| x.to_f64()).sum())
            .collect();
        if measure {
            e.ln_lik -= (self.marginal.iter().zip(&masses))
                .filter(|&(&v, _)| v > 0.0)
                .map(|(v, mass)| v * mass.ln())
                .sum::<f64>();
        }
        let mut scaled = mixture.clone();
        let mut scaled_seen = seen.clone();
        for (y, (&v, &mass)) in self.marginal.iter().zip(&masses).enumerate() {
            let s = T::lit(if mass > 0.0 { v / mass } else { 0.0 });
            scaled.column_mut(y).iter_mut().for_each(|x| *x *= s);
            scaled_seen.column_mut(y).iter_mut().for_each(|x| *x *= s);
        }
        with_model(given, basis, &scaled, |model| {
            if let Some(counts) = &mut e.counts[given.mode()] {
                add_hidden(counts, &scaled_seen, model, given.mode(), T::one());
            }
            let explained = given.explained();
            if let Some(counts) = &mut e.counts[explained] {
                let seen = self.data.exposure(model, &[explained == 0, explained == 1]);
                if let Some(seen) = &seen[explained] {
                    add_hidden(counts, seen, model, explained, T::one());
                }
            }
        });
    }
}
