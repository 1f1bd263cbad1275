//! Data in the order that a kernel wants which no storage has: copied once, when a model meets its data, or borrowed.
//!
//! Each is made of any [`Data`](crate::Data): [`Rows`] for coordinate descent, [`Signed`] for two rates a cell, [`Products`] for squared
//! error.

mod products;
mod rows;
mod signed;

pub use products::{Memo, Products};
pub use rows::{RowTerms, Rows};
pub use signed::{Signed, SignedModel, SignedSums, SignedWanted, SplitRule};
