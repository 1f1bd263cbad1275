//! Row problems of Poisson likelihoods, each solved on its own until its gap is small.
//!
//! ```math
//! f(w) = \sum_k s_k w_k - \sum_j v_j \ln p_j, \qquad p_j = \sum_k w_k U[j,k], \qquad
//! G_k = \sum_j \frac{v_j U[j,k]}{p_j}, \qquad
//! f(w) - \min f \le v \, \text{gap}, \qquad \text{gap} = \frac{\sum_k s_k w_k}{v} \max_k \frac{G_k}{s_k} - 1
//! ```
//!
//! An iteration is a pass over the coordinates ([`coordinate`](super::coordinate)). It is quick to find which of them matter, and slow where
//! components resemble each other. So later iterations begin with a step of Newton's method: the least value on `w >= 0` of the quadratic
//! model of `f`, and a search on the way there. Such a step costs about `K / 20` passes.
//!
//! What a row computes depends on its own cells alone: zeros are among them where most of the row is positive, however the rows beside it are.

use std::fmt;
use std::ops::Range;

use nalgebra::{DMatrix, DVector};
use pulp::{Simd, WithSimd};

use super::coordinate::{
    Entries, Full, Listed, Problem, descend, gather, least, multiply, rescale,
};
use super::log;
use super::panel::{Panel, pow2};
use crate::Real;

/// When a row is at its end.
///
/// ```
/// use plca_tensor::arrange::Until;
/// let until = Until { gap: Some(1e-6), change: None, patience: 1, both: false, iterations: 100 };
/// assert_eq!(until.gap, Some(1e-6));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Until {
    /// A gap that is small enough.
    pub gap: Option<f64>,
    /// A change of the objective in one iteration, divided by the row's sum, that is small enough; what rounding may do is not a change. Where a
    /// gap may end the row as well, it must have ceased to fall.
    pub change: Option<f64>,
    /// Iterations in a row with so small a change.
    pub patience: usize,
    /// Whether gap and change must be small at once, where there are limits for both.
    pub both: bool,
    /// Iterations at most.
    pub iterations: usize,
}

/// Why a row ended; of many rows the largest says how far they all came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    /// Its gap is small.
    #[default]
    Near,
    /// It changes little.
    Still,
    /// It made all iterations.
    Exhausted,
    /// It was told to end.
    Cut,
}

/// How a row ended.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct RowEnd {
    /// Its gap, 0 of a row without data.
    pub gap: f64,
    /// Its iterations.
    pub iterations: usize,
    /// Why it ended.
    pub ending: Ending,
    /// The row is in units of the data times 2 to this power: 0, unless it would leave the range of numbers.
    pub exponent: i32,
}

/// The problems of a group of rows.
pub struct SolveGroup<'a, T> {
    pub(crate) rows: Range<usize>,
    pub(crate) k: usize,
    pub(crate) entries: &'a Entries<'a, T>,
    /// How many cells a row has, and the indices in the other modes of each, where some row is more than half full.
    pub(crate) cells: usize,
    pub(crate) every: &'a [u32],
    /// The table `U` of full rows.
    pub(crate) table: &'a [T],
    pub(crate) panels: &'a [Panel<'a, T>],
    /// `s`: `K` numbers for every row, or for all rows together.
    pub(crate) linear: &'a [T],
    /// Of every row: its data are stored times this power of two.
    pub(crate) exponents: &'a [i32],
    /// `K` numbers for every row of the group: the start, then the result in units of the data.
    pub(crate) block: &'a mut [T],
    /// Room for four rows of values, and for a table.
    pub(crate) scratch: &'a mut [T],
    pub(crate) until: &'a Until,
    /// Whether to end after the iteration that every row makes at least.
    pub(crate) cut: &'a (dyn Fn() -> bool + Sync),
}

impl<T> fmt::Debug for SolveGroup<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut group = f.debug_struct("SolveGroup");
        group.field("rows", &self.rows).finish_non_exhaustive()
    }
}

/// The cells of a row.
#[derive(Default)]
struct Room<T> {
    indices: Vec<u32>,
    /// As they are read where they lie.
    read: Vec<u32>,
    held: Vec<T>,
}

