//! Cross-entropy priors: make components of a block similar, or make them differ.

use nalgebra::DMatrix;
use plca_tensor::Real;
use plca_tensor::parallel::sum;

use crate::simplex_prior::{domain, fitting};
use crate::table::{Parsed, fading, groups, needed, number, settings, weights};
use crate::{PriorError, PriorRules, SimplexPrior, Step, Weighted, check_counts, columns};

/// The cross-entropy prior of the columns of a block, which are distributions: makes pairs of components similar, or makes them differ.
///
/// ```math
/// \ln p = \sum_{i < k} A_{ik} \left( H(q_i, q_k) + H(q_k, q_i) \right), \qquad H(a, b) = - \sum a \ln b
/// ```
///
/// `q_i` is column `i`, and `A` is a symmetric `K x K` matrix of weights. `A_ik > 0` makes the columns `i` and `k` differ, `A_ik < 0` makes
/// them similar. A weight is in counts: it acts against the expected counts `n_i` of a column. Or it is [`relative`](Self::relative) to the
/// data's mass per component.
///
/// A step ([`update`](SimplexPrior::update)) is one sweep over the columns, each with the newest values of the others:
///
/// ```math
/// q_i \gets \frac{\max(n_i - \sum_k A_{ik} q_k, \, 0)}{\text{sum of the numerators}}
/// ```
///
/// If no `n_i - Σ_k A_ik q_k` is negative, this maximises `n_i·ln q_i - Σ_k A_ik q_k·ln q_i`. Negative ones are clipped to 0. Then the step
/// is a heuristic, not a maximisation, and the objective of a fit may fall. With `A_ik > 0` the density is unbounded where an entry is 0,
/// so [`ln_density`](SimplexPrior::ln_density) leaves out those terms. A column in which everything is clipped keeps its value. Clipping
/// can leave entries at 0 for good; a [`floor`](Self::floor) prevents that.
///
/// Time of a step: `O(I K^2)` for a block of `I x K`. `[SPEC 8]`, `[CE]`
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_priors::{CrossEntropy, SimplexPrior, Step};
/// let counts = dmatrix![5.0, 2.0; 3.0, 4.0];
/// let mut theta = dmatrix![0.6, 0.4; 0.4, 0.6];
/// CrossEntropy::groups(&[0, 1], 2.0, 0.0)?.update(&counts, &mut theta, &Step::at(1))?;
/// assert!(theta[(0, 0)] > 0.66 && theta[(1, 1)] > 0.7);       // further apart than the counts
/// # Ok::<(), plca_priors::PriorError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CrossEntropy {
    weights: DMatrix<f64>,
    groups: Vec<usize>,
    relative: bool,
    floor: f64,
    step: CrossEntropyStep,
    order: CrossEntropyOrder,
}

/// How one column is updated, given its partners: the columns `k` with `A_ik` other than 0.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_priors::{CrossEntropy, CrossEntropyStep, SimplexPrior, Step};
/// let counts = dmatrix![1.0, 8.0; 3.0, 0.0; 4.0, 0.0];
/// let mut theta = dmatrix![0.25, 1.0; 0.25, 0.0; 0.5, 0.0];
/// let prior = CrossEntropy::groups(&[0, 1], 2.0, 0.0)?.step(CrossEntropyStep::AdditiveCorrection)?;
/// prior.update(&counts, &mut theta, &Step::at(1))?;
/// assert_eq!((theta[(1, 0)], theta[(2, 0)]), (0.4, 0.6));             // numerators -1 + 1, 3 + 1, 4 + 2
/// # Ok::<(), plca_priors::PriorError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CrossEntropyStep {
    /// Negative numerators become 0.
    #[default]
    Clipped,
    /// `q_i = (n_i + Σ a_k q_k) / (λ - Σ a_k ln q_k)` with `a_k = -A_ik`, and `λ` such that `q_i` sums to 1. It maximises the density and
    /// the counts exactly over this column. Only if no weight is positive. An entry that is 0 in a partner becomes 0.
    ExactSimilarity,
    /// Numerators `n_i - Σ_k A_ik q_k + D q_i`, with the least `D` for which none is negative, but at most 1000 times the sum of all counts
    /// of the block; what is still negative is clipped. Converges more slowly than clipping, and to other values. For comparisons.
    AdditiveCorrection,
}

