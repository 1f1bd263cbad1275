//! Sparse matrices: the tiles of a [`Grid`], in memory, each a [`Block`](crate::Block).

pub(crate) mod grid;

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::coordinate::Lender;
use super::panel::Panel;
use super::{Accumulate, Cells, Rule, Sums, split};
use crate::parallel::map_in_order;
use crate::sum::CompensatedSum;
use crate::{Coordinates, Real};
use grid::{Grid, Share};

/// Entries of a sparse matrix, each stored once.
#[derive(Clone, Debug)]
pub(crate) struct Strata<T> {
    pub(crate) grid: Grid,
    /// Of every row group and column group, row group by row group.
    tiles: Vec<TileLocation>,
    /// Tile after tile.
    columns: Vec<u32>,
    values: Vec<T>,
}

/// Where a tile lies.
#[derive(Clone, Debug)]
struct TileLocation {
    /// As of a [`Block`](crate::Block).
    runs: Vec<[u32; 2]>,
    entries: Range<usize>,
}

/// Entries of some rows of a tile, as a [`Block`](crate::Block) has them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tile<'a, T> {
    pub(crate) runs: &'a [[u32; 2]],
    pub(crate) columns: &'a [u32],
    pub(crate) values: &'a [T],
}

impl<T: Copy> Tile<'_, T> {
    /// Visits every entry by its row and its column within their groups.
    pub(crate) fn for_each(self, mut visit: impl FnMut(u32, u32, T)) {
        let mut at = 0;
        for &[row, end] in self.runs {
            while at < end as usize {
                visit(row, self.columns[at], self.values[at]);
                at += 1;
            }
        }
    }
}

/// Sorts the entries (column, value) of a row: duplicates are summed in the order they came in, zeros dropped unless `keep_zeros`. How many
/// are left, at the front.
pub(crate) fn merge<T: Real>(entries: &mut [(u32, T)], keep_zeros: bool) -> usize {
    // Stable: duplicates are added in the order they came in.
    entries.sort_by_key(|e| e.0);
    let mut kept = 0;
    for at in 0..entries.len() {
        let (column, value) = entries[at];
        if kept > 0 && entries[kept - 1].0 == column {
            entries[kept - 1].1 += value;
        } else if keep_zeros || value != T::zero() {
            entries[kept] = (column, value);
            kept += 1;
        }
    }
    kept
}

/// The group of every index.
fn groups_of(bounds: &[usize]) -> Vec<u8> {
    let mut out = vec![0; bounds[bounds.len() - 1]];
    for (g, ends) in bounds.windows(2).enumerate() {
        out[ends[0]..ends[1]].fill(g as u8);
    }
    out
}

/// Checked entries of a matrix, which can be gone through several times, always in one order.
pub(crate) trait Entries<T> {
    /// Rows and columns.
    fn shape(&self) -> [usize; 2];
    /// How many there are.
    fn stored(&self) -> usize;
    /// Calls `visit` with the indices and the value of every entry.
    fn for_each(&self, visit: impl FnMut([usize; 2], T));
}

impl<T: Real> Entries<T> for Coordinates<T> {
    fn shape(&self) -> [usize; 2] {
        [self.shape[0], self.shape[1]]
    }

    fn stored(&self) -> usize {
        self.values.len()
    }

    fn for_each(&self, mut visit: impl FnMut([usize; 2], T)) {
        let cells = self.indices.as_chunks::<2>().0;
        for (&[i, j], &value) in cells.iter().zip(&self.values) {
            visit([i as usize, j as usize], value);
        }
    }
}

/// How a matrix of these entries is cut.
pub(crate) fn grid_of<T>(entries: &impl Entries<T>) -> Grid {
    let shape = entries.shape();
    let mut counts = [vec![0u32; shape[0]], vec![0u32; shape[1]]];
    entries.for_each(|[i, j], _| {
        counts[0][i] += 1;
        counts[1][j] += 1;
    });
    Grid::new(&counts, entries.stored())
}

