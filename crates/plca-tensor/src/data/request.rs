//! What an E-step is asked for, and what it answers.

use std::fmt::Debug;

use nalgebra::DMatrix;

use crate::DataError;

/// A set of modes, counted from 0.
///
/// ```
/// use plca_tensor::Modes;
/// let modes = Modes::one(0).with(2);
/// assert!(modes.contains(2) && !modes.contains(1));
/// assert_eq!(Modes::all(3), modes.with(1));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modes(u64);

impl Modes {
    /// No mode.
    pub const NONE: Self = Self(0);

    /// The modes below `order`, which is 64 at most.
    pub fn all(order: usize) -> Self {
        (0..order).collect()
    }

    /// One mode.
    pub fn one(mode: usize) -> Self {
        Self::NONE.with(mode)
    }

    /// These modes and one more.
    ///
    /// # Panics
    ///
    /// If `mode` is 64 or more.
    #[must_use]
    pub fn with(self, mode: usize) -> Self {
        assert!(mode < crate::MAX_ORDER, "mode {mode} of 64 at most");
        Self(self.0 | 1 << mode)
    }

    /// Whether `mode` is one of these.
    pub fn contains(self, mode: usize) -> bool {
        mode < crate::MAX_ORDER && self.0 >> mode & 1 == 1
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// A flag for each of `order` modes.
    pub(crate) fn flags(self, order: usize) -> Vec<bool> {
        assert!(
            order >= crate::MAX_ORDER || self.0 >> order == 0,
            "counts of a mode that data of order {order} do not have"
        );
        (0..order).map(|mode| self.contains(mode)).collect()
    }
}

impl FromIterator<usize> for Modes {
    fn from_iter<I: IntoIterator<Item = usize>>(modes: I) -> Self {
        modes.into_iter().fold(Self::NONE, Self::with)
    }
}

/// A likelihood of one rate per cell, as the E-step needs it.
///
/// ```math
/// C_j[i,z] = \sum_{x : x_j = i} q[x] \, w_z \prod_m F_m[x_m, z], \qquad q = \text{ratios}(v, p)
/// ```
///
/// `C_j` are the expected counts of mode `j`, `I_j x K`, of a model with the weights `w` and the factors `F_m`; `v` is the datum of a cell
/// and `p` the rate that the model gives it. With `q = v / p` they are those of Poisson counts. Other likelihoods ask twice: for the
/// numerator of a multiplicative update and for its denominator.
///
/// ```
/// use plca_tensor::CellLikelihood;
/// /// The numerator of the update under squared error: `q = v`.
/// #[derive(Debug)]
/// struct Squared;
/// impl CellLikelihood<f64> for Squared {
///     fn ratios(&self, v: &[f64], q: &mut [f64]) { q.copy_from_slice(v); }
///     fn value(&self, v: &[f64], p: &[f64]) -> f64 { v.iter().zip(p).map(|(v, p)| -(v - p).powi(2) / 2.0).sum() }
///     fn zero_is_inert(&self) -> bool { false }
/// }
/// ```
pub trait CellLikelihood<T>: Debug + Sync {
    /// Replaces the rates in `q`, one for every value of `v`, by what the factors of each cell are multiplied by. A rate may be 0, where the
    /// model gives a cell nothing; components without a share in a cell get nothing of it, whatever its ratio.
    fn ratios(&self, v: &[T], q: &mut [T]);

    /// The sum of the cells' terms of the objective, from values `v` and rates `p`.
    fn value(&self, v: &[T], p: &[T]) -> f64;

    /// Whether a cell with `v = 0` has the ratio 0 and the value 0. Then sparse data visit their entries alone.
    fn zero_is_inert(&self) -> bool;
}

/// The rule that says what an E-step makes of a cell `v` with the rate `p`.
///
/// ```math
/// \begin{aligned}
/// & C_j[i,z] = \sum_{x : x_j = i} q[x] \, w_z \prod_m F_m[x_m, z], \qquad p[x] = \sum_z w_z \prod_m F_m[x_m, z] \\
/// & \text{Poisson:} \; q = v / p \qquad \text{exposure:} \; q = 1
///   \qquad \text{gradient:} \; q = v / p \text{, the factor } F_j \text{ left out}
/// \end{aligned}
/// ```
///
/// `C_j` are the counts of mode `j`, `I_j x K`, of a model with the weights `w` and the factors `F_m`; the sum runs over the observed
/// cells.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Rule<'a, T> {
    /// `q = v / p`: expected counts `C_j[i,z] = w_z F_j[i,z] Σ_{x: x_j=i} (v/p) Π_{m≠j} F_m`. The value is `Σ v ln p`, `-inf` if a positive
    /// cell has `p = 0`.
    Poisson,
    /// `q = 1` in observed cells: the mass of the model that can be seen. The value is that mass, whose modes need not be requested.
    Exposure,
    /// As `Poisson` without the factor of the mode itself: `Σ_{x: x_j=i} (v/p) w_z Π_{m≠j} F_m`, which is the gradient of `Σ v ln p`.
    Gradient,
    /// A likelihood of your own.
    Cell(&'a dyn CellLikelihood<T>),
}

/// The results that an E-step is asked for. Ask for little: each mode costs a third of a pass, and a value one logarithm a cell.
///
/// ```
/// use plca_tensor::{Modes, Request};
/// let rows_only = Request::<f64>::counts(Modes::one(0));
/// let all_and_the_likelihood = Request::<f64>::counts(Modes::all(2)).value(true);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Request<'a, T> {
    /// The modes whose counts are wanted.
    pub modes: Modes,
    /// Whether the value is wanted.
    pub value: bool,
    /// The rule that says what a cell adds.
    pub rule: Rule<'a, T>,
    /// A power of two: of [`Rule::Poisson`] and [`Rule::Gradient`] the value is `Σ v ln (p / unit)`. Default 1.
    pub unit: f64,
    /// A power of two: counts and gradients of [`Rule::Poisson`] and [`Rule::Gradient`] are told in this unit. Default 1.
    pub count_unit: f64,
}

