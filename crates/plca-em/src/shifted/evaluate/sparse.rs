//! The sums as they are written, over a list of cells: time and memory are proportional to the number of cells that are not 0, not to the shape, except where nearly all of the model is hidden: then all cells are summed.
//!
//! A cell takes part if it is positive or hidden. Where it is the observed cells that are listed, all others are hidden: then
//! the sums are those over the whole window, which are known in closed form, and what the listed cells differ by.

use plca_tensor::shift::{self, Folded, direct, outer_index};
use plca_tensor::{CompensatedSum, Data, DataError, Real, above_rounding};

use super::cells::scale_of;
use super::list::{Entry, Lines, entries};
use super::{Counts, Engine, Measured, Parts, Wanted};
use crate::shifted::window::Window;
use plca_tensor::parallel::for_each_part;

/// Parts that sums are cut into, at least.
const PARTS: usize = 8;

/// Plain loops over listed cells.
#[derive(Debug)]
pub(crate) struct Sparse<T> {
    folded: Folded,
    entries: Vec<Entry<T>>,
    /// Index of every entry along the shifted dimensions but the last.
    outer: Vec<usize>,
    /// The same of every row of a kernel.
    rows: Vec<usize>,
    /// Entries by channel, and by lane.
    lines: [Lines; 2],
    /// All cells that are not listed are hidden.
    others_hidden: bool,
    total: f64,
    scale: f64,
}

impl<T: Real> Sparse<T> {
    pub(crate) fn new(folded: &Folded, data: &dyn Data<T>) -> Result<Self, DataError> {
        let f = folded;
        let [size, kernel, ..] = f.inner();
        let scale = scale_of::<T, T>(data)?;
        let (entries, others_hidden) = entries(f, data, scale)?;
        Ok(Self {
            outer: (entries.iter())
                .flat_map(|e| outer_index(e.position / size, &f.size))
                .collect(),
            rows: (0..f.taps() / kernel)
                .flat_map(|row| outer_index(row, &f.kernel))
                .collect(),
            lines: [0, 1].map(|side| Lines::new(&entries, side, f.side(side).lines)),
            folded: folded.clone(),
            entries,
            others_hidden,
            total: data.total(),
            scale,
        })
    }

    /// Calls `f` with every row of a kernel that reaches an entry: the first of its taps, their number, and the place that meets
    /// the first tap; those of the others go down one by one.
    #[inline(always)]
    fn meet(&self, at: usize, mut f: impl FnMut(usize, usize, usize)) {
        let folded = &self.folded;
        let [size, kernel, impulse, o] = folded.inner();
        let dims = folded.size.len() - 1;
        let x = self.entries[at].position % size;
        let outer = &self.outer[at * dims..][..dims];
        // 0 <= x - t + o < m
        let (low, high) = ((x + o + 1).saturating_sub(impulse), (x + o + 1).min(kernel));
        for row in 0..folded.taps() / kernel {
            let t = &self.rows[row * dims..][..dims];
            // [SPEC 5.1] h = x - t + o
            let place = (0..dims).try_fold(0, |place, d| {
                let h = (outer[d] + folded.offset[d]).checked_sub(t[d])?;
                (h < folded.impulse[d]).then(|| place * folded.impulse[d] + h)
            });
            if let Some(place) = place {
                f(
                    row * kernel + low,
                    high - low,
                    place * impulse + x + o - low,
                );
            }
        }
    }

    /// Calls `f` with the weight of every component and the rows of its kernel and impulse that meet at an entry, the second backwards.
    #[inline(always)]
    fn terms(&self, at: usize, model: &Parts<'_, T>, mut f: impl FnMut(T, &[T], &[T])) {
        let folded = &self.folded;
        let (nt, nh) = (folded.taps(), folded.places());
        let [channel, lane] = self.entries[at].lines.map(|line| line as usize);
        self.meet(at, |tap, n, place| {
            for (z, &w) in model.weights.iter().enumerate() {
                let k = &model.kernels[(z * folded.channels + channel) * nt + tap..][..n];
                let h = &model.impulses[(z * folded.lanes + lane) * nh..];
                f(w, k, &h[place + 1 - n..=place]);
            }
        });
    }

    /// `P` of every entry.
    fn model(&self, model: &Parts<'_, T>) -> Vec<T> {
        let mut p = vec![T::zero(); self.entries.len()];
        const PART: usize = 256;
        for_each_part(&mut p, PART, |part, p| {
            for (at, p) in (part * PART..).zip(p) {
                self.terms(at, model, |w, k, h| {
                    let terms = k.iter().zip(h.iter().rev()).map(|(&k, &h)| k * h);
                    *p += w * terms.sum::<T>();
                });
            }
        });
        p
    }

    /// `Σ P` over the cells that are not listed as hidden, without a subtraction: channel by channel, so that the others need no memory.
    fn seen_directly(&self, model: &Parts<'_, T>) -> f64 {
        let (nt, mut one) = (self.folded.taps(), self.folded.clone());
        one.channels = 1;
        let mut hidden = self.entries.iter().filter(|e| e.value.is_nan()).peekable();
        let mut seen = CompensatedSum::default();
        for c in 0..self.folded.channels {
            let kernels = model.kernels.chunks_exact(self.folded.channels * nt);
            let kernels: Vec<T> = kernels.flat_map(|k| &k[c * nt..][..nt]).copied().collect();
            let p = direct::model(
                &one,
                &shift::Parts {
                    kernels: &kernels,
                    ..model.linear()
                },
            );
            for (at, p) in p.iter().enumerate() {
                let (lane, position) = (at / one.positions(), at % one.positions());
                let here = |e: &&Entry<T>| {
                    e.lines.map(|line| line as usize) == [c, lane] && e.position == position
                };
                if hidden.next_if(here).is_none() {
                    seen += p.to_f64();
                }
            }
        }
        seen.value()
    }

