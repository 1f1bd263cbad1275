//! Copies stacked side by side, so that the model is one product of matrices.
//!
//! ```math
//! \begin{aligned}
//! & \text{impulses stacked:}
//!   & P[c, (d,x)] &= \sum_{z,t} P(z) \, K[z,c,t] \cdot S[(d,x), (z,t)],
//!   & S &= H[z,d,x-t+o] \\
//! & \text{kernels stacked:}
//!   & P[(c,x), d] &= \sum_{z,h} P(z) \, S[(c,x), (z,h)] \cdot H[z,d,h],
//!   & S &= K[z,c,x-h+o]
//! \end{aligned}
//! ```
//!
//! The kernels of matrices do the rest at full speed; counts of stacked copies are added back. Good with many channels or
//! lanes, which every element of a stack is used for.

use nalgebra::DMatrix;

use super::rows::{meet, outer_index};
use super::{Folded, Parts};
use crate::Real;
use crate::parallel::for_each_part;

/// Whose copies stand side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stack {
    /// Those of the impulses.
    Impulses,
    /// Those of the kernels.
    Kernels,
}

impl Stack {
    /// Rows and columns of the data as a matrix.
    pub fn shape(self, f: &Folded) -> [usize; 2] {
        let (c, d, x) = (f.channels, f.lanes, f.positions());
        match self {
            Self::Impulses => [c, d * x],
            Self::Kernels => [c * x, d],
        }
    }

    /// Where a cell of `[c][d][x]` is in that matrix, column after column.
    pub fn place(self, f: &Folded, at: usize) -> usize {
        let (c, d, x) = (f.channels, f.lanes, f.positions());
        let (row, x_at) = (at / x, at % x);
        let (c_at, d_at) = (row / d, row % d);
        match self {
            Self::Impulses => (d_at * x + x_at) * c + c_at,
            Self::Kernels => (d_at * c + c_at) * x + x_at,
        }
    }

    /// Kernels and impulses as the factors of rows (`rows x R`) and columns (`R x columns`).
    pub fn factors<T: Real>(self, f: &Folded, model: &Parts<'_, T>) -> [DMatrix<T>; 2] {
        let (k, nt, nh) = (model.weights.len(), f.taps(), f.places());
        match self {
            Self::Impulses => {
                let mut left = DMatrix::zeros(f.channels, k * nt);
                let per = f.channels * nt;
                for_each_part(left.as_mut_slice(), per, |z, to| {
                    transpose(&model.kernels[z * per..][..per], nt, to);
                });
                (left, stack_impulses(f, model)).into()
            }
            Self::Kernels => {
                let mut right = DMatrix::zeros(k * nh, f.lanes);
                for_each_part(right.as_mut_slice(), k * nh, |d, to| {
                    for (z, to) in to.chunks_exact_mut(nh).enumerate() {
                        to.copy_from_slice(&model.impulses[(z * f.lanes + d) * nh..][..nh]);
                    }
                });
                (stack_kernels(f, model), right).into()
            }
        }
    }

    /// Back from the factors' layout.
    pub fn unfold<T: Real>(
        self,
        f: &Folded,
        [left, right]: [Option<DMatrix<T>>; 2],
        k: usize,
    ) -> [Vec<T>; 2] {
        let (nt, nh) = (f.taps(), f.places());
        let kernels = |left: DMatrix<T>| {
            if self == Self::Kernels {
                return unstack_kernels(f, &left, k);
            }
            let (mut out, per) = (vec![T::zero(); left.len()], f.channels * nt);
            for_each_part(&mut out, per, |z, to| {
                transpose(&left.as_slice()[z * per..][..per], f.channels, to);
            });
            out
        };
        let impulses = |right: DMatrix<T>| {
            if self == Self::Impulses {
                return unstack_impulses(f, &right, k);
            }
            let mut out = vec![T::zero(); right.len()];
            for_each_part(&mut out, nh, |part, to| {
                let (z, d) = (part / f.lanes, part % f.lanes);
                to.copy_from_slice(&right.as_slice()[d * k * nh + z * nh..][..nh]);
            });
            out
        };
        let (kernels, impulses) = (left.map(kernels), right.map(impulses));
        [kernels.unwrap_or_default(), impulses.unwrap_or_default()]
    }
}

/// `to[a][b] = from[b][a]`, `from` having rows of `width`.
fn transpose<T: Real>(from: &[T], width: usize, to: &mut [T]) {
    let height = from.len() / width;
    for (a, to) in to.chunks_exact_mut(height).enumerate() {
        to.iter_mut()
            .zip(from[a..].iter().step_by(width))
            .for_each(|(t, &f)| *t = f);
    }
}

/// The range of taps `t` with `0 <= x - t + o < m`, and the place of the first.
fn taps_at(x: usize, [_, k, m, o]: [usize; 4]) -> (std::ops::Range<usize>, usize) {
    let low = (x + o + 1).saturating_sub(m);
    let high = (x + o + 1).min(k);
    (low..high, (x + o).saturating_sub(low))
}

