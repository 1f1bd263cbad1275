//! Logistic-normal prior: correlated logarithms.

use std::sync::Arc;

use nalgebra::{DMatrix, DVector};
use plca_tensor::Real;

use crate::simplex_prior::{domain, fitting};
use crate::table::{Parsed, number};
use crate::{
    PriorError, PriorRules, SimplexPrior, Step, Weighted, check_counts, columns::for_each_column,
};

/// The logistic-normal prior of columns that are distributions: their logarithms are correlated.
///
/// ```math
/// \theta = \mathrm{softmax}(\eta) = \frac{e^\eta}{\sum e^\eta}, \qquad \eta \sim N(\mu, S)
/// ```
///
/// `θ` is a column of `I` entries, `μ` has as many, and `S` is `I x I`.
///
/// The M-step maximises the concave
///
/// ```math
/// c \cdot \eta - N \ln \sum e^\eta - \tfrac{1}{2} (\eta - \mu)^\top S^{-1} (\eta - \mu),
/// \qquad N = \sum c
/// ```
///
/// by Newton's method to rounding. Entries are never 0, and a column without counts becomes `softmax(μ)`. As `θ` determines `η` up to a
/// constant, [`ln_density`](SimplexPrior::ln_density) is the largest over that constant, `-∞` where an entry is 0.
///
/// Time per column and Newton step: `O(I)` for independent entries, `O(I^3)` with a covariance. `[SPEC 7]`
///
/// ```
/// use nalgebra::{dmatrix, dvector};
/// use plca_priors::{LogisticNormal, SimplexPrior, Step};
/// let prior = LogisticNormal::independent(dvector![0.0, 0.0, 0.0], &dvector![0.5, 0.5, 0.5])?;
/// let mut theta = dmatrix![0.4; 0.3; 0.3];
/// prior.update(&dmatrix![8.0; 2.0; 0.0], &mut theta, &Step::at(1))?;
/// assert!(theta[0] < 0.8 && theta[2] > 0.0);                  // drawn towards even
/// # Ok::<(), plca_priors::PriorError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct LogisticNormal {
    mean: DVector<f64>,
    precision: Precision,
}

#[derive(Clone, Debug, PartialEq)]
enum Precision {
    Diagonal(DVector<f64>),
    Full(DMatrix<f64>),
}

/// How far a step goes at most in the logarithm of an entry.
const FARTHEST: f64 = 16.0;

impl LogisticNormal {
    /// The prior of independent `η_i` with means `μ_i` and variances `S_ii`.
    ///
    /// # Errors
    ///
    /// [`PriorError::Shape`] if there are not as many variances as means; [`PriorError::Domain`] naming a mean that is not finite or a variance that is
    /// not positive.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::{dmatrix, dvector};
    /// use plca_priors::{LogisticNormal, SimplexPrior, Step};
    /// let prior = LogisticNormal::independent(dvector![0.0, 3f64.ln()], &dvector![1.0, 1.0])?;
    /// let mut theta = dmatrix![0.5f64; 0.5];
    /// prior.update(&dmatrix![0.0; 0.0], &mut theta, &Step::at(1))?;
    /// assert!((theta[1] - 0.75).abs() < 1e-12);                           // softmax(μ)
    /// # Ok::<(), plca_priors::PriorError>(())
    /// ```
    pub fn independent(mean: DVector<f64>, variance: &DVector<f64>) -> Result<Self, PriorError> {
        fitting(mean.len() == variance.len(), variance.shape(), mean.shape())?;
        check_mean(&mean)?;
        let checked = |&v: &f64| domain("variance", v, v.is_finite() && v > 0.0);
        variance.iter().try_for_each(checked)?;
        let precision = Precision::Diagonal(variance.map(f64::recip));
        Ok(Self { mean, precision })
    }

