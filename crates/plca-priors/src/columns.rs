//! Columns of a block in double precision.

use nalgebra::DMatrix;
use plca_tensor::Real;
use plca_tensor::parallel::for_each_part;

/// Calls `f` with the place, the counts and the values of every column, on all threads; values are rounded to `T` afterwards.
pub(crate) fn for_each_column<T: Real>(
    counts: &DMatrix<T>,
    theta: &mut DMatrix<T>,
    f: impl Fn(usize, &[f64], &mut [f64]) + Send + Sync,
) {
    let rows = counts.nrows();
    if rows == 0 {
        return;
    }
    for_each_part(theta.as_mut_slice(), rows, |z, theta| {
        let counts: Vec<f64> = counts.column(z).iter().map(|c| c.to_f64()).collect();
        let mut values: Vec<f64> = theta.iter().map(|t| t.to_f64()).collect();
        f(z, &counts, &mut values);
        theta
            .iter_mut()
            .zip(values)
            .for_each(|(t, v)| *t = T::lit(v));
    });
}

/// A copy in double precision.
pub(crate) fn double<T: Real>(block: &DMatrix<T>) -> DMatrix<f64> {
    block.map(|x| x.to_f64())
}
