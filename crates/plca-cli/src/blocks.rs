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

/// Takes an array of any order but 0 that must be there, as [`need_matrix`].
pub(crate) fn need_array(
    path: &Path,
    arrays: &mut Arrays,
    name: &str,
) -> Result<Array<f64>, Failure> {
    let array = arrays.remove(name);
    let array = array.ok_or_else(|| lacking(path, name))?;
    if array.shape.is_empty() || array.values.is_empty() {
        let what = format!("`{name}` is empty, of shape {:?}", array.shape);
        return Err(Failure::of(path, what));
    }
    let bad = |x: &f64| !(x.is_finite() && *x >= 0.0);
    match array.values.iter().position(bad) {
        Some(at) => {
            let value = array.values[at];
            let what = format!("`{name}` is {value} at entry {at}, not a finite number >= 0");
            Err(Failure::of(path, what))
        }
        None => Ok(array),
    }
}

/// Where a checkpoint keeps how many steps led to a state, which schedules of priors go by.
pub(crate) const ITERATION: &str = "iteration";

/// What a model is multiplied by where that is one number for each index.
pub(crate) const SCALE: &str = "scale";

/// A number as an array of order 0.
pub(crate) fn number(x: f64) -> Array<f64> {
    Array::new(Vec::new(), vec![x])
}

/// A count as an array.
pub(crate) fn count(n: usize) -> Array<f64> {
    Array::new(vec![1], vec![n as f64])
}

/// Takes a count that must be there.
pub(crate) fn take_count(path: &Path, arrays: &mut Arrays, name: &str) -> Result<usize, Failure> {
    match arrays.remove(name).as_ref().map(|a| a.values.as_slice()) {
        Some(&[n]) if n >= 0.0 && n.fract() == 0.0 => Ok(n as usize),
        _ => Err(Failure::of(path, format!("has no whole number `{name}`"))),
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

/// Puts back, bit for bit, the columns of a fixed block that summed to 1 already: normalising them again would move them by
/// an ulp.
pub(crate) fn keep_fixed<T: Element>(block: &mut DMatrix<T>, given: &DMatrix<T>) {
    let rounding = T::lit(4.0 * given.nrows() as f64) * T::default_epsilon();
    for (mut column, given) in block.column_iter_mut().zip(given.column_iter()) {
        if (given.sum() - T::one()).abs() <= rounding {
            column.copy_from(&given);
        }
    }
}
