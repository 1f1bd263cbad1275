//! What the loop asks of a method.

use crate::{StopError, StopReason};

/// Whether the objective should rise or fall.
///
/// ```
/// use plca_fit::Direction;
/// assert!(Direction::Maximise.not_worse(-1.0, -2.0));
/// assert!(!Direction::Minimise.not_worse(-1.0, -2.0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// A likelihood, a posterior, a bound.
    Maximise,
    /// A divergence, a squared error.
    Minimise,
}

impl Direction {
    /// Whether `new` is at least as good as `old`; never for NaN.
    ///
    /// ```
    /// use plca_fit::Direction;
    /// assert!(Direction::Minimise.not_worse(1.0, 1.0));
    /// assert!(!Direction::Minimise.not_worse(f64::NAN, 1.0));
    /// ```
    pub fn not_worse(self, new: f64, old: f64) -> bool {
        match self {
            Self::Maximise => new >= old,
            Self::Minimise => new <= old,
        }
    }
}

/// What a method fails with.
pub trait Failure: std::error::Error + From<StopError> {
    /// Whether another point may fare better, as where a model loses the support of the data. An accelerated method then drops the point that
    /// it tried; any other error, such as data that cannot be read, ends the run. Default: it may.
    fn rejects_point(&self) -> bool {
        true
    }

    /// `None` for an error that rejects the point.
    ///
    /// # Errors
    ///
    /// All others.
    fn unless_rejected<O>(tried: Result<O, Self>) -> Result<Option<O>, Self> {
        match tried {
            Ok(reached) => Ok(Some(reached)),
            Err(error) if error.rejects_point() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Failure for StopError {}

/// One iterative method on one set of data. The state holds all that changes.
///
/// ```
/// use plca_fit::{Algorithm, Direction, Stop, StopError, StopReason, run};
///
/// /// Newton's method for the square root of 2; the objective to minimise is `|x² - 2|`.
/// struct Heron;
/// impl Algorithm for Heron {
///     type State = f64;
///     type Error = StopError;
///     fn step(&self, x: &mut f64, measure: bool) -> Result<Option<f64>, StopError> {
///         let before = measure.then(|| (*x * *x - 2.0).abs());
///         *x = (*x + 2.0 / *x) / 2.0;
///         Ok(before)
///     }
///     fn objective(&self, x: &f64) -> Result<f64, StopError> { Ok((x * x - 2.0).abs()) }
///     fn direction(&self) -> Direction { Direction::Minimise }
///     fn residual(&self, x: &f64) -> Result<Option<f64>, StopError> { self.objective(x).map(Some) }
/// }
///
/// let stop = Stop { check_every: 1, residual_tol: Some(1e-12), ..Stop::default() };
/// let outcome = run(&Heron, 2.0, &stop, ())?;
/// assert_eq!(outcome.reason, StopReason::Stationary);
/// assert!((outcome.state - 2f64.sqrt()).abs() < 1e-12);
/// # Ok::<(), StopError>(())
/// ```
pub trait Algorithm {
    /// Parameters and everything else that an iteration changes.
    type State: Clone;
    /// Why the numbers would be unusable. Not converging is no error. A method without a residual is stopped by none:
    /// [`StopError::NoResidual`] is among them.
    type Error: Failure;

    /// One iteration; if `measure`, also the objective of the state it was *given* (which comes free with the
    /// iteration in EM-like methods).
    ///
    /// # Errors
    ///
    /// If the state cannot be improved into usable numbers. An accelerated iteration is several steps: where one of them fails, the
    /// state is that of an earlier one or that from before the iteration.
    fn step(&self, state: &mut Self::State, measure: bool) -> Result<Option<f64>, Self::Error>;

    /// The objective of a state.
    ///
    /// # Errors
    ///
    /// As [`step`](Self::step).
    fn objective(&self, state: &Self::State) -> Result<f64, Self::Error>;

    /// Whether the objective rises (default) or falls.
    fn direction(&self) -> Direction {
        Direction::Maximise
    }

    /// How far the state is from satisfying the optimality conditions (of Karush, Kuhn and Tucker), `>= 0`; 0 at a stationary
    /// point, whatever the length of the steps that lead there. `None` (default) where the method has no such measure; a run
    /// that is to stop by it then ends with [`StopError::NoResidual`].
    ///
    /// For a distribution `θ` whose log-likelihood has the gradient `v g`, `v` the mass of the data, the conditions are `g = 1`
    /// where `θ > 0` and `g <= 1` where `θ = 0`; the models of `plca-em` return `max |θ (g - 1)|`, a probability. `[SPEC 1.1]`
    ///
    /// # Errors
    ///
    /// As [`step`](Self::step).
    fn residual(&self, _state: &Self::State) -> Result<Option<f64>, Self::Error> {
        Ok(None)
    }

    /// Makes the most of the state that a run ends with, unless it ends for its residual, was interrupted or has not begun. Default: nothing.
    /// A run that goes on from there must have the bits of one that never ended, and another call must change nothing more.
    /// [`Squarem`](crate::Squarem), [`Parabolic`](crate::Parabolic) and [`Momentum`](crate::Momentum) do not ask for it.
    ///
    /// # Errors
    ///
    /// As [`step`](Self::step).
    fn finish(&self, _state: &mut Self::State) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Why the method itself has nothing left to do, for instance because a held-out score fell; `None` (default) while it has.
    /// Asked after every iteration.
    fn finished(&self, _state: &Self::State) -> Option<StopReason> {
        None
    }
}

impl<A: Algorithm> Algorithm for &A {
    type State = A::State;
    type Error = A::Error;

    fn step(&self, state: &mut A::State, measure: bool) -> Result<Option<f64>, A::Error> {
        (**self).step(state, measure)
    }

    fn objective(&self, state: &A::State) -> Result<f64, A::Error> {
        (**self).objective(state)
    }

    fn direction(&self) -> Direction {
        (**self).direction()
    }

    fn residual(&self, state: &A::State) -> Result<Option<f64>, A::Error> {
        (**self).residual(state)
    }

    fn finish(&self, state: &mut A::State) -> Result<(), A::Error> {
        (**self).finish(state)
    }

    fn finished(&self, state: &A::State) -> Option<StopReason> {
        (**self).finished(state)
    }
}
