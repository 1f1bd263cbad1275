//! Named arrays of a model file as the matrices of a model.

use std::collections::BTreeMap;
use std::path::Path;

use nalgebra::{DMatrix, DVector};
use plca_fit::Parameters;
use plca_io::{Array, Element};

use crate::failure::Failure;

/// Arrays by name, all in C order.
pub(crate) type Arrays = BTreeMap<String, Array<f64>>;

/// What a file lacks.
pub(crate) fn lacking(path: &Path, name: &str) -> Failure {
    Failure::of(path, format!("has no array `{name}`, which is needed here"))
}

/// Takes a block out of a set of arrays.
pub(crate) fn take<T: Element>(
    path: &Path,
    arrays: &mut Arrays,
    name: &str,
) -> Result<Option<DMatrix<T>>, Failure> {
    let Some(array) = arrays.remove(name) else {
        return Ok(None);
    };
    let block = plca_io::block_of::<Parameters<f64>>(name, &array);
    let block = block.map_err(|what| Failure::of(path, what))?;
    Ok(Some(block.map(T::lit)))
}

/// Takes a block that must be there.
pub(crate) fn needed<T: Element>(
    path: &Path,
    arrays: &mut Arrays,
    name: &str,
) -> Result<DMatrix<T>, Failure> {
    take(path, arrays, name)?.ok_or_else(|| lacking(path, name))
}

/// A matrix as an array in C order.
pub(crate) fn matrix<T: Element>(m: &DMatrix<T>) -> Array<f64> {
    let values = m.transpose().iter().map(|x| x.to_f64()).collect();
    Array::new(vec![m.nrows(), m.ncols()], values)
}

/// A vector as an array.
pub(crate) fn vector<T: Element>(v: &DVector<T>) -> Array<f64> {
    Array::new(vec![v.len()], v.iter().map(|x| x.to_f64()).collect())
}
