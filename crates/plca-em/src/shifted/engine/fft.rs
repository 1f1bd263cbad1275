//! Convolutions along the last one or two shifted dimensions by Fourier transforms, the others as they are written.
//!
//! Sums over components, channels and lanes are taken in the frequency domain, so that every result costs one inverse
//! transform. A transform's error is about `ε log2 L |K| |H|` whatever the size of the result, hence the guards of
//! `[SPEC 5.6]`: small values of `P` are recomputed by direct sums, correlations are clamped at 0, and the counts are products with
//! the old parameters, whose exact zeros stay. Always in double precision.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use plca_tensor::{Observed, Real};

use super::cells::Cells;
use super::direct::Direct;
use super::spectrum::{C64, Place, Plan, fast_length};
use super::{Counts, Engine, Parts, Wanted};
use crate::shifted::folded::Folded;
use crate::shifted::geometry::advance;
use plca_tensor::parallel::{for_each_part, wide};

/// Where along the untransformed dimensions a tap and a place meet a position, `[t, h, x]`.
type Meetings = Vec<[usize; 3]>;

/// Shifted models by transforms.
pub(crate) struct Fft {
    pub(super) folded: Folded,
    pub(super) cells: Cells<f64>,
    /// Number of positive cells.
    pub(super) positive: usize,
    pub(super) plan: Plan,
    /// Boxes of kernels, impulses and data within the transformed area, and their numbers of values.
    boxes: [(Place, usize); 3],
    meetings: Meetings,
    buffers: Mutex<Option<Buffers>>,
}

#[derive(Default)]
pub(super) struct Buffers {
    pub(super) kernels: Vec<C64>,
    pub(super) impulses: Vec<C64>,
    pub(super) ratios: Vec<C64>,
    pub(super) p: Vec<f64>,
}

impl fmt::Debug for Fft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fft")
            .field("folded", &self.folded)
            .finish_non_exhaustive()
    }
}

/// Lengths that avoid wrap-around in the window, `(rows, columns)`, and the number of untransformed dimensions.
pub(crate) fn lengths(f: &Folded, transformed: usize) -> ([usize; 2], usize) {
    let first = f.size.len().saturating_sub(transformed);
    let length = |d: usize, even: bool| {
        let [i, k, m, o] = [f.size[d], f.kernel[d], f.impulse[d], f.offset[d]];
        // [SPEC 5.6] what wraps around stays below o, where no data are
        fast_length((k + m - 1 - o).max(o + i).max(k).max(m), even)
    };
    let last = f.size.len() - 1;
    let rows = if first < last {
        length(last - 1, false)
    } else {
        1
    };
    ([rows, length(last, true)], first)
}

impl Fft {
    pub(crate) fn new<T: Real, X: Observed<T> + ?Sized>(
        folded: &Folded,
        transformed: usize,
        data: &X,
    ) -> Self {
        let f = folded;
        let ([rows, columns], first) = lengths(f, transformed);
        let last = f.size.len() - 1;
        let boxed = |shape: &[usize], origin: [usize; 2]| {
            let place = Place {
                first_row: origin[0],
                first_column: origin[1],
                width: shape[last],
            };
            (place, shape[first..].iter().product())
        };
        let row_offset = if first < last { f.offset[last - 1] } else { 0 };
        let cells = Cells::new(folded, data);
        Self {
            positive: cells.values.iter().filter(|v| **v > 0.0).count(),
            cells,
            plan: Plan::new(rows, columns),
            boxes: [
                boxed(&f.kernel, [0, 0]),
                boxed(&f.impulse, [0, 0]),
                boxed(&f.size, [row_offset, f.offset[last]]),
            ],
            meetings: meetings(f, first),
            folded: folded.clone(),
            buffers: Mutex::default(),
        }
    }

    /// Numbers of untransformed taps, places and positions.
    fn outer(&self) -> [usize; 3] {
        let f = &self.folded;
        let [k, h, x] = self.boxes.map(|b| b.1);
        [f.taps() / k, f.places() / h, f.positions() / x]
    }

