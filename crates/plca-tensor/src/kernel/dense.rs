//! The fused pass over dense data of any order.
//!
//! The data are read as a matrix: the fastest modes together are its rows, the others its columns. The
//! factor of the rows is the Khatri-Rao product of the fast modes, packed once per pass; that of the columns
//! is formed 480 columns at a time. Column counts are spread over the slow modes at the end of each chunk.
//! So every order costs three products, and neither the model nor the ratio ever exists as a whole.
//!
//! Columns are cut into at most eight groups, a function of the shape alone. The column counts of a matrix go
//! straight to their place; all else each group adds up in its own accumulators, which are then added in order: the
//! bits do not depend on the number of threads.

use pulp::{Simd, WithSimd};

use super::aligned::{Aligned, Pool};
use super::log::LnLik;
use super::panel::Panel;
use super::tiles::{AddColumns, AddRows, FillRatios, band_vectors};
use super::{Accumulate, Rule, Sums};
use crate::parallel::{for_each_part, map_in_order};
use crate::sum::CompensatedSum;
use crate::{Order, Real};

/// Rows of a panel, whose factor stays in the first-level cache.
const PANEL: usize = 192;
/// Columns of a tile of ratios.
const TILE: usize = 48;
/// Columns of a chunk, whose factor and counts stay in the second-level cache.
const CHUNK: usize = 480;
/// Fewer rows than this are folded with the next mode, so that vectors are filled.
const FEW_ROWS: usize = 64;
/// Groups of columns, each with its own accumulators.
const GROUPS: usize = 8;

/// Dense cells as the kernels read them; a hidden cell holds NaN.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Grid<T> {
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Vec<T>,
    pub(crate) order: Order,
}

/// The modes in storage order, slowest first, cut into columns and rows.
#[derive(Debug)]
struct Layout {
    slow: Vec<usize>,
    fast: Vec<usize>,
    columns: usize,
    rows: usize,
}

impl Layout {
    fn new(shape: &[usize], order: Order) -> Self {
        let mut slow: Vec<usize> = match order {
            Order::RowMajor => (0..shape.len()).collect(),
            Order::ColumnMajor => (0..shape.len()).rev().collect(),
        };
        let (mut fast, mut rows) = (Vec::new(), 1);
        while let Some(mode) = slow.pop() {
            rows *= shape[mode];
            fast.insert(0, mode);
            if rows >= FEW_ROWS || slow.len() == 1 {
                break;
            }
        }
        let columns = slow.iter().map(|&m| shape[m]).product();
        Self {
            slow,
            fast,
            columns,
            rows,
        }
    }
}

