//! Register tiles of the dense pass: the only unsafe code of the workspace.
//!
//! Tiles written with safe slices ran anywhere between 5 and 63 GFLOP/s depending on scalar and `K`, because
//! bounds checks keep accumulators out of registers; `benches/dense.rs` measures these. The three safe
//! passes at the end check their slices and then call the tiles; each tile states what its pointers must reach.
//! Each pass is compiled as a function of its own: one function of all tiles takes minutes to compile.
#![allow(unsafe_code)]
// Register tiles are indexed by hand: iterators keep the accumulators out of registers.
#![allow(clippy::needless_range_loop)]

use std::ptr;

use pulp::{Simd, WithSimd};

use super::lanes::Lanes;
use crate::Real;

#[inline(always)]
unsafe fn load<S: Simd, T: Lanes>(at: *const T) -> T::Vector<S> {
    unsafe { ptr::read_unaligned(at.cast()) }
}

#[inline(always)]
unsafe fn store<S: Simd, T: Lanes>(x: T::Vector<S>, at: *mut T) {
    unsafe { ptr::write_unaligned(at.cast(), x) }
}

/// Asks for the cache lines of `bytes` bytes that end before `end`, except for the first if it begins before them: that of a run
/// before it. Never faults.
#[inline(always)]
fn prefetch<T>(end: *const T, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..bytes).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        unsafe { _mm_prefetch::<_MM_HINT_T0>(end.cast::<i8>().wrapping_sub(1 + line)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (end, bytes);
}

/// Vectors of a band: rows that a tile has in registers. Asked for in a `const` block, it keeps tiles of other sizes from being compiled.
pub(crate) const fn band_vectors<S: Simd>() -> usize {
    if S::REGISTER_COUNT >= 32 { 3 } else { 2 }
}

/// A loop that is written out. What the compiler leaves a loop over registers, or makes one, it keeps in memory.
macro_rules! unrolled {
    ($count:expr, $n:ident => $body:block) => {
        unrolled!(@ $count, $n => $body, 0 1 2 3 4 5 6 7 8 9 10 11)
    };
    (@ $count:expr, $n:ident => $body:block, $($i:literal)*) => {
        $(if const { $i < $count } { let $n: usize = $i; $body })*
    };
}

/// `value / max(p, tiny)`; 0 where `value` is NaN. A function, because a closure that is not inlined keeps the accumulators in memory.
#[inline(always)]
fn ratio<S: Simd, T: Real>(simd: S, value: T::Vector<S>, p: T::Vector<S>) -> T::Vector<S> {
    let ratio = T::vdiv(simd, value, T::vmax(simd, p, T::vsplat(simd, T::TINY)));
    T::vunless_nan(simd, value, ratio, T::vsplat(simd, T::zero()))
}

/// `q[n][m] = x / max(Σ_k a[k][m] b[n][k], tiny)` for `MR` row vectors and `NR` columns; 0 where `x` is NaN.
///
/// # Safety
///
/// With `L` lanes: `a` reaches `k` runs of `MR L` values, one after the other; `b` reaches `NR` runs of `k` values, `ldb`
/// apart; `x` reaches `NR` runs of `min(rows, MR L)` values, `ldx` apart; `q` reaches `NR MR L` values. `next` need not be valid.
#[inline(always)]
unsafe fn ratio_tile<S: Simd, T: Real, const MR: usize, const NR: usize>(
    simd: S,
    k: usize,
    a: *const T,
    (b, ldb): (*const T, usize),
    (x, next, ldx): (*const T, *const T, usize),
    rows: usize,
    q: *mut T,
) {
    let lanes = T::lanes::<S>();
    let zero = T::vsplat(simd, T::zero());
    for n in 0..NR {
        prefetch(
            next.wrapping_add(n * ldx + MR * lanes),
            MR * lanes * size_of::<T>(),
        );
    }
    let mut acc = [[zero; MR]; NR];
    for z in 0..k {
        let mut row = [zero; MR];
        for m in 0..MR {
            row[m] = unsafe { load::<S, T>(a.add((z * MR + m) * lanes)) };
        }
        for n in 0..NR {
            let column = T::vsplat(simd, unsafe { *b.add(n * ldb + z) });
            for m in 0..MR {
                acc[n][m] = T::vmul_add(simd, row[m], column, acc[n][m]);
            }
        }
    }
    if rows >= MR * lanes {
        unrolled!(NR, n => {
            for m in 0..MR {
                let at = x.wrapping_add(n * ldx + m * lanes);
                unsafe {
                    let ratio = ratio::<S, T>(simd, load::<S, T>(at), acc[n][m]);
                    store::<S, T>(ratio, q.add((n * MR + m) * lanes));
                }
            }
        });
        return;
    }
    unrolled!(NR, n => {
        for m in 0..MR {
            let left = rows.saturating_sub(m * lanes).min(lanes);
            let at = if left == 0 { x } else { x.wrapping_add(n * ldx + m * lanes) };
            let value = T::vpartial_load(simd, unsafe { std::slice::from_raw_parts(at, left) });
            let ratio = ratio::<S, T>(simd, value, acc[n][m]);
            unsafe { store::<S, T>(ratio, q.add((n * MR + m) * lanes)) };
        }
    });
}

/// `c[k][m] += Σ_j q[j][m] b[j][k]` for `MR` row vectors and `KR` components: counts of the rows. `fresh`: `c` holds anything
/// and is overwritten.
///
/// # Safety
///
/// `q` reaches `columns` runs of `MR L` values, one after the other; `b` reaches `columns` runs of `KR`, `ldb` apart;
/// `c` reaches `KR MR L` values.
#[inline(always)]
unsafe fn row_tile<S: Simd, T: Real, const MR: usize, const KR: usize>(
    simd: S,
    columns: usize,
    q: *const T,
    (b, ldb): (*const T, usize),
    c: *mut T,
    fresh: bool,
) {
    let lanes = T::lanes::<S>();
    let zero = T::vsplat(simd, T::zero());
    let mut acc = [[zero; MR]; KR];
    for j in 0..columns {
        let mut row = [zero; MR];
        for m in 0..MR {
            row[m] = unsafe { load::<S, T>(q.add((j * MR + m) * lanes)) };
        }
        for z in 0..KR {
            let column = T::vsplat(simd, unsafe { *b.add(j * ldb + z) });
            for m in 0..MR {
                acc[z][m] = T::vmul_add(simd, row[m], column, acc[z][m]);
            }
        }
    }
    unrolled!(KR, z => {
        for m in 0..MR {
            unsafe {
                let at = c.add((z * MR + m) * lanes);
                let before = if fresh { zero } else { load::<S, T>(at) };
                store::<S, T>(T::vadd(simd, acc[z][m], before), at);
            }
        }
    });
}

/// One row of [`column_tile`]: `KV` vectors of `a` times `JR` values of `q` that are `height` apart.
#[inline(always)]
unsafe fn column_step<S: Simd, T: Real, const KV: usize, const JR: usize>(
    simd: S,
    acc: &mut [[T::Vector<S>; KV]; JR],
    a: *const T,
    q: *const T,
    height: usize,
) {
    let mut row = [T::vsplat(simd, T::zero()); KV];
    for v in 0..KV {
        row[v] = unsafe { load::<S, T>(a.add(v * T::lanes::<S>())) };
    }
    for j in 0..JR {
        let column = T::vsplat(simd, unsafe { *q.add(j * height) });
        for v in 0..KV {
            acc[j][v] = T::vmul_add(simd, row[v], column, acc[j][v]);
        }
    }
}

/// `c[j][kv] += Σ_i a[i][kv] q[j][i]` for `KV` component vectors and `JR` columns: counts of the columns. `fresh` as there.
///
/// `q` holds `width` columns in bands of `MR L` rows, the last of `last` rows; the columns are those from `at` on.
///
/// # Safety
///
/// `a` reaches `rows` runs of `KV L` values, `lda` apart; `q` reaches `rows` in all bands together and `at + JR` columns;
/// `c` reaches `JR` runs of `KV L`, `ldc` apart.
#[inline(always)]
unsafe fn column_tile<S: Simd, T: Real, const MR: usize, const KV: usize, const JR: usize>(
    simd: S,
    (rows, trips): (usize, usize),
    (q, width, at, last): (*const T, usize, usize, usize),
    (a, lda): (*const T, usize),
    (c, ldc): (*mut T, usize),
    fresh: bool,
) {
    let lanes = T::lanes::<S>();
    let height = MR * lanes;
    let zero = T::vsplat(simd, T::zero());
    let mut acc = [[zero; KV]; JR];
    let bands = rows / height;
    for band in 0..bands {
        unsafe {
            let (a, q) = (
                a.add(band * height * lda),
                q.add((band * width + at) * height),
            );
            // As long as the compiler knows: unrolled, the sums would not stay in registers.
            for i in 0..trips {
                column_step::<S, T, KV, JR>(simd, &mut acc, a.add(i * lda), q.add(i), height);
            }
        }
    }
    for i in 0..rows - bands * height {
        unsafe {
            let (a, q) = (
                a.add((bands * height + i) * lda),
                q.add(bands * width * height + at * last),
            );
            column_step::<S, T, KV, JR>(simd, &mut acc, a, q.add(i), last);
        }
    }
    unrolled!(JR, j => {
        for v in 0..KV {
            unsafe {
                let at = c.add(j * ldc + v * lanes);
                let before = if fresh { zero } else { load::<S, T>(at) };
                store::<S, T>(T::vadd(simd, acc[j][v], before), at);
            }
        }
    });
}

/// Calls a function with the count `$n` as constant generic.
macro_rules! with_const {
    ($n:expr, [$($value:literal),*], $constant:ident => $call:expr) => {
        match $n { $($value => { const $constant: usize = $value; $call },)* _ => unreachable!("tile size") }
    };
}
pub(crate) use with_const;

/// The bands of `padded` rows, `MR` vectors each or what is left: first row and vectors.
#[inline(always)]
fn bands<const MR: usize>(padded: usize, lanes: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..padded)
        .step_by(MR * lanes)
        .map(move |i| (i, ((padded - i) / lanes).min(MR)))
}

