//! Continuity of the columns of a block along their order, or its opposite.

use std::sync::Arc;

use nalgebra::DMatrix;
use plca_tensor::Real;

use crate::cross_entropy::{exact_similarity, normalised};
use crate::simplex_prior::domain;
use crate::table::{Parsed, refused, relative};
use crate::{PriorError, PriorRules, SimplexPrior, Step, Weighted, check_counts, columns};

/// The cross-entropy prior of neighbouring columns, which are distributions: makes each similar to the one before and the one after it, or makes
/// them differ. For the mixtures of samples that lie in time.
///
/// ```math
/// \ln p = \alpha \sum_t \left( H(g_t, g_{t+1}) + H(g_{t+1}, g_t) \right), \qquad H(a, b) = - \sum a \ln b
/// ```
///
/// `g_t` is column `t`. `α < 0` asks for continuity, `α > 0` for the opposite; it is in counts, or [`relative`](Self::relative) to the counts of a
/// column. A step renews the even columns, then the odd ones:
///
/// ```math
/// g_t \gets \frac{\max(n_t - \alpha g_{t-1} - \alpha g_{t+1}, \, 0)}{\text{sum of the numerators}}
/// ```
///
/// `n_t` are the counts of column `t`. With `α < 0` nothing is clipped, and a column without counts becomes the mean of its neighbours. The step is not the
/// maximum under the prior, which [`exact`](Self::exact) finds. Time of a step: `O(K T)` for a block of `K x T`. `[EXT 7]`
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_priors::{Neighbours, SimplexPrior, Step};
/// let counts = dmatrix![4.0, 0.0, 2.0; 0.0, 0.0, 2.0];
/// let mut theta = dmatrix![0.5, 0.5, 0.5; 0.5, 0.5, 0.5];
/// Neighbours::new(-1.0)?.update(&counts, &mut theta, &Step::at(1))?;
/// assert!((theta - dmatrix![0.9, 0.7, 0.5; 0.1, 0.3, 0.5]).amax() < 1e-15);           // the silent one lies between
/// # Ok::<(), plca_priors::PriorError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Neighbours {
    weight: f64,
    relative: bool,
    exact: bool,
}

impl Neighbours {
    /// The prior of weight `α`, in counts.
    ///
    /// # Errors
    ///
    /// [`PriorError::Domain`] unless it is finite.
    ///
    /// ```
    /// use plca_priors::Neighbours;
    /// assert!(Neighbours::new(-2.0).is_ok() && Neighbours::new(f64::NAN).is_err());
    /// ```
    pub fn new(weight: f64) -> Result<Self, PriorError> {
        domain("weight", weight, weight.is_finite())?;
        Ok(Self {
            weight,
            relative: false,
            exact: false,
        })
    }

    /// Makes the weight a multiple of `v/T`, where `v` is the sum of the expected counts of the block and `T` the number of its columns. There is no
    /// density then.
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_priors::{Neighbours, SimplexPrior, Step};
    /// let mut theta = dmatrix![0.5, 0.5; 0.5, 0.5];
    /// let prior = Neighbours::new(-0.5)?.relative();
    /// prior.update(&dmatrix![3.0, 0.0; 0.0, 1.0], &mut theta, &Step::at(1))?;             // v/T = 2: a weight of -1
    /// assert_eq!(theta[(0, 0)], 3.5 / 4.0);
    /// # Ok::<(), plca_priors::PriorError>(())
    /// ```
    #[must_use]
    pub fn relative(mut self) -> Self {
        self.relative = true;
        self
    }

    /// Maximises exactly over every column, given its neighbours: no step lowers the posterior, unless an entry of a neighbour is 0.
    ///
    /// ```math
    /// g_t = \frac{n_t - \alpha (g_{t-1} + g_{t+1})}{\lambda + \alpha (\ln g_{t-1} + \ln g_{t+1})}, \qquad \lambda \text{ such that } \sum g_t = 1
    /// ```
    ///
    /// # Errors
    ///
    /// [`PriorError::Domain`] for a positive weight.
    ///
    /// ```
    /// use plca_priors::Neighbours;
    /// assert!(Neighbours::new(-2.0)?.exact().is_ok() && Neighbours::new(2.0)?.exact().is_err());
    /// # Ok::<(), plca_priors::PriorError>(())
    /// ```
    pub fn exact(mut self) -> Result<Self, PriorError> {
        domain("weight", self.weight, self.weight <= 0.0)?;
        self.exact = true;
        Ok(self)
    }

