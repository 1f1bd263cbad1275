//! Dirichlet prior.

use std::sync::Arc;

use nalgebra::DMatrix;
use plca_tensor::Real;
use plca_tensor::parallel::{largest, sum, wide};

use crate::gamma::power;
use crate::table::{Parsed, number};
use crate::{
    Components, Entries, PriorError, PriorRules, PriorSpec, SimplexPrior, Step, Weighted,
    check_counts,
};

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
pub struct Dirichlet(Entries);

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
        Self::of(Entries::All(alpha))
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
        Self::of(Entries::Each(alpha))
    }

    pub(crate) fn of(alpha: Entries) -> Result<Self, PriorError> {
        alpha.within("alpha", |a| a > 0.0).map(Self)
    }

    /// `α` of the entry at this position of a block with this number of rows.
    fn at(&self, at: usize, rows: usize) -> f64 {
        self.0.get(at, Components::Columns(rows))
    }
}

/// `A`.
pub(crate) fn parse<T: Real>(text: &str, _: (usize, usize)) -> Parsed<dyn SimplexPrior<T>> {
    Ok(Arc::new(Dirichlet::symmetric(number(text)?)?))
}

impl PriorRules for Dirichlet {
    fn pseudo_counts(&self, shape: (usize, usize)) -> Option<DMatrix<f64>> {
        let (rows, columns) = shape;
        let raises = !self.may_empty();
        // [SPEC 7] c + α - 1
        let counts = |i: usize, z: usize| self.at(z * rows + i, rows) - 1.0;
        (self.check(shape).is_ok() && raises).then(|| DMatrix::from_fn(rows, columns, counts))
    }

    fn may_empty(&self) -> bool {
        self.0.as_slice().iter().any(|&a| a < 1.0)
    }

    fn check(&self, shape: (usize, usize)) -> Result<(), PriorError> {
        self.0.check(shape)
    }

    fn shares_columns(&self) -> bool {
        true
    }

    fn spec(&self) -> Option<PriorSpec> {
        Some(PriorSpec::Dirichlet(self.0.clone()))
    }
}

impl<T: Real> SimplexPrior<T> for Dirichlet {
    fn update(
        &self,
        counts: &DMatrix<T>,
        theta: &mut DMatrix<T>,
        step: &Step<'_>,
    ) -> Result<(), PriorError> {
        self.check(theta.shape())?;
        check_counts(counts, theta)?;
        let rows = counts.nrows().max(1);
        let mut new: Vec<f64> = counts.iter().map(|c| c.to_f64()).collect();
        // [SPEC 7] θ ∝ max(c + α - 1, 0)
        let numerator = |x: &mut f64, alpha: f64| *x = (*x + (alpha - 1.0)).max(0.0);
        (self.0).for_each(&mut new, Components::Columns(rows), numerator);
        let columns = new.chunks_exact_mut(rows);
        let columns = columns.zip(theta.as_mut_slice().chunks_exact_mut(rows));
        wide(
            #[inline(always)]
            || {
                for (z, (new, theta)) in columns.enumerate() {
                    let left = step.left(z, theta);
                    let mass = left.map_or(1.0, |(_, mass)| mass);
                    let frozen = left.map_or(&[][..], |(frozen, _)| frozen);
                    for (x, &frozen) in new.iter_mut().zip(frozen) {
                        *x = if frozen { 0.0 } else { *x };
                    }
                    // In units of the largest: numbers near the end of the range must not sum to infinity.
                    let largest = largest(new);
                    if largest > 0.0 {
                        for x in &mut *new {
                            *x /= largest;
                        }
                        let total = sum(new);
                        // [EXT 1] what is left of 1, times that
                        for x in &mut *new {
                            *x = mass * (*x / total);
                        }
                        for ((x, t), frozen) in new.iter_mut().zip(&*theta).zip(frozen) {
                            *x = if *frozen { t.to_f64() } else { *x };
                        }
                        for (t, x) in theta.iter_mut().zip(new) {
                            *t = T::lit(*x);
                        }
                    }
                }
            },
        );
        Ok(())
    }

    fn ln_density(&self, theta: &DMatrix<T>, _: &Step<'_>) -> f64 {
        let rows = theta.nrows();
        // [SPEC 7] Σ (α - 1) ln θ
        let term = |(at, x): (usize, &T)| power(self.at(at, rows), x.to_f64());
        theta.iter().enumerate().map(term).sum()
    }
}

impl Weighted for Dirichlet {
    fn weighted(&self, f: f64) -> Self {
        Self(self.0.map(|alpha| 1.0 + f * (alpha - 1.0)))
    }
}
