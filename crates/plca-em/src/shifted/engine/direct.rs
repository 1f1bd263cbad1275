//! The sums as they are written, over dense cells.

use plca_tensor::{CompensatedSum, Mask, Observed, Real};

use super::{Counts, Engine, Parts, Wanted};
use crate::shifted::geometry::{Folded, advance};
use crate::shifted::parallel::for_each_part;

/// Dense cells `[c][d][x]`; a hidden cell holds NaN.
#[derive(Debug)]
pub(crate) struct Cells<T> {
    pub(crate) values: Vec<T>,
    pub(crate) any_hidden: bool,
    /// Sum of the observed values as given.
    pub(crate) total: f64,
    /// Values are those given times this power of two.
    pub(crate) scale: f64,
}

impl<T: Real> Cells<T> {
    pub(crate) fn new<X: Observed<U> + ?Sized, U: Real>(folded: &Folded, data: &X) -> Self {
        let mut largest: f64 = 0.0;
        data.for_each(&mut |_, value| largest = largest.max(value));
        // [SPEC 0] subnormal or huge data must neither underflow nor overflow
        let limit = f64::from(T::MAX_EXPONENT);
        let scale = 2f64.powf(-largest.log2().floor().clamp(-limit, limit));
        let values = Self::arrange(folded, data, scale, |at| at);
        Self {
            any_hidden: values.iter().any(|v: &T| v.is_nan()),
            values,
            total: data.total(),
            scale,
        }
    }

    /// Values times `scale`, with NaN where hidden; `place` turns a position in `[c][d][x]` into one in the result.
    pub(crate) fn arrange<X: Observed<U> + ?Sized, U: Real>(
        folded: &Folded,
        data: &X,
        scale: f64,
        place: impl Fn(usize) -> usize,
    ) -> Vec<T> {
        let positions = folded.positions();
        let at = |index: &[usize]| {
            let [c, d, x] = folded.cell(index);
            place((c * folded.lanes + d) * positions + x)
        };
        let mut values = vec![T::zero(); folded.channels * folded.lanes * positions];
        if !data.is_complete() {
            let mut listed = vec![false; values.len()];
            let which = data.visit_mask(&mut |index| listed[at(index)] = true);
            for (value, listed) in values.iter_mut().zip(listed) {
                if listed == (which == Mask::Hidden) {
                    *value = T::lit(f64::NAN);
                }
            }
        }
        data.for_each(&mut |index, value| values[at(index)] = T::lit(value * scale));
        values
    }

    /// Turns `P` into `Q` in the scale of the stored values; returns `Σ V ln P`, `Σ_obs P` and whether a positive cell
    /// has `P = 0`.
    pub(crate) fn ratios(&self, p: &mut [T], ln_lik: bool, window_mass: f64) -> (f64, f64, bool) {
        let (mut sum, mut lost) = (CompensatedSum::default(), false);
        let mut seen = window_mass;
        if self.any_hidden {
            let observed = self
                .values
                .iter()
                .zip(p.iter())
                .filter(|(v, _)| !v.is_nan());
            seen = observed
                .map(|(_, p)| p.to_f64())
                .collect::<CompensatedSum>()
                .value();
        }
        // [SPEC 4] s = v_obs / Σ_obs P
        let s = T::lit(self.total * self.scale / seen);
        for (&v, p) in self.values.iter().zip(p) {
            *p = if v > T::zero() {
                lost |= *p < T::TINY;
                if ln_lik {
                    sum += v.to_f64() * p.to_f64().ln();
                }
                v / *p
            } else if v.is_nan() {
                s
            } else {
                T::zero()
            };
        }
        let value = if lost {
            f64::NEG_INFINITY
        } else {
            sum.value() / self.scale
        };
        (if ln_lik { value } else { 0.0 }, seen, lost)
    }
}

/// Plain loops with a contiguous inner axis.
#[derive(Debug)]
pub(crate) struct Direct<T> {
    folded: Folded,
    cells: Cells<T>,
}

