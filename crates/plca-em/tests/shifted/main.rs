//! Shift-invariant PLCA: reference trajectories and what must hold for any data.

mod golden;
mod properties;
mod support;
