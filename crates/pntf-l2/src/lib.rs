//! Probabilistic non-negative factorization under squared error.
//!
//! * [`Pntf`]: weights and factors of any order on the simplex, dense, sparse and masked data.
//! * [`ColumnNmf`]: matrices whose columns are distributions of their own.
//! * [`PntfState::explain`], [`NtfState::explain`]: new data as mixtures or sums of learned components.
//! * [`Ntf`]: unconstrained baselines, multiplicative or column by column.
//! * [`simplex_qp`]: the small quadratic programme over the simplex, with a certified gap.
//! * [`project_onto_simplex`]: the nearest point of a simplex of any radius, by three methods.
//!
//! ```
//! use pntf_l2::project_onto_simplex;
//! let mut b = [0.9, 0.6, -1.0];
//! project_onto_simplex(&mut b, 1.0)?;
//! assert!((b[0] - 0.65f64).abs() < 1e-15 && (b[1] - 0.35).abs() < 1e-15 && b[2] == 0.0);
//! # Ok::<(), pntf_l2::ProjectionError>(())
//! ```
//!
//! # When not to use this crate
//!
//! For counts: their noise is not the same in every cell, see `plca-em`.

mod columns;
pub mod engine;
mod error;
mod init;
mod ntf;
mod pntf;
mod projection;
pub mod propositions;
mod qp;
mod sweep;
mod transform;

pub use columns::{ColumnNmf, ColumnNmfBuilder, ColumnNmfInit, ColumnNmfState, ColumnNmfSweep};
pub use error::{ParamError, PntfError};
pub use init::Start;
pub use ntf::{Ntf, NtfBuilder, NtfState, NtfSweep, NtfUpdate};
pub use plca_fit::{
    Accelerate, Algorithm, Carried, Direction, Momentum, Need, Outcome, Parabolic, Progress,
    Squarem, Stop, StopReason, TracePoint, best_of, run, run_from,
};
pub use pntf::{Pntf, PntfBuilder, PntfInit, PntfState, PntfSweep};
pub use projection::{Projection, ProjectionError, project_onto_simplex, project_with};
pub use qp::{QpError, SimplexQp, simplex_qp};
pub use transform::{Coefficients, Mixture};
