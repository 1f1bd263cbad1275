//! Sparse matrices: tiles in rotating strata.
//!
//! Rows and columns are cut into `G` groups of equal numbers of entries, the entries stored tile by tile and inside a tile
//! by row. Stage `s` visits the tiles `(r, (r + s) mod G)` for all `r`: no two share a row or a column group, so threads need
//! neither locks nor private accumulators, the factor and the sums of a column group stay in the second-level cache, and
//! the order in which any sum receives its terms is fixed by `G`, which depends on the data alone.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::panel::Panel;
use super::{Accumulate, Rule, Sums};
use crate::parallel::map_in_order;
use crate::sum::CompensatedSum;
use crate::{Coordinates, Real};

/// Groups in each direction of all but small matrices; measured best from 1e6 to 2e7 entries (`benches/sparse.rs`).
const GROUPS: usize = 8;
/// Fewer entries than this are one tile.
const SMALL: usize = 1 << 15;

/// Entries of one row within one tile.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Row within its group.
    row: u32,
    /// End of its entries, from the first entry of the tile.
    end: u32,
}

/// A tile: its runs and its entries.
#[derive(Clone, Debug)]
struct Tile {
    runs: Range<usize>,
    entries: Range<usize>,
}

/// Entries of a sparse matrix, each stored once.
#[derive(Clone, Debug)]
pub(crate) struct Strata<T> {
    /// The mode whose rows are visited in order: the larger one. The other one is scattered to.
    outer: usize,
    /// Bounds of the row groups and of the column groups.
    bounds: [Vec<usize>; 2],
    /// `G x G` tiles, row group by row group.
    tiles: Vec<Tile>,
    runs: Vec<Run>,
    /// Columns within their group.
    columns: Vec<u32>,
    values: Vec<T>,
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

/// The group of every index.
fn groups_of(bounds: &[usize]) -> Vec<u8> {
    let mut out = vec![0; bounds[bounds.len() - 1]];
    for (g, ends) in bounds.windows(2).enumerate() {
        out[ends[0]..ends[1]].fill(g as u8);
    }
    out
}

impl<T: Real> Strata<T> {
    /// Arranges checked entries: scattered straight into place, then sorted and merged within each short run.
    pub(crate) fn new(entries: Coordinates<T>, keep_zeros: bool) -> Self {
        let Coordinates {
            shape,
            indices,
            values,
        } = entries;
        let outer = usize::from(shape[1] > shape[0]);
        let pair = |entry: &[u32; 2]| (entry[outer] as usize, entry[1 - outer] as usize);
        let cells = indices.as_chunks::<2>().0;
        let groups = if cells.len() < SMALL { 1 } else { GROUPS };
        let mut counts = [vec![0u32; shape[outer]], vec![0u32; shape[1 - outer]]];
        for (row, column) in cells.iter().map(pair) {
            counts[0][row] += 1;
            counts[1][column] += 1;
        }
        let bounds = counts.map(|c| cut(&c, groups));
        let (row_group, column_group) = (groups_of(&bounds[0]), groups_of(&bounds[1]));

        // Start of every (tile, row) run, in storage order: tile by tile, row by row.
        let slot = |row: usize, column: usize| {
            let (r, c) = (row_group[row] as usize, column_group[column] as usize);
            let first = bounds[0][r];
            first * groups + c * (bounds[0][r + 1] - first) + (row - first)
        };
        let mut ends = vec![0usize; shape[outer] * groups + 1];
        cells
            .iter()
            .map(pair)
            .for_each(|(row, column)| ends[slot(row, column) + 1] += 1);
        for i in 1..ends.len() {
            ends[i] += ends[i - 1];
        }
        let mut placed_columns = vec![0u32; values.len()];
        let mut placed = vec![T::zero(); values.len()];
        for ((row, column), &value) in cells.iter().map(pair).zip(&values) {
            let at = &mut ends[slot(row, column)];
            placed_columns[*at] = (column - bounds[1][column_group[column] as usize]) as u32;
            placed[*at] = value;
            *at += 1;
        }
        drop((indices, values));

        // Now ends[i] is the end of run i. Sort, merge and compact in place.
        let mut strata = Self {
            outer,
            bounds,
            tiles: Vec::new(),
            runs: Vec::new(),
            columns: Vec::new(),
            values: Vec::new(),
        };
        let (mut write, mut first, mut run) = (0, 0, 0);
        let mut sorted: Vec<(u32, T)> = Vec::new();
        for r in 0..groups {
            let height = strata.bounds[0][r + 1] - strata.bounds[0][r];
            for _ in 0..groups {
                let (tile_runs, tile_entries) = (strata.runs.len(), write);
                for row in 0..height {
                    let end = ends[run];
                    run += 1;
                    if first == end {
                        continue;
                    }
                    sorted.clear();
                    sorted.extend(
                        placed_columns[first..end]
                            .iter()
                            .copied()
                            .zip(placed[first..end].iter().copied()),
                    );
                    // Stable: duplicates are added in the order they came in.
                    sorted.sort_by_key(|e| e.0);
                    first = end;
                    let begin = write;
                    for &(column, value) in &sorted {
                        if write > begin && placed_columns[write - 1] == column {
                            placed[write - 1] += value;
                        } else if keep_zeros || value > T::zero() {
                            placed_columns[write] = column;
                            placed[write] = value;
                            write += 1;
                        }
                    }
                    if write > begin {
                        strata.runs.push(Run {
                            row: row as u32,
                            end: (write - tile_entries) as u32,
                        });
                    }
                }
                strata.tiles.push(Tile {
                    runs: tile_runs..strata.runs.len(),
                    entries: tile_entries..write,
                });
            }
        }
        placed_columns.truncate(write);
        placed.truncate(write);
        if placed.capacity() > write + write / 8 {
            placed_columns.shrink_to_fit();
            placed.shrink_to_fit();
        }
        strata.runs.shrink_to_fit();
        strata.columns = placed_columns;
        strata.values = placed;
        strata
    }

