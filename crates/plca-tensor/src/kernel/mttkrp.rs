//! Matricised dense data times a Khatri-Rao product, by halves.
//!
//! The modes are cut in two where memory is contiguous: the data are a matrix, the fast modes its rows and the slow ones its
//! columns. One product with the Khatri-Rao product of one half contracts all its modes at once; what is left is as small as the
//! other half and serves every mode of it. So a sweep over all modes costs two products whatever the order:
//!
//! ```math
//! \begin{aligned}
//! \text{slow half:} \quad S[c,z] &= \sum_r X[r,c] \prod_{m \text{ fast}} F_m[r_m,z] \\
//! \text{fast half:} \quad R[r,z] &= \sum_c X[r,c] \prod_{m \text{ slow}} F_m[c_m,z]
//! \end{aligned}
//! ```
//!
//! The matrix is cut into a grid of [blocks](super::blocks), whose sums are added in a fixed order: threads change no bit.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::aligned::{Aligned, Pool};
use super::blocks::{Cut, Total, lock};
use super::dense::{CUT, Grid, Layout, PANEL, TILE, transpose};
use super::panel::{Panel, pow2};
use super::tiles::{AddColumns, AddRows, band_vectors};
use crate::Real;
use crate::parallel::{claim_in_order, for_each_part, wide};
use crate::sum::CompensatedSum;

/// `Π_m F_m[i_m, ·]` for all positions of `modes` (slowest first); the exponent is the sum of the panels'.
pub(crate) fn khatri_rao<T: Real>(panels: &[Panel<'_, T>], modes: &[usize]) -> Vec<T> {
    let stride = panels[0].stride;
    let rows: usize = modes.iter().map(|&m| panels[m].rows).product();
    let mut out = vec![T::zero(); rows * stride];
    let Some((&first, rest)) = modes.split_first() else {
        out[..panels[0].k].fill(T::one());
        return out;
    };
    if rest.is_empty() {
        out.copy_from_slice(&panels[first].values);
        return out;
    }
    let inner = khatri_rao(panels, rest);
    for (i, block) in out.chunks_exact_mut(inner.len()).enumerate() {
        let factor = panels[first].row(i);
        for (row, inner) in block
            .chunks_exact_mut(stride)
            .zip(inner.chunks_exact(stride))
        {
            for ((x, &f), &inner) in row.iter_mut().zip(factor).zip(inner) {
                *x = f * inner;
            }
        }
    }
    out
}

/// What a cell contributes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fill<'a, T> {
    /// Its value, 0 if it is hidden.
    Values,
    /// `scale x - Σ_z w_z P_z`, 0 if it is hidden.
    Residual {
        /// Multiplies the cells.
        scale: T,
        /// One weight per component, on top of the panels.
        weights: &'a [T],
    },
}

/// One product: everything that its tasks share.
#[derive(Debug)]
pub(crate) struct Product<'a, T> {
    pub(crate) grid: &'a Grid<'a, T>,
    pub(crate) halves: &'a Layout,
    pub(crate) k: usize,
    pub(crate) stride: usize,
    /// `rows x stride`.
    pub(crate) left: &'a [T],
    /// `columns x stride`.
    pub(crate) right: &'a [T],
    pub(crate) fill: Fill<'a, T>,
}

/// The part of a product that one task computes.
#[derive(Debug)]
pub struct Task<'a, T> {
    product: &'a Product<'a, T>,
    rows: Range<usize>,
    columns: Range<usize>,
    /// Whether the columns' sums are wanted, else the rows'.
    slow: bool,
}

/// Sums of a task, and the sum of squares of what its tiles held.
#[derive(Debug)]
pub struct Part<T> {
    sums: Aligned<T>,
    squares: CompensatedSum,
}

