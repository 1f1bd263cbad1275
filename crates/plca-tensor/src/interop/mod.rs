//! Data from and to other crates' containers; all but `nalgebra` behind the feature of their name.

#[cfg(feature = "serde")]
pub mod checked;
mod nalgebra;
#[cfg(feature = "nalgebra-sparse")]
mod nalgebra_sparse;
#[cfg(feature = "ndarray")]
mod ndarray;
#[cfg(feature = "serde")]
mod serde;
