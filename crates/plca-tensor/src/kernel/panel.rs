//! Factors as the kernels read them: component index contiguous, rows padded to whole registers.

use nalgebra::DMatrix;

use super::aligned::{Aligned, Pool};
use super::part_rows;
use crate::parallel::{for_each_part, map_in_order, wide};
use crate::simplex::{largest, overall_largest, smallest_positive};
use crate::{Factor, Real};

/// A factor of `rows x k` with `stride >= k` values per row; the padding is zero.
///
/// The values are the factor's times `2^exponent`, chosen so that the largest lies in `[1, 2)`: products
/// over many modes then do not overflow, and powers of two change no bit of the result. Where rows are so small that products of
/// them underflow, [`balance_rows`](Self::balance_rows) gives each an exponent of its own.
#[derive(Debug)]
pub(crate) struct Panel<'a, T> {
    pub(crate) values: Aligned<T>,
    pub(crate) rows: usize,
    pub(crate) k: usize,
    pub(crate) stride: usize,
    pub(crate) exponent: i32,
    /// No positive value is smaller where none is negative.
    least: T,
    /// Buffers for what is added up beside the panels.
    pub(crate) pool: &'a Pool<T>,
}

/// Rows transposed together, so that both sides stay in cache.
const BLOCK: usize = 32;

/// `2^e`, exact, also where it is subnormal or `e` is out of range (then 0 or infinity).
pub(crate) fn pow2<T: Real>(e: i32) -> T {
    if (-1022..=1023).contains(&e) {
        return T::lit(f64::from_bits(((e + 1023) as u64) << 52));
    }
    // In two factors: a negative power is the reciprocal of a positive one, which would overflow below 2^-1023.
    T::lit(2f64.powi(e / 2) * 2f64.powi(e - e / 2))
}

/// `2^e` in two factors of about the same size: a number times both meets neither 0 nor infinity on the way to a product that is
/// neither.
pub(crate) fn pow2_halves<T: Real>(e: i32) -> [T; 2] {
    [pow2(e / 2), pow2(e - e / 2)]
}

/// The exponent of the power of two that brings a positive number into `[1, 2)`, or below 1 if it is subnormal. Read off its bits: a
/// logarithm is rounded, more so of numbers far from 1, and what a power of two changes must not depend on the unit.
pub(crate) fn unit_exponent(x: f64) -> i32 {
    1023 - (x.to_bits() >> 52) as i32
}

/// Exponent that brings `largest` into `[1, 2)`; 0 for 0 and non-finite numbers.
pub(crate) fn balancing_exponent(largest: f64) -> i32 {
    if largest > 0.0 && largest.is_finite() {
        unit_exponent(largest)
    } else {
        0
    }
}

/// Sets to 0 what is below `√TINY` times the largest entry of its row (1e-19 in `f32`, 1e-154 in `f64`). Entries that EM
/// drives to zero would otherwise linger where products are subnormal, on which a processor is a hundred times slower.
/// Returns the smallest positive entry that there was.
#[inline(always)]
fn flush<T: Real>(values: &mut [T], stride: usize) -> T {
    let share = T::TINY.sqrt();
    let smallest = smallest_positive(values);
    if smallest >= largest(values) * share {
        return smallest;
    }
    for row in values.chunks_exact_mut(stride) {
        let least = largest(row) * share;
        for x in row {
            *x = if *x < least { T::zero() } else { *x };
        }
    }
    smallest
}

impl<'a, T: Real> Panel<'a, T> {
    /// Copies a factor, its columns multiplied by `weights` where they are given.
    pub(crate) fn pack(
        factor: Factor<'_, T>,
        weights: Option<&[T]>,
        stride: usize,
        pool: &'a Pool<T>,
    ) -> Self {
        Self::copied(factor, weights, stride, pool, true)
    }

    /// Copies a factor of either sign, whose small entries stay.
    pub(crate) fn signed(factor: &DMatrix<T>, stride: usize, pool: &'a Pool<T>) -> Self {
        Self::copied(Factor::Columns(factor), None, stride, pool, false)
    }

