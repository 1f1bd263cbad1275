//! Register tiles of the dense pass: the only unsafe code of the workspace.
//!
//! Tiles written with safe slices ran anywhere between 5 and 63 GFLOP/s depending on scalar and `K`, because
//! bounds checks keep accumulators out of registers; `benches/dense.rs` measures these. The three safe
//! functions at the end check their slices and then call the tiles; each tile states what its pointers must reach.
#![allow(unsafe_code)]
// Register tiles are indexed by hand: iterators keep the accumulators out of registers.
#![allow(clippy::needless_range_loop)]

use std::ptr;

use pulp::Simd;

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

/// Asks for the cache lines of `bytes` bytes from `at` on; never faults.
#[inline(always)]
fn prefetch<T>(at: *const T, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..=bytes).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast::<i8>().wrapping_add(line)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (at, bytes);
}

/// `q[n][m] = x / max(Σ_k a[k][m] b[n][k], tiny)` for `MR` row vectors and `NR` columns; 0 where `x` is NaN.
///
/// # Safety
///
/// With `L` lanes: `a` reaches `k` runs of `MR L` values, `lda` apart; `b` reaches `NR` runs of `k` values, `ldb`
/// apart; `x` reaches `NR` runs of `min(rows, MR L)` values, `ldx` apart; `q` reaches `NR` runs of `MR L`, `ldq` apart.
#[inline(always)]
unsafe fn ratio_tile<S: Simd, T: Real, const MR: usize, const NR: usize>(
    simd: S,
    k: usize,
    (a, lda): (*const T, usize),
    (b, ldb): (*const T, usize),
    (x, ldx): (*const T, usize),
    rows: usize,
    (q, ldq): (*mut T, usize),
) {
    let lanes = T::lanes::<S>();
    let zero = T::vsplat(simd, T::zero());
    for n in 0..NR {
        prefetch(x.wrapping_add(n * ldx), MR * lanes * size_of::<T>());
    }
    let mut acc = [[zero; MR]; NR];
    for z in 0..k {
        let mut row = [zero; MR];
        for m in 0..MR {
            row[m] = unsafe { load::<S, T>(a.add(z * lda + m * lanes)) };
        }
        for n in 0..NR {
            let column = T::vsplat(simd, unsafe { *b.add(n * ldb + z) });
            for m in 0..MR {
                acc[n][m] = T::vmul_add(simd, row[m], column, acc[n][m]);
            }
        }
    }
    let tiny = T::vsplat(simd, T::TINY);
    for n in 0..NR {
        for m in 0..MR {
            let at = x.wrapping_add(n * ldx + m * lanes);
            let value = if (m + 1) * lanes <= rows {
                unsafe { load::<S, T>(at) }
            } else {
                let left = rows.saturating_sub(m * lanes);
                T::vpartial_load(simd, unsafe {
                    std::slice::from_raw_parts(if left == 0 { x } else { at }, left)
                })
            };
            let ratio = T::vdiv(simd, value, T::vmax(simd, acc[n][m], tiny));
            let ratio = T::vunless_nan(simd, value, ratio, zero);
            unsafe { store::<S, T>(ratio, q.add(n * ldq + m * lanes)) };
        }
    }
}

/// `c[k][m] += Σ_j q[j][m] b[j][k]` for `MR` row vectors and `KR` components: counts of the rows. `fresh`: `c` holds anything
/// and is overwritten.
///
/// # Safety
///
/// `q` reaches `columns` runs of `MR L` values, `ldq` apart; `b` reaches `columns` runs of `KR`, `ldb` apart;
/// `c` reaches `KR` runs of `MR L`, `ldc` apart.
#[inline(always)]
unsafe fn row_tile<S: Simd, T: Real, const MR: usize, const KR: usize>(
    simd: S,
    columns: usize,
    (q, ldq): (*const T, usize),
    (b, ldb): (*const T, usize),
    (c, ldc): (*mut T, usize),
    fresh: bool,
) {
    let lanes = T::lanes::<S>();
    let zero = T::vsplat(simd, T::zero());
    let mut acc = [[zero; MR]; KR];
    for j in 0..columns {
        let mut row = [zero; MR];
        for m in 0..MR {
            row[m] = unsafe { load::<S, T>(q.add(j * ldq + m * lanes)) };
        }
        for z in 0..KR {
            let column = T::vsplat(simd, unsafe { *b.add(j * ldb + z) });
            for m in 0..MR {
                acc[z][m] = T::vmul_add(simd, row[m], column, acc[z][m]);
            }
        }
    }
    for z in 0..KR {
        for m in 0..MR {
            unsafe {
                let at = c.add(z * ldc + m * lanes);
                let before = if fresh { zero } else { load::<S, T>(at) };
                store::<S, T>(T::vadd(simd, acc[z][m], before), at);
            }
        }
    }
}

