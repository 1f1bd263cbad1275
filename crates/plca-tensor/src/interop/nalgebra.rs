//! `nalgebra` views and matrices; a whole matrix becomes a tensor beside [`DenseTensor`] itself.

use nalgebra::{DMatrix, DMatrixView};

use crate::data::matrix_shape;
use crate::{DataError, DenseTensor, Real};

impl<T: Real> TryFrom<DMatrixView<'_, T>> for DenseTensor<T> {
    type Error = DataError;

    /// Copies the view once.
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_tensor::DenseTensor;
    /// let m = dmatrix![1.0, 2.0, 3.0; 4.0, 5.0, 6.0];
    /// let v = DenseTensor::try_from(m.view((0, 1), (2, 2)))?;
    /// assert_eq!(v.get(&[1, 0]), 5.0);
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    fn try_from(view: DMatrixView<'_, T>) -> Result<Self, DataError> {
        Self::try_from(view.into_owned())
    }
}

impl<T: Real> TryFrom<DenseTensor<T>> for DMatrix<T> {
    type Error = DataError;

    /// A tensor of order 2 as a matrix.
    ///
    /// ```
    /// use nalgebra::{DMatrix, dmatrix};
    /// use plca_tensor::{DenseTensor, Order};
    /// let v = DenseTensor::new(vec![2, 2], vec![1.0, 2.0, 3.0, 4.0], Order::RowMajor)?;
    /// assert_eq!(DMatrix::try_from(v)?, dmatrix![1.0, 2.0; 3.0, 4.0]);
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    fn try_from(tensor: DenseTensor<T>) -> Result<Self, DataError> {
        let (shape, values, _) = tensor.into_parts();
        let [rows, columns] = matrix_shape(&shape)?;
        Ok(Self::from_row_iterator(rows, columns, values))
    }
}
