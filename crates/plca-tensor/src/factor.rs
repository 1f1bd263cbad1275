//! Factors of a latent-variable model as the kernels are given them.

use nalgebra::DMatrix;

use crate::Real;
use crate::kernel::part_rows;
use crate::parallel::{map_in_order, wide};
use crate::simplex::sum;

/// Columns summed together.
const BLOCK: usize = 128;

/// A non-negative factor of size `I x K`, in either of the two layouts that models keep.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_tensor::Factor;
/// let basis = dmatrix![0.5, 0.0; 0.25, 1.0; 0.25, 0.0];           // 3 x 2: P(x | z)
/// let mixture = dmatrix![0.9, 0.4, 0.5; 0.1, 0.6, 0.5];           // 2 x 3: P(z | y)
/// let (a, b) = (Factor::Columns(&basis), Factor::Rows(&mixture));
/// assert_eq!((a.rows(), a.components()), (b.rows(), b.components()));
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Factor<'a, T> {
    /// `I x K`: column `z` belongs to component `z`, as in `P(x_j | z)`.
    Columns(&'a DMatrix<T>),
    /// `K x I`: row `z` belongs to component `z`, as in `P(z | x_j)`.
    Rows(&'a DMatrix<T>),
}

impl<'a, T: Real> Factor<'a, T> {
    /// The size `I` of the mode.
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_tensor::Factor;
    /// let m = dmatrix![0.5, 0.25; 0.25, 0.75; 0.25, 0.0];            // P(x | z): three indices, two components
    /// let factor = Factor::Columns(&m);
    /// assert_eq!(factor.rows(), 3);
    /// ```
    pub fn rows(&self) -> usize {
        match self {
            Self::Columns(m) => m.nrows(),
            Self::Rows(m) => m.ncols(),
        }
    }

    /// Number of components `K`.
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_tensor::Factor;
    /// let m = dmatrix![0.5, 0.25; 0.25, 0.75; 0.25, 0.0];            // P(x | z): three indices, two components
    /// let factor = Factor::Columns(&m);
    /// assert_eq!(factor.components(), 2);
    /// ```
    pub fn components(&self) -> usize {
        match self {
            Self::Columns(m) => m.ncols(),
            Self::Rows(m) => m.nrows(),
        }
    }

    /// All entries, in memory order.
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_tensor::Factor;
    /// let m = dmatrix![0.5, 0.25; 0.25, 0.75; 0.25, 0.0];            // P(x | z): three indices, two components
    /// let factor = Factor::Columns(&m);
    /// assert_eq!(factor.values()[..3], [0.5, 0.25, 0.25]);
    /// ```
    pub fn values(&self) -> &'a [T] {
        match self {
            Self::Columns(m) | Self::Rows(m) => m.as_slice(),
        }
    }

    /// The entry of data index `i` and component `z`.
    ///
    /// # Panics
    ///
    /// If `i` is not below [`rows`](Self::rows), or `z` not below [`components`](Self::components).
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_tensor::Factor;
    /// let m = dmatrix![0.5, 0.25; 0.25, 0.75; 0.25, 0.0];            // P(x | z): three indices, two components
    /// let factor = Factor::Columns(&m);
    /// assert_eq!(factor.get(1, 0), 0.25);
    /// assert_eq!(Factor::Rows(&m.transpose()).get(1, 0), 0.25);
    /// ```
    pub fn get(&self, i: usize, z: usize) -> T {
        match self {
            Self::Columns(m) => m[(i, z)],
            Self::Rows(m) => m[(z, i)],
        }
    }

    /// The sum over the data indices, for each component.
    ///
    /// ```math
    /// \sum_i F[i, z], \qquad z = 0, \dots, K - 1
    /// ```
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_tensor::Factor;
    /// let m = dmatrix![0.5, 0.25; 0.25, 0.75; 0.25, 0.0];            // P(x | z): three indices, two components
    /// let factor = Factor::Columns(&m);
    /// assert_eq!(factor.component_sums(), [1.0, 1.0]);
    /// ```
    pub fn component_sums(&self) -> Vec<T> {
        match self {
            Self::Columns(m) => {
                let rows = m.nrows().max(1);
                let parts = m.as_slice().chunks(rows * part_rows(rows)).collect();
                let sums = map_in_order(parts, |part: &[T]| -> Vec<T> {
                    wide(|| part.chunks_exact(rows).map(sum).collect())
                });
                sums.concat()
            }
            Self::Rows(m) => {
                let k = m.nrows();
                // Without components there is nothing to cut, and pieces of size 0 are none.
                let parts = m.as_slice().chunks((k * part_rows(k)).max(1)).collect();
                let partial = map_in_order(parts, |part: &[T]| wide(|| row_sums(part, k)));
                row_sums(&partial.concat(), k)
            }
        }
    }
}

