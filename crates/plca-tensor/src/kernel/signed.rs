//! The fused pass over signed data under two rates.
//!
//! ```math
//! \begin{aligned}
//! p &= A^+ H, \qquad q = A^- H, \qquad (G^+, G^-) = \mathrm{rule}(V, p, q) \\
//! S^\pm &= G^\pm H^\top, \qquad R = (A^+)^\top G^+ + (A^-)^\top G^-
//! \end{aligned}
//! ```
//!
//! Columns of the data lie along the lanes of the registers, in blocks of 32; the multipliers of sixteen rows of a block
//! stay in the first-level cache, and neither rates nor multipliers ever exist as a whole.
//!
//! Rows and blocks are cut into a grid of [tasks](super::blocks), whose sums are added in a fixed order: the bits do not depend on the
//! number of threads.

mod blocks;

use std::ops::Range;
use std::sync::Mutex;

use nalgebra::DMatrix;
use pulp::{Simd, WithSimd};

pub(crate) use blocks::Blocks;

use super::aligned::{Aligned, Pool};
use super::blocks::{Cut, Total, lock};
use super::lanes::Lanes;
use super::tiles::{even_blocks, with_const};
use crate::parallel::claim_in_order;
use crate::sum::CompensatedSum;
use crate::{Real, SignedModel, SignedSums, SignedWanted, SplitRule};

/// Columns of a block.
const WIDTH: usize = 32;
/// Rows of a tile of multipliers.
const HEIGHT: usize = 16;
/// Multiplications and additions that splitting a cell takes as long as.
const SPLIT: f64 = 100.0;

/// `A⁺` and `A⁻` with the values of a row together, `2K` of them.
pub(crate) fn pack_left<T: Real>(model: &SignedModel<'_, T>, pool: &Pool<T>) -> Aligned<T> {
    let (rows, k) = model.plus.shape();
    let mut packed = pool.take(rows * 2 * k);
    let sides = model.plus.column_iter().chain(model.minus.column_iter());
    for (z, column) in sides.enumerate() {
        let rows = packed.chunks_exact_mut(2 * k);
        rows.zip(column.iter()).for_each(|(row, &x)| row[z] = x);
    }
    packed
}

/// The inverse: rows of `2K` values as two matrices, empty ones of none.
pub(crate) fn unpack_left<T: Real>(sums: &[T], rows: usize, k: usize) -> [DMatrix<T>; 2] {
    let (rows, columns) = if sums.is_empty() { (0, 0) } else { (rows, k) };
    [0, k].map(|first| {
        let mut side = DMatrix::zeros(rows, columns);
        for (z, mut column) in side.column_iter_mut().enumerate() {
            let source = sums.chunks_exact(2 * k).map(|row| row[first + z]);
            column.iter_mut().zip(source).for_each(|(x, s)| *x = s);
        }
        side
    })
}

/// The whole pass.
pub(crate) fn pass<T: Real>(
    data: &Blocks<T>,
    model: &SignedModel<'_, T>,
    rule: &dyn SplitRule<T>,
    wanted: SignedWanted,
    pool: &Pool<T>,
) -> SignedSums<T> {
    let k = model.right.nrows();
    let left = pack_left(model, pool);
    let mut left_sums = vec![T::zero(); if wanted.left { left.len() } else { 0 }];
    let (rows, columns) = if wanted.right {
        model.right.shape()
    } else {
        (0, 0)
    };
    let mut right_sums: DMatrix<T> = DMatrix::zeros(rows, columns);
    let size = [data.rows, data.columns];
    // [SPEC 0] three products of two sides
    let work = size.map(|n| n as f64).iter().product::<f64>() * (12.0 * k as f64 + SPLIT);
    let cut = Cut::new(size, [[HEIGHT, WIDTH]; 2], [2, 1], work);
    let [across, along] = cut.counts();
    let (row_totals, column_totals) = (Total::empty(across), Total::empty(along));
    let targets = right_sums.as_mut_slice().chunks_mut(cut.block[1] * k);
    let targets: Vec<_> = targets.map(Mutex::new).collect();
    let values = claim_in_order(across * along, |task| {
        let (c, r) = (task / across, task % across);
        let columns = cut.range(1, c);
        let part = T::signed_task(Task {
            data,
            k,
            left: &left,
            right: &model.right.as_slice()[columns.start * k..columns.end * k],
            rule,
            wanted,
            pool,
            rows: cut.range(0, r),
            blocks: columns.start / WIDTH..columns.end.div_ceil(WIDTH),
        });
        if wanted.left {
            lock(&row_totals[r]).put(c, part.rows);
        }
        if wanted.right {
            let mut total = lock(&column_totals[c]);
            total.put(r, part.columns);
            if let Some(sums) = total.take(across) {
                lock(&targets[c]).copy_from_slice(&sums);
            }
        }
        part.value
    });
    drop(targets);
    let targets = left_sums.chunks_mut(cut.block[0] * 2 * k);
    for (total, target) in row_totals.iter().zip(targets) {
        if let Some(sums) = lock(total).take(along) {
            target.copy_from_slice(&sums);
        }
    }
    let [plus, minus] = unpack_left(&left_sums, data.rows, k);
    let value: CompensatedSum = values.into_iter().collect();
    SignedSums {
        plus,
        minus,
        right: right_sums,
        value: value.value(),
    }
}

