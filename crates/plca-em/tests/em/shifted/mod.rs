//! Shift-invariant PLCA: reference trajectories and what must hold for any data.

mod agreement;
mod bad_input;
mod borders;
mod explicit;
mod golden;
mod inside;
mod powers;
pub(crate) mod properties;
mod rounding;
mod structure;
pub(crate) mod support;
