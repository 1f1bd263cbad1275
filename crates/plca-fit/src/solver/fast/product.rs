//! The parameters that every separable model shares.

use std::sync::Arc;

use nalgebra::DMatrix;
use plca_tensor::parallel::{for_each_part, wide};
use plca_tensor::{Factor, Real};

/// The parameters that every separable model shares: a sum of products of distributions.
///
/// ```math
/// Y[x] = \sum_z n_z \prod_j F_j[z, x_j], \qquad \sum_i F_j[z, i] = 1
/// ```
///
/// `F_j` is the factor of mode `j`, `K x I_j`; `Σ_z n_z` is the mass in units of the data's.
#[derive(Clone, Debug, PartialEq)]
pub struct Product<T: Real> {
    /// `F_j`, transposed: `K x I_j`. What products have in common they share.
    pub(super) factors: Vec<Arc<DMatrix<T>>>,
    /// `n`.
    pub(super) scale: Vec<f64>,
}

/// Rows that one thread takes at a time.
pub(super) const PART_ROWS: usize = 512;

impl<T: Real> Product<T> {
    /// The product of any non-negative blocks `K x I_j`, times `scale`.
    pub fn new(blocks: Vec<DMatrix<T>>, scale: Vec<f64>) -> Self {
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

    /// Whether an entry may be so far below the largest of its row that the E-step takes it for 0.
    pub(super) fn is_faint(&self) -> bool {
        // A model may put the weights into any factor: an entry counts with its weight, the largest without.
        let limit = T::TINY.to_f64().sqrt() * 1e6;
        let most = self.scale.iter().copied().fold(0.0, f64::max);
        self.factors
            .iter()
            .flat_map(|f| f.column_iter())
            .any(|row| {
                let least = row.max().to_f64() * most * limit;
                let entries = row.iter().zip(&self.scale);
                let mut weighted = entries.map(|(x, n)| x.to_f64() * n);
                weighted.any(|x| x > 0.0 && x < least)
            })
    }

    /// The factor of a mode, a `K x I` matrix whose rows sum to 1.
    pub fn factor(&self, mode: usize) -> &DMatrix<T> {
        &self.factors[mode]
    }

    /// The mass of every component, `n`: `K` numbers in units of the sum of the data.
    pub fn scale(&self) -> &[f64] {
        &self.scale
    }

    /// Writes the factor of a mode, `K x I`, every component times its number.
    pub fn weigh(&self, mode: usize, numbers: &[f64], to: &mut DMatrix<T>) {
        each(to, [&self.factors[mode]], numbers, |_, [x], n| x * n);
    }

    pub(super) fn rows(&self) -> Vec<Factor<'_, T>> {
        self.factors.iter().map(|f| Factor::Rows(f)).collect()
    }

    /// `n_z F_j[i, z]`: what the row problems of a mode are about.
    pub(super) fn weighted(&self, mode: usize) -> DMatrix<T> {
        let factor = &self.factors[mode];
        let mut block = zeros(factor);
        each(&mut block, [factor], &self.scale, |_, [f], n| f * n);
        block
    }

    /// Takes a factor and the scale from a weighted block. A component without mass keeps its factor.
    pub(super) fn set(&mut self, mode: usize, mut block: DMatrix<T>) {
        self.scale = sums(&block);
        let share = |x: f64, [f]: [f64; 1], n: f64| if n > 0.0 { x / n } else { f };
        each(&mut block, [&self.factors[mode]], &self.scale, share);
        self.factors[mode] = Arc::new(block);
    }

