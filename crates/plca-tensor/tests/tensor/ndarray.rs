//! Arrays of `ndarray` to and fro.

use ndarray::{Array3, ShapeBuilder, s};

use plca_tensor::{DataError, DenseTensor, check_counts};

/// Every memory layout gives the same tensor; those in C order keep their block.
#[test]
fn layouts_are_one_tensor() {
    let a = Array3::from_shape_fn((2, 3, 4), |(i, j, k)| (1 + 12 * i + 4 * j + k) as f64);
    let fortran = Array3::from_shape_fn((2, 3, 4).f(), |at| a[at]);
    let offset =
        Array3::from_shape_fn((4, 3, 4), |(i, j, k)| a[[i % 2, j, k]]).slice_move(s![1..3, .., ..]);
    let permuted = a.clone().permuted_axes([1, 0, 2]);
    let block = a.as_ptr();
    let check = |v: &DenseTensor<f64>, want: &dyn Fn(usize, usize, usize) -> f64| {
        for ((i, j, k), _) in a.indexed_iter() {
            assert_eq!(v.get(&[i, j, k]), want(i, j, k));
        }
    };
    let at = |i, j, k| a[[i, j, k]];
    check(&DenseTensor::try_from(a.view()).unwrap(), &at);
    check(&DenseTensor::try_from(offset).unwrap(), &|i, j, k| {
        a[[(i + 1) % 2, j, k]]
    });
    let v = DenseTensor::try_from(permuted).unwrap();
    assert_eq!(v.get(&[2, 1, 3]), a[[1, 2, 3]]);
    check(&DenseTensor::try_from(fortran).unwrap(), &at);
    let v = DenseTensor::try_from(a.clone()).unwrap();
    assert_ne!(v.into_parts().1.as_ptr(), block);
    let v = DenseTensor::try_from(a).unwrap();
    assert_eq!(v.into_parts().1.as_ptr(), block);
}

#[test]
fn bad_values_are_named() {
    let negative = DenseTensor::try_from(ndarray::array![[1.0, -1.0]]).unwrap();
    let error = check_counts(&negative).unwrap_err();
    assert_eq!(
        error.to_string(),
        "entry [0, 1] is -1, not a finite number >= 0"
    );
    let scalar = ndarray::arr0(1.0);
    assert_eq!(DenseTensor::try_from(scalar), Err(DataError::OrderZero));
}
