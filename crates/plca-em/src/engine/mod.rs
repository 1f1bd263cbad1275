//! The models on the engine of [`plca_fit::engine`].

mod nmf;
mod plca;
mod plsa;
mod product;

pub use nmf::{Nmf, NmfBuilder, NmfState};
pub use plca::{Plca, PlcaBuilder, PlcaState};
pub use plsa::{Plsa, PlsaBuilder, PlsaState};
pub(crate) use product::check_components;