impl<T: Real> Strata<T> {
    /// Arranges checked entries: scattered straight into place, then sorted and merged there, run by run. Nothing else has their size.
    pub(crate) fn new(entries: impl Entries<T>, grid: Grid, keep_zeros: bool) -> Self {
        let stored = entries.stored();
        let (outer, [row_groups, groups], bounds) = (grid.outer, grid.groups(), &grid.bounds);
        let (row_group, column_group) = (groups_of(&bounds[0]), groups_of(&bounds[1]));

        // Start of every (tile, row) run, in storage order: tile by tile, row by row.
        let slot = |row: usize, column: usize| {
            let (r, c) = (row_group[row] as usize, column_group[column] as usize);
            let first = bounds[0][r];
            first * groups + c * (bounds[0][r + 1] - first) + (row - first)
        };
        let mut ends = vec![0u32; row_group.len() * groups + 1];
        entries.for_each(|index, _| ends[slot(index[outer], index[1 - outer]) + 1] += 1);
        for i in 1..ends.len() {
            ends[i] += ends[i - 1];
        }
        let mut columns = vec![0u32; stored];
        let mut values = vec![T::zero(); stored];
        entries.for_each(|index, value| {
            let (row, column) = (index[outer], index[1 - outer]);
            let end = &mut ends[slot(row, column)];
            let at = *end as usize;
            columns[at] = (column - bounds[1][column_group[column] as usize]) as u32;
            values[at] = value;
            *end += 1;
        });
        drop(entries);

        // Now ends[i] is the end of run i.
        let runs_of = |t: usize| {
            let rows = grid.rows(t / groups);
            let run = rows.start * groups + t % groups * rows.len();
            &ends[run..run + rows.len()]
        };
        let mut starts = vec![0];
        for t in 0..row_groups * groups {
            let end = runs_of(t).last().map(|&end| end as usize);
            starts.push(end.unwrap_or(starts[t]));
        }
        let of_tiles = split(&mut columns, &starts, 1).into_iter();
        let of_tiles = of_tiles.zip(split(&mut values, &starts, 1)).enumerate();
        let kept = map_in_order(of_tiles.collect(), |(t, (columns, values))| {
            let (mut runs, mut sorted, mut kept) = (Vec::new(), Vec::new(), 0);
            let mut first = 0;
            for (row, &end) in runs_of(t).iter().enumerate() {
                let run = first..end as usize - starts[t];
                first = run.end;
                sorted.clear();
                let entries = columns[run.clone()].iter().zip(&values[run]);
                sorted.extend(entries.map(|(&column, &value)| (column, value)));
                let left = merge(&mut sorted, keep_zeros);
                for &(column, value) in &sorted[..left] {
                    (columns[kept], values[kept]) = (column, value);
                    kept += 1;
                }
                if left > 0 {
                    runs.push([row as u32, kept as u32]);
                }
            }
            runs.shrink_to_fit();
            (runs, kept)
        });
        // Tiles move up to where those before them have lost entries.
        let (mut tiles, mut end) = (Vec::with_capacity(kept.len()), 0);
        for ((runs, kept), &start) in kept.into_iter().zip(&starts) {
            let entries = end..end + kept;
            columns.copy_within(start..start + kept, end);
            values.copy_within(start..start + kept, end);
            end = entries.end;
            tiles.push(TileLocation { runs, entries });
        }
        columns.truncate(end);
        values.truncate(end);
        columns.shrink_to_fit();
        values.shrink_to_fit();
        Self {
            grid,
            tiles,
            columns,
            values,
        }
    }

    fn tile(&self, at: usize) -> Tile<'_, T> {
        let TileLocation { runs, entries } = &self.tiles[at];
        Tile {
            runs,
            columns: &self.columns[entries.clone()],
            values: &self.values[entries.clone()],
        }
    }
}

impl<T: Real> Cells<T> for Strata<T> {
    fn stored(&self) -> usize {
        self.values.len()
    }

    fn for_each(&self, visit: &mut dyn FnMut(&[usize], T)) {
        for t in 0..self.tiles.len() {
            let place = self.grid.place(t);
            let tile = self.tile(t);
            tile.for_each(|row, column, value| visit(&place(row, column), value));
        }
    }

    fn lender(&self, mode: usize) -> Option<&dyn Lender<T>> {
        (mode == self.grid.outer).then_some(self)
    }
}

impl<T: Real> Lender<T> for Strata<T> {
    fn lend(&self, rows: Range<usize>, indices: &mut Vec<u32>, values: &mut Vec<T>) {
        let [row_groups, groups] = self.grid.groups();
        for r in 0..row_groups {
            let group = self.grid.rows(r);
            let within = rows.start.max(group.start)..rows.end.min(group.end);
            if within.is_empty() {
                continue;
            }
            let first = (within.start - group.start) as u32;
            let mut tiles: Vec<_> = (0..groups)
                .map(|c| {
                    let tile = self.tile(r * groups + c);
                    let run = tile.runs.partition_point(|&[row, _]| row < first);
                    (tile, run, self.grid.columns(c).start as u32)
                })
                .collect();
            for row in within {
                let row = (row - group.start) as u32;
                for (tile, run, base) in &mut tiles {
                    let end = match tile.runs.get(*run) {
                        Some(&[at, end]) if at == row => end as usize,
                        _ => continue,
                    };
                    let first = run.checked_sub(1).map_or(0, |before| tile.runs[before][1]);
                    *run += 1;
                    let entries = first as usize..end;
                    let entries = tile.columns[entries.clone()]
                        .iter()
                        .zip(&tile.values[entries]);
                    for (&column, &value) in entries.filter(|(_, x)| **x != T::zero()) {
                        indices.push(*base + column);
                        values.push(value);
                    }
                }
            }
        }
    }
}