    /// One column, given its neighbours.
    fn column(&self, n: &[f64], q: &DMatrix<f64>, t: usize, weight: f64) -> Option<Vec<f64>> {
        let neighbours = [t.checked_sub(1), Some(t + 1).filter(|&t| t < q.ncols())];
        let neighbours = || neighbours.into_iter().flatten();
        let mut new = n.to_vec();
        for other in neighbours() {
            // [EXT 7] n_t - α g_{t-1} - α g_{t+1}
            for (x, q) in new.iter_mut().zip(q.column(other).iter()) {
                *x -= weight * q;
            }
        }
        if self.exact && weight != 0.0 {
            let slope = |z: usize| neighbours().map(|k| weight * q[(z, k)].ln()).sum();
            let slopes: Vec<f64> = (0..n.len()).map(slope).collect();
            // [EXT 7] (n + Σ a g) / (λ - Σ a ln g), a = -α
            return exact_similarity(&new, &slopes);
        }
        new.iter_mut().for_each(|x| *x = x.max(0.0));
        normalised(new)
    }
}

/// `A[r][,exact]`.
pub(crate) fn parse<T: Real>(text: &str, _: (usize, usize)) -> Parsed<dyn SimplexPrior<T>> {
    let (weight, exact) = match text.split_once(',') {
        None => (text, false),
        Some((weight, "exact")) => (weight, true),
        Some((_, other)) => return Err(refused(other, "`exact`, or nothing")),
    };
    let (weight, is_relative) = relative(weight)?;
    let mut prior = Neighbours::new(weight)?;
    if is_relative {
        prior = prior.relative();
    }
    if exact {
        prior = prior.exact()?;
    }
    Ok(Arc::new(prior))
}

impl PriorRules for Neighbours {
    fn has_density(&self) -> bool {
        !self.relative
    }

    /// Where entries are clipped, or 0 in a neighbour.
    fn may_empty(&self) -> bool {
        self.weight > 0.0 || self.exact
    }

    /// With a weight of 0 only: the step without [`exact`](Self::exact) is not a maximisation, and that one gives up an entry where a neighbour has none.
    fn steady(&self, _iteration: usize) -> bool {
        self.weight == 0.0
    }
}

impl<T: Real> SimplexPrior<T> for Neighbours {
    fn update(
        &self,
        counts: &DMatrix<T>,
        theta: &mut DMatrix<T>,
        step: &Step<'_>,
    ) -> Result<(), PriorError> {
        check_counts(counts, theta)?;
        let n = columns::double(counts);
        let mut q = columns::double(theta);
        let weight = match self.relative {
            // [EXT 7] multiples of v / T
            true => self.weight * (n.sum() / n.ncols() as f64),
            false => self.weight,
        };
        for first in 0..2 {
            let turn = (first..n.ncols()).step_by(2);
            for t in turn.filter(|&t| !step.is_frozen(t)) {
                if let Some(new) = self.column(n.column(t).as_slice(), &q, t, weight) {
                    q.column_mut(t).copy_from_slice(&new);
                }
            }
        }
        theta.iter_mut().zip(&q).for_each(|(t, &q)| *t = T::lit(q));
        Ok(())
    }

    fn ln_density(&self, theta: &DMatrix<T>, _: &Step<'_>) -> f64 {
        if self.relative {
            return 0.0;
        }
        let cross = |i: usize, k: usize| -> f64 {
            let pairs = theta.column(i).into_iter().zip(theta.column(k));
            let pairs = pairs.map(|(a, b)| (a.to_f64(), b.to_f64()));
            pairs.filter(|p| p.1 > 0.0).map(|(a, b)| -a * b.ln()).sum()
        };
        // [EXT 7] Σ_t α (H(g_t, g_{t+1}) + H(g_{t+1}, g_t))
        let pairs = (1..theta.ncols()).map(|t| cross(t - 1, t) + cross(t, t - 1));
        self.weight * pairs.sum::<f64>()
    }
}

impl Weighted for Neighbours {
    fn weighted(&self, f: f64) -> Self {
        Self {
            weight: f * self.weight,
            ..*self
        }
    }
}
