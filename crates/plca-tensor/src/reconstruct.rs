//! All cells of a product of factors.

use nalgebra::{DMatrix, DMatrixViewMut};

use crate::parallel::for_each_part;
use crate::{Cp, DataError, Factor, Real};

/// Rows of the last mode that one matrix product makes.
const PART_ROWS: usize = 64;

impl<T: Real> Cp<'_, T> {
    /// All cells of the model times a number, in row-major order.
    ///
    /// ```math
    /// Y[x] = \text{scale} \cdot \sum_z w_z \prod_j F_j[x_j, z]
    /// ```
    ///
    /// Cost `O(K Π I_j)`, memory besides the cells `O(K I_last)`. The bits do not depend on the number of threads.
    ///
    /// # Errors
    ///
    /// [`DataError::TooLarge`] for more cells than memory holds.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_tensor::{Factor, Cp};
    /// let (a, b) = (dmatrix![0.5; 0.5], dmatrix![0.25; 0.75]);
    /// let model = Cp { weights: None, factors: &[Factor::Columns(&a), Factor::Columns(&b)] };
    /// assert_eq!(model.dense(8.0)?, [1.0, 3.0, 1.0, 3.0]);
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    pub fn dense(&self, scale: f64) -> Result<Vec<T>, DataError> {
        let shape: Vec<usize> = self.factors.iter().map(Factor::rows).collect();
        let cells = shape.iter().try_fold(1usize, |n, &m| n.checked_mul(m));
        let mut values: Vec<T> = Vec::new();
        let reserved = cells.map(|cells| (cells, values.try_reserve_exact(cells)));
        let Some((cells, Ok(()))) = reserved else {
            return Err(DataError::TooLarge { shape });
        };
        values.resize(cells, T::zero());
        let Some((last, others)) = self.factors.split_last() else {
            return Ok(values);
        };
        let last = match last {
            Factor::Columns(m) => (*m).clone(),
            Factor::Rows(m) => m.transpose(),
        };
        let (n, k) = last.shape();
        if n == 0 {
            return Ok(values);
        }
        let scale = T::lit(scale);
        for_each_part(&mut values, PART_ROWS * n, |part, cells| {
            let rows = cells.len() / n;
            let product = DMatrix::from_fn(k, rows, |z, row| {
                let mut rest = part * PART_ROWS + row;
                let weight = self.weights.map_or(scale, |w| scale * w[z]);
                let factors = others.iter().zip(&shape).rev();
                factors.fold(weight, |product, (factor, &size)| {
                    let i = rest % size;
                    rest /= size;
                    product * factor.get(i, z)
                })
            });
            // [LV eq. 11] [SPEC 0] P[x] = Σ_z P(z) Π_j P(x_j | z)
            DMatrixViewMut::from_slice(cells, n, rows).gemm(T::one(), &last, &product, T::zero());
        });
        Ok(values)
    }
}
