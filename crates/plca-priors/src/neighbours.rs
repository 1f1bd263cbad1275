//! Continuity of the columns of a block along their order, or its opposite.

use std::sync::Arc;

use nalgebra::DMatrix;
use plca_tensor::Real;
use plca_tensor::parallel::{for_each_part, ln_in_place, map_in_order, sum, wide};

use crate::cross_entropy::{exact_similarity, normalise};
use crate::simplex_prior::domain;
use crate::table::{Parsed, refused, relative};
use crate::{PriorError, PriorRules, SimplexPrior, Step, Weighted, check_counts};

/// Entries that one thread takes at a time.
const PART: usize = 4096;

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

    /// One column from its counts, which it takes the place of, given its neighbours and, for [`exact`](Self::exact), their logarithms. Whether anything is
    /// left of it.
    #[inline(always)]
    fn column<T: Real>(
        &self,
        n: &mut [f64],
        weight: f64,
        near: [&[T]; 2],
        ln: &[Vec<f64>; 2],
        slopes: &mut [f64],
    ) -> bool {
        for q in near {
            // [EXT 7] n_t - α g_{t-1} - α g_{t+1}
            for (x, q) in n.iter_mut().zip(q) {
                *x -= weight * q.to_f64();
            }
        }
        if slopes.is_empty() {
            for x in &mut *n {
                *x = x.max(0.0);
            }
            return normalise(n);
        }
        slopes.fill(0.0);
        for (ln, _) in ln.iter().zip(near).filter(|(_, q)| !q.is_empty()) {
            for (s, ln) in slopes.iter_mut().zip(ln) {
                *s += weight * ln;
            }
        }
        // [EXT 7] (n + Σ a g) / (λ - Σ a ln g), a = -α
        exact_similarity(n, slopes)
    }

    /// The new values of every second column, from the `first` on, given the others.
    fn half<T: Real>(
        &self,
        counts: &DMatrix<T>,
        theta: &DMatrix<T>,
        first: usize,
        weight: f64,
        step: &Step<'_>,
    ) -> Vec<T> {
        let (rows, columns) = counts.shape();
        let mut new = vec![T::zero(); columns.saturating_sub(first).div_ceil(2) * rows];
        let each = (PART / rows).max(1);
        let logs = if self.exact && weight != 0.0 { rows } else { 0 };
        for_each_part(&mut new, each * rows, |part, new| {
            let (mut n, mut slopes) = (vec![0.0; rows], vec![0.0; logs]);
            let mut ln = [vec![0.0; logs], vec![0.0; logs]];
            wide(
                #[inline(always)]
                || {
                    for (i, new) in new.chunks_exact_mut(rows).enumerate() {
                        let t = 2 * (part * each + i) + first;
                        let near = [t.checked_sub(1), Some(t + 1)].map(|t| match t {
                            Some(t) if t < columns => &theta.as_slice()[t * rows..][..rows],
                            _ => &[],
                        });
                        if logs > 0 {
                            // The column after the last one is the one before this.
                            ln.swap(0, 1);
                            for side in usize::from(i > 0)..2 {
                                for (ln, q) in ln[side].iter_mut().zip(near[side]) {
                                    *ln = q.to_f64();
                                }
                                ln_in_place(&mut ln[side]);
                            }
                        }
                        for (n, count) in n.iter_mut().zip(&counts.as_slice()[t * rows..]) {
                            *n = count.to_f64();
                        }
                        let kept = step.is_frozen(t);
                        if kept || !self.column(&mut n, weight, near, &ln, &mut slopes) {
                            new.copy_from_slice(&theta.as_slice()[t * rows..][..rows]);
                            continue;
                        }
                        for (new, n) in new.iter_mut().zip(&n) {
                            *new = T::lit(*n);
                        }
                    }
                },
            );
        });
        new
    }
}

/// The sum of all counts.
fn total<T: Real>(counts: &DMatrix<T>) -> f64 {
    let parts = counts.as_slice().chunks(PART).collect();
    let of = |part: &[T]| {
        let part: Vec<f64> = part.iter().map(|x| x.to_f64()).collect();
        sum(&part)
    };
    map_in_order(parts, of).iter().sum()
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
    fn check(&self, (_, columns): (usize, usize)) -> Result<(), PriorError> {
        match columns {
            1 => Err(PriorError::Columns { columns }),
            _ => Ok(()),
        }
    }

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
        let (rows, columns) = counts.shape();
        if rows == 0 {
            return Ok(());
        }
        let weight = match self.relative {
            // [EXT 7] multiples of v / T
            true => self.weight * (total(counts) / columns as f64),
            false => self.weight,
        };
        // Columns of one half have their neighbours in the other.
        for first in 0..2 {
            let new = self.half(counts, theta, first, weight, step);
            let columns = theta.as_mut_slice().chunks_exact_mut(rows);
            let pairs = columns.skip(first).step_by(2).zip(new.chunks_exact(rows));
            pairs.for_each(|(column, new)| column.copy_from_slice(new));
        }
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
