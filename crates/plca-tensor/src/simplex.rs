//! Columns that are distributions.

use nalgebra::DMatrix;

use crate::Real;

/// Divides every column by its sum; a column whose sum is 0 is left as it is. Returns the sums.
///
/// ```
/// use nalgebra::dmatrix;
/// let mut m = dmatrix![1.0, 0.0; 3.0, 0.0];
/// assert_eq!(plca_tensor::normalise_columns(&mut m), [4.0, 0.0]);
/// assert_eq!(m, dmatrix![0.25, 0.0; 0.75, 0.0]);
/// ```
pub fn normalise_columns<T: Real>(m: &mut DMatrix<T>) -> Vec<T> {
    m.column_iter_mut()
        .map(|mut column| {
            let sum = column.sum();
            if sum > T::zero() {
                column /= sum;
            }
            sum
        })
        .collect()
}

/// How far the columns of `m` are from being distributions: the largest of `|sum - 1|` and of minus the entries.
///
/// ```
/// use nalgebra::dmatrix;
/// assert_eq!(plca_tensor::simplex_error(&dmatrix![0.5; 0.25]), 0.25);
/// ```
pub fn simplex_error<T: Real>(m: &DMatrix<T>) -> f64 {
    m.column_iter()
        .flat_map(|c| {
            let sum: f64 = c.iter().map(|x| x.to_f64()).sum();
            let lowest = c.iter().fold(0.0, |a: f64, x| a.min(x.to_f64()));
            [(sum - 1.0).abs(), -lowest]
        })
        .fold(0.0, f64::max)
}
