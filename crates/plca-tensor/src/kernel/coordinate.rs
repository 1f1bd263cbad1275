//! Row problems of Poisson likelihoods, one coordinate at a time.
//!
//! ```text
//! minimise over w >= 0:   Σ_k s_k w_k - Σ_j v_j ln p_j - Σ_k c_k ln w_k,      p_j = Σ_k w_k U[j,k]
//! ```
//!
//! With the other coordinates fixed the optimum of one is where `G(w_k) = s_k`,
//!
//! ```text
//! G = Σ_j v_j q_j + c_k / w_k,     q_j = U[j,k] / p_j,     -G' = h = Σ_j v_j q_j² + c_k / w_k²
//! ```
//!
//! `G` is a sum of terms `a / (b + w)` with `b >= 0`, so `1/G` is concave in `w` and nearly linear: a Newton step on `1/G = 1/s` is
//! exact for a single term, never passes the optimum from below, and is not below it by more than `G/h` from above. The usual step,
//! Newton on `G = s`, differs by a factor `G/s`: from above it may fall to 0 at once, from where it only doubles at every step.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::panel::Panel;
use crate::Real;
use crate::sum::CompensatedSum;

/// The tables `U` of some rows, stored one coordinate after the other, each padded to whole registers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Table<'a, T> {
    /// One table for all rows.
    Shared(&'a [T]),
    /// Gathered for every row: the product of these factors' rows.
    Gathered(&'a [Panel<'a, T>]),
}

/// The data of some rows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Entries<'a, T> {
    /// `stride` values for every row, zeros where there is nothing.
    Full { values: &'a [T], stride: usize },
    /// Row `i` has the entries `starts[i]..starts[i + 1]`; an entry has an index for every other mode.
    Listed {
        starts: &'a [usize],
        indices: &'a [u32],
        values: &'a [T],
    },
}

/// What the row problems are besides their data; `K` numbers for every row, those of `linear` for all rows where there are no more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms<'a, T> {
    pub(crate) linear: &'a [T],
    pub(crate) pseudo: &'a [f64],
}

/// The problems of a group of rows.
#[derive(Debug)]
pub struct RowGroup<'a, T> {
    pub(crate) rows: Range<usize>,
    pub(crate) k: usize,
    pub(crate) entries: Entries<'a, T>,
    pub(crate) table: Table<'a, T>,
    pub(crate) terms: Terms<'a, T>,
    /// Of every row: its data are stored times this power of two, and what they sum to as they are.
    pub(crate) exponents: &'a [i32],
    pub(crate) totals: &'a [f64],
    /// The total of all data, in units of which the result is.
    pub(crate) unit: f64,
    /// `K` numbers for every row of the group: the start, then the result.
    pub(crate) block: &'a mut [T],
    /// Room for a table and three rows of values.
    pub(crate) scratch: &'a mut [T],
    pub(crate) passes: usize,
    pub(crate) log: bool,
}

/// `2^e` of a double, 0 or infinity beyond the range.
pub(crate) fn pow2(e: i32) -> f64 {
    if (-1022..=1023).contains(&e) {
        return f64::from_bits(((e + 1023) as u64) << 52);
    }
    2f64.powi(e / 2) * 2f64.powi(e - e / 2)
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
        let lanes = T::lanes::<S>();
        let mut ln_lik = CompensatedSum::default();
        for at in 0..self.rows.len() {
            let i = self.rows.start + at;
            let n = match self.entries {
                Entries::Full { stride, .. } => stride,
                Entries::Listed { starts, .. } => starts[i + 1] - starts[i],
            };
            let stride = n.next_multiple_of(lanes);
            let scratch = std::mem::take(&mut self.scratch);
            let (p, rest) = scratch.split_at_mut(stride);
            let (gathered, rest) = rest.split_at_mut(match self.table {
                Table::Shared(_) => 0,
                Table::Gathered(_) => stride * self.k,
            });
            let copied = match self.entries {
                Entries::Full { .. } => &mut [],
                Entries::Listed { .. } => &mut rest[..stride],
            };
            ln_lik += self.row(simd, (at, i), p, gathered, copied);
            self.scratch = scratch;
        }
        ln_lik.value()
    }
}