impl<T: Real> Product<'_, T> {
    /// The rows contracted, `columns x stride` values, or, unless `slow`, the columns, `rows x stride`; and the sum of squares of the
    /// filled cells.
    pub(crate) fn half(&self, slow: bool) -> (Vec<T>, f64) {
        let (size, stride) = ([self.halves.rows, self.halves.columns], self.stride);
        let products = match self.fill {
            Fill::Values => 2.0,
            Fill::Residual { .. } => 4.0,
        };
        let work = size.map(|n| n as f64).iter().product::<f64>() * products * self.k as f64;
        let weights = if slow { [0, 1] } else { [1, 0] };
        let cut = Cut::new(size, CUT, weights, work);
        let [across, along] = cut.counts();
        let (parts, totals) = if slow {
            (across, Total::empty(along))
        } else {
            (along, Total::empty(across))
        };
        let squares = claim_in_order(across * along, |task| {
            let (c, r) = (task / across, task % across);
            let part = T::product_task(Task {
                product: self,
                rows: cut.range(0, r),
                columns: cut.range(1, c),
                slow,
            });
            let (of, at) = if slow { (c, r) } else { (r, c) };
            lock(&totals[of]).put(at, part.sums);
            part.squares.value()
        });
        let side = usize::from(slow);
        let mut out = vec![T::zero(); size[side] * stride];
        for_each_part(&mut out, cut.block[side] * stride, |of, out| {
            match lock(&totals[of]).take(parts) {
                Some(sums) if slow => out.copy_from_slice(&sums),
                Some(sums) => wide(|| transpose(&sums, self.k, stride, out)),
                None => {}
            }
        });
        let total: CompensatedSum = squares.into_iter().collect();
        (out, total.value())
    }
}

impl<T: Real> WithSimd for Task<'_, T> {
    type Output = Part<T>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Part<T> {
        match const { band_vectors::<S>() } {
            3 => self.run::<S, 3>(simd),
            _ => self.run::<S, 2>(simd),
        }
    }
}

impl<T: Real> Task<'_, T> {
    #[inline(always)]
    fn run<S: Simd, const MR: usize>(self, simd: S) -> Part<T> {
        let Product {
            grid,
            halves,
            k,
            stride,
            left,
            right,
            fill,
        } = *self.product;
        let lanes = T::lanes::<S>();
        let height = halves.rows;
        let longest = PANEL.min(self.rows.len()).next_multiple_of(lanes);
        let mut part = Part {
            sums: Pool::none().take(if self.slow {
                self.columns.len() * stride
            } else {
                self.rows.len().next_multiple_of(lanes) * k
            }),
            squares: CompensatedSum::default(),
        };
        let mut banded = vec![T::zero(); longest * TILE];
        let mut tile = match fill {
            Fill::Values => Vec::new(),
            Fill::Residual { .. } => vec![T::zero(); longest * TILE],
        };
        let mut model = Vec::new();
        let tiles = self.columns.len().div_ceil(TILE);
        let tile_columns = self.columns.len().div_ceil(tiles).next_multiple_of(8);
        for first_row in self.rows.clone().step_by(PANEL) {
            let real = PANEL.min(self.rows.end - first_row);
            let padded = real.next_multiple_of(lanes);
            let by_row = &left[first_row * stride..][..real * stride];
            if let Fill::Residual { weights, .. } = fill {
                by_component(by_row, stride, weights, padded, &mut model);
            }
            for first in self.columns.clone().step_by(tile_columns) {
                let width = tile_columns.min(self.columns.end - first);
                let cells = &grid.values[first * height + first_row..];
                let factor = &right[first * stride..][..width * stride];
                let banded = &mut banded[..width * padded];
                match fill {
                    Fill::Values => {
                        to_bands::<S, T, MR, true>(simd, cells, [height, real, padded], banded)
                    }
                    Fill::Residual { scale, .. } => {
                        let tile = &mut tile[..width * padded];
                        evaluate(&model, factor, stride, padded, tile);
                        let columns = cells.chunks(height).map(|c| &c[..real]);
                        part.squares += residual(columns, scale, padded, tile);
                        to_bands::<S, T, MR, false>(simd, tile, [padded; 3], banded);
                    }
                }
                if self.slow {
                    let into = &mut part.sums[(first - self.columns.start) * stride..];
                    let into = &mut into[..width * stride];
                    simd.vectorize(AddColumns::<T, MR> {
                        width,
                        padded,
                        real,
                        ratios: banded,
                        by_row,
                        stride,
                        into,
                        fresh: first_row == self.rows.start,
                    });
                } else {
                    let into = &mut part.sums[(first_row - self.rows.start) * k..];
                    let into = &mut into[..padded * k];
                    simd.vectorize(AddRows::<T, MR> {
                        k,
                        width,
                        ratios: banded,
                        right: factor,
                        stride,
                        into,
                        fresh: first == self.columns.start,
                    });
                }
            }
        }
        part
    }
}

