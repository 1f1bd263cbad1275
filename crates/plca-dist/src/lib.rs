//! Scalar mathematics of probabilistic factorization: reproducible draws and divergences.
//!
//! Everything takes and returns `f64`. Draws are defined by this crate alone, bit for bit, from the 64-bit numbers of
//! any generator, so that a seed means the same for every version of `rand`.

mod divergence;
mod error;
pub mod random;

pub use divergence::{kl_term, x_ln_x};
pub use error::DistError;
