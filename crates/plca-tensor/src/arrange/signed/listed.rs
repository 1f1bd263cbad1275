//! Data of either sign of which few cells were observed, as a list.

use nalgebra::DMatrix;

use super::super::visit;
use super::{SignedModel, SignedSums, SignedWanted, SplitRule};
use crate::kernel::aligned::Pool;
use crate::kernel::signed::{pack_left, unpack_left};
use crate::kernel::split;
use crate::parallel::{map_in_order, wide};
use crate::{CompensatedSum, Data, DataError, Real, above_rounding};

/// Cells whose rates are judged together.
const BATCH: usize = 64;
/// Groups of columns, each with its own row sums.
const GROUPS: usize = 8;
/// Fewer multiplications than this are not worth a group of their own.
const LEAST: usize = 1 << 16;

/// The observed cells of a matrix of either sign, zeros included; all others are hidden.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Listed<T> {
    pub(super) shape: (usize, usize),
    /// Where the cells of each column start, and the number of all.
    starts: Vec<usize>,
    rows: Vec<u32>,
    pub(super) values: Vec<T>,
}

impl<T: Real> Listed<T> {
    /// Of data whose mask lists the observed cells.
    pub(super) fn new([rows, columns]: [usize; 2], data: &dyn Data<T>) -> Result<Self, DataError> {
        let mut cells = Vec::new();
        data.visit_mask(&mut |index| cells.push((index[1] as u32, index[0] as u32, T::zero())))?;
        cells.sort_unstable_by_key(|&(column, row, _)| (column, row));
        visit(data, &mut |index, x| {
            let at = (index[1] as u32, index[0] as u32);
            if let Ok(at) = cells.binary_search_by_key(&at, |&(column, row, _)| (column, row)) {
                cells[at].2 = x;
            }
        })?;
        let mut starts = vec![0; columns + 1];
        for &(column, _, _) in &cells {
            starts[column as usize + 1] += 1;
        }
        for column in 0..columns {
            starts[column + 1] += starts[column];
        }
        Ok(Self {
            shape: (rows, columns),
            starts,
            rows: cells.iter().map(|&(_, row, _)| row).collect(),
            values: cells.into_iter().map(|(_, _, value)| value).collect(),
        })
    }

    /// Bounds of column groups of about equal numbers of cells.
    fn bounds(&self, k: usize) -> Vec<usize> {
        let groups = (self.values.len().saturating_mul(k) / LEAST).clamp(1, GROUPS);
        let bound = |g: usize| match g {
            0 => 0,
            g if g == groups => self.shape.1,
            g => self
                .starts
                .partition_point(|&s| s < g * self.values.len() / groups),
        };
        (0..=groups).map(bound).collect()
    }

    /// What the cells of some columns add to what hidden cells would: `G - 1` in place of `G`.
    fn add(
        &self,
        columns: std::ops::Range<usize>,
        left: &[T],
        right: &[T],
        rule: &dyn SplitRule<T>,
        wanted: SignedWanted,
        sums: &mut [T],
    ) -> (Vec<T>, f64) {
        let k = left.len() / (2 * self.shape.0);
        let mut rows = vec![T::zero(); if wanted.left { left.len() } else { 0 }];
        let mut value = CompensatedSum::default();
        let (mut plus, mut minus) = ([T::zero(); BATCH], [T::zero(); BATCH]);
        let update = wanted.left || wanted.right;
        for (at, column) in columns.enumerate() {
            let cells = self.starts[column]..self.starts[column + 1];
            let h = &right[column * k..][..k];
            for first in cells.clone().step_by(BATCH) {
                let cells = first..cells.end.min(first + BATCH);
                let (values, indices) = (&self.values[cells.clone()], &self.rows[cells]);
                let (plus, minus) = (&mut plus[..values.len()], &mut minus[..values.len()]);
                for (i, &row) in indices.iter().enumerate() {
                    let row = &left[row as usize * 2 * k..][..2 * k];
                    let dot = |side: &[T]| {
                        let terms = side.iter().zip(h).map(|(&a, &h)| a * h);
                        terms.fold(T::zero(), |sum, x| sum + x)
                    };
                    (plus[i], minus[i]) = (dot(&row[..k]), dot(&row[k..]));
                }
                if wanted.value {
                    value += rule.value(values, plus, minus);
                }
                if !update {
                    continue;
                }
                rule.multipliers(values, plus, minus);
                for (i, &row) in indices.iter().enumerate() {
                    let place = row as usize * 2 * k;
                    let (a, b) = (plus[i] - T::one(), minus[i] - T::one());
                    if wanted.right {
                        let (p, m) = left[place..][..2 * k].split_at(k);
                        let into = sums[at * k..][..k].iter_mut();
                        into.zip(p)
                            .zip(m)
                            .for_each(|((s, &p), &m)| *s += p * a + m * b);
                    }
                    if wanted.left {
                        let (p, m) = rows[place..][..2 * k].split_at_mut(k);
                        p.iter_mut().zip(h).for_each(|(s, &h)| *s += a * h);
                        m.iter_mut().zip(h).for_each(|(s, &h)| *s += b * h);
                    }
                }
            }
        }
        (rows, value.value())
    }