impl<T: Real> WithSimd for SolveGroup<'_, T> {
    type Output = Vec<RowEnd>;

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) -> Vec<RowEnd> {
        let (k, lanes) = (self.k, T::lanes::<S>());
        let block = std::mem::take(&mut self.block);
        let scratch = std::mem::take(&mut self.scratch);
        let room = scratch.len() / (k + 4) / lanes * lanes;
        let (rows, own_table) = scratch.split_at_mut(4 * room);
        let (values, rest) = rows.split_at_mut(room);
        let (p, rest) = rest.split_at_mut(room);
        let (ratio, ahead) = rest.split_at_mut(room);
        let mut cells = Room::default();
        let mut ends = Vec::with_capacity(self.rows.len());
        for (i, w) in self.rows.clone().zip(block.chunks_mut(k.max(1))) {
            let (n, is_full) = self.cells_of(i, values, &mut cells);
            let stride = n.next_multiple_of(lanes);
            values[n..stride].fill(T::zero());
            let table = if is_full {
                self.table
            } else {
                let table = &mut own_table[..stride * k];
                gather(self.panels, &cells.indices, table, (n, stride, k));
                &*table
            };
            let row = self.problem(i, &values[..stride], w, &mut p[..stride]);
            let search = Search {
                table,
                rows: [row],
                ratio: &mut ratio[..stride],
                ahead: &mut ahead[..stride],
                slopes: vec![0.0; k],
            };
            ends.push(search.run(simd, self.until, self.cut));
        }
        ends
    }
}

impl<T: Real> SolveGroup<'_, T> {
    /// Copies the cells of row `i`, with the indices of each in the other modes unless they are all; returns how many there are, and whether
    /// they are all.
    #[inline(always)]
    fn cells_of(&self, i: usize, values: &mut [T], room: &mut Room<T>) -> (usize, bool) {
        let others = self.panels.len();
        let is_full = |positive: usize| 2 * positive > self.cells;
        let Room {
            indices,
            read,
            held,
        } = room;
        indices.clear();
        let mut n = 0;
        match self.entries {
            Entries::Full { stride, cells } => {
                match cells {
                    Full::Copied(all) => {
                        values[..*stride].copy_from_slice(&all[i * stride..][..*stride]);
                    }
                    Full::Lent { lender, scale, .. } => {
                        lender.copy(i..i + 1, &mut values[..*stride], *stride);
                        rescale(&mut values[..*stride], *scale, self.exponents[i]);
                    }
                }
                let positive = values[..self.cells].iter().filter(|v| **v > T::zero());
                if is_full(positive.count()) {
                    return (self.cells, true);
                }
                for at in 0..self.cells {
                    if values[at] > T::zero() {
                        values[n] = values[at];
                        n += 1;
                        indices.extend_from_slice(&self.every[at * others..][..others]);
                    }
                }
            }
            Entries::Listed { starts, cells } => {
                let own = starts[i]..starts[i + 1];
                n = own.len();
                let (all, listed) = match cells {
                    Listed::Copied { indices, values } => {
                        let all = &indices[own.start * others..own.end * others];
                        (all, &values[own])
                    }
                    Listed::Lent { lender, scale } => {
                        read.clear();
                        held.clear();
                        lender.lender().lend(i..i + 1, read, held);
                        rescale(held, *scale, self.exponents[i]);
                        (&read[..], &held[..])
                    }
                };
                let index = |at: usize| &all[at * others..][..others];
                if is_full(n) {
                    values[..self.cells].fill(T::zero());
                    for (at, &value) in listed.iter().enumerate() {
                        let place = index(at).iter().zip(self.panels);
                        let place = place.fold(0, |place, (&j, p)| place * p.rows + j as usize);
                        values[place] = value;
                    }
                    return (self.cells, true);
                }
                let mut order: Vec<usize> = (0..n).collect();
                // Tiles of a storage may lie in any order, which is not the row's own.
                order.sort_by_key(|&at| index(at));
                for (value, &at) in values.iter_mut().zip(&order) {
                    *value = listed[at];
                    indices.extend_from_slice(index(at));
                }
            }
        }
        (n, false)
    }

    /// What there is to solve for row `i`.
    #[inline(always)]
    fn problem<'a>(
        &'a self,
        i: usize,
        values: &'a [T],
        w: &'a mut [T],
        p: &'a mut [T],
    ) -> Problem<'a, T> {
        let linear = match self.linear.len() {
            shared if shared == self.k => self.linear,
            _ => &self.linear[i * self.k..][..self.k],
        };
        let goal: f64 = values.iter().map(|v| v.to_f64()).sum();
        let exponent = self.exponents[i];
        Problem {
            values,
            linear,
            pseudo: &[],
            exponent,
            total: goal,
            unit: 1.0,
            weight: exponent,
            up: pow2(exponent),
            lift: 1.0,
            goal,
            least: least(goal, linear),
            w,
            p,
            moved: T::zero(),
        }
    }
}

