//! One loop for every iterative model.
//!
//! A model implements [`Algorithm`]; [`run`] iterates it under a [`Stop`] rule, keeps the trace and tells an
//! [`Observer`] about every iteration. [`Squarem`], [`Momentum`] and [`Parabolic`] wrap an algorithm that can also
//! [`Accelerate`] and are algorithms themselves. Nothing here reads a clock, a file or a random number.
//!
//! ```
//! use plca_fit::{Algorithm, Stop, StopError, StopReason, run};
//!
//! /// Halves the distance to 3; the objective to maximise is `-(x - 3)²`.
//! struct Halving;
//! impl Algorithm for Halving {
//!     type State = f64;
//!     type Error = StopError;
//!     fn step(&self, x: &mut f64, measure: bool) -> Result<Option<f64>, StopError> {
//!         let before = measure.then(|| -(*x - 3.0).powi(2));
//!         *x += (3.0 - *x) / 2.0;
//!         Ok(before)
//!     }
//!     fn objective(&self, x: &f64) -> Result<f64, StopError> { Ok(-(*x - 3.0).powi(2)) }
//! }
//!
//! let outcome = run(&Halving, 0.0, &Stop { max_iter: 5, tol: 0.0, ..Stop::default() }, ())?;
//! assert_eq!((outcome.iterations, outcome.reason), (5, StopReason::MaxIterations));
//! assert_eq!(outcome.objective, -(3.0f64 / 32.0).powi(2));
//! # Ok::<(), StopError>(())
//! ```
//!
//! # When not to use this crate
//!
//! For optimisation in general: there is no line search, gradient or constraint here.

mod accelerate;
mod algorithm;
pub mod engine;
#[cfg(feature = "laws")]
pub mod laws;
mod observer;
mod restarts;
mod run;
mod stop;

pub use accelerate::{Accelerate, Carried, Momentum, Parabolic, Plain, Squarem};
pub use algorithm::{Algorithm, Direction, Failure};
pub use observer::{Iteration, Observer};
pub use restarts::best_of;
pub use run::{Outcome, Progress, TracePoint, run, run_from};
pub use stop::{Need, Stop, StopError, StopReason};
