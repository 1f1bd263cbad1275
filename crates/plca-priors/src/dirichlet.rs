//! Dirichlet prior.

use std::sync::Arc;

use nalgebra::DMatrix;
use plca_tensor::Real;

use crate::simplex_prior::fitting;
use crate::table::{Parsed, number};
use crate::{PriorError, PriorRules, SimplexPrior, Step, Weighted, check_counts};

/// The Dirichlet prior of columns that are distributions: as if the data had `α - 1` more counts.
///
/// ```math
/// \ln p(\theta) = \sum_i (\alpha_i - 1) \ln \theta_i + \text{const}, \qquad
/// \theta_i \gets \frac{\max(c_i + \alpha_i - 1, \, 0)}{\text{sum of the numerators}}
/// ```
///
/// `θ` is a column and `c` are its counts; there is one `α > 0`, or one for each entry.
///
/// A column in which everything is clipped keeps its value. Below 1
/// the density is unbounded at the border: clipped entries are a convention and do not enter
/// [`ln_density`](SimplexPrior::ln_density), and zeros never return.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_priors::{Dirichlet, SimplexPrior, Step};
/// let mut theta = dmatrix![0.5; 0.5];
/// Dirichlet::symmetric(2.0)?.update(&dmatrix![3.0; 0.0], &mut theta, &Step::at(1))?;
/// assert_eq!(theta, dmatrix![0.8; 0.2]);                          // (3 + 1) : (0 + 1)
/// # Ok::<(), plca_priors::PriorError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Dirichlet(Concentration);

#[derive(Clone, Debug, PartialEq)]
enum Concentration {
    Symmetric(f64),
    PerEntry(DMatrix<f64>),
}

impl Dirichlet {
    /// The prior with the same `α` for every entry.
    ///
    /// # Errors
    ///
    /// [`PriorError::Domain`] unless `α` is positive and finite.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_priors::{Dirichlet, PriorError};
    /// assert!(Dirichlet::symmetric(0.5).is_ok());
    /// assert_eq!(Dirichlet::symmetric(0.0), Err(PriorError::Domain { name: "alpha", value: 0.0 }));
    /// ```
    pub fn symmetric(alpha: f64) -> Result<Self, PriorError> {
        domain(alpha)?;
        Ok(Self(Concentration::Symmetric(alpha)))
    }

    /// The prior with an `α` for each entry of the block.
    ///
    /// # Errors
    ///
    /// [`PriorError::Domain`] naming the first `α` that is not positive and finite.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_priors::{Dirichlet, SimplexPrior, Step};
    /// let mut theta = dmatrix![0.5; 0.5];
    /// Dirichlet::per_entry(dmatrix![1.0; 3.0])?.update(&dmatrix![1.0; 1.0], &mut theta, &Step::at(1))?;
    /// assert_eq!(theta, dmatrix![0.25; 0.75]);
    /// # Ok::<(), plca_priors::PriorError>(())
    /// ```
    pub fn per_entry(alpha: DMatrix<f64>) -> Result<Self, PriorError> {
        alpha.iter().try_for_each(|&a| domain(a))?;
        Ok(Self(Concentration::PerEntry(alpha)))
    }

    fn alpha(&self, at: (usize, usize)) -> f64 {
        match &self.0 {
            Concentration::Symmetric(a) => *a,
            Concentration::PerEntry(a) => a[at],
        }
    }
}

/// `A`.
pub(crate) fn parse<T: Real>(text: &str, _: (usize, usize)) -> Parsed<T> {
    Ok(Arc::new(Dirichlet::symmetric(number(text)?)?))
}

fn domain(alpha: f64) -> Result<(), PriorError> {
    if alpha.is_finite() && alpha > 0.0 {
        Ok(())
    } else {
        Err(PriorError::Domain {
            name: "alpha",
            value: alpha,
        })
    }
}

impl PriorRules for Dirichlet {
    fn pseudo_counts(&self, shape: (usize, usize)) -> Option<DMatrix<f64>> {
        let fits = self.check(shape).is_ok();
        let raises = !self.may_empty();
        // [SPEC 7] c + α - 1
        (fits && raises)
            .then(|| DMatrix::from_fn(shape.0, shape.1, |i, z| self.alpha((i, z)) - 1.0))
    }

    fn may_empty(&self) -> bool {
        match &self.0 {
            Concentration::Symmetric(a) => *a < 1.0,
            Concentration::PerEntry(a) => a.iter().any(|&a| a < 1.0),
        }
    }

    fn check(&self, shape: (usize, usize)) -> Result<(), PriorError> {
        match &self.0 {
            Concentration::PerEntry(a) => fitting(a.shape() == shape, a.shape(), shape),
            Concentration::Symmetric(_) => Ok(()),
        }
    }
}

impl<T: Real> SimplexPrior<T> for Dirichlet {
    fn update(
        &self,
        counts: &DMatrix<T>,
        theta: &mut DMatrix<T>,
        _: &Step<'_>,
    ) -> Result<(), PriorError> {
        self.check(theta.shape())?;
        check_counts(counts, theta)?;
        for z in 0..counts.ncols() {
            // [SPEC 7] θ ∝ max(c + α - 1, 0)
            let numerator =
                |i: usize| (counts[(i, z)].to_f64() + (self.alpha((i, z)) - 1.0)).max(0.0);
            // In units of the largest: numbers near the end of the range must not sum to infinity.
            let largest = (0..counts.nrows()).map(numerator).fold(0.0, f64::max);
            if largest > 0.0 {
                let relative = |i: usize| numerator(i) / largest;
                let total: f64 = (0..counts.nrows()).map(relative).sum();
                (0..counts.nrows()).for_each(|i| theta[(i, z)] = T::lit(relative(i) / total));
            }
        }
        Ok(())
    }

    fn ln_density(&self, theta: &DMatrix<T>, _: &Step<'_>) -> f64 {
        let term = |i, z| {
            let (excess, x) = (self.alpha((i, z)) - 1.0, theta[(i, z)].to_f64());
            // [SPEC 7] below 1, clipped coordinates are left out
            if excess == 0.0 || (excess < 0.0 && x == 0.0) {
                0.0
            } else {
                excess * x.ln()
            }
        };
        (0..theta.ncols())
            .flat_map(|z| (0..theta.nrows()).map(move |i| (i, z)))
            .map(|(i, z)| term(i, z))
            .sum()
    }
}

impl Weighted for Dirichlet {
    fn weighted(&self, f: f64) -> Self {
        let weighted = |alpha: f64| 1.0 + f * (alpha - 1.0);
        Self(match &self.0 {
            Concentration::Symmetric(alpha) => Concentration::Symmetric(weighted(*alpha)),
            Concentration::PerEntry(alpha) => Concentration::PerEntry(alpha.map(weighted)),
        })
    }
}
