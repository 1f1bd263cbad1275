//! The trait of all priors on column-stochastic blocks.

use std::fmt::Debug;
use std::sync::Arc;

use nalgebra::DMatrix;
use plca_tensor::Real;

use crate::PriorSpec;

/// The reason why a prior was refused or could not be applied.
///
/// ```
/// use plca_priors::Dirichlet;
/// let error = Dirichlet::symmetric(-1.0).unwrap_err();
/// assert_eq!(error.to_string(), "`alpha` = -1 is outside the domain");
/// ```
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PriorError {
    /// A hyperparameter outside its domain.
    #[error("`{name}` = {value} is outside the domain")]
    Domain {
        /// Name of the hyperparameter.
        name: &'static str,
        /// The offending value.
        value: f64,
    },
    /// Text that describes no prior.
    #[error("`{got}`: expected {expected}")]
    Text {
        /// The text.
        got: String,
        /// What is needed in its place.
        expected: String,
    },
    /// A prior that couples the components is for another number of them.
    #[error("the prior is for {got} components, the block has {expected}")]
    Components {
        /// Of the prior.
        got: usize,
        /// Of the block.
        expected: usize,
    },
    /// A prior between columns for a block that has one.
    #[error("the prior couples neighbouring columns, the block has {columns}: expected at least 2")]
    Columns {
        /// Of the block.
        columns: usize,
    },
    /// Hyperparameters given per entry do not have the block's shape.
    #[error("hyperparameters are {}x{}, the block is {}x{}", got.0, got.1, expected.0, expected.1)]
    Shape {
        /// Rows and columns of the hyperparameters.
        got: (usize, usize),
        /// Rows and columns of the block.
        expected: (usize, usize),
    },
    /// Counts of another shape than the block that they are to update.
    #[error("counts are {}x{}, the block is {}x{}", got.0, got.1, expected.0, expected.1)]
    CountsShape {
        /// Rows and columns of the counts.
        got: (usize, usize),
        /// Rows and columns of the block.
        expected: (usize, usize),
    },
    /// A count that is negative or not finite.
    #[error("the count of row {row}, column {column} is {value}, expected a finite number >= 0")]
    Count {
        /// Row of the first such count.
        row: usize,
        /// Column of the first such count, columns before rows.
        column: usize,
        /// The count.
        value: f64,
    },
    /// Counts of one column so large that their sum is not finite.
    #[error("the counts of column {column} sum to infinity")]
    Overflow {
        /// The column.
        column: usize,
    },
}

/// Refuses a hyperparameter that is not within its domain.
pub(crate) fn domain(name: &'static str, value: f64, within: bool) -> Result<(), PriorError> {
    match within {
        true => Ok(()),
        false => Err(PriorError::Domain { name, value }),
    }
}

/// Refuses hyperparameters of shape `got` where one of `expected` is needed, unless they fit.
pub(crate) fn fitting(
    fits: bool,
    got: (usize, usize),
    expected: (usize, usize),
) -> Result<(), PriorError> {
    match fits {
        true => Ok(()),
        false => Err(PriorError::Shape { got, expected }),
    }
}

/// Refuses counts of another shape than the block that they are to update.
pub(crate) fn same_shape(got: (usize, usize), expected: (usize, usize)) -> Result<(), PriorError> {
    match got == expected {
        true => Ok(()),
        false => Err(PriorError::CountsShape { got, expected }),
    }
}

/// Refuses counts that no E-step yields, before they become parameters: for use in [`SimplexPrior::update`].
///
/// # Errors
///
/// [`PriorError::CountsShape`]; then, column by column, [`PriorError::Count`] and [`PriorError::Overflow`].
///
/// # Examples
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_priors::{PriorError, check_counts};
/// let theta = dmatrix![0.5; 0.5];
/// assert!(check_counts(&dmatrix![0.0; 2.5], &theta).is_ok());
/// let error = check_counts(&dmatrix![0.0; -2.5], &theta).unwrap_err();
/// assert_eq!(error, PriorError::Count { row: 1, column: 0, value: -2.5 });
/// ```
pub fn check_counts<T: Real>(counts: &DMatrix<T>, theta: &DMatrix<T>) -> Result<(), PriorError> {
    same_shape(counts.shape(), theta.shape())?;
    for (z, column) in counts.column_iter().enumerate() {
        let allowed = |x: &T| *x >= T::zero() && x.is_finite();
        // NaN and infinity make the sum so, and no sign can hide.
        let (mut sum, mut signs) = (T::zero(), true);
        for &x in column.iter() {
            sum += x;
            signs &= x >= T::zero();
        }
        if signs && sum.is_finite() {
            continue;
        }
        return Err(match column.iter().position(|x| !allowed(x)) {
            Some(row) => PriorError::Count {
                row,
                column: z,
                value: column[row].to_f64(),
            },
            None => PriorError::Overflow { column: z },
        });
    }
    Ok(())
}