/// Iterations before the first of Newton's steps, which may then be as dear as these were.
fn patience(k: usize) -> usize {
    4 + k / 8
}

/// Entries whose part of the curvature is added up while they are in cache.
const CHUNK: usize = 256;
/// Bounds that the quadratic model's minimum may meet; the point where it stands then is good enough.
const BOUNDS: usize = 10;
/// Points that are tried on the way to that minimum, each half as far as the one before.
const TRIALS: usize = 6;

/// One row at work.
struct Search<'a, T> {
    table: &'a [T],
    rows: [Problem<'a, T>; 1],
    /// `v / p`.
    ratio: &'a mut [T],
    ahead: &'a mut [T],
    /// `G`.
    slopes: Vec<f64>,
}

/// What is known of a point: its gap, and `-f`.
#[derive(Clone, Copy)]
struct Point {
    gap: f64,
    value: f64,
}

impl<T: Real> Search<'_, T> {
    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S, until: &Until, cut: &(dyn Fn() -> bool + Sync)) -> RowEnd {
        let [row] = &mut self.rows;
        if row.goal <= 0.0 {
            // Nothing was seen where there was something to see.
            for (w, &s) in row.w.iter_mut().zip(row.linear) {
                *w = if s > T::zero() { T::zero() } else { *w };
            }
            return RowEnd::default();
        }
        if !row.stretch() {
            return RowEnd::default();
        }
        let (patience, k) = (patience(row.w.len()), row.w.len());
        let mut before = vec![T::zero(); k];
        let mut at = self.look(simd);
        let (mut iterations, mut small_changes) = (0, 0);
        let ending = loop {
            let is_near = until.gap.is_some_and(|gap| at.gap <= gap);
            let is_still = until.change.is_some() && small_changes >= until.patience;
            match (is_near, is_still) {
                (true, _) if !until.both || until.change.is_none() => break Ending::Near,
                (_, true) if !until.both || until.gap.is_none() || is_near => break Ending::Still,
                _ => {}
            }
            if iterations >= until.iterations {
                break Ending::Exhausted;
            }
            if iterations > 0 && cut() {
                break Ending::Cut;
            }
            before.copy_from_slice(self.rows[0].w);
            let rounding = 8.0 * T::EPSILON.to_f64() * (1.0 + at.value.abs());
            if iterations >= patience {
                self.newton(simd, at.value - rounding);
            }
            let row = &mut self.rows[0];
            row.moved = T::zero();
            descend(simd, self.table, &mut self.rows, [true], 1);
            let next = self.settle(simd);
            let next = match next.value >= at.value - rounding {
                true => next,
                // Steps along coordinates may go too far; those of EM do not.
                false => self.em(simd, &before),
            };
            iterations += 1;
            let change = (next.value - at.value).abs() - rounding;
            let limit = until.change.map(|change| change * self.rows[0].goal);
            // Passes may be slow where Newton's steps are not.
            let is_small = iterations > patience && limit.is_some_and(|limit| change <= limit);
            // Near the optimum a gap is about the root of what is left of the objective: it falls when that no longer changes.
            let is_small = is_small && (until.gap.is_none() || until.both || next.gap >= at.gap);
            small_changes = if is_small { small_changes + 1 } else { 0 };
            at = next;
        };
        let row = &mut self.rows[0];
        let back = |w: T| T::lit(w.to_f64() * pow2::<f64>(-row.exponent));
        let is_held = row.w.iter().all(|&w| back(w).is_finite());
        if is_held {
            row.w.iter_mut().for_each(|w| *w = back(*w));
        }
        let gap = at.gap;
        RowEnd {
            gap,
            iterations,
            ending,
            exponent: if is_held { 0 } else { row.exponent },
        }
    }

    /// Brings the row to its best scale, and looks at where it is.
    #[inline(always)]
    fn settle<S: Simd>(&mut self, simd: S) -> Point {
        self.rows[0].stretch();
        self.look(simd)
    }

    /// Computes `p`, `v / p` and `G` of the row as it is.
    #[inline(always)]
    fn look<S: Simd>(&mut self, simd: S) -> Point {
        multiply(simd, self.table, &mut self.rows);
        let row = &mut self.rows[0];
        row.bound();
        let ratio = T::vectors_mut::<S>(self.ratio).0.iter_mut();
        let (v, p) = (T::vectors::<S>(row.values).0, T::vectors::<S>(row.p).0);
        for (ratio, (&v, &p)) in ratio.zip(v.iter().zip(p)) {
            *ratio = T::vdiv(simd, v, p);
        }
        let all: Vec<usize> = (0..row.w.len()).collect();
        let slopes = &mut self.slopes;
        let table = (self.table, row.p.len());
        products(simd, table, (self.ratio, 0), &all, |z, sum| slopes[z] = sum);
        let (mut mass, mut largest) = (0.0, 0.0f64);
        let terms = row.w.iter().zip(row.linear).zip(&self.slopes);
        for ((w, s), g) in terms.filter(|((_, s), _)| **s > T::zero()) {
            mass += w.to_f64() * s.to_f64();
            // [SPEC 1.5] the multipliers, 1 where a coordinate is positive at the optimum
            largest = largest.max(g / s.to_f64());
        }
        Point {
            gap: (largest * mass / row.goal - 1.0).max(0.0),
            value: log::ln_lik(row.values, row.p, |_, p| p) - mass,
        }
    }

    /// A step of EM from these coordinates.
    #[inline(always)]
    fn em<S: Simd>(&mut self, simd: S, before: &[T]) -> Point {
        self.rows[0].w.copy_from_slice(before);
        self.look(simd);
        let row = &mut self.rows[0];
        let terms = row.w.iter_mut().zip(row.linear).zip(&self.slopes);
        for ((w, s), g) in terms.filter(|((_, s), _)| **s > T::zero()) {
            *w = T::lit(w.to_f64() * g / s.to_f64());
        }
        self.settle(simd)
    }

    /// One of Newton's steps, if it leads to a point of more than this value.
    #[inline(always)]
    fn newton<S: Simd>(&mut self, simd: S, value: f64) {
        let row = &self.rows[0];
        // What passes have left at its bound is not in question.
        let share = |z: usize| row.w[z].to_f64() * row.linear[z].to_f64();
        let free = (0..row.w.len()).filter(|&z| row.moves(z) && share(z) > 4.0 * row.least);
        let free: Vec<usize> = free.collect();
        let weights = T::vectors_mut::<S>(self.ahead).0.iter_mut();
        let (ratio, p) = (T::vectors::<S>(self.ratio).0, T::vectors::<S>(row.p).0);
        for (weight, (&ratio, &p)) in weights.zip(ratio.iter().zip(p)) {
            // [SPEC 10.1] the curvature of -v ln p is v / p²
            *weight = T::vdiv(simd, ratio, p);
        }
        let table = (self.table, row.p.len());
        let mut h = curvature(simd, table, self.ahead, &free);
        // In shares s w, whose slopes at the optimum are 1.
        let s = |a: usize| row.linear[free[a]].to_f64();
        let ridge = 1.0 + 8.0 * free.len() as f64 * T::EPSILON.to_f64();
        for b in 0..free.len() {
            for a in b..free.len() {
                h[(a, b)] /= s(a) * s(b);
            }
            h[(b, b)] *= ridge;
        }
        // H x = G where x is the row itself: the model's slope there is that of f.
        let slopes = free.iter().enumerate();
        let slopes = slopes.map(|(a, &z)| 2.0 * self.slopes[z] / s(a) - 1.0);
        let slopes = DVector::from_iterator(free.len(), slopes);
        let start = DVector::from_iterator(free.len(), free.iter().map(|&z| share(z)));
        let Some(target) = least_on_orthant(&h, &slopes, start) else {
            return;
        };
        let from: Vec<T> = row.w.to_vec();
        let row = &mut self.rows[0];
        for (a, &z) in free.iter().enumerate() {
            let share = target[a] / row.linear[z].to_f64();
            row.w[z] = T::lit(share.max(row.floor()));
        }
        let to: Vec<T> = row.w.to_vec();
        std::mem::swap(&mut self.rows[0].p, &mut self.ahead);
        multiply(simd, self.table, &mut self.rows);
        std::mem::swap(&mut self.rows[0].p, &mut self.ahead);
        let mut part = 1.0;
        for _ in 0..TRIALS {
            let row = &mut self.rows[0];
            for (w, (&from, &to)) in row.w.iter_mut().zip(from.iter().zip(&to)) {
                *w = T::lit(from.to_f64() + part * (to.to_f64() - from.to_f64()));
            }
            let by = T::vsplat(simd, T::lit(part));
            let back = T::vsplat(simd, T::lit(1.0 - part));
            let trial = T::vectors_mut::<S>(self.ratio).0.iter_mut();
            let (p, ahead) = (T::vectors::<S>(row.p).0, T::vectors::<S>(self.ahead).0);
            for (trial, (&p, &ahead)) in trial.zip(p.iter().zip(ahead)) {
                *trial = T::vmul_add(simd, by, ahead, T::vmul(simd, back, p));
            }
            let terms = row.w.iter().zip(row.linear);
            let mass: f64 = terms.map(|(w, s)| w.to_f64() * s.to_f64()).sum();
            if log::ln_lik(row.values, self.ratio, |_, p| p) - mass > value {
                row.p.copy_from_slice(self.ratio);
                row.bound();
                return;
            }
            part /= 2.0;
        }
        self.rows[0].w.copy_from_slice(&from);
    }
}

