//! What settings, blocks and steps are refused with.

use nalgebra::DMatrix;
use plca_fit::FitError;
use plca_tensor::Real;
use plca_tensor::parallel::wide;

use crate::Replicates;

/// Refuses a model without components or replicates.
pub(crate) fn check_numbers(components: usize, replicates: Replicates) -> Result<(), FitError> {
    FitError::if_zero("components", components)?;
    match replicates {
        Replicates::Finite(m) => FitError::if_zero("replicates", m as usize),
        _ => Ok(()),
    }
}

/// Refuses the first block whose shape is not the expected one: its name, its shape, and that.
pub(crate) fn check_shapes<'a>(
    blocks: impl IntoIterator<Item = (&'a str, (usize, usize), (usize, usize))>,
) -> Result<(), FitError> {
    let mut blocks = blocks.into_iter();
    match blocks.find(|(_, got, expected)| got != expected) {
        Some((block, got, expected)) => Err(FitError::Shape {
            block: block.into(),
            got,
            expected,
        }),
        None => Ok(()),
    }
}

/// Refuses a block with a value for which `ok` does not hold.
pub(crate) fn check_values<T: Real>(
    block: &str,
    m: &DMatrix<T>,
    expected: &'static str,
    ok: impl Fn(T) -> bool,
) -> Result<(), FitError> {
    let places = (0..m.nrows()).flat_map(|i| (0..m.ncols()).map(move |j| (i, j)));
    match { places }.find(|&place| !ok(m[place])) {
        Some((row, column)) => Err(FitError::Range {
            block: block.into(),
            row,
            column,
            value: m[(row, column)].to_f64(),
            expected,
        }),
        None => Ok(()),
    }
}

/// A step, or a special function, that left the numbers.
pub(crate) fn not_finite(block: &str, value: f64) -> FitError {
    FitError::NotFinite {
        what: format!("`{block}`"),
        value,
    }
}

/// Counts of a block: sums times entries; those below 0, which are rounding errors, become 0. Refuses what is not finite.
pub(crate) fn scaled<T: Real>(
    block: &str,
    sums: &mut DMatrix<T>,
    entries: &DMatrix<T>,
) -> Result<(), FitError> {
    let all = wide(|| {
        let mut all = true;
        for (c, &x) in sums.as_mut_slice().iter_mut().zip(entries.as_slice()) {
            let count = *c * x;
            all &= count.is_finite();
            // NaN stays, to be told.
            *c = if count <= T::zero() { T::zero() } else { count };
        }
        all
    });
    if !all {
        let bad = sums.iter().find(|c| !c.is_finite());
        return Err(not_finite(block, bad.map_or(f64::NAN, |c| c.to_f64())));
    }
    Ok(())
}
