//! What must hold for every fit.

mod bound;
mod equivalence;
mod limits;
mod objective;
mod problem;
mod tensors;