/// `Π_m F_m[i_m, ·]` for the linear positions `range` of `modes` (slowest first): a Khatri-Rao product.
fn khatri_rao<T: Real>(
    panels: &[Panel<'_, T>],
    modes: &[usize],
    range: std::ops::Range<usize>,
    out: &mut [T],
) {
    let stride = panels[0].stride;
    for (position, row) in range.zip(out.chunks_exact_mut(stride)) {
        row.fill(T::one());
        let mut rest = position;
        for &m in modes.iter().rev() {
            let factor = panels[m].row(rest % panels[m].rows);
            rest /= panels[m].rows;
            row.iter_mut().zip(factor).for_each(|(r, &f)| *r *= f);
        }
    }
}

/// Adds `sums`, indexed by linear positions of `modes`, to the sums of each wanted mode:
/// `S_m[i,z] += Σ T[position,z] Π_{l≠m} F_l`.
fn spread<T: Real>(
    panels: &[Panel<'_, T>],
    modes: &[usize],
    first: usize,
    sums: &[T],
    wanted: &[bool],
    into: &mut [Aligned<T>],
) {
    let stride = panels[0].stride;
    let mut index = vec![0; modes.len()];
    let mut product = vec![T::zero(); stride];
    for (position, sum) in (first..).zip(sums.chunks_exact(stride)) {
        let mut rest = position;
        for (i, &m) in index.iter_mut().zip(modes).rev() {
            *i = rest % panels[m].rows;
            rest /= panels[m].rows;
        }
        for (at, &m) in modes.iter().enumerate().filter(|&(_, &m)| wanted[m]) {
            product.copy_from_slice(sum);
            for (l, &other) in modes.iter().enumerate().filter(|&(l, _)| l != at) {
                product
                    .iter_mut()
                    .zip(panels[other].row(index[l]))
                    .for_each(|(p, &f)| *p *= f);
            }
            into[m][index[at] * stride..][..stride]
                .iter_mut()
                .zip(&product)
                .for_each(|(t, &p)| *t += p);
        }
    }
}

/// The factor of the rows in both orders that the tiles read.
#[derive(Debug)]
struct Rows<T> {
    /// `rows x stride`, components contiguous.
    by_row: Aligned<T>,
    /// Band after band, `k x band height`, rows contiguous.
    by_component: Aligned<T>,
    /// Rows padded to whole registers.
    padded: usize,
}

impl<T: Real> Rows<T> {
    fn new(by_row: Aligned<T>, rows: usize, k: usize, pool: &Pool<T>) -> Self {
        let (stride, lanes) = (by_row.len() / rows, super::lanes::lane_count::<T>());
        let padded = rows.next_multiple_of(lanes);
        let mut by_component = pool.take(padded * k);
        let band = super::lanes::band::<T>();
        for_each_part(&mut by_component, PANEL * k, |part, panel| {
            for (at, target) in panel.chunks_mut(band * k).enumerate() {
                let (first, height) = (part * PANEL + at * band, target.len() / k);
                let real = height.min(rows - first);
                let columns = target.chunks_exact_mut(height);
                columns.for_each(|column| column[real..].fill(T::zero()));
                for i in 0..real {
                    for (z, &x) in by_row[(first + i) * stride..][..k].iter().enumerate() {
                        target[z * height + i] = x;
                    }
                }
            }
        });
        Self {
            by_row,
            by_component,
            padded,
        }
    }
}

impl<T: Real> Rows<T> {
    /// From the layout of `by_component` back to rows of `stride` values.
    fn transpose(&self, sums: &[T], rows: usize, k: usize, mut out: Aligned<T>) -> Aligned<T> {
        let (stride, band) = (out.len() / rows, super::lanes::band::<T>());
        for_each_part(&mut out, PANEL * stride, |part, target| {
            let first = part * PANEL;
            let height = PANEL.min(self.padded - first);
            let bands = sums[first * k..][..height * k].chunks(band * k);
            let rows = target.chunks_exact_mut(stride);
            rows.for_each(|row| row[k..].fill(T::zero()));
            for (sums, target) in bands.zip(target.chunks_mut(band * stride)) {
                for (z, column) in sums.chunks_exact(sums.len() / k).enumerate() {
                    for (row, &x) in target.chunks_exact_mut(stride).zip(column) {
                        row[z] = x;
                    }
                }
            }
        });
        out
    }
}

/// What one group of columns adds up.
#[derive(Debug)]
pub struct Partial<T> {
    /// In the layout of [`Rows::by_component`]; empty if no fast mode is wanted.
    rows: Aligned<T>,
    /// Per mode; only slow modes are filled, and not that of a matrix.
    slow: Vec<Aligned<T>>,
    ln_lik: CompensatedSum,
}

/// One group of columns and what it is to add up.
#[derive(Debug)]
pub struct GroupPass<'a, T> {
    grid: &'a Grid<T>,
    layout: &'a Layout,
    panels: &'a [Panel<'a, T>],
    rows: &'a Rows<T>,
    rule: Rule,
    wanted: &'a [bool],
    log: bool,
    columns: std::ops::Range<usize>,
    /// Where the counts of a matrix' columns belong; empty if there are several slow modes or they are not wanted.
    direct: &'a mut [T],
}

impl<T: Real> WithSimd for GroupPass<'_, T> {
    type Output = Partial<T>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Partial<T> {
        match band_vectors::<S>() {
            3 => self.run::<S, 3>(simd),
            _ => self.run::<S, 2>(simd),
        }
    }
}