/// The fewest blocks of at most `most` that make `n`, as even as they go: start and length. 50 components are 8 + 7 + 7 + 7 + 7 + 7 + 7,
/// never 8 + ... + 2.
#[inline(always)]
pub(super) fn even_blocks(n: usize, most: usize) -> impl Iterator<Item = (usize, usize)> {
    let blocks = n.div_ceil(most);
    (0..blocks).scan(0, move |next, block| {
        let start = *next;
        let length = (n - start).div_ceil(blocks - block);
        *next += length;
        Some((start, length))
    })
}

/// `q = x / p` of every cell of a tile, in bands of `MR` vectors of rows. The ratios are stored band after band, in a band column after column.
#[derive(Debug)]
pub(crate) struct FillRatios<'a, T, const MR: usize> {
    pub(crate) k: usize,
    /// The factor of the rows, band after band, `padded k` values.
    pub(crate) left: &'a [T],
    /// The factor of the columns, `stride` values each.
    pub(crate) right: &'a [T],
    pub(crate) stride: usize,
    /// Columns of `real` cells, `height` apart.
    pub(crate) cells: &'a [T],
    pub(crate) height: usize,
    pub(crate) real: usize,
    /// `padded` ratios a column.
    pub(crate) ratios: &'a mut [T],
}