    /// The prior with mean `μ` and covariance `S`.
    ///
    /// # Errors
    ///
    /// [`PriorError::Shape`] unless `S` is square and as long as `μ`; [`PriorError::Domain`] naming a mean that is not finite, an entry that is not
    /// that of its transpose, or the determinant of a matrix that is not positive definite.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::{dmatrix, dvector};
    /// use plca_priors::{LogisticNormal, SimplexPrior, Step};
    /// let prior = LogisticNormal::new(dvector![0.0, 3f64.ln()], dmatrix![1.0, 0.5; 0.5, 1.0])?;
    /// let mut theta = dmatrix![0.5f64; 0.5];
    /// prior.update(&dmatrix![0.0; 0.0], &mut theta, &Step::at(1))?;
    /// assert!((theta[1] - 0.75).abs() < 1e-12);                           // softmax(μ)
    /// # Ok::<(), plca_priors::PriorError>(())
    /// ```
    pub fn new(mean: DVector<f64>, covariance: DMatrix<f64>) -> Result<Self, PriorError> {
        check_mean(&mean)?;
        let n = mean.len();
        fitting(covariance.shape() == (n, n), covariance.shape(), (n, n))?;
        for (i, j) in (0..n).flat_map(|i| (0..i).map(move |j| (i, j))) {
            let value = covariance[(i, j)];
            domain("covariance", value, value == covariance[(j, i)])?;
        }
        let singular = PriorError::Domain {
            name: "determinant of the covariance",
            value: covariance.determinant(),
        };
        let factor = covariance.cholesky().ok_or(singular)?;
        Ok(Self {
            mean,
            precision: Precision::Full(factor.inverse()),
        })
    }

    fn is_flat(&self) -> bool {
        match &self.precision {
            Precision::Diagonal(p) => p.iter().all(|&p| p == 0.0),
            Precision::Full(p) => p.iter().all(|&p| p == 0.0),
        }
    }

    fn times_precision(&self, d: &DVector<f64>) -> DVector<f64> {
        match &self.precision {
            Precision::Diagonal(p) => p.component_mul(d),
            Precision::Full(p) => p * d,
        }
    }

    /// `(N (diag θ - θ θ^T) + S^-1)^-1 g`, for a gradient `g` with this sum.
    ///
    /// By Sherman and Morrison with `D = N diag θ + S^-1`. As `D 1 = N θ + S^-1 1`, what would be small differences of counts are sums over `S^-1 1`,
    /// however large the counts are beside the prior.
    fn newton(
        &self,
        theta: &DVector<f64>,
        total: f64,
        (g, sum): (&DVector<f64>, f64),
    ) -> Option<DVector<f64>> {
        let (a, b) = match &self.precision {
            Precision::Diagonal(p) => {
                let d = p + theta * total;
                (g.component_div(&d), theta.component_div(&d))
            }
            Precision::Full(p) => {
                let mut d = p.clone();
                (0..theta.len()).for_each(|i| d[(i, i)] += total * theta[i]);
                let factor = d.cholesky()?;
                (factor.solve(g), factor.solve(theta))
            }
        };
        let ones = self.times_precision(&DVector::repeat(theta.len(), 1.0));
        // 1 - N θ·b = (S^-1 1)·b, and N θ·a = Σ g - (S^-1 1)·a
        let rest = ones.dot(&b);
        // In this order huge counts do not overflow: b is as small as the rest.
        Some(&a + b / rest * (sum - ones.dot(&a)))
    }

    /// The objective at `η`. All of its terms have one sign, so that its rounding is a few epsilons of itself.
    fn value(&self, counts: &DVector<f64>, eta: &DVector<f64>) -> f64 {
        let d = eta - &self.mean;
        // [SPEC 7] c·η - N ln Σ e^η = c·ln θ
        counts.dot(&ln_softmax(eta)) - 0.5 * d.dot(&self.times_precision(&d))
    }

