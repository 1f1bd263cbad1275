//! Reading reference values.

use nalgebra::DMatrix;
use serde_json::Value;

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
