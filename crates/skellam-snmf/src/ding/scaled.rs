//! A matrix in a unit in which its squares are numbers.

use nalgebra::DMatrix;
use plca_fit::{
    FitError,
    units::{in_unit, squares_in_unit},
};
use plca_tensor::{CompensatedSum, Data, DataError, Mask, Real, exponent, times_power_of_two};

/// A matrix divided by the power of two that brings its largest entry near 1.
#[derive(Debug)]
pub(crate) struct Scaled<T> {
    pub(crate) values: DMatrix<T>,
    /// The exponent of that power of two.
    pub(crate) exponent: i32,
}

/// The exponent of the largest of some entries, if one is not 0.
pub(crate) fn exponent_of<'a, T: Real>(entries: impl IntoIterator<Item = &'a T>) -> Option<i32> {
    let largest = entries.into_iter().map(|x| x.to_f64().abs());
    let largest = largest.fold(0.0, f64::max);
    (largest > 0.0 && largest.is_finite()).then(|| exponent(largest))
}

impl<T: Real> Scaled<T> {
    /// A copy of a matrix without hidden cells.
    ///
    /// # Errors
    ///
    /// [`DataError::NotAMatrix`], [`DataError::TooLarge`], [`FitError::Entry`] for a hidden cell, and data that cannot be read.
    pub(crate) fn new(data: &dyn Data<T>) -> Result<Self, FitError> {
        let values = complete(data)?;
        let exponent = exponent_of(&values).unwrap_or(0);
        Ok(Self {
            values: in_unit(&values, -exponent),
            exponent,
        })
    }

    /// The sum of the squares in the unit of the data.
    ///
    /// # Errors
    ///
    /// [`FitError::Beyond`] where it has left the range of numbers.
    pub(crate) fn squares(&self) -> Result<f64, FitError> {
        let squares = self.values.iter().map(|x| x.to_f64().powi(2));
        let squares = squares.collect::<CompensatedSum>().value();
        squares_in_unit("the sum of the squares of the data", squares, self.exponent)
    }

    /// A square of this unit in that of the data.
    pub(crate) fn square(&self, value: f64) -> f64 {
        times_power_of_two(value, 2 * self.exponent)
    }
}

/// A copy of a matrix without hidden cells.
fn complete<T: Real>(data: &dyn Data<T>) -> Result<DMatrix<T>, FitError> {
    let &[rows, columns] = data.shape() else {
        let shape = data.shape().to_vec();
        return Err(DataError::NotAMatrix { shape }.into());
    };
    let too_large = || DataError::TooLarge {
        shape: vec![rows, columns],
    };
    let cells = rows.checked_mul(columns).ok_or_else(too_large)?;
    let mut values = Vec::new();
    values.try_reserve_exact(cells).map_err(|_| too_large())?;
    values.resize(cells, T::zero());
    let mut values = DMatrix::from_vec(rows, columns, values);
    let mask = data.summary().mask;
    let mut listed = DMatrix::from_element(
        rows,
        if mask == Mask::Complete { 0 } else { columns },
        false,
    );
    data.visit_mask(&mut |index| listed[(index[0], index[1])] = true)?;
    let hidden = |seen: bool| seen == (mask == Mask::Hidden);
    let place = (0..rows).flat_map(|i| (0..listed.ncols()).map(move |j| (i, j)));
    if let Some((i, j)) = { place }.find(|&place| hidden(listed[place])) {
        return Err(FitError::Entry {
            index: vec![i, j],
            value: f64::NAN,
            expected: "an observed cell: this model needs complete data".into(),
        });
    }
    data.visit(&mut |index, value| values[(index[0], index[1])] = T::lit(value))?;
    Ok(values)
}
