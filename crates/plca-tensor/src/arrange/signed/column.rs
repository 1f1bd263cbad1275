//! A single column of data of either sign: lanes run along its rows.

use nalgebra::DMatrix;

use super::{SignedModel, SignedSums, SignedWanted, SplitRule};
use crate::Real;
use crate::parallel::wide;

/// Sums that do not wait for each other.
const LANES: usize = 16;

/// The cells of a column, zeros included; NaN marks a hidden one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Column<T> {
    pub(super) values: Vec<T>,
    pub(super) observed: usize,
}

impl<T: Real> Column<T> {
    pub(super) fn new(values: Vec<T>) -> Self {
        let observed = values.iter().filter(|x| !x.to_f64().is_nan()).count();
        Self { values, observed }
    }

    pub(super) fn for_each(&self, visit: &mut dyn FnMut(usize, usize, f64)) {
        for (row, value) in self.values.iter().enumerate() {
            let value = value.to_f64();
            if !value.is_nan() {
                visit(row, 0, value);
            }
        }
    }

    /// Hides the cells for which `hidden` says so.
    pub(super) fn hide(&mut self, hidden: &mut dyn FnMut(usize, usize, f64) -> bool) {
        for (row, value) in self.values.iter_mut().enumerate() {
            let seen = value.to_f64();
            if !seen.is_nan() && hidden(row, 0, seen) {
                *value = T::lit(f64::NAN);
                self.observed -= 1;
            }
        }
    }

    pub(super) fn pass(
        &self,
        model: &SignedModel<'_, T>,
        rule: &dyn SplitRule<T>,
        wanted: SignedWanted,
    ) -> SignedSums<T> {
        let (rows, k) = model.plus.shape();
        let h = model.right.as_slice();
        let mut sides = [model.plus, model.minus].map(|side| wide(|| product(side, h)));
        let [p, q] = &mut sides;
        let value = match wanted.value {
            true => rule.value(&self.values, p, q),
            false => 0.0,
        };
        if wanted.left || wanted.right {
            rule.multipliers(&self.values, p, q);
        }
        let outer = |g: &[T]| match wanted.left {
            true => DMatrix::from_fn(rows, k, |f, z| g[f] * h[z]),
            false => DMatrix::zeros(0, 0),
        };
        let right = match wanted.right {
            true => wide(|| {
                let sums = (0..k).map(|z| {
                    let pairs = [(model.plus, &*p), (model.minus, &*q)];
                    let [a, b] =
                        pairs.map(|(side, g)| dot(&side.as_slice()[z * rows..][..rows], g));
                    a + b
                });
                DMatrix::from_iterator(k, 1, sums)
            }),
            false => DMatrix::zeros(0, 0),
        };
        SignedSums {
            plus: outer(p),
            minus: outer(q),
            right,
            value,
        }
    }
}

/// `A h`.
#[inline(always)]
fn product<T: Real>(side: &DMatrix<T>, h: &[T]) -> Vec<T> {
    let mut sums = vec![T::zero(); side.nrows()];
    for (column, &h) in side.as_slice().chunks_exact(sums.len().max(1)).zip(h) {
        sums.iter_mut().zip(column).for_each(|(s, &a)| *s += a * h);
    }
    sums
}

#[inline(always)]
fn dot<T: Real>(a: &[T], b: &[T]) -> T {
    let mut sums = [T::zero(); LANES];
    let (whole, rest) = a.as_chunks::<LANES>();
    let (other, other_rest) = b.as_chunks::<LANES>();
    for (a, b) in whole.iter().zip(other) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    for (sum, (&a, &b)) in sums.iter_mut().zip(rest.iter().zip(other_rest)) {
        *sum += a * b;
    }
    sums.into_iter().fold(T::zero(), |all, sum| all + sum)
}
