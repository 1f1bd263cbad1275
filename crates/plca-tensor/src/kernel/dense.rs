//! The fused pass over dense data of any order.
//!
//! The data are read as a matrix: the fastest modes together are its rows, the others its columns. The
//! factor of the rows is the Khatri-Rao product of the fast modes, packed once per pass; that of the columns
//! is formed 480 columns at a time. Column counts are spread over the slow modes once all rows of the columns are done.
//! So every order costs three products, and neither the model nor the ratio ever exists as a whole.
//!
//! The matrix is cut into a grid of [blocks](super::blocks), whose sums are added in a fixed order: the bits do not depend on the number
//! of threads.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use pulp::{Simd, WithSimd};

use super::aligned::{Aligned, Pool};
use super::blocks::{Cut, Total, add, lock};
use super::log::LnLik;
use super::panel::Panel;
use super::tiles::{AddColumns, AddRows, FillRatios, band_vectors};
use super::{Accumulate, Rule, Sums, part_rows};
use crate::Real;
use crate::parallel::{InOrder, claim_in_order, for_each_part, wide};
use crate::sum::CompensatedSum;

/// Rows of a panel, whose factor stays in the first-level cache.
pub(crate) const PANEL: usize = 192;
/// Columns of a tile of ratios.
pub(crate) const TILE: usize = 48;
/// Columns of a chunk, whose factor and counts stay in the second-level cache.
const CHUNK: usize = 480;
/// Fewer rows than this are folded with the next mode, so that vectors are filled.
const FEW_ROWS: usize = 64;
/// The least rows and columns of a block, and what they are multiples of: bands are whole, and tiles full.
pub(crate) const CUT: [[usize; 2]; 2] = [[96, TILE], [96, 8]];
/// Groups of column blocks, each with its own sums of the slow modes where there are several; they may take this many times the factors, or
/// [`SMALL`] bytes.
const GROUPS: usize = 16;
const SHARE: usize = 4;
const SMALL: usize = 16 << 20;

/// Dense cells as the kernels read them, in row-major order; a hidden cell holds NaN.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid<'a, T> {
    pub(crate) shape: &'a [usize],
    pub(crate) values: &'a [T],
}

/// The modes, slowest first, cut into columns and rows.
#[derive(Debug)]
pub(crate) struct Layout {
    /// Modes of the columns, slowest first.
    pub(crate) slow: Vec<usize>,
    /// Modes of the rows, slowest first.
    pub(crate) fast: Vec<usize>,
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

impl Layout {
    /// The fewest modes that make enough rows.
    fn new(shape: &[usize]) -> Self {
        Self::cut(shape, |sizes| {
            let enough = |&cut: &usize| sizes[cut..].iter().product::<usize>() >= FEW_ROWS;
            let cut = (1..sizes.len()).rev().find(enough);
            cut.unwrap_or(usize::from(sizes.len() > 1))
        })
    }

    /// The cut that leaves the least to contract once one side is.
    pub(crate) fn halves(shape: &[usize]) -> Self {
        Self::cut(shape, |sizes| {
            let size = |sizes: &[usize]| sizes.iter().product::<usize>();
            let left = |&cut: &usize| size(&sizes[..cut]).saturating_add(size(&sizes[cut..]));
            (1..sizes.len()).min_by_key(left).unwrap_or(0)
        })
    }

    /// `columns` says how many of the slowest modes are the columns', by the modes' sizes.
    fn cut(shape: &[usize], columns: impl Fn(&[usize]) -> usize) -> Self {
        let mut slow: Vec<usize> = (0..shape.len()).collect();
        let fast = slow.split_off(columns(shape));
        Self {
            columns: shape[..slow.len()].iter().product(),
            rows: shape[slow.len()..].iter().product(),
            slow,
            fast,
        }
    }
}

/// `Π_m F_m[i_m, ·]` for the linear positions `range` of `modes` (slowest first): a Khatri-Rao product.
fn khatri_rao<T: Real>(
    panels: &[Panel<'_, T>],
    modes: &[usize],
    range: Range<usize>,
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

/// Sums of the rows of a block, in the layout of [`Rows::by_component`], as rows of `stride` values.
pub(crate) fn transpose<T: Real>(sums: &[T], k: usize, stride: usize, out: &mut [T]) {
    let band = super::lanes::band::<T>();
    out.chunks_exact_mut(stride)
        .for_each(|row| row[k..].fill(T::zero()));
    let bands = sums.chunks(band * k);
    for (sums, target) in bands.zip(out.chunks_mut(band * stride)) {
        for (z, column) in sums.chunks_exact(sums.len() / k).enumerate() {
            for (row, &x) in target.chunks_exact_mut(stride).zip(column) {
                row[z] = x;
            }
        }
    }
}

/// What one block adds up.
#[derive(Debug)]
pub struct Partial<T> {
    /// In the layout of [`Rows::by_component`]; empty if no fast mode is wanted.
    rows: Aligned<T>,
    /// Column after column; empty if no slow mode is wanted.
    columns: Aligned<T>,
    ln_lik: f64,
}

/// One block and what it is to add up.
#[derive(Debug)]
pub struct BlockPass<'a, T> {
    grid: &'a Grid<'a, T>,
    layout: &'a Layout,
    panels: &'a [Panel<'a, T>],
    factor: &'a Rows<T>,
    rule: Rule,
    /// Whether sums of the rows and of the columns are wanted.
    wanted: [bool; 2],
    rows: Range<usize>,
    columns: Range<usize>,
}

impl<T: Real> WithSimd for BlockPass<'_, T> {
    type Output = Partial<T>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Partial<T> {
        match const { band_vectors::<S>() } {
            3 => self.run::<S, 3>(simd),
            _ => self.run::<S, 2>(simd),
        }
    }
}

