//! Convolutions along the last one or two shifted dimensions by Fourier transforms, the others as they are written.
//!
//! Sums over components, channels and lanes are taken in the frequency domain, so that every result costs one inverse
//! transform. A transform's error is about `ε log2 L |K| |H|` whatever the size of the result, hence the guards of
//! `[SPEC 5.6]`: small values of `P` are recomputed by direct sums, correlations are clamped at 0, and the counts are products with
//! the old parameters, whose exact zeros stay. Always in double precision.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use super::products::{Products, Spectra};
use super::spectrum::{Plan, Window, fast_length};
use super::{Folded, Parts, advance, direct};
use crate::parallel::{both, for_each_part};

/// Where taps and places meet positions along the untransformed dimensions: `[t, h]` of every position, `[x, h]` of every tap and
/// `[x, t]` of every place.
#[derive(Debug)]
struct Meetings {
    of_position: Vec<Vec<[usize; 2]>>,
    of_side: [Vec<Vec<[usize; 2]>>; 2],
}

/// Shifted models by transforms.
pub struct Transforms {
    pub(super) folded: Folded,
    pub(super) plan: Plan,
    /// Boxes of kernels, impulses and data within the transformed area, and their numbers of values.
    boxes: [(Window, usize); 3],
    meetings: Meetings,
    buffers: Mutex<Option<Buffers>>,
}

/// What one E-step computes, kept for the next.
#[derive(Debug, Default)]
pub struct Buffers {
    /// Spectra of kernels and impulses.
    blocks: [Vec<f64>; 2],
    /// Spectra of the ratios; empty where they are not to be trusted.
    ratios: Vec<f64>,
    /// `P` over the window, `[c][d][x]`, which becomes the ratios.
    pub p: Vec<f64>,
}

impl fmt::Debug for Transforms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transforms")
            .field("folded", &self.folded)
            .finish_non_exhaustive()
    }
}

/// Lengths that avoid wrap-around in the window, `(rows, columns)`, and the number of untransformed dimensions.
pub(super) fn lengths(f: &Folded, transformed: usize) -> ([usize; 2], usize) {
    let first = f.size.len().saturating_sub(transformed);
    let length = |d: usize, even: bool| {
        let [i, k, m, o] = [f.size[d], f.kernel[d], f.impulse[d], f.offset[d]];
        // [SPEC 5.6] what wraps around stays below o, where no data are; nothing does of what is inside
        let beyond = if f.inside { 0 } else { k + m - 1 - o };
        fast_length(beyond.max(o + i).max(k).max(m), even)
    };
    let last = f.size.len() - 1;
    let rows = if first < last {
        length(last - 1, false)
    } else {
        1
    };
    ([rows, length(last, true)], first)
}

impl Transforms {
    /// Along the last `transformed` shifted dimensions, one or two.
    pub fn new(folded: &Folded, transformed: usize) -> Self {
        let f = folded;
        let ([rows, columns], first) = lengths(f, transformed);
        let last = f.size.len() - 1;
        let boxed = |shape: &[usize], origin: [usize; 2]| {
            let place = Window {
                first_row: origin[0],
                first_column: origin[1],
                width: shape[last],
            };
            (place, shape[first..].iter().product())
        };
        let row_offset = if first < last { f.offset[last - 1] } else { 0 };
        Self {
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

    /// Buffers, for [`give`](Self::give) to take back.
    pub fn take(&self) -> Buffers {
        let mut kept = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        kept.take().unwrap_or_default()
    }

    /// Keeps buffers for the next step.
    pub fn give(&self, buffers: Buffers) {
        let mut kept = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = Some(buffers);
    }

    /// `P` over the window, `b.p`; accurate relative to itself in the cells whose value is `guarded`, of which there are `many`, and not negative in the others.
    pub fn model(
        &self,
        model: &Parts<'_, f64>,
        values: &[f64],
        guarded: impl Fn(f64) -> bool + Copy + Sync,
        many: usize,
        b: &mut Buffers,
    ) {
        let [kernels, impulses] = &mut b.blocks;
        both(
            || self.spectra(model.kernels, 0, kernels),
            || self.spectra(model.impulses, 1, impulses),
        );
        self.convolve(model, b);
        self.guard(model, &mut b.p, values, guarded, many);
    }

    /// Transforms the ratios in `b.p`, unless their sums would be off by more than is allowed relative to `mass`.
    pub fn prepare(&self, model: &Parts<'_, f64>, mass: f64, b: &mut Buffers) {
        if self.sums_are_sound(model, &b.p, mass) {
            self.spectra(&b.p, 2, &mut b.ratios);
        } else {
            b.ratios.clear();
        }
    }

    /// Correlations of the ratios with the impulses for kernels (side 0), `[z][c][t]`, with the kernels for impulses, `[z][d][h]`. Where no ratio is negative,
    /// `signed` is false, none is less than its rounding: an entry that is multiplied by it may be all that a datum has.
    pub fn sums(&self, model: &Parts<'_, f64>, b: &Buffers, side: usize, signed: bool) -> Vec<f64> {
        match b.ratios.is_empty() {
            false => self.transformed(model, b, side, signed),
            true => direct::sums(&self.folded, model, &b.p, side),
        }
    }

    /// Numbers of untransformed taps, places and positions.
    fn outer(&self) -> [usize; 3] {
        let f = &self.folded;
        let [k, h, x] = self.boxes.map(|b| b.1);
        [f.taps() / k, f.places() / h, f.positions() / x]
    }

    /// Spectra of all boxes of `values`.
    fn spectra(&self, values: &[f64], which: usize, out: &mut Vec<f64>) {
        let (place, cells) = self.boxes[which];
        out.resize(values.len() / cells * 2 * self.plan.len(), 0.0);
        self.plan.forward(values, cells, place, out);
    }

    fn of<'a>(&self, numbers: &'a [f64]) -> Spectra<'a> {
        let len = self.plan.len();
        Spectra { numbers, len }
    }