/// The place of an M-step in a run.
///
/// ```
/// use plca_priors::Step;
/// let step = Step::at(3);
/// assert_eq!((step.iteration, step.is_frozen(0)), (3, false));
/// assert!(Step::at(3).frozen(&[true, false]).is_frozen(0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step<'a> {
    /// The iteration, counted from 1.
    pub iteration: usize,
    /// Columns that the caller keeps as they are; empty if none. A prior that couples columns must use the values that they have.
    pub frozen: &'a [bool],
    /// Entries that the caller keeps as they are, column after column; empty if none. Only a prior that [shares columns](PriorRules::shares_columns)
    /// meets them.
    pub entries: &'a [bool],
}

impl Step<'static> {
    /// The M-step of an iteration, counted from 1, with no frozen column.
    pub fn at(iteration: usize) -> Self {
        Self {
            iteration,
            frozen: &[],
            entries: &[],
        }
    }
}

impl<'a> Step<'a> {
    /// The same with frozen columns, one flag each.
    pub fn frozen(self, frozen: &'a [bool]) -> Self {
        Self { frozen, ..self }
    }

    /// The same with frozen entries, one flag each, column after column.
    pub fn entries(self, entries: &'a [bool]) -> Self {
        Self { entries, ..self }
    }

    /// Which entries of a column of this length are frozen beside free ones, and what they leave of 1, given the column; `None` if none is.
    ///
    /// ```
    /// use plca_priors::Step;
    /// let flags = [true, false, false];
    /// assert_eq!(Step::at(1).entries(&flags).left(0, &[0.25, 0.5, 0.25]), Some((&flags[..], 0.75)));
    /// assert_eq!(Step::at(1).left(0, &[0.25, 0.75]), None);
    /// ```
    pub fn left<T: Real>(&self, column: usize, values: &[T]) -> Option<(&'a [bool], f64)> {
        let rows = values.len();
        let flags = self.entries.get(column * rows..(column + 1) * rows)?;
        let frozen = values.iter().zip(flags).filter(|(_, frozen)| **frozen);
        let kept: f64 = frozen.map(|(x, _)| x.to_f64()).sum();
        // [EXT 1] m = 1 - Σ of the frozen entries
        flags
            .contains(&true)
            .then_some((flags, (1.0 - kept).max(0.0)))
    }

    /// Whether a column is frozen.
    pub fn is_frozen(&self, column: usize) -> bool {
        self.frozen.get(column).copied().unwrap_or(false)
    }
}

/// Properties of a prior that do not depend on the scalar.
pub trait PriorRules: Debug + Send + Sync {
    /// Whether the prior fits a block with these numbers of rows and columns. Default: it fits all.
    ///
    /// # Errors
    ///
    /// [`PriorError::Shape`] if not.
    fn check(&self, shape: (usize, usize)) -> Result<(), PriorError> {
        let _ = shape;
        Ok(())
    }

    /// `α - 1` of every entry of a block of this shape, where the log-density is `Σ (α - 1) ln θ` with `α >= 1` and never changes: the
    /// counts that the prior adds to those of the data. `None` (default) where it is anything else.
    ///
    /// ```
    /// use plca_priors::{Dirichlet, PriorRules};
    /// let counts = |alpha: f64| Dirichlet::symmetric(alpha).unwrap().pseudo_counts((2, 1));
    /// assert_eq!(counts(1.5).unwrap().as_slice(), [0.5, 0.5]);
    /// assert!(counts(0.5).is_none());
    /// ```
    fn pseudo_counts(&self, shape: (usize, usize)) -> Option<DMatrix<f64>> {
        let _ = shape;
        None
    }

    /// What `ln_density` of a block of this shape leaves out although it is known: the part that depends on none of the entries, such as the normaliser of a law.
    /// Default: 0.
    ///
    /// The objective that a run reports has it. Points are compared without it: beside a large constant small changes are below the last bit.
    fn ln_constant(&self, shape: (usize, usize)) -> f64 {
        let _ = shape;
        0.0
    }

    /// Whether [`ln_density`](SimplexPrior::ln_density) is the logarithm of a density. Priors whose weight follows the counts have none.
    fn has_density(&self) -> bool {
        true
    }

    /// Whether the update may set an entry to 0 whose count is positive, so that a model can lose a cell that
    /// the data have. Models then check their support after the step. Default: no.
    fn may_empty(&self) -> bool {
        false
    }

    /// Whether the update of a column heeds [`Step::entries`]: it leaves in the free entries a maximiser among those with the frozen ones as they are. Default:
    /// no; such columns are then refused.
    fn shares_columns(&self) -> bool {
        false
    }

