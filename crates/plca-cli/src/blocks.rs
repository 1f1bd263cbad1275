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
        return Err(Failure::of(
            path,
            format!("`{name}` has shape {:?}, a matrix is needed", array.shape),
        ));
    };
    // Sizes that nothing stands behind are counted all the same.
    if array.values.is_empty() {
        let what = format!("`{name}` is empty, {rows} x {columns}");
        return Err(Failure::of(path, what));
    }
    Ok(Some(DMatrix::from_row_iterator(
        rows,
        columns,
        array.values.into_iter().map(T::lit),
    )))
}

/// Takes a matrix that must be there, of finite numbers that are not negative.
pub(crate) fn need_matrix(
    path: &Path,
    arrays: &mut Arrays,
    name: &str,
) -> Result<DMatrix<f64>, Failure> {
    let block = take_matrix::<f64>(path, arrays, name)?.ok_or_else(|| lacking(path, name))?;
    let (rows, columns) = block.shape();
    for row in 0..rows {
        for column in 0..columns {
            let value = block[(row, column)];
            if !(value.is_finite() && value >= 0.0) {
                return Err(Failure::of(
                    path,
                    format!("`{name}` is {value} at [{row}, {column}], not a finite number >= 0"),
                ));
            }
        }
    }
    Ok(block)
}

/// Takes a vector that must be there, as [`need_matrix`].
pub(crate) fn need_vector(
    path: &Path,
    arrays: &mut Arrays,
    name: &str,
) -> Result<DVector<f64>, Failure> {
    let block = take_vector::<f64>(path, arrays, name)?.ok_or_else(|| lacking(path, name))?;
    match block.iter().position(|x| !(x.is_finite() && *x >= 0.0)) {
        Some(at) => Err(Failure::of(
            path,
            format!(
                "`{name}` is {} at [{at}], not a finite number >= 0",
                block[at]
            ),
        )),
        None => Ok(block),
    }
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
        return Err(Failure::of(
            path,
            format!(
                "`{name}` has shape {:?}, one dimension is needed",
                array.shape
            ),
        ));
    }
    Ok(Some(DVector::from_iterator(
        array.values.len(),
        array.values.into_iter().map(T::lit),
    )))
}

/// A matrix as an array in C order.
pub(crate) fn matrix<T: Element>(m: &DMatrix<T>) -> Array<f64> {
    let mut values = Vec::with_capacity(m.len());
    for row in m.row_iter() {
        values.extend(row.iter().map(|x| x.to_f64()));
    }
    Array::new(vec![m.nrows(), m.ncols()], values)
}

/// A vector as an array.
pub(crate) fn vector<T: Element>(v: &DVector<T>) -> Array<f64> {
    Array::new(vec![v.len()], v.iter().map(|x| x.to_f64()).collect())
}