    /// `P` over the window from the spectra of kernels and impulses.
    pub(super) fn convolve(&self, model: &Parts<'_, f64>, b: &mut Buffers) {
        let f = &self.folded;
        let [nt, nh, nx] = self.outer();
        let scale = 1.0 / self.plan.cells() as f64;
        let (place, cells) = self.boxes[2];
        b.p.resize(f.channels * f.lanes * f.positions(), 0.0);
        let sum = |at: usize, first: usize, re: &mut [f64], im: &mut [f64]| {
            let (c, d) = (at / nx / f.lanes, at / nx % f.lanes);
            let firsts = |z: usize| [(z * f.channels + c) * nt, (z * f.lanes + d) * nh];
            let weights = model.weights.iter().enumerate();
            // [SI eq. 6] [SI eq. 11] [SPEC 5.1] [SPEC 5.6] P = Σ_z P(z) K * H
            let products = Products {
                a: self.of(&b.blocks[0]),
                b: self.of(&b.blocks[1]),
                groups: weights.map(|(z, w)| (w * scale, firsts(z))),
                terms: &self.meetings.of_position[at % nx],
            };
            products.sum::<false>(first, re, im);
        };
        self.plan.inverse(sum, cells, place, &mut b.p);
    }

    pub(super) fn transformed(
        &self,
        model: &Parts<'_, f64>,
        b: &Buffers,
        side: usize,
        signed: bool,
    ) -> Vec<f64> {
        let (f, components) = (&self.folded, model.weights.len());
        let (own, other, outer) = (f.side(side), f.side(1 - side), self.outer());
        let (place, cells) = self.boxes[side];
        let mut out = vec![0.0; components * own.lines * own.cells];
        let sum = |at: usize, first: usize, re: &mut [f64], im: &mut [f64]| {
            let (line, at) = (at / outer[side], at % outer[side]);
            let (z, line) = (line / own.lines, line % own.lines);
            let groups = (0..other.lines).map(|across| {
                let plane = f.plane(side, line, across) * outer[2];
                (1.0, [plane, (z * other.lines + across) * outer[1 - side]])
            });
            // [SI eq. 9] [SI eq. 14] [SPEC 5.1] [SPEC 5.6] Σ_x Q[x] H[z, x - t + o]
            // [SI eq. 10] [SI eq. 15] [SPEC 5.1] [SPEC 5.6] Σ_t K[z,t] Q[h + t - o]
            let products = Products {
                a: self.of(&b.ratios),
                b: self.of(&b.blocks[1 - side]),
                groups,
                terms: &self.meetings.of_side[side][at],
            };
            products.sum::<true>(first, re, im);
        };
        self.plan.inverse(sum, cells, place, &mut out);
        let scale = 1.0 / self.plan.cells() as f64;
        let least = match signed {
            true => vec![f64::NEG_INFINITY; components],
            false => self.rounding_of_sums(model, &b.p, side),
        };
        for_each_part(&mut out, own.cells, |line, sums| {
            let least = least[line / own.lines];
            sums.iter_mut().for_each(|s| *s = (*s * scale).max(least));
        });
        out
    }
}

/// All taps `t`, places `h` and positions `x` of the untransformed dimensions with `x = h + t - o`.
fn meetings(f: &Folded, outer: usize) -> Meetings {
    let [kernel, impulse, size] = [&f.kernel, &f.impulse, &f.size].map(|s| &s[..outer]);
    let none = |extents: &[usize]| vec![Vec::new(); extents.iter().product()];
    let mut all = Meetings {
        of_position: none(size),
        of_side: [none(kernel), none(impulse)],
    };
    let (mut x, mut row) = (vec![0; outer], 0);
    loop {
        let (mut t, mut tap) = (vec![0; outer], 0);
        loop {
            let place = (0..outer).try_fold(0, |place, d| {
                let h = (x[d] + f.offset[d]).checked_sub(t[d])?;
                (h < impulse[d]).then(|| place * impulse[d] + h)
            });
            if let Some(place) = place {
                all.of_position[row].push([tap, place]);
                all.of_side[0][tap].push([row, place]);
                all.of_side[1][place].push([row, tap]);
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