/// The least value of `x' H x / 2 - b' x` over `x >= 0` on the way from `x`, of `H` the lower half; `None` where `H` is singular.
fn least_on_orthant(
    h: &DMatrix<f64>,
    b: &DVector<f64>,
    mut x: DVector<f64>,
) -> Option<DVector<f64>> {
    let mut free: Vec<usize> = (0..x.len()).collect();
    for _ in 0..BOUNDS {
        let part = DMatrix::from_fn(free.len(), free.len(), |i, j| h[(free[i], free[j])]);
        let target = part.cholesky()?.solve(&b.select_rows(&free));
        let negative = |(to, _): &(&f64, &usize)| **to <= 0.0;
        let pairs = target.iter().zip(&free);
        let meets = pairs.clone().filter(negative);
        let part = meets.map(|(to, &z)| x[z] / (x[z] - to)).fold(1.0, f64::min);
        let mut left = Vec::with_capacity(free.len());
        for (&to, &z) in pairs {
            let met = to <= 0.0 && x[z] / (x[z] - to) <= part;
            x[z] = if met { 0.0 } else { x[z] + part * (to - x[z]) };
            if !met {
                left.push(z);
            }
        }
        if left.len() == free.len() || left.is_empty() {
            break;
        }
        free = left;
    }
    Some(x)
}

