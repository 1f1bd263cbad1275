//! Row problems of Poisson likelihoods, one coordinate at a time.
//!
//! ```math
//! \text{minimise over } w \ge 0 \text{:}
//! \quad \sum_k s_k w_k - \sum_j v_j \ln p_j - \sum_k c_k \ln w_k,
//! \qquad p_j = \sum_k w_k U[j,k]
//! ```
//!
//! With the other coordinates fixed the optimum of one is where `G(w_k) = s_k`,
//!
//! ```math
//! \begin{aligned}
//! G &= \sum_j v_j q_j + \frac{c_k}{w_k},
//!   \qquad q_j = \frac{U[j,k]}{p_j} \\
//! -G' = h &= \sum_j v_j q_j^2 + \frac{c_k}{w_k^2}
//! \end{aligned}
//! ```
//!
//! `G` is a sum of terms `a / (b + w)` with `b >= 0`, so `1/G` is concave in `w` and nearly linear: a Newton step on `1/G = 1/s` is
//! exact for a single term, never passes the optimum from below, and is not below it by more than `G/h` from above. The usual step,
//! Newton on `G = s`, differs by a factor `G/s`: from above it may fall to 0 at once, from where it only doubles at every step.

use std::fmt::Debug;
use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::dense_rows::DenseRows;
use super::log;
use super::panel::{Panel, pow2, unit_exponent};
use crate::Real;
use crate::sum::CompensatedSum;

/// A storage whose rows, of one mode, can be read where they lie.
pub(crate) trait Lender<T>: Debug + Sync {
    /// Appends the cells of these rows that are not 0, row after row, each with its indices in the other modes, in the order in which the
    /// storage visits them. Values as they are held.
    fn lend(&self, rows: Range<usize>, indices: &mut Vec<u32>, values: &mut Vec<T>);
}

/// The data of the rows of a mode.
#[derive(Debug)]
pub(crate) enum Entries<'a, T> {
    /// All cells: `stride` values for every row, zeros where there is nothing.
    Full { stride: usize, cells: Full<'a, T> },
    /// The positive cells: row `i` has the entries `starts[i]..starts[i + 1]`, each with its indices in the other modes.
    Listed {
        starts: Vec<usize>,
        cells: Listed<'a, T>,
    },
}

/// All cells of rows.
#[derive(Debug)]
pub(crate) enum Full<'a, T> {
    Copied(Vec<T>),
    /// To be read from data that hold values times `scale`, this number of rows at a time.
    Lent {
        lender: Lent<'a, T>,
        scale: f64,
        together: usize,
    },
}

/// Listed cells of rows.
#[derive(Debug)]
pub(crate) enum Listed<'a, T> {
    Copied {
        indices: Vec<u32>,
        values: Vec<T>,
    },
    /// To be read from data that hold values times `scale`.
    Lent {
        lender: Lent<'a, T>,
        scale: f64,
    },
}

/// Where rows are read.
#[derive(Debug)]
pub(crate) enum Lent<'a, T> {
    Dense(DenseRows<'a, T>),
    /// Of a matrix.
    Sparse(&'a dyn Lender<T>),
}

impl<T: Real> Lent<'_, T> {
    pub(super) fn lender(&self) -> &dyn Lender<T> {
        match self {
            Self::Dense(rows) => rows,
            Self::Sparse(lender) => *lender,
        }
    }

    /// Copies all cells of these rows, 0 where one is hidden or not stored; each padded with zeros to `stride`.
    #[inline(always)]
    pub(super) fn copy(&self, rows: Range<usize>, to: &mut [T], stride: usize) {
        match self {
            Self::Dense(lent) => lent.copy(rows, to, stride),
            Self::Sparse(lender) => {
                let (mut indices, mut values) = (Vec::new(), Vec::new());
                for (i, row) in rows.zip(to.chunks_exact_mut(stride.max(1))) {
                    indices.clear();
                    values.clear();
                    lender.lend(i..i + 1, &mut indices, &mut values);
                    row.fill(T::zero());
                    for (&j, &x) in indices.iter().zip(&values) {
                        row[j as usize] = x;
                    }
                }
            }
        }
    }
}