/// `S[(z,t), (d,x)] = H[z,d,x-t+o]`.
fn stack_impulses<T: Real>(f: &Folded, model: &Parts<'_, T>) -> DMatrix<T> {
    let inner @ [size, kernel, impulse, _] = f.inner();
    let (k, nt, nh, nx) = (model.weights.len(), f.taps(), f.places(), f.positions());
    let mut out = DMatrix::zeros(k * nt, f.lanes * nx);
    for_each_part(out.as_mut_slice(), k * nt * size, |row, columns| {
        let (d, x) = (row / (nx / size), outer_index(row % (nx / size), &f.size));
        let partner = |d: usize, x: usize, t: usize| (x + f.offset[d]).checked_sub(t);
        meet(&x, &f.kernel, &f.impulse, partner, |t, h| {
            for (x, column) in columns.chunks_exact_mut(k * nt).enumerate() {
                let (taps, place) = taps_at(x, inner);
                for z in 0..k {
                    let to = &mut column[z * nt + t * kernel..][taps.clone()];
                    let from = &model.impulses[(z * f.lanes + d) * nh + h * impulse..];
                    let from = &from[place + 1 - to.len()..=place];
                    to.iter_mut()
                        .zip(from.iter().rev())
                        .for_each(|(t, &f)| *t = f);
                }
            }
        });
    });
    out
}

/// `CH[z,d,h] = Σ_t CS[(z,t), (d,h+t-o)]`.
fn unstack_impulses<T: Real>(f: &Folded, stacked: &DMatrix<T>, k: usize) -> Vec<T> {
    let inner @ [size, kernel, impulse, _] = f.inner();
    let (nt, nh, nx) = (f.taps(), f.places(), f.positions());
    let mut out = vec![T::zero(); k * f.lanes * nh];
    for_each_part(&mut out, nh, |part, out| {
        let (z, d) = (part / f.lanes, part % f.lanes);
        for row in 0..nx / size {
            let x = outer_index(row, &f.size);
            let columns = &stacked.as_slice()[(d * nx + row * size) * k * nt..];
            let partner = |d: usize, x: usize, t: usize| (x + f.offset[d]).checked_sub(t);
            meet(&x, &f.kernel, &f.impulse, partner, |t, h| {
                for (x, column) in columns.chunks_exact(k * nt).take(size).enumerate() {
                    let (taps, place) = taps_at(x, inner);
                    let from = &column[z * nt + t * kernel..][taps];
                    let to = &mut out[h * impulse..][place + 1 - from.len()..=place];
                    to.iter_mut().rev().zip(from).for_each(|(t, &f)| *t += f);
                }
            });
        }
    });
    out
}

/// `S[(c,x), (z,h)] = K[z,c,x-h+o]`.
fn stack_kernels<T: Real>(f: &Folded, model: &Parts<'_, T>) -> DMatrix<T> {
    let (k, nt, nh, nx) = (model.weights.len(), f.taps(), f.places(), f.positions());
    let mut out = DMatrix::zeros(f.channels * nx, k * nh);
    for_each_part(out.as_mut_slice(), f.channels * nx, |part, column| {
        let (z, h) = (part / nh, part % nh);
        for (c, column) in column.chunks_exact_mut(nx).enumerate() {
            let kernel = &model.kernels[(z * f.channels + c) * nt..][..nt];
            copies(f, h, |x, t, n| {
                column[x..x + n].copy_from_slice(&kernel[t..t + n])
            });
        }
    });
    out
}

/// `CK[z,c,t] = Σ_h CS[(c,h+t-o), (z,h)]`.
fn unstack_kernels<T: Real>(f: &Folded, stacked: &DMatrix<T>, k: usize) -> Vec<T> {
    let (nt, nh, nx) = (f.taps(), f.places(), f.positions());
    let mut out = vec![T::zero(); k * f.channels * nt];
    for_each_part(&mut out, nt, |part, kernel| {
        let (z, c) = (part / f.channels, part % f.channels);
        for h in 0..nh {
            let column = &stacked.as_slice()[((z * nh + h) * f.channels + c) * nx..][..nx];
            copies(f, h, |x, t, n| {
                kernel[t..t + n]
                    .iter_mut()
                    .zip(&column[x..x + n])
                    .for_each(|(k, &s)| *k += s);
            });
        }
    });
    out
}

/// Calls `f` with position, tap and length of every contiguous piece of the copy at place `h` that lies in the window.
fn copies(f: &Folded, h: usize, mut piece: impl FnMut(usize, usize, usize)) {
    let [size, kernel, impulse, o] = f.inner();
    let (outer, h) = (outer_index(h / impulse, &f.impulse), h % impulse);
    let partner = |d: usize, h: usize, t: usize| (h + t).checked_sub(f.offset[d]);
    // 0 <= h + t - o < I
    let (low, high) = (
        o.saturating_sub(h),
        kernel.min((size + o).saturating_sub(h)),
    );
    if low < high {
        meet(&outer, &f.kernel, &f.size, partner, |t, x| {
            piece(x * size + h + low - o, t * kernel + low, high - low);
        });
    }
}
