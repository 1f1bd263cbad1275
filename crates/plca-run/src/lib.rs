//! Models that a program chooses while it runs: by name, with settings by name, in either scalar.
//!
//! [`models`] is the table of them. An [`ModelEntry`] says what a model is and makes it of a [`Request`]: an [`AnyModel`], of which [`Scalar::of`] is the trait
//! object for one scalar. A program that knows its model needs none of this.

mod approximation;
mod entry;
mod error;
mod explain;
mod families;
mod kind;
mod models;
mod options;
mod priors;
pub mod ranks;
mod saved;
mod scalar;
mod select;
mod stream;
mod world;

pub use approximation::{Approximation, Draws};
pub use entry::{ModelEntry, Request};
pub use error::RunError;
pub use explain::{Answer, Explainer};
pub use families::{Family, families, family};
pub use kind::{AnyModel, Takes};
pub use models::{model, models};
pub use options::{Options, kernel_of};
pub use priors::{Law, PriorBlock, broadcast};
pub use saved::Saved;
pub use scalar::{Cells, Scalar, Typed};
pub use select::{Score, Scored, Sizes, Validated};
pub use stream::{Learner, Stream};

// The example of the page runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
