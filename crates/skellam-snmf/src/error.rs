//! Why settings, data or a start were refused.

/// Why a configuration was refused.
///
/// ```
/// use skellam_snmf::{ParamError, Snmf};
/// let error = Snmf::builder(2).floor(-1.0).build().unwrap_err();
/// assert_eq!(error, ParamError::Floor(-1.0));
/// assert_eq!(error.to_string(), "floor -1 is not a finite number >= 0");
/// ```
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ParamError {
    /// A model needs at least one component.
    #[error("the number of components is 0, it must be at least 1")]
    NoComponents,
    /// Finitely many replicates, but none.
    #[error("the number of replicates is 0, it must be at least 1")]
    NoReplicates,
    /// The floor of the factors is negative or not finite.
    #[error("floor {0} is not a finite number >= 0")]
    Floor(f64),
    /// Another number outside its range.
    #[error("{name} is {value}, not {range}")]
    Number {
        /// What it is.
        name: &'static str,
        /// Its value.
        value: f64,
        /// What it must be.
        range: &'static str,
    },
    /// A hyperparameter outside its range.
    #[error("prior `{name}` is {value} at ({row}, {column}), not {range}")]
    Prior {
        /// Which hyperparameter.
        name: &'static str,
        /// Row of the first offending value, 0 if one value stands for all.
        row: usize,
        /// Its column.
        column: usize,
        /// The value.
        value: f64,
        /// What it must be.
        range: &'static str,
    },
}

/// Why data or a start were refused, or a step could not be carried out.
///
/// Rows and columns count from 0.
///
/// ```
/// use nalgebra::dmatrix;
/// use skellam_snmf::{Replicates, Signed, Snmf, SnmfError};
/// let v = Signed::from_matrix(dmatrix![2.0, -0.5])?;
/// let counts = Snmf::builder(1).replicates(Replicates::One).build()?;
/// let error = counts.on(&v).unwrap_err();
/// assert_eq!(error, SnmfError::NotWhole { row: 0, column: 1, value: -0.5 });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SnmfError {
    /// Counts that are no whole numbers.
    #[error(
        "entry [{row}, {column}] is {value}: with finitely many replicates the data must be whole numbers"
    )]
    NotWhole {
        /// Row of the first such entry.
        row: usize,
        /// Its column.
        column: usize,
        /// Its value.
        value: f64,
    },
    /// A value beyond the domain of the likelihood.
    #[error("entry [{row}, {column}] is {value}, beyond the largest that is supported, {largest}")]
    TooLarge {
        /// Row of the first such entry.
        row: usize,
        /// Its column.
        column: usize,
        /// Its value.
        value: f64,
        /// The largest supported absolute value.
        largest: f64,
    },
    /// A block of the start or of the prior has the wrong shape.
    #[error("`{block}` is {}x{}, expected {}x{}", got.0, got.1, expected.0, expected.1)]
    Shape {
        /// Name of the block.
        block: &'static str,
        /// Rows and columns given.
        got: (usize, usize),
        /// Rows and columns needed.
        expected: (usize, usize),
    },
    /// A value in a start outside its range.
    #[error("`{block}` is {value} at ({row}, {column}), not {range}")]
    Value {
        /// Name of the block.
        block: &'static str,
        /// Row of the first offending value.
        row: usize,
        /// Its column.
        column: usize,
        /// The value.
        value: f64,
        /// What it must be.
        range: &'static str,
    },
    /// More clusters than samples, each of which can be in one only.
    #[error("{clusters} clusters need as many samples, the data have {samples}")]
    Clusters {
        /// As asked for.
        clusters: usize,
        /// Columns of the data.
        samples: usize,
    },
    /// Fewer hyperparameters than their sharing refers to.
    #[error("{got} of `{block}` given, the sharing refers to {needed}")]
    Hyperparameters {
        /// Name of the list.
        block: &'static str,
        /// Values given.
        got: usize,
        /// Values needed.
        needed: usize,
    },
    /// More numbers than there is memory for.
    #[error("`{what}`, {rows} x {columns} numbers, cannot be held")]
    Memory {
        /// What they are.
        what: &'static str,
        /// Rows.
        rows: usize,
        /// Columns.
        columns: usize,
    },
    /// An atom of a start that cannot be normalised.
    #[error("atom {component} of the start is all zeros")]
    ZeroAtom {
        /// Which component.
        component: usize,
    },
    /// The start gives probability 0 to something observed; EM can never repair a zero.
    #[error(
        "initial support: the {side} rate is 0 at [{row}, {column}] where the data are {value}"
    )]
    Support {
        /// `plus` or `minus`.
        side: &'static str,
        /// Row of the first such cell.
        row: usize,
        /// Its column.
        column: usize,
        /// The value observed there.
        value: f64,
    },
    /// A block that is to stay fixed was not given.
    #[error("`{block}` is to stay fixed but no initial value was given")]
    FixedWithoutValue {
        /// Name of the block.
        block: &'static str,
    },
    /// The best of no starts.
    #[error("the number of starts is 0, it must be at least 1")]
    NoStarts,
    /// A step left the numbers.
    #[error("`{block}` is no longer finite: the data are too large for these factors")]
    NotFinite {
        /// Name of the block.
        block: &'static str,
    },
    /// Settings that the method cannot use.
    #[error(transparent)]
    Prior(#[from] ParamError),
    /// A stop rule that means nothing.
    #[error(transparent)]
    Stop(#[from] plca_fit::StopError),
}

impl plca_fit::Failure for SnmfError {}
