//! A few rows of a tile.

use crate::Real;
use crate::kernel::strata::{Tile, merge};
use crate::parallel::wide;

/// Entries of some rows of a tile, row after row: what is read and worked on at a time.
///
/// ```
/// use plca_tensor::Block;
/// let mut block = Block::default();
/// block.push_row(0, &mut [(4, 1.0), (2, 0.5), (4, 2.0), (3, 0.0)]);
/// block.push_row(7, &mut [(2, 5.0)]);
/// assert_eq!(block.runs, [[0, 2], [7, 3]]);
/// assert_eq!((block.columns, block.values), (vec![2, 4, 2], vec![0.5, 3.0, 5.0]));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block<T> {
    /// For every row that has entries: the row within its group, and where its entries end among those of the block.
    pub runs: Vec<[u32; 2]>,
    /// The column of every entry within its group.
    pub columns: Vec<u32>,
    /// Values, multiplied by [`Tiling::scale`](super::Tiling::scale).
    pub values: Vec<T>,
}

impl<T: Real> Block<T> {
    /// Adds a row from its entries (column, value) in any order: duplicates are summed in the order they come in, zeros dropped.
    /// The entries are sorted and summed where they lie.
    ///
    /// ```
    /// use plca_tensor::Block;
    /// let mut block = Block::default();
    /// block.push_row(3, &mut [(1, 0.0)]);
    /// assert_eq!(block, Block::default());                            // nothing is left of the row
    /// ```
    pub fn push_row(&mut self, row: u32, entries: &mut [(u32, T)]) {
        let kept = merge(entries, false);
        for &(column, value) in &entries[..kept] {
            self.columns.push(column);
            self.values.push(value);
        }
        if kept > 0 {
            self.runs.push([row, self.values.len() as u32]);
        }
    }

    /// Removes all entries and keeps the memory.
    ///
    /// ```
    /// use plca_tensor::Block;
    /// let mut block = Block::default();
    /// block.push_row(0, &mut [(1, 2.0)]);
    /// block.clear();
    /// assert_eq!(block, Block::default());
    /// ```
    pub fn clear(&mut self) {
        self.runs.clear();
        self.columns.clear();
        self.values.clear();
    }

    /// Refuses what is not a block of a tile with these numbers of rows and columns.
    pub(super) fn check(&self, (rows, columns): (usize, usize)) -> Result<(), String> {
        let entries = self.values.len();
        if self.columns.len() != entries {
            return Err(format!("{} columns, {entries} values", self.columns.len()));
        }
        let mut first = 0;
        for &[row, end] in &self.runs {
            if row as usize >= rows {
                return Err(format!("row {row} is outside 0..{rows}"));
            }
            if end < first || end as usize > entries {
                return Err(format!("row {row} ends at entry {end} of {entries}"));
            }
            first = end;
        }
        if first as usize != entries {
            return Err(format!("{entries} entries, rows end at {first}"));
        }
        let largest = wide(|| self.columns.iter().fold(0, |a, &c| a.max(c)));
        if entries > 0 && largest as usize >= columns {
            return Err(format!("column {largest} is outside 0..{columns}"));
        }
        let good = |x: T| (x >= T::zero()) & x.is_finite();
        if wide(|| self.values.iter().fold(true, |all, &x| all & good(x))) {
            return Ok(());
        }
        let bad = self.values.iter().find(|&&x| !good(x));
        let bad = bad.map_or(f64::NAN, |x| x.to_f64());
        Err(format!("value {bad} is not a finite number >= 0"))
    }

    /// What passes see of it.
    pub(crate) fn tile(&self) -> Tile<'_, T> {
        Tile {
            runs: &self.runs,
            columns: &self.columns,
            values: &self.values,
        }
    }
}
