//! Factors as the kernels read them: component index contiguous, rows padded to whole registers.

use nalgebra::DMatrix;

use super::aligned::Aligned;
use super::lanes::wide;
use crate::simplex::largest;
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
#[inline(always)]
fn flush<T: Real>(values: &mut [T], stride: usize) {
    let share = T::TINY.sqrt();
    for row in values.chunks_exact_mut(stride) {
        let least = largest(row) * share;
        for x in row {
            *x = if *x < least { T::zero() } else { *x };
        }
    }
}

impl<T: Real> Panel<T> {
    /// Copies a factor, its columns multiplied by `weights` where they are given.
    pub(crate) fn pack(factor: Factor<'_, T>, weights: Option<&[T]>, stride: usize) -> Self {
        let (rows, k) = (factor.rows(), factor.components());
        let mut values = Aligned::zeros(rows * stride);
        let exponent = wide(|| {
            let exponent = balancing_exponent(largest(factor.values()).to_f64());
            let exponent = exponent.clamp(-T::MAX_EXPONENT, T::MAX_EXPONENT);
            let scale: T = pow2(exponent);
            let scales: Vec<T> = match weights {
                Some(weights) => weights.iter().map(|&w| w * scale).collect(),
                None => vec![scale; k],
            };
            match factor {
                Factor::Columns(m) => {
                    let source = m.as_slice();
                    for (block, out) in values.chunks_mut(BLOCK * stride).enumerate() {
                        for (z, &scale) in scales.iter().enumerate() {
                            let column = &source[z * rows + block * BLOCK..];
                            for (row, &x) in out.chunks_exact_mut(stride).zip(column) {
                                row[z] = x * scale;
                            }
                        }
                        flush(out, stride);
                    }
                }
                Factor::Rows(m) => {
                    let sources = m.as_slice().chunks_exact(k);
                    for (row, source) in values.chunks_exact_mut(stride).zip(sources) {
                        for ((x, &source), &scale) in row.iter_mut().zip(source).zip(&scales) {
                            *x = source * scale;
                        }
                        flush(row, stride);
                    }
                }
            }
            exponent
        });
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
        let (nrows, ncols) = match like {
            Factor::Columns(_) => (rows, k),
            Factor::Rows(_) => (k, rows),
        };
        let mut out = DMatrix::zeros(nrows, ncols);
        let target = out.as_mut_slice();
        let (sums, own) = (&sums[..rows * stride], &self.values[..rows * stride]);
        let value = |at: usize| {
            if times_factor {
                sums[at] * own[at] * scale
            } else {
                sums[at] * scale
            }
        };
        wide(|| match like {
            Factor::Columns(_) => {
                for first in (0..rows).step_by(BLOCK) {
                    let last = (first + BLOCK).min(rows);
                    for z in 0..k {
                        let column = &mut target[z * rows + first..z * rows + last];
                        for (i, x) in (first..last).zip(column) {
                            *x = value(i * stride + z);
                        }
                    }
                }
            }
            Factor::Rows(_) => {
                let rows = sums.chunks_exact(stride).zip(own.chunks_exact(stride));
                for (column, (sums, own)) in target.chunks_exact_mut(k).zip(rows) {
                    for ((x, &sum), &own) in column.iter_mut().zip(sums).zip(own) {
                        *x = if times_factor {
                            sum * own * scale
                        } else {
                            sum * scale
                        };
                    }
                }
            }
        });
        out
    }
}
