//! Signed cells in the order of the pass.

use super::WIDTH;
use crate::{DataError, Order, Real};

/// Cells in the order in which the pass reads them: block after block of columns, row after row. Hidden cells and the
/// padding of the last block hold NaN.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Blocks<T> {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) values: Vec<T>,
}

impl<T: Real> Blocks<T> {
    /// All cells 0.
    pub(crate) fn zeros(rows: usize, columns: usize) -> Result<Self, DataError> {
        let mut values = Vec::new();
        pad(&mut values, [rows, columns])?;
        for (at, row) in values.chunks_exact_mut(WIDTH).enumerate() {
            let first = at / rows * WIDTH;
            row[..WIDTH.min(columns - first)].fill(T::zero());
        }
        Ok(Self {
            rows,
            columns,
            values,
        })
    }

    /// Values in this memory order, moved where they lie.
    pub(crate) fn from_values(
        rows: usize,
        columns: usize,
        mut values: Vec<T>,
        order: Order,
    ) -> Result<Self, DataError> {
        pad(&mut values, [rows, columns])?;
        match order {
            // A block of columns is contiguous, and only its own order changes.
            Order::ColumnMajor => {
                let mut block = Vec::new();
                for into in values.chunks_exact_mut(rows * WIDTH) {
                    block.clear();
                    block.extend_from_slice(into);
                    for (row, into) in into.chunks_exact_mut(WIDTH).enumerate() {
                        let from = block[row..].iter().step_by(rows);
                        into.iter_mut().zip(from).for_each(|(x, &from)| *x = from);
                    }
                }
            }
            Order::RowMajor => {
                let across = columns.div_ceil(WIDTH);
                for row in (0..rows).rev() {
                    let to = row * across * WIDTH;
                    values.copy_within(row * columns..(row + 1) * columns, to);
                    values[to + columns..to + across * WIDTH].fill(T::lit(f64::NAN));
                }
                transpose_chunks(&mut values, rows, across);
            }
        }
        Ok(Self {
            rows,
            columns,
            values,
        })
    }

    /// Where a cell is kept.
    fn position(&self, row: usize, column: usize) -> usize {
        (column / WIDTH * self.rows + row) * WIDTH + column % WIDTH
    }

    pub(crate) fn set(&mut self, row: usize, column: usize, value: T) {
        let at = self.position(row, column);
        self.values[at] = value;
    }

    /// Hides the cells that `hidden` says; returns how many.
    pub(crate) fn hide(&mut self, hidden: &mut dyn FnMut(usize, usize, f64) -> bool) -> usize {
        let mut count = 0;
        for column in 0..self.columns {
            for row in 0..self.rows {
                let at = self.position(row, column);
                let x = self.values[at];
                if !x.is_nan() && hidden(row, column, x.to_f64()) {
                    self.values[at] = T::lit(f64::NAN);
                    count += 1;
                }
            }
        }
        count
    }

    /// Visits the cells that are not hidden, row after row.
    pub(crate) fn for_each(&self, visit: &mut dyn FnMut(usize, usize, f64)) {
        for row in 0..self.rows {
            for column in 0..self.columns {
                let x = self.values[self.position(row, column)];
                if !x.is_nan() {
                    visit(row, column, x.to_f64());
                }
            }
        }
    }
}

/// Appends NaN up to the size of a matrix whose last block is padded.
fn pad<T: Real>(values: &mut Vec<T>, [rows, columns]: [usize; 2]) -> Result<(), DataError> {
    let padded = columns.checked_next_multiple_of(WIDTH);
    let size = padded.and_then(|columns| columns.checked_mul(rows));
    let reserved = size.map(|size| (size, values.try_reserve_exact(size - values.len())));
    let Some((size, Ok(()))) = reserved else {
        return Err(DataError::too_large(&[rows, columns]));
    };
    values.resize(size, T::lit(f64::NAN));
    Ok(())
}

/// Transposes a matrix of `rows x columns` runs of [`WIDTH`] values in place, cycle after cycle.
fn transpose_chunks<T: Real>(values: &mut [T], rows: usize, columns: usize) {
    let runs = values.as_chunks_mut::<WIDTH>().0;
    let mut done = vec![false; runs.len()];
    for first in 0..runs.len() {
        let (mut at, mut carried) = (first, runs[first]);
        while !done[at] {
            done[at] = true;
            at = at % columns * rows + at / columns;
            std::mem::swap(&mut carried, &mut runs[at]);
        }
    }
}
