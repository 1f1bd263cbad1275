//! Register tiles of the dense pass: the only unsafe code of the workspace.
//!
//! Tiles written with safe slices ran anywhere between 5 and 63 GFLOP/s depending on scalar and `K`, because
//! bounds checks keep accumulators out of registers; `benches/dense.rs` measures these. Each function states
//! what its pointers must reach; `dense.rs` is the only caller and checks the slices before the loops.
#![allow(unsafe_code)]

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
#[expect(
    clippy::too_many_arguments,
    reason = "a register tile has three operands with their strides"
)]
pub(crate) unsafe fn ratios<S: Simd, T: Real, const MR: usize, const NR: usize>(
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

/// `c[k][m] += Σ_j q[j][m] b[j][k]` for `MR` row vectors and `KR` components: counts of the rows.
///
/// # Safety
///
/// `q` reaches `columns` runs of `MR L` values, `ldq` apart; `b` reaches `columns` runs of `KR`, `ldb` apart;
/// `c` reaches `KR` runs of `MR L`, `ldc` apart.
#[inline(always)]
pub(crate) unsafe fn row_counts<S: Simd, T: Real, const MR: usize, const KR: usize>(
    simd: S,
    columns: usize,
    (q, ldq): (*const T, usize),
    (b, ldb): (*const T, usize),
    (c, ldc): (*mut T, usize),
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
                store::<S, T>(T::vadd(simd, acc[z][m], load::<S, T>(at)), at);
            }
        }
    }
}

/// `c[j][kv] += Σ_i a[i][kv] q[j][i]` for `KV` component vectors and `JR` columns: counts of the columns.
///
/// # Safety
///
/// `a` reaches `rows` runs of `KV L` values, `lda` apart; `q` reaches `JR` runs of `rows`, `ldq` apart; `c` reaches
/// `JR` runs of `KV L`, `ldc` apart.
#[inline(always)]
pub(crate) unsafe fn column_counts<S: Simd, T: Real, const KV: usize, const JR: usize>(
    simd: S,
    rows: usize,
    (q, ldq): (*const T, usize),
    (a, lda): (*const T, usize),
    (c, ldc): (*mut T, usize),
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
                store::<S, T>(T::vadd(simd, acc[j][v], load::<S, T>(at)), at);
            }
        }
    }
}