    pub(crate) fn stored(&self) -> usize {
        self.values.len()
    }

    fn groups(&self) -> usize {
        self.bounds[0].len() - 1
    }

    /// Visits every entry, tile by tile.
    pub(crate) fn for_each(&self, visit: &mut dyn FnMut(&[usize], T)) {
        let groups = self.groups();
        for (t, tile) in self.tiles.iter().enumerate() {
            let mut at = tile.entries.start;
            for run in &self.runs[tile.runs.clone()] {
                let row = self.bounds[0][t / groups] + run.row as usize;
                while at < tile.entries.start + run.end as usize {
                    let column = self.bounds[1][t % groups] + self.columns[at] as usize;
                    let index = if self.outer == 0 {
                        [row, column]
                    } else {
                        [column, row]
                    };
                    visit(&index, self.values[at]);
                    at += 1;
                }
            }
        }
    }
}

/// The pass over one tile.
#[derive(Debug)]
pub struct TilePass<'a, T> {
    runs: &'a [Run],
    columns: &'a [u32],
    values: &'a [T],
    /// Factor rows of the row group and of the column group.
    row_factor: &'a [T],
    column_factor: &'a [T],
    /// Their sums; empty where not wanted.
    row_sums: &'a mut [T],
    column_sums: &'a mut [T],
    stride: usize,
    rule: Rule,
    log: bool,
    /// Whether this is the first tile that adds to these sums: then they hold anything.
    first: bool,
}

impl<T: Real> WithSimd for TilePass<'_, T> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        if self.first {
            // Here, not before the pass: the zeros stay in the second-level cache.
            self.row_sums.fill(T::zero());
            self.column_sums.fill(T::zero());
        }
        let full = !self.row_sums.is_empty() && !self.column_sums.is_empty();
        let usual = full && self.rule == Rule::Ratio && !self.log;
        macro_rules! by_vectors {
            ($($c:literal),*) => {
                match self.stride / T::lanes::<S>() {
                    $($c if usual => self.run::<S, $c, true>(simd),
                    $c => self.run::<S, $c, false>(simd),)*
                    _ => self.run_long(simd),
                }
            };
        }
        by_vectors!(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)
    }
}

