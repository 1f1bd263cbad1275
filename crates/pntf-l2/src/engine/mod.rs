//! The models on the engine of [`plca_fit::engine`].
//!
//! They minimise a squared error, block after block, each with the newest others. None has priors.

mod blocks;
mod columns;
mod exact;
mod mixture;
mod ntf;
mod pntf;

pub use columns::{ColumnNmf, ColumnNmfBuilder, ColumnNmfState};
pub use mixture::MixtureState;
pub use ntf::{Ntf, NtfBuilder, NtfState};
pub use pntf::{Pntf, PntfBuilder, PntfState};