/// `c[j][kv] += Σ_i a[i][kv] q[j][i]` for `KV` component vectors and `JR` columns: counts of the columns. `fresh` as there.
///
/// # Safety
///
/// `a` reaches `rows` runs of `KV L` values, `lda` apart; `q` reaches `JR` runs of `rows`, `ldq` apart; `c` reaches
/// `JR` runs of `KV L`, `ldc` apart.
#[inline(always)]
unsafe fn column_tile<S: Simd, T: Real, const KV: usize, const JR: usize>(
    simd: S,
    rows: usize,
    (q, ldq): (*const T, usize),
    (a, lda): (*const T, usize),
    (c, ldc): (*mut T, usize),
    fresh: bool,
) {
    let lanes = T::lanes::<S>();
    let zero = T::vsplat(simd, T::zero());
    let mut acc = [[zero; KV]; JR];
    for i in 0..rows {
        let mut row = [zero; KV];
        for v in 0..KV {
            row[v] = unsafe { load::<S, T>(a.add(i * lda + v * lanes)) };
        }
        for j in 0..JR {
            let column = T::vsplat(simd, unsafe { *q.add(j * ldq + i) });
            for v in 0..KV {
                acc[j][v] = T::vmul_add(simd, row[v], column, acc[j][v]);
            }
        }
    }
    for j in 0..JR {
        for v in 0..KV {
            unsafe {
                let at = c.add(j * ldc + v * lanes);
                let before = if fresh { zero } else { load::<S, T>(at) };
                store::<S, T>(T::vadd(simd, acc[j][v], before), at);
            }
        }
    }
}

/// Calls a tile with the count `$n` as constant generic.
macro_rules! with_const {
    ($n:expr, [$($value:literal),*], $constant:ident => $call:expr) => {
        match $n { $($value => { const $constant: usize = $value; $call },)* _ => unreachable!("tile size") }
    };
}

#[inline(always)]
#[expect(
    clippy::too_many_arguments,
    reason = "three operands with their strides"
)]
pub(crate) fn fill_ratios<S: Simd, T: Real, const NR: usize>(
    simd: S,
    k: usize,
    left: &[T],
    right: &[T],
    stride: usize,
    cells: &[T],
    height: usize,
    real: usize,
    ratios: &mut [T],
) {
    let lanes = T::lanes::<S>();
    let padded = left.len() / k;
    let width = right.len() / stride;
    assert!(
        ratios.len() == width * padded
            && cells.len() == (width - 1) * height + real
            && real <= padded
            && k <= stride
    );
    let mut j = 0;
    while j < width {
        let full = width - j >= NR;
        let mut i = 0;
        while i < padded {
            let vectors = ((padded - i) / lanes).min(3);
            // Inside `left`, `right`, `cells` and `ratios` by the assertion above.
            unsafe {
                let a = (left.as_ptr().add(i), padded);
                let b = (right.as_ptr().add(j * stride), stride);
                let x = (cells.as_ptr().wrapping_add(j * height + i), height);
                let q = (ratios.as_mut_ptr().add(j * padded + i), padded);
                let rows = real.saturating_sub(i);
                with_const!(vectors, [1, 2, 3], MR => if full {
                    ratio_tile::<S, T, MR, NR>(simd, k, a, b, x, rows, q)
                } else {
                    ratio_tile::<S, T, MR, 1>(simd, k, a, b, x, rows, q)
                });
            }
            i += vectors * lanes;
        }
        j += if full { NR } else { 1 };
    }
}

