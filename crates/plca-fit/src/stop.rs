//! When to stop.

use std::fmt;

/// When [`run`](crate::run) stops: whichever test is met first, or where all are met ([`need`](Self::need)). The tests do not depend on
/// each other.
///
/// The iterations `0, n, 2n, …` with `n =` [`check_every`](Self::check_every) are checks: the state that such an iteration is
/// given is measured, and compared with what the last check measured.
///
/// ```
/// use plca_fit::Stop;
/// let patient = Stop { max_iter: 10_000, tol: 1e-9, patience: 3, ..Stop::default() };
/// assert!(patient.check().is_ok());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct Stop {
    /// Iterations at most (default 1000), those before a resumption included; 0 returns the start. Of an accelerated algorithm
    /// an iteration is one of its own, which takes several of the algorithm inside. Met: [`StopReason::MaxIterations`].
    pub max_iter: usize,
    /// Stops when the objective `J` changed little from one check to the next, over [`check_every`](Self::check_every)
    /// iterations; relative, without a unit (default 1e-6). Met: [`StopReason::Converged`].
    ///
    /// ```text
    /// |J_new - J_old| <= tol |J_new|
    /// ```
    ///
    /// `J` is what [`Algorithm::objective`](crate::Algorithm::objective) returns: in `plca-em` a log-likelihood in nats plus the
    /// logarithms of the priors, or the divergence itself for NMF. So the test is not per iteration, not of the parameters and
    /// not of the distance to the optimum; a scale of the data does not matter, but `|J|` of a likelihood hardly falls while the
    /// divergence, a small difference of large numbers, may still change by much. The absolute change allowed is `tol |J|`: for
    /// a fit to within `d` nats of the data's own entropy, take `tol` well below `d / |J|`.
    ///
    /// On a plateau the default ends a run far from the optimum. To ask for more, lower `tol` to 1e-9 or less, raise
    /// `patience`, or set `residual_tol`, which does not depend on the length of steps. 0: no such test, so that a run without a
    /// `residual_tol` takes `max_iter` iterations, unless the algorithm has [nothing left to do](crate::Algorithm::finished) or an
    /// observer ends it. Where an algorithm measures no objective at a check, nothing is compared. `[SPEC 1.1]`
    pub tol: f64,
    /// Checks in a row that must find so small a change (default 1). More of them pass over short plateaus. Of no effect if
    /// [`tol`](Self::tol) is 0.
    pub patience: usize,
    /// Iterations from check to check (default 10); the objective is computed at checks alone.
    pub check_every: usize,
    /// Also stops when [`Algorithm::residual`](crate::Algorithm::residual), how far the state is from the optimality conditions, is
    /// at most this at a check, before its iteration (default `None`: no such test, which costs a pass over the data each).
    /// Met: [`StopReason::Stationary`].
    ///
    /// The unit is the algorithm's: in `plca-em` a probability, `max |θ (g - 1)|` over the parameters `θ` with `g` the gradient of
    /// the log-likelihood per unit of mass: take it small beside `1/I`, the mean of a column of `I` entries. Where the algorithm has no
    /// such measure the run ends with [`StopError::NoResidual`]. `[SPEC 1.1]`
    pub residual_tol: Option<f64>,
    /// Whether one of the two tests, of the change and of the residual, ends a run (the default), or both at one check. A test that is
    /// not made is no part of it.
    pub need: Need,
}

/// How many of the tests of a [`Stop`] rule must be met.
///
/// ```
/// use plca_fit::{Need, Stop};
/// // Little changes, and little is wrong. [PNTF 5]
/// let both = Stop { tol: 1e-8, residual_tol: Some(1e-6), need: Need::All, ..Stop::default() };
/// assert_eq!(Stop::default().need, Need::Any);
/// assert!(both.check().is_ok());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Need {
    /// Whichever is met first; it is the run's [`StopReason`].
    #[default]
    Any,
    /// All that are made, at one check; the run ends as [`StopReason::Converged`].
    All,
}

impl Default for Stop {
    fn default() -> Self {
        Self {
            max_iter: 1000,
            tol: 1e-6,
            patience: 1,
            check_every: 10,
            residual_tol: None,
            need: Need::Any,
        }
    }
}

/// Why a stop rule was refused.
///
/// ```
/// use plca_fit::{Stop, StopError};
/// assert_eq!(Stop { tol: -1.0, ..Stop::default() }.check(), Err(StopError::Tolerance(-1.0)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StopError {
    /// A tolerance that is negative or not a number.
    #[error("tolerance {0} is not a finite number >= 0")]
    Tolerance(f64),
    /// Checks every 0 iterations.
    #[error("the number of iterations between checks is 0")]
    CheckEvery,
    /// A change that no check need find.
    #[error("the patience is 0 checks")]
    Patience,
    /// A [`residual_tol`](Stop::residual_tol) for an algorithm that has no [residual](crate::Algorithm::residual), as with a prior.
    #[error(
        "residual tolerance {0}: there is no residual of the optimality conditions to compare with it"
    )]
    NoResidual(f64),
}

impl Stop {
    /// Refuses tolerances that mean nothing.
    ///
    /// # Errors
    ///
    /// [`StopError`] with the offending value.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_fit::{Stop, StopError};
    /// assert_eq!(Stop { check_every: 0, ..Stop::default() }.check(), Err(StopError::CheckEvery));
    /// ```
    pub fn check(&self) -> Result<(), StopError> {
        for tol in [Some(self.tol), self.residual_tol].into_iter().flatten() {
            if !(tol.is_finite() && tol >= 0.0) {
                return Err(StopError::Tolerance(tol));
            }
        }
        if self.check_every == 0 {
            return Err(StopError::CheckEvery);
        }
        if self.patience == 0 {
            return Err(StopError::Patience);
        }
        Ok(())
    }
}

/// Why a run ended. Not converging is one of these, not an error.
///
/// ```
/// use plca_fit::StopReason;
/// assert_eq!(StopReason::MaxIterations.to_string(), "max_iterations");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum StopReason {
    /// The objective changed by at most [`Stop::tol`], relatively, at [`Stop::patience`] checks in a row.
    Converged,
    /// The residual of the optimality conditions was at most [`Stop::residual_tol`] at a check.
    Stationary,
    /// All [`Stop::max_iter`] iterations were used, and nothing else ended the run.
    MaxIterations,
    /// A score on held-out data stopped improving: [`Algorithm::finished`](crate::Algorithm::finished) said so.
    HeldOut,
    /// An [`Observer`](crate::Observer) asked for it.
    Interrupted,
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Converged => "converged",
            Self::Stationary => "stationary",
            Self::MaxIterations => "max_iterations",
            Self::HeldOut => "held_out",
            Self::Interrupted => "interrupted",
        })
    }
}
