//! Sums over rows of boxes, a row being the cells along the last dimension.

use super::advance;
use crate::Real;

/// Calls `f(row_a, row_b)` for all rows of a box `shape_a` whose partner is a row of the box `shape_b`, a row being the cells
/// along the last dimension. `partner(d, fixed_d, a_d)` is the partner's index along dimension `d`, if there is one.
pub fn meet(
    fixed: &[usize],
    shape_a: &[usize],
    shape_b: &[usize],
    partner: impl Fn(usize, usize, usize) -> Option<usize>,
    mut f: impl FnMut(usize, usize),
) {
    let outer = fixed.len();
    let mut a = vec![0; outer];
    let mut row_a = 0;
    loop {
        let row_b = (0..outer).try_fold(0, |row, d| {
            let b = partner(d, fixed[d], a[d]).filter(|&b| b < shape_b[d])?;
            Some(row * shape_b[d] + b)
        });
        if let Some(row_b) = row_b {
            f(row_a, row_b);
        }
        row_a += 1;
        if !advance(&mut a, &shape_a[..outer]) {
            return;
        }
    }
}

/// `out[x] += w Σ_t a[t] b[x - t + o]`, terms with an index outside `b` being 0.
#[inline(always)]
pub(super) fn convolve<T: Real>(out: &mut [T], a: &[T], b: &[T], o: usize, w: T) {
    for (t, &a) in a.iter().enumerate().filter(|(_, a)| **a != T::zero()) {
        // 0 <= x - t + o < b.len()
        let (low, high) = (
            t.saturating_sub(o),
            out.len().min((b.len() + t).saturating_sub(o)),
        );
        if low < high {
            add(&mut out[low..high], w * a, &b[low + o - t..high + o - t]);
        }
    }
}

/// `out[i] += Σ_j a[j] q[i + j - o]`, terms with an index outside `q` being 0.
#[inline(always)]
pub(super) fn correlate<T: Real>(out: &mut [T], a: &[T], q: &[T], o: usize) {
    if out.len() >= a.len() {
        for (j, &a) in a.iter().enumerate().filter(|(_, a)| **a != T::zero()) {
            let (low, high) = (
                o.saturating_sub(j),
                out.len().min((q.len() + o).saturating_sub(j)),
            );
            if low < high {
                add(&mut out[low..high], a, &q[low + j - o..high + j - o]);
            }
        }
    } else {
        for (i, out) in out.iter_mut().enumerate() {
            let (low, high) = (
                o.saturating_sub(i),
                a.len().min((q.len() + o).saturating_sub(i)),
            );
            if low < high {
                *out += dot(&a[low..high], &q[low + i - o..high + i - o]);
            }
        }
    }
}

/// `out[i] += a b[i]`.
#[inline(always)]
fn add<T: Real>(out: &mut [T], a: T, b: &[T]) {
    out.iter_mut().zip(b).for_each(|(out, &b)| *out += a * b);
}

#[inline(always)]
fn dot<T: Real>(a: &[T], b: &[T]) -> T {
    let mut parts = [T::zero(); 16];
    let ((a, rest_a), (b, rest_b)) = (a.as_chunks::<16>(), b.as_chunks::<16>());
    for (a, b) in a.iter().zip(b) {
        for ((part, &a), &b) in parts.iter_mut().zip(a).zip(b) {
            *part += a * b;
        }
    }
    let rest = rest_a.iter().zip(rest_b).map(|(&a, &b)| a * b);
    parts.into_iter().chain(rest).sum()
}

/// The multi-index of row `row` of a box without its last dimension.
pub fn outer_index(mut row: usize, shape: &[usize]) -> Vec<usize> {
    let mut index = vec![0; shape.len() - 1];
    for (i, &n) in index.iter_mut().zip(shape).rev() {
        *i = row % n;
        row /= n;
    }
    index
}
