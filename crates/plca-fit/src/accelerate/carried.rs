//! A state with what an accelerated run remembers.

use crate::{Algorithm, Direction, StopReason};

/// Parameters, and what the next accelerated iteration needs of earlier ones: points, packed as by
/// [`pack`](super::Accelerate::pack), and a few numbers. Nothing before the first iteration.
///
/// ```
/// use plca_fit::Carried;
/// let state = Carried::new(0.5);
/// let (points, numbers) = state.to_parts();
/// assert!(points.is_empty() && numbers.is_empty());
/// assert_eq!(Carried::from_parts(0.5, points.to_vec(), numbers.to_vec()), state);
/// assert_eq!(state.into_inner(), 0.5);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Carried<S> {
    pub(super) state: S,
    pub(super) points: Vec<Vec<f64>>,
    pub(super) numbers: Vec<f64>,
}

impl<S> Carried<S> {
    /// The start of a run.
    pub fn new(state: S) -> Self {
        Self {
            state,
            points: Vec::new(),
            numbers: Vec::new(),
        }
    }

    /// The parameters.
    pub fn inner(&self) -> &S {
        &self.state
    }

    /// The parameters alone.
    pub fn into_inner(self) -> S {
        self.state
    }

    /// What a checkpoint keeps besides the parameters.
    pub fn to_parts(&self) -> (&[Vec<f64>], &[f64]) {
        (&self.points, &self.numbers)
    }

    /// The state that [`to_parts`](Self::to_parts) took apart. Parts that do not fit the parameters are forgotten by the next iteration.
    pub fn from_parts(state: S, points: Vec<Vec<f64>>, numbers: Vec<f64>) -> Self {
        Self {
            state,
            points,
            numbers,
        }
    }

    pub(super) fn forget(&mut self) {
        self.points.clear();
        self.numbers.clear();
    }
}

/// An algorithm that remembers nothing, among those that do; it forgets what they knew.
///
/// ```
/// # use plca_fit::{Algorithm, Carried, Plain, Stop, StopError, run};
/// # struct Halving;
/// # impl Algorithm for Halving {
/// #     type State = f64;
/// #     type Error = StopError;
/// #     fn step(&self, x: &mut f64, measure: bool) -> Result<Option<f64>, StopError> {
/// #         let before = measure.then(|| -(*x - 3.0).powi(2));
/// #         *x += (3.0 - *x) / 2.0;
/// #         Ok(before)
/// #     }
/// #     fn objective(&self, x: &f64) -> Result<f64, StopError> { Ok(-(*x - 3.0).powi(2)) }
/// # }
/// let stop = Stop { max_iter: 5, tol: 0.0, ..Stop::default() };
/// let outcome = run(&Plain(Halving), Carried::new(0.0), &stop, ())?;
/// assert_eq!(outcome.state.into_inner(), run(&Halving, 0.0, &stop, ())?.state);
/// # Ok::<(), StopError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Plain<A>(pub A);

impl<A: Algorithm> Algorithm for Plain<A> {
    type State = Carried<A::State>;
    type Error = A::Error;

    fn step(&self, carried: &mut Self::State, measure: bool) -> Result<Option<f64>, A::Error> {
        // What an accelerated run remembers is not on the way to where this leads.
        carried.forget();
        self.0.step(&mut carried.state, measure)
    }

    fn objective(&self, carried: &Self::State) -> Result<f64, A::Error> {
        self.0.objective(&carried.state)
    }

    fn direction(&self) -> Direction {
        self.0.direction()
    }

    fn residual(&self, carried: &Self::State) -> Result<Option<f64>, A::Error> {
        self.0.residual(&carried.state)
    }

    fn finish(&self, carried: &mut Self::State) -> Result<(), A::Error> {
        self.0.finish(&mut carried.state)
    }

    fn finished(&self, carried: &Self::State) -> Option<StopReason> {
        self.0.finished(&carried.state)
    }
}
