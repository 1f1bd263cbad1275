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
//! What signatures use is here too: [`tensor`] for data, [`priors`], [`nalgebra`] and [`seed`] for random numbers.
//!
//! ```
//! use pntf_l2::priors::Penalty;
//! use pntf_l2::tensor::{DenseTensor, Order};
//! use pntf_l2::{Model, Ntf, Reconstruct, seed};
//! let v = DenseTensor::new(vec![2, 2], vec![1.0, 2.0, 3.0, 6.0], Order::RowMajor)?;
//! let sparse = Penalty::new(2.0, 0.0)?;
//! let ntf = Ntf::new(1).prior("factor_0", sparse).prior("factor_1", sparse);
//! let fit = ntf.fit(&v, &mut seed(0))?;
//! assert!(fit.state().cell(&[1, 1]) < 5.9);               // 6 without the penalty
//! # Ok::<(), Box<dyn std::error::Error>>(())
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

pub use nalgebra;
pub use plca_priors as priors;
pub use plca_tensor as tensor;

pub use columns::{ColumnNmf, ColumnNmfState};
pub use mixture::MixtureState;
pub use ntf::{Ntf, NtfState, NtfUpdate};
pub use plca_fit::{
    Checkpoint, Event, Explained, Factored, Fit, FitError, Init, Interrupt, Iteration, Model, Need,
    Observer, Parameters, Reconstruct, Run, Settings, Solver, Start, State, Status, Stop,
    StopError, TracePoint, Transform, seed,
};
pub use pntf::{Pntf, PntfState};
pub use projection::{Projection, ProjectionError, project_onto_simplex, project_with};
pub use qp::{QpError, SimplexSolution, simplex_qp};

plca_fit::share!(Ntf, Pntf);
