//! Starting values: given, drawn, checked.

use nalgebra::DMatrix;
use plca_dist::random;
use plca_tensor::{Model, Observed, Real, normalise_columns};
use rand::Rng;

use crate::EmError;

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
    if m.shape() != expected {
        return Err(EmError::Shape {
            block: block.into(),
            got: m.shape(),
            expected,
        });
    }
    // The first offending value in row-major order, as a reader of the file would meet it.
    for row in 0..m.nrows() {
        for column in 0..m.ncols() {
            let value = m[(row, column)];
            if !(value.is_finite() && value >= T::zero()) {
                return Err(EmError::Value {
                    block: block.into(),
                    row,
                    column,
                    value: value.to_f64(),
                });
            }
        }
    }
    Ok(())
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

/// Refuses a start that gives probability 0 to something observed.
pub(crate) fn check_support<T: Real, X: Observed<T> + ?Sized>(
    data: &X,
    model: &Model<'_, T>,
) -> Result<(), EmError> {
    if model
        .weights
        .is_none_or(|w| w.iter().any(|&w| w > T::zero()))
        && model
            .factors
            .iter()
            .all(|f| f.values().iter().all(|&x| x > T::zero()))
    {
        return Ok(());
    }
    let mut first: Option<(Vec<usize>, f64)> = None;
    data.for_each(&mut |index, value| {
        let earlier = first.as_ref().is_none_or(|(i, _)| index < i.as_slice());
        if earlier && model.cell(index) <= 0.0 {
            first = Some((index.to_vec(), value));
        }
    });
    match first {
        Some((index, value)) => Err(EmError::Support { index, value }),
        None => Ok(()),
    }
}