impl<T: Real, const MR: usize> WithSimd for FillRatios<'_, T, MR> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self {
            k,
            left,
            right,
            stride,
            cells,
            height,
            real,
            ratios,
        } = self;
        let lanes = T::lanes::<S>();
        let padded = left.len() / k;
        let width = right.len() / stride;
        assert!(
            ratios.len() == width * padded
                && cells.len() == (width - 1) * height + real
                && real <= padded
                && k <= stride
        );
        let most = if MR == 3 { 8 } else { 5 };
        for (i, vectors) in bands::<MR>(padded, lanes) {
            for (j, columns) in even_blocks(width, most) {
                // Inside `left`, `right`, `cells` and `ratios` by the assertion above.
                unsafe {
                    let a = left.as_ptr().add(i * k);
                    let b = (right.as_ptr().add(j * stride), stride);
                    let x = cells.as_ptr().wrapping_add(j * height + i);
                    let ahead = if i + vectors * lanes < padded {
                        x.wrapping_add(vectors * lanes)
                    } else {
                        x.wrapping_add(width * height).wrapping_sub(i)
                    };
                    let q = ratios.as_mut_ptr().add(i * width + j * vectors * lanes);
                    let rows = real.saturating_sub(i);
                    let x = (x, ahead, height);
                    if const { MR == 3 } {
                        with_const!(vectors, [1, 2, 3], MV => with_const!(columns, [1, 2, 3, 4, 5, 6, 7, 8], NR =>
                            ratio_tile::<S, T, MV, NR>(simd, k, a, b, x, rows, q)));
                    } else {
                        with_const!(vectors, [1, 2], MV => with_const!(columns, [1, 2, 3, 4, 5], NR =>
                            ratio_tile::<S, T, MV, NR>(simd, k, a, b, x, rows, q)));
                    }
                }
            }
        }
    }
}

