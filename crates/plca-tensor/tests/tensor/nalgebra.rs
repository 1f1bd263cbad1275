//! Matrices of `nalgebra` to and fro.

use nalgebra::DMatrix;
use plca_tensor::{DataError, DenseTensor, Order};

#[test]
fn matrices_come_back_in_either_order_and_views_may_skip() {
    let m = DMatrix::from_fn(3, 4, |i, j| (1 + 4 * i + j) as f64);
    let columns = DenseTensor::try_from(m.clone()).unwrap();
    assert_eq!(DMatrix::try_from(columns).unwrap(), m);
    let values = m.transpose().as_slice().to_vec();
    let rows = DenseTensor::new(vec![3, 4], values, Order::RowMajor).unwrap();
    assert_eq!(DMatrix::try_from(rows).unwrap(), m);
    let part = DenseTensor::try_from(m.view((1, 1), (2, 3))).unwrap();
    assert_eq!(DMatrix::try_from(part).unwrap(), m.view((1, 1), (2, 3)));
    let line = DenseTensor::new(vec![2], vec![1.0, 2.0], Order::RowMajor).unwrap();
    assert_eq!(
        DMatrix::try_from(line),
        Err(DataError::NotAMatrix { shape: vec![2] })
    );
}
