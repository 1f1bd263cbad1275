//! What must hold for every fit.

mod bound;
mod equivalence;
mod everywhere;
mod limits;
mod objective;
pub(crate) mod problem;
mod tensors;
