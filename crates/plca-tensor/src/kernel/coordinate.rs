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
//!
//! Where reciprocals are estimated, `h` has half the digits: a step misses by 2^-26 of its length, which the next one makes good. Where
//! steps end, `G = s`, does not depend on `h`.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::log;
use super::panel::{Panel, pow2};
use crate::Real;
use crate::sum::CompensatedSum;

/// The data of the rows of a mode.
#[derive(Debug)]
pub(crate) enum Entries<T> {
    /// All cells: `stride` values for every row, zeros where there is nothing.
    Full { values: Vec<T>, stride: usize },
    /// The positive cells: row `i` has the entries `starts[i]..starts[i + 1]`, each with its indices in the other modes.
    Listed {
        starts: Vec<usize>,
        indices: Vec<u32>,
        values: Vec<T>,
    },
}

/// The problems of a group of rows.
#[derive(Debug)]
pub struct RowGroup<'a, T> {
    pub(crate) rows: Range<usize>,
    pub(crate) k: usize,
    pub(crate) entries: &'a Entries<T>,
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
    /// Room for two rows of values, and for a table where it is gathered.
    pub(crate) scratch: &'a mut [T],
    pub(crate) passes: usize,
    pub(crate) log: bool,
}

/// The power of two that brings a positive number into `[1, 2)`, or below 1 if it is subnormal.
pub(crate) fn unit_exponent(x: f64) -> i32 {
    1023 - (x.to_bits() >> 52) as i32
}

impl<T: Real> WithSimd for RowGroup<'_, T> {
    /// `Σ v ln p` over the rows, with `p` in units of the total and the tables as they are stored.
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) -> f64 {
        let (k, passes, log) = (self.k, self.passes, self.log);
        let block = std::mem::take(&mut self.block);
        let scratch = std::mem::take(&mut self.scratch);
        let mut ln_lik = CompensatedSum::default();
        match self.entries {
            Entries::Full { values, stride } => {
                let (table, stride) = (self.table, *stride);
                let (p, rest) = scratch.split_at_mut(stride);
                let values = |i: usize| &values[i * stride..][..stride];
                for (at, pair) in block.chunks_mut((2 * k).max(1)).enumerate() {
                    let i = self.rows.start + 2 * at;
                    let (w, other) = pair.split_at_mut(k);
                    let one = self.problem(i, values(i), w, p);
                    if other.is_empty() {
                        ln_lik += solve(simd, table, [one], passes, log);
                    } else {
                        let p = &mut rest[..stride];
                        let two = self.problem(i + 1, values(i + 1), other, p);
                        ln_lik += solve(simd, table, [one, two], passes, log);
                    }
                }
            }
            Entries::Listed {
                starts,
                indices,
                values,
            } => {
                let (panels, lanes) = (self.panels, T::lanes::<S>());
                let others = panels.len();
                for (at, w) in block.chunks_mut(k.max(1)).enumerate() {
                    let i = self.rows.start + at;
                    let own = starts[i]..starts[i + 1];
                    let (n, stride) = (own.len(), own.len().next_multiple_of(lanes));
                    let (p, rest) = scratch.split_at_mut(stride);
                    let (copied, rest) = rest.split_at_mut(stride);
                    copied[..n].copy_from_slice(&values[own.clone()]);
                    copied[n..].fill(T::zero());
                    let table = &mut rest[..stride * k];
                    let own = &indices[own.start * others..own.end * others];
                    gather(panels, own, table, (n, stride, k));
                    let row = self.problem(i, copied, w, p);
                    ln_lik += solve(simd, table, [row], passes, log);
                }
            }
        }
        ln_lik.value()
    }
}

impl<T: Real> RowGroup<'_, T> {
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
            least: goal * T::EPSILON.to_f64() / 2.0,
            w,
            p,
            moved: Moved::nothing(),
            fell: false,
        }
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

/// What a coordinate did that `p` has not followed yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moved<T> {
    by: T,
    /// To where; 0, which is no bound, where `p` is not [`guarded`](Self::guarded).
    to: T,
}