/// `Σ_i x[i k + z]`, in blocks, so that rounding errors do not grow with the number of columns.
#[inline(always)]
fn row_sums<T: Real>(columns: &[T], k: usize) -> Vec<T> {
    let mut total = vec![T::zero(); k];
    let mut part = vec![T::zero(); k];
    for block in columns.chunks((BLOCK * k).max(1)) {
        part.fill(T::zero());
        for column in block.chunks_exact(k) {
            part.iter_mut().zip(column).for_each(|(p, &x)| *p += x);
        }
        total.iter_mut().zip(&part).for_each(|(t, &p)| *t += p);
    }
    total
}

/// A sum of `K` rank-one terms, the form that all models have for the E-step; nothing need be normalised.
///
/// ```math
/// P[x] = \sum_z w_z \prod_j F_j[x_j, z]
/// ```
///
/// `x` is a cell, `w` are the `K` weights, and `F_j` is the factor of mode `j`, `I_j x K`; all are non-negative.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_tensor::{Factor, Cp};
/// let (a, b) = (dmatrix![0.5, 1.0; 0.5, 0.0], dmatrix![0.25, 0.5; 0.75, 0.5]);
/// let model = Cp { weights: Some(&[0.5, 0.5]), factors: &[Factor::Columns(&a), Factor::Columns(&b)] };
/// assert_eq!(model.cell(&[0, 0]), 0.5 * 0.5 * 0.25 + 0.5 * 1.0 * 0.5);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Cp<'a, T> {
    /// The weights of the components, `w_z`, `K` numbers; `None` means all 1.
    pub weights: Option<&'a [T]>,
    /// The factors, `F_j`, one for every mode, each `I_j x K`.
    pub factors: &'a [Factor<'a, T>],
}

