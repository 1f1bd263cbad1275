//! Approximations of hidden cells that are far from all data.

use plca_tensor::{Data, DataError, Mask, Real};

/// How many times the largest of the data an approximation is far from them.
const FAR: f64 = 100.0;
/// Cells at most of data that are looked through.
const MOST: usize = 1 << 22;

/// A hidden cell that is approximated by far more than any cell was observed to be.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FarCell {
    /// Where it is.
    pub index: Vec<usize>,
    /// Its approximation.
    pub value: f64,
    /// The largest absolute value of the data.
    pub largest: f64,
}

/// The hidden cell with the largest approximation, where that is more than 100 times the largest of the data by absolute values.
///
/// Where the observed cells do not determine a hidden one, the likelihood may rise as its approximation grows without end: the fit is then one of the
/// observed cells alone. Looks at all cells, and asks for `cells`, the approximation in row-major order, only if some are hidden; data of more than 4
/// million cells are passed over.
///
/// ```
/// use plca_fit::{far::far_hidden_cell, FitError};
/// use plca_tensor::{DenseTensor, Order};
/// let v = DenseTensor::masked(vec![2, 2], vec![1.0, 2.0, 3.0, f64::NAN], Order::RowMajor)?;
/// let far = far_hidden_cell(&v, || Ok::<_, FitError>(vec![1.0, 2.0, 3.0, 900.0]))?;
/// assert_eq!(far.map(|far| (far.index, far.value)), Some((vec![1, 1], 900.0)));
/// assert_eq!(far_hidden_cell(&v, || Ok::<_, FitError>(vec![1.0, 2.0, 3.0, 6.0]))?, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// Data that cannot be read, and those of `cells`.
pub fn far_hidden_cell<T: Real, E: From<DataError>>(
    data: &dyn Data<T>,
    cells: impl FnOnce() -> Result<Vec<f64>, E>,
) -> Result<Option<FarCell>, E> {
    let (shape, mask) = (data.shape(), data.summary().mask);
    let all = (shape.iter()).try_fold(1usize, |all, &n| all.checked_mul(n));
    let Some(all) = all.filter(|&all| all <= MOST && mask != Mask::Complete) else {
        return Ok(None);
    };
    let place = |index: &[usize]| index.iter().zip(shape).fold(0, |at, (&i, &n)| at * n + i);
    let mut listed = vec![false; all];
    data.visit_mask(&mut |index| listed[place(index)] = true)?;
    let mut largest = 0.0f64;
    data.visit(&mut |_, x| largest = largest.max(x.abs()))?;
    let cells = cells()?;
    let hidden = cells.iter().zip(&listed).enumerate();
    let hidden = hidden.filter(|(_, (_, listed))| **listed == (mask == Mask::Hidden));
    let values = hidden.map(|(at, (&value, _))| (at, value));
    let far = values.max_by(|(_, a), (_, b)| a.abs().total_cmp(&b.abs()));
    Ok(far
        .filter(|(_, value)| largest > 0.0 && value.abs() > FAR * largest)
        .map(|(mut at, value)| {
            let mut index = vec![0; shape.len()];
            for (i, &n) in index.iter_mut().zip(shape).rev() {
                (*i, at) = (at % n, at / n);
            }
            FarCell {
                index,
                value,
                largest,
            }
        }))
}
