//! Where a model's mass lies: over all cells, and over all but a list of them.

use nalgebra::DMatrix;

use crate::data::wanted;
use crate::kernel::Cells;
use crate::kernel::panel::{balancing_exponent, pow2, pow2_halves};
use crate::{Cp, Factor, Real, exponent, times_power_of_two};

impl<T: Real> Cp<'_, T> {
    /// The mass of the model along one mode, an `I_j x K` matrix. Cost `O(K Σ I_j)`.
    ///
    /// ```math
    /// X_j[i,z] = w_z \, F_j[i,z] \prod_{m \ne j} \sum_x F_m[x,z]
    /// ```
    ///
    /// # Panics
    ///
    /// If there is no such mode.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_tensor::{Factor, Cp};
    /// let (a, b) = (dmatrix![0.5; 0.5], dmatrix![0.25; 0.5]);
    /// let model = Cp { weights: Some(&[2.0]), factors: &[Factor::Columns(&a), Factor::Columns(&b)] };
    /// assert_eq!(model.exposure(0), dmatrix![0.75; 0.75]);            // 2 · 1/2 · 3/4
    /// ```
    pub fn exposure(&self, mode: usize) -> DMatrix<T> {
        let factors = self.factors.iter().enumerate();
        let others = factors.filter(|&(m, _)| m != mode);
        let sums: Vec<_> = others.map(|(_, f)| f.component_sums()).collect();
        let scale = |z: usize| {
            let weight = self.weights.map_or(T::one(), |w| w[z]);
            product(std::iter::once(weight).chain(sums.iter().map(|sums| sums[z])))
        };
        let scales: Vec<_> = (0..self.components()).map(scale).collect();
        // [SPEC 4] W ∘ (M Hᵀ) and H ∘ (Wᵀ M) where nothing is hidden
        let entry = |f: T, [a, b]: [T; 2]| f * a * b;
        match self.factors[mode] {
            Factor::Columns(f) => f.map_with_location(|_, z, x| entry(x, scales[z])),
            Factor::Rows(f) => f.map_with_location(|z, _, x| entry(x, scales[z])),
        }
    }

    /// [`exposure`](Self::exposure) of the wanted modes.
    pub(crate) fn exposures(&self, modes: &[bool]) -> Vec<Option<DMatrix<T>>> {
        wanted(modes, |mode| self.exposure(mode))
    }
}

/// A product in two factors that neither underflow nor overflow if the product does not, whatever the order of its terms.
fn product<T: Real>(terms: impl Iterator<Item = T>) -> [T; 2] {
    let (mut mantissa, mut exponent) = (T::one(), 0);
    for term in terms {
        // In halves: 2^149, which brings the smallest number of f32 to 1, does not exist.
        let e = balancing_exponent(term.to_f64());
        let [a, b] = pow2_halves::<T>(e);
        mantissa *= term * a * b;
        let f = balancing_exponent(mantissa.to_f64());
        mantissa *= pow2(f);
        exponent -= e + f;
    }
    let [a, b] = pow2_halves::<T>(exponent);
    [mantissa * a, b]
}