impl<T: Real> GroupPass<'_, T> {
    #[inline(always)]
    fn run<S: Simd, const MR: usize>(self, simd: S) -> Partial<T> {
        let Self {
            grid,
            layout,
            panels,
            rows,
            rule,
            wanted,
            log,
            columns,
            direct,
        } = self;
        let (k, stride, height) = (panels[0].k, panels[0].stride, layout.rows);
        let pool = panels[0].pool;
        let rows_wanted = layout.fast.iter().any(|&m| wanted[m]);
        let columns_wanted = layout.slow.iter().any(|&m| wanted[m]);
        let mut partial = Partial {
            rows: pool.take(if rows_wanted {
                rows.by_component.len()
            } else {
                0
            }),
            slow: (0..panels.len())
                .map(|m| {
                    let filled = wanted[m] && layout.slow.len() > 1 && layout.slow.contains(&m);
                    panels[m]
                        .pool
                        .zeros(if filled { panels[m].values.len() } else { 0 })
                })
                .collect(),
            ln_lik: CompensatedSum::default(),
        };
        let widest = CHUNK.min(columns.len());
        let spread_out = layout.slow.len() != 1;
        let buffer = || pool.take(if spread_out { widest * stride } else { 0 });
        let (mut products, mut sums) = (buffer(), buffer());
        let mut room = pool.take(PANEL.min(rows.padded) * TILE);

        for first_column in columns.clone().step_by(CHUNK) {
            let width = CHUNK.min(columns.end - first_column);
            let (factor, counts): (&[T], &mut [T]) = match layout.slow[..] {
                [mode] => (
                    &panels[mode].values[first_column * stride..][..width * stride],
                    match direct {
                        [] => &mut [],
                        _ => {
                            &mut direct[(first_column - columns.start) * stride..][..width * stride]
                        }
                    },
                ),
                _ => {
                    let range = first_column..first_column + width;
                    khatri_rao(panels, &layout.slow, range, &mut products);
                    (&products, &mut sums)
                }
            };
            for first_row in (0..rows.padded).step_by(PANEL) {
                let padded = PANEL.min(rows.padded - first_row);
                let real = padded.min(height - first_row);
                let left = &rows.by_component[first_row * k..][..padded * k];
                for at in (0..width).step_by(TILE) {
                    let tile_width = TILE.min(width - at);
                    let right = &factor[at * stride..][..tile_width * stride];
                    let cells = &grid.values[(first_column + at) * height + first_row..];
                    let cells = &cells[..(tile_width - 1) * height + real];
                    let ratios = &mut room[..tile_width * padded];
                    let tile = Tile {
                        cells,
                        height,
                        real,
                        padded,
                        band: MR * T::lanes::<S>(),
                    };
                    match rule {
                        // [SPEC 0] Q = V / P
                        Rule::Ratio => simd.vectorize(FillRatios::<T, MR> {
                            k,
                            left,
                            right,
                            stride,
                            cells,
                            height,
                            real,
                            ratios: &mut *ratios,
                        }),
                        Rule::Unit => tile.fill_units(ratios),
                    }
                    if log {
                        partial.ln_lik += tile.ln_lik(ratios);
                    }
                    if rows_wanted {
                        let into = &mut partial.rows[first_row * k..][..padded * k];
                        let fresh = first_column + at == columns.start;
                        simd.vectorize(AddRows::<T, MR> {
                            k,
                            width: tile_width,
                            ratios,
                            right,
                            stride,
                            into,
                            fresh,
                        });
                    }
                    if columns_wanted {
                        let by_row = &rows.by_row[first_row * stride..][..real * stride];
                        let into = &mut counts[at * stride..][..tile_width * stride];
                        let fresh = first_row == 0;
                        simd.vectorize(AddColumns::<T, MR> {
                            width: tile_width,
                            padded,
                            real,
                            ratios,
                            by_row,
                            stride,
                            into,
                            fresh,
                        });
                    }
                }
            }
            if columns_wanted && spread_out {
                let sums = &sums[..width * stride];
                spread(
                    panels,
                    &layout.slow,
                    first_column,
                    sums,
                    wanted,
                    &mut partial.slow,
                );
            }
        }
        partial
    }
}

/// The cells of a tile and where they lie among its ratios.
#[derive(Debug, Clone, Copy)]
struct Tile<'a, T> {
    /// Columns of `real` cells, `height` apart.
    cells: &'a [T],
    height: usize,
    real: usize,
    /// Ratios of a column, of which the first `real` have cells.
    padded: usize,
    /// Rows of a band: the ratios are band after band, and column after column in a band.
    band: usize,
}