impl<T: Real> Cp<'_, T> {
    /// Number of components `K`.
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_tensor::{Factor, Cp};
    /// let (a, b) = (dmatrix![0.5, 1.0; 0.5, 0.0], dmatrix![0.25, 0.5; 0.75, 0.5]);
    /// let model = Cp { weights: Some(&[0.5, 0.5]), factors: &[Factor::Columns(&a), Factor::Columns(&b)] };
    /// assert_eq!(model.components(), 2);
    /// ```
    pub fn components(&self) -> usize {
        self.factors.first().map_or(0, Factor::components)
    }

    /// The value of the model in one cell, in `f64`. Cost `O(N K)` for `N` modes.
    ///
    /// ```math
    /// P[x] = \sum_z w_z \prod_j F_j[x_j, z]
    /// ```
    ///
    /// As in the [E-step](crate::Data::e_step), an entry below `√TINY` times the largest of its row counts as 0.
    ///
    /// # Panics
    ///
    /// If `index` has not one entry for every factor, or one that is not below the size of its mode.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_tensor::{Factor, Cp};
    /// let (a, b) = (dmatrix![0.5, 1.0; 0.5, 0.0], dmatrix![0.25, 0.5; 0.75, 0.5]);
    /// let model = Cp { weights: Some(&[0.5, 0.5]), factors: &[Factor::Columns(&a), Factor::Columns(&b)] };
    /// assert_eq!(model.cell(&[1, 1]), 0.1875);                        // component 1 gives row 1 nothing
    /// ```
    pub fn cell(&self, index: &[usize]) -> f64 {
        let least = self.least(index);
        // [LV eq. 11] [SPEC 0] P[x] = Σ_z P(z) Π_j P(x_j | z)
        (0..self.components())
            .map(|z| self.product(index, z, &least))
            .sum()
    }

    /// The value that one component gives to one cell.
    ///
    /// ```math
    /// P[x, z] = w_z \prod_j F_j[x_j, z]
    /// ```
    ///
    /// Cost `O(N K)`: what counts as 0, see [`cell`](Self::cell), depends on the other components.
    ///
    /// # Panics
    ///
    /// As [`cell`](Self::cell); and if there is no component `z`.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_tensor::{Factor, Cp};
    /// let (a, b) = (dmatrix![0.5, 1.0; 0.5, 0.0], dmatrix![0.25, 0.5; 0.75, 0.5]);
    /// let model = Cp { weights: Some(&[0.5, 0.5]), factors: &[Factor::Columns(&a), Factor::Columns(&b)] };
    /// assert_eq!([model.joint(&[0, 0], 0), model.joint(&[0, 0], 1)], [0.0625, 0.25]);
    /// ```
    pub fn joint(&self, index: &[usize], z: usize) -> f64 {
        self.product(index, z, &self.least(index))
    }

    /// [`joint`](Self::joint) of every component, in `into`.
    pub(crate) fn joints(&self, index: &[usize], into: &mut Vec<f64>) {
        let least = self.least(index);
        into.clear();
        into.extend((0..self.components()).map(|z| self.product(index, z, &least)));
    }

    /// `F_j[i, z]` as kernels see it, the weights in the first mode.
    fn entry(&self, j: usize, i: usize, z: usize) -> f64 {
        let weight = self.weights.filter(|_| j == 0);
        self.factors[j].get(i, z).to_f64() * weight.map_or(1.0, |w| w[z].to_f64())
    }

    /// Of every mode, the smallest entry of the index's row that counts.
    fn least(&self, index: &[usize]) -> Vec<f64> {
        assert_eq!(index.len(), self.factors.len(), "one index for every mode");
        let share = T::TINY.sqrt().to_f64();
        let largest = |(j, &i): (usize, &usize)| {
            let row = (0..self.components()).map(|z| self.entry(j, i, z));
            share * row.fold(0.0, f64::max)
        };
        index.iter().enumerate().map(largest).collect()
    }

    fn product(&self, index: &[usize], z: usize, least: &[f64]) -> f64 {
        let rows = index.iter().zip(least).enumerate();
        let entries = rows.map(|(j, (&i, &least))| {
            let x = self.entry(j, i, z);
            if x < least { 0.0 } else { x }
        });
        entries.product()
    }

    /// The sum of the model over all cells. Cost `O(K Σ I_j)`.
    ///
    /// ```math
    /// \sum_x P[x] = \sum_z w_z \prod_j \sum_i F_j[i, z]
    /// ```
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_tensor::{Factor, Cp};
    /// let (a, b) = (dmatrix![0.5, 1.0; 0.5, 0.0], dmatrix![0.25, 0.5; 0.75, 0.5]);
    /// let model = Cp { weights: Some(&[0.5, 0.5]), factors: &[Factor::Columns(&a), Factor::Columns(&b)] };
    /// assert_eq!(model.mass(), 1.0);
    /// ```
    pub fn mass(&self) -> f64 {
        let sums: Vec<_> = self.factors.iter().map(Factor::component_sums).collect();
        let mass = |z: usize| {
            let weight = self.weights.map_or(1.0, |w| w[z].to_f64());
            sums.iter().fold(weight, |p, s| p * s[z].to_f64())
        };
        (0..self.components()).map(mass).sum()
    }
}
