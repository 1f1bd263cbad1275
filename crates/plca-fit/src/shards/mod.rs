//! Fits of data that are cut into shards.
mod partial;
mod version;

pub use partial::{Merge, Node, Partial, PartialError};
use version::Version;
