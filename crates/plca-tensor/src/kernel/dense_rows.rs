//! Rows of a mode of dense data, read where they lie.

use std::ops::Range;

use super::coordinate::Lender;
use super::dense::Grid;
use crate::Real;

/// A mode of dense data as others go through it.
#[derive(Clone, Copy, Debug)]
struct Mode {
    /// Its place among the other modes.
    at: usize,
    size: usize,
    /// Between neighbours in memory.
    step: usize,
}

/// Cells of a row that are copied before it is the next row's turn, where rows are interleaved: both sides stay in the first-level cache.
const LINE: usize = 8;

/// The cells of dense data, row by row of one mode.
#[derive(Debug)]
pub(crate) struct DenseRows<'a, T> {
    grid: Grid<'a, T>,
    own: Mode,
    /// The other modes, the last one fastest in a row.
    others: Vec<Mode>,
}

impl<'a, T: Real> DenseRows<'a, T> {
    /// Rows in whose cells the last of the other modes runs fastest.
    pub(crate) fn new(grid: Grid<'a, T>, mode: usize) -> Self {
        let order = grid.shape.len();
        let step = |m: usize| grid.shape[m + 1..].iter().product();
        let of = |at: usize, m: usize| Mode {
            at,
            size: grid.shape[m],
            step: step(m),
        };
        let others = (0..order).filter(|&m| m != mode).enumerate();
        let others = others.map(|(at, m)| of(at, m)).collect();
        Self {
            grid,
            own: of(0, mode),
            others,
        }
    }

    /// Whether neighbouring rows lie side by side, not the cells of a row: then some rows are read in the time of one.
    pub(crate) fn are_interleaved(&self) -> bool {
        (self.others.last()).is_some_and(|fastest| self.own.step < fastest.step)
    }

    /// The fastest of the other modes, and the place in memory and the index of the first cell of every line along it.
    #[inline(always)]
    fn lines(&self, mut line: impl FnMut(usize, &[u32])) {
        let (_, slow) = match self.others.split_last() {
            Some(both) => both,
            None => return line(0, &[]),
        };
        let mut index = vec![0u32; self.others.len()];
        loop {
            let place = |m: &Mode| index[m.at] as usize * m.step;
            line(slow.iter().map(place).sum(), &index);
            let ended = slow.iter().rev().all(|m| {
                index[m.at] = (index[m.at] + 1) % m.size as u32;
                index[m.at] == 0
            });
            if ended {
                return;
            }
        }
    }

    fn fastest(&self) -> Mode {
        let one = Mode {
            at: 0,
            size: 1,
            step: 0,
        };
        self.others.last().copied().unwrap_or(one)
    }

    /// Copies all cells of these rows, 0 where one is hidden; each padded with zeros to `stride`.
    #[inline(always)]
    pub(crate) fn copy(&self, rows: Range<usize>, to: &mut [T], stride: usize) {
        let Mode { size, step, .. } = self.fastest();
        let part = match self.are_interleaved() {
            true => LINE,
            false => size,
        };
        let mut done = 0;
        self.lines(|first, _| {
            for from in (0..size).step_by(part) {
                let part = part.min(size - from);
                for (r, i) in rows.clone().enumerate() {
                    let place = first + i * self.own.step + from * step;
                    let line = self.grid.values[place..].iter().step_by(step.max(1));
                    let to = to[r * stride + done + from..][..part].iter_mut();
                    to.zip(line).for_each(|(to, &x)| {
                        let none = x.is_nan() || x == T::zero();
                        *to = if none { T::zero() } else { x };
                    });
                }
            }
            done += size;
        });
        for row in to.chunks_exact_mut(stride.max(1)).take(rows.len()) {
            row[done..].fill(T::zero());
        }
    }

    /// Visits the cells of these rows that are neither hidden nor 0: the row, its value, and its place along a line whose first index is given.
    fn visit(&self, rows: Range<usize>, mut each: impl FnMut(usize, T, usize, &[u32])) {
        let Mode { size, step, .. } = self.fastest();
        let interleaved = self.are_interleaved();
        self.lines(|first, index| {
            let mut cell = |r: usize, q: usize| {
                let x = self.grid.values[first + (rows.start + r) * self.own.step + q * step];
                if !x.is_nan() && x != T::zero() {
                    each(r, x, q, index);
                }
            };
            if interleaved {
                (0..size).for_each(|q| (0..rows.len()).for_each(|r| cell(r, q)));
            } else {
                (0..rows.len()).for_each(|r| (0..size).for_each(|q| cell(r, q)));
            }
        });
    }
}

impl<T: Real> Lender<T> for DenseRows<'_, T> {
    fn lend(&self, rows: Range<usize>, indices: &mut Vec<u32>, values: &mut Vec<T>) {
        let (others, fastest) = (self.others.len(), self.fastest());
        let mut next = vec![0; rows.len()];
        self.visit(rows.clone(), |r, _, _, _| next[r] += 1);
        let mut end = values.len();
        for next in &mut next {
            (*next, end) = (end, end + *next);
        }
        values.resize(end, T::zero());
        indices.resize(end * others, 0);
        self.visit(rows, |r, x, q, index| {
            let at = next[r];
            next[r] += 1;
            values[at] = x;
            if others > 0 {
                let own = &mut indices[at * others..][..others];
                own.copy_from_slice(index);
                own[fastest.at] = q as u32;
            }
        });
    }
}
