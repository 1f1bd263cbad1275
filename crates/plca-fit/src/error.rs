//! Why a model cannot be fitted.

use plca_priors::PriorError;
use plca_tensor::DataError;

use super::shards::PartialError;
use super::{Start, StopError};

/// The reason why a model, its parameters or a step was refused. What it comes from is its [source](std::error::Error::source), which its text does not repeat: print
/// the whole chain, as `{:#}` of `anyhow` does.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FitError {
    /// The data were refused, or could not be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A prior refused its block or its counts.
    #[error("prior on `{block}`")]
    Prior {
        /// Name of the block.
        block: String,
        /// Why.
        source: PriorError,
    },
    /// Statistics of shards that are not a sum over all of them.
    #[error(transparent)]
    Shards(#[from] PartialError),
    /// Another number of blocks than the model has.
    #[error("{got} blocks, expected {}", .expected.join(", "))]
    Count {
        /// How many there are.
        got: usize,
        /// Their names.
        expected: Vec<String>,
    },
    /// Other blocks than the model has.
    #[error("the blocks are {}, expected {}", .got.join(", "), .expected.join(", "))]
    Blocks {
        /// Their names.
        got: Vec<String>,
        /// Those that the model has.
        expected: Vec<String>,
    },
    /// A setting out of its range.
    #[error("`{name}` is {value}, expected {expected}")]
    Setting {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: f64,
        /// Its range.
        expected: &'static str,
    },
    /// Settings, or settings and data, that exclude each other.
    #[error("{what}")]
    Conflict {
        /// Which, and what to do instead.
        what: String,
    },
    /// A block of another shape.
    #[error("`{block}` is {}x{}, expected {}x{}", got.0, got.1, expected.0, expected.1)]
    Shape {
        /// Name of the block.
        block: String,
        /// Its rows and columns.
        got: (usize, usize),
        /// Those that the model has.
        expected: (usize, usize),
    },
    /// A value that is negative or not finite.
    #[error("`{block}` has {value} in row {row}, column {column}, expected a finite number >= 0")]
    Value {
        /// Name of the block.
        block: String,
        /// Row of the first such value, rows before columns.
        row: usize,
        /// Its column.
        column: usize,
        /// The value.
        value: f64,
    },
    /// A value outside the range of its block.
    #[error("`{block}` has {value} in row {row}, column {column}, expected {expected}")]
    Range {
        /// Name of the block.
        block: String,
        /// Row of the first such value, rows before columns.
        row: usize,
        /// Its column.
        column: usize,
        /// The value.
        value: f64,
        /// The range.
        expected: &'static str,
    },
    /// A cell of the data that the model cannot have drawn.
    #[error("entry {index:?} is {value}, expected {expected}")]
    Entry {
        /// The first such cell.
        index: Vec<usize>,
        /// Its value.
        value: f64,
        /// What the model expects.
        expected: String,
    },
    /// A column that is not a distribution.
    #[error("column {column} of `{block}` sums to {sum}, expected 1")]
    Sum {
        /// Name of the block.
        block: String,
        /// The first such column.
        column: usize,
        /// Its sum.
        sum: f64,
    },
    /// A frozen component that a block does not have.
    #[error(
        "there is no component {component} in `{block}`, which has {components}, counted from 0"
    )]
    Component {
        /// Name of the block.
        block: String,
        /// The component, counted from 0.
        component: usize,
        /// How many there are.
        components: usize,
    },
    /// Frozen entries that share their columns with free ones under a prior that knows whole columns only.
    #[error(
        "`{block}` has columns with frozen and free entries, but its prior supports whole columns only: freeze whole columns, or leave out the prior"
    )]
    FrozenUnderPrior {
        /// Name of the block.
        block: String,
    },
    /// What is maximised changes from one iteration to the next, or is no density that can be compared, so that it cannot guard an extrapolation.
    #[error(
        "the prior on `{block}` is no constant density from iteration {iteration} on, so that solvers cannot extrapolate: expected one that is, or the solver em"
    )]
    Unsteady {
        /// Name of the block of the prior.
        block: String,
        /// The iteration that comes next, counted from 1.
        iteration: usize,
    },
    /// A block is raised to a power that still moves towards 1, so that nothing guards an extrapolation yet.
    #[error(
        "the power of `{block}` still changes at iteration {iteration}, so that solvers cannot extrapolate"
    )]
    Annealing {
        /// Name of the block.
        block: String,
        /// The iteration that comes next, counted from 1.
        iteration: usize,
    },
    /// A frozen block that a start does not give.
    #[error("`{block}` is frozen, but the start does not give it")]
    NotGiven {
        /// Name of the block.
        block: String,
    },
    /// A given column without mass, which cannot be normalised.
    #[error("column {column} of `{block}` is all zeros, expected a distribution")]
    Empty {
        /// Name of the block.
        block: String,
        /// The first such column.
        column: usize,
    },
    /// A given block of Dirichlet shapes that are probabilities.
    #[error(
        "the columns of `{block}` sum to 1 as probabilities do, and {value} in row {row}, column {column} is below its prior's {prior}: expected shapes, which are the prior plus counts, such as {prior} + 1000 times the probability where a component has 1000 counts"
    )]
    Probabilities {
        /// Name of the block.
        block: String,
        /// Row of the first entry below its prior, rows before columns.
        row: usize,
        /// Its column.
        column: usize,
        /// The entry.
        value: f64,
        /// The prior's shape there.
        prior: f64,
    },
    /// A block that the model does not have.
    #[error("no block is called `{name}`, expected {}", .expected.join(", "))]
    UnknownBlock {
        /// The name.
        name: String,
        /// Those that the model has.
        expected: Vec<String>,
    },
    /// A stop rule that compares a residual, where there is none.
    #[error("{why}: the residual is not defined, so no tolerance can be set for it")]
    NoResidual {
        /// Why.
        why: String,
    },
    /// A stop rule that means nothing.
    #[error(transparent)]
    Stop(#[from] StopError),
    /// A checkpoint of another run.
    #[error("the checkpoint belongs to another run: {what}")]
    Checkpoint {
        /// What does not fit.
        what: String,
    },
    /// A mode that a model does not have.
    #[error("there is no mode {mode}, the model has {modes}, counted from 0")]
    Mode {
        /// The mode, counted from 0.
        mode: usize,
        /// How many there are.
        modes: usize,
    },
    /// A component that a model does not have.
    #[error("there is no component {component}, the model has {components}, counted from 0")]
    NoComponent {
        /// The component, counted from 0.
        component: usize,
        /// How many there are.
        components: usize,
    },
    /// Data of other sizes than those of learnt factors.
    #[error("the data are {}, expected {}", sizes(.got), .expected.join(" x "))]
    DataShape {
        /// Their shape.
        got: Vec<usize>,
        /// The sizes that the model needs, `any` where it needs none.
        expected: Vec<String>,
    },
    /// A count that no learnt component can explain.
    #[error(
        "entry {index:?} is {value}, which no learnt component can explain: leave such counts out, with `Impossible::Drop` as the `impossible` of a `Transform`, or learn from data that have them"
    )]
    Impossible {
        /// The first such cell.
        index: Vec<usize>,
        /// Its value.
        value: f64,
    },
    /// Something of a model that coordinate descent cannot do.
    #[error("{what} is not supported by coordinate descent: expected the solver `em`")]
    NotSeparable {
        /// What.
        what: String,
    },
    /// A solver of no known name.
    #[error("no solver is called `{name}`, expected {}", .expected.join(", "))]
    UnknownSolver {
        /// The name.
        name: String,
        /// Those that there are.
        expected: Vec<&'static str>,
    },
    /// Parameters that lack a fact which their state needs, or have one that means nothing.
    #[error("the fact `{name}` is {got}, expected {expected}")]
    Fact {
        /// Its name.
        name: &'static str,
        /// What it is: its first bad number, or `missing`.
        got: String,
        /// What it must be.
        expected: String,
    },
    /// A start that a model does not have.
    #[error("the model has no start `{}`: expected given or random blocks", .start.name())]
    NoStart {
        /// Which.
        start: Start,
    },
    /// Data, or a column of them, that cannot be divided by their sum.
    #[error("{} to {total}, expected a positive number", summed(.column))]
    Total {
        /// The first such column, `None` if all of the data are to be divided.
        column: Option<usize>,
        /// The sum.
        total: f64,
    },
    /// Data or parameters so large or so small that a number made of them is none.
    #[error("{what} is {value}, expected a finite number: scale the data")]
    NotFinite {
        /// Which number.
        what: String,
        /// Its value.
        value: f64,
    },
    /// Data so large or so small that a number of theirs, which is needed, is beyond the range of numbers.
    #[error("{what} is about 1e{decimal}, beyond the range of numbers: scale the data")]
    Beyond {
        /// Which number.
        what: String,
        /// Its decimal exponent.
        decimal: f64,
    },
    /// Work that was ended from outside before there was a result.
    #[error("interrupted")]
    Interrupted,
    /// The model gives no probability to a positive cell.
    #[error("entry {index:?} is {value}, to which the model gives the probability 0")]
    Support {
        /// The first such cell.
        index: Vec<usize>,
        /// Its value.
        value: f64,
    },
}

