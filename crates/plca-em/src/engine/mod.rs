//! The models on the engine of [`plca_fit::engine`].

mod nmf;
mod placed;
mod plca;
mod plsa;
mod product;
mod shifted;
mod transformed;

pub use nmf::{Nmf, NmfBuilder, NmfState, Update};
pub use plca::{Missing, Plca, PlcaBuilder, PlcaState};
pub use plsa::{Given, Plsa, PlsaBuilder, PlsaState};
pub(crate) use product::check_components;
pub use shifted::{Shifted, ShiftedBuilder, ShiftedState};
pub use transformed::{Transformed, TransformedBuilder, TransformedState};