/// The exposure of what is not hidden, where `whole` is that of all cells and `hidden` that of the hidden ones.
///
/// A difference that is small beside both loses its digits. Where it is below [`SMALL`] of the whole it is therefore
/// computed again in twice the precision: a pass over the list, nothing more. Where that leaves too few digits as well,
/// below [`TINY`], what remains is added up cell by cell.
///
/// `unseen` lists, for every mode, the indices whose cells are all hidden: nothing is left of those, whatever rounding and small entries
/// that the pass leaves out make of the difference.
pub(crate) fn remaining<T: Real>(
    model: &Cp<'_, T>,
    (cells, unseen): (&dyn Cells<T>, &[Vec<usize>]),
    whole: Vec<Option<DMatrix<T>>>,
    hidden: Vec<Option<DMatrix<T>>>,
) -> Vec<Option<DMatrix<T>>> {
    let modes = whole.into_iter().zip(hidden).enumerate();
    modes
        .map(|(mode, (whole, hidden))| {
            let (mut left, hidden) = (whole?, hidden?);
            let by_rows = matches!(model.factors[mode], Factor::Columns(_));
            let mut rows = vec![false; model.factors[mode].rows()];
            let columns = left.column_iter_mut().zip(hidden.column_iter());
            for (column, (mut whole, hidden)) in columns.enumerate() {
                for (row, (whole, &hidden)) in whole.iter_mut().zip(&hidden).enumerate() {
                    let rest = *whole - hidden;
                    rows[if by_rows { row } else { column }] |= rest < *whole * T::lit(SMALL);
                    // Rounding must not turn "nothing observed" into a negative mass.
                    *whole = if rest > T::zero() { rest } else { T::zero() };
                }
            }
            for &i in &unseen[mode] {
                rows[i] = false;
                match by_rows {
                    true => left.row_mut(i).fill(T::zero()),
                    false => left.column_mut(i).fill(T::zero()),
                }
            }
            if rows.contains(&true) {
                mend(model, cells, mode, &rows, &mut left);
            }
            Some(left)
        })
        .collect()
}

/// Share of the whole below which a difference is computed again: it costs four bits.
const SMALL: f64 = 1.0 / 16.0;

/// Share of the whole below which twice the precision leaves less than the precision: 106 bits less 45.
const TINY: f64 = 1.0 / (1u64 << 45) as f64;

/// Computes rows of one mode again: `w_z F_j[i,z] (Π_{m≠j} Σ_x F_m[x,z] - Σ_hidden Π_{m≠j} F_m[x_m,z])`.
fn mend<T: Real>(
    model: &Cp<'_, T>,
    cells: &dyn Cells<T>,
    mode: usize,
    rows: &[bool],
    into: &mut DMatrix<T>,
) {
    let k = model.components();
    let (others, exponents) = in_own_units(model, mode);
    let mut whole = vec![Twofold::from(1.0); k];
    for factor in &others {
        for (whole, values) in whole.iter_mut().zip(factor.column_iter()) {
            let values = values.iter().copied().map(Twofold::from);
            *whole = whole.times(values.fold(Twofold::from(0.0), Twofold::plus));
        }
    }
    let mut slots = vec![usize::MAX; rows.len()];
    let chosen: Vec<usize> = (0..rows.len()).filter(|&i| rows[i]).collect();
    for (slot, &i) in chosen.iter().enumerate() {
        slots[i] = slot;
    }
    let mut rest = whole.repeat(chosen.len());
    cells.for_each(&mut |index, _| {
        let slot = slots[index[mode]];
        if slot == usize::MAX {
            return;
        }
        for (z, rest) in rest[slot * k..][..k].iter_mut().enumerate() {
            let rows = [&index[..mode], &index[mode + 1..]].into_iter().flatten();
            let values = others
                .iter()
                .zip(rows)
                .map(|(f, &i)| Twofold::from(f[(i, z)]));
            let product = values.fold(Twofold::from(1.0), Twofold::times);
            *rest = rest.plus(product.negative());
        }
    });
    let is_tiny = |rest: &[Twofold], z: usize| rest[z].value() < TINY * whole[z].value();
    let lists = hidden_lists(cells, mode, rows.len(), |i| {
        rows[i] && (0..k).any(|z| is_tiny(&rest[slots[i] * k..], z))
    });
    for (&i, rest) in chosen.iter().zip(rest.chunks_exact(k)) {
        for z in 0..k {
            let at = match model.factors[mode] {
                Factor::Columns(_) => (i, z),
                Factor::Rows(_) => (z, i),
            };
            let rest = if is_tiny(rest, z) {
                unlisted(&others, z, &lists[i])
            } else {
                rest[z].value()
            };
            let weight = model.weights.map_or(1.0, |w| w[z].to_f64());
            let (own, e) = in_own_unit(model.factors[mode].get(i, z).to_f64());
            let (weight, f) = in_own_unit(weight);
            into[at] = T::lit(times_power_of_two(
                weight * own * rest,
                -(e + f + exponents[z]),
            ));
        }
    }
}

