//! Columns of a block in double precision.

use nalgebra::DMatrix;
use plca_tensor::Real;

/// Calls `f` with the counts and the values of every column, on all threads; values are rounded to `T` afterwards.
pub(crate) fn for_each_column<T: Real>(
    counts: &DMatrix<T>,
    theta: &mut DMatrix<T>,
    f: impl Fn(&[f64], &mut [f64]) + Send + Sync,
) {
    let rows = counts.nrows();
    if rows == 0 {
        return;
    }
    let column = |(counts, theta): (&[T], &mut [T])| {
        let counts: Vec<f64> = counts.iter().map(|c| c.to_f64()).collect();
        let mut values: Vec<f64> = theta.iter().map(|t| t.to_f64()).collect();
        f(&counts, &mut values);
        theta
            .iter_mut()
            .zip(values)
            .for_each(|(t, v)| *t = T::lit(v));
    };
    #[cfg(feature = "rayon")]
    {
        use rayon::prelude::*;
        let columns = counts.as_slice().par_chunks(rows);
        columns
            .zip(theta.as_mut_slice().par_chunks_mut(rows))
            .for_each(column);
    }
    #[cfg(not(feature = "rayon"))]
    counts
        .as_slice()
        .chunks(rows)
        .zip(theta.as_mut_slice().chunks_mut(rows))
        .for_each(column);
}

/// A copy in double precision.
pub(crate) fn double<T: Real>(block: &DMatrix<T>) -> DMatrix<f64> {
    block.map(|x| x.to_f64())
}
