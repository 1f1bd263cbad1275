//! The parameters that every separable model shares.

use nalgebra::DMatrix;
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

impl<T: Real> Product<T> {
    /// Any non-negative blocks `K x I_j`; the product has the scale of theirs.
    pub(super) fn new(blocks: impl IntoIterator<Item = DMatrix<T>>, scale: Vec<f64>) -> Self {
        let factors = blocks.into_iter().collect();
        let mut product = Self { factors, scale };
        for mode in 0..product.factors.len() {
            let block = product.weighted(mode);
            product.set(mode, &block);
        }
        product
    }

    pub(super) fn rows(&self) -> Vec<Factor<'_, T>> {
        self.factors.iter().map(Factor::Rows).collect()
    }

    /// `n_z F_j[i, z]`: what the row problems of a mode are about.
    pub(super) fn weighted(&self, mode: usize) -> DMatrix<T> {
        let mut block = self.factors[mode].clone();
        for mut column in block.column_iter_mut() {
            for (x, &n) in column.iter_mut().zip(&self.scale) {
                *x = T::lit(x.to_f64() * n);
            }
        }
        block
    }

    /// Takes a factor and the scale from a weighted block. A component without mass keeps its factor.
    pub(super) fn set(&mut self, mode: usize, block: &DMatrix<T>) {
        self.scale = sums(block);
        let pairs = self.factors[mode]
            .column_iter_mut()
            .zip(block.column_iter());
        for (mut factor, block) in pairs {
            for ((f, &x), &n) in factor.iter_mut().zip(block.iter()).zip(&self.scale) {
                if n > 0.0 {
                    *f = T::lit(x.to_f64() / n);
                }
            }
        }
    }
}

/// Sums over the columns of a `K x I` block.
pub(super) fn sums<T: Real>(block: &DMatrix<T>) -> Vec<f64> {
    let mut sums = vec![0.0; block.nrows()];
    for column in block.column_iter() {
        sums.iter_mut()
            .zip(column.iter())
            .for_each(|(s, x)| *s += x.to_f64());
    }
    sums
}

/// `new + β (new - old)`; what left the orthant becomes a tenth of `new`.
pub(super) fn extrapolate<T: Real>(old: &DMatrix<T>, new: &DMatrix<T>, beta: f64) -> DMatrix<T> {
    new.zip_map(old, |new, old| {
        let (new, old) = (new.to_f64(), old.to_f64());
        // [AG alg. 1] [SPEC 10.1] Y = N + β (N - N_old)
        let ahead = new + beta * (new - old);
        T::lit(if ahead > 0.0 { ahead } else { 0.1 * new })
    })
}
