//! Data of probabilistic latent-variable models, and the E-step that all models share.
//!
//! * [`DenseTensor`], [`SparseTensor`]: data of any order, `f32` or `f64`, all cells observed or some hidden, checked once and then known to be finite.
//! * [`OutOfCore`]: a sparse matrix larger than memory, read block by block from a [`BlockSource`], bit-identical.
//! * [`Data`]: the methods that models call on their data. Your own storage implements four of them.
//! * [`Cp`], [`Factor`]: a model as the data need it. [`Request`], [`Rule`], [`Expected`]: an E-step. [`CellLikelihood`]: a likelihood of your own.
//! * [`arrange`]: the same data in the order of other kernels, for coordinate descent, two rates for each cell ([`SplitRule`]) and squared error.
//!
//! ```
//! use nalgebra::dmatrix;
//! use plca_tensor::{Cp, Data, DenseTensor, Factor, Modes, Order, Request};
//!
//! let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 1.0, 3.0], Order::RowMajor)?;
//! let (w, h) = (dmatrix![0.7, 0.3; 0.3, 0.7], dmatrix![0.6, 0.4; 0.4, 0.6]);
//! let model = Cp { weights: Some(&[0.5, 0.5]), factors: &[Factor::Columns(&w), Factor::Columns(&h)] };
//! let e = v.e_step(&model, &Request::counts(Modes::all(2)).value(true))?;
//! // The E-step only redistributes the data's mass over the components.
//! assert!((e.counts(0).sum() - v.total()).abs() < 1e-12);
//! # Ok::<(), plca_tensor::DataError>(())
//! ```
//!
//! # Other crates' containers
//!
//! `nalgebra` matrices and views become a [`DenseTensor`] by `DenseTensor::try_from(m)?`, and matrices come back. With the feature `ndarray` so do arrays and
//! views of any order, with `nalgebra-sparse` its three kinds of matrix
//! become a [`SparseTensor`] and come back; `serde` saves tensors and checks what it reads.
//!
//! # When not to use this crate
//!
//! It holds no model: see `plca-em`. It is not a general tensor algebra either.

extern crate self as plca_tensor;

pub mod arrange;
mod data;
mod error;
mod exposure;
mod factor;
mod interop;
mod kernel;
#[cfg(feature = "laws")]
pub mod laws;
pub mod parallel;
mod real;
mod reconstruct;
mod scale;
#[doc(hidden)]
pub mod shift;
mod simplex;
#[cfg(feature = "proptest-support")]
pub mod strategies;
mod sum;

pub use arrange::{RowTerms, SignedModel, SignedSums, SignedWanted, SplitRule};
pub use data::{
    Block, BlockSource, CellLikelihood, Compressed, Coordinates, Data, DenseTensor, DenseView,
    Expected, ListedView, MAX_ORDER, Mask, Modes, Order, OutOfCore, Part, Request, Rule,
    SparseTensor, Summary, TileCounts, Tiling, check_counts, cut, e_step_by_visits, entries_along,
    even_ends, unobserved,
};
pub use error::{DataError, SourceError};
pub use factor::{Cp, Factor};
#[cfg(feature = "serde")]
pub use interop::checked;
pub use nalgebra;
pub use real::Real;
pub use scale::{exponent, times_power_of_two};
pub use simplex::{normalise_columns, simplex_error};
pub use sum::{CompensatedSum, above_rounding};