/// `Σ_j x_j U[j,z]` of coordinates `z`, each with its place among them, over as many entries from `first` on as `x` has.
#[inline(always)]
fn products<T: Real, S: Simd>(
    simd: S,
    (table, stride): (&[T], usize),
    (x, first): (&[T], usize),
    coordinates: &[usize],
    mut each: impl FnMut(usize, f64),
) {
    /// Sums that do not wait for each other.
    const SUMS: usize = 4;
    let column = |z: usize| T::vectors::<S>(&table[z * stride + first..][..x.len()]).0;
    let x = T::vectors::<S>(x).0;
    for (at, some) in coordinates.chunks(SUMS).enumerate() {
        let columns: [_; SUMS] =
            std::array::from_fn(|c| &column(some[c.min(some.len() - 1)])[..x.len()]);
        let mut sums = [T::vsplat(simd, T::zero()); SUMS];
        for (j, &x) in x.iter().enumerate() {
            for (sum, column) in sums.iter_mut().zip(&columns) {
                *sum = T::vmul_add(simd, x, column[j], *sum);
            }
        }
        for (c, &sum) in sums.iter().enumerate().take(some.len()) {
            each(SUMS * at + c, T::vsum(simd, sum).to_f64());
        }
    }
}

/// `Σ_j x_j U[j,a] U[j,b]` of coordinates `a`, `b`: the lower half.
#[inline(always)]
fn curvature<T: Real, S: Simd>(
    simd: S,
    (table, stride): (&[T], usize),
    x: &[T],
    coordinates: &[usize],
) -> DMatrix<f64> {
    let mut h = DMatrix::zeros(coordinates.len(), coordinates.len());
    let mut scaled = [T::zero(); CHUNK];
    for (part, x) in x.chunks(CHUNK).enumerate() {
        let first = part * CHUNK;
        for (a, &z) in coordinates.iter().enumerate() {
            let column = &table[z * stride + first..][..x.len()];
            let scaled = &mut scaled[..x.len()];
            let to = T::vectors_mut::<S>(scaled).0.iter_mut();
            let (x, u) = (T::vectors::<S>(x).0, T::vectors::<S>(column).0);
            for (to, (&x, &u)) in to.zip(x.iter().zip(u)) {
                *to = T::vmul(simd, x, u);
            }
            let before = &coordinates[..=a];
            products(simd, (table, stride), (scaled, first), before, |b, sum| {
                h[(a, b)] += sum;
            });
        }
    }
    h
}
