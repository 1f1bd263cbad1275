//! `ndarray` arrays.

use ndarray::{Array, ArrayD, ArrayView, Dimension, IxDyn, ShapeBuilder};

use crate::{DataError, DenseTensor, Order, Real};

/// Shape, values and memory order; without a copy where the array owns a contiguous block.
fn parts<T: Real, D: Dimension>(array: Array<T, D>) -> (Vec<usize>, Vec<T>, Order) {
    let shape = array.shape().to_vec();
    let cells = array.len();
    let order = if array.is_standard_layout() {
        Order::RowMajor
    } else if array.t().is_standard_layout() {
        Order::ColumnMajor
    } else {
        return (shape, array.iter().copied().collect(), Order::RowMajor);
    };
    let (mut values, offset) = array.into_raw_vec_and_offset();
    // A slice of a larger array owns all of it.
    values.drain(..offset.unwrap_or(0));
    values.truncate(cells);
    (shape, values, order)
}

impl<T: Real, D: Dimension> TryFrom<Array<T, D>> for DenseTensor<T> {
    type Error = DataError;

    /// Takes the array, of any order, without copying it if it is contiguous in C order.
    ///
    /// ```
    /// use ndarray::array;
    /// use plca_tensor::DenseTensor;
    /// let v = DenseTensor::try_from(array![[1.0, 2.0], [3.0, 4.0]].reversed_axes())?;
    /// assert_eq!(v.get(&[1, 0]), 2.0);
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    fn try_from(array: Array<T, D>) -> Result<Self, DataError> {
        let (shape, values, order) = parts(array);
        Self::new(shape, values, order)
    }
}

impl<T: Real, D: Dimension> TryFrom<ArrayView<'_, T, D>> for DenseTensor<T> {
    type Error = DataError;

    /// Copies the view once, in its own memory order where that is contiguous.
    ///
    /// ```
    /// use ndarray::{array, s};
    /// use plca_tensor::DenseTensor;
    /// let a = array![[1.0, -2.0, 3.0], [4.0, -5.0, 6.0]];
    /// let v = DenseTensor::try_from(a.slice(s![.., ..;2]))?;
    /// assert_eq!(v.get(&[1, 1]), 6.0);
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    fn try_from(view: ArrayView<'_, T, D>) -> Result<Self, DataError> {
        Self::try_from(view.to_owned())
    }
}

impl<T: Real> DenseTensor<T> {
    /// An array in which NaN marks a hidden cell.
    ///
    /// ```
    /// use ndarray::array;
    /// use plca_tensor::DenseTensor;
    /// let v = DenseTensor::masked_array(array![[1.0, f64::NAN], [3.0, 4.0]])?;
    /// assert_eq!((v.hidden(), v.get(&[0, 1]).is_nan()), (1, true));
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`masked`](Self::masked).
    pub fn masked_array<D: Dimension>(array: Array<T, D>) -> Result<Self, DataError> {
        let (shape, values, order) = parts(array);
        Self::masked(shape, values, order)
    }
}

impl<T: Real> From<DenseTensor<T>> for ArrayD<T> {
    /// Gives the values back in C order, without a copy.
    ///
    /// ```
    /// use ndarray::{ArrayD, array};
    /// use plca_tensor::DenseTensor;
    /// let a = array![[1.0, 2.0], [3.0, 4.0]];
    /// assert_eq!(ArrayD::from(DenseTensor::try_from(a.view())?), a.into_dyn());
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    fn from(tensor: DenseTensor<T>) -> Self {
        let (shape, values, order) = tensor.into_parts();
        let shape = IxDyn(&shape).set_f(order == Order::ColumnMajor);
        Self::from_shape_vec(shape, values).expect("a tensor has a value for every cell")
    }
}