/// Some rows of some blocks.
#[derive(Debug)]
pub struct Task<'a, T> {
    data: &'a Blocks<T>,
    k: usize,
    left: &'a [T],
    /// The columns of `H` that belong to these blocks.
    right: &'a [T],
    rule: &'a dyn SplitRule<T>,
    wanted: SignedWanted,
    pool: &'a Pool<T>,
    rows: Range<usize>,
    blocks: Range<usize>,
}

/// What a task adds up; empty where not wanted.
#[derive(Debug)]
pub struct Part<T> {
    rows: Aligned<T>,
    columns: Aligned<T>,
    value: f64,
}

impl<T: Real> WithSimd for Task<'_, T> {
    type Output = Part<T>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Part<T> {
        if const { S::REGISTER_COUNT < 32 } {
            self.run::<S, 2, 2, 1>(simd)
        } else if WIDTH == 2 * T::lanes::<S>() {
            self.run::<S, 2, 2, 2>(simd)
        } else {
            self.run::<S, 4, 2, 2>(simd)
        }
    }
}

/// One register of the scalar.
type Vector<S, T> = <T as Lanes>::Vector<S>;

/// Components of a group at most, so that eight or sixteen sums hide the latency of an addition.
const MOST: usize = 4;

impl<T: Real> Task<'_, T> {
    /// `MR` registers of columns at a time, with `FR` rows of rates or `RR` of row sums.
    #[inline(always)]
    fn run<S: Simd, const MR: usize, const FR: usize, const RR: usize>(self, simd: S) -> Part<T> {
        let Self {
            data,
            k,
            left,
            right,
            rule,
            wanted,
            pool,
            rows,
            blocks,
        } = self;
        let lanes = T::lanes::<S>();
        let step = MR * lanes;
        let buffer = |wanted: bool, len: usize| pool.take(if wanted { len } else { 0 });
        let mut packed = pool.take(blocks.len() * k * WIDTH);
        packed.fill(T::zero());
        pack_right(right, k, step, &mut packed);
        let mut column_sums = buffer(wanted.right, packed.len());
        column_sums.fill(T::zero());
        let mut row_sums = buffer(wanted.left, rows.len() * 2 * k);
        let mut across = pool.take(HEIGHT * 2 * k * lanes);
        let (mut plus, mut minus) = (pool.take(HEIGHT * WIDTH), pool.take(HEIGHT * WIDTH));
        let mut value = CompensatedSum::default();
        for first in rows.clone().step_by(HEIGHT) {
            let height = HEIGHT.min(rows.end - first);
            let tile = &left[first * 2 * k..][..height * 2 * k];
            let (plus, minus) = (&mut plus[..height * WIDTH], &mut minus[..height * WIDTH]);
            across.fill(T::zero());
            for (at, block) in blocks.clone().enumerate() {
                let cells = &data.values[(block * data.rows + first) * WIDTH..][..height * WIDTH];
                let own = &packed[at * k * WIDTH..][..k * WIDTH];
                rates::<S, T, MR, FR>(simd, k, tile, own, plus, minus);
                if wanted.value {
                    value += rule.value(cells, plus, minus);
                }
                if !(wanted.left || wanted.right) {
                    continue;
                }
                rule.multipliers(cells, plus, minus);
                if wanted.right {
                    let into = &mut column_sums[at * k * WIDTH..][..k * WIDTH];
                    add_columns::<S, T, MR>(simd, k, tile, plus, minus, into);
                }
                if wanted.left {
                    add_rows::<S, T, MR, RR>(simd, k, own, plus, minus, &mut across);
                }
            }
            if wanted.left {
                let into = &mut row_sums[(first - rows.start) * 2 * k..][..height * 2 * k];
                let into = into.chunks_exact_mut(2 * k);
                let vectors = T::vectors::<S>(&across).0;
                for (row, vectors) in into.zip(vectors.chunks_exact(2 * k)) {
                    for (z, pair) in vectors.as_chunks::<2>().0.iter().enumerate() {
                        row[z] = T::vsum(simd, pair[0]);
                        row[k + z] = T::vsum(simd, pair[1]);
                    }
                }
            }
        }
        let mut columns = buffer(wanted.right, right.len());
        if wanted.right {
            unpack_right(&column_sums, k, step, &mut columns);
        }
        Part {
            rows: row_sums,
            columns,
            value: value.value(),
        }
    }
}