impl<T: Real> Listed<'_, T> {
    /// How many rows are taken at a time, from the first of these on.
    fn together(&self, rows: &Range<usize>, starts: &[usize]) -> usize {
        let enough = |&end: &usize| starts[end] - starts[rows.start] >= BATCH;
        let end = match self {
            Self::Copied { .. } => None,
            Self::Lent { .. } => (rows.start + 1..rows.end).find(enough),
        };
        end.unwrap_or(rows.end) - rows.start
    }
}

/// Entries that are read at a time: they stay in the second-level cache.
const BATCH: usize = 1 << 13;
/// Slopes of up to this many roundings, in parts of the linear term, are none.
const STATIONARY: f64 = 8.0;
/// Where a falling coordinate leaves less than this share of a cell's `p`, that sum is computed anew: a difference would have fewer digits, or none.
const LEFT: f64 = 0.5;

/// The problems of a group of rows.
#[derive(Debug)]
pub struct RowGroup<'a, T> {
    pub(crate) rows: Range<usize>,
    pub(crate) k: usize,
    pub(crate) entries: &'a Entries<'a, T>,
    /// The table `U` of all full rows, one coordinate after the other, each padded to whole registers.
    pub(crate) table: &'a [T],
    /// The other modes' factors, whose rows are multiplied into a table for every row that is listed.
    pub(crate) panels: &'a [Panel<'a, T>],
    /// `s`: `K` numbers for every row, or for all rows together.
    pub(crate) linear: &'a [T],
    /// `c`: `K` numbers for every row; empty where there are none.
    pub(crate) pseudo: &'a [f64],
    /// Of every row: its data are stored times this power of two, and what they sum to as they are.
    pub(crate) exponents: &'a [i32],
    pub(crate) totals: &'a [f64],
    /// The total of all data, in units of which the result is.
    pub(crate) unit: f64,
    /// `K` numbers for every row of the group: the start, then the result.
    pub(crate) block: &'a mut [T],
    /// Room for two rows of values, for rows that are read, and for a table where it is gathered.
    pub(crate) scratch: &'a mut [T],
    pub(crate) passes: usize,
    pub(crate) log: bool,
}

impl<T: Real> WithSimd for RowGroup<'_, T> {
    /// `Σ v ln p` over the rows, with `p` in units of the total and the tables as they are stored.
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) -> f64 {
        let k = self.k;
        let block = std::mem::take(&mut self.block);
        let scratch = std::mem::take(&mut self.scratch);
        let mut ln_lik = CompensatedSum::default();
        match self.entries {
            Entries::Full { stride, cells } => {
                let (p, room) = scratch.split_at_mut(2 * stride);
                let together = match cells {
                    Full::Copied(_) => self.rows.len(),
                    Full::Lent { together, .. } => *together,
                };
                let firsts = self.rows.clone().step_by(together.max(1));
                for (first, block) in firsts.zip(block.chunks_mut((together * k).max(1))) {
                    let values = match cells {
                        Full::Copied(values) => &values[first * stride..],
                        Full::Lent { lender, scale, .. } => {
                            let rows = first..(first + together).min(self.rows.end);
                            lender.copy(rows.clone(), room, *stride);
                            let rows = room.chunks_exact_mut((*stride).max(1)).zip(rows);
                            rows.for_each(|(row, i)| rescale(row, *scale, self.exponents[i]));
                            &*room
                        }
                    };
                    self.full(simd, first, (values, *stride), block, p, &mut ln_lik);
                }
            }
            Entries::Listed { starts, cells } => {
                let others = self.panels.len();
                let (mut read, mut values) = (Vec::new(), Vec::new());
                let (mut rest, mut left) = (block, self.rows.clone());
                while !left.is_empty() {
                    let rows = left.start..left.start + cells.together(&left, starts);
                    let (block, next) = rest.split_at_mut(rows.len() * k);
                    let starts = &starts[rows.start..=rows.end];
                    let entries = match cells {
                        Listed::Copied { indices, values } => {
                            (&indices[starts[0] * others..], &values[starts[0]..])
                        }
                        Listed::Lent { lender, scale } => {
                            read.clear();
                            values.clear();
                            lender.lender().lend(rows.clone(), &mut read, &mut values);
                            for (ends, &e) in starts.windows(2).zip(&self.exponents[rows.start..]) {
                                rescale(
                                    &mut values[ends[0] - starts[0]..ends[1] - starts[0]],
                                    *scale,
                                    e,
                                );
                            }
                            (&read[..], &values[..])
                        }
                    };
                    self.listed(
                        simd,
                        rows.start,
                        starts,
                        entries,
                        block,
                        scratch,
                        &mut ln_lik,
                    );
                    (rest, left.start) = (next, rows.end);
                }
            }
        }
        ln_lik.value()
    }
}