impl<T: Real> TilePass<'_, T> {
    /// Rows of `C` registers: the row's factor and its sums stay in registers. `USUAL`: ratios, both sums, no logarithms.
    #[inline(always)]
    fn run<S: Simd, const C: usize, const USUAL: bool>(self, simd: S) -> f64 {
        let row_factor = T::vectors::<S>(self.row_factor).0.as_chunks::<C>().0;
        let column_factor = T::vectors::<S>(self.column_factor).0.as_chunks::<C>().0;
        let row_sums = T::vectors_mut::<S>(self.row_sums).0.as_chunks_mut::<C>().0;
        let column_sums = T::vectors_mut::<S>(self.column_sums)
            .0
            .as_chunks_mut::<C>()
            .0;
        let rows_wanted = USUAL || !row_sums.is_empty();
        let columns_wanted = USUAL || !column_sums.is_empty();
        let mut ln_lik = CompensatedSum::default();
        let mut first = 0;
        for run in self.runs {
            let end = run.end as usize;
            let w = row_factor[run.row as usize];
            let mut sum = [T::vsplat(simd, T::zero()); C];
            for (&column, &value) in self.columns[first..end]
                .iter()
                .zip(&self.values[first..end])
            {
                let h = column_factor[column as usize];
                let q = match self.rule {
                    Rule::Unit if !USUAL => T::one(),
                    _ => {
                        let mut dot = T::vmul(simd, w[0], h[0]);
                        for c in 1..C {
                            dot = T::vmul_add(simd, w[c], h[c], dot);
                        }
                        let p = T::vsum(simd, dot);
                        if !USUAL && self.log && value > T::zero() {
                            // The logarithm of 0 is -inf: no support where something was observed.
                            ln_lik += value.to_f64() * p.to_f64().ln();
                        }
                        // [SPEC 1.3] q = V / p, added to every mode entry by entry
                        value / if p > T::TINY { p } else { T::TINY }
                    }
                };
                let q = T::vsplat(simd, q);
                if rows_wanted {
                    for c in 0..C {
                        sum[c] = T::vmul_add(simd, q, h[c], sum[c]);
                    }
                }
                if columns_wanted {
                    let into = &mut column_sums[column as usize];
                    for c in 0..C {
                        into[c] = T::vmul_add(simd, q, w[c], into[c]);
                    }
                }
            }
            if rows_wanted {
                let into = &mut row_sums[run.row as usize];
                for c in 0..C {
                    into[c] = T::vadd(simd, into[c], sum[c]);
                }
            }
            first = end;
        }
        ln_lik.value()
    }

    /// Rows too long for the registers.
    #[inline(always)]
    fn run_long<S: Simd>(self, simd: S) -> f64 {
        let stride = self.stride;
        let row = |x: &[T], i: usize| i * stride..(i + 1) * stride * usize::from(!x.is_empty());
        let (rows_wanted, columns_wanted) =
            (!self.row_sums.is_empty(), !self.column_sums.is_empty());
        let mut ln_lik = CompensatedSum::default();
        let mut first = 0;
        for run in self.runs {
            let end = run.end as usize;
            let i = run.row as usize;
            let w = T::vectors::<S>(&self.row_factor[row(self.row_factor, i)]).0;
            for (&column, &value) in self.columns[first..end]
                .iter()
                .zip(&self.values[first..end])
            {
                let j = column as usize;
                let h = T::vectors::<S>(&self.column_factor[row(self.column_factor, j)]).0;
                let q = match self.rule {
                    Rule::Unit => T::one(),
                    Rule::Ratio => {
                        let mut dots = [T::vsplat(simd, T::zero()); 4];
                        for (c, (&w, &h)) in w.iter().zip(h).enumerate() {
                            dots[c % 4] = T::vmul_add(simd, w, h, dots[c % 4]);
                        }
                        let [a, b, c, d] = dots;
                        let p = T::vsum(
                            simd,
                            T::vadd(simd, T::vadd(simd, a, b), T::vadd(simd, c, d)),
                        );
                        if self.log && value > T::zero() {
                            ln_lik += value.to_f64() * p.to_f64().ln();
                        }
                        value / if p > T::TINY { p } else { T::TINY }
                    }
                };
                let q = T::vsplat(simd, q);
                if rows_wanted {
                    let into = T::vectors_mut::<S>(&mut self.row_sums[i * stride..][..stride]).0;
                    into.iter_mut()
                        .zip(h)
                        .for_each(|(s, &h)| *s = T::vmul_add(simd, q, h, *s));
                }
                if columns_wanted {
                    let into = T::vectors_mut::<S>(&mut self.column_sums[j * stride..][..stride]).0;
                    into.iter_mut()
                        .zip(w)
                        .for_each(|(s, &w)| *s = T::vmul_add(simd, q, w, *s));
                }
            }
            first = end;
        }
        ln_lik.value()
    }
}

