//! `nalgebra_sparse` matrices.

use nalgebra_sparse::{CooMatrix, CscMatrix, CsrMatrix};

use crate::data::matrix_shape;
use crate::{Coordinates, Data, DataError, Real, SparseTensor};

fn coordinates<'a, T: Real>(
    (rows, columns): (usize, usize),
    entries: impl Iterator<Item = (usize, usize, &'a T)>,
) -> Result<Coordinates<T>, DataError> {
    let mut all = Coordinates::empty(&[rows, columns]);
    if rows.max(columns) > u32::MAX as usize {
        return Err(DataError::too_large(&all.shape));
    }
    entries.for_each(|(i, j, &x)| all.push(&[i, j], x));
    Ok(all)
}

macro_rules! convert {
    ($matrix:ident, $name:literal) => {
        impl<T: Real> TryFrom<&$matrix<T>> for Coordinates<T> {
            type Error = DataError;

            #[doc = concat!("The stored entries of a ", $name, " matrix, explicit zeros included.")]
            fn try_from(m: &$matrix<T>) -> Result<Self, DataError> {
                coordinates((m.nrows(), m.ncols()), m.triplet_iter())
            }
        }

        impl<T: Real> TryFrom<&$matrix<T>> for SparseTensor<T> {
            type Error = DataError;

            #[doc = concat!("A ", $name, " matrix arranged for the kernels; duplicates are summed.")]
            ///
            /// ```
            /// use nalgebra::dmatrix;
            #[doc = concat!("use nalgebra_sparse::", stringify!($matrix), ";")]
            /// use plca_tensor::{Data, SparseTensor};
            /// let dense = dmatrix![0.0, 0.0; 0.0, 0.0; 0.0, 4.0];
            #[doc = concat!("let v = SparseTensor::try_from(&", stringify!($matrix), "::from(&dense))?;")]
            /// assert_eq!((v.shape(), v.total()), (&[3, 2][..], 4.0));
            /// # Ok::<(), plca_tensor::DataError>(())
            /// ```
            fn try_from(m: &$matrix<T>) -> Result<Self, DataError> {
                Self::new(m.try_into()?)
            }
        }
    };
}

convert!(CsrMatrix, "compressed-row");
convert!(CscMatrix, "compressed-column");
convert!(CooMatrix, "coordinate");

impl<T: Real> TryFrom<&SparseTensor<T>> for CooMatrix<T> {
    type Error = DataError;

    /// The stored entries of a tensor of order 2, duplicates merged; the compressed forms are made from these. Which cells are hidden is
    /// not kept: [`Data::visit_mask`] lists them.
    ///
    /// ```
    /// use nalgebra_sparse::{CooMatrix, CsrMatrix};
    /// use plca_tensor::{Coordinates, SparseTensor};
    /// let entries = Coordinates { shape: vec![3, 2], indices: vec![2, 1, 0, 0], values: vec![4.0, 1.0] };
    /// let v = SparseTensor::new(entries)?;
    /// let m = CsrMatrix::from(&CooMatrix::try_from(&v)?);
    /// assert_eq!((m.nrows(), m.ncols(), m.nnz()), (3, 2, 2));
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    fn try_from(tensor: &SparseTensor<T>) -> Result<Self, DataError> {
        let [rows, columns] = matrix_shape(tensor.shape())?;
        let mut matrix = Self::new(rows, columns);
        tensor.visit(&mut |index, value| matrix.push(index[0], index[1], T::lit(value)))?;
        Ok(matrix)
    }
}