/// Brings values that are held times `scale` to the scale of their row.
#[inline(always)]
pub(super) fn rescale<T: Real>(values: &mut [T], scale: f64, exponent: i32) {
    let up: f64 = pow2(exponent);
    // Nearly always 1, by which a quotient is what it was.
    if scale == 1.0 {
        values.iter_mut().for_each(|x| *x = T::lit(x.to_f64() * up));
    } else {
        values
            .iter_mut()
            .for_each(|x| *x = T::lit(x.to_f64() / scale * up));
    }
}

impl<T: Real> RowGroup<'_, T> {
    /// Rows of all cells from `first` on, two at a time.
    #[inline(always)]
    fn full<S: Simd>(
        &self,
        simd: S,
        first: usize,
        (values, stride): (&[T], usize),
        block: &mut [T],
        p: &mut [T],
        ln_lik: &mut CompensatedSum,
    ) {
        let (k, passes, log) = (self.k, self.passes, self.log);
        let (p, other_p) = p.split_at_mut(stride);
        let values = |at: usize| &values[at * stride..][..stride];
        for (pair, block) in block.chunks_mut((2 * k).max(1)).enumerate() {
            let (w, other) = block.split_at_mut(k);
            let one = self.problem(first + 2 * pair, values(2 * pair), w, p);
            if other.is_empty() {
                *ln_lik += solve(simd, self.table, [one], passes, log);
            } else {
                let at = 2 * pair + 1;
                let two = self.problem(first + at, values(at), other, other_p);
                *ln_lik += solve(simd, self.table, [one, two], passes, log);
            }
        }
    }

    /// Rows of listed entries from `first` on, which end at `starts`.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    fn listed<S: Simd>(
        &self,
        simd: S,
        first: usize,
        starts: &[usize],
        (indices, values): (&[u32], &[T]),
        block: &mut [T],
        scratch: &mut [T],
        ln_lik: &mut CompensatedSum,
    ) {
        let (k, lanes, others) = (self.k, T::lanes::<S>(), self.panels.len());
        for (at, (ends, w)) in starts
            .windows(2)
            .zip(block.chunks_mut(k.max(1)))
            .enumerate()
        {
            let own = ends[0] - starts[0]..ends[1] - starts[0];
            let (n, stride) = (own.len(), own.len().next_multiple_of(lanes));
            let (p, rest) = scratch.split_at_mut(stride);
            let (copied, rest) = rest.split_at_mut(stride);
            copied[..n].copy_from_slice(&values[own.clone()]);
            copied[n..].fill(T::zero());
            let table = &mut rest[..stride * k];
            let own = &indices[own.start * others..own.end * others];
            gather(self.panels, own, table, (n, stride, k));
            let row = self.problem(first + at, copied, w, p);
            *ln_lik += solve(simd, table, [row], self.passes, self.log);
        }
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
        let of_row = i * self.k..(i + 1) * self.k;
        let linear = match self.linear.len() {
            shared if shared == self.k => self.linear,
            _ => &self.linear[of_row.clone()],
        };
        let pseudo = match self.pseudo {
            [] => &[],
            all => &all[of_row],
        };
        let (exponent, total) = (self.exponents[i], self.totals[i]);
        let counted = total + pseudo.iter().sum::<f64>();
        let weight = unit_exponent(counted);
        let up: f64 = pow2(weight);
        let goal = counted * up;
        Problem {
            values,
            linear,
            pseudo,
            exponent,
            total,
            unit: self.unit,
            weight,
            up,
            lift: pow2(weight - exponent),
            goal,
            least: least(goal, linear),
            w,
            p,
            moved: T::zero(),
        }
    }
}

/// What no coordinate falls below, so that it can rise again: too little to be seen in the sum, in whatever unit its terms are.
pub(super) fn least<T: Real>(goal: f64, linear: &[T]) -> f64 {
    let largest = linear.iter().fold(0.0, |most: f64, s| most.max(s.to_f64()));
    match largest > 0.0 {
        true => goal * T::EPSILON.to_f64() / 2.0 / largest,
        false => 0.0,
    }
}

