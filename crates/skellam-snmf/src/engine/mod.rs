//! The models on the engine of [`plca_fit::engine`].

mod refusal;
mod signed;
mod snmf;

pub use snmf::{Snmf, SnmfBuilder, SnmfState};