    fn copied(
        factor: Factor<'_, T>,
        weights: Option<&[T]>,
        stride: usize,
        pool: &'a Pool<T>,
        flushed: bool,
    ) -> Self {
        let (rows, k) = (factor.rows(), factor.components());
        let exponent = balancing_exponent(overall_largest(factor.values()).to_f64());
        let exponent = exponent.clamp(-T::MAX_EXPONENT, T::MAX_EXPONENT);
        let scale: T = pow2(exponent);
        let (scales, exponent): (Vec<T>, i32) = match weights {
            Some(weights) => {
                let own = balancing_exponent(overall_largest(weights).to_f64());
                let [a, b] = pow2_halves::<T>(own);
                let scaled = weights.iter().map(|&w| w * a * b * scale);
                (scaled.collect(), exponent + own)
            }
            None => (vec![scale; k], exponent),
        };
        let mut values = pool.take(rows * stride);
        let height = part_rows(stride).next_multiple_of(BLOCK);
        let parts = values.chunks_mut(height * stride).enumerate().collect();
        let least = map_in_order(parts, |(part, values): (usize, &mut [T])| {
            let first = part * height;
            wide(|| {
                let mut least = T::one();
                for (block, out) in values.chunks_mut(BLOCK * stride).enumerate() {
                    let first = first + block * BLOCK;
                    if k < stride {
                        let rows = out.chunks_exact_mut(stride);
                        rows.for_each(|row| row[k..].fill(T::zero()));
                    }
                    match factor {
                        Factor::Columns(m) => {
                            for (z, &scale) in scales.iter().enumerate() {
                                let column = &m.as_slice()[z * rows + first..];
                                for (row, &x) in out.chunks_exact_mut(stride).zip(column) {
                                    row[z] = x * scale;
                                }
                            }
                        }
                        Factor::Rows(m) => {
                            let sources = m.as_slice()[first * k..].chunks_exact(k);
                            for (row, source) in out.chunks_exact_mut(stride).zip(sources) {
                                for ((x, &source), &scale) in
                                    row.iter_mut().zip(source).zip(&scales)
                                {
                                    *x = source * scale;
                                }
                            }
                        }
                    }
                    if flushed {
                        least = least.min(flush(out, stride));
                    }
                }
                least
            })
        });
        Self {
            values,
            rows,
            k,
            stride,
            exponent,
            least: least.into_iter().fold(T::one(), |a, b| a.min(b)),
            pool,
        }
    }

    /// The exponent of the smallest row, by its largest entry: not above 0. Quick where all entries are above `2^enough`.
    pub(crate) fn smallest_row(&self, enough: f64) -> f64 {
        let bound = self.least.to_f64().log2();
        if bound >= enough {
            return bound;
        }
        let rows = self.values.chunks_exact(self.stride);
        let least = wide(|| {
            let rows = rows.map(largest).filter(|x| *x > T::zero());
            rows.fold(T::one(), |least, x| if x < least { x } else { least })
        });
        least.to_f64().log2()
    }

    /// Multiplies every row by the power of two that brings its largest entry into `[1, 2)`; returns the exponents.
    pub(crate) fn balance_rows(&mut self) -> Vec<i32> {
        let stride = self.stride;
        let parts = self.values.chunks_mut(part_rows(stride) * stride).collect();
        let balance = |row: &mut [T]| {
            let exponent = balancing_exponent(largest(row).to_f64());
            let [a, b] = pow2_halves::<T>(exponent);
            row.iter_mut().for_each(|x| *x = *x * a * b);
            exponent
        };
        let exponents = map_in_order(parts, |part: &mut [T]| -> Vec<i32> {
            wide(|| part.chunks_exact_mut(stride).map(balance).collect())
        });
        exponents.concat()
    }

    /// Room for sums of its rows, with any content; none where they are not wanted.
    pub(crate) fn room(&self, wanted: bool) -> Aligned<T> {
        self.pool.take(if wanted { self.values.len() } else { 0 })
    }

