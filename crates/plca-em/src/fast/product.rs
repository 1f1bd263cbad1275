//! The parameters that every separable model shares.

use std::sync::Arc;

use nalgebra::DMatrix;
use plca_tensor::parallel::{for_each_part, wide};
use plca_tensor::{Factor, Real};

/// `Y[x] = Σ_z n_z Π_j F_j[x_j, z]`, the columns of `F_j` summing to 1; `Σ_z n_z` is the mass in units of the data's.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(bound(
        serialize = "T: serde::Serialize",
        deserialize = "T: serde::Deserialize<'de>"
    ))
)]
pub struct Product<T: Real> {
    /// `F_j`, transposed: `K x I_j`. What products have in common they share.
    pub(crate) factors: Vec<Arc<DMatrix<T>>>,
    /// `n`.
    pub(crate) scale: Vec<f64>,
}

/// Rows that one thread takes at a time.
pub(super) const PART: usize = 512;

impl<T: Real> Product<T> {
    /// The product of any non-negative blocks `K x I_j`, times `scale`.
    pub(super) fn new(blocks: Vec<DMatrix<T>>, scale: Vec<f64>) -> Self {
        let mut product = Self {
            factors: blocks.into_iter().map(Arc::new).collect(),
            scale,
        };
        for mode in 0..product.factors.len() {
            let block = product.weighted(mode);
            product.set(mode, block);
        }
        product
    }

    /// Nothing, in place of a product that was taken.
    pub(super) fn none() -> Self {
        Self {
            factors: Vec::new(),
            scale: Vec::new(),
        }
    }

    pub(super) fn rows(&self) -> Vec<Factor<'_, T>> {
        self.factors.iter().map(|f| Factor::Rows(f)).collect()
    }

    /// `n_z F_j[i, z]`: what the row problems of a mode are about.
    pub(super) fn weighted(&self, mode: usize) -> DMatrix<T> {
        let factor = &self.factors[mode];
        let mut block = zeros(factor);
        each(&mut block, [factor; 2], &self.scale, |_, f, _, n| f * n);
        block
    }

    /// Takes a factor and the scale from a weighted block. A component without mass keeps its factor.
    pub(super) fn set(&mut self, mode: usize, mut block: DMatrix<T>) {
        self.scale = sums(&block);
        let share = |x: f64, f: f64, _: f64, n: f64| if n > 0.0 { x / n } else { f };
        each(&mut block, [&self.factors[mode]; 2], &self.scale, share);
        self.factors[mode] = Arc::new(block);
    }

    /// A weighted block carried on by `β` times its way from this product: `new + β (new - old)`; what left the orthant becomes a
    /// tenth of `new`. Entries of which no cell was seen, where `linear` is 0, stay: nothing would bring them back.
    pub(super) fn carried_on(
        &self,
        mode: usize,
        block: &DMatrix<T>,
        linear: &DMatrix<T>,
        beta: f64,
    ) -> DMatrix<T> {
        let mut carried = zeros(block);
        each(
            &mut carried,
            [block, &self.factors[mode]],
            &self.scale,
            |_, new, f, n| {
                // [AG alg. 1] [SPEC 10.1] Y = N + β (N - N_old)
                let ahead = new + beta * (new - f * n);
                if ahead > 0.0 { ahead } else { 0.1 * new }
            },
        );
        if linear.shape() == block.shape() {
            each(
                &mut carried,
                [block, linear],
                &self.scale,
                |ahead, new, s, _| {
                    if s > 0.0 { ahead } else { new }
                },
            );
        }
        carried
    }
}

/// Zeros in the shape of a block.
fn zeros<T: Real>(block: &DMatrix<T>) -> DMatrix<T> {
    DMatrix::zeros(block.nrows(), block.ncols())
}

/// Sets every entry of a `K x I` block from itself, the same entries of two others, and a number for its component.
pub(super) fn each<T: Real>(
    block: &mut DMatrix<T>,
    others: [&DMatrix<T>; 2],
    numbers: &[f64],
    value: impl Fn(f64, f64, f64, f64) -> f64 + Sync + Send,
) {
    let k = numbers.len();
    let [a, b] = others.map(DMatrix::as_slice);
    for_each_row(block, |i, row| {
        let (a, b) = (&a[i * k..][..k], &b[i * k..][..k]);
        for (((x, a), b), &n) in row.iter_mut().zip(a).zip(b).zip(numbers) {
            *x = T::lit(value(x.to_f64(), a.to_f64(), b.to_f64(), n));
        }
    });
}

/// Visits the rows of a factor, the columns of a `K x I` block, with their indices, on all threads.
pub(super) fn for_each_row<T: Real>(
    block: &mut DMatrix<T>,
    visit: impl Fn(usize, &mut [T]) + Sync + Send,
) {
    let k = block.nrows();
    for_each_part(block.as_mut_slice(), PART * k, |part, rows| {
        wide(|| {
            for (i, row) in rows.chunks_exact_mut(k).enumerate() {
                visit(part * PART + i, row);
            }
        });
    });
}

/// Sums over the columns of a `K x I` block.
pub(super) fn sums<T: Real>(block: &DMatrix<T>) -> Vec<f64> {
    let sums: Vec<T> = Factor::Rows(block).component_sums();
    sums.into_iter().map(|s| s.to_f64()).collect()
}

/// Columns written together, and how many rows of them at a time: both sides stay in cache.
const COLUMNS: usize = 8;
const ROWS: usize = 64;

/// Writes a `K x I` block, every component times its number, as `I x K`.
pub(super) fn transpose_to<T: Real>(block: &DMatrix<T>, numbers: &[f64], to: &mut DMatrix<T>) {
    let rows = to.nrows();
    for_each_part(to.as_mut_slice(), COLUMNS * rows, |part, columns| {
        for first in (0..rows).step_by(ROWS) {
            let numbers = numbers.iter().enumerate().skip(part * COLUMNS);
            for (column, (z, n)) in columns.chunks_exact_mut(rows).zip(numbers) {
                for (i, x) in column.iter_mut().enumerate().skip(first).take(ROWS) {
                    *x = T::lit(block[(z, i)].to_f64() * n);
                }
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_many_parts_are_written_whole() {
        let block = DMatrix::from_fn(2 * COLUMNS + 3, 2 * ROWS + 5, |z, i| (100 * z + i) as f64);
        let numbers: Vec<f64> = (0..block.nrows()).map(|z| z as f64 - 4.0).collect();
        let mut to = DMatrix::from_element(block.ncols(), block.nrows(), f64::NAN);
        transpose_to(&block, &numbers, &mut to);
        let expected = DMatrix::from_fn(to.nrows(), to.ncols(), |i, z| block[(z, i)] * numbers[z]);
        assert_eq!(to, expected);
    }
}