/// Columns of `K` values into runs of `step` columns, component after component.
#[inline(always)]
fn pack_right<T: Real>(columns: &[T], k: usize, step: usize, packed: &mut [T]) {
    let runs = packed.chunks_exact_mut(k * step);
    for (run, columns) in runs.zip(columns.chunks(k * step)) {
        for (z, row) in run.chunks_exact_mut(step).enumerate() {
            let source = columns.chunks_exact(k);
            row.iter_mut().zip(source).for_each(|(x, c)| *x = c[z]);
        }
    }
}

/// The inverse of [`pack_right`].
#[inline(always)]
fn unpack_right<T: Real>(packed: &[T], k: usize, step: usize, columns: &mut [T]) {
    let runs = packed.chunks_exact(k * step);
    for (run, columns) in runs.zip(columns.chunks_mut(k * step)) {
        for (z, row) in run.chunks_exact(step).enumerate() {
            let target = columns.chunks_exact_mut(k);
            row.iter().zip(target).for_each(|(&x, c)| c[z] = x);
        }
    }
}

/// Both rates of a tile.
#[inline(always)]
fn rates<S: Simd, T: Real, const MR: usize, const FR: usize>(
    simd: S,
    k: usize,
    tile: &[T],
    right: &[T],
    plus: &mut [T],
    minus: &mut [T],
) {
    let right = T::vectors::<S>(right).0.as_chunks::<MR>().0;
    let plus = T::vectors_mut::<S>(plus).0.as_chunks_mut::<MR>().0;
    let minus = T::vectors_mut::<S>(minus).0.as_chunks_mut::<MR>().0;
    let runs = right.len() / k;
    let height = tile.len() / (2 * k);
    for (run, right) in right.chunks_exact(k).enumerate() {
        let mut row = 0;
        while row + FR <= height {
            let (own, at) = (&tile[row * 2 * k..], row * runs + run);
            rate_rows::<S, T, MR, FR>(simd, own, right, (at, runs), plus, minus);
            row += FR;
        }
        while row < height {
            let (own, at) = (&tile[row * 2 * k..], row * runs + run);
            rate_rows::<S, T, MR, 1>(simd, own, right, (at, runs), plus, minus);
            row += 1;
        }
    }
}

/// Both rates of `FR` rows of one run of columns: the first are those at `at`, the next `runs` further on.
#[inline(always)]
fn rate_rows<S: Simd, T: Real, const MR: usize, const FR: usize>(
    simd: S,
    tile: &[T],
    right: &[[Vector<S, T>; MR]],
    (at, runs): (usize, usize),
    plus: &mut [[Vector<S, T>; MR]],
    minus: &mut [[Vector<S, T>; MR]],
) {
    let k = right.len();
    let zero = T::vsplat(simd, T::zero());
    let (mut p, mut q) = ([[zero; MR]; FR], [[zero; MR]; FR]);
    let mut sides = [(&tile[..k], &tile[..k]); FR];
    for (r, side) in sides.iter_mut().enumerate() {
        let row = &tile[r * 2 * k..][..2 * k];
        *side = row.split_at(k);
    }
    for (z, right) in right.iter().enumerate() {
        for r in 0..FR {
            let a = T::vsplat(simd, sides[r].0[z]);
            let b = T::vsplat(simd, sides[r].1[z]);
            for m in 0..MR {
                p[r][m] = T::vmul_add(simd, right[m], a, p[r][m]);
                q[r][m] = T::vmul_add(simd, right[m], b, q[r][m]);
            }
        }
    }
    for r in 0..FR {
        plus[at + r * runs] = p[r];
        minus[at + r * runs] = q[r];
    }
}

