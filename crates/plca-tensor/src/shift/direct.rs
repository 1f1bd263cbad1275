//! The sums as they are written, over dense cells.

use super::rows::{convolve, correlate, meet, outer_index};
use super::{Folded, Parts};
use crate::Real;
use crate::parallel::for_each_part;

/// `P` over the window, `[c][d][x]`.
pub fn model<T: Real>(f: &Folded, model: &Parts<'_, T>) -> Vec<T> {
    let [size, kernel, impulse, o] = f.inner();
    let (nt, nh) = (f.taps(), f.places());
    // [SI eq. 6] [SI eq. 11] [SPEC 5.1] P[x] = Σ_z P(z) Σ_t K[z,t] H[z, x - t + o]
    let mut p = vec![T::zero(); f.channels * f.lanes * f.positions()];
    for_each_part(&mut p, size, |row, out| {
        let rows = f.positions() / size;
        let (c, d) = (row / rows / f.lanes, row / rows % f.lanes);
        let x = outer_index(row % rows, &f.size);
        for (z, &w) in model.weights.iter().enumerate() {
            let k = &model.kernels[(z * f.channels + c) * nt..][..nt];
            let h = &model.impulses[(z * f.lanes + d) * nh..][..nh];
            // [SPEC 5.1] h = x - t + o
            let partner = |d: usize, x: usize, t: usize| (x + f.offset[d]).checked_sub(t);
            meet(&x, &f.kernel, &f.impulse, partner, |t, at| {
                convolve(
                    out,
                    &k[t * kernel..][..kernel],
                    &h[at * impulse..][..impulse],
                    o,
                    w,
                );
            });
        }
    });
    p
}

/// `Σ_{d,x} Q[c,d,x] H[z,d,x-t+o]`, `[z][c][t]`, for kernels (side 0), `Σ_{c,t} K[z,c,t] Q[c,d,h+t-o]`, `[z][d][h]`, for impulses.
pub fn sums<T: Real>(f: &Folded, model: &Parts<'_, T>, q: &[T], side: usize) -> Vec<T> {
    let [size, _, _, o] = f.inner();
    let (own, other, nx) = (f.side(side), f.side(1 - side), f.positions());
    let block = model.blocks()[1 - side];
    let mut sums = vec![T::zero(); model.blocks()[side].len()];
    // [SI eq. 9] [SI eq. 14] [SPEC 5.1] Σ_x Q[x] H[z, x - t + o]
    // [SI eq. 10] [SI eq. 15] [SPEC 5.1] Σ_t K[z,t] Q[h + t - o]
    for_each_part(&mut sums, own.row, |row, out| {
        let rows = own.cells / own.row;
        let (z, line) = (row / rows / own.lines, row / rows % own.lines);
        let at = outer_index(row % rows, own.shape);
        for across in 0..other.lines {
            let block = &block[(z * other.lines + across) * other.cells..][..other.cells];
            let q = &q[f.plane(side, line, across) * nx..][..nx];
            let partner = |d: usize, a: usize, b: usize| (a + b).checked_sub(f.offset[d]);
            meet(&at, other.shape, &f.size, partner, |b, x| {
                let block = &block[b * other.row..][..other.row];
                correlate(out, block, &q[x * size..][..size], o);
            });
        }
    });
    sums
}

/// `P` at one cell, as the model is written.
#[cfg(feature = "fft")]
pub(super) fn cell<T: Real>(f: &Folded, model: &Parts<'_, T>, [c, d, x]: [usize; 3]) -> T {
    let [size, kernel, impulse, o] = f.inner();
    let (nt, nh) = (f.taps(), f.places());
    let (outer, x) = (outer_index(x / size, &f.size), x % size);
    // 0 <= x - t + o < m
    let (low, high) = ((x + o + 1).saturating_sub(impulse), (x + o + 1).min(kernel));
    let mut p = T::zero();
    for (z, &w) in model.weights.iter().enumerate() {
        let k = &model.kernels[(z * f.channels + c) * nt..][..nt];
        let h = &model.impulses[(z * f.lanes + d) * nh..][..nh];
        let partner = |d: usize, x: usize, t: usize| (x + f.offset[d]).checked_sub(t);
        meet(&outer, &f.kernel, &f.impulse, partner, |t, at| {
            let k = &k[t * kernel..][low..high];
            let last = at * impulse + x + o - low;
            let h = &h[last + 1 - k.len()..=last];
            let terms = k.iter().zip(h.iter().rev()).map(|(&k, &h)| k * h);
            p += w * terms.sum::<T>();
        });
    }
    p
}