/// The pass over one tile.
#[derive(Debug)]
pub struct TilePass<'a, 'b, T> {
    cells: Tile<'a, T>,
    share: &'a mut Share<'b, T>,
    rule: Rule,
    /// `Σ V ln p` over the tile so far.
    ln_lik: CompensatedSum,
}

impl<'a, 'b, T> TilePass<'a, 'b, T> {
    /// A pass that goes on with `ln_lik`.
    pub(crate) fn new(
        cells: Tile<'a, T>,
        share: &'a mut Share<'b, T>,
        rule: Rule,
        ln_lik: CompensatedSum,
    ) -> Self {
        Self {
            cells,
            share,
            rule,
            ln_lik,
        }
    }
}

impl<T: Real> WithSimd for TilePass<'_, '_, T> {
    type Output = CompensatedSum;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> CompensatedSum {
        if std::mem::take(&mut self.share.first) {
            // Here, not before the pass: the zeros stay in the second-level cache.
            self.share.row_sums.fill(T::zero());
            self.share.column_sums.fill(T::zero());
        }
        let full = !self.share.row_sums.is_empty() && !self.share.column_sums.is_empty();
        let usual = full && self.rule == Rule::Ratio { log: false };
        macro_rules! by_vectors {
            ($($c:literal),*) => {
                match self.share.stride / T::lanes::<S>() {
                    $($c if usual => self.run::<S, $c, true>(simd),
                    $c => self.run::<S, $c, false>(simd),)*
                    _ => self.run_long(simd),
                }
            };
        }
        by_vectors!(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)
    }
}

/// `Σ_z w_z h_z`, one register at a time.
#[inline(always)]
pub(super) fn dot<S: Simd, T: Real>(simd: S, w: &[T::Vector<S>], h: &[T::Vector<S>]) -> T {
    let mut sum = T::vmul(simd, w[0], h[0]);
    for (&w, &h) in w[1..].iter().zip(&h[1..]) {
        sum = T::vmul_add(simd, w, h, sum);
    }
    T::vsum(simd, sum)
}

/// Adds `q` times `x` to `into`.
#[inline(always)]
pub(super) fn add<S: Simd, T: Real>(
    simd: S,
    q: T::Vector<S>,
    x: &[T::Vector<S>],
    into: &mut [T::Vector<S>],
) {
    for (into, &x) in into.iter_mut().zip(x) {
        *into = T::vmul_add(simd, q, x, *into);
    }
}

/// `V / p` in every lane. With `log` the entry is added to the logarithms.
#[inline(always)]
pub(super) fn ratio<S: Simd, T: Real>(
    simd: S,
    [value, p]: [T; 2],
    log: bool,
    ln_lik: &mut CompensatedSum,
) -> T::Vector<S> {
    if log && value > T::zero() {
        // The logarithm of 0 is -inf: no support where something was observed.
        *ln_lik += value.to_f64() * p.to_f64().ln();
    }
    // [SPEC 1.3] q = V / p, added to every mode entry by entry
    T::vsplat(simd, value / if p > T::TINY { p } else { T::TINY })
}

