//! Why data or a model were refused.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// The reason why a tensor, a mask or a set of factors was refused.
///
/// Every variant names the place and the value, so that a message can be shown as it is.
///
/// ```
/// use plca_tensor::{DenseTensor, Order, DataError};
/// let error = DenseTensor::new(vec![2, 2], vec![1.0, f64::NAN, -1.0, 0.0], Order::RowMajor).unwrap_err();
/// assert!(matches!(error, DataError::NotFinite { index, .. } if index == [0, 1]));
/// ```
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// A tensor needs at least one mode.
    #[error("a tensor of order 0 has no cells")]
    OrderZero,
    /// More modes than [`MAX_ORDER`](crate::MAX_ORDER).
    #[error("a tensor of order {order}, the largest order is {}", crate::MAX_ORDER)]
    Order {
        /// The modes as given.
        order: usize,
    },
    /// A mode of size 0.
    #[error("mode {mode} is empty (shape {shape:?})")]
    EmptyMode {
        /// Which mode.
        mode: usize,
        /// The shape as given.
        shape: Vec<usize>,
    },
    /// A mode larger than `u32::MAX`, or a dense shape whose cells cannot be counted.
    #[error("shape {shape:?} is too large")]
    TooLarge {
        /// The shape as given.
        shape: Vec<usize>,
    },
    /// The number of values is not the product of the shape.
    #[error("shape {shape:?} needs {expected} values, got {got}")]
    Length {
        /// The shape as given.
        shape: Vec<usize>,
        /// Product of the shape.
        expected: usize,
        /// Values given.
        got: usize,
    },
    /// Stored entries without one index for each mode.
    #[error("{values} stored values of a tensor of {order} modes need {} index numbers, got {got}", .values * .order)]
    Indices {
        /// Values given.
        values: usize,
        /// The modes of the tensor.
        order: usize,
        /// Index numbers given.
        got: usize,
    },
    /// A negative value where a model takes numbers `>= 0`: see [`check_counts`](crate::check_counts).
    #[error("entry {index:?} is {value}, not a finite number >= 0")]
    Negative {
        /// Index of the first negative entry, one number per mode.
        index: Vec<usize>,
        /// Its value.
        value: f64,
    },
    /// An infinite value, or a NaN that does not mark a hidden cell.
    #[error("entry {index:?} is {value}, not a finite number")]
    NotFinite {
        /// Index of the first offending entry, one number per mode.
        index: Vec<usize>,
        /// Its value.
        value: f64,
    },
    /// A coordinate outside the shape.
    #[error("stored entry {position} has index {index} in mode {mode}, outside 0..{size}")]
    OutOfRange {
        /// Position among the stored entries, from 0.
        position: usize,
        /// Which mode.
        mode: usize,
        /// The coordinate.
        index: usize,
        /// Size of that mode.
        size: usize,
    },
    /// A stored index that is negative, or larger than any size.
    #[error(
        "stored entry {position} has an index in mode {mode} that is negative or too large, outside 0..{size}"
    )]
    NoIndex {
        /// Position among the stored entries, from 0.
        position: usize,
        /// Which mode.
        mode: usize,
        /// Size of that mode.
        size: usize,
    },
    /// Neither the rows nor the columns of a matrix are said to be compressed.
    #[error("the compressed mode is {outer}, expected 0 for rows or 1 for columns")]
    Outer {
        /// The mode as given.
        outer: usize,
    },
    /// Bounds of the runs of compressed data that do not rise from 0 to the number of entries, one more than there are runs.
    #[error("the bounds of run {run} must increase and lie within the {stored} stored entries")]
    Runs {
        /// The first such run; their number, where it is not a single one.
        run: usize,
        /// Stored entries.
        stored: usize,
    },
    /// Two things that must have one shape have two.
    #[error("{what} has shape {got:?}, expected {expected:?}")]
    Shape {
        /// What was given.
        what: &'static str,
        /// Its shape.
        got: Vec<usize>,
        /// The shape it must have.
        expected: Vec<usize>,
    },
    /// A tensor of another order where a matrix is needed.
    #[error("a tensor of shape {shape:?} is not a matrix")]
    NotAMatrix {
        /// Its shape.
        shape: Vec<usize>,
    },
    /// Entries so large that their sum, or what a model of counts makes of it, has no finite value.
    #[error("the entries sum to {total:e}, beyond what the scalar type can hold")]
    Overflow {
        /// Their sum.
        total: f64,
    },
    /// Data that are read block by block could not be read: what their source says, or a block that does not belong to the matrix.
    #[error(transparent)]
    Source(SourceError),
    /// Statistics of different modes, or of different shapes, cannot be added.
    #[error("the statistics have different modes or shapes")]
    Merge,
    /// No observed cell is positive where a model needs mass: see [`check_counts`](crate::check_counts).
    #[error("no observed entry is positive: there is nothing to fit")]
    NoMass,
    /// All cells are hidden.
    #[error("no entry was observed: there is nothing to fit")]
    NothingObserved,
}

impl DataError {
    pub(crate) fn too_large(shape: &[usize]) -> Self {
        let shape = shape.to_vec();
        Self::TooLarge { shape }
    }
}

/// The reason why a source of data failed: its own error, with what caused it. Two are equal if they say the same.
///
/// ```
/// use std::error::Error;
/// use std::io;
/// use plca_tensor::SourceError;
/// let torn = io::Error::other("the tape is torn");
/// let error = SourceError::new(torn);
/// assert_eq!(error.to_string(), "the tape is torn");
/// assert!(error.get_ref().is::<io::Error>());
/// ```
#[derive(Clone, Debug)]
pub struct SourceError(Arc<dyn Error + Send + Sync>);

impl SourceError {
    /// Of an error, or of a message.
    pub fn new(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(error.into().into())
    }

    /// The error itself, to look at its type.
    pub fn get_ref(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.0
    }
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for SourceError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

impl PartialEq for SourceError {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}