impl<'a, T> Request<'a, T> {
    /// Expected counts of these modes under [`Rule::Poisson`], without the value.
    pub fn counts(modes: Modes) -> Self {
        Self {
            modes,
            value: false,
            rule: Rule::Poisson,
            unit: 1.0,
            count_unit: 1.0,
        }
    }

    /// Sets whether the value is wanted too.
    #[must_use]
    pub fn value(mut self, yes: bool) -> Self {
        self.value = yes;
        self
    }

    /// Sets the unit of rates whose logarithms are summed, a power of two such as [`Data::unit`](crate::Data::unit): data and model in another
    /// unit then have the same value in that unit, bit for bit where the two differ by a power of two.
    #[must_use]
    pub fn unit(mut self, unit: f64) -> Self {
        self.unit = unit;
        self
    }

    /// Sets the unit of counts, a power of two such as [`Data::unit`](crate::Data::unit): those of the smallest entries then stay in the range of numbers
    /// whatever the data are measured in.
    #[must_use]
    pub fn count_unit(mut self, unit: f64) -> Self {
        self.count_unit = unit;
        self
    }

    /// Sets another rule.
    #[must_use]
    pub fn rule(mut self, rule: Rule<'a, T>) -> Self {
        self.rule = rule;
        self
    }
}

/// The answer of an E-step: expected counts and the value of the rule. Sums over shards of data are sums of these.
#[derive(Clone, Debug)]
pub struct Expected<T> {
    pub(crate) counts: Vec<Option<DMatrix<T>>>,
    pub(crate) value: Option<f64>,
}

impl<T: crate::Real> Expected<T> {
    /// Counts of each mode, where they were requested, in the layout of the factor; and the value.
    pub fn new(counts: Vec<Option<DMatrix<T>>>, value: Option<f64>) -> Self {
        Self { counts, value }
    }

    /// The counts of a mode, in the layout of its factor.
    ///
    /// # Panics
    ///
    /// If they were not requested.
    #[track_caller]
    pub fn counts(&self, mode: usize) -> &DMatrix<T> {
        let counts = self.get(mode);
        counts.unwrap_or_else(|| panic!("counts of mode {mode} were not requested"))
    }

    /// The counts of a mode, taken out.
    ///
    /// # Panics
    ///
    /// If they were not requested, or taken before.
    #[track_caller]
    pub fn take(&mut self, mode: usize) -> DMatrix<T> {
        let counts = self.counts.get_mut(mode).and_then(Option::take);
        counts.unwrap_or_else(|| panic!("counts of mode {mode} were not requested"))
    }

    /// The counts of a mode if they were requested.
    pub fn get(&self, mode: usize) -> Option<&DMatrix<T>> {
        self.counts.get(mode)?.as_ref()
    }

    /// The value of the rule, summed over the observed cells.
    ///
    /// # Panics
    ///
    /// If it was not requested.
    #[track_caller]
    pub fn value(&self) -> f64 {
        self.value.expect("the value was not requested")
    }

    /// Adds the statistics of another shard of the data.
    ///
    /// # Errors
    ///
    /// [`DataError::Merge`] if the two do not hold the same modes in the same shapes.
    pub fn merge(&mut self, other: &Self) -> Result<(), DataError> {
        let shapes = |e: &Self| -> Vec<_> {
            let counts = e.counts.iter();
            counts.map(|c| c.as_ref().map(DMatrix::shape)).collect()
        };
        if shapes(self) != shapes(other) || self.value.is_some() != other.value.is_some() {
            return Err(DataError::Merge);
        }
        let both = self.counts.iter_mut().flatten();
        for (mine, theirs) in both.zip(other.counts.iter().flatten()) {
            *mine += theirs;
        }
        if let (Some(mine), Some(theirs)) = (&mut self.value, other.value) {
            *mine += theirs;
        }
        Ok(())
    }
}
