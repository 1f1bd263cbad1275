//! Reading reference values.

use nalgebra::DMatrix;
use plca_tensor::{Coordinates, DenseTensor, Order, Real, SparseTensor};
use serde_json::Value;
use skellam_snmf::Signed;

/// A matrix of which some cells were observed.
pub(crate) fn masked<T: Real>(values: &DMatrix<T>, seen: &DMatrix<bool>) -> Signed<T> {
    let (shape, values) = (vec![values.nrows(), values.ncols()], values.as_slice());
    let seen = seen.as_slice();
    let data = DenseTensor::with_mask(shape, values.to_vec(), Order::ColumnMajor, seen).unwrap();
    Signed::from_dense(data).unwrap()
}

/// The observed cells of a matrix as a list.
pub(crate) fn listed<T: Real>(data: &Signed<T>) -> Signed<T> {
    let (rows, columns) = data.shape();
    let mut cells = Coordinates {
        shape: vec![rows, columns],
        indices: Vec::new(),
        values: Vec::new(),
    };
    data.for_each(&mut |row, column, value| {
        cells.indices.extend([row as u32, column as u32]);
        cells.values.push(T::lit(value));
    });
    Signed::new(&SparseTensor::stored_only(cells).unwrap()).unwrap()
}

pub(crate) fn number(v: &Value) -> f64 {
    v.as_f64()
        .unwrap_or_else(|| v.as_str().unwrap().parse().unwrap())
}

/// Rows of numbers.
pub(crate) fn matrix(v: &Value) -> DMatrix<f64> {
    let rows = v.as_array().unwrap();
    let columns = rows[0].as_array().unwrap().len();
    DMatrix::from_fn(rows.len(), columns, |i, j| number(&v[i][j]))
}

/// One side of an `F x K x 2` array.
pub(crate) fn side(v: &Value, s: usize) -> DMatrix<f64> {
    let rows = v.as_array().unwrap();
    let columns = rows[0].as_array().unwrap().len();
    DMatrix::from_fn(rows.len(), columns, |i, j| number(&v[i][j][s]))
}

/// Relative to each entry; zeros must be zeros.
pub(crate) fn assert_near(got: &DMatrix<f64>, want: &DMatrix<f64>, rtol: f64, what: &str) {
    assert_eq!(got.shape(), want.shape(), "{what}");
    for (got, want) in got.iter().zip(want) {
        assert!(
            (got - want).abs() <= rtol * want.abs(),
            "{what}: {got:e} instead of {want:e}"
        );
    }
}
