//! Rates that lie below the exponents of the scalar.
//!
//! `e^ψ(x)` falls as `e^(-1/x)`: under shapes of a hundredth and less, all components that reach a datum may be so small that
//! their sum is not a number of single precision, and under shapes of a thousandth none of double precision. What each of them
//! explains of the datum is a quotient of such rates, and as good a number as any. So a pass looks at the rates that it meets
//! ([`Watch`]), and where a datum's own rate is too small, the pass is made once more with logarithms ([`pass`]).

use std::sync::atomic::{AtomicBool, Ordering};

use nalgebra::DMatrix;
use plca_dist::{
    ln_gamma, skellam_divergence, skellam_limit_ratios, skellam_ln_pmf, skellam_ratios,
};
use plca_tensor::arrange::Signed;
use plca_tensor::{CompensatedSum, Real, SignedSums, SplitRule};

use crate::rule::Split;
use crate::{Factors, Replicates};

/// A rule that notes data whose own rate, positive for positive ones, is too small to go by.
#[derive(Debug)]
pub(crate) struct Watch {
    split: Split,
    /// Smaller rates have lost digits.
    least: f64,
    /// Rates smaller than this part of the datum give multipliers that overflow.
    part: f64,
    met: AtomicBool,
}

impl Watch {
    /// For rates that are sums of this number of products of an entry of the atoms and one of the activations, which are products of numbers that are together
    /// at most `largest`, or 1; `None` if no rate can be too small.
    pub(crate) fn over<T: Real>(
        split: Split,
        atoms: [&[T]; 2],
        activations: &[T],
        terms: usize,
        largest: f64,
    ) -> Option<Self> {
        let least_of = |m: &[T]| m.iter().fold(f64::INFINITY, |a, x| a.min(x.to_f64()));
        // What is lost of a rate are products below the smallest number, with factors up to the largest.
        let terms = terms as f64 * largest;
        let least = terms * T::TINY.to_f64() / T::EPSILON.to_f64();
        let part = 2f64.powi(-(T::MAX_EXPONENT / 4 * 3));
        let [plus, minus] = atoms.map(least_of);
        let product = plus.min(minus) * least_of(activations);
        (product < least.max(part * split.largest)).then(|| Self {
            split,
            least,
            part,
            met: AtomicBool::new(false),
        })
    }

    /// Whether one was met.
    pub(crate) fn met(&self) -> bool {
        self.met.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn look<T: Real>(&self, cells: &[T], plus: &[T], minus: &[T]) {
        let (least, part) = (T::lit(self.least), T::lit(self.part));
        let mut faint = false;
        for ((&v, &p), &q) in cells.iter().zip(plus).zip(minus) {
            let own = if v > T::zero() { p } else { q };
            let size = if v > T::zero() { v } else { -v };
            // No comparison holds for a hidden cell.
            faint |= (size > T::zero()) & ((own < least) | (own < size * part));
        }
        if faint {
            self.met.store(true, Ordering::Relaxed);
        }
    }
}

impl<T: Real> SplitRule<T> for Watch {
    #[inline(always)]
    fn multipliers(&self, cells: &[T], plus: &mut [T], minus: &mut [T]) {
        self.look(cells, plus, minus);
        self.split.multipliers(cells, plus, minus);
    }

