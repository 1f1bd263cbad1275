//! A fitted model as read from its file.

use std::path::Path;

use plca_io::{Array, IoError, ModelFile};
pub(crate) use plca_run::Saved;

use crate::failure::{Failure, printable};
use crate::limits;
use crate::models::{Kind, known};

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

/// Reads a model file, and which model it holds.
pub(crate) fn model(path: &Path) -> Result<(Kind, Saved), Failure> {
    let file = Saved::new(path, read(path)?);
    match known(&file.metadata) {
        Some(kind) => Ok((kind, file)),
        None if file.metadata["model"] == "consensus" => Err(file.failure(
            "is a consensus, not a fit: plca fit MODEL DATA --rank K --init FILE --freeze BLOCK, with this file and BLOCK as its components are called, such as basis for plsa, makes a fit of its components",
        ).into()),
        None => {
            let name = file.metadata["model"].as_str().unwrap_or_default();
            let what = format!("holds no model that this command knows (`{name}`)");
            let e = Failure::from(file.failure(what));
            Err(match name {
                "" => e.and("components from elsewhere are kept by plca fit MODEL DATA --init FILE --freeze BLOCK"),
                _ => e,
            })
        }
    }
}