impl<T: Real> Tile<'_, T> {
    /// Calls `f` with the cells of each column in each band, and with the range of their ratios; ratios that pad the last band have
    /// no cells. A closure that is not inlined would be compiled for the least instruction set.
    #[inline(always)]
    fn for_each_run(&self, width: usize, mut f: impl FnMut(&[T], std::ops::Range<usize>)) {
        for first in (0..self.padded).step_by(self.band) {
            let run = self.band.min(self.padded - first);
            let end = self.real.min(first + run);
            for (j, column) in self.cells.chunks(self.height).enumerate() {
                let at = first * width + j * run;
                f(&column[first..end], at..at + run);
            }
        }
    }

    /// `q = 1` on observed cells, 0 on hidden and padded ones.
    #[inline(always)]
    fn fill_units(&self, ratios: &mut [T]) {
        self.for_each_run(
            ratios.len() / self.padded,
            #[inline(always)]
            |cells, at| {
                let q = &mut ratios[at];
                q.fill(T::zero());
                for (q, x) in q.iter_mut().zip(cells) {
                    *q = if x.is_nan() { T::zero() } else { T::one() };
                }
            },
        );
    }

    /// `Σ V ln P`, from `P = V / q`: no second tile is kept for the model.
    #[inline(always)]
    fn ln_lik(&self, ratios: &[T]) -> f64 {
        let mut sum = LnLik::default();
        self.for_each_run(
            ratios.len() / self.padded,
            #[inline(always)]
            |cells, at| {
                sum.add(
                    cells,
                    &ratios[at],
                    #[inline(always)]
                    |x, q| {
                        let p = x / q;
                        // The floor stands for P = 0: no support where something was observed.
                        if p > T::TINY { p } else { T::zero() }
                    },
                );
            },
        );
        sum.value()
    }
}

/// Fewer columns than this are not worth a group's own accumulators.
const NARROW: usize = 96;

/// Bounds of the column groups: multiples of eight columns, so that tiles are full.
fn groups(columns: usize) -> Vec<std::ops::Range<usize>> {
    let width = columns.div_ceil(GROUPS).max(NARROW).next_multiple_of(8);
    (0..columns)
        .step_by(width)
        .map(|c| c..(c + width).min(columns))
        .collect()
}

impl<T: Real> Accumulate<T> for Grid<T> {
    fn accumulate(
        &self,
        panels: &[Panel<'_, T>],
        rule: Rule,
        wanted: &[bool],
        log: bool,
    ) -> Sums<T> {
        let layout = Layout::new(&self.shape, self.order);
        let (k, stride) = (panels[0].k, panels[0].stride);
        let pool = panels[0].pool;
        let mut by_row = pool.take(layout.rows * stride);
        khatri_rao(panels, &layout.fast, 0..layout.rows, &mut by_row);
        let rows = Rows::new(by_row, layout.rows, k, pool);
        let fast_wanted = layout.fast.iter().any(|&m| wanted[m]);
        // The passes write the sums of a single slow mode, and those of a single fast mode are put in its place.
        let mut modes: Vec<Aligned<T>> = (0..panels.len())
            .map(|m| match panels[m].values.len() {
                _ if !wanted[m] || layout.fast == [m] => Aligned::none(),
                len if layout.slow == [m] => pool.take(len),
                len => pool.zeros(len),
            })
            .collect();
        let mut direct: &mut [T] = match layout.slow[..] {
            [mode] => &mut modes[mode],
            _ => &mut [],
        };
        let passes = groups(layout.columns).into_iter().map(|columns| {
            let own = (columns.len() * stride).min(direct.len());
            let (direct_part, rest) = std::mem::take(&mut direct).split_at_mut(own);
            direct = rest;
            GroupPass {
                grid: self,
                layout: &layout,
                panels,
                rows: &rows,
                rule,
                wanted,
                log,
                columns,
                direct: direct_part,
            }
        });
        let passes = passes.collect();
        let mut partials = map_in_order(passes, T::dense_group);

        let mut ln_lik = CompensatedSum::default();
        for partial in &partials {
            ln_lik += partial.ln_lik.value();
            for (sum, part) in modes.iter_mut().zip(&partial.slow) {
                sum.iter_mut().zip(part.iter()).for_each(|(s, &p)| *s += p);
            }
        }
        let mut by_component = partials
            .iter_mut()
            .map(|p| std::mem::replace(&mut p.rows, Aligned::none()));
        if let Some(mut first) = by_component.next().filter(|_| fast_wanted) {
            let others: Vec<_> = by_component.collect();
            for_each_part(&mut first, PANEL * k, |part, sums| {
                for other in &others {
                    let own = &other[part * PANEL * k..][..sums.len()];
                    sums.iter_mut().zip(own).for_each(|(s, &p)| *s += p);
                }
            });
            let row_sums = rows.transpose(&first, layout.rows, k, pool.take(layout.rows * stride));
            if let [mode] = layout.fast[..] {
                modes[mode] = row_sums;
            } else {
                spread(panels, &layout.fast, 0, &row_sums, wanted, &mut modes);
            }
        }
        Sums {
            modes,
            ln_lik: ln_lik.value(),
        }
    }
}