/// Calls `f(row_a, row_b)` for all rows of a box `shape_a` whose partner is a row of the box `shape_b`, a row being the cells
/// along the last dimension. `partner(d, fixed_d, a_d)` is the partner's index along dimension `d`, if there is one.
pub(crate) fn meet(
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
fn convolve<T: Real>(out: &mut [T], a: &[T], b: &[T], o: usize, w: T) {
    for (t, &a) in a.iter().enumerate().filter(|(_, a)| **a != T::zero()) {
        // 0 <= x - t + o < b.len()
        let (low, high) = (
            t.saturating_sub(o),
            out.len().min((b.len() + t).saturating_sub(o)),
        );
        if low < high {
            let b = &b[low + o - t..high + o - t];
            let a = w * a;
            out[low..high]
                .iter_mut()
                .zip(b)
                .for_each(|(out, &b)| *out += a * b);
        }
    }
}

/// `out[i] += Σ_j a[j] q[i + j - o]`, terms with an index outside `q` being 0.
#[inline(always)]
fn correlate<T: Real>(out: &mut [T], a: &[T], q: &[T], o: usize) {
    if out.len() >= a.len() {
        for (j, &a) in a.iter().enumerate().filter(|(_, a)| **a != T::zero()) {
            let (low, high) = (
                o.saturating_sub(j),
                out.len().min((q.len() + o).saturating_sub(j)),
            );
            if low < high {
                let q = &q[low + j - o..high + j - o];
                out[low..high]
                    .iter_mut()
                    .zip(q)
                    .for_each(|(out, &q)| *out += a * q);
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
pub(crate) fn outer_index(mut row: usize, shape: &[usize]) -> Vec<usize> {
    let mut index = vec![0; shape.len() - 1];
    for (i, &n) in index.iter_mut().zip(shape).rev() {
        *i = row % n;
        row /= n;
    }
    index
}

impl<T: Real> Direct<T> {
    pub(crate) fn new<X: Observed<T> + ?Sized>(folded: &Folded, data: &X) -> Self {
        Self {
            folded: folded.clone(),
            cells: Cells::new(folded, data),
        }
    }

    /// `P` over the window, `[c][d][x]`.
    pub(crate) fn model(folded: &Folded, model: &Parts<'_, T>) -> Vec<T> {
        let f = folded;
        let [size, kernel, impulse, o] = f.inner();
        let (nt, nh) = (f.taps(), f.places());
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

    /// `Σ_{d,x} Q[c,d,x] H[z,d,x-t+o]`, `[z][c][t]`.
    fn kernel_sums(&self, model: &Parts<'_, T>, q: &[T]) -> Vec<T> {
        let f = &self.folded;
        let [size, kernel, impulse, o] = f.inner();
        let (nt, nh, nx) = (f.taps(), f.places(), f.positions());
        let mut sums = vec![T::zero(); model.kernels.len()];
        for_each_part(&mut sums, kernel, |row, out| {
            let rows = nt / kernel;
            let (z, c) = (row / rows / f.channels, row / rows % f.channels);
            let t = outer_index(row % rows, &f.kernel);
            for d in 0..f.lanes {
                let h = &model.impulses[(z * f.lanes + d) * nh..][..nh];
                let q = &q[(c * f.lanes + d) * nx..][..nx];
                let partner = |d: usize, t: usize, h: usize| (t + h).checked_sub(f.offset[d]);
                meet(&t, &f.impulse, &f.size, partner, |at, x| {
                    correlate(
                        out,
                        &h[at * impulse..][..impulse],
                        &q[x * size..][..size],
                        o,
                    );
                });
            }
        });
        sums
    }

    /// `Σ_{c,t} K[z,c,t] Q[c,d,h+t-o]`, `[z][d][h]`.
    fn impulse_sums(&self, model: &Parts<'_, T>, q: &[T]) -> Vec<T> {
        let f = &self.folded;
        let [size, kernel, impulse, o] = f.inner();
        let (nt, nh, nx) = (f.taps(), f.places(), f.positions());
        let mut sums = vec![T::zero(); model.impulses.len()];
        for_each_part(&mut sums, impulse, |row, out| {
            let rows = nh / impulse;
            let (z, d) = (row / rows / f.lanes, row / rows % f.lanes);
            let h = outer_index(row % rows, &f.impulse);
            for c in 0..f.channels {
                let k = &model.kernels[(z * f.channels + c) * nt..][..nt];
                let q = &q[(c * f.lanes + d) * nx..][..nx];
                let partner = |d: usize, h: usize, t: usize| (t + h).checked_sub(f.offset[d]);
                meet(&h, &f.kernel, &f.size, partner, |t, x| {
                    correlate(out, &k[t * kernel..][..kernel], &q[x * size..][..size], o);
                });
            }
        });
        sums
    }
}

/// `P` at one cell, as the model is written.
pub(crate) fn cell<T: Real>(f: &Folded, model: &Parts<'_, T>, [c, d, x]: [usize; 3]) -> T {
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
            p += w * k
                .iter()
                .zip(h.iter().rev())
                .map(|(&k, &h)| k * h)
                .sum::<T>();
        });
    }
    p
}

/// `sums <- P(z) θ sums / scale`: from multipliers to counts.
pub(crate) fn to_counts<T: Real>(sums: &mut [T], block: &[T], weights: &[T], scale: f64) {
    let cells = block.len() / weights.len();
    let blocks = block.chunks_exact(cells).zip(weights);
    for (sums, (block, &w)) in sums.chunks_exact_mut(cells).zip(blocks) {
        let w = w / T::lit(scale);
        // [SPEC 5.1]
        sums.iter_mut().zip(block).for_each(|(s, &b)| *s *= w * b);
    }
}

impl<T: Real> Engine<T> for Direct<T> {
    fn expect(&self, model: &Parts<'_, T>, wanted: Wanted) -> Counts<T> {
        let mut q = Self::model(&self.folded, model);
        let window_mass = model.window.map_or(1.0, |w| w.mass);
        let (ln_lik, seen, lost) = self.cells.ratios(&mut q, wanted.ln_lik, window_mass);
        let (mut kernels, mut impulses) = (Vec::new(), Vec::new());
        if wanted.kernels {
            kernels = self.kernel_sums(model, &q);
            to_counts(&mut kernels, model.kernels, model.weights, self.cells.scale);
        }
        if wanted.impulses {
            impulses = self.impulse_sums(model, &q);
            to_counts(
                &mut impulses,
                model.impulses,
                model.weights,
                self.cells.scale,
            );
        }
        Counts {
            kernels,
            impulses,
            ln_lik,
            seen,
            lost,
        }
    }
}