impl<T: Real> RowGroup<'_, T> {
    /// Gathers a row's data and solves it.
    #[inline(always)]
    fn row<S: Simd>(
        &mut self,
        simd: S,
        (at, i): (usize, usize),
        p: &mut [T],
        gathered: &mut [T],
        copied: &mut [T],
    ) -> f64 {
        let (k, stride) = (self.k, p.len());
        let values = match self.entries {
            Entries::Full { values, .. } => &values[i * stride..][..stride],
            Entries::Listed { starts, values, .. } => {
                let own = &values[starts[i]..starts[i + 1]];
                copied[..own.len()].copy_from_slice(own);
                copied[own.len()..].fill(T::zero());
                &*copied
            }
        };
        let table = match (self.table, self.entries) {
            (Table::Shared(table), _) => table,
            (
                Table::Gathered(panels),
                Entries::Listed {
                    starts, indices, ..
                },
            ) => {
                let n = starts[i + 1] - starts[i];
                let others = panels.len();
                let own = &indices[starts[i] * others..starts[i + 1] * others];
                gather(panels, own, gathered, (n, stride, k));
                &*gathered
            }
            (Table::Gathered(_), Entries::Full { .. }) => return f64::NAN,
        };
        let of_row = |x: &'_ [f64]| {
            if x.is_empty() {
                0..0
            } else {
                i * k..(i + 1) * k
            }
        };
        let linear = match self.terms.linear.len() {
            shared if shared == k => self.terms.linear,
            _ => &self.terms.linear[i * k..(i + 1) * k],
        };
        let problem = Problem {
            table,
            values,
            linear,
            pseudo: &self.terms.pseudo[of_row(self.terms.pseudo)],
            exponent: self.exponents[i],
            total: self.totals[i],
            unit: self.unit,
        };
        let w = &mut self.block[at * k..(at + 1) * k];
        problem.improve(simd, w, p, self.passes, self.log)
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
struct Moved<T> {
    coordinate: usize,
    by: T,
    to: T,
    /// It or one before it went to less than half: differences may have no correct digit since.
    fell: bool,
}

impl<T: Real> Moved<T> {
    /// What `p` becomes, `u` being the coordinate's; not less than the least normal number, for its reciprocal is taken.
    #[inline(always)]
    fn plain<S: Simd>(&self, simd: S, p: T::Vector<S>, u: T::Vector<S>) -> T::Vector<S> {
        let p = T::vmul_add(simd, T::vsplat(simd, self.by), u, p);
        T::vmax(simd, p, T::vsplat(simd, T::TINY))
    }

    /// The same, but not less than what the coordinate gives alone: a bound that rounding must not cross.
    #[inline(always)]
    fn guarded<S: Simd>(&self, simd: S, p: T::Vector<S>, u: T::Vector<S>) -> T::Vector<S> {
        let alone = T::vmul(simd, T::vsplat(simd, self.to), u);
        T::vmax(simd, self.plain(simd, p, u), alone)
    }
}

/// One row.
#[derive(Debug)]
struct Problem<'a, T> {
    table: &'a [T],
    /// `v`, times `2^exponent`.
    values: &'a [T],
    linear: &'a [T],
    /// `c`, in the scale of the data; empty where there are none.
    pseudo: &'a [f64],
    exponent: i32,
    total: f64,
    unit: f64,
}

