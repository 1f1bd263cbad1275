//! The updates of variational Bayes, and its bound.

use nalgebra::DMatrix;
use plca_fit::FitError;
use plca_tensor::{CompensatedSum, Real, SignedSums, SignedWanted};

use crate::check::not_finite;
use crate::faint::{self, Logs, Watch};
use crate::prior::Axis;
use crate::signed::SignedData;
use crate::{Entries, Factors, Posterior, Prior, Replicates};

/// Data under a prior.
#[derive(Debug)]
pub(crate) struct Bayes<T> {
    pub(crate) prior: Prior,
    pub(crate) replicates: Replicates,
    pub(crate) data: SignedData<T>,
}

/// What a pass gives: expected counts as sums that the factors are multiplied by, or as they are.
struct Counts<T> {
    sums: SignedSums<T>,
    whole: bool,
}

impl<T: Real> Counts<T> {
    /// The prior and the counts of a block `x`, of which these are the sums.
    fn over(&self, prior: &Entries, axis: Axis, x: &DMatrix<T>, sums: &DMatrix<T>) -> DMatrix<T> {
        let mut out = match self.whole {
            true => sums.clone(),
            false => x.component_mul(sums),
        };
        prior.for_each(out.as_mut_slice(), axis, |x, c| *x += T::lit(c));
        out
    }
}

/// Sum of the entries.
fn total<'a, T: Real>(x: impl IntoIterator<Item = &'a T>) -> f64 {
    let terms = x.into_iter().map(|x| x.to_f64());
    terms.collect::<CompensatedSum>().value()
}

impl<T: Real> Bayes<T> {
    /// A pass under geometric means, whose logarithms are asked for where the numbers do not do.
    fn pass(
        &self,
        means: &Factors<T>,
        logs: impl FnOnce() -> Result<Logs, FitError>,
        wanted: SignedWanted,
    ) -> Result<Counts<T>, FitError> {
        let SignedData { cells, split, .. } = &self.data;
        let sums = match Watch::over(*split, means) {
            None => cells.pass(&means.model(), split, wanted),
            Some(watch) => {
                let sums = cells.pass(&means.model(), &watch, wanted);
                if watch.met() {
                    let sums = faint::pass(cells, self.replicates, &logs()?);
                    return Ok(Counts { sums, whole: true });
                }
                sums
            }
        };
        Ok(Counts { sums, whole: false })
    }

    /// One update from geometric means: the posterior of atoms and activations, each as wanted, and the likelihood term.
    pub(crate) fn update(
        &self,
        means: &Factors<T>,
        logs: impl FnOnce() -> Result<Logs, FitError>,
        wanted: SignedWanted,
    ) -> Result<(Posterior<T>, f64), FitError> {
        let prior = &self.prior;
        let counts = self.pass(means, logs, wanted)?;
        let sums = &counts.sums;
        let h = &means.activations;
        let (atoms, activations) = (Axis::Columns(means.plus.nrows()), Axis::Rows(h.nrows()));
        let update = |wanted: bool, prior, axis, x, s| match wanted {
            true => counts.over(prior, axis, x, s),
            false => DMatrix::zeros(0, 0),
        };
        // [SKELLAM 6] α̂ <- α + T̃ ∘ G̃ H̃ᵀ
        let plus = update(wanted.left, &prior.plus, atoms, &means.plus, &sums.plus);
        let minus = update(wanted.left, &prior.minus, atoms, &means.minus, &sums.minus);
        // [SKELLAM 6] ŝ <- a + H̃ ∘ (T̃⁺ᵀ G̃⁺ + T̃⁻ᵀ G̃⁻), b̂ <- b + 1
        let shape = update(wanted.right, &prior.shape, activations, h, &sums.right);
        let rate = self.rates(shape.shape());
        // Without a way out of the loop it is compiled for vectors.
        let finite = |m: &DMatrix<T>| m.as_slice().iter().fold(true, |all, x| all & x.is_finite());
        if !(finite(&plus) && finite(&minus)) {
            return Err(not_finite("atoms_shape", f64::NAN));
        }
        if !finite(&shape) {
            return Err(not_finite("activations_shape", f64::NAN));
        }
        let posterior = Posterior {
            plus,
            minus,
            shape,
            rate,
        };
        Ok((posterior, sums.value))
    }

    /// `b̂ = b + 1` of activations of this shape.
    pub(crate) fn rates(&self, (k, n): (usize, usize)) -> DMatrix<T> {
        let mut rates = DMatrix::zeros(k, n);
        let each = rates.as_mut_slice();
        (self.prior.rate).for_each(each, Axis::Rows(k), |x, b| *x = T::lit(b + 1.0));
        rates
    }

    /// The bound from its likelihood term: `Lfit(L̃) + Σ (L̃⁺ + L̃⁻) - Σ ŝ/b̂ - KL`, the second sum over all cells.
    pub(crate) fn bound(
        &self,
        state: &Posterior<T>,
        means: &Factors<T>,
        fit: f64,
    ) -> Result<f64, FitError> {
        let columns = means.plus.column_iter().zip(means.minus.column_iter());
        let mass = columns
            .zip(means.activations.row_iter())
            .map(|((p, m), h)| {
                // [SKELLAM 7] hidden cells included
                (total(p.iter()) + total(m.iter())) * total(h.iter())
            });
        let mass = mass.collect::<CompensatedSum>().value();
        Ok(fit + mass + state.bound_terms(&self.prior)?)
    }
}
