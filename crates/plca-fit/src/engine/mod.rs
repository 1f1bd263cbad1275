//! One engine for every model: named blocks of parameters, and iterations that know their constraints.
//!
//! A model says what to expect ([`Expectation`]); [`Em`] does the rest.

mod algorithm;
mod block;
mod em;
mod error;
mod parameters;
pub(crate) mod solver;

pub use algorithm::{Algorithm, Sense};
pub use block::{Axis, BlockSpec, Constraint, Exposure, Frozen};
pub use em::{Counts, Em, Expectation, Renewed, Stepped, Wanted};
pub use error::FitError;
pub use parameters::Parameters;
pub use solver::{Memory, Solver};
