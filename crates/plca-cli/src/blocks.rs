//! Named arrays of a model file as the matrices of a model.

use std::collections::BTreeMap;
use std::path::Path;

use nalgebra::{DMatrix, DVector};
use plca_io::{Array, Element};

use crate::failure::Failure;

/// Arrays by name, all in C order.
pub(crate) type Arrays = BTreeMap<String, Array<f64>>;

/// What a file lacks.
pub(crate) fn lacking(path: &Path, name: &str) -> Failure {
    Failure::of(path, format!("has no `{name}`"))
}

/// Takes a matrix out of a set of arrays.
pub(crate) fn take_matrix<T: Element>(
    path: &Path,
    arrays: &mut Arrays,
    name: &str,
) -> Result<Option<DMatrix<T>>, Failure> {
    let Some(array) = arrays.remove(name) else {
        return Ok(None);
    };
    let &[rows, columns] = &array.shape[..] else {
        let what = format!("`{name}` has shape {:?}, a matrix is needed", array.shape);
        return Err(Failure::of(path, what));
    };
    // Sizes that nothing stands behind are counted all the same.
    if array.values.is_empty() {
        let what = format!("`{name}` is empty, {rows} x {columns}");
        return Err(Failure::of(path, what));
    }
    let values = array.values.into_iter().map(T::lit);
    Ok(Some(DMatrix::from_row_iterator(rows, columns, values)))
}

/// Takes a vector out of a set of arrays.
pub(crate) fn take_vector<T: Element>(
    path: &Path,
    arrays: &mut Arrays,
    name: &str,
) -> Result<Option<DVector<T>>, Failure> {
    let Some(array) = arrays.remove(name) else {
        return Ok(None);
    };
    if array.shape.len() != 1 {
        let what = format!(
            "`{name}` has shape {:?}, one dimension is needed",
            array.shape
        );
        return Err(Failure::of(path, what));
    }
    let values: Vec<T> = array.values.into_iter().map(T::lit).collect();
    Ok(Some(DVector::from_vec(values)))
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
