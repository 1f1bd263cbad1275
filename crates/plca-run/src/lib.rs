//! Models that a program chooses while it runs: by name, with settings by name, in either scalar.
//!
//! [`models`] is the table of them. An [`Entry`] says what a model is and makes it of a [`Request`]: an [`AnyModel`], of which [`Scalar::of`] is the trait
//! object for one scalar. A program that knows its model needs none of this.

mod entry;
mod error;
mod kind;
mod models;
mod options;
mod scalar;

pub use entry::{Entry, PriorBlock, Request};
pub use error::RunError;
pub use kind::{AnyModel, Law, Takes};
pub use models::{model, models};
pub use options::Options;
pub use scalar::Scalar;
