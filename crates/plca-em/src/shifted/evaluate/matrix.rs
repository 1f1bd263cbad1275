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
use plca_tensor::{
    Cp, Data, DataError, DenseTensor, Expected, Factor, Modes, Order, Real, Request, Rule,
};

use super::cells::{Cells, scale_of};
use super::rows::{meet, outer_index};
use super::{Counts, Engine, Measured, Parts, Wanted, sum_of};
use crate::expectation::with_hidden;
use crate::shifted::folded::Folded;
use plca_tensor::parallel::for_each_part;

/// A relative difference of totals that rounding does not make.
const SHORT: f64 = 1e-6;

/// Whose copies stand side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stack {
    Impulses,
    Kernels,
}

/// Data as a matrix for one of the stacks.
#[derive(Debug)]
pub(crate) struct Matrix<T> {
    folded: Folded,
    stack: Stack,
    /// The data times `scale`.
    data: DenseTensor<T>,
    /// A power of two.
    scale: f64,
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

impl<T: Real> Matrix<T> {
    /// `None` if the data are refused, which checked data never are.
    pub(crate) fn new(
        folded: &Folded,
        stack: Stack,
        data: &dyn Data<T>,
    ) -> Result<Option<Self>, DataError> {
        let f = folded;
        let (c, d, x) = (f.channels, f.lanes, f.positions());
        let (rows, columns) = match stack {
            Stack::Impulses => (c, d * x),
            Stack::Kernels => (c * x, d),
        };
        let place = |at: usize| {
            let (row, x_at) = (at / x, at % x);
            let (c_at, d_at) = (row / d, row % d);
            match stack {
                Stack::Impulses => (d_at * x + x_at) * c + c_at,
                Stack::Kernels => (d_at * c + c_at) * x + x_at,
            }
        };
        let scale = scale_of::<T, T>(data)?;
        let values = Cells::arrange(folded, data, scale, place)?;
        let data = DenseTensor::masked(vec![rows, columns], values, Order::ColumnMajor);
        Ok(data.ok().map(|data| Self {
            folded: folded.clone(),
            stack,
            data,
            scale,
        }))
    }

    /// Kernels and impulses as the factors of rows (`rows x R`) and columns (`R x columns`).
    fn factors(&self, model: &Parts<'_, T>) -> [DMatrix<T>; 2] {
        let f = &self.folded;
        let (k, nt, nh) = (model.weights.len(), f.taps(), f.places());
        match self.stack {
            Stack::Impulses => {
                let mut left = DMatrix::zeros(f.channels, k * nt);
                let per = f.channels * nt;
                for_each_part(left.as_mut_slice(), per, |z, to| {
                    transpose(&model.kernels[z * per..][..per], nt, to);
                });
                (left, self.stack_impulses(model)).into()
            }
            Stack::Kernels => {
                let mut right = DMatrix::zeros(k * nh, f.lanes);
                for_each_part(right.as_mut_slice(), k * nh, |d, to| {
                    for (z, to) in to.chunks_exact_mut(nh).enumerate() {
                        to.copy_from_slice(&model.impulses[(z * f.lanes + d) * nh..][..nh]);
                    }
                });
                (self.stack_kernels(model), right).into()
            }
        }
    }

    /// `S[(z,t), (d,x)] = H[z,d,x-t+o]`.
    fn stack_impulses(&self, model: &Parts<'_, T>) -> DMatrix<T> {
        let f = &self.folded;
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
    fn unstack_impulses(&self, stacked: &DMatrix<T>, k: usize) -> Vec<T> {
        let f = &self.folded;
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
    fn stack_kernels(&self, model: &Parts<'_, T>) -> DMatrix<T> {
        let f = &self.folded;
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
    fn unstack_kernels(&self, stacked: &DMatrix<T>, k: usize) -> Vec<T> {
        let f = &self.folded;
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

    /// Whether an observed positive cell has `P = 0`. Its counts are 0 or overflow then: where no logarithm was asked for, only a
    /// total that is not the data's is worth the pass over the cells that tells for certain.
    fn lost(&self, model: &Cp<'_, T>, e: &Expected<T>, measured: bool) -> bool {
        let total = |m: &DMatrix<T>| sum_of(m.as_slice(), T::to_f64);
        let totals: Vec<f64> = (0..2).filter_map(|mode| e.get(mode)).map(total).collect();
        let without = measured && e.value() == f64::NEG_INFINITY;
        if without || !totals.iter().all(|t| t.is_finite()) {
            return true;
        }
        let v = self.data.total();
        if measured || totals.iter().all(|t| (t - v).abs() <= SHORT * v) {
            return false;
        }
        let e = self.e_step(model, &Request::counts(Modes::NONE).value(true));
        e.value() == f64::NEG_INFINITY
    }

    fn e_step(&self, model: &Cp<'_, T>, request: &Request<'_, T>) -> Expected<T> {
        let e = self.data.e_step(model, request);
        e.expect("a tensor in memory can be read")
    }

    /// Back from the factors' layout.
    fn unfold(&self, [left, right]: [Option<DMatrix<T>>; 2], k: usize) -> [Vec<T>; 2] {
        let f = &self.folded;
        let (nt, nh) = (f.taps(), f.places());
        let kernels = |left: DMatrix<T>| {
            if self.stack == Stack::Kernels {
                return self.unstack_kernels(&left, k);
            }
            let (mut out, per) = (vec![T::zero(); left.len()], f.channels * nt);
            for_each_part(&mut out, per, |z, to| {
                transpose(&left.as_slice()[z * per..][..per], f.channels, to);
            });
            out
        };
        let impulses = |right: DMatrix<T>| {
            if self.stack == Stack::Impulses {
                return self.unstack_impulses(&right, k);
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

impl<T: Real> Engine<T> for Matrix<T> {
    fn expect(&self, parts: &Parts<'_, T>, wanted: Wanted) -> Counts<T> {
        let k = parts.weights.len();
        let [left, right] = self.factors(parts);
        let copies = left.ncols() / k;
        let weights: Vec<T> = (parts.weights.iter())
            .flat_map(|&w| std::iter::repeat_n(w, copies))
            .collect();
        let factors = [Factor::Columns(&left), Factor::Rows(&right)];
        let model = Cp {
            weights: Some(&weights),
            factors: &factors,
        };
        let modes: Modes = (0..2).filter(|&mode| wanted.blocks[mode]).collect();
        let request = Request::counts(modes);
        let mut e = self.e_step(&model, &request.value(wanted.ln_lik));
        let lost = self.lost(&model, &e, wanted.ln_lik);
        let ln_lik = if wanted.ln_lik { e.value() } else { 0.0 };
        let mut seen = parts.window_mass();
        if !self.data.is_complete() {
            let exposure = self.e_step(&model, &request.value(true).rule(Rule::Exposure));
            seen = exposure.value();
            // [SPEC 4] s = v_obs / Σ_obs P
            let s = T::lit(self.data.total() / seen);
            e = with_hidden(e, &exposure, &model, s, None);
        }
        let counts = [0, 1].map(|mode| modes.contains(mode).then(|| e.take(mode)));
        Counts {
            scale: self.scale,
            blocks: self.unfold(counts, k),
            measured: Measured {
                ln_lik: ln_lik / self.scale,
                seen,
                lost,
            },
        }
    }
}