    /// The padded row `i`.
    pub(crate) fn row(&self, i: usize) -> &[T] {
        &self.values[i * self.stride..][..self.stride]
    }

    /// `self ∘ sums` times both scales, in the layout of `like`.
    pub(crate) fn times(&self, sums: &[T], like: Factor<'_, T>, scales: [T; 2]) -> DMatrix<T> {
        let own = &self.values;
        self.unpack(sums, own, like, |sum, own| {
            sum * scales[0] * own * scales[1]
        })
    }

    /// [`times`](Self::times) where memory is scarce: the product takes the place of the sums, and the panel is given up before
    /// the result is made.
    pub(crate) fn times_in_place(
        &mut self,
        mut sums: Aligned<T>,
        like: Factor<'_, T>,
        scales: [T; 2],
    ) -> DMatrix<T> {
        let own = std::mem::replace(&mut self.values, Aligned::none());
        let size = part_rows(1);
        for_each_part(&mut sums, size, |part, sums| {
            let own = &own[part * size..];
            wide(|| {
                let both = sums.iter_mut().zip(own);
                both.for_each(|(sum, &own)| *sum = *sum * scales[0] * own * scales[1]);
            });
        });
        drop(own);
        self.unpack(&sums, &sums, like, |product, _| product)
    }

    /// `scale * sums` in the layout of `like`.
    pub(crate) fn alone(&self, sums: &[T], like: Factor<'_, T>, scale: T) -> DMatrix<T> {
        self.unpack(sums, sums, like, |sum, _| sum * scale)
    }

    /// `value(sum, own)` in the layout of `like`.
    fn unpack(
        &self,
        sums: &[T],
        own: &[T],
        like: Factor<'_, T>,
        value: impl Fn(T, T) -> T + Sync,
    ) -> DMatrix<T> {
        let (rows, k, stride) = (self.rows, self.k, self.stride);
        let (nrows, ncols) = match like {
            Factor::Columns(_) => (rows, k),
            Factor::Rows(_) => (k, rows),
        };
        let mut out = DMatrix::zeros(nrows, ncols);
        let target = out.as_mut_slice();
        let (sums, own) = (&sums[..rows * stride], &own[..rows * stride]);
        match like {
            Factor::Columns(_) => {
                let height = part_rows(stride).next_multiple_of(BLOCK);
                let mut parts: Vec<Vec<&mut [T]>> = vec![];
                parts.resize_with(rows.div_ceil(height), || Vec::with_capacity(k));
                for column in target.chunks_exact_mut(rows) {
                    let segments = parts.iter_mut().zip(column.chunks_mut(height));
                    segments.for_each(|(part, segment)| part.push(segment));
                }
                let parts = parts.into_iter().enumerate().collect();
                map_in_order(parts, |(part, mut columns): (usize, Vec<&mut [T]>)| {
                    let at = part * height * stride;
                    let blocks = sums[at..].chunks(BLOCK * stride);
                    let blocks = blocks.zip(own[at..].chunks(BLOCK * stride));
                    wide(|| {
                        let height = columns[0].len();
                        for (first, (sums, own)) in (0..height).step_by(BLOCK).zip(blocks) {
                            let last = (first + BLOCK).min(height);
                            for (z, column) in columns.iter_mut().enumerate() {
                                for (i, x) in column[first..last].iter_mut().enumerate() {
                                    *x = value(sums[i * stride + z], own[i * stride + z]);
                                }
                            }
                        }
                    });
                });
            }
            Factor::Rows(_) => {
                let height = part_rows(stride).next_multiple_of(BLOCK);
                for_each_part(target, height * k, |part, target| {
                    let at = part * height * stride;
                    let rows = sums[at..]
                        .chunks_exact(stride)
                        .zip(own[at..].chunks_exact(stride));
                    wide(|| {
                        for (column, (sums, own)) in target.chunks_exact_mut(k).zip(rows) {
                            for ((x, &sum), &own) in column.iter_mut().zip(sums).zip(own) {
                                *x = value(sum, own);
                            }
                        }
                    });
                });
            }
        }
        out
    }
}