/// Splits sums into the groups' disjoint parts; empty parts where there are no sums.
fn split<'a, T>(mut sums: &'a mut [T], bounds: &[usize], stride: usize) -> Vec<&'a mut [T]> {
    let wanted = !sums.is_empty();
    let mut parts = Vec::with_capacity(bounds.len() - 1);
    for ends in bounds.windows(2) {
        let (part, rest) = sums.split_at_mut(if wanted {
            (ends[1] - ends[0]) * stride
        } else {
            0
        });
        parts.push(part);
        sums = rest;
    }
    parts
}

impl<T: Real> Accumulate<T> for Strata<T> {
    fn accumulate(
        &self,
        panels: &[Panel<'_, T>],
        rule: Rule,
        wanted: &[bool],
        log: bool,
    ) -> Sums<T> {
        let (groups, stride) = (self.groups(), panels[0].stride);
        let modes = [self.outer, 1 - self.outer];
        // Any content: the first tile of a group zeroes its sums.
        let mut sums = modes.map(|m| {
            let len = if wanted[m] { panels[m].values.len() } else { 0 };
            panels[m].pool.take(len)
        });
        let [row_sums, column_sums] = &mut sums;
        let mut rows = split(row_sums, &self.bounds[0], stride);
        let mut columns = split(column_sums, &self.bounds[1], stride);
        let factor = |side: usize, group: usize| {
            &panels[modes[side]].values
                [self.bounds[side][group] * stride..self.bounds[side][group + 1] * stride]
        };
        let mut ln_lik = CompensatedSum::default();
        for stage in 0..groups {
            let work = rows.iter_mut().zip(columns.iter_mut()).enumerate().map(
                |(r, (row_sums, column_sums))| {
                    let c = (r + stage) % groups;
                    let tile = &self.tiles[r * groups + c];
                    TilePass {
                        runs: &self.runs[tile.runs.clone()],
                        columns: &self.columns[tile.entries.clone()],
                        values: &self.values[tile.entries.clone()],
                        row_factor: factor(0, r),
                        column_factor: factor(1, c),
                        row_sums,
                        column_sums,
                        stride,
                        rule,
                        log,
                        first: stage == 0,
                    }
                },
            );
            let logs = map_in_order(work.collect(), T::strata_tile);
            ln_lik.extend(logs);
            columns.rotate_left(1);
        }
        let [row_sums, column_sums] = sums;
        let modes = if self.outer == 0 {
            vec![row_sums, column_sums]
        } else {
            vec![column_sums, row_sums]
        };
        Sums {
            modes,
            ln_lik: ln_lik.value(),
        }
    }
}
