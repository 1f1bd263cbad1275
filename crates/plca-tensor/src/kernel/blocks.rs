//! Work on a matrix cut into a grid of blocks, each with sums of its rows and of its columns.
//!
//! The grid is a function of the data's shape, the number of components and the kind of pass, never of the threads. What a block adds
//! up starts at 0 and is added to the sums of its rows in the order of the columns, and to those of its columns in the order of the
//! rows, whoever computes it: the bits do not depend on the number of threads.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::aligned::Aligned;
use crate::Real;
use crate::parallel::{InOrder, wide};

/// Multiplications and additions that are worth a block of their own: about 100 µs.
const WORTH: f64 = 3e6;
/// Blocks at most, or some more where they do not divide evenly: four for each of 64 threads.
const BLOCKS: usize = 256;

/// How a matrix is cut into blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cut {
    /// Rows and columns of the matrix.
    size: [usize; 2],
    /// Rows and columns of a block; the last ones may have fewer.
    pub(crate) block: [usize; 2],
}

impl Cut {
    /// As many blocks as `work` multiplications and additions are worth, so cut that they have the fewest sums, `weights` numbers for each
    /// row and each column. A side is cut into `size / least` blocks at most, rounded up, which begin at multiples of `units`.
    pub(crate) fn new(
        size: [usize; 2],
        [least, units]: [[usize; 2]; 2],
        weights: [usize; 2],
        work: f64,
    ) -> Self {
        let blocks = ((work / WORTH) as usize).clamp(1, BLOCKS);
        let most = [0, 1].map(|side| size[side].div_ceil(least[side]).clamp(1, blocks));
        let along = |across: usize| blocks.div_ceil(across).min(most[1]);
        let wanted = blocks.min(most[0] * most[1]);
        let sums = |&across: &usize| {
            let [rows, columns] = [0, 1].map(|side| size[side] as f64 * weights[side] as f64);
            along(across) as f64 * rows + across as f64 * columns
        };
        let across = (1..=most[0])
            .filter(|&across| across * along(across) >= wanted)
            .min_by(|a, b| sums(a).total_cmp(&sums(b)))
            .unwrap_or(1);
        let parts = [across, along(across)];
        let block = [0, 1].map(|side| {
            let even = size[side].div_ceil(parts[side]).max(1);
            even.next_multiple_of(units[side])
        });
        Self { size, block }
    }

    /// Blocks across the rows, and along the columns.
    pub(crate) fn counts(&self) -> [usize; 2] {
        [0, 1].map(|side| self.size[side].div_ceil(self.block[side]))
    }

    /// The rows, or the columns, of the blocks of this number.
    pub(crate) fn range(&self, side: usize, at: usize) -> Range<usize> {
        let first = at * self.block[side];
        first..(first + self.block[side]).min(self.size[side])
    }
}

/// Adds one block's sums to those of the blocks before it.
pub(crate) fn add<T: Real>(sums: &mut [T], part: &[T]) {
    wide(|| sums.iter_mut().zip(part).for_each(|(s, &p)| *s += p));
}

/// The sum of the parts of some blocks, in their order.
#[derive(Debug)]
pub(crate) struct Total<T> {
    parts: InOrder<Aligned<T>>,
    sum: Aligned<T>,
}

impl<T: Real> Total<T> {
    /// This number of empty ones.
    pub(crate) fn empty(count: usize) -> Vec<Mutex<Self>> {
        let empty = |_| {
            let (parts, sum) = (InOrder::new(), Aligned::none());
            Mutex::new(Self { parts, sum })
        };
        (0..count).map(empty).collect()
    }

    pub(crate) fn put(&mut self, at: usize, part: Aligned<T>) {
        let sum = &mut self.sum;
        self.parts.put(at, part, |at, part| match at {
            0 => *sum = part,
            _ => add(sum, &part),
        });
    }

    /// The sum, once all of the parts are in it.
    pub(crate) fn take(&mut self, parts: usize) -> Option<Aligned<T>> {
        (self.parts.passed_on() == parts).then(|| std::mem::replace(&mut self.sum, Aligned::none()))
    }
}

/// Nothing that is locked is held while other tasks are waited for: a thread that waits may take one that needs the same lock.
pub(crate) fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // A thread that panicked takes the whole pass with it.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_the_matrix_and_are_worth_their_sums() {
        for (rows, columns, k) in [
            (1, 1, 1),
            (1025, 3000, 40),
            (361, 2429, 50),
            (200, 40_000, 20),
            (3, 1_000_000, 7),
            (1_000_000, 3, 7),
            (5000, 5000, 100),
        ] {
            let work = 6.0 * (rows * columns * k) as f64;
            let cut = Cut::new([rows, columns], [[96, 48], [96, 8]], [1, 1], work);
            let [across, along] = cut.counts();
            assert!(across * along <= BLOCKS + BLOCKS / 8, "{cut:?}");
            for (side, (count, size)) in [(across, rows), (along, columns)].into_iter().enumerate()
            {
                let ends: Vec<_> = (0..count).map(|at| cut.range(side, at)).collect();
                assert_eq!((ends[0].start, ends[count - 1].end), (0, size));
                assert!(
                    ends.windows(2)
                        .all(|w| w[0].end == w[1].start && !w[1].is_empty())
                );
            }
            // What the sums are read and written for is at least ten times as much.
            let sums = (along * rows + across * columns) as f64 * k as f64;
            assert!(across * along == 1 || sums * 10.0 < work, "{cut:?}");
        }
    }

    #[test]
    fn parts_are_added_in_their_order() {
        let pool = super::super::aligned::Pool::<f64>::default();
        let part = |x: f64| {
            let mut part = pool.take(1);
            part[0] = x;
            part
        };
        // In another order 1 would be lost.
        let total = Total::empty(1).pop().unwrap();
        let mut total = total.into_inner().unwrap();
        for (at, x) in [(2, 1.0), (1, -1e300), (0, 1e300)] {
            assert!(total.take(3).is_none());
            total.put(at, part(x));
        }
        assert_eq!(total.take(3).unwrap()[0], 1.0);
    }
}
