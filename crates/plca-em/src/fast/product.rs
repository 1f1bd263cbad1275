//! The parameters that every separable model shares.

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
    /// `F_j`, transposed: `K x I_j`.
    pub(crate) factors: Vec<DMatrix<T>>,
    /// `n`.
    pub(crate) scale: Vec<f64>,
}

/// Rows that one thread takes at a time.
const PART: usize = 512;

impl<T: Real> Product<T> {
    /// The product of any non-negative blocks `K x I_j`, times `scale`.
    pub(super) fn new(blocks: Vec<DMatrix<T>>, scale: Vec<f64>) -> Self {
        let mut product = Self {
            factors: blocks,
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
        self.factors.iter().map(Factor::Rows).collect()
    }

    /// `n_z F_j[i, z]`: what the row problems of a mode are about.
    pub(super) fn weighted(&self, mode: usize) -> DMatrix<T> {
        let mut block = self.factors[mode].clone();
        each(&mut block, &self.factors[mode], &self.scale, |f, _, n| {
            f * n
        });
        block
    }

    /// Takes a factor and the scale from a weighted block. A component without mass keeps its factor.
    pub(super) fn set(&mut self, mode: usize, mut block: DMatrix<T>) {
        self.scale = sums(&block);
        let share = |x: f64, f: f64, n: f64| if n > 0.0 { x / n } else { f };
        each(&mut block, &self.factors[mode], &self.scale, share);
        self.factors[mode] = block;
    }

    /// Carries a block on by `β` times its way from this product: `new + β (new - old)`; what left the orthant becomes a tenth of
    /// `new`. Entries of which no cell was seen, where `linear` is 0, stay: nothing would bring them back.
    pub(super) fn carry_on(
        &self,
        mode: usize,
        block: &mut DMatrix<T>,
        linear: &DMatrix<T>,
        beta: f64,
    ) {
        let stays = (linear.shape() == block.shape()).then(|| block.clone());
        each(block, &self.factors[mode], &self.scale, |new, f, n| {
            // [AG alg. 1] [SPEC 10.1] Y = N + β (N - N_old)
            let ahead = new + beta * (new - f * n);
            if ahead > 0.0 { ahead } else { 0.1 * new }
        });
        let stays = stays.iter().flat_map(DMatrix::iter);
        for ((x, &new), &s) in block.iter_mut().zip(stays).zip(linear.iter()) {
            if s <= T::zero() {
                *x = new;
            }
        }
    }
}

/// Sets every entry of a `K x I` block from itself, the same entry of another, and a number for its component.
fn each<T: Real>(
    block: &mut DMatrix<T>,
    other: &DMatrix<T>,
    numbers: &[f64],
    value: impl Fn(f64, f64, f64) -> f64 + Sync + Send,
) {
    let k = numbers.len();
    let other = other.as_slice();
    for_each_part(block.as_mut_slice(), PART * k, |part, block| {
        let other = other[part * PART * k..].chunks_exact(k);
        wide(|| {
            for (column, other) in block.chunks_exact_mut(k).zip(other) {
                for ((x, y), &n) in column.iter_mut().zip(other).zip(numbers) {
                    *x = T::lit(value(x.to_f64(), y.to_f64(), n));
                }
            }
        });
    });
}

/// Sums over the columns of a `K x I` block.
pub(super) fn sums<T: Real>(block: &DMatrix<T>) -> Vec<f64> {
    let sums: Vec<T> = Factor::Rows(block).component_sums();
    sums.into_iter().map(|s| s.to_f64()).collect()
}
