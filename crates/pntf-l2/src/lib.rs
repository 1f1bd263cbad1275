//! Probabilistic non-negative factorization under squared error.
//!
//! * [`Pntf`]: weights and factors of any order on the simplex, dense, sparse and masked data.
//! * [`ColumnNmf`]: matrices each of whose columns is a distribution.
//! * [`Ntf`]: unconstrained baselines, multiplicative or column by column.
//! * [`PntfState::transform`], [`ColumnNmfState::transform`], [`NtfState::transform`]: new data as mixtures or sums of learnt components.
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

mod blocks;
mod columns;
mod deflation;
mod exact;
mod mixture;
mod ntf;
mod observations;
mod pntf;
mod projection;
mod qp;
mod sweep;

pub use columns::{ColumnNmf, ColumnNmfState};
pub use mixture::MixtureState;
pub use ntf::{Ntf, NtfState, NtfUpdate};
pub use plca_fit::{
    Checkpoint, Event, Explained, Factored, Fit, FitError, Init, Interrupt, Iteration, Model, Need,
    Observer, Parameters, Reconstruct, Run, Settings, Solver, Start, State, Status, Stop,
    StopError, TracePoint, Transform,
};
pub use pntf::{Pntf, PntfState};
pub use projection::{Projection, ProjectionError, project_onto_simplex, project_with};
pub use qp::{QpError, SimplexQp, simplex_qp};

plca_fit::share!(Ntf, Pntf);
