//! Priors whose weight changes from iteration to iteration.

use nalgebra::DMatrix;
use plca_tensor::Real;

use crate::simplex_prior::domain;
use crate::{PriorError, PriorRules, SimplexPrior, Step};

/// The factor on the weight of a prior at iteration 1, 2, ….
///
/// ```
/// use plca_priors::Schedule;
/// let schedule = Schedule::Increasing { over: 4.0 };
/// assert_eq!([1, 3, 9].map(|iteration| schedule.factor(iteration)), [0.0, 0.5, 1.0]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Schedule {
    /// 1 throughout.
    Constant,
    /// `max(0, 1 - (it - 1)/T)`: none from iteration `T + 1` on. `[SPEC 8]`
    Decreasing {
        /// Iterations until the weight is 0, `T`.
        over: f64,
    },
    /// `min(1, (it - 1)/T)`: all from iteration `T + 1` on.
    Increasing {
        /// Iterations until the weight is full, `T`.
        over: f64,
    },
}

impl Schedule {
    /// The factor at an iteration, counted from 1; within `[0, 1]`.
    ///
    /// ```
    /// use plca_priors::Schedule;
    /// let schedule = Schedule::Decreasing { over: 4.0 };
    /// assert_eq!([1, 2, 5, 9].map(|it| schedule.factor(it)), [1.0, 0.75, 0.0, 0.0]);
    /// ```
    pub fn factor(self, iteration: usize) -> f64 {
        let done = |over: f64| iteration.saturating_sub(1) as f64 / over;
        match self {
            Self::Constant => 1.0,
            // [SPEC 8] w(it) = max(0, 1 - (it - 1)/T)
            Self::Decreasing { over } => (1.0 - done(over)).clamp(0.0, 1.0),
            Self::Increasing { over } => done(over).clamp(0.0, 1.0),
        }
    }

    /// Whether the factor stays constant from an iteration on, counted from 1.
    ///
    /// ```
    /// use plca_priors::Schedule;
    /// let schedule = Schedule::Decreasing { over: 4.0 };
    /// assert_eq!([1, 4, 5].map(|it| schedule.settled(it)), [false, false, true]);
    /// ```
    pub fn settled(self, iteration: usize) -> bool {
        match self {
            Self::Constant => true,
            Self::Decreasing { .. } => self.factor(iteration) == 0.0,
            Self::Increasing { .. } => self.factor(iteration) == 1.0,
        }
    }

    fn check(self) -> Result<(), PriorError> {
        match self {
            Self::Constant => Ok(()),
            Self::Decreasing { over } | Self::Increasing { over } => {
                domain("over", over, over.is_finite() && over > 0.0)
            }
        }
    }
}

/// A prior `p` with a version `p^f`: the same prior, `f` times as strong.
///
/// ```
/// use plca_priors::{Dirichlet, Weighted};
/// assert_eq!(Dirichlet::symmetric(3.0)?.weighted(0.5), Dirichlet::symmetric(2.0)?);
/// # Ok::<(), plca_priors::PriorError>(())
/// ```
pub trait Weighted: Sized {
    /// The prior to a power, `p^f` with `f >= 0`; `f = 0` is the flat prior.
    #[must_use]
    fn weighted(&self, f: f64) -> Self;
}

/// A prior under a [`Schedule`], whose weight changes from iteration to iteration.
///
/// ```math
/// p_{it}(\theta) = p(\theta)^{f(it)}
/// ```
///
/// `it` is the iteration, counted from 1, and `f` the factor of the schedule.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_priors::{Entropic, Schedule, Scheduled, SimplexPrior, Step};
/// let prior = Scheduled::new(Entropic::new(5.0)?, Schedule::Decreasing { over: 10.0 })?;
/// let (counts, mut theta) = (dmatrix![3.0; 1.0], dmatrix![0.5; 0.5]);
/// prior.update(&counts, &mut theta, &Step::at(11))?;
/// assert_eq!(theta, dmatrix![0.75; 0.25]);                    // by then nothing is left of it
/// # Ok::<(), plca_priors::PriorError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scheduled<P> {
    prior: P,
    schedule: Schedule,
}

impl<P> Scheduled<P> {
    /// The prior `prior` under `schedule`.
    ///
    /// # Errors
    ///
    /// [`PriorError::Domain`] unless the schedule lasts a positive, finite number of iterations.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_priors::{Dirichlet, Schedule, Scheduled};
    /// let prior = Dirichlet::symmetric(3.0)?;
    /// assert!(Scheduled::new(prior.clone(), Schedule::Constant).is_ok());
    /// assert!(Scheduled::new(prior, Schedule::Decreasing { over: 0.0 }).is_err());
    /// # Ok::<(), plca_priors::PriorError>(())
    /// ```
    pub fn new(prior: P, schedule: Schedule) -> Result<Self, PriorError> {
        schedule.check()?;
        Ok(Self { prior, schedule })
    }
}

impl<P: Weighted> Scheduled<P> {
    /// The prior as it is in force.
    fn now(&self, iteration: usize) -> P {
        self.prior.weighted(self.schedule.factor(iteration))
    }
}

impl<P: PriorRules + Weighted> PriorRules for Scheduled<P> {
    fn check(&self, shape: (usize, usize)) -> Result<(), PriorError> {
        self.prior.check(shape)
    }

    fn has_density(&self) -> bool {
        self.prior.has_density()
    }

    fn may_empty(&self) -> bool {
        self.prior.may_empty()
    }

    fn shares_columns(&self) -> bool {
        self.prior.shares_columns()
    }

    fn steady(&self, iteration: usize) -> bool {
        self.schedule.settled(iteration) && self.now(iteration).steady(iteration)
    }
}

impl<T: Real, P: SimplexPrior<T> + Weighted> SimplexPrior<T> for Scheduled<P> {
    fn update(
        &self,
        counts: &DMatrix<T>,
        theta: &mut DMatrix<T>,
        step: &Step<'_>,
    ) -> Result<(), PriorError> {
        self.now(step.iteration).update(counts, theta, step)
    }

    fn ln_density(&self, theta: &DMatrix<T>, step: &Step<'_>) -> f64 {
        self.now(step.iteration).ln_density(theta, step)
    }
}