#[inline(always)]
#[expect(
    clippy::too_many_arguments,
    reason = "three operands with their strides"
)]
pub(crate) fn add_rows<S: Simd, T: Real, const WIDE: bool>(
    simd: S,
    k: usize,
    width: usize,
    ratios: &[T],
    right: &[T],
    stride: usize,
    into: &mut [T],
    fresh: bool,
) {
    let lanes = T::lanes::<S>();
    let padded = into.len() / k;
    assert!(ratios.len() == width * padded && right.len() == width * stride && k <= stride);
    // An even split: 50 components are 8 + 7 + 7 + 7 + 7 + 7 + 7, never 8 + ... + 2.
    let blocks = k.div_ceil(if WIDE { 8 } else { 4 });
    let mut z = 0;
    for block in 0..blocks {
        let components = (k - z).div_ceil(blocks - block);
        let mut i = 0;
        while i < padded {
            let vectors = ((padded - i) / lanes).min(3);
            // Inside the three slices by the assertion above.
            unsafe {
                let q = (ratios.as_ptr().add(i), padded);
                let b = (right.as_ptr().add(z), stride);
                let c = (into.as_mut_ptr().add(z * padded + i), padded);
                with_const!(vectors, [1, 2, 3], MR => with_const!(components, [1, 2, 3, 4, 5, 6, 7, 8], KR =>
                    row_tile::<S, T, MR, KR>(simd, width, q, b, c, fresh)));
            }
            i += vectors * lanes;
        }
        z += components;
    }
}

#[inline(always)]
#[expect(
    clippy::too_many_arguments,
    reason = "three operands with their strides"
)]
pub(crate) fn add_columns<S: Simd, T: Real, const WIDE: bool>(
    simd: S,
    width: usize,
    padded: usize,
    real: usize,
    ratios: &[T],
    by_row: &[T],
    stride: usize,
    into: &mut [T],
    fresh: bool,
) {
    let lanes = T::lanes::<S>();
    assert!(
        ratios.len() == width * padded
            && by_row.len() == real * stride
            && into.len() == width * stride
            && real <= padded
    );
    let vectors = stride / lanes;
    let blocks = vectors.div_ceil(if WIDE { 5 } else { 3 });
    let per_block = vectors.div_ceil(blocks);
    let mut v = 0;
    while v < vectors {
        let block = per_block.min(vectors - v);
        let group = match (WIDE, block) {
            (true, 5) => 4,
            (true, 4) | (false, 2) => 6,
            (true, 3) => 8,
            (false, 3) => 4,
            _ => 12,
        };
        let mut j = 0;
        while j < width {
            let columns = if width - j >= group { group } else { 1 };
            // Inside the three slices by the assertion above.
            unsafe {
                let q = (ratios.as_ptr().add(j * padded), padded);
                let a = (by_row.as_ptr().add(v * lanes), stride);
                let c = (into.as_mut_ptr().add(j * stride + v * lanes), stride);
                macro_rules! tile {
                    ($kv:literal, $jr:literal) => {
                        column_tile::<S, T, $kv, $jr>(simd, real, q, a, c, fresh)
                    };
                }
                match (block, columns) {
                    (5, 4) => tile!(5, 4),
                    (4, 6) => tile!(4, 6),
                    (3, 8) => tile!(3, 8),
                    (3, 4) => tile!(3, 4),
                    (2, 12) => tile!(2, 12),
                    (2, 6) => tile!(2, 6),
                    (1, 12) => tile!(1, 12),
                    (5, _) => tile!(5, 1),
                    (4, _) => tile!(4, 1),
                    (3, _) => tile!(3, 1),
                    (2, _) => tile!(2, 1),
                    _ => tile!(1, 1),
                }
            }
            j += columns;
        }
        v += block;
    }
}