impl<T: Real> BlockPass<'_, T> {
    #[inline(always)]
    fn run<S: Simd, const MR: usize>(self, simd: S) -> Partial<T> {
        let Self {
            grid,
            layout,
            panels,
            factor: by,
            rule,
            wanted: [rows_wanted, columns_wanted],
            rows,
            columns,
        } = self;
        let (k, stride, height) = (panels[0].k, panels[0].stride, layout.rows);
        let pool = panels[0].pool;
        // The last rows of the matrix with what pads them.
        let end = if rows.end == height {
            by.padded
        } else {
            rows.end
        };
        let buffer = |wanted: bool, len: usize| pool.take(if wanted { len } else { 0 });
        let mut row_sums = buffer(rows_wanted, (end - rows.start) * k);
        let mut column_sums = buffer(columns_wanted, columns.len() * stride);
        let mut ln_lik = CompensatedSum::default();
        let mut products = buffer(layout.slow.len() != 1, CHUNK.min(columns.len()) * stride);
        let mut room = pool.take(PANEL.min(end - rows.start) * TILE);

        for first_column in columns.clone().step_by(CHUNK) {
            let width = CHUNK.min(columns.end - first_column);
            let factor: &[T] = match layout.slow[..] {
                [mode] => &panels[mode].values[first_column * stride..][..width * stride],
                _ => {
                    let range = first_column..first_column + width;
                    khatri_rao(panels, &layout.slow, range, &mut products);
                    &products
                }
            };
            // Even tiles: a narrow one at the end would cost as much as a whole one.
            let tile_columns = width.div_ceil(width.div_ceil(TILE)).next_multiple_of(8);
            for first_row in (rows.start..end).step_by(PANEL) {
                let padded = PANEL.min(end - first_row);
                let real = padded.min(height - first_row);
                let left = &by.by_component[first_row * k..][..padded * k];
                for at in (0..width).step_by(tile_columns) {
                    let tile_width = tile_columns.min(width - at);
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
                        Rule::Ratio { .. } => simd.vectorize(FillRatios::<T, MR> {
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
                    if rule == (Rule::Ratio { log: true }) {
                        ln_lik += tile.ln_lik(ratios);
                    }
                    if rows_wanted {
                        let into = &mut row_sums[(first_row - rows.start) * k..][..padded * k];
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
                        let by_row = &by.by_row[first_row * stride..][..real * stride];
                        let into = &mut column_sums[(first_column + at - columns.start) * stride..];
                        let into = &mut into[..tile_width * stride];
                        let fresh = first_row == rows.start;
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
        }
        Partial {
            rows: row_sums,
            columns: column_sums,
            ln_lik: ln_lik.value(),
        }
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
    fn for_each_run(&self, width: usize, mut f: impl FnMut(&[T], Range<usize>)) {
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

/// What several slow modes get from a group of column blocks: the blocks' own sums, and those of each mode.
#[derive(Debug)]
struct Slow<T> {
    parts: InOrder<Aligned<T>>,
    modes: Vec<Aligned<T>>,
}

impl<T: Real> Accumulate<T> for Grid<'_, T> {
    fn accumulate(&self, panels: &[Panel<'_, T>], rule: Rule, wanted: &[bool]) -> Sums<T> {
        let layout = Layout::new(self.shape);
        let (k, stride) = (panels[0].k, panels[0].stride);
        let pool = panels[0].pool;
        let mut by_row = pool.take(layout.rows * stride);
        khatri_rao(panels, &layout.fast, 0..layout.rows, &mut by_row);
        let factor = Rows::new(by_row, layout.rows, k, pool);
        let of = |modes: &[usize]| modes.iter().any(|&m| wanted[m]);
        let [rows_wanted, columns_wanted] = [of(&layout.fast), of(&layout.slow)];
        // The sums of a single slow mode are put in their place, and those of a single fast mode too.
        let mut modes: Vec<Aligned<T>> = (0..panels.len())
            .map(|m| match panels[m].values.len() {
                _ if !wanted[m] || layout.fast == [m] => Aligned::none(),
                len if layout.slow == [m] => pool.take(len),
                len => pool.zeros(len),
            })
            .collect();
        let size = [layout.rows, layout.columns];
        let work = size.map(|n| n as f64).iter().product::<f64>() * 6.0 * k as f64;
        let cut = Cut::new(size, CUT, [1, 1], work);
        let [across, along] = cut.counts();
        let (row_sums, column_sums) = (Total::empty(across), Total::empty(along));
        let direct: &mut [T] = match layout.slow[..] {
            [mode] => &mut modes[mode],
            _ => &mut [],
        };
        let targets = direct.chunks_mut(cut.block[1] * stride).map(Mutex::new);
        let targets: Vec<_> = targets.collect();
        let len = |m: usize| panels[m].values.len();
        let size_of_slow: usize = layout.slow.iter().map(|&m| len(m)).sum();
        let affordable = |&groups: &usize| {
            let all: usize = (0..panels.len()).map(len).sum();
            groups * size_of_slow <= SHARE * all || groups * size_of_slow * size_of::<T>() <= SMALL
        };
        let groups = (1..=GROUPS.min(along)).rev().find(affordable).unwrap_or(1);
        let slow = |_| {
            let filled = |m: usize| layout.slow.len() > 1 && wanted[m] && layout.slow.contains(&m);
            let zeros = |m| pool.zeros(if filled(m) { len(m) } else { 0 });
            let modes = (0..panels.len()).map(zeros).collect();
            let parts = InOrder::new();
            Mutex::new(Slow { parts, modes })
        };
        // Neighbours are in different groups: they are done at about the same time.
        let slow_sums: Vec<_> = (0..groups).map(slow).collect();
        let take_block = |block: usize| {
            let (c, r) = (block / across, block % across);
            let part = T::dense_block(BlockPass {
                grid: self,
                layout: &layout,
                panels,
                factor: &factor,
                rule,
                wanted: [rows_wanted, columns_wanted],
                rows: cut.range(0, r),
                columns: cut.range(1, c),
            });
            if rows_wanted {
                lock(&row_sums[r]).put(c, part.rows);
            }
            if columns_wanted {
                let mut column = lock(&column_sums[c]);
                column.put(r, part.columns);
                if let Some(sums) = column.take(across) {
                    drop(column);
                    if let Some(target) = targets.get(c) {
                        lock(target).copy_from_slice(&sums);
                    } else {
                        let Slow { parts, modes } = &mut *lock(&slow_sums[c % groups]);
                        parts.put(c / groups, sums, |at, sums| {
                            let first = (at * groups + c % groups) * cut.block[1];
                            wide(|| spread(panels, &layout.slow, first, &sums, wanted, modes));
                        });
                    }
                }
            }
            part.ln_lik
        };
        let ln_lik = claim_in_order(across * along, take_block);
        let ln_lik: CompensatedSum = ln_lik.into_iter().collect();
        drop(targets);
        let slow_sums = slow_sums.into_iter().map(Mutex::into_inner);
        let slow_sums: Vec<Slow<T>> = slow_sums
            .map(|slow| slow.unwrap_or_else(PoisonError::into_inner))
            .collect();
        for &m in layout.slow.iter().filter(|_| layout.slow.len() > 1) {
            let size = part_rows(1);
            for_each_part(&mut modes[m], size, |part, sums| {
                for slow in &slow_sums {
                    add(sums, &slow.modes[m][part * size..][..sums.len()]);
                }
            });
        }
        if rows_wanted {
            let mut out = pool.take(layout.rows * stride);
            for_each_part(&mut out, cut.block[0] * stride, |r, out| {
                if let Some(sums) = lock(&row_sums[r]).take(along) {
                    wide(|| transpose(&sums, k, stride, out));
                }
            });
            if let [mode] = layout.fast[..] {
                modes[mode] = out;
            } else {
                spread(panels, &layout.fast, 0, &out, wanted, &mut modes);
            }
        }
        Sums {
            modes,
            ln_lik: ln_lik.value(),
        }
    }
}
