//! Non-negative data for probabilistic latent-variable models, and the one E-step behind them.
//!
//! * [`DenseTensor`], [`SparseTensor`], [`MaskedTensor`], [`MaskedSparse`]: data of any order, `f32` or `f64`,
//!   checked once and then known to be finite and non-negative.
//! * [`OutOfCore`]: a sparse matrix larger than memory, read block by block from a [`BlockSource`], with the same bits.
//! * [`Observed`]: what every model asks of its data, implemented by all five.
//! * [`RealTensor`]: data of any sign for squared-error models, and their product with a Khatri-Rao product.
//! * [`Model`], [`Factor`]: what the data ask of a model.
//! * [`RowProblems`]: the data row by row, for coordinate descent.
//! * [`SignedMatrix`], [`SignedCells`], [`Signed`], [`SplitRule`]: the same for data of either sign and two rates a cell.
//!
//! ```
//! use nalgebra::dmatrix;
//! use plca_tensor::{DenseTensor, Factor, Model, Observed, Order, Wanted};
//!
//! let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 1.0, 3.0], Order::RowMajor)?;
//! let (w, h) = (dmatrix![0.7, 0.3; 0.3, 0.7], dmatrix![0.6, 0.4; 0.4, 0.6]);
//! let model = Model { weights: Some(&[0.5, 0.5]), factors: &[Factor::Columns(&w), Factor::Columns(&h)] };
//! let e = v.expect(&model, Wanted { modes: &[true, true], ln_lik: true });
//! // The E-step only redistributes the data's mass over the components.
//! assert!((e.counts[0].as_ref().unwrap().sum() - v.total()).abs() < 1e-12);
//! # Ok::<(), plca_tensor::TensorError>(())
//! ```
//!
//! # Other crates' containers
//!
//! `nalgebra` matrices and views become a [`DenseTensor`], and matrices come back. With the feature `ndarray` so do arrays and
//! views of any order (a [`MaskedTensor`] takes NaN for hidden), with `nalgebra-sparse` its three kinds of matrix
//! become a [`SparseTensor`] and come back; `serde` saves tensors and checks what it reads.
//!
//! # When not to use this crate
//!
//! It holds no model: see `plca-em`. It is no general tensor algebra either.

mod dense;
mod error;
mod exposure;
mod factor;
mod interop;
mod kernel;
mod masked;
mod observed;
mod out_of_core;
pub mod parallel;
mod real;
mod real_tensor;
mod row_problems;
mod signed;
mod signed_cells;
mod simplex;
mod sparse;
#[cfg(feature = "proptest-support")]
pub mod strategies;
mod sum;

pub use dense::{DenseTensor, MAX_ORDER, Order};
pub use error::{SourceError, TensorError};
pub use factor::{Factor, Model};
#[cfg(feature = "serde")]
pub use interop::checked;
pub use masked::{MaskedSparse, MaskedTensor};
pub use nalgebra;
pub use observed::{Expected, Mask, Observed, Wanted};
pub use out_of_core::{Block, BlockSource, OutOfCore, TileCounts, Tiling};
pub use real::Real;
pub use real_tensor::{Memo, RealTensor};
pub use row_problems::{RowProblems, RowTerms};
pub use signed::{Signed, SignedMatrix, SignedModel, SignedSums, SignedWanted, SplitRule};
pub use signed_cells::SignedCells;
pub use simplex::{divide_columns, divide_rows, normalise_columns, simplex_error};
pub use sparse::{Coordinates, SparseTensor};
pub use sum::CompensatedSum;