/// Which columns the prior acts on in a step, and whether it uses the old or the new values of their partners.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_priors::{CrossEntropy, CrossEntropyOrder, SimplexPrior, Step};
/// let mut theta = dmatrix![0.5, 0.5; 0.5, 0.5];
/// let prior = CrossEntropy::groups(&[0, 1], 2.0, 0.0)?.order(CrossEntropyOrder::Parity);
/// prior.update(&dmatrix![2.0, 3.0; 4.0, 1.0], &mut theta, &Step::at(1))?;
/// assert_eq!(theta, dmatrix![0.25, 0.75; 0.75, 0.25]);                // the second column is only normalised
/// # Ok::<(), plca_priors::PriorError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CrossEntropyOrder {
    /// All, one after the other, with the newest values.
    #[default]
    Sequential,
    /// All, with the values from before the step.
    Simultaneous,
    /// Groups of even number at odd iterations, groups of odd number at even ones; the other columns are the normalised counts. The prior
    /// is then about half as strong.
    Parity,
}

impl CrossEntropy {
    /// The prior of groups of components: makes columns of different groups differ, with weight `between`, and columns of one group
    /// similar, with weight `within`. `[SPEC 8]` group-wise
    ///
    /// `groups[z]` is the number of the group of component `z`; there is one for every column of the block. In terms of `A`, `A_ik` is
    /// `between` for two groups and `-within` inside one.
    ///
    /// # Errors
    ///
    /// [`PriorError::Domain`] unless both weights are finite and not negative. A block with another number of columns is refused at the
    /// first step, by [`PriorError::Components`].
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_priors::{CrossEntropy, SimplexPrior, Step};
    /// let mut theta = dmatrix![0.5, 0.5; 0.5, 0.5];
    /// let alike = CrossEntropy::groups(&[0, 0], 0.0, 2.0)?;
    /// alike.update(&dmatrix![2.0, 0.5; 0.0, 1.5], &mut theta, &Step::at(1))?;
    /// assert_eq!(theta, dmatrix![0.75, 0.5; 0.25, 0.5]);
    /// # Ok::<(), plca_priors::PriorError>(())
    /// ```
    pub fn groups(groups: &[usize], between: f64, within: f64) -> Result<Self, PriorError> {
        for (name, weight) in [("between", between), ("within", within)] {
            domain(name, weight, weight.is_finite() && weight >= 0.0)?;
        }
        let k = groups.len();
        let weights = DMatrix::from_fn(k, k, |i, j| match (i == j, groups[i] == groups[j]) {
            (true, _) => 0.0,
            (_, true) => -within,
            _ => between,
        });
        Ok(Self {
            groups: groups.to_vec(),
            ..Self::of(weights)
        })
    }

    /// The prior of any symmetric `A` with zeros on the diagonal; every component is a group of its own.
    ///
    /// # Errors
    ///
    /// [`PriorError::Shape`] unless `A` is square; [`PriorError::Domain`] with the first entry that is not finite, that differs from the
    /// one across the diagonal, or that is on the diagonal and not 0.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// let first_two_differ = dmatrix![0.0, 5.0, 0.0; 5.0, 0.0, 0.0; 0.0, 0.0, 0.0];
    /// assert!(plca_priors::CrossEntropy::pairs(first_two_differ).is_ok());
    /// assert!(plca_priors::CrossEntropy::pairs(dmatrix![0.0, 5.0; 4.0, 0.0]).is_err());
    /// ```
    pub fn pairs(weights: DMatrix<f64>) -> Result<Self, PriorError> {
        let k = weights.ncols();
        fitting(weights.nrows() == k, weights.shape(), (k, k))?;
        for (i, j) in (0..k).flat_map(|i| (0..k).map(move |j| (i, j))) {
            let a = weights[(i, j)];
            let symmetric = a == weights[(j, i)] && (i != j || a == 0.0);
            domain("weights", a, a.is_finite() && symmetric)?;
        }
        Ok(Self::of(weights))
    }