/// Writes the products of the panels' rows at some entries, one coordinate after the other.
#[inline(always)]
pub(crate) fn gather<T: Real>(
    panels: &[Panel<'_, T>],
    indices: &[u32],
    into: &mut [T],
    (n, stride, k): (usize, usize, usize),
) {
    for column in into.chunks_exact_mut(stride.max(1)).take(k) {
        column[n..].fill(T::zero());
    }
    match panels {
        [] => into
            .chunks_exact_mut(stride.max(1))
            .take(k)
            .for_each(|column| column[..n].fill(T::one())),
        [only] => {
            for (entry, &j) in indices.iter().enumerate() {
                let row = &only.row(j as usize)[..k];
                let columns = into[entry..].iter_mut().step_by(stride);
                columns.zip(row).for_each(|(x, &u)| *x = u);
            }
        }
        [first, others @ ..] => {
            for (entry, index) in indices.chunks_exact(panels.len()).enumerate() {
                let row = &first.row(index[0] as usize)[..k];
                for (z, &u) in row.iter().enumerate() {
                    let product = (others.iter().zip(&index[1..]))
                        .fold(u, |u, (panel, &j)| u * panel.row(j as usize)[z]);
                    into[z * stride + entry] = product;
                }
            }
        }
    }
}

/// One row.
#[derive(Debug)]
pub(super) struct Problem<'a, T> {
    /// `v`, times `2^exponent`.
    pub(super) values: &'a [T],
    pub(super) linear: &'a [T],
    /// `c`, in the scale of the data; empty where there are none.
    pub(super) pseudo: &'a [f64],
    pub(super) exponent: i32,
    pub(super) total: f64,
    pub(super) unit: f64,
    /// `2^weight` brings the row's weight, its total and all the pseudo-counts, into `[1, 2)`.
    pub(super) weight: i32,
    /// That power of two.
    pub(super) up: f64,
    /// What brings sums over the values to the same scale.
    pub(super) lift: f64,
    /// The weight in it.
    pub(super) goal: f64,
    /// No share `s w` of the row falls below.
    pub(super) least: f64,
    pub(super) w: &'a mut [T],
    pub(super) p: &'a mut [T],
    /// By how much the last coordinate moved, which `p` has not followed yet.
    pub(super) moved: T,
}