    /// Spectra of all boxes of `values`.
    pub(super) fn spectra(&self, values: &[f64], which: usize, out: &mut Vec<C64>) {
        let (place, cells) = self.boxes[which];
        let len = self.plan.len();
        out.resize(values.len() / cells * len, C64::default());
        for_each_part(out, len, |at, spectrum| {
            self.plan
                .forward(&values[at * cells..][..cells], place, spectrum);
        });
    }

    /// `P` over the window from the spectra of kernels and impulses.
    pub(super) fn convolve(&self, model: &Parts<'_, f64>, b: &mut Buffers) {
        let f = &self.folded;
        let [nt, nh, nx] = self.outer();
        let ((place, cells), len) = (self.boxes[2], self.plan.len());
        let (kernels, impulses) = (&b.kernels, &b.impulses);
        b.p.resize(f.channels * f.lanes * f.positions(), 0.0);
        for_each_part(&mut b.p, cells, |at, out| {
            let (c, d, x) = (at / nx / f.lanes, at / nx % f.lanes, at % nx);
            let sum = |first: usize, sum: &mut [C64]| {
                sum.fill(C64::default());
                for (z, w) in model.weights.iter().enumerate() {
                    let w = w / self.plan.cells() as f64;
                    for &[t, h, _] in self.meetings.iter().filter(|m| m[2] == x) {
                        let k = &kernels[((z * f.channels + c) * nt + t) * len + first..];
                        let h = &impulses[((z * f.lanes + d) * nh + h) * len + first..];
                        add_products(sum, k, h, w);
                    }
                }
            };
            self.plan.inverse(sum, place, out);
        });
    }

    /// Correlations of the ratios with the impulses, clamped at 0: `[z][c][t]`.
    pub(super) fn kernel_sums(&self, components: usize, b: &Buffers) -> Vec<f64> {
        let f = &self.folded;
        let [nt, nh, nx] = self.outer();
        let ((place, cells), len) = (self.boxes[0], self.plan.len());
        let mut out = vec![0.0; components * f.channels * f.taps()];
        for_each_part(&mut out, cells, |at, out| {
            let (z, c, t) = (at / nt / f.channels, at / nt % f.channels, at % nt);
            let sum = |first: usize, sum: &mut [C64]| {
                sum.fill(C64::default());
                for d in 0..f.lanes {
                    for &[_, h, x] in self.meetings.iter().filter(|m| m[0] == t) {
                        let q = &b.ratios[((c * f.lanes + d) * nx + x) * len + first..];
                        let h = &b.impulses[((z * f.lanes + d) * nh + h) * len + first..];
                        add_conjugate_products(sum, q, h);
                    }
                }
            };
            self.plan.inverse(sum, place, out);
            self.clamp(out);
        });
        out
    }

    /// Correlations of the ratios with the kernels, clamped at 0: `[z][d][h]`.
    pub(super) fn impulse_sums(&self, components: usize, b: &Buffers) -> Vec<f64> {
        let f = &self.folded;
        let [nt, nh, nx] = self.outer();
        let ((place, cells), len) = (self.boxes[1], self.plan.len());
        let mut out = vec![0.0; components * f.lanes * f.places()];
        for_each_part(&mut out, cells, |at, out| {
            let (z, d, h) = (at / nh / f.lanes, at / nh % f.lanes, at % nh);
            let sum = |first: usize, sum: &mut [C64]| {
                sum.fill(C64::default());
                for c in 0..f.channels {
                    for &[t, _, x] in self.meetings.iter().filter(|m| m[1] == h) {
                        let q = &b.ratios[((c * f.lanes + d) * nx + x) * len + first..];
                        let k = &b.kernels[((z * f.channels + c) * nt + t) * len + first..];
                        add_conjugate_products(sum, q, k);
                    }
                }
            };
            self.plan.inverse(sum, place, out);
            self.clamp(out);
        });
        out
    }

