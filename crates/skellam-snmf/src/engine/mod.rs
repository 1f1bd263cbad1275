//! The models on the engine of [`plca_fit::engine`].

mod refusal;
mod signed;
mod snmf;
mod vb;

pub use snmf::{Snmf, SnmfBuilder, SnmfState};
pub use vb::{Candidate, SnmfVb, SnmfVbBuilder, SnmfVbState, select_components};