    /// Turns `P` of the entries into what their ratios are more than those of the cells that are not listed.
    fn ratios(&self, p: &mut [T], model: &Parts<'_, T>, wanted: Wanted) -> (Measured, T) {
        let ln_lik = wanted.ln_lik;
        let sum = |hidden: bool, p: &[T]| {
            let cells = self.entries.iter().zip(p);
            let of_kind = cells.filter(|(e, _)| e.value.is_nan() == hidden);
            let sum: CompensatedSum = of_kind.map(|(_, p)| p.to_f64()).collect();
            sum.value()
        };
        let seen = if self.others_hidden {
            sum(false, p)
        } else {
            let window = model.window_mass();
            let seen = window - sum(true, p);
            // Few digits are left of the difference where the model is nearly all hidden: no more than four bits are given away.
            if seen < window / 16.0 {
                self.seen_directly(model)
            } else {
                seen
            }
        };
        let s = match wanted.imputed {
            // [SPEC 4] s = v_obs / Σ_obs P
            true => T::lit(self.total * self.scale / seen),
            false => T::zero(),
        };
        let rest = if self.others_hidden { s } else { T::zero() };
        let (mut value, mut lost) = (CompensatedSum::default(), false);
        for (e, p) in self.entries.iter().zip(p) {
            let q = if e.value > T::zero() {
                lost |= *p < T::TINY;
                if ln_lik {
                    value += e.value.to_f64() * p.to_f64().ln();
                }
                e.value / *p
            } else if e.value.is_nan() {
                s
            } else {
                T::zero()
            };
            *p = q - rest;
        }
        let ln_lik = match (ln_lik, lost) {
            (false, _) => 0.0,
            (true, true) => f64::NEG_INFINITY,
            (true, false) => value.value() / self.scale,
        };
        (Measured { ln_lik, seen, lost }, rest)
    }

    /// `Σ_{d,x} Q[c,d,x] H[z,d,x-t+o]`, `[z][c][t]`, for kernels (side 0), `Σ_{c,t} K[z,c,t] Q[c,d,h+t-o]`, `[z][d][h]`, for impulses.
    fn sums<const SIDE: usize>(&self, model: &Parts<'_, T>, q: &[T]) -> Vec<T> {
        let (own, other) = (self.folded.side(SIDE), self.folded.side(1 - SIDE));
        let (k, n, lines) = (model.weights.len(), own.lines, &self.lines[SIDE]);
        let block = model.blocks()[1 - SIDE];
        // More sums than terms are not worth adding up.
        let terms = self.entries.len().saturating_mul(self.folded.taps());
        let groups = PARTS.div_ceil(k * n).min(1 + terms / (n * own.cells));
        let whole = k * n * own.cells;
        let mut all = vec![T::zero(); groups * whole];
        for_each_part(&mut all, own.cells, |part, sums| {
            let (group, z, line) = (part / (k * n), part / n % k, part % n);
            let list = &lines.entries[lines.bounds[line]..lines.bounds[line + 1]];
            let cut = |group: usize| list.len() * group / groups;
            for &at in &list[cut(group)..cut(group + 1)] {
                let at = at as usize;
                let across = self.entries[at].lines[1 - SIDE] as usize;
                let (block, q) = (&block[(z * other.lines + across) * other.cells..], q[at]);
                self.meet(at, |tap, n, place| {
                    let (taps, places) = (tap..tap + n, place + 1 - n..=place);
                    if SIDE == 0 {
                        let pairs = sums[taps].iter_mut().zip(block[places].iter().rev());
                        pairs.for_each(|(s, &h)| *s += q * h);
                    } else {
                        let pairs = sums[places].iter_mut().rev().zip(&block[taps]);
                        pairs.for_each(|(s, &k)| *s += q * k);
                    }
                });
            }
        });
        let (first, rest) = all.split_at_mut(whole);
        for group in rest.chunks_exact(whole) {
            first.iter_mut().zip(group).for_each(|(a, &b)| *a += b);
        }
        all.truncate(whole);
        all
    }
}

/// Adds `s` times what a cell has that every channel or lane shares.
fn add_whole<T: Real>(sums: &mut [T], shares: &[f64], components: usize, s: T) {
    let (per_sum, per_share) = (sums.len() / components, shares.len() / components);
    let blocks = sums.chunks_exact_mut(per_sum);
    for (sums, shares) in blocks.zip(shares.chunks_exact(per_share)) {
        for line in sums.chunks_exact_mut(per_share) {
            for (sum, &share) in line.iter_mut().zip(shares) {
                let whole = s * T::lit(share);
                *sum = above_rounding(*sum + whole, whole);
            }
        }
    }
}

impl<T: Real> Engine<T> for Sparse<T> {
    fn expect(&self, model: &Parts<'_, T>, wanted: Wanted) -> Counts<T> {
        let mut q = self.model(model);
        let (measured, rest) = self.ratios(&mut q, model, wanted);
        let k = model.weights.len();
        let own = (self.others_hidden && model.window.is_none())
            .then(|| Window::new(&self.folded, model.weights, model.kernels, model.impulses));
        let window = model.window.or(own.as_ref()).filter(|_| self.others_hidden);
        let sums = |side: usize| {
            let mut sums = match side {
                0 => self.sums::<0>(model, &q),
                _ => self.sums::<1>(model, &q),
            };
            if let Some(window) = window {
                add_whole(&mut sums, &window.shares[side], k, rest);
            }
            sums
        };
        Counts::assemble(model, wanted, self.scale, measured, sums)
    }
}