    fn clamp(&self, sums: &mut [f64]) {
        let scale = 1.0 / self.plan.cells() as f64;
        sums.iter_mut().for_each(|s| *s = (*s * scale).max(0.0));
    }

    fn expect_f64(&self, model: &Parts<'_, f64>, wanted: Wanted) -> Counts<f64> {
        let lock = || self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut b = lock().take().unwrap_or_default();
        self.spectra(model.kernels, 0, &mut b.kernels);
        self.spectra(model.impulses, 1, &mut b.impulses);
        self.convolve(model, &mut b);
        let mut p = std::mem::take(&mut b.p);
        self.guard(model, &mut p);
        let measured = (self.cells).ratios(&mut p, wanted.ln_lik, model.window_mass());
        let sound = self.sums_are_sound(model, &p);
        if sound && (wanted.kernels || wanted.impulses) {
            self.spectra(&p, 2, &mut b.ratios);
        }
        b.p = p;
        let (f, components) = (&self.folded, model.weights.len());
        let kernels = || match sound {
            true => self.kernel_sums(components, &b),
            false => Direct::kernel_sums(f, model, &b.p),
        };
        let impulses = || match sound {
            true => self.impulse_sums(components, &b),
            false => Direct::impulse_sums(f, model, &b.p),
        };
        let scale = self.cells.scale;
        let counts = Counts::assemble(model, wanted, scale, measured, kernels, impulses);
        *lock() = Some(b);
        counts
    }
}

/// All `(t, h, x)` of the untransformed dimensions with `x = h + t - o`.
fn meetings(f: &Folded, outer: usize) -> Meetings {
    let [kernel, impulse, size] = [&f.kernel, &f.impulse, &f.size].map(|s| &s[..outer]);
    let (mut all, mut x, mut row) = (Vec::new(), vec![0; outer], 0);
    loop {
        let (mut t, mut tap) = (vec![0; outer], 0);
        loop {
            let place = (0..outer).try_fold(0, |place, d| {
                let h = (x[d] + f.offset[d]).checked_sub(t[d])?;
                (h < impulse[d]).then(|| place * impulse[d] + h)
            });
            if let Some(place) = place {
                all.push([tap, place, row]);
            }
            tap += 1;
            if !advance(&mut t, kernel) {
                break;
            }
        }
        row += 1;
        if !advance(&mut x, size) {
            return all;
        }
    }
}

/// `sum += w a b`.
fn add_products(sum: &mut [C64], a: &[C64], b: &[C64], w: f64) {
    wide(
        #[inline(always)]
        || {
            for ((s, a), b) in sum.iter_mut().zip(a).zip(b) {
                s.re += w * (a.re * b.re - a.im * b.im);
                s.im += w * (a.re * b.im + a.im * b.re);
            }
        },
    );
}

/// `sum += a b*`.
fn add_conjugate_products(sum: &mut [C64], a: &[C64], b: &[C64]) {
    wide(
        #[inline(always)]
        || {
            for ((s, a), b) in sum.iter_mut().zip(a).zip(b) {
                s.re += a.re * b.re + a.im * b.im;
                s.im += a.im * b.re - a.re * b.im;
            }
        },
    );
}

impl<T: Real> Engine<T> for Fft {
    fn expect(&self, model: &Parts<'_, T>, wanted: Wanted) -> Counts<T> {
        let double = |block: &[T]| -> Vec<f64> { block.iter().map(|x| x.to_f64()).collect() };
        let single = |block: Vec<f64>| -> Vec<T> { block.into_iter().map(T::lit).collect() };
        let (weights, kernels) = (double(model.weights), double(model.kernels));
        let impulses = double(model.impulses);
        let counts = self.expect_f64(
            &Parts {
                weights: &weights,
                kernels: &kernels,
                impulses: &impulses,
                window: model.window,
            },
            wanted,
        );
        Counts {
            kernels: single(counts.kernels),
            impulses: single(counts.impulses),
            measured: counts.measured,
        }
    }
}