    fn maximise(&self, counts: &DVector<f64>, start: &[f64]) -> DVector<f64> {
        let total = counts.sum();
        let mut eta = if start.iter().all(|&t| t > 0.0) {
            // Where the prior's mean is, along the direction that the counts do not see.
            let eta = DVector::from_iterator(start.len(), start.iter().map(|t| t.ln()));
            let shift = (&self.mean - &eta).mean();
            eta.add_scalar(shift)
        } else {
            self.mean.clone()
        };
        let mut value = self.value(counts, &eta);
        for _ in 0..100 {
            let theta = softmax(&eta);
            // [SPEC 7] c - N θ - S^-1 (η - μ)
            let pull = self.times_precision(&(&eta - &self.mean));
            let g = counts - &theta * total - &pull;
            // Counts and N θ have the same sum: what rounding leaves of their difference may be far more than the pull.
            let Some(step) = self.newton(&theta, total, (&g, -pull.sum())) else {
                break;
            };
            let decrement = g.dot(&step);
            // Where an entry is far too small the curvature says nothing of the way to it.
            let mut length = (FARTHEST / step.amax()).min(1.0);
            // Beyond the digits of the objective the step is still right.
            if decrement <= 1e-13 * value.abs().max(1.0) {
                return &eta + step * length;
            }
            let shortest = 1e-10 * length;
            (eta, value) = loop {
                let next = &eta + &step * length;
                let new = self.value(counts, &next);
                if new >= value + 1e-4 * length * decrement {
                    break (next, new);
                }
                length *= 0.5;
                if length < shortest {
                    return eta;
                }
            };
        }
        eta
    }
}

fn check_mean(mean: &DVector<f64>) -> Result<(), PriorError> {
    mean.iter()
        .try_for_each(|&m| domain("mean", m, m.is_finite()))
}

/// `ln softmax(η)`, exact to rounding where an entry is near 1, too.
fn ln_softmax(eta: &DVector<f64>) -> DVector<f64> {
    let first = eta.imax();
    let top = eta[first];
    let others = eta.iter().enumerate().filter(|&(i, _)| i != first);
    let ln_sum = others.map(|(_, e)| (e - top).exp()).sum::<f64>().ln_1p();
    eta.map(|e| e - top - ln_sum)
}

fn softmax(eta: &DVector<f64>) -> DVector<f64> {
    let top = eta.max();
    let e = eta.map(|e| (e - top).exp());
    let sum = e.sum();
    e / sum
}

/// `VARIANCE`, around even columns.
pub(crate) fn parse<T: Real>(text: &str, (rows, _): (usize, usize)) -> Parsed<dyn SimplexPrior<T>> {
    let variance = DVector::repeat(rows, number(text)?);
    let mean = DVector::zeros(rows);
    Ok(Arc::new(LogisticNormal::independent(mean, &variance)?))
}

impl PriorRules for LogisticNormal {
    fn check(&self, shape: (usize, usize)) -> Result<(), PriorError> {
        fitting(self.mean.len() == shape.0, self.mean.shape(), shape)
    }
}

impl<T: Real> SimplexPrior<T> for LogisticNormal {
    fn update(
        &self,
        counts: &DMatrix<T>,
        theta: &mut DMatrix<T>,
        step: &Step<'_>,
    ) -> Result<(), PriorError> {
        self.check(theta.shape())?;
        check_counts(counts, theta)?;
        if self.is_flat() {
            return crate::Flat.update(counts, theta, step);
        }
        for_each_column(counts, theta, |_, counts, theta| {
            let eta = self.maximise(&DVector::from_column_slice(counts), theta);
            theta.copy_from_slice(softmax(&eta).as_slice());
        });
        Ok(())
    }

    fn ln_density(&self, theta: &DMatrix<T>, _: &Step<'_>) -> f64 {
        let ones = self.times_precision(&DVector::repeat(self.mean.len(), 1.0));
        let column = |z: usize| {
            let d = theta.column(z).map(|t| t.to_f64().ln()) - &self.mean;
            if self.is_flat() {
                return 0.0;
            }
            if d.iter().any(|d| d.is_infinite()) {
                return f64::NEG_INFINITY;
            }
            // The best constant a in η = ln θ + a
            let rest = d.add_scalar(-ones.dot(&d) / ones.sum());
            -0.5 * rest.dot(&self.times_precision(&rest))
        };
        (0..theta.ncols()).map(column).sum()
    }
}

impl Weighted for LogisticNormal {
    fn weighted(&self, f: f64) -> Self {
        let precision = match &self.precision {
            Precision::Diagonal(p) => Precision::Diagonal(p * f),
            Precision::Full(p) => Precision::Full(p * f),
        };
        Self {
            mean: self.mean.clone(),
            precision,
        }
    }
}