fn sizes(shape: &[usize]) -> String {
    let sizes: Vec<_> = shape.iter().map(|n| n.to_string()).collect();
    sizes.join(" x ")
}

fn summed(column: &Option<usize>) -> String {
    match column {
        Some(column) => format!("column {column} of the data sums"),
        None => "the data sum".into(),
    }
}

impl FitError {
    /// Refuses a setting that is a count of 0.
    ///
    /// # Errors
    ///
    /// [`Setting`](Self::Setting).
    pub fn if_zero(name: &'static str, count: usize) -> Result<(), Self> {
        Self::unless(count > 0, name, 0.0, "at least 1")
    }

    /// Refuses a state without a factor.
    ///
    /// # Errors
    ///
    /// [`Count`](Self::Count).
    pub fn if_no_factor(modes: usize) -> Result<(), Self> {
        match modes {
            0 => Err(Self::Count {
                got: 0,
                expected: vec!["factor_0".into(), "…".into()],
            }),
            _ => Ok(()),
        }
    }

    /// Refuses an invalid setting.
    ///
    /// # Errors
    ///
    /// [`Setting`](Self::Setting).
    pub fn unless(
        good: bool,
        name: &'static str,
        value: f64,
        expected: &'static str,
    ) -> Result<(), Self> {
        match good {
            true => Ok(()),
            false => Err(Self::Setting {
                name,
                value,
                expected,
            }),
        }
    }

    /// Whether the step may succeed at another point. An accelerated step then drops the point that it tried; any other error ends the run.
    pub fn rejects_point(&self) -> bool {
        matches!(
            self,
            Self::Support { .. }
                | Self::Prior { .. }
                | Self::Value { .. }
                | Self::Range { .. }
                | Self::NotFinite { .. }
        )
    }
}
