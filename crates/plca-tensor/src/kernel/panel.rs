//! Factors as the kernels read them: component index contiguous, rows padded to whole registers.

use nalgebra::DMatrix;

use super::aligned::Aligned;
use crate::{Factor, Real};

/// A factor of `rows x k` with `stride >= k` values per row; the padding is zero.
///
/// The values are the factor's times `2^exponent`, chosen so that the largest lies in `[1, 2)`: products
/// over many modes then neither overflow nor underflow, and powers of two change no bit of the result.
#[derive(Debug)]
pub(crate) struct Panel<T> {
    pub(crate) values: Aligned<T>,
    pub(crate) rows: usize,
    pub(crate) k: usize,
    pub(crate) stride: usize,
    pub(crate) exponent: i32,
}

/// Rows transposed together, so that both sides stay in cache.
const BLOCK: usize = 32;

/// `2^e`, exact, also where it is subnormal or `e` is out of range (then 0 or infinity).
pub(crate) fn pow2<T: Real>(e: i32) -> T {
    T::lit(2f64.powi(e))
}

/// Exponent that brings `largest` into `[1, 2)`; 0 for 0 and non-finite numbers.
pub(crate) fn balancing_exponent(largest: f64) -> i32 {
    if largest > 0.0 && largest.is_finite() {
        -(largest.log2().floor() as i32)
    } else {
        0
    }
}

/// Sets to 0 what is below `√TINY` times the largest entry of its row (1e-19 in `f32`, 1e-154 in `f64`). Entries that EM
/// drives to zero would otherwise linger where products are subnormal, on which a processor is a hundred times slower.
fn flush<T: Real>(values: &mut [T], stride: usize) {
    let share = T::TINY.sqrt();
    for row in values.chunks_exact_mut(stride) {
        let largest = row
            .iter()
            .fold(T::zero(), |a, &x| if x > a { x } else { a });
        let least = largest * share;
        row.iter_mut()
            .for_each(|x| *x = if *x < least { T::zero() } else { *x });
    }
}

impl<T: Real> Panel<T> {
    /// Copies a factor, its columns multiplied by `weights` where they are given.
    pub(crate) fn pack(factor: Factor<'_, T>, weights: Option<&[T]>, stride: usize) -> Self {
        let (rows, k) = (factor.rows(), factor.components());
        let largest = factor
            .values()
            .iter()
            .fold(T::zero(), |a, &x| if x > a { x } else { a });
        let exponent =
            balancing_exponent(largest.to_f64()).clamp(-T::MAX_EXPONENT, T::MAX_EXPONENT);
        let scale: T = pow2(exponent);
        let mut values = Aligned::zeros(rows * stride);
        match factor {
            Factor::Columns(m) => {
                let source = m.as_slice();
                for (block, out) in values.chunks_mut(BLOCK * stride).enumerate() {
                    let first = block * BLOCK;
                    for z in 0..k {
                        let w = weights.map_or(scale, |w| w[z] * scale);
                        let column = &source[z * rows + first..];
                        for (row, &x) in out.chunks_exact_mut(stride).zip(column) {
                            row[z] = x * w;
                        }
                    }
                }
            }
            Factor::Rows(m) => {
                for (row, source) in values
                    .chunks_exact_mut(stride)
                    .zip(m.as_slice().chunks_exact(k))
                {
                    for z in 0..k {
                        row[z] = source[z] * weights.map_or(scale, |w| w[z] * scale);
                    }
                }
            }
        }
        flush(&mut values, stride);
        Self {
            values,
            rows,
            k,
            stride,
            exponent,
        }
    }

    /// The padded row `i`.
    pub(crate) fn row(&self, i: usize) -> &[T] {
        &self.values[i * self.stride..][..self.stride]
    }

    /// `scale * self ∘ sums` (or `scale * sums` alone) in the layout of `like`.
    pub(crate) fn unpack(
        &self,
        sums: &[T],
        like: Factor<'_, T>,
        scale: T,
        times_factor: bool,
    ) -> DMatrix<T> {
        let (rows, k, stride) = (self.rows, self.k, self.stride);
        let value = |at: usize| {
            if times_factor {
                sums[at] * self.values[at] * scale
            } else {
                sums[at] * scale
            }
        };
        match like {
            Factor::Columns(_) => {
                let mut out = DMatrix::zeros(rows, k);
                let target = out.as_mut_slice();
                for first in (0..rows).step_by(BLOCK) {
                    let last = (first + BLOCK).min(rows);
                    for z in 0..k {
                        for (i, x) in
                            (first..last).zip(&mut target[z * rows + first..z * rows + last])
                        {
                            *x = value(i * stride + z);
                        }
                    }
                }
                out
            }
            Factor::Rows(_) => {
                let mut out = DMatrix::zeros(k, rows);
                for (i, column) in out.as_mut_slice().chunks_exact_mut(k).enumerate() {
                    for (z, x) in column.iter_mut().enumerate() {
                        *x = value(i * stride + z);
                    }
                }
                out
            }
        }
    }
}