    #[inline(always)]
    fn value(&self, cells: &[T], plus: &[T], minus: &[T]) -> f64 {
        self.look(cells, plus, minus);
        self.split.value(cells, plus, minus)
    }
}

/// The largest entry, or 1.
pub(crate) fn largest<T: Real>(m: &[T]) -> f64 {
    m.iter().fold(1.0f64, |a, x| a.max(x.to_f64()))
}

/// Logarithms of factors, a component in each row.
#[derive(Debug)]
pub(crate) struct Logs {
    /// `ln T±`, `K x F`.
    pub(crate) atoms: [DMatrix<f64>; 2],
    /// `ln H`, `K x N`.
    pub(crate) activations: DMatrix<f64>,
}

impl Logs {
    pub(crate) fn of<T: Real>(factors: &Factors<T>) -> Self {
        let ln = |m: &DMatrix<T>| m.map(|x| x.to_f64().ln());
        Self {
            atoms: [&factors.plus, &factors.minus].map(|m| ln(m).transpose()),
            activations: ln(&factors.activations),
        }
    }
}

/// Columns over their largest entry, and its logarithm.
fn scaled(ln: &DMatrix<f64>) -> (DMatrix<f64>, Vec<f64>) {
    let largest: Vec<f64> = (ln.column_iter())
        .map(|c| c.iter().copied().fold(f64::NEG_INFINITY, f64::max))
        .collect();
    let mut over = ln.clone();
    for (mut column, &largest) in over.column_iter_mut().zip(&largest) {
        // A column of zeros has no largest entry.
        let shift = if largest.is_finite() { largest } else { 0.0 };
        column.apply(|x| *x = (*x - shift).exp());
    }
    (over, largest)
}

/// What the pass of [`Signed`] gives, but expected counts `T± ∘ G± Hᵀ` and `H ∘ (T⁺ᵀ G⁺ + T⁻ᵀ G⁻)` in place of sums, in double
/// precision from logarithms. Cost: `O(K)` operations a cell, ten and more times as long.
pub(crate) fn pass<T: Real>(
    data: &Signed<T>,
    replicates: Replicates,
    logs: &Logs,
) -> SignedSums<T> {
    let (k, n) = logs.activations.shape();
    let f = logs.atoms[0].ncols();
    let (h, largest_h) = scaled(&logs.activations);
    let [plus, minus] = logs.atoms.each_ref().map(scaled);
    let sides = [plus, minus];
    // A hidden cell counts its rates: all there are, less those of the observed ones.
    let hidden = f.checked_mul(n) != Some(data.observed());
    let mut left = [DMatrix::<f64>::zeros(k, f), DMatrix::zeros(k, f)];
    let mut right = DMatrix::<f64>::zeros(k, n);
    if hidden {
        let factors = logs.atoms.each_ref().map(|m| m.map(f64::exp));
        let activations = logs.activations.map(f64::exp);
        let sum = activations.column_sum();
        for (left, t) in left.iter_mut().zip(&factors) {
            left.copy_from(t);
            (left.column_iter_mut()).for_each(|mut c| c.component_mul_assign(&sum));
        }
        let sum = factors[0].column_sum() + factors[1].column_sum();
        right.copy_from(&activations);
        (right.column_iter_mut()).for_each(|mut c| c.component_mul_assign(&sum));
    }
    let mut value = CompensatedSum::default();
    let mut shares = [vec![0.0; k], vec![0.0; k]];
    data.for_each(&mut |row, column, v| {
        let mut ln = [0.0; 2];
        for s in 0..2 {
            let (own, h) = (sides[s].0.column(row), h.column(column));
            let products = own.iter().zip(h.iter());
            (shares[s].iter_mut().zip(products)).for_each(|(x, (t, h))| *x = t * h);
            let mut scale = sides[s].1[row] + largest_h[column];
            let mut sum: f64 = shares[s].iter().sum();
            if sum < 1e-280 && scale.is_finite() {
                // Row and column have their largest entries in different components.
                let logs = logs.atoms[s].column(row) + logs.activations.column(column);
                scale = logs.max();
                (shares[s].iter_mut().zip(&logs)).for_each(|(x, ln)| *x = (ln - scale).exp());
                sum = shares[s].iter().sum();
            }
            ln[s] = if sum > 0.0 {
                scale + sum.ln()
            } else {
                f64::NEG_INFINITY
            };
            let over = if sum > 0.0 { sum } else { 1.0 };
            shares[s].iter_mut().for_each(|x| *x /= over);
        }
        let (counts, cell) = explained(replicates, v, ln);
        value += cell;
        for s in 0..2 {
            let seen = if hidden { ln[s].exp() } else { 0.0 };
            let more = counts[s] - seen;
            let into = left[s]
                .column_mut(row)
                .into_iter()
                .zip(right.column_mut(column));
            for ((left, right), share) in into.zip(&shares[s]) {
                *left += more * share;
                *right += more * share;
            }
        }
    });
    let [plus, minus] = left.map(|m| m.transpose().map(narrow));
    SignedSums {
        plus,
        minus,
        right: right.map(narrow),
        value: value.value(),
    }
}

/// A count in the scalar; differences may end a rounding error below 0.
pub(crate) fn narrow<T: Real>(count: f64) -> T {
    T::lit(if count < 0.0 { 0.0 } else { count })
}

/// Expected counts of both sides of a cell and its part of the likelihood, from the logarithms of its rates.
pub(crate) fn explained(replicates: Replicates, v: f64, ln: [f64; 2]) -> ([f64; 2], f64) {
    /// Smaller rates have lost digits.
    const LEAST: f64 = f64::MIN_POSITIVE / f64::EPSILON;
    /// The logarithm of the part of the datum below which its own rate gives ratios that overflow: that of 1e-290.
    const LN_PART: f64 = -667.0;
    let rates @ [p, q] = ln.map(f64::exp);
    let m = replicates.number();
    let (size, own) = (v.abs(), usize::from(v < 0.0));
    if size > 0.0 && (rates[own] < LEAST || ln[own] - size.ln() < LN_PART) {
        // [SKELLAM 1] [SKELLAM 4] with P Q = 0: its own side gives the datum, the other nothing.
        let mut counts = [0.0; 2];
        counts[own] = size;
        let rest = if replicates.is_real() {
            size - size * size.ln()
        } else {
            size * m.ln() - ln_gamma(m * size + 1.0).unwrap_or(f64::NAN) / m
        };
        return (counts, size * ln[own] + rest - (p + q));
    }
    let (ratios, value) = if replicates.is_real() {
        let value = skellam_divergence(v, p, q).map(|d| -d);
        (skellam_limit_ratios(v, p, q), value)
    } else {
        let value = skellam_ln_pmf(m * v, m * p, m * q).map(|ln| ln / m);
        (skellam_ratios(m * v, m * p, m * q), value)
    };
    let (a, b) = ratios.unwrap_or((f64::NAN, f64::NAN));
    ([p * a, q * b], value.unwrap_or(f64::NAN))
}