    /// Whether from this iteration on, counted from 1, every update raises one and the same objective: the prior changes no
    /// more, and its update never lowers `Σ c ln θ + ln p(θ)`. Accelerated runs need that, as they compare objectives. Default: if it empties nothing; a prior
    /// that reads [`Step::iteration`] must say it itself.
    ///
    /// ```
    /// use plca_priors::{Entropic, PriorRules, Schedule, Scheduled};
    /// let entropic = Entropic::new(5.0)?;
    /// let fading = Scheduled::new(entropic, Schedule::Decreasing { over: 10.0 })?;
    /// assert!(entropic.steady(1));
    /// assert!(!fading.steady(10) && fading.steady(11));
    /// # Ok::<(), plca_priors::PriorError>(())
    /// ```
    fn steady(&self, iteration: usize) -> bool {
        let _ = iteration;
        !self.may_empty()
    }

    /// The same prior as data, if it has a form there. Default: none.
    fn spec(&self) -> Option<PriorSpec> {
        None
    }
}

/// A prior on the columns of a column-stochastic block.
///
/// # Laws
///
/// For counts `c >= 0` of one column, [`update`](Self::update) leaves in `theta` a maximiser over the simplex of
///
/// ```math
/// \sum_i c_i \ln \theta_i + \ln p(\theta)
/// ```
///
/// which is not worse than the `theta` it was given; where the maximiser is not unique or does not exist (no
/// counts and no opinion), `theta` keeps its value. Permuting the entries of a column, where the prior treats them alike,
/// permutes the result. The feature `laws` has a test kit for this and more.
///
/// # Examples
///
/// ```
/// use nalgebra::{DMatrix, dmatrix};
/// use plca_priors::{PriorError, PriorRules, SimplexPrior, Step, check_counts};
///
/// /// `ln p(θ) = ln θ_0` for every column: one more count for row 0.
/// #[derive(Debug)]
/// struct First;
/// impl PriorRules for First {}
/// impl SimplexPrior<f64> for First {
///     fn update(&self, counts: &DMatrix<f64>, theta: &mut DMatrix<f64>, _: &Step<'_>) -> Result<(), PriorError> {
///         check_counts(counts, theta)?;
///         for (mut theta, counts) in theta.column_iter_mut().zip(counts.column_iter()) {
///             theta.copy_from(&counts);
///             theta[0] += 1.0;
///             theta /= counts.sum() + 1.0;
///         }
///         Ok(())
///     }
///     fn ln_density(&self, theta: &DMatrix<f64>, _: &Step<'_>) -> f64 { theta.row(0).iter().map(|x| x.ln()).sum() }
/// }
///
/// let mut theta = dmatrix![0.5; 0.5];
/// First.update(&dmatrix![1.0; 2.0], &mut theta, &Step::at(1))?;
/// assert_eq!(theta, dmatrix![0.5; 0.5]);
/// # Ok::<(), PriorError>(())
/// ```
pub trait SimplexPrior<T: Real>: PriorRules {
    /// The M-step, column by column. `counts` and `theta` have one shape, `theta`'s columns sum to 1 before and after.
    ///
    /// # Errors
    ///
    /// [`PriorError::Shape`] if the prior was made for another shape; what [`check_counts`] refuses. `theta` then keeps its value.
    fn update(
        &self,
        counts: &DMatrix<T>,
        theta: &mut DMatrix<T>,
        step: &Step<'_>,
    ) -> Result<(), PriorError>;

    /// The log-density `ln p(θ)`, summed over the columns, up to a constant, as it is in force at `step`.
    fn ln_density(&self, theta: &DMatrix<T>, step: &Step<'_>) -> f64;
}

/// Shared priors are priors.
impl<P: PriorRules + ?Sized> PriorRules for Arc<P> {
    fn check(&self, shape: (usize, usize)) -> Result<(), PriorError> {
        (**self).check(shape)
    }

    fn pseudo_counts(&self, shape: (usize, usize)) -> Option<DMatrix<f64>> {
        (**self).pseudo_counts(shape)
    }

    fn ln_constant(&self, shape: (usize, usize)) -> f64 {
        (**self).ln_constant(shape)
    }

    fn has_density(&self) -> bool {
        (**self).has_density()
    }

    fn may_empty(&self) -> bool {
        (**self).may_empty()
    }

    fn shares_columns(&self) -> bool {
        (**self).shares_columns()
    }

    fn steady(&self, iteration: usize) -> bool {
        (**self).steady(iteration)
    }

    fn spec(&self) -> Option<PriorSpec> {
        (**self).spec()
    }
}

impl<T: Real, P: SimplexPrior<T> + ?Sized> SimplexPrior<T> for Arc<P> {
    fn update(
        &self,
        counts: &DMatrix<T>,
        theta: &mut DMatrix<T>,
        step: &Step<'_>,
    ) -> Result<(), PriorError> {
        (**self).update(counts, theta, step)
    }

    fn ln_density(&self, theta: &DMatrix<T>, step: &Step<'_>) -> f64 {
        (**self).ln_density(theta, step)
    }
}
