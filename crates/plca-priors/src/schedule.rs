//! Priors whose weight changes from iteration to iteration.

use std::fmt::Debug;
use std::sync::Arc;

use nalgebra::DMatrix;
use plca_tensor::Real;

use crate::{PriorError, SimplexPrior};

/// A factor on the weight of a prior at iteration 1, 2, ….
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

    /// Whether the factor changes no more from an iteration on, counted from 1.
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
            Self::Decreasing { over } | Self::Increasing { over }
                if !(over.is_finite() && over > 0.0) =>
            {
                Err(PriorError::Domain {
                    name: "over",
                    value: over,
                })
            }
            _ => Ok(()),
        }
    }
}

/// A prior `p` that can also be had as `p^f`: everything it asks for, `f` times as strongly.
///
/// ```
/// use plca_priors::{Dirichlet, Weighted};
/// assert_eq!(Dirichlet::symmetric(3.0)?.weighted(0.5), Dirichlet::symmetric(2.0)?);
/// # Ok::<(), plca_priors::PriorError>(())
/// ```
pub trait Weighted: Sized {
    /// `p^f`, `f >= 0`; `f = 0` is the flat prior.
    #[must_use]
    fn weighted(&self, f: f64) -> Self;
}

/// A prior under a [`Schedule`]: at iteration `it` it is `p^f(it)`.
///
/// It acts through [`at`](SimplexPrior::at) alone. Which iteration it is `update` does not know and refuses
/// ([`NoIteration`](PriorError::NoIteration)); `ln_density` is NaN.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_priors::{Entropic, Schedule, Scheduled, SimplexPrior};
/// let prior = Scheduled::new(Entropic::new(5.0)?, Schedule::Decreasing { over: 10.0 })?;
/// let (counts, mut theta) = (dmatrix![3.0; 1.0], dmatrix![0.5; 0.5]);
/// let late = SimplexPrior::<f64>::at(&prior, 11).expect("it depends on the iteration");
/// late.update(&counts, &mut theta)?;
/// assert_eq!(theta, dmatrix![0.75; 0.25]);                    // by then nothing is left of it
/// # Ok::<(), plca_priors::PriorError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scheduled<P> {
    prior: P,
    schedule: Schedule,
}

impl<P> Scheduled<P> {
    /// `prior` under `schedule`.
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

impl<T, P> SimplexPrior<T> for Scheduled<P>
where
    T: Real,
    P: SimplexPrior<T> + Weighted + 'static,
{
    /// Refused: see [`Scheduled`].
    fn update(&self, _counts: &DMatrix<T>, _theta: &mut DMatrix<T>) -> Result<(), PriorError> {
        Err(PriorError::NoIteration)
    }

    fn ln_density(&self, _theta: &DMatrix<T>) -> f64 {
        f64::NAN
    }

    fn check(&self, rows: usize, columns: usize) -> Result<(), PriorError> {
        self.prior.check(rows, columns)
    }

    fn at(&self, iteration: usize) -> Option<Arc<dyn SimplexPrior<T>>> {
        let now = self.prior.weighted(self.schedule.factor(iteration));
        Some(now.at(iteration).unwrap_or_else(|| Arc::new(now)))
    }

    fn may_empty(&self) -> bool {
        self.prior.may_empty()
    }

    fn steady(&self, iteration: usize) -> bool {
        let now = self.prior.weighted(self.schedule.factor(iteration));
        self.schedule.settled(iteration) && now.steady(iteration)
    }
}
