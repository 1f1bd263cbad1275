//! A fitted model as read from its file.

use std::fmt;
use std::path::{Path, PathBuf};

use nalgebra::DMatrix;
use plca_fit::State;
use plca_io::{Array, IoError, ModelFile};
use serde_json::Value;

use crate::blocks::{Arrays, needed};
use crate::failure::Failure;
use crate::limits;
use crate::models::{Kind, known};
use crate::outputs::printable;

/// A model file whose blocks are taken out one by one: what is not asked for is not checked.
pub(crate) struct Saved {
    path: PathBuf,
    arrays: Arrays,
    pub(crate) metadata: Value,
}

/// Reads arrays and metadata.
pub(crate) fn arrays(path: &Path) -> Result<ModelFile, IoError> {
    plca_io::read_model_with(path, limits::unpack())
}

/// Reads a model file, of which nothing is known yet.
pub(crate) fn read(path: &Path) -> Result<ModelFile, Failure> {
    arrays(path).map_err(|e| {
        let inside = !e.place().is_empty();
        let e = Failure::from(e);
        match inside {
            true => e.and("is this a model file?"),
            false => e,
        }
    })
}

/// An array of a model file.
pub(crate) fn array<'a>(
    path: &Path,
    file: &'a ModelFile,
    name: &str,
) -> Result<&'a Array<f64>, Failure> {
    file.arrays.get(name).ok_or_else(|| {
        let names: Vec<&str> = file.arrays.keys().map(String::as_str).collect();
        let names = names.join(", ");
        let what = match file.metadata[name].as_f64() {
            Some(x) => format!("--array {name}: is a number, {x}, of the metadata that plca inspect prints; arrays are {names}"),
            None => format!("--array {name}: no such array; expected one of {names}"),
        };
        Failure::of(path, printable(&what))
    })
}

impl Saved {
    /// A file that is about to be written.
    pub(crate) fn of(path: &Path, file: &ModelFile) -> Self {
        Self {
            path: path.to_path_buf(),
            arrays: file.arrays.clone(),
            metadata: file.metadata.clone(),
        }
    }

    /// Reads a model file, and which model it holds.
    pub(crate) fn read(path: &Path) -> Result<(Kind, Self), Failure> {
        let ModelFile { arrays, metadata } = read(path)?;
        let file = Self {
            path: path.to_path_buf(),
            arrays,
            metadata,
        };
        match known(&file.metadata) {
            Some(kind) => Ok((kind, file)),
            None if file.metadata["model"] == "consensus" => Err(file.failure(
                "is a consensus, not a fit: plca fit MODEL DATA --rank K --init FILE --fix BLOCK, with this file and BLOCK as its components are called, such as basis for plsa, makes a fit of its components",
            )),
            None => {
                let name = file.metadata["model"].as_str().unwrap_or_default();
                let what = format!("holds no model that this command knows (`{name}`)");
                let e = file.failure(what);
                Err(match name {
                    "" => e.and("components from elsewhere are kept by plca fit MODEL DATA --init FILE --fix BLOCK"),
                    _ => e,
                })
            }
        }
    }

    /// The state in it.
    pub(crate) fn state<S: State>(self) -> Result<S, Failure> {
        let file = ModelFile {
            arrays: self.arrays,
            metadata: self.metadata,
        };
        Ok(file.state(&self.path)?)
    }

    /// Something about this file.
    pub(crate) fn failure(&self, what: impl fmt::Display) -> Failure {
        Failure::of(&self.path, what)
    }

    /// Takes a matrix whose columns are distributions, of which files in single precision know fewer digits.
    pub(crate) fn distributions(&mut self, name: &str) -> Result<DMatrix<f64>, Failure> {
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
    pub(crate) fn block(&mut self, name: &str) -> Result<DMatrix<f64>, Failure> {
        needed(&self.path, &mut self.arrays, name)
    }

    /// Order of the data that the model was fitted to.
    pub(crate) fn order(&self) -> Result<usize, Failure> {
        match self.metadata["data"]["shape"].as_array().map(Vec::len) {
            Some(order) if order > 0 => Ok(order),
            _ => Err(self.failure("does not say the shape of its data")),
        }
    }
}
