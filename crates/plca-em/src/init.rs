//! Starting values: given, drawn, checked.

use nalgebra::{DMatrix, DVector};
use plca_dist::random;
use plca_tensor::{Factor, Real, normalise_columns};
use rand::Rng;

use crate::EmError;
use plca_tensor::parallel::wide;

/// A matrix whose columns are independent uniform draws from the simplex.
pub(crate) fn random_columns<T: Real, R: Rng + ?Sized>(
    rows: usize,
    columns: usize,
    rng: &mut R,
) -> DMatrix<T> {
    let mut m = DMatrix::from_fn(rows, columns, |_, _| T::lit(random::exponential(rng)));
    normalise_columns(&mut m);
    m
}

/// Refuses a block of the wrong shape or with negative or non-finite values.
pub(crate) fn check_block<T: Real>(
    block: &str,
    m: &DMatrix<T>,
    expected: (usize, usize),
) -> Result<(), EmError> {
    check_values(block, m.as_slice(), m.shape(), expected)
}

/// Refuses columns that are no distributions: rounding moves their sums by far less than the root of its unit.
pub(crate) fn check_sums<T: Real>(block: &str, columns: Factor<'_, T>) -> Result<(), EmError> {
    let sums = columns.component_sums();
    // Sums of checked entries are numbers.
    let off = |sum: &T| (sum.to_f64() - 1.0).abs() > T::EPSILON.to_f64().sqrt();
    match sums.iter().position(off) {
        Some(column) => Err(EmError::NotNormalised {
            block: block.into(),
            column,
            sum: sums[column].to_f64(),
        }),
        None => Ok(()),
    }
}

/// As [`check_block`] for `P(z)` of `k` components.
pub(crate) fn check_weights<T: Real>(weights: &DVector<T>, k: usize) -> Result<(), EmError> {
    check_values("weights", weights.as_slice(), (weights.len(), 1), (k, 1))
}

fn check_values<T: Real>(
    block: &str,
    values: &[T],
    got: (usize, usize),
    expected: (usize, usize),
) -> Result<(), EmError> {
    if got != expected {
        return Err(EmError::Shape {
            block: block.into(),
            got,
            expected,
        });
    }
    // Without a branch for every value: this is looked at in every iteration.
    let good = |x: T| (x >= T::zero()) & x.is_finite();
    let all = |part: &[T]| part.iter().fold(true, |all, &x| all & good(x));
    if wide(|| values.chunks(4096).all(all)) {
        return Ok(());
    }
    // The first offending value in row-major order, as a reader of the file would meet it.
    let (rows, columns) = got;
    let mut places = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
    let first = places.find(|&(row, column)| !good(values[column * rows + row]));
    first.map_or(Ok(()), |(row, column)| {
        Err(EmError::Value {
            block: block.into(),
            row,
            column,
            value: values[column * rows + row].to_f64(),
        })
    })
}

/// Checks a column-stochastic block and normalises its columns.
pub(crate) fn stochastic_block<T: Real>(
    block: &str,
    mut m: DMatrix<T>,
    expected: (usize, usize),
) -> Result<DMatrix<T>, EmError> {
    check_block(block, &m, expected)?;
    // Large entries first: a column of 1e308s must not sum to infinity.
    for mut column in m.column_iter_mut() {
        let largest = column.amax();
        if largest > T::zero() {
            column /= largest;
        }
    }
    let sums = normalise_columns(&mut m);
    match sums.iter().position(|&s| s <= T::zero()) {
        Some(column) => Err(EmError::ZeroColumn {
            block: block.into(),
            column,
        }),
        None => Ok(m),
    }
}