/// Copies columns of `real` cells, `height` apart, into a tile of bands of `MR` registers; `HIDDEN` cells, which are NaN, become 0.
#[inline(always)]
fn to_bands<S: Simd, T: Real, const MR: usize, const HIDDEN: bool>(
    simd: S,
    cells: &[T],
    [height, real, padded]: [usize; 3],
    tile: &mut [T],
) {
    let zero = T::vsplat(simd, T::zero());
    let (width, band) = (tile.len() / padded, MR * T::lanes::<S>());
    let whole = real / band;
    let (bands, last) = tile.split_at_mut(whole * band * width);
    let bands = T::vectors_mut::<S>(bands).0.as_chunks_mut::<MR>().0;
    let run = padded - whole * band;
    // Columns are the outer loop: cells come from memory, the tile is in cache.
    for (j, column) in cells.chunks(height).take(width).enumerate() {
        let (column, rest) = column[..real].split_at(whole * band);
        let column = T::vectors::<S>(column).0.as_chunks::<MR>().0;
        for (b, from) in column.iter().enumerate() {
            let into = &mut bands[b * width + j];
            for m in 0..MR {
                into[m] = if HIDDEN {
                    T::vunless_nan(simd, from[m], from[m], zero)
                } else {
                    from[m]
                };
            }
        }
        let into = &mut last[j * run..][..run];
        into.fill(T::zero());
        for (o, &x) in into.iter_mut().zip(rest) {
            *o = if HIDDEN && x.is_nan() { T::zero() } else { x };
        }
    }
}

/// `k x padded` from `real x stride`, component `z` times `weights[z]`.
#[inline(always)]
fn by_component<T: Real>(
    by_row: &[T],
    stride: usize,
    weights: &[T],
    padded: usize,
    out: &mut Vec<T>,
) {
    out.clear();
    out.resize(weights.len() * padded, T::zero());
    for ((z, column), &w) in out.chunks_exact_mut(padded).enumerate().zip(weights) {
        for (x, row) in column.iter_mut().zip(by_row.chunks_exact(stride)) {
            *x = row[z] * w;
        }
    }
}

/// The model on a tile.
#[inline(always)]
fn evaluate<T: Real>(model: &[T], factor: &[T], stride: usize, padded: usize, tile: &mut [T]) {
    tile.fill(T::zero());
    for (out, row) in tile
        .chunks_exact_mut(padded)
        .zip(factor.chunks_exact(stride))
    {
        for (component, &h) in model.chunks_exact(padded).zip(row) {
            for (p, &w) in out.iter_mut().zip(component) {
                *p += w * h;
            }
        }
    }
}

/// Turns the model on a tile into the residual; returns its sum of squares.
#[inline(always)]
fn residual<'a, T: Real>(
    cells: impl Iterator<Item = &'a [T]>,
    scale: T,
    padded: usize,
    tile: &mut [T],
) -> f64 {
    let mut squares = 0.0;
    for (column, out) in cells.zip(tile.chunks_exact_mut(padded)) {
        let mut sum = 0.0;
        for (p, &x) in out.iter_mut().zip(column) {
            *p = if x.is_nan() {
                T::zero()
            } else {
                x * scale - *p
            };
            sum += p.to_f64() * p.to_f64();
        }
        out[column.len()..].fill(T::zero());
        squares += sum;
    }
    squares
}

/// `w_z 2^-e`: weights that undo the panels' exponents.
pub(crate) fn unscaled_weights<T: Real>(panels: &[Panel<'_, T>], weights: &[T]) -> Vec<T> {
    let exponent: i32 = panels.iter().map(|p| p.exponent).sum();
    weights.iter().map(|&w| w * pow2(-exponent)).collect()
}
