//! Why a model refused its settings, its start or its data.

use plca_tensor::DataError;

use crate::QpError;

/// Why a configuration was refused; see the builders.
///
/// ```
/// let error = pntf_l2::Ntf::builder(0).build().unwrap_err();
/// assert_eq!(error.to_string(), "the number of components is 0, it must be at least 1");
/// ```
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ParamError {
    /// A model needs at least one component.
    #[error("the number of components is 0, it must be at least 1")]
    NoComponents,
}

/// Why data or a start were refused or a step could not be carried out.
///
/// ```
/// use plca_tensor::{DenseTensor, Order};
/// use pntf_l2::{Pntf, PntfError};
/// let g = DenseTensor::new(vec![2, 2], vec![1.0, -2.0, 0.0, 0.0], Order::RowMajor)?;
/// assert_eq!(Pntf::builder(1).build()?.on(&g).unwrap_err(), PntfError::Total(-1.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PntfError {
    /// Data that do not sum to a positive number cannot be a distribution.
    #[error("the data sum to {0}, not to a positive number")]
    Total(f64),
    /// A column that does not sum to a positive number cannot be a distribution.
    #[error("column {column} sums to {total}, not to a positive number")]
    ColumnTotal {
        /// Which column.
        column: usize,
        /// Its sum.
        total: f64,
    },
    /// Negative data where a method needs non-negative ones.
    #[error("multiplicative updates need data >= 0, some are negative")]
    Negative,
    /// Hidden cells where a method needs complete data.
    #[error("{0} needs complete data, some cells are hidden")]
    Incomplete(&'static str),
    /// Squares of the data overflow, or what explains the data does.
    #[error("the data are too large for squared error, numbers overflow")]
    Overflow,
    /// The data have another order than the model.
    #[error("the model needs data of order {expected}, these have order {got}")]
    Order {
        /// What the model needs.
        expected: usize,
        /// What the data have.
        got: usize,
    },
    /// A mode that does not exist.
    #[error("mode {mode} does not exist, the data have order {order}")]
    Mode {
        /// As asked for.
        mode: usize,
        /// Order of the data.
        order: usize,
    },
    /// A block of the start has the wrong shape.
    #[error("initial `{block}` is {}x{}, expected {}x{}", got.0, got.1, expected.0, expected.1)]
    Shape {
        /// Name of the block.
        block: String,
        /// Rows and columns given.
        got: (usize, usize),
        /// Rows and columns needed.
        expected: (usize, usize),
    },
    /// A value in a start that is not finite, or negative where that is refused.
    #[error("initial `{block}` is {value} at ({row}, {column}), not a usable number")]
    Value {
        /// Name of the block.
        block: String,
        /// Row of the first offending value.
        row: usize,
        /// Its column.
        column: usize,
        /// The value.
        value: f64,
    },
    /// A number of factors that is not the order of the data.
    #[error("{got} initial factors for data of order {expected}")]
    Factors {
        /// Order of the data.
        expected: usize,
        /// Factors given.
        got: usize,
    },
    /// A frozen block was not given.
    #[error("`{block}` is to stay fixed but no initial value was given")]
    FixedWithoutValue {
        /// Name of the block.
        block: String,
    },
    /// The weight problem could not be solved.
    #[error("weights")]
    Weights(#[from] QpError),
    /// A stop rule that means nothing.
    #[error(transparent)]
    Stop(#[from] plca_fit::StopError),
    /// The data's own complaint.
    #[error(transparent)]
    Data(#[from] DataError),
}

impl plca_fit::Failure for PntfError {}
