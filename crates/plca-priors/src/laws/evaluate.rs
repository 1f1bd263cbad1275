//! What all laws share: one update, and the expected log-posterior.

use nalgebra::DMatrix;
use plca_tensor::{Real, simplex_error};

use super::{Case, Claims, Law, Optimum, Violation};
use crate::{SimplexPrior, Step};

/// A prior, a case and the M-step on it.
pub(super) struct Trial<'a, T: Real> {
    pub(super) prior: &'a dyn SimplexPrior<T>,
    pub(super) claims: &'a Claims,
    pub(super) case: &'a Case<T>,
    pub(super) step: Step<'static>,
    /// The block after the update.
    pub(super) result: DMatrix<T>,
}

/// A value of `J` and the rounding it may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Posterior {
    pub(super) value: f64,
    pub(super) rounding: f64,
}

impl<'a, T: Real> Trial<'a, T> {
    pub(super) fn new(
        prior: &'a dyn SimplexPrior<T>,
        claims: &'a Claims,
        case: &'a Case<T>,
        iteration: usize,
    ) -> Result<Self, Violation> {
        let mut trial = Self {
            prior,
            claims,
            case,
            step: Step::at(iteration),
            result: case.theta.clone(),
        };
        trial.result = trial.update(&case.counts, &case.theta)?;
        Ok(trial)
    }

    /// The M-step, which must accept the counts and leave distributions.
    pub(super) fn update(
        &self,
        counts: &DMatrix<T>,
        theta: &DMatrix<T>,
    ) -> Result<DMatrix<T>, Violation> {
        update(self.prior, self.claims, counts, theta, &self.step)
    }

    /// The log-density as it is in force.
    pub(super) fn ln_density(&self, theta: &DMatrix<T>) -> f64 {
        self.prior.ln_density(theta, &self.step)
    }

    /// `tolerance` epsilons.
    pub(super) fn epsilon(&self) -> f64 {
        self.claims.tolerance * T::EPSILON.to_f64()
    }

    /// `J(θ)`; for [`Optimum::OnSupport`] the entries that are 0 in `support` are left out of the counts.
    pub(super) fn posterior(
        &self,
        counts: &DMatrix<T>,
        theta: &DMatrix<T>,
        support: &DMatrix<T>,
    ) -> Result<Posterior, Violation> {
        let clip = self.claims.optimum == Optimum::OnSupport;
        let finite = |x: f64| if x.is_finite() { x.abs() } else { 0.0 };
        let (mut value, mut size) = (0.0, 1.0);
        for ((&c, &x), &s) in counts.iter().zip(theta).zip(support) {
            if c > T::zero() && !(clip && s == T::zero()) {
                let term = c.to_f64() * x.to_f64().ln();
                value += term;
                size += c.to_f64() + finite(term);
            }
        }
        let density = self.ln_density(theta);
        if density.is_nan() || density == f64::INFINITY {
            let details = format!("ln p is {density} at {theta}");
            return Err(Violation::new(Law::Density, details));
        }
        Ok(Posterior {
            value: value + density,
            rounding: self.epsilon() * (size + finite(density)),
        })
    }

    /// Whether the update left this column as it was.
    pub(super) fn kept(&self, z: usize) -> bool {
        self.result.column(z) == self.case.theta.column(z)
    }

    /// `Err` of `law` unless two blocks agree: entry by entry where the maximiser is unique, in `J` otherwise.
    pub(super) fn agree(
        &self,
        law: Law,
        counts: &DMatrix<T>,
        a: &DMatrix<T>,
        b: &DMatrix<T>,
    ) -> Result<(), Violation> {
        let same = if self.claims.unique {
            let pairs = a.iter().zip(b);
            let largest = pairs.fold(0.0, |m: f64, (a, b)| m.max((a.to_f64() - b.to_f64()).abs()));
            largest <= self.epsilon()
        } else {
            let (a, b) = (self.posterior(counts, a, a)?, self.posterior(counts, b, b)?);
            a.value == b.value || (a.value - b.value).abs() <= a.rounding + b.rounding
        };
        if same {
            return Ok(());
        }
        Err(Violation::new(law, format!("{a} and {b} from {counts}")))
    }
}

/// The M-step of any prior, which must accept the counts and leave distributions.
pub(super) fn update<T: Real>(
    prior: &dyn SimplexPrior<T>,
    claims: &Claims,
    counts: &DMatrix<T>,
    theta: &DMatrix<T>,
    step: &Step<'_>,
) -> Result<DMatrix<T>, Violation> {
    let mut result = theta.clone();
    if let Err(e) = prior.update(counts, &mut result, step) {
        return Err(Violation::new(Law::Accepts, format!("{e} for {counts}")));
    }
    let error = simplex_error(&result);
    if result.shape() != theta.shape() || error > claims.tolerance * T::EPSILON.to_f64() {
        let details = format!("{result} from {counts} is off the simplex by {error}");
        return Err(Violation::new(Law::Distribution, details));
    }
    Ok(result)
}