/// `R += A⁺ᵀ G⁺ + A⁻ᵀ G⁻` of a tile.
#[inline(always)]
fn add_columns<S: Simd, T: Real, const MR: usize>(
    simd: S,
    k: usize,
    tile: &[T],
    plus: &[T],
    minus: &[T],
    into: &mut [T],
) {
    let plus = T::vectors::<S>(plus).0.as_chunks::<MR>().0;
    let minus = T::vectors::<S>(minus).0.as_chunks::<MR>().0;
    let into = T::vectors_mut::<S>(into).0.as_chunks_mut::<MR>().0;
    let runs = into.len() / k;
    for (run, into) in into.chunks_exact_mut(k).enumerate() {
        for (z, n) in even_blocks(k, MOST) {
            with_const!(n, [1, 2, 3, 4], KR => column_group::<S, T, MR, KR>(simd, (k, z), runs, tile, &plus[run..], &minus[run..], &mut into[z..]));
        }
    }
}

#[inline(always)]
fn column_group<S: Simd, T: Real, const MR: usize, const KR: usize>(
    simd: S,
    (k, z): (usize, usize),
    runs: usize,
    tile: &[T],
    plus: &[[Vector<S, T>; MR]],
    minus: &[[Vector<S, T>; MR]],
    into: &mut [[Vector<S, T>; MR]],
) {
    let Some(into) = into.first_chunk_mut::<KR>() else {
        return;
    };
    let mut acc = *into;
    let cells = plus.iter().step_by(runs).zip(minus.iter().step_by(runs));
    for (row, (plus, minus)) in tile.chunks_exact(2 * k).zip(cells) {
        let (Some(a), Some(b)) = (
            row[z..].first_chunk::<KR>(),
            row[k + z..].first_chunk::<KR>(),
        ) else {
            return;
        };
        for c in 0..KR {
            let (a, b) = (T::vsplat(simd, a[c]), T::vsplat(simd, b[c]));
            for m in 0..MR {
                acc[c][m] = T::vmul_add(simd, plus[m], a, acc[c][m]);
                acc[c][m] = T::vmul_add(simd, minus[m], b, acc[c][m]);
            }
        }
    }
    *into = acc;
}

/// `S± += G± Hᵀ` of a tile, before the sum over lanes.
#[inline(always)]
fn add_rows<S: Simd, T: Real, const MR: usize, const FR: usize>(
    simd: S,
    k: usize,
    right: &[T],
    plus: &[T],
    minus: &[T],
    into: &mut [T],
) {
    let right = T::vectors::<S>(right).0.as_chunks::<MR>().0;
    let plus = T::vectors::<S>(plus).0.as_chunks::<MR>().0;
    let minus = T::vectors::<S>(minus).0.as_chunks::<MR>().0;
    let into = T::vectors_mut::<S>(into).0.as_chunks_mut::<2>().0;
    let runs = right.len() / k;
    let height = plus.len() / runs;
    for (z, n) in even_blocks(k, MOST) {
        let mut row = 0;
        while row + FR <= height {
            with_const!(n, [1, 2, 3, 4], KR => row_group::<S, T, MR, FR, KR>(simd, k, z, right, &plus[row * runs..], &minus[row * runs..], &mut into[row * k + z..]));
            row += FR;
        }
        while row < height {
            with_const!(n, [1, 2, 3, 4], KR => row_group::<S, T, MR, 1, KR>(simd, k, z, right, &plus[row * runs..], &minus[row * runs..], &mut into[row * k + z..]));
            row += 1;
        }
    }
}

#[inline(always)]
fn row_group<S: Simd, T: Real, const MR: usize, const FR: usize, const KR: usize>(
    simd: S,
    k: usize,
    z: usize,
    right: &[[Vector<S, T>; MR]],
    plus: &[[Vector<S, T>; MR]],
    minus: &[[Vector<S, T>; MR]],
    into: &mut [[Vector<S, T>; 2]],
) {
    let runs = right.len() / k;
    let zero = T::vsplat(simd, T::zero());
    let mut acc = [[[zero; 2]; KR]; FR];
    for (run, right) in right.chunks_exact(k).enumerate() {
        let Some(right) = right[z..].first_chunk::<KR>() else {
            return;
        };
        for r in 0..FR {
            let (plus, minus) = (&plus[r * runs + run], &minus[r * runs + run]);
            for c in 0..KR {
                for m in 0..MR {
                    acc[r][c][0] = T::vmul_add(simd, plus[m], right[c][m], acc[r][c][0]);
                    acc[r][c][1] = T::vmul_add(simd, minus[m], right[c][m], acc[r][c][1]);
                }
            }
        }
    }
    for r in 0..FR {
        let Some(into) = into[r * k..].first_chunk_mut::<KR>() else {
            return;
        };
        // A loop of a length that the compiler does not know would keep the sums in memory.
        for c in 0..KR {
            into[c][0] = T::vadd(simd, into[c][0], acc[r][c][0]);
            into[c][1] = T::vadd(simd, into[c][1], acc[r][c][1]);
        }
    }
}