    pub(super) fn hide(&mut self, hidden: &mut dyn FnMut(usize, usize, f64) -> bool) {
        let (mut kept, mut first) = (0, 0);
        for column in 0..self.shape.1 {
            for at in first..self.starts[column + 1] {
                let (row, x) = (self.rows[at], self.values[at]);
                if !hidden(row as usize, column, x.to_f64()) {
                    (self.rows[kept], self.values[kept]) = (row, x);
                    kept += 1;
                }
            }
            first = std::mem::replace(&mut self.starts[column + 1], kept);
        }
        self.rows.truncate(kept);
        self.values.truncate(kept);
    }

    pub(super) fn for_each(&self, visit: &mut dyn FnMut(usize, usize, f64)) {
        for column in 0..self.shape.1 {
            for at in self.starts[column]..self.starts[column + 1] {
                visit(self.rows[at] as usize, column, self.values[at].to_f64());
            }
        }
    }

    pub(super) fn pass(
        &self,
        model: &SignedModel<'_, T>,
        rule: &dyn SplitRule<T>,
        wanted: SignedWanted,
    ) -> SignedSums<T> {
        let (f, n) = self.shape;
        let k = model.right.nrows();
        let left = pack_left(model, &Pool::none());
        // What every cell would add were it hidden: G = 1.
        let whole = [
            model.plus.row_sum() + model.minus.row_sum(),
            model.right.column_sum().transpose(),
        ];
        let [of_columns, of_rows] = &whole;
        let mut right = DMatrix::zeros(0, 0);
        if wanted.right {
            right = DMatrix::from_fn(k, n, |z, _| of_columns[z]);
        }
        let bounds = self.bounds(k);
        let groups = bounds.windows(2).map(|ends| ends[0]..ends[1]);
        let groups = groups.zip(split(right.as_mut_slice(), &bounds, k));
        let parts = map_in_order(groups.collect(), |(columns, sums)| {
            wide(|| self.add(columns, &left, model.right.as_slice(), rule, wanted, sums))
        });
        let mut value = CompensatedSum::default();
        let mut rows = Vec::new();
        if wanted.left {
            rows = (0..f * 2 * k).map(|at| of_rows[at % k]).collect();
        }
        for (part, v) in parts {
            value += v;
            rows.iter_mut().zip(part).for_each(|(s, p)| *s += p);
        }
        for (sums, whole) in [(&mut rows[..], of_rows), (right.as_mut_slice(), of_columns)] {
            for sums in sums.chunks_exact_mut(k) {
                let sums = sums.iter_mut().zip(whole.iter());
                sums.for_each(|(sum, &whole)| *sum = above_rounding(*sum, whole));
            }
        }
        let [plus, minus] = unpack_left(&rows, f, k);
        SignedSums {
            plus,
            minus,
            right,
            value: value.value(),
        }
    }
}