impl<T: Real> TilePass<'_, '_, T> {
    /// Rows of `C` registers, at most 16: the row's factor and its sums are read and written once for all of its entries. `USUAL`: ratios,
    /// both sums, no logarithms.
    #[inline(always)]
    fn run<S: Simd, const C: usize, const USUAL: bool>(self, simd: S) -> CompensatedSum {
        let (columns, values) = (self.cells.columns, self.cells.values);
        let mut ln_lik = self.ln_lik;
        let log = !USUAL && self.rule == Rule::Ratio { log: true };
        let units = !USUAL && self.rule == Rule::Unit;
        let share = self.share;
        let row_factor = T::vectors::<S>(share.row_factor).0.as_chunks::<C>().0;
        let column_factor = T::vectors::<S>(share.column_factor).0.as_chunks::<C>().0;
        let row_sums = T::vectors_mut::<S>(share.row_sums).0.as_chunks_mut::<C>().0;
        let column_sums = &mut *share.column_sums;
        let column_sums = T::vectors_mut::<S>(column_sums).0.as_chunks_mut::<C>().0;
        let rows_wanted = USUAL || !row_sums.is_empty();
        let columns_wanted = USUAL || !column_sums.is_empty();
        let mut first = 0;
        for &[row, end] in self.cells.runs {
            let w = row_factor[row as usize];
            let mut sum = [T::vsplat(simd, T::zero()); C];
            let entries = first..end as usize;
            first = end as usize;
            for (&column, &value) in columns[entries.clone()].iter().zip(&values[entries]) {
                let h = column_factor[column as usize];
                let q = if units {
                    T::vsplat(simd, T::one())
                } else {
                    let p = dot::<S, T>(simd, &w, &h);
                    ratio(simd, [value, p], log, &mut ln_lik)
                };
                if rows_wanted {
                    add::<S, T>(simd, q, &h, &mut sum);
                }
                if columns_wanted {
                    add::<S, T>(simd, q, &w, &mut column_sums[column as usize]);
                }
            }
            if rows_wanted {
                for (into, sum) in row_sums[row as usize].iter_mut().zip(sum) {
                    *into = T::vadd(simd, *into, sum);
                }
            }
        }
        ln_lik
    }

    /// Rows of more than 16 registers. Entries are taken two at a time: the row's sums are loaded and stored once for two entries.
    #[inline(always)]
    fn run_long<S: Simd>(self, simd: S) -> CompensatedSum {
        let (columns, values) = (self.cells.columns, self.cells.values);
        let mut ln_lik = self.ln_lik;
        let log = self.rule == Rule::Ratio { log: true };
        let units = self.rule == Rule::Unit;
        let vectors = self.share.stride / T::lanes::<S>();
        let at = |i: u32| i as usize * vectors..(i as usize + 1) * vectors;
        let row_factor = T::vectors::<S>(self.share.row_factor).0;
        let column_factor = T::vectors::<S>(self.share.column_factor).0;
        let row_sums = T::vectors_mut::<S>(self.share.row_sums).0;
        let column_sums = T::vectors_mut::<S>(self.share.column_sums).0;
        let (rows_wanted, columns_wanted) = (!row_sums.is_empty(), !column_sums.is_empty());
        let one = T::vsplat(simd, T::one());
        let mut first = 0;
        for &[row, end] in self.cells.runs {
            let w = &row_factor[at(row)];
            let sum = if rows_wanted {
                &mut row_sums[at(row)]
            } else {
                &mut [][..]
            };
            let entries = first..end as usize;
            first = end as usize;
            let (pairs, last) = columns[entries.clone()].as_chunks::<2>();
            let (values, last_value) = values[entries].as_chunks::<2>();
            for (&[i, j], &[u, v]) in pairs.iter().zip(values) {
                let (a, b) = (&column_factor[at(i)], &column_factor[at(j)]);
                let [q, r] = if units {
                    [one; 2]
                } else {
                    let (x, y) = (dot::<S, T>(simd, w, a), dot::<S, T>(simd, w, b));
                    [
                        ratio(simd, [u, x], log, &mut ln_lik),
                        ratio(simd, [v, y], log, &mut ln_lik),
                    ]
                };
                for ((s, &a), &b) in sum.iter_mut().zip(a).zip(b) {
                    *s = T::vmul_add(simd, r, b, T::vmul_add(simd, q, a, *s));
                }
                if columns_wanted {
                    add::<S, T>(simd, q, w, &mut column_sums[at(i)]);
                    add::<S, T>(simd, r, w, &mut column_sums[at(j)]);
                }
            }
            for (&i, &u) in last.iter().zip(last_value) {
                let a = &column_factor[at(i)];
                let q = if units {
                    one
                } else {
                    let p = dot::<S, T>(simd, w, a);
                    ratio(simd, [u, p], log, &mut ln_lik)
                };
                add::<S, T>(simd, q, a, sum);
                if columns_wanted {
                    add::<S, T>(simd, q, w, &mut column_sums[at(i)]);
                }
            }
        }
        ln_lik
    }
}

impl<T: Real> Accumulate<T> for Strata<T> {
    fn accumulate(&self, panels: &[Panel<'_, T>], rule: Rule, wanted: &[bool]) -> Sums<T> {
        self.grid.accumulate(panels, wanted, |mut share| {
            let tile = self.tile(share.tile);
            let pass = TilePass::new(tile, &mut share, rule, CompensatedSum::default());
            T::strata_tile(pass).value()
        })
    }
}