/// Passes over the coordinates of rows with one table, between two exact searches along the rays through the origin; `Σ v ln p` if
/// `log`. Rows side by side share what is read, and one's sums hide the other's division; none sees the other.
///
/// Coordinates that start at 0 stay there. No other ends at 0 where there are data, but at a rounding error's share of
/// the row: zeros of coordinate descent are not final. A row whose cells are all hidden keeps its values.
#[inline(always)]
fn solve<T: Real, S: Simd, const N: usize>(
    simd: S,
    table: &[T],
    mut rows: [Problem<'_, T>; N],
    passes: usize,
    log: bool,
) -> f64 {
    let mut live = [false; N];
    for (row, live) in rows.iter_mut().zip(&mut live) {
        *live = row.goal > 0.0 && row.stretch();
    }
    if live.contains(&true) {
        multiply(simd, table, &mut rows);
        rows.iter_mut().for_each(|row| row.bound());
        descend(simd, table, &mut rows, live, passes);
    }
    for (row, _) in rows.iter_mut().zip(live).filter(|(_, live)| *live) {
        row.stretch();
    }
    if log && live.contains(&true) {
        multiply(simd, table, &mut rows);
    }
    let mut ln_lik = 0.0;
    for r in 0..N {
        ln_lik += rows[r].end(live[r], log);
    }
    ln_lik
}

/// Passes over the coordinates of rows of which `p` is known and has reciprocals. What the last coordinate did, it has not followed.
#[inline(always)]
pub(super) fn descend<T: Real, S: Simd, const N: usize>(
    simd: S,
    table: &[T],
    rows: &mut [Problem<'_, T>; N],
    live: [bool; N],
    passes: usize,
) {
    let (k, mut last) = (rows[0].w.len(), 0);
    for _ in 0..passes {
        for z in 0..k {
            let moves: [bool; N] = std::array::from_fn(|r| live[r] && rows[r].moves(z));
            if moves.contains(&true) {
                let slopes = slopes(simd, table, (z, last), rows);
                for r in 0..N {
                    rows[r].advance(z, slopes[r], moves[r]);
                }
                last = z;
            }
        }
    }
}

/// `p = U w` of every row, some registers at a time.
#[inline(always)]
pub(super) fn multiply<T: Real, S: Simd, const N: usize>(
    simd: S,
    table: &[T],
    rows: &mut [Problem<'_, T>; N],
) {
    let stride = rows[0].p.len();
    let (mut at, n) = (0, stride / T::lanes::<S>());
    // Twice six sums, a weight for each row and an entry: what sixteen registers hold.
    while at + 6 <= n {
        registers::<T, S, N, 6>(simd, table, rows, at);
        at += 6;
    }
    while at + 2 <= n {
        registers::<T, S, N, 2>(simd, table, rows, at);
        at += 2;
    }
    if at < n {
        registers::<T, S, N, 1>(simd, table, rows, at);
    }
}

/// The same for `R` registers from the one at `at`.
#[inline(always)]
fn registers<T: Real, S: Simd, const N: usize, const R: usize>(
    simd: S,
    table: &[T],
    rows: &mut [Problem<'_, T>; N],
    at: usize,
) {
    let stride = rows[0].p.len();
    let mut sums = [[T::vsplat(simd, T::zero()); R]; N];
    for (z, column) in table.chunks_exact(stride.max(1)).enumerate() {
        let u = &T::vectors::<S>(column).0[at..at + R];
        for (row, sums) in rows.iter().zip(&mut sums) {
            let w = T::vsplat(simd, row.w[z]);
            for (sum, &u) in sums.iter_mut().zip(u) {
                *sum = T::vmul_add(simd, w, u, *sum);
            }
        }
    }
    for (row, sums) in rows.iter_mut().zip(&sums) {
        T::vectors_mut::<S>(row.p).0[at..at + R].copy_from_slice(sums);
    }
}

/// `Σ v q` and `Σ v q²` of coordinate `z` in every row, after `p` has followed the last coordinate that moved.
#[inline(always)]
fn slopes<T: Real, S: Simd, const N: usize>(
    simd: S,
    table: &[T],
    (z, last): (usize, usize),
    rows: &mut [Problem<'_, T>; N],
) -> [[f64; 2]; N] {
    for row in rows.iter_mut() {
        row.follow_fall(table, last);
    }
    let moved = rows.each_ref().map(|row| T::vsplat(simd, row.moved));
    // A reciprocal is taken of `p`.
    let tiny = T::vsplat(simd, T::TINY);
    let stride = rows[0].p.len();
    let column = |z: usize| T::vectors::<S>(&table[z * stride..][..stride]).0;
    let (u, last) = (column(z), column(last));
    let n = u.len();
    let v = rows
        .each_ref()
        .map(|row| &T::vectors::<S>(row.values).0[..n]);
    let p = rows
        .each_mut()
        .map(|row| &mut T::vectors_mut::<S>(row.p).0[..n]);
    let zero = T::vsplat(simd, T::zero());
    let (mut g, mut h) = ([zero; N], [zero; N]);
    for (at, (&u, &last)) in u.iter().zip(last).enumerate() {
        for r in 0..N {
            let now = T::vmax(simd, T::vmul_add(simd, moved[r], last, p[r][at]), tiny);
            p[r][at] = now;
            // All digits, also of h, the length of a step: an estimate would depend on the unit of the data.
            let q = T::vmul(simd, u, T::vreciprocal(simd, now));
            let vq = T::vmul(simd, v[r][at], q);
            g[r] = T::vadd(simd, vq, g[r]);
            h[r] = T::vmul_add(simd, vq, q, h[r]);
        }
    }
    let mut slopes = [[0.0; 2]; N];
    for r in 0..N {
        slopes[r] = [T::vsum(simd, g[r]).to_f64(), T::vsum(simd, h[r]).to_f64()];
    }
    slopes
}

impl<T: Real> Problem<'_, T> {
    /// Keeps `p` above what has no reciprocal.
    #[inline(always)]
    pub(super) fn bound(&mut self) {
        let p = self.p.iter_mut();
        p.for_each(|p| *p = if *p > T::TINY { *p } else { T::TINY });
    }

    /// Lets `p` follow the last coordinate where that fell and some cell would lose digits.
    #[inline(always)]
    fn follow_fall(&mut self, table: &[T], last: usize) {
        let (stride, by, left) = (self.p.len(), self.moved, T::lit(LEFT));
        let now = self.w[last];
        if now >= left * (now - by) {
            return;
        }
        let u = &table[last * stride..][..stride];
        let is_lost = |p: T, u: T| p + by * u < left * p;
        // All cells, without a branch: that is done in registers.
        let lost = self.p.iter().zip(u).filter(|&(&p, &u)| is_lost(p, u));
        if lost.count() == 0 {
            return;
        }
        for at in 0..stride {
            let (p, u) = (self.p[at], u[at]);
            self.p[at] = match is_lost(p, u) {
                true => {
                    let column = table[at..].iter().step_by(stride);
                    let terms = self.w.iter().zip(column);
                    terms.fold(T::zero(), |sum, (&w, &u)| sum + w * u)
                }
                false => p + by * u,
            };
        }
        self.moved = T::zero();
    }

    /// Whether a coordinate may move.
    #[inline(always)]
    pub(super) fn moves(&self, z: usize) -> bool {
        self.w[z] > T::zero() && self.linear[z] > T::zero()
    }

    /// What a coordinate does not fall below.
    #[inline(always)]
    pub(super) fn floor(&self) -> f64 {
        self.least.max(T::TINY.to_f64())
    }

    /// One step of a coordinate, if it may move.
    #[inline(always)]
    fn advance(&mut self, z: usize, [g, h]: [f64; 2], moves: bool) {
        self.moved = T::zero();
        if !moves {
            return;
        }
        let (old, s) = (self.w[z].to_f64(), self.linear[z].to_f64());
        let c = self.pseudo.get(z).map_or(0.0, |c| c * self.up);
        let (g, h) = (g * self.lift + c / old, h * self.lift + c / old / old);
        let slope = (g - s) / s;
        // Of a coordinate that hardly shows in any cell the step is as long as the slope is small: rounding would move it far.
        if slope.abs() <= STATIONARY * T::EPSILON.to_f64() {
            return;
        }
        // [SPEC 10.1] w <- w + (G / h) (G - s) / s
        let new = old + (g / h) * slope;
        let least = self.floor();
        let new = T::lit(if new > least { new } else { least });
        self.moved = T::lit(new.to_f64() - old);
        self.w[z] = new;
    }

    /// Brings the result to units of the total; `Σ v ln p` if `log`.
    #[inline(always)]
    fn end(&mut self, live: bool, log: bool) -> f64 {
        if self.goal <= 0.0 {
            // Nothing was seen where there was something to see.
            for (w, &s) in self.w.iter_mut().zip(self.linear) {
                *w = if s > T::zero() { T::zero() } else { *w };
            }
            return 0.0;
        }
        let log = log && self.total > 0.0;
        if !live {
            return if log { f64::NEG_INFINITY } else { 0.0 };
        }
        let mut ln_lik = 0.0;
        if log {
            let sum = log::ln_lik(self.values, self.p, |_, p| p);
            // p was seen in the row's scale. Of the powers of two in it and in the unit the difference alone is rounded.
            let own = unit_exponent(self.unit);
            let powers = f64::from(self.weight - own) * std::f64::consts::LN_2;
            let scale = powers + (self.unit * pow2::<f64>(own)).ln();
            ln_lik = sum * pow2::<f64>(-self.exponent) - self.total * scale;
        }
        let back = pow2::<f64>(-self.weight) / self.unit;
        let w = self.w.iter_mut();
        w.for_each(|w| *w = T::lit(w.to_f64() * back));
        ln_lik
    }

    /// Scales `w` so that `Σ s w` is what it is at the best scale; whether it can be.
    #[inline(always)]
    pub(super) fn stretch(&mut self) -> bool {
        let terms = self.w.iter().zip(self.linear);
        let mass: f64 = terms.map(|(w, s)| w.to_f64() * s.to_f64()).sum();
        let scale = self.goal / mass;
        let possible = mass > 0.0 && scale > 0.0 && scale.is_finite();
        if possible {
            // [SPEC 10.1] Σ s w = Σ v + Σ c
            let w = self.w.iter_mut();
            w.for_each(|w| *w = T::lit(w.to_f64() * scale));
        }
        possible
    }
}