impl<T: Real> Moved<T> {
    pub(super) fn nothing() -> Self {
        Self {
            by: T::zero(),
            to: T::zero(),
        }
    }

    /// What `p` becomes, `u` being the coordinate's; not less than the least normal number, for its reciprocal is taken.
    #[inline(always)]
    fn plain<S: Simd>(&self, simd: S, p: T::Vector<S>, u: T::Vector<S>) -> T::Vector<S> {
        let p = T::vmul_add(simd, T::vsplat(simd, self.by), u, p);
        T::vmax(simd, p, T::vsplat(simd, T::TINY))
    }

    /// The same, but not less than what the coordinate gives alone: a bound that rounding must not cross. The least number is added, not
    /// compared with: an instruction less, and nothing beside larger bounds.
    #[inline(always)]
    fn guarded<S: Simd>(&self, simd: S, p: T::Vector<S>, u: T::Vector<S>) -> T::Vector<S> {
        let p = T::vmul_add(simd, T::vsplat(simd, self.by), u, p);
        let (to, least) = (T::vsplat(simd, self.to), T::vsplat(simd, T::TINY));
        T::vmax(simd, p, T::vmul_add(simd, to, u, least))
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
    pub(super) moved: Moved<T>,
    /// Whether a coordinate went to less than half: differences may have no correct digit since.
    pub(super) fell: bool,
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
    at: (usize, usize),
    rows: &mut [Problem<'_, T>; N],
) -> [[f64; 2]; N] {
    let moved = rows.each_ref().map(|row| row.moved);
    if rows.iter().any(|row| row.fell) {
        sums(simd, table, at, rows, |r, p, u| {
            moved[r].guarded(simd, p, u)
        })
    } else {
        sums(simd, table, at, rows, |r, p, u| moved[r].plain(simd, p, u))
    }
}

/// `Σ v q` and `Σ v q²` of coordinate `z`, every `p` having become what `follow` makes of it and of `U` of another coordinate.
#[inline(always)]
fn sums<T: Real, S: Simd, const N: usize>(
    simd: S,
    table: &[T],
    (z, last): (usize, usize),
    rows: &mut [Problem<'_, T>; N],
    follow: impl Fn(usize, T::Vector<S>, T::Vector<S>) -> T::Vector<S>,
) -> [[f64; 2]; N] {
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
            let now = follow(r, p[r][at], last);
            p[r][at] = now;
            // h, the length of a step, does without the correction.
            let [reciprocal, correction] = T::vreciprocal_parts(simd, now);
            let q = T::vmul(simd, u, reciprocal);
            let vq = T::vmul(simd, v[r][at], q);
            g[r] = T::vmul_add(simd, vq, correction, g[r]);
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

    /// Whether a coordinate may move.
    #[inline(always)]
    pub(super) fn moves(&self, z: usize) -> bool {
        self.w[z] > T::zero() && self.linear[z] > T::zero()
    }

    /// What a coordinate does not fall below.
    #[inline(always)]
    pub(super) fn floor(&self, z: usize) -> f64 {
        (self.least / self.linear[z].to_f64().max(1.0)).max(T::TINY.to_f64())
    }

    /// One step of a coordinate, if it may move.
    #[inline(always)]
    fn advance(&mut self, z: usize, [g, h]: [f64; 2], moves: bool) {
        self.moved = Moved::nothing();
        if !moves {
            return;
        }
        let (old, s) = (self.w[z].to_f64(), self.linear[z].to_f64());
        let c = self.pseudo.get(z).map_or(0.0, |c| c * self.up);
        let (g, h) = (g * self.lift + c / old, h * self.lift + c / old / old);
        // [SPEC 10.1] w <- w + (G / h) (G - s) / s
        let new = old + (g / h) * ((g - s) / s);
        let least = self.floor(z);
        let new = T::lit(if new > least { new } else { least });
        self.fell |= new.to_f64() < old / 2.0;
        self.moved = Moved {
            by: T::lit(new.to_f64() - old),
            to: if self.fell { new } else { T::zero() },
        };
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
            // p was seen in the row's scale.
            let scale = f64::from(self.weight) * std::f64::consts::LN_2 + self.unit.ln();
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