    fn of(weights: DMatrix<f64>) -> Self {
        Self {
            groups: (0..weights.ncols()).collect(),
            weights,
            relative: false,
            floor: 0.0,
            step: CrossEntropyStep::default(),
            order: CrossEntropyOrder::default(),
        }
    }

    /// Makes the weights multiples of `v/K`, where `v` is the sum of the expected counts of the block and `K` the number of its columns.
    /// The same weights then suit data of any size.
    ///
    /// [`ln_density`](SimplexPrior::ln_density) cannot know `v`: it is then 0.
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_priors::{CrossEntropy, SimplexPrior, Step};
    /// let mut theta = dmatrix![0.5, 0.5; 0.5, 0.5];
    /// let prior = CrossEntropy::groups(&[0, 1], 0.25, 0.0)?.relative();
    /// prior.update(&dmatrix![2.0, 4.0; 4.0, 6.0], &mut theta, &Step::at(1))?;           // v/K = 8: a weight of 2
    /// assert_eq!((theta[(0, 0)], theta[(1, 0)]), (0.25, 0.75));
    /// # Ok::<(), plca_priors::PriorError>(())
    /// ```
    #[must_use]
    pub fn relative(mut self) -> Self {
        self.relative = true;
        self
    }

    /// Raises every entry after every step, so that entries that were clipped to 0 can grow again (default: 0, nothing is raised).
    ///
    /// ```math
    /// q \gets \frac{q + e}{1 + e I}
    /// ```
    ///
    /// `I` is the number of entries of a column, which still sums to 1. With a decreasing [`Schedule`](crate::Schedule), `1e-9` is
    /// recommended.
    ///
    /// # Errors
    ///
    /// [`PriorError::Domain`] unless `e` is finite and not negative.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_priors::{CrossEntropy, SimplexPrior, Step};
    /// let mut theta = dmatrix![0.5; 0.5];
    /// CrossEntropy::groups(&[0], 0.0, 0.0)?.floor(0.5)?.update(&dmatrix![4.0; 0.0], &mut theta, &Step::at(1))?;
    /// assert_eq!(theta, dmatrix![0.75; 0.25]);                            // (1 + e) / (1 + 2 e)
    /// # Ok::<(), plca_priors::PriorError>(())
    /// ```
    pub fn floor(mut self, e: f64) -> Result<Self, PriorError> {
        domain("floor", e, e.is_finite() && e >= 0.0)?;
        self.floor = e;
        Ok(self)
    }

    /// Sets how one column is updated (default: [`CrossEntropyStep::Clipped`]).
    ///
    /// # Errors
    ///
    /// [`PriorError::Domain`] for [`CrossEntropyStep::ExactSimilarity`] if a weight is positive.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_priors::{CrossEntropy, CrossEntropyStep};
    /// let exact = CrossEntropyStep::ExactSimilarity;
    /// assert!(CrossEntropy::groups(&[0, 0], 0.0, 2.0)?.step(exact).is_ok());
    /// assert!(CrossEntropy::groups(&[0, 1], 2.0, 0.0)?.step(exact).is_err());
    /// # Ok::<(), plca_priors::PriorError>(())
    /// ```
    pub fn step(mut self, step: CrossEntropyStep) -> Result<Self, PriorError> {
        if step == CrossEntropyStep::ExactSimilarity {
            let mut weights = self.weights.iter();
            weights.try_for_each(|&a| domain("between", a, a <= 0.0))?;
        }
        self.step = step;
        Ok(self)
    }