/// Adds the counts of the rows of a tile to `into`; `fresh`: overwrites it.
#[derive(Debug)]
pub(crate) struct AddRows<'a, T, const MR: usize> {
    pub(crate) k: usize,
    /// Columns.
    pub(crate) width: usize,
    /// As [`FillRatios`] leaves them.
    pub(crate) ratios: &'a [T],
    /// The factor of the columns, `stride` values each.
    pub(crate) right: &'a [T],
    pub(crate) stride: usize,
    /// Band after band, in a band component after component.
    pub(crate) into: &'a mut [T],
    pub(crate) fresh: bool,
}

impl<T: Real, const MR: usize> WithSimd for AddRows<'_, T, MR> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self {
            k,
            width,
            ratios,
            right,
            stride,
            into,
            fresh,
        } = self;
        let lanes = T::lanes::<S>();
        let padded = into.len() / k;
        assert!(ratios.len() == width * padded && right.len() == width * stride && k <= stride);
        let most = if MR == 3 { 8 } else { 5 };
        for (i, vectors) in bands::<MR>(padded, lanes) {
            for (z, components) in even_blocks(k, most) {
                // Inside the three slices by the assertion above.
                unsafe {
                    let q = ratios.as_ptr().add(i * width);
                    let b = (right.as_ptr().add(z), stride);
                    let c = into.as_mut_ptr().add(i * k + z * vectors * lanes);
                    if const { MR == 3 } {
                        with_const!(vectors, [1, 2, 3], MV => with_const!(components, [1, 2, 3, 4, 5, 6, 7, 8], KR =>
                            row_tile::<S, T, MV, KR>(simd, width, q, b, c, fresh)));
                    } else {
                        with_const!(vectors, [1, 2], MV => with_const!(components, [1, 2, 3, 4, 5], KR =>
                            row_tile::<S, T, MV, KR>(simd, width, q, b, c, fresh)));
                    }
                }
            }
        }
    }
}

/// Adds the counts of the columns of a tile to `into`; `fresh`: overwrites it.
#[derive(Debug)]
pub(crate) struct AddColumns<'a, T, const MR: usize> {
    /// Columns.
    pub(crate) width: usize,
    pub(crate) padded: usize,
    pub(crate) real: usize,
    /// As [`FillRatios`] leaves them.
    pub(crate) ratios: &'a [T],
    /// The factor of the rows, `stride` values each.
    pub(crate) by_row: &'a [T],
    pub(crate) stride: usize,
    /// `stride` values a column.
    pub(crate) into: &'a mut [T],
    pub(crate) fresh: bool,
}

impl<T: Real, const MR: usize> WithSimd for AddColumns<'_, T, MR> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self {
            width,
            padded,
            real,
            ratios,
            by_row,
            stride,
            into,
            fresh,
        } = self;
        let lanes = T::lanes::<S>();
        assert!(
            ratios.len() == width * padded
                && by_row.len() == real * stride
                && into.len() == width * stride
                && real <= padded
        );
        let height = MR * lanes;
        let last = padded - real / height * height;
        let trips = std::hint::black_box(height);
        let vectors = stride / lanes;
        let mut v = 0;
        while v < vectors {
            let left = vectors - v;
            let block = if MR == 3 {
                vectors.div_ceil(vectors.div_ceil(5)).min(left)
            } else if left == 3 {
                3
            } else {
                left.min(2)
            };
            let most = match (MR, block) {
                (3, 5) => 4,
                (2, 3) => 3,
                (3, 4) | (2, 2) => 6,
                (3, 3) => 8,
                _ => 12,
            };
            for (j, columns) in even_blocks(width, most) {
                // Inside the three slices by the assertion above.
                unsafe {
                    let q = (ratios.as_ptr(), width, j, last);
                    let a = (by_row.as_ptr().add(v * lanes), stride);
                    let c = (into.as_mut_ptr().add(j * stride + v * lanes), stride);
                    macro_rules! tile {
                        ($kv:literal, [$($jr:literal),*]) => {
                            with_const!(columns, [$($jr),*], JR =>
                                column_tile::<S, T, MR, $kv, JR>(simd, (real, trips), q, a, c, fresh))
                        };
                    }
                    if const { MR == 3 } {
                        match block {
                            5 => tile!(5, [1, 2, 3, 4]),
                            4 => tile!(4, [1, 2, 3, 4, 5, 6]),
                            3 => tile!(3, [1, 2, 3, 4, 5, 6, 7, 8]),
                            2 => tile!(2, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]),
                            _ => tile!(1, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]),
                        }
                    } else {
                        match block {
                            3 => tile!(3, [1, 2, 3]),
                            2 => tile!(2, [1, 2, 3, 4, 5, 6]),
                            _ => tile!(1, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]),
                        }
                    }
                }
            }
            v += block;
        }
    }
}
