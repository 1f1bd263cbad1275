//! Masked multiplicative updates.

use plca_fit::{Algorithm, BlockSpec, Em, Expectation, FitError, Parameters, Separable, Stepped};
use plca_tensor::{Modes, Real, Request, Rule, normalise_columns};

use super::counts::PlcaCounts;
use super::with_model;
use crate::product::check_measured;

/// Masked multiplicative updates of a matrix: on `W = F_1`, `H = diag(P(z)) F_2ᵀ`, one after the other, mapped back.
#[derive(Debug)]
pub(super) struct Multiplicative<'a, T: Real>(pub(super) Em<PlcaCounts<'a, T>>);

impl<T: Real> Algorithm<T> for Multiplicative<'_, T> {
    fn blocks(&self) -> &[BlockSpec<T>] {
        &self.0.0.specs
    }

    fn step(&self, at: &mut Parameters<T>, measure: bool) -> Result<Stepped, FitError> {
        let model = &self.0.0;
        let mut new = at.clone();
        let mut value = None;
        for mode in 0..2 {
            let measured = measure && mode == 0;
            let wanted = Request::counts(Modes::one(mode));
            let exposure = wanted.value(true).rule(Rule::Exposure);
            let (e, seen) = with_model(&new, |cp| {
                let e = model.data.e_step(cp, &wanted.value(measured))?;
                check_measured(measured.then(|| e.value()), model.data, cp)?;
                Ok::<_, FitError>((e, model.data.e_step(cp, &exposure)?))
            })?;
            let total = model.data.total();
            if measured {
                value = Some(e.value() - total * seen.value().ln());
            }
            if !model.is_free(mode + 1) {
                continue;
            }
            // [SPEC 4] F <- F ∘ C / (s X), s = v_obs / Σ_obs P: the model keeps its scale, and so do rows that were not seen
            let s = T::lit(total / seen.value());
            let mut factor = new.at(mode + 1).clone();
            for ((f, &c), &x) in factor.iter_mut().zip(e.counts(mode)).zip(seen.counts(mode)) {
                if x > T::zero() {
                    *f *= c / s / x;
                }
            }
            let sums = normalise_columns(&mut factor);
            new.change(|j, block| {
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

    fn unit(&self) -> f64 {
        self.0.0.unit()
    }

    fn mass(&self) -> f64 {
        self.0.0.mass()
    }

    fn scale(&self, at: &Parameters<T>) -> Result<Option<Vec<f64>>, FitError> {
        Algorithm::scale(&self.0, at)
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
