//! What is wrong with a request.

use plca_fit::FitError;

/// Why there is no such model.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A setting that is not what the model expects.
    #[error("{name}: {what}")]
    Setting {
        /// Its name in files.
        name: String,
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
    /// What the model itself refuses.
    #[error(transparent)]
    Fit(#[from] FitError),
}
