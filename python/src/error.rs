//! What is refused, as the exceptions of Python.

use std::error::Error;

use plca::em::EmError;
use plca::fit::{FitError, consensus::ConsensusError};
use plca::io::{IoError, NoRoom};
use plca::tensor::DataError;
use pyo3::exceptions::{PyMemoryError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::{PyErr, PyResult};
use serde::{Deserialize, Serialize};

/// The reason why a call was refused. Ranks tell each other.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Refused {
    /// An argument, with its name and what is wrong with it.
    Value(String),
    /// A file.
    File(String),
    /// More memory than there is.
    Memory(String),
    /// What has ended another rank, or the way to it.
    Rank(String),
}

impl Refused {
    /// The same of something among others.
    pub(crate) fn of(self, whom: &str) -> Self {
        match self {
            Self::Value(what) => Self::Value(format!("{whom}: {what}")),
            other => other,
        }
    }
}

impl From<FitError> for Refused {
    /// With what it comes from: a prior alone does not say why it refused its counts.
    fn from(e: FitError) -> Self {
        let causes = std::iter::successors(Some(&e as &dyn Error), |&e| e.source());
        let causes: Vec<String> = causes.map(|e| e.to_string()).collect();
        Self::Value(causes.join(": "))
    }
}

impl From<EmError> for Refused {
    fn from(e: EmError) -> Self {
        match e {
            EmError::Tensor(e) => e.into(),
            EmError::Fit(e) => e.into(),
            e => Self::Value(format!("X: {e}")),
        }
    }
}

impl From<ConsensusError> for Refused {
    fn from(e: ConsensusError) -> Self {
        Self::Value(e.to_string())
    }
}

impl From<DataError> for Refused {
    fn from(e: DataError) -> Self {
        Self::Value(format!("X: {e}"))
    }
}

impl From<IoError> for Refused {
    fn from(e: IoError) -> Self {
        Self::File(match e.needs() {
            Some(bytes) => format!("{e}: unpack_limit={bytes} allows it"),
            None => e.to_string(),
        })
    }
}

impl From<NoRoom> for Refused {
    fn from(e: NoRoom) -> Self {
        Self::Memory(e.to_string())
    }
}

impl From<Refused> for PyErr {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Value(what) => PyValueError::new_err(what),
            Refused::File(what) => PyOSError::new_err(what),
            Refused::Memory(what) => PyMemoryError::new_err(what),
            Refused::Rank(what) => PyRuntimeError::new_err(what),
        }
    }
}

/// Something wrong with an argument.
pub(crate) fn wrong<O>(what: impl Into<String>) -> Result<O, Refused> {
    Err(Refused::Value(what.into()))
}

/// The same where Python is at hand.
pub(crate) fn bad<O>(what: impl Into<String>) -> PyResult<O> {
    Err(PyValueError::new_err(what.into()))
}