/// A number that is not negative times the power of two that brings it into `[1, 2)`, and the exponent of that.
fn in_own_unit(x: f64) -> (f64, i32) {
    let e = -exponent(x);
    (times_power_of_two(x, e), e)
}

/// The factors of the other modes, every component in its own unit, and the exponents of those units: twice the precision of small numbers
/// would be subnormal.
fn in_own_units<T: Real>(model: &Cp<'_, T>, mode: usize) -> (Vec<DMatrix<f64>>, Vec<i32>) {
    let k = model.components();
    let mut exponents = vec![0; k];
    let others = model.factors.iter().enumerate().filter(|&(m, _)| m != mode);
    let lifted = others.map(|(_, factor)| {
        let mut lifted = DMatrix::from_fn(factor.rows(), k, |i, z| factor.get(i, z).to_f64());
        for (mut column, exponent) in lifted.column_iter_mut().zip(&mut exponents) {
            let (_, e) = in_own_unit(column.max());
            column.apply(|x| *x = times_power_of_two(*x, e));
            *exponent += e;
        }
        lifted
    });
    (lifted.collect(), exponents)
}

/// Of the wanted rows of one mode, the listed cells without that mode's index, in lexicographic order.
fn hidden_lists<T: Real>(
    cells: &dyn Cells<T>,
    mode: usize,
    rows: usize,
    wanted: impl Fn(usize) -> bool,
) -> Vec<Vec<Vec<usize>>> {
    let wanted: Vec<bool> = (0..rows).map(wanted).collect();
    let mut lists = vec![Vec::new(); rows];
    cells.for_each(&mut |index, _| {
        if wanted[index[mode]] {
            lists[index[mode]].push([&index[..mode], &index[mode + 1..]].concat());
        }
    });
    lists.iter_mut().for_each(|list| list.sort_unstable());
    lists
}

/// `Σ Π_m F_m[x_m,z]` over the cells that a lexicographic list does not hold, without a subtraction.
fn unlisted(factors: &[DMatrix<f64>], z: usize, mut listed: &[Vec<usize>]) -> f64 {
    let depth = listed.first().map_or(0, |cell| cell.len() - factors.len());
    let Some((first, inner)) = factors.split_first() else {
        return if listed.is_empty() { 1.0 } else { 0.0 };
    };
    let inner_whole: f64 = inner.iter().map(|f| f.column(z).sum()).product();
    let mut rest = 0.0;
    for (x, value) in first.column(z).iter().enumerate() {
        let here = listed.partition_point(|cell| cell[depth] == x);
        let (inside, after) = listed.split_at(here);
        listed = after;
        rest += value
            * if inside.is_empty() {
                inner_whole
            } else {
                unlisted(inner, z, inside)
            };
    }
    rest
}

/// The unevaluated sum of two numbers: about 106 bits (Dekker 1971).
#[derive(Clone, Copy, Debug)]
struct Twofold {
    high: f64,
    low: f64,
}

impl From<f64> for Twofold {
    fn from(high: f64) -> Self {
        Self { high, low: 0.0 }
    }
}

impl Twofold {
    fn value(self) -> f64 {
        self.high + self.low
    }

    fn negative(self) -> Self {
        Self {
            high: -self.high,
            low: -self.low,
        }
    }

    /// `high + low` with `|low|` at most half a unit of the last place of `high`.
    fn normal(high: f64, low: f64) -> Self {
        let sum = high + low;
        Self {
            high: sum,
            low: low - (sum - high),
        }
    }

    fn plus(self, other: Self) -> Self {
        let sum = self.high + other.high;
        let part = sum - self.high;
        let error = (self.high - (sum - part)) + (other.high - part);
        Self::normal(sum, error + self.low + other.low)
    }

    fn times(self, other: Self) -> Self {
        let product = self.high * other.high;
        let error = self.high.mul_add(other.high, -product);
        Self::normal(
            product,
            error + self.high * other.low + self.low * other.high,
        )
    }
}
