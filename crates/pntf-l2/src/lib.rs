//! Probabilistic non-negative factorization under squared error.
//!
//! * [`project_onto_simplex`]: the nearest point of a simplex of any radius, by three methods.
//! * [`simplex_qp`]: the small quadratic programme over the simplex, with a certified gap.
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

mod projection;
mod qp;

pub use projection::{
    Projection, ProjectionError, project_by_active_set, project_by_sorting, project_by_threshold,
    project_onto_simplex, project_with,
};
pub use qp::{QpError, SimplexQp, simplex_qp};
