//! Tiles of a sparse matrix, visited in rotating strata.
//!
//! Columns are cut into `G` groups of equal numbers of entries, rows into `L` lanes of `G` groups each. Stage `s` visits the tiles
//! `(r, (r + s) mod G)` for all groups `r` of rows. No two tiles of a lane share a row or a column group, and every lane has column sums
//! of its own, which are added in the order of the lanes: threads need no locks, the factor and the sums of a column group stay in the
//! second-level cache, and the order in which any sum receives its terms is fixed by `G` and `L`, which depend on the data alone.

use std::ops::Range;

use crate::Real;
use crate::kernel::blocks::add;
use crate::kernel::panel::Panel;
use crate::kernel::{Sums, part_rows, split};
use crate::parallel::{for_each_part, map_in_order};
use crate::sum::CompensatedSum;

// Changing any of these, the law of lanes or `cut` changes the order of sums: raise the version of stores of data on disk with it.
/// Groups of columns of all but small matrices; measured best from 1e6 to 2e7 entries (`benches/sparse.rs`).
const GROUPS: usize = 8;
/// Lanes at most: work for 64 threads.
pub(crate) const LANES: usize = 8;
/// There is one lane for this number of entries of an average column. Measured on one thread: with 50 to 90 entries for each column and lane
/// a second lane costs a tenth of the time; with 100 and more, eight lanes cost a twentieth.
const WORTH: usize = 256;
/// Fewer entries than this are one tile.
const SMALL: usize = 1 << 15;

/// How a matrix is cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    /// The mode whose rows are visited in order: the larger one. The other one is scattered to.
    pub(crate) outer: usize,
    /// Bounds of the row groups and of the column groups; as many row groups as column groups, or a multiple.
    pub(crate) bounds: [Vec<usize>; 2],
}

/// Cuts `counts` into `groups` consecutive parts of about equal sums; returns the bounds.
fn cut(counts: &[u32], groups: usize) -> Vec<usize> {
    let total: u64 = counts.iter().map(|&c| u64::from(c)).sum();
    let mut bounds = vec![0];
    let mut seen = 0;
    for (i, &c) in counts.iter().enumerate() {
        seen += u64::from(c);
        while bounds.len() < groups && seen * groups as u64 >= total * bounds.len() as u64 {
            bounds.push(i + 1);
        }
    }
    bounds.resize(groups, counts.len());
    bounds.push(counts.len());
    bounds
}

impl Grid {
    /// From the numbers of entries at every index of both modes, and of all entries.
    pub(crate) fn new(counts: &[Vec<u32>; 2], entries: usize) -> Self {
        let outer = usize::from(counts[1].len() > counts[0].len());
        let [rows, columns] = [&counts[outer], &counts[1 - outer]];
        let groups = if entries < SMALL { 1 } else { GROUPS };
        let lanes = match groups {
            1 => 1,
            _ => (entries / (WORTH * columns.len())).clamp(1, LANES),
        };
        Self {
            outer,
            bounds: [cut(rows, lanes * groups), cut(columns, groups)],
        }
    }

    /// Groups of rows and of columns.
    pub(crate) fn groups(&self) -> [usize; 2] {
        [0, 1].map(|side| self.bounds[side].len() - 1)
    }

    /// The rows of a group.
    pub(crate) fn rows(&self, group: usize) -> Range<usize> {
        self.bounds[0][group]..self.bounds[0][group + 1]
    }

    /// The columns of a group.
    pub(crate) fn columns(&self, group: usize) -> Range<usize> {
        self.bounds[1][group]..self.bounds[1][group + 1]
    }

    /// From a place within a tile to the index in the matrix.
    pub(crate) fn place(&self, tile: usize) -> impl Fn(u32, u32) -> [usize; 2] {
        let [_, groups] = self.groups();
        let row = self.rows(tile / groups).start;
        let column = self.columns(tile % groups).start;
        let outer = self.outer;
        move |i, j| {
            let (i, j) = (row + i as usize, column + j as usize);
            if outer == 0 { [i, j] } else { [j, i] }
        }
    }

    /// Adds up what `visit` finds in every tile; it returns the tile's `Σ V ln p`.
    pub(crate) fn accumulate<T: Real>(
        &self,
        panels: &[Panel<'_, T>],
        wanted: &[bool],
        visit: impl Fn(Share<'_, T>) -> f64 + Sync + Send,
    ) -> Sums<T> {
        let ([all, groups], stride) = (self.groups(), panels[0].stride);
        let modes = [self.outer, 1 - self.outer];
        // Any content: the first tile of a group zeroes its sums.
        let take = |side: usize| panels[modes[side]].room(wanted[modes[side]]);
        let mut row_sums = take(0);
        let mut lanes: Vec<_> = (0..all / groups).map(|_| take(1)).collect();
        let mut rows = split(&mut row_sums, &self.bounds[0], stride);
        let columns = lanes.iter_mut();
        let mut columns: Vec<_> = columns
            .map(|sums| split(sums, &self.bounds[1], stride))
            .collect();
        let factor = |side: usize, group: usize| {
            let bounds = &self.bounds[side][group..];
            &panels[modes[side]].values[bounds[0] * stride..bounds[1] * stride]
        };
        let mut ln_lik = CompensatedSum::default();
        for stage in 0..groups {
            let columns_now = columns.iter_mut().flatten();
            let work =
                rows.iter_mut()
                    .zip(columns_now)
                    .enumerate()
                    .map(|(r, (row_sums, column_sums))| {
                        let c = (r + stage) % groups;
                        Share {
                            tile: r * groups + c,
                            row_factor: factor(0, r),
                            column_factor: factor(1, c),
                            row_sums,
                            column_sums,
                            stride,
                            first: stage == 0,
                        }
                    });
            ln_lik.extend(map_in_order(work.collect(), &visit));
            columns.iter_mut().for_each(|lane| lane.rotate_left(1));
        }
        let mut column_sums = lanes.remove(0);
        let (size, others) = (part_rows(1), &lanes);
        if !others.is_empty() {
            for_each_part(&mut column_sums, size, |part, sums| {
                for lane in others {
                    add(sums, &lane[part * size..][..sums.len()]);
                }
            });
        }
        let mut modes = vec![row_sums, column_sums];
        modes.rotate_left(self.outer);
        Sums {
            modes,
            ln_lik: ln_lik.value(),
        }
    }
}

/// A tile's part of the factors and of the sums.
#[derive(Debug)]
pub(crate) struct Share<'a, T> {
    /// Its number, row group by row group.
    pub(crate) tile: usize,
    /// Factor rows of the row group and of the column group.
    pub(crate) row_factor: &'a [T],
    pub(crate) column_factor: &'a [T],
    /// Their sums; empty where not wanted.
    pub(crate) row_sums: &'a mut [T],
    pub(crate) column_sums: &'a mut [T],
    pub(crate) stride: usize,
    /// Whether nothing was added to these sums yet: then they hold anything.
    pub(crate) first: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_cut_into_more_lanes_where_columns_have_many_entries() {
        // 2000 rows and 200 columns, as many entries in each.
        let groups = |of_column: u32| {
            let counts = [vec![of_column / 10; 2000], vec![of_column; 200]];
            Grid::new(&counts, 200 * of_column as usize).groups()
        };
        for (of_column, rows, columns) in [
            (160, 1, 1),
            (170, 8, 8),
            (510, 8, 8),
            (520, 16, 8),
            (2040, 56, 8),
            (2050, 64, 8),
            (9000, 64, 8),
        ] {
            assert_eq!(groups(of_column), [rows, columns], "{of_column}");
        }
    }
}
