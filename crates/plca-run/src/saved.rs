//! A fitted model as it was read from a file.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use nalgebra::DMatrix;
use plca_fit::{Parameters, State};
use plca_io::{Array, ModelFile, block_of};
use serde_json::Value;

use crate::RunError;

/// A model file whose blocks are taken out one by one: what is not asked for is not checked.
#[derive(Clone, Debug)]
pub struct Saved {
    path: PathBuf,
    arrays: BTreeMap<String, Array<f64>>,
    /// What it says of itself.
    pub metadata: Value,
}

impl Saved {
    /// A file that was read, or that is about to be written, under this path.
    pub fn new(path: &Path, file: ModelFile) -> Self {
        Self {
            path: path.to_path_buf(),
            arrays: file.arrays,
            metadata: file.metadata,
        }
    }

    /// What it says of itself, without its arrays.
    #[must_use]
    pub fn said(&self) -> Self {
        Self {
            path: self.path.clone(),
            arrays: BTreeMap::new(),
            metadata: self.metadata.clone(),
        }
    }

    /// A file of the same path and settings with the arrays and the facts of another.
    pub(crate) fn with(&self, file: ModelFile) -> Self {
        let mut other = Self::new(&self.path, file);
        if let Some(metadata) = other.metadata.as_object_mut() {
            metadata.insert("settings".into(), self.settings().clone());
        }
        other
    }

    /// The settings of its fit.
    pub fn settings(&self) -> &Value {
        &self.metadata["settings"]
    }

    /// The state in it.
    ///
    /// # Errors
    ///
    /// [`RunError::Io`] for arrays that are not those of this model.
    pub fn state<S: State>(self) -> Result<S, RunError> {
        let file = ModelFile {
            arrays: self.arrays,
            metadata: self.metadata,
        };
        Ok(file.state(&self.path)?)
    }

    /// Something about this file.
    pub fn failure(&self, what: impl fmt::Display) -> RunError {
        RunError::File {
            path: self.path.clone(),
            what: what.to_string(),
        }
    }

    /// Takes a matrix whose columns are distributions, of which files in single precision know fewer digits.
    ///
    /// # Errors
    ///
    /// [`RunError::File`] for an array that is not there, or columns that are none.
    pub fn distributions(&mut self, name: &str) -> Result<DMatrix<f64>, RunError> {
        let mut block = self.block(name)?;
        let wrong = |x: &f64| !(x.is_finite() && *x >= 0.0);
        if let Some(at) = block.iter().position(wrong) {
            let (value, row, column) = (block[at], at % block.nrows(), at / block.nrows());
            return Err(self.failure(format!(
                "`{name}` is {value} at [{row}, {column}], not a finite number >= 0"
            )));
        }
        for (z, mut column) in block.column_iter_mut().enumerate() {
            let sum: f64 = column.iter().sum();
            if sum <= 0.0 {
                return Err(self.failure(format!("column {z} of `{name}` sums to {sum}")));
            }
            if (sum - 1.0).abs() > 1e-12 {
                column /= sum;
            }
        }
        Ok(block)
    }

    /// Takes a block.
    ///
    /// # Errors
    ///
    /// [`RunError::File`] for an array that is not there, or has another form.
    pub fn block(&mut self, name: &str) -> Result<DMatrix<f64>, RunError> {
        let Some(array) = self.arrays.remove(name) else {
            let what = format!("has no array `{name}`, which is needed here");
            return Err(self.failure(what));
        };
        block_of::<Parameters<f64>>(name, &array).map_err(|what| self.failure(what))
    }

    /// Order of the data that the model was fitted to.
    ///
    /// # Errors
    ///
    /// [`RunError::File`] where it does not say so.
    pub fn order(&self) -> Result<usize, RunError> {
        match self.metadata["data"]["shape"].as_array().map(Vec::len) {
            Some(order) if order > 0 => Ok(order),
            _ => Err(self.failure("does not say the shape of its data")),
        }
    }
}