    /// Gives the entries of a weighted block that no observed cell depends on, where `linear` is 0, the share of their component that
    /// they have in this product. Any share has the same likelihood; this one bounds the masses, which else grow from step to step where
    /// one mode raises what the next one lowers.
    pub(super) fn keep_unseen(&self, mode: usize, linear: &DMatrix<T>, block: &mut DMatrix<T>) {
        if linear.shape() != block.shape() {
            return;
        }
        let factor = &self.factors[mode];
        let k = block.nrows();
        // Masses of this block, and the shares that the same entries have in this product.
        let (mut seen, mut shares) = (vec![0.0; k], vec![0.0; k]);
        let columns = block.column_iter().zip(factor.column_iter());
        for ((w, f), s) in columns.zip(linear.column_iter()) {
            for z in 0..k {
                if s[z] > T::zero() {
                    seen[z] += w[z].to_f64();
                    shares[z] += f[z].to_f64();
                }
            }
        }
        let mass = |z: usize| match seen[z] / shares[z] {
            mass if mass > 0.0 && mass.is_finite() => mass,
            _ => self.scale[z],
        };
        let masses: Vec<f64> = (0..k).map(mass).collect();
        let share = |w: f64, [f, s]: [f64; 2], n: f64| if s > 0.0 { w } else { f * n };
        each(block, [factor, linear], &masses, share);
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
        let (to, factor) = (&mut carried, &self.factors[mode]);
        // [AG alg. 1] [SPEC 10.1] Y = N + β (N - N_old)
        let ahead = |new: f64, f: f64, n: f64| {
            let ahead = new + beta * (new - f * n);
            if ahead > 0.0 { ahead } else { 0.1 * new }
        };
        if linear.shape() == block.shape() {
            each(
                to,
                [block, factor, linear],
                &self.scale,
                |_, [new, f, s], n| {
                    if s > 0.0 { ahead(new, f, n) } else { new }
                },
            );
        } else {
            each(to, [block, factor], &self.scale, |_, [new, f], n| {
                ahead(new, f, n)
            });
        }
        carried
    }
}

/// Zeros in the shape of a block.
fn zeros<T: Real>(block: &DMatrix<T>) -> DMatrix<T> {
    DMatrix::zeros(block.nrows(), block.ncols())
}

/// Sets every entry of a `K x I` block from itself, the same entries of others, and the number of its component.
pub(super) fn each<T: Real, const N: usize>(
    block: &mut DMatrix<T>,
    others: [&DMatrix<T>; N],
    numbers: &[f64],
    value: impl Fn(f64, [f64; N], f64) -> f64 + Sync + Send,
) {
    let k = numbers.len();
    debug_assert!(others.iter().all(|other| other.shape() == block.shape()) && k == block.nrows());
    for_each_row(block, |i, row| {
        let others = others.map(|other| &other.as_slice()[i * k..][..k]);
        for (z, (x, &n)) in row.iter_mut().zip(numbers).enumerate() {
            *x = T::lit(value(x.to_f64(), others.map(|other| other[z].to_f64()), n));
        }
    });
}

/// Visits the rows of a factor, the columns of a `K x I` block, with their indices, on all threads.
pub(super) fn for_each_row<T: Real>(
    block: &mut DMatrix<T>,
    visit: impl Fn(usize, &mut [T]) + Sync + Send,
) {
    let k = block.nrows();
    for_each_part(block.as_mut_slice(), PART_ROWS * k, |part, rows| {
        wide(|| {
            for (i, row) in rows.chunks_exact_mut(k).enumerate() {
                visit(part * PART_ROWS + i, row);
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
const TILE_COLUMNS: usize = 4;
const TILE_ROWS: usize = 64;

/// Writes a `K x I` block, every component times its number, as `I x K`.
pub fn transpose_to<T: Real>(block: &DMatrix<T>, numbers: &[f64], to: &mut DMatrix<T>) {
    debug_assert_eq!((to.ncols(), to.nrows()), block.shape());
    debug_assert_eq!(numbers.len(), block.nrows());
    let rows = to.nrows();
    for_each_part(to.as_mut_slice(), TILE_COLUMNS * rows, |part, columns| {
        for first in (0..rows).step_by(TILE_ROWS) {
            let numbers = numbers.iter().enumerate().skip(part * TILE_COLUMNS);
            for (column, (z, n)) in columns.chunks_exact_mut(rows).zip(numbers) {
                for (i, x) in column.iter_mut().enumerate().skip(first).take(TILE_ROWS) {
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
        let block = DMatrix::from_fn(2 * TILE_COLUMNS + 3, 2 * TILE_ROWS + 5, |z, i| {
            (100 * z + i) as f64
        });
        let numbers: Vec<f64> = (0..block.nrows()).map(|z| z as f64 - 4.0).collect();
        let mut to = DMatrix::from_element(block.ncols(), block.nrows(), f64::NAN);
        transpose_to(&block, &numbers, &mut to);
        let expected = DMatrix::from_fn(to.nrows(), to.ncols(), |i, z| block[(z, i)] * numbers[z]);
        assert_eq!(to, expected);
    }
}
