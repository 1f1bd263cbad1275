//! Matrices of `nalgebra-sparse` to and fro.

use nalgebra_sparse::{CooMatrix, CscMatrix, CsrMatrix};
use plca_tensor::{Coordinates, Data, DataError, SparseTensor, check_counts};

#[test]
fn all_three_forms_are_one_tensor() {
    let mut coo = CooMatrix::new(3, 4);
    for (i, j, x) in [(2, 3, 1.0), (0, 1, 2.0), (2, 3, 0.5), (1, 0, 4.0)] {
        coo.push(i, j, x);
    }
    let list = |v: SparseTensor<f64>| {
        let mut cells = Vec::new();
        v.visit(&mut |index, x| cells.push((index.to_vec(), x)))
            .unwrap();
        cells.sort_by(|a, b| a.0.cmp(&b.0));
        (v.shape().to_vec(), cells)
    };
    let want = vec![(vec![0, 1], 2.0), (vec![1, 0], 4.0), (vec![2, 3], 1.5)];
    let want = (vec![3, 4], want);
    assert_eq!(list((&coo).try_into().unwrap()), want);
    assert_eq!(list((&CsrMatrix::from(&coo)).try_into().unwrap()), want);
    assert_eq!(list((&CscMatrix::from(&coo)).try_into().unwrap()), want);
    let v = SparseTensor::try_from(&coo).unwrap();
    assert_eq!(
        list((&CooMatrix::try_from(&v).unwrap()).try_into().unwrap()),
        want
    );
    let cube = Coordinates {
        shape: vec![2, 2, 2],
        indices: vec![0, 1, 1],
        values: vec![1.0],
    };
    let shape = vec![2, 2, 2];
    assert_eq!(
        CooMatrix::try_from(&SparseTensor::<f64>::new(cube).unwrap()).unwrap_err(),
        DataError::NotAMatrix { shape }
    );
    coo.push(0, 0, -1.0);
    let negative = SparseTensor::try_from(&coo).unwrap();
    assert!(matches!(
        check_counts(&negative),
        Err(DataError::Negative { .. })
    ));
}
