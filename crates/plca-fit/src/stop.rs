//! When a run stops, and why it did.

use std::time::{Duration, Instant};

/// The number of tests of a [`Stop`] rule that must be met.
///
/// ```
/// use plca_fit::{Need, Stop};
/// // Little changes, and little is wrong. [PNTF 5]
/// let both = Stop::default().tol(1e-8).residual_tol(1e-6).need(Need::All);
/// assert_eq!(Stop::default().need, Need::Any);
/// assert!(both.check().is_ok());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Need {
    /// Whichever is met first; it is the run's [`Status`].
    #[default]
    Any,
    /// All that are made, at one check; the run ends as [`Status::Converged`].
    All,
}

/// The rule that ends a run: at the first test that is met, or when all are met at once ([`need`](Self::need)).
///
/// ```math
/// \frac{| J_\text{new} - J_\text{old} |}{\text{unit} \cdot \text{iterations between the checks}} \le \text{tol},
/// \qquad \text{residual} \le \text{residual tol}
/// ```
///
/// `J` is the objective and `unit` what it sums over: for a likelihood the sum of the data, so that the change is one per count.
///
/// The iterations `0, n, 2n, …` with `n =` [`check_every`](Self::check_every) are checks: the parameters that such an iteration is given are
/// measured, and compared with the last check.
///
/// ```
/// use plca_fit::Stop;
/// let patient = Stop::default().max_iter(10_000).tol(1e-9).patience(3);
/// assert!(patient.check().is_ok());
/// assert_eq!(Stop::default().tol(None).tol, None);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Stop {
    /// Iterations at most (default 1000), those before a resumption included.
    pub max_iter: usize,
    /// The change of the objective `J` per iteration that ends a run (default 1e-7), in units of what the objective sums over: nats per count
    /// for a likelihood. `None`: no such test.
    ///
    /// ```math
    /// | J_\text{new} - J_\text{old} | \le \text{tol} \cdot \text{unit} \cdot \text{iterations between the checks}
    /// ```
    pub tol: Option<f64>,
    /// The residual of the conditions of optimality that ends a run (default `None`: no such test).
    pub residual_tol: Option<f64>,
    /// Whether one of the two tests ends a run (default), or both at one check.
    pub need: Need,
    /// Checks in a row that must find so small a change (default 1).
    pub patience: usize,
    /// Iterations from check to check (default 10).
    pub check_every: usize,
    /// The time that a run may take (default `None`). With a limit the result depends on the machine.
    pub time_limit: Option<Duration>,
}

impl Default for Stop {
    fn default() -> Self {
        Self {
            max_iter: 1000,
            tol: Some(1e-7),
            residual_tol: None,
            need: Need::Any,
            patience: 1,
            check_every: 10,
            time_limit: None,
        }
    }
}

/// Setters of fields, for a builder that is handed on.
macro_rules! setters {
    ($of:ident: $($name:ident: $value:ty;)*) => {
        impl $of {
            $(
                #[doc = concat!("Sets [`", stringify!($name), "`](field@Self::", stringify!($name), ").")]
                #[must_use]
                pub fn $name(mut self, value: $value) -> Self {
                    self.$name = value.into();
                    self
                }
            )*
        }
    };
}
pub(super) use setters;

setters! {
    Stop:
    max_iter: usize;
    tol: impl Into<Option<f64>>;
    residual_tol: impl Into<Option<f64>>;
    need: Need;
    patience: usize;
    check_every: usize;
    time_limit: impl Into<Option<Duration>>;
}

/// The end of the time that a run may take, if there is one.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Option<(Instant, Duration)>);

impl Deadline {
    /// The rest of the limit.
    pub fn left(&self) -> Option<Duration> {
        self.0
            .map(|(begun, limit)| limit.saturating_sub(begun.elapsed()))
    }

    /// Whether the time is up.
    pub fn is_past(&self) -> bool {
        self.0
            .is_some_and(|(begun, limit)| begun.elapsed() >= limit)
    }
}

impl Stop {
    /// That of a run which begins now.
    pub fn deadline(&self) -> Deadline {
        Deadline(self.time_limit.map(|limit| (Instant::now(), limit)))
    }

    /// Refuses invalid numbers.
    ///
    /// # Errors
    ///
    /// [`StopError`] with the name of the number and its value.
    pub fn check(&self) -> Result<(), StopError> {
        let tolerances = [("tol", self.tol), ("residual_tol", self.residual_tol)];
        for (name, value) in tolerances {
            if let Some(value) = value.filter(|tol| !(tol.is_finite() && *tol >= 0.0)) {
                return Err(StopError::Tolerance { name, value });
            }
        }
        let counts = [
            ("check_every", self.check_every),
            ("patience", self.patience),
        ];
        match counts.into_iter().find(|&(_, n)| n == 0) {
            Some((name, _)) => Err(StopError::Zero { name }),
            None => Ok(()),
        }
    }
}

/// The reason why a stop rule was refused.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StopError {
    /// A tolerance that is negative or not a number.
    #[error("`{name}` is {value}, expected a finite number >= 0")]
    Tolerance {
        /// Which.
        name: &'static str,
        /// Its value.
        value: f64,
    },
    /// A number of iterations or checks that is 0.
    #[error("`{name}` is 0, expected at least 1")]
    Zero {
        /// Which.
        name: &'static str,
    },
}

/// The reason why a run ended. Not converging is one of these, not an error.
///
/// ```
/// use plca_fit::Status;
/// assert_eq!(Status::MaxIterations.to_string(), "max_iterations");
/// assert!(Status::MaxIterations.is_warning() && !Status::Converged.is_warning());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Status {
    /// The objective changed by at most [`Stop::tol`], at [`Stop::patience`] checks in a row.
    Converged,
    /// The residual was at most [`Stop::residual_tol`] at a check.
    Stationary,
    /// The model has nothing left to do.
    Settled,
    /// A score on held-out data stopped improving.
    HeldOut,
    /// All [`Stop::max_iter`] iterations were used.
    MaxIterations,
    /// [`Stop::time_limit`] was reached.
    TimeLimit,
    /// An observer ended the run.
    Interrupted,
    /// An observer ended the run and said why.
    Custom(String),
}

impl Status {
    /// Whether the run was ended from outside: by the time limit, an interruption or an observer. No further start is made then.
    pub fn is_cut(&self) -> bool {
        matches!(self, Self::TimeLimit | Self::Interrupted | Self::Custom(_))
    }

    /// Whether the run ended before it converged: by the largest number of iterations or the time limit.
    pub fn is_warning(&self) -> bool {
        matches!(self, Self::MaxIterations | Self::TimeLimit)
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Converged => "converged",
            Self::Stationary => "stationary",
            Self::Settled => "settled",
            Self::HeldOut => "held_out",
            Self::MaxIterations => "max_iterations",
            Self::TimeLimit => "time_limit",
            Self::Interrupted => "interrupted",
            Self::Custom(why) => why,
        })
    }
}
