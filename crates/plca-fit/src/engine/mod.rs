//! One engine for every model: named blocks of parameters, and iterations that know their constraints.
//!
//! A model says what to expect ([`Expectation`]); [`Em`] does the rest.

mod algorithm;
mod anneal;
mod block;
mod cool;
mod em;
mod error;
mod fit;
mod init;
mod layout;
mod model;
mod parameters;
mod prior;
mod reconstruct;
mod run;
mod separable;
mod settings;
pub(crate) mod solver;
mod stop;
mod transform;

pub use algorithm::{Algorithm, Sense};
pub use anneal::Anneal;
pub use block::{Axis, BlockSpec, Constraint, Draw, Exposure, Frozen};
pub use cool::Cooling;
pub use em::{Counts, Em, Expectation, Renewed, Stepped, Wanted};
pub use error::FitError;
pub use fit::{Checkpoint, Event, Fit, TracePoint};
pub use init::{Init, Start, begin};
pub use layout::FileLayout;
pub use model::{AnyModel, Model, State};
pub use parameters::{Parameters, SCALE};
pub use prior::Prior;
pub use reconstruct::{Reconstruct, dense, one_component};
pub use run::{Iteration, Observer, Run};
pub use separable::{Plan, Separable, pseudo_counts, refuse};
pub use settings::Settings;
pub use solver::fast::{Product, transpose_to};
pub use solver::{Memory, Solver, Steps};
pub use stop::{Need, Status, Stop, StopError};
pub use transform::{
    Explained, Impossible, Transform, certify, check_shape, empty, gap, gaps, possible, reached,
    share, uncertified,
};