    /// Sets which columns the prior acts on in a step, and in which order (default: [`CrossEntropyOrder::Sequential`]).
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_priors::{CrossEntropy, CrossEntropyOrder, SimplexPrior, Step};
    /// let mut theta = dmatrix![0.5, 0.5; 0.5, 0.5];
    /// let prior = CrossEntropy::groups(&[0, 1], 2.0, 0.0)?.order(CrossEntropyOrder::Simultaneous);
    /// prior.update(&dmatrix![2.0, 4.0; 4.0, 2.0], &mut theta, &Step::at(1))?;
    /// assert_eq!(theta, dmatrix![0.25, 0.75; 0.75, 0.25]);
    /// # Ok::<(), plca_priors::PriorError>(())
    /// ```
    #[must_use]
    pub fn order(mut self, order: CrossEntropyOrder) -> Self {
        self.order = order;
        self
    }

    fn column(
        &self,
        n: &[f64],
        q: &DMatrix<f64>,
        (i, step): (usize, &Step<'_>),
        unit: f64,
        mass: f64,
    ) -> Option<Vec<f64>> {
        let partners = || (0..q.ncols()).filter(move |&k| self.weights[(i, k)] != 0.0);
        let weight = |k: usize| unit * self.weights[(i, k)];
        let mut new = n.to_vec();
        for k in partners() {
            // [CE eq. 7] [SPEC 8] n_i - Σ_k A_ik q_k
            new.iter_mut()
                .zip(&q.column(k))
                .for_each(|(x, q)| *x -= weight(k) * q);
        }
        match self.step {
            CrossEntropyStep::Clipped => {}
            CrossEntropyStep::ExactSimilarity => {
                let mut slope: Vec<f64> = (0..n.len())
                    .map(|x| partners().map(|k| weight(k) * q[(x, k)].ln()).sum())
                    .collect();
                return exact_similarity(&mut new, &mut slope).then_some(new);
            }
            CrossEntropyStep::AdditiveCorrection => {
                let own = q.column(i);
                let needed = new.iter().zip(&own).filter(|&(&x, &q)| x < 0.0 && q > 0.0);
                // [SPEC 8] n_i - α Σ q_k + D q_i, D at most 1e3 v
                let d = needed
                    .fold(0.0f64, |d, (x, q)| d.max(-x / q))
                    .min(1e3 * mass);
                new.iter_mut().zip(&own).for_each(|(x, q)| *x += d * q);
            }
        }
        // [CE eq. 7] [SPEC 8] divided by the sum of the clipped numerators
        new.iter_mut().for_each(|x| *x = x.max(0.0));
        let own: Vec<f64> = q.column(i).iter().copied().collect();
        let Some((frozen, mass)) = step.left(i, &own) else {
            return normalised(new);
        };
        // [EXT 1] free entries share what the frozen ones leave
        let entries = new.iter_mut().zip(frozen).filter(|(_, frozen)| **frozen);
        entries.for_each(|(x, _)| *x = 0.0);
        let mut new = normalised(new)?;
        for ((x, &own), &frozen) in new.iter_mut().zip(&own).zip(frozen) {
            *x = if frozen { own } else { mass * *x };
        }
        Some(new)
    }
}

/// Raises the free entries of a column, which keep their sum.
fn raise(column: &mut [f64], floor: f64, (i, step): (usize, &Step<'_>)) {
    let (frozen, mass) = match step.left(i, column) {
        Some((frozen, mass)) => (Some(frozen), mass),
        None => (None, 1.0),
    };
    let is_free = |at: usize| frozen.is_none_or(|frozen| !frozen[at]);
    let size = (0..column.len()).filter(|&at| is_free(at)).count() as f64;
    if mass > 0.0 {
        let entries = column.iter_mut().enumerate();
        for (_, x) in entries.filter(|(at, _)| is_free(*at)) {
            *x = (*x + floor) / (1.0 + floor * size / mass);
        }
    }
}

/// `None` if there is nothing to normalise.
pub(crate) fn normalised(mut q: Vec<f64>) -> Option<Vec<f64>> {
    normalise(&mut q).then_some(q)
}

/// Divides values by their sum, if there is one.
#[inline(always)]
pub(crate) fn normalise(q: &mut [f64]) -> bool {
    let sum = sum(q);
    if sum > 0.0 {
        for x in q {
            *x /= sum;
        }
    }
    sum > 0.0
}

/// Calls `f` with four entries of both at a time; what the last ones lack is 0.
#[inline(always)]
fn fours(m: &[f64], s: &[f64], mut f: impl FnMut([f64; 4], [f64; 4])) {
    let ((all_m, m), (all_s, s)) = (m.as_chunks::<4>(), s.as_chunks::<4>());
    for (m, s) in all_m.iter().zip(all_s) {
        f(*m, *s);
    }
    if !m.is_empty() {
        let mut last = [[0.0; 4]; 2];
        last[0][..m.len()].copy_from_slice(m);
        last[1][..m.len()].copy_from_slice(s);
        f(last[0], last[1]);
    }
}

/// `q = m / (λ + s)` with `Σ q = 1`, in place of `m`; `m` is kept, and false returned, where no entry has a share. [SPEC 8]
///
/// λ is counted from the largest pole, so that it loses no digits there. `1 / Σ m / (λ + s)` is a harmonic mean of lines, concave and rising in λ: Newton's
/// steps to 1 from below never pass it. They begin where one entry alone has all there is, or where all entries have their mean `s`: by Jensen's inequality
/// neither is beyond. The values of `s` are lost.
#[inline(always)]
pub(crate) fn exact_similarity(m: &mut [f64], s: &mut [f64]) -> bool {
    #[inline(always)]
    fn live(m: f64, s: f64) -> bool {
        (m > 0.0) & (s.abs() < f64::INFINITY)
    }
    let mut poles = [f64::INFINITY; 4];
    fours(
        m,
        s,
        #[inline(always)]
        |m, s| {
            for l in 0..4 {
                let pole = if live(m[l], s[l]) {
                    s[l]
                } else {
                    f64::INFINITY
                };
                poles[l] = if pole < poles[l] { pole } else { poles[l] };
            }
        },
    );
    let pole = poles.into_iter().fold(f64::INFINITY, f64::min);
    if pole == f64::INFINITY {
        return false;
    }
    for (m, s) in m.iter_mut().zip(&mut *s) {
        let live = live(*m, *s);
        *s = if live { *s - pole } else { 0.0 };
        *m = if live { *m } else { 0.0 };
    }
    let (mut most, mut sums, mut moments) = ([0.0; 4], [0.0; 4], [0.0; 4]);
    fours(
        m,
        s,
        #[inline(always)]
        |m, s| {
            for l in 0..4 {
                let alone = m[l] - s[l];
                most[l] = if alone > most[l] { alone } else { most[l] };
                sums[l] += m[l];
                moments[l] += m[l] * s[l];
            }
        },
    );
    let [sum, moment] = [sums, moments].map(|x| (x[0] + x[1]) + (x[2] + x[3]));
    let mut lambda = most.into_iter().fold(sum - moment / sum, f64::max);
    // As many as bisection would make: three or four do.
    for _ in 0..64 {
        let (mut shares, mut slopes) = ([0.0; 4], [0.0; 4]);
        fours(
            m,
            s,
            #[inline(always)]
            |m, s| {
                for l in 0..4 {
                    let over = 1.0 / (lambda + s[l]);
                    let share = m[l] * over;
                    shares[l] += share;
                    slopes[l] += share * over;
                }
            },
        );
        let [sum, slope] = [shares, slopes].map(|x| (x[0] + x[1]) + (x[2] + x[3]));
        let next = lambda + (sum - 1.0) * sum / slope;
        // The last step has lost its digits.
        if !(next > lambda && next.is_finite()) {
            break;
        }
        // The next one would be less than the square of this one.
        let last = next - lambda <= 1e-9 * lambda;
        lambda = next;
        if last {
            break;
        }
    }
    for (m, s) in m.iter_mut().zip(s) {
        *m /= lambda + *s;
    }
    normalise(m)
}

/// `groups=0/0/1/1,between=A[r],within=B[r][,decrease=T][,floor=E]`.
pub(crate) fn parse<T: Real>(text: &str, _: (usize, usize)) -> Parsed<dyn SimplexPrior<T>> {
    let names = ["groups", "between", "within", "decrease", "floor"];
    let [of, between, within, decrease, floor] = settings(text, names)?;
    let groups = groups(needed(of, "groups", text)?)?;
    let ([between, within], relative) = weights([between, within], text)?;
    let mut prior = CrossEntropy::groups(&groups, between, within)?;
    prior.relative = relative;
    if let Some(floor) = floor {
        prior = prior.floor(number(floor)?)?;
    }
    fading(prior, decrease)
}

impl PriorRules for CrossEntropy {
    fn check(&self, shape: (usize, usize)) -> Result<(), PriorError> {
        let got = self.weights.ncols();
        match got == shape.1 {
            true => Ok(()),
            false => Err(PriorError::Components {
                got,
                expected: shape.1,
            }),
        }
    }

    fn has_density(&self) -> bool {
        !self.relative
    }

    fn may_empty(&self) -> bool {
        self.floor == 0.0
    }

    /// Where clipping is all there is to a column.
    fn shares_columns(&self) -> bool {
        self.step == CrossEntropyStep::Clipped && self.order != CrossEntropyOrder::Parity
    }

    /// With weights of 0 only: clipping is not a maximisation, and the exact step for similar columns gives up an entry where a partner
    /// has none.
    fn steady(&self, _iteration: usize) -> bool {
        self.weights.iter().all(|&a| a == 0.0) && self.floor == 0.0
    }
}

impl<T: Real> SimplexPrior<T> for CrossEntropy {
    fn update(
        &self,
        counts: &DMatrix<T>,
        theta: &mut DMatrix<T>,
        step: &Step<'_>,
    ) -> Result<(), PriorError> {
        self.check(theta.shape())?;
        check_counts(counts, theta)?;
        let by_turns = self.order == CrossEntropyOrder::Parity;
        let n = columns::double(counts);
        let mut q = columns::double(theta);
        let old = (self.order == CrossEntropyOrder::Simultaneous).then(|| q.clone());
        let mass = n.sum();
        // [SPEC 5.5] [SPEC 8] v / K
        let unit = if self.relative {
            mass / n.ncols() as f64
        } else {
            1.0
        };
        for i in (0..n.ncols()).filter(|&i| !step.is_frozen(i)) {
            let counts: Vec<f64> = n.column(i).iter().copied().collect();
            let resting = by_turns && self.groups[i] % 2 == step.iteration % 2;
            let new = if resting {
                normalised(counts)
            } else {
                self.column(&counts, old.as_ref().unwrap_or(&q), (i, step), unit, mass)
            };
            if let Some(new) = new {
                q.column_mut(i).copy_from_slice(&new);
            }
        }
        if self.floor > 0.0 {
            for (i, mut column) in q.column_iter_mut().enumerate() {
                raise(column.as_mut_slice(), self.floor, (i, step));
            }
        }
        theta.iter_mut().zip(&q).for_each(|(t, &q)| *t = T::lit(q));
        Ok(())
    }

    fn ln_density(&self, theta: &DMatrix<T>, _: &Step<'_>) -> f64 {
        if self.relative {
            return 0.0;
        }
        // [SPEC 8] H(a,b) = -Σ a ln b, both ways for every pair
        let cross = |i: usize, k: usize| -> f64 {
            let pairs = theta.column(i).into_iter().zip(theta.column(k));
            let pairs = pairs.map(|(a, b)| (a.to_f64(), b.to_f64()));
            pairs.filter(|p| p.1 > 0.0).map(|(a, b)| -a * b.ln()).sum()
        };
        let columns = 0..theta.ncols();
        let pairs = columns.flat_map(|k| (0..k).map(move |i| (i, k)));
        pairs
            .filter(|&at| self.weights[at] != 0.0)
            .map(|(i, k)| self.weights[(i, k)] * (cross(i, k) + cross(k, i)))
            .sum()
    }
}

impl Weighted for CrossEntropy {
    fn weighted(&self, f: f64) -> Self {
        Self {
            weights: &self.weights * f,
            ..self.clone()
        }
    }
}

/// The mean symmetrised Kullback-Leibler divergence of the pairs of columns within and between groups, in nats; `NaN` where there is no
/// such pair.
///
/// ```math
/// \mathrm{mean}_{i < k} \sum (q_i - q_k) \ln \frac{q_i}{q_k}
/// ```
///
/// The result is `(within, between)`. `block` is `I x K`, and `groups[z]` is the group of column `z`. Entries below `1e-6` are raised to it
/// first, and the columns normalised. Time: `O(I K^2)`. `[SPEC 8]`
///
/// ```
/// use nalgebra::dmatrix;
/// let q = dmatrix![0.5, 0.5, 0.9; 0.5, 0.5, 0.1];
/// let (within, between) = plca_priors::pair_divergences(&q, &[0, 0, 1]);
/// assert!(within == 0.0 && between > 0.5);
/// ```
///
/// # Panics
///
/// If there are fewer groups than columns.
pub fn pair_divergences<T: Real>(block: &DMatrix<T>, groups: &[usize]) -> (f64, f64) {
    assert!(groups.len() >= block.ncols(), "a group for every column");
    let mut q = columns::double(block);
    for mut column in q.column_iter_mut() {
        column.iter_mut().for_each(|x| *x = x.max(1e-6));
        let sum = column.sum();
        column /= sum;
    }
    let mut sums = [(0.0, 0.0); 2];
    for (i, k) in (0..q.ncols()).flat_map(|k| (0..k).map(move |i| (i, k))) {
        let pairs = q.column(i).into_iter().zip(q.column(k));
        let divergence: f64 = pairs.map(|(a, b)| (a - b) * (a / b).ln()).sum();
        let (sum, number) = &mut sums[usize::from(groups[i] != groups[k])];
        *sum += divergence;
        *number += 1.0;
    }
    (sums[0].0 / sums[0].1, sums[1].0 / sums[1].1)
}

#[cfg(test)]
mod tests {
    use super::exact_similarity;

    /// Partners of either sign that have nothing in a row leave no slope there, and so no share.
    #[test]
    fn rows_without_a_slope_have_no_share() {
        for slope in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let mut found = [1.0, 3.0, 2.0];
            assert!(exact_similarity(&mut found, &mut [0.5, slope, 0.5]));
            assert!(
                (found[0] - 1.0 / 3.0).abs() < 1e-15 && found[1] == 0.0,
                "{found:?}"
            );
        }
        let mut none = [0.0, 3.0];
        assert!(!exact_similarity(&mut none, &mut [0.5, f64::NAN]));
        assert_eq!(none, [0.0, 3.0]);
    }

    /// Shares that differ by many orders, next to poles: entry by entry one multiplier, and 1 in all.
    #[test]
    fn one_multiplier_serves_all_entries() {
        let columns: [(&[f64], &[f64]); 5] = [
            (&[1.0, 2.0, 3.0], &[0.0, 0.0, 0.0]),
            (&[1e-12, 5.0, 1e-3], &[-40.0, 3.0, 1.0]),
            (&[1e-300, 1.0], &[-700.0, 0.0]),
            (&[1e9, 1.0, 1e-9], &[-2.0, 900.0, -2000.0]),
            (&[3.0], &[17.0]),
        ];
        for (m, s) in columns {
            let mut q = m.to_vec();
            assert!(exact_similarity(&mut q, &mut s.to_vec()));
            assert!((q.iter().sum::<f64>() - 1.0).abs() < 1e-15, "{q:?}");
            let of = |i: usize| m[i] / q[i] - s[i];
            let scale = s.iter().chain(m).fold(0.0f64, |a, x| a.max(x.abs()));
            for i in (0..m.len()).filter(|&i| q[i] > 1e-280) {
                let most = (0..m.len()).max_by(|&a, &b| q[a].total_cmp(&q[b])).unwrap();
                assert!((of(i) - of(most)).abs() < 1e-12 * scale, "{q:?}");
            }
        }
    }
}
