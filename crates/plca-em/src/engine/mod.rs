//! The models on the engine of [`plca_fit::engine`].

mod plca;
mod product;

pub use plca::{Plca, PlcaBuilder, PlcaState};
