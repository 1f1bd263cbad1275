//! What is wrong with a request.

use std::path::PathBuf;

use plca_em::{EmError, OfFold};
use plca_fit::FitError;
use plca_io::{IoError, NoRoom};

/// Why there is no such model, or why it does not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A setting that is not what the model expects.
    #[error("{name}{}{value}: {what}", if value.is_empty() { "" } else { " " })]
    Setting {
        /// Its name in files.
        name: String,
        /// What it was given, where that is a word.
        value: String,
        /// What is wrong with it.
        what: String,
    },
    /// A setting that the model does not have.
    #[error("{model} has no setting {name}")]
    Unknown {
        /// The model.
        model: &'static str,
        /// The name that it does not know.
        name: String,
    },
    /// Settings that do not fit the shape of the data.
    #[error(transparent)]
    Shape(FitError),
    /// What the model does not do.
    #[error("{model} {what}")]
    Unable {
        /// The model.
        model: &'static str,
        /// What it does not do, and what does.
        what: String,
    },
    /// What cannot be drawn.
    #[error("{0}")]
    Draw(String),
    /// What ranks cannot tell each other.
    #[error("{0}")]
    Ranks(String),
    /// The model in a file is not what was expected.
    #[error("{}: {what}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A file that cannot be read.
    #[error(transparent)]
    Io(#[from] IoError),
    /// An array that no memory holds.
    #[error(transparent)]
    Room(#[from] NoRoom),
    /// What the model itself refuses.
    #[error(transparent)]
    Fit(#[from] FitError),
    /// What a fit to a part of the data refuses.
    #[error("rank {}, fold {}: {source}", fold.rank, fold.fold)]
    Fold {
        /// The part.
        fold: OfFold,
        /// What is refused.
        source: FitError,
    },
    /// Data of which no part can be held out.
    #[error(transparent)]
    Parts(EmError),
}

impl From<EmError> for RunError {
    fn from(e: EmError) -> Self {
        match e {
            EmError::Fit(e) => Self::Fit(e),
            e => Self::Parts(e),
        }
    }
}
