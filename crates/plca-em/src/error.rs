//! Why data or draws were refused.

/// The reason why nothing could be held out of data or learnt from the rest, or drawn from a model.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EmError {
    /// A share to be held out that is outside `(0, 1)`.
    #[error("share {0} to be held out is outside (0, 1)")]
    Share(f64),
    /// A value that is not a count where counts are to be held out.
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
    /// A number that is too small.
    #[error("`{name}` is {value}, expected at least {least}")]
    Number {
        /// Which.
        name: &'static str,
        /// Its value.
        value: usize,
        /// The smallest that makes sense.
        least: usize,
    },
    /// A share of the model of independent dimensions that is outside `(0, 1)`.
    #[error("`smoothing` is {0}, expected a number in (0, 1)")]
    Smoothing(f64),
    /// More folds than cells that could be held out.
    #[error("{folds} folds of {positive} positive cells: expected at most one for each")]
    FewCells {
        /// The folds.
        folds: usize,
        /// Observed cells above 0.
        positive: u64,
    },
    /// A part of the data was refused.
    #[error(transparent)]
    Tensor(#[from] plca_tensor::DataError),
    /// A fit to a part of the data was refused.
    #[error(transparent)]
    Fit(#[from] plca_fit::FitError),
    /// A model without any mass.
    #[error("the model has no mass to draw from")]
    NoMass,
}
