//! What models of data in a unit have in common: a unit is taken off, and put back, as a power of two, which changes no bit.

use nalgebra::DMatrix;
use plca_tensor::{Real, exponent, times_power_of_two};

use super::{Axis, FitError};

/// What the entries of `factors` factors are drawn around so that a product of one entry of each has this level: nearly equal numbers; multiplying `level` by a power of two changes only their exponents. A model of data in another unit then starts, and goes on, bit-identical.
pub fn levels(level: f64, factors: usize) -> Vec<f64> {
    if !(level > 0.0 && level.is_finite()) {
        return vec![level; factors];
    }
    if factors == 0 {
        return Vec::new();
    }
    let (n, e) = (factors as i32, exponent(level));
    let share = times_power_of_two(level, -e).powf(1.0 / factors as f64);
    let (whole, rest) = (e.div_euclid(n), e.rem_euclid(n));
    let exponents = (0..n).map(|j| whole + i32::from(j < rest));
    exponents.map(|e| times_power_of_two(share, e)).collect()
}

/// `squares 2^(2 exponent)`: the sum of the squares of numbers in their own unit, from that of the same numbers divided by `2^exponent`.
///
/// ```
/// use plca_fit::units::squares_in_unit;
/// assert_eq!(squares_in_unit("it", 3.0, 2)?, 48.0);
/// let error = squares_in_unit("it", 3.0, -600).unwrap_err();
/// assert_eq!(error.to_string(), "it is about 1e-361, beyond the range of numbers: scale the data");
/// # Ok::<(), plca_fit::FitError>(())
/// ```
///
/// # Errors
///
/// [`FitError::Beyond`] where it has left the range of normal numbers: errors would be told as 0, or not at all.
pub fn squares_in_unit(what: &str, squares: f64, exponent: i32) -> Result<f64, FitError> {
    let found = times_power_of_two(squares, 2 * exponent);
    if found.is_normal() || squares == 0.0 {
        return Ok(found);
    }
    let decimal = squares.log10() + 2.0 * f64::from(exponent) * std::f64::consts::LOG10_2;
    Err(FitError::Beyond {
        what: what.into(),
        decimal: decimal.floor(),
    })
}

/// A block times `2^exponent`.
pub fn in_unit<T: Real>(block: &DMatrix<T>, exponent: i32) -> DMatrix<T> {
    match exponent {
        0 => block.clone(),
        e => block.map(|x| T::lit(times_power_of_two(x.to_f64(), e))),
    }
}

/// A block, each component times `2^exponent` of its own; a block without components as it is.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_fit::{blocks::Axis, units::components_in_unit};
/// let block = dmatrix![1.0, 2.0; 3.0, 4.0];
/// let first = |z: usize| i32::from(z == 0);
/// assert_eq!(components_in_unit(&block, Axis::Columns, first), dmatrix![2.0, 2.0; 6.0, 4.0]);
/// assert_eq!(components_in_unit(&block, Axis::Rows, first), dmatrix![2.0, 4.0; 3.0, 4.0]);
/// ```
pub fn components_in_unit<T: Real>(
    block: &DMatrix<T>,
    components: Axis,
    exponent: impl Fn(usize) -> i32,
) -> DMatrix<T> {
    let mut block = block.clone();
    for (column, mut values) in block.column_iter_mut().enumerate() {
        for (row, x) in values.iter_mut().enumerate() {
            let e = match components {
                Axis::Columns => exponent(column),
                Axis::Rows => exponent(row),
                Axis::None => 0,
            };
            *x = T::lit(times_power_of_two(x.to_f64(), e));
        }
    }
    block
}
