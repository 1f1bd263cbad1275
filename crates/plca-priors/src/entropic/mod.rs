//! Entropic prior: few large entries, or many even ones.

mod column;

use std::sync::Arc;

use nalgebra::DMatrix;
use plca_tensor::Real;

use crate::simplex_prior::domain;
use crate::table::{Parsed, relative};
use crate::{
    PriorError, PriorRules, SimplexPrior, Step, Weighted, check_counts, columns::for_each_column,
};

/// The entropic prior of columns that are distributions: few large entries, or many even ones.
///
/// ```math
/// \ln p(\theta) = - \beta H(\theta) + \text{const} = \beta \sum_i \theta_i \ln \theta_i + \text{const}
/// ```
///
/// `θ` is a column and `H` its entropy.
///
/// `β > 0` asks for a low entropy, which is a sparse column; `β < 0` for a high one, which is a flat column. The strength is
/// counted in observations: `β = 10` weighs as much as ten of them.
///
/// The M-step maximises `Σ c ln θ + β Σ θ ln θ` exactly: stationary points are
///
/// ```math
/// \begin{aligned}
/// & \beta > 0 \text{:} & \theta_i &= -w_i / W(-w_i e^s), & w &= c / \beta \\
/// & \beta < 0 \text{:} & \theta_i &= w_i / W_0(w_i e^s), & w &= c / |\beta|
/// \end{aligned}
/// ```
///
/// with one `s` for the column and Lambert's `W`. For `β > 0` the largest count may lie on the branch `W_0`, the others lie on
/// `W_-1`; of all such points the best is taken. Of equal largest counts the first may become the large entry. A column without
/// counts keeps its value if `β >= 0` and becomes uniform if `β < 0`. A zero count gives a zero if `β > 0`, and never if `β < 0`.
///
/// Time: one or two evaluations of `W` for each of the `I` entries of a column, and some ten steps of Newton's method over them. `[SPEC 6]`
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_priors::{Entropic, SimplexPrior, Step};
/// let (counts, mut theta) = (dmatrix![6.0; 3.0; 1.0], dmatrix![0.4; 0.3; 0.3]);
/// Entropic::new(5.0)?.update(&counts, &mut theta, &Step::at(1))?;
/// assert!(theta[0] > 0.6 && theta[2] < 0.1);                 // sparser than the counts
/// Entropic::new(-50.0)?.update(&counts, &mut theta, &Step::at(1))?;
/// assert!(theta[0] < 0.45 && theta[2] > 0.2);                // flatter
/// # Ok::<(), plca_priors::PriorError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entropic {
    /// In observations, or relative to the counts of a column.
    strength: f64,
    relative: bool,
}

impl Entropic {
    /// The prior with strength `β` in observations, of either sign.
    ///
    /// # Errors
    ///
    /// [`PriorError::Domain`] unless `β` is finite.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_priors::{Entropic, SimplexPrior, Step};
    /// let ln_density = Entropic::new(2.0)?.ln_density(&dmatrix![0.5f64; 0.5], &Step::at(1));
    /// assert!((ln_density + 2.0 * 2f64.ln()).abs() < 1e-15);              // -β H
    /// assert!(Entropic::new(f64::INFINITY).is_err());
    /// # Ok::<(), plca_priors::PriorError>(())
    /// ```
    pub fn new(beta: f64) -> Result<Self, PriorError> {
        Self::of("beta", beta, false)
    }

    /// The prior with strength `β = ρ n` relative to the expected count `n` of the column, so that it does not change while components
    /// trade mass. `[SPEC 5.5]`
    ///
    /// No density has this M-step: [`ln_density`](SimplexPrior::ln_density) is 0, the log-likelihood may fall, and accelerated
    /// runs refuse it.
    ///
    /// # Errors
    ///
    /// [`PriorError::Domain`] unless `ρ` is finite.
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_priors::{Entropic, SimplexPrior, Step};
    /// let (mut a, mut b) = (dmatrix![0.5; 0.5], dmatrix![0.5; 0.5]);
    /// Entropic::relative(0.5)?.update(&dmatrix![6.0; 4.0], &mut a, &Step::at(1))?;
    /// Entropic::new(5.0)?.update(&dmatrix![6.0; 4.0], &mut b, &Step::at(1))?;
    /// assert_eq!(a, b);
    /// # Ok::<(), plca_priors::PriorError>(())
    /// ```
    pub fn relative(rho: f64) -> Result<Self, PriorError> {
        Self::of("rho", rho, true)
    }

    fn of(name: &'static str, strength: f64, relative: bool) -> Result<Self, PriorError> {
        domain(name, strength, strength.is_finite())?;
        Ok(Self { strength, relative })
    }
}

/// `BETA` or `RHOr`.
pub(crate) fn parse<T: Real>(text: &str, _: (usize, usize)) -> Parsed<dyn SimplexPrior<T>> {
    Ok(Arc::new(match relative(text)? {
        (beta, false) => Entropic::new(beta)?,
        (rho, true) => Entropic::relative(rho)?,
    }))
}

impl PriorRules for Entropic {
    fn has_density(&self) -> bool {
        !self.relative
    }

    fn shares_columns(&self) -> bool {
        true
    }

    /// Not relative to the counts: there is no objective then, unless the strength is 0.
    fn steady(&self, _iteration: usize) -> bool {
        !self.relative || self.strength == 0.0
    }
}

impl<T: Real> SimplexPrior<T> for Entropic {
    fn update(
        &self,
        counts: &DMatrix<T>,
        theta: &mut DMatrix<T>,
        step: &Step<'_>,
    ) -> Result<(), PriorError> {
        check_counts(counts, theta)?;
        for_each_column(counts, theta, |z, counts, theta| {
            let total: f64 = counts.iter().sum();
            let beta = match self.relative {
                false => self.strength,
                // [SPEC 5.5] β = ρ n, at most what a number can hold
                true => (self.strength * total).clamp(-f64::MAX, f64::MAX),
            };
            let Some((frozen, mass)) = step.left(z, theta) else {
                // [SPEC 6] the largest of Σ c ln θ + β Σ θ ln θ
                return column::maximise(counts, total, beta, theta);
            };
            let free: Vec<usize> = (0..theta.len()).filter(|&i| !frozen[i]).collect();
            if mass <= 0.0 || free.is_empty() {
                return free.into_iter().for_each(|i| theta[i] = 0.0);
            }
            let counts: Vec<f64> = free.iter().map(|&i| counts[i]).collect();
            let mut shares: Vec<f64> = free.iter().map(|&i| theta[i] / mass).collect();
            // [EXT 1] the same of the free entries, with the strength m β
            column::maximise(&counts, counts.iter().sum(), mass * beta, &mut shares);
            free.iter()
                .zip(shares)
                .for_each(|(&i, x)| theta[i] = mass * x);
        });
        Ok(())
    }

    fn ln_density(&self, theta: &DMatrix<T>, _: &Step<'_>) -> f64 {
        if self.relative {
            return 0.0;
        }
        let positive = theta.iter().map(|x| x.to_f64()).filter(|&x| x > 0.0);
        self.strength * positive.map(|x| x * x.ln()).sum::<f64>()
    }
}

impl Weighted for Entropic {
    fn weighted(&self, f: f64) -> Self {
        Self {
            strength: f * self.strength,
            ..*self
        }
    }
}