impl<T: Real> Problem<'_, T> {
    /// Passes over the coordinates between two exact searches along the ray through the origin; `Σ v ln p` if `log`.
    ///
    /// Coordinates that start at 0 stay there. No other ends at 0 where there are data, but at a rounding error's share of
    /// the row: zeros of coordinate descent are not final. A row whose cells are all hidden keeps its values.
    #[inline(always)]
    fn improve<S: Simd>(&self, simd: S, w: &mut [T], p: &mut [T], passes: usize, log: bool) -> f64 {
        let counted = self.total + self.pseudo.iter().sum::<f64>();
        if counted <= 0.0 {
            // Nothing was seen where there was something to see.
            for (w, &s) in w.iter_mut().zip(self.linear) {
                *w = if s > T::zero() { T::zero() } else { *w };
            }
            return 0.0;
        }
        // Powers of two bring the row's weight, its total and all the pseudo-counts, into [1, 2).
        let own = unit_exponent(counted);
        let (up, lift) = (pow2(own), pow2(own - self.exponent));
        let goal = counted * up;
        if !self.stretch(w, goal) {
            return if log && self.total > 0.0 {
                f64::NEG_INFINITY
            } else {
                0.0
            };
        }
        self.multiply(simd, w, p);
        for p in p.iter_mut() {
            *p = if *p > T::TINY { *p } else { T::TINY };
        }
        let least = goal * T::EPSILON.to_f64() / 2.0;
        let (mut moved, mut fell) = (None, false);
        for _ in 0..passes {
            for (z, s) in self.linear.iter().enumerate() {
                let (old, s) = (w[z].to_f64(), s.to_f64());
                if old <= 0.0 || s <= 0.0 {
                    continue;
                }
                let [g, h] = self.slopes(simd, z, p, moved.take());
                let c = self.pseudo.get(z).map_or(0.0, |c| c * up);
                let (g, h) = (g * lift + c / old, h * lift + c / old / old);
                // [SPEC 10.1] w <- w + (G / h) (G - s) / s
                let new = old + (g / h) * ((g - s) / s);
                let new = if new > least { new } else { least };
                let new = T::lit(new);
                fell |= new.to_f64() < old / 2.0;
                moved = Some(Moved {
                    coordinate: z,
                    by: T::lit(new.to_f64() - old),
                    to: new,
                    fell,
                });
                w[z] = new;
            }
        }
        self.stretch(w, goal);
        let mut ln_lik = 0.0;
        if log && self.total > 0.0 {
            self.multiply(simd, w, p);
            let logs = self.values.iter().zip(&*p).filter(|(v, _)| **v > T::zero());
            let sum: f64 = logs.map(|(v, p)| v.to_f64() * p.to_f64().ln()).sum();
            // p was seen in the row's scale.
            let scale = f64::from(own) * std::f64::consts::LN_2 + self.unit.ln();
            ln_lik = sum * pow2(-self.exponent) - self.total * scale;
        }
        let back = pow2(-own) / self.unit;
        w.iter_mut().for_each(|w| *w = T::lit(w.to_f64() * back));
        ln_lik
    }

    /// Scales `w` so that `Σ s w` is what it is at the best scale; whether it can be.
    #[inline(always)]
    fn stretch(&self, w: &mut [T], goal: f64) -> bool {
        let terms = w.iter().zip(self.linear);
        let mass: f64 = terms.map(|(w, s)| w.to_f64() * s.to_f64()).sum();
        let scale = goal / mass;
        let possible = mass > 0.0 && scale > 0.0 && scale.is_finite();
        if possible {
            // [SPEC 10.1] Σ s w = Σ v + Σ c
            w.iter_mut().for_each(|w| *w = T::lit(w.to_f64() * scale));
        }
        possible
    }

    /// `p = U w`, some registers at a time.
    #[inline(always)]
    fn multiply<S: Simd>(&self, simd: S, w: &[T], p: &mut [T]) {
        const REGISTERS: usize = 8;
        let stride = p.len();
        let (p, _) = T::vectors_mut::<S>(p);
        let columns = || w.iter().zip(self.table.chunks_exact(stride.max(1)));
        let mut parts = p.chunks_exact_mut(REGISTERS);
        let mut at = 0;
        for part in &mut parts {
            let mut sums = [T::vsplat(simd, T::zero()); REGISTERS];
            for (&w, u) in columns() {
                let (w, (u, _)) = (T::vsplat(simd, w), T::vectors::<S>(u));
                let own = u[at..at + REGISTERS].iter();
                (sums.iter_mut().zip(own))
                    .for_each(|(sum, &u)| *sum = T::vmul_add(simd, w, u, *sum));
            }
            part.copy_from_slice(&sums);
            at += REGISTERS;
        }
        let rest = parts.into_remainder();
        rest.fill(T::vsplat(simd, T::zero()));
        for (&w, u) in columns() {
            let (w, (u, _)) = (T::vsplat(simd, w), T::vectors::<S>(u));
            (rest.iter_mut().zip(&u[at..])).for_each(|(p, &u)| *p = T::vmul_add(simd, w, u, *p));
        }
    }

    /// `Σ v q` and `Σ v q²` of coordinate `z`, after `p` has followed the last coordinate that moved.
    #[inline(always)]
    fn slopes<S: Simd>(&self, simd: S, z: usize, p: &mut [T], moved: Option<Moved<T>>) -> [f64; 2] {
        match moved {
            None => self.sums(simd, z, p, z, |p, _| p),
            Some(moved) if moved.fell => {
                let from = moved.coordinate;
                self.sums(simd, z, p, from, |p, u| moved.guarded(simd, p, u))
            }
            Some(moved) => {
                let from = moved.coordinate;
                self.sums(simd, z, p, from, |p, u| moved.plain(simd, p, u))
            }
        }
    }

    /// `Σ v q` and `Σ v q²` of coordinate `z`, every `p` having become what `follow` makes of it and of `U` of another coordinate.
    #[inline(always)]
    fn sums<S: Simd>(
        &self,
        simd: S,
        z: usize,
        p: &mut [T],
        last: usize,
        follow: impl Fn(T::Vector<S>, T::Vector<S>) -> T::Vector<S>,
    ) -> [f64; 2] {
        let stride = p.len();
        let column = |z: usize| T::vectors::<S>(&self.table[z * stride..][..stride]).0;
        let (u, v) = (column(z), T::vectors::<S>(self.values).0);
        let (p, _) = T::vectors_mut::<S>(p);
        let zero = T::vsplat(simd, T::zero());
        let (mut g, mut h) = (zero, zero);
        for (((p, &v), &u), &last) in p.iter_mut().zip(v).zip(u).zip(column(last)) {
            *p = follow(*p, last);
            let q = T::vmul(simd, u, T::vreciprocal(simd, *p));
            let vq = T::vmul(simd, v, q);
            g = T::vadd(simd, g, vq);
            h = T::vmul_add(simd, vq, q, h);
        }
        [T::vsum(simd, g).to_f64(), T::vsum(simd, h).to_f64()]
    }
}
