//! Why a model refused its settings, its start or its data.

use plca_priors::PriorError;

/// Why a configuration was refused; see the builders.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ParamError {
    /// A model needs at least one component.
    #[error("the number of components is 0, it must be at least 1")]
    NoComponents,
    /// The tempering power is outside `(0, 1]`.
    #[error("tempering power {0} is outside (0, 1]")]
    Temper(f64),
    /// The factor of a tempering schedule is outside `(0, 1)`.
    #[error("tempering factor {0} is outside (0, 1)")]
    Eta(f64),
    /// A share to be held out that is outside `(0, 1)`.
    #[error("share {0} to be held out is outside (0, 1)")]
    Share(f64),
    /// A tolerance that is negative or not a number.
    #[error("tolerance {0} is not a finite number >= 0")]
    Tolerance(f64),
    /// A kernel needs at least one cell along every dimension.
    #[error("the kernel's extent along dimension {dimension} is 0, it must be at least 1")]
    Extent {
        /// Which dimension of the data.
        dimension: usize,
    },
    /// Neither one support for all dimensions nor one for each.
    #[error("{got} supports for {expected} dimensions")]
    Supports {
        /// Dimensions of the kernel.
        expected: usize,
        /// Supports given.
        got: usize,
    },
    /// A power that does not anneal.
    #[error("annealing power {value} is outside {domain}")]
    AnnealPower {
        /// The power.
        value: f64,
        /// Where it must lie.
        domain: &'static str,
    },
    /// Index maps that mean nothing.
    #[error("index maps: {0}")]
    Maps(&'static str),
    /// An annealing schedule that takes no time.
    #[error("annealing over {0} iterations: their number must be positive")]
    AnnealDuration(f64),
    /// A block of a stream needs at least one iteration.
    #[error("0 iterations for a block: at least 1 is needed")]
    NoIterations,
    /// A step-size law that does not converge or means nothing.
    #[error("step size: {name} = {value} is outside {domain}")]
    StepSize {
        /// Which number of the law.
        name: &'static str,
        /// Its value.
        value: f64,
        /// Where it must lie.
        domain: &'static str,
    },
    /// The mass of a pass is no positive number.
    #[error("total mass {0} is not a finite number > 0")]
    Total(f64),
    /// Two settings that exclude each other.
    #[error("{0}")]
    Conflict(&'static str),
}

/// Why a start was refused or a step could not be carried out.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EmError {
    /// The data have another order than the model.
    #[error("the model needs data of order {expected}, these have order {got}")]
    Order {
        /// What the model needs.
        expected: usize,
        /// What the data have.
        got: usize,
    },
    /// The model has no such mode.
    #[error("there is no mode {mode}, the model has {modes}, counted from 0")]
    Mode {
        /// The mode asked for, counted from 0.
        mode: usize,
        /// How many the model has.
        modes: usize,
    },
    /// A kernel that does not fit into the data.
    #[error(
        "the kernel's extent along dimension {dimension} is {extent}, it must be between 1 and the data's {size}"
    )]
    Kernel {
        /// Which dimension of the data.
        dimension: usize,
        /// The kernel's extent there.
        extent: usize,
        /// The data's.
        size: usize,
    },
    /// Index maps were made for another number of cells.
    #[error("data of shape {shape:?} do not have the {expected} cells of the index maps")]
    Cells {
        /// Shape of the data.
        shape: Vec<usize>,
        /// Cells that the maps know.
        expected: usize,
    },
    /// Hidden cells have no literal likelihood where mass can lie outside the window.
    #[error("hidden cells need the conditional likelihood where kernels may leave the data")]
    LiteralWithHidden,
    /// A block has the wrong shape.
    #[error("`{block}` is {}x{}, expected {}x{}", got.0, got.1, expected.0, expected.1)]
    Shape {
        /// Name of the block.
        block: String,
        /// Rows and columns given.
        got: (usize, usize),
        /// Rows and columns needed.
        expected: (usize, usize),
    },
    /// A negative or non-finite value in a block.
    #[error("`{block}` is {value} at ({row}, {column}), not a finite number >= 0")]
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
    /// A column that cannot be normalised.
    #[error("column {column} of `{block}` is all zeros")]
    ZeroColumn {
        /// Name of the block.
        block: String,
        /// Which column.
        column: usize,
    },
    /// A column that is no distribution in a state that is to be measured.
    #[error("column {column} of `{block}` sums to {sum}, not to 1")]
    NotNormalised {
        /// Name of the block.
        block: String,
        /// Which column.
        column: usize,
        /// What it sums to.
        sum: f64,
    },
    /// The model gives probability 0 to something observed; EM can never repair a zero.
    #[error("initial support: the model is 0 at {index:?} where the data are {value}")]
    Support {
        /// The first such cell.
        index: Vec<usize>,
        /// The value observed there.
        value: f64,
    },
    /// A frozen block was not given.
    #[error("`{block}` is to stay fixed but no initial value was given")]
    FixedWithoutValue {
        /// Name of the block.
        block: String,
    },
    /// New data have something where no learned component has.
    #[error("observation {value} at {index:?} is impossible: no component reaches that place")]
    Impossible {
        /// Where.
        index: Vec<usize>,
        /// What was observed.
        value: f64,
    },
    /// New data have another shape than the learned factors explain.
    #[error("the data have shape {got:?}, the model explains {expected}")]
    Data {
        /// Shape of the data.
        got: Vec<usize>,
        /// Sizes of the modes, `any` where observations lie.
        expected: String,
    },
    /// A value that is no count where counts are to be held out.
    #[error("entry {index:?} is {value}: only whole counts up to 2^53 can be held out")]
    NotCounts {
        /// The first such cell.
        index: Vec<usize>,
        /// Its value.
        value: f64,
    },
    /// Too few counts, or positive cells, to hold any of them out.
    #[error("there are too few data to hold any of them out")]
    NothingHeldOut,
    /// A part of the data was refused.
    #[error(transparent)]
    Tensor(#[from] plca_tensor::DataError),
    /// Settings that mean nothing.
    #[error(transparent)]
    Param(#[from] ParamError),
    /// A stop rule that means nothing.
    #[error(transparent)]
    Stop(#[from] plca_fit::StopError),
    /// A model without any mass.
    #[error("the model has no mass to draw from")]
    NoMass,
    /// An accelerated step without one objective to guard it: the prior changes from iteration to iteration, or its step does
    /// not raise an objective.
    #[error(
        "acceleration needs a steady objective: the prior on `{block}` has none at iteration {iteration}"
    )]
    Unsteady {
        /// Name of the block.
        block: String,
        /// Counted from 1.
        iteration: usize,
    },
    /// Something that does not fall apart into the problems of single rows.
    #[error("{what} does not go with coordinate descent, the solver `fast`: use `em`")]
    NotSeparable {
        /// What it is.
        what: String,
    },
    /// A prior's own complaint.
    #[error("prior on `{block}`")]
    Prior {
        /// Name of the block.
        block: String,
        /// The complaint.
        source: PriorError,
    },
}

impl plca_fit::Failure for EmError {
    fn rejects_point(&self) -> bool {
        !matches!(self, Self::Tensor(_) | Self::Stop(_))
    }
}
