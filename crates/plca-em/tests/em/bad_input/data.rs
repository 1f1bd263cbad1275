//! Data that no model may take.

use nalgebra::DMatrix;
use plca_em::Plca;
use plca_fit::FitError;
use plca_tensor::{Coordinates, Data, DataError, DenseTensor, Order, SparseTensor, check_counts};

use super::models::{MODELS, Model, storages};

/// What the constructor, or else the models, refuse.
fn refused(result: Result<Box<dyn Data<f64>>, DataError>) -> DataError {
    let data = match result {
        Err(e) => return e,
        Ok(data) => data,
    };
    let error = check_counts(&*data).expect_err("data that are not counts");
    let models: &[Model] = match data.shape() {
        [_, _] => &MODELS,
        _ => &[],
    };
    for model in models {
        let found = model.run(&*data, 1, [None, None], 1).unwrap_err();
        assert_eq!(found, FitError::Data(error.clone()), "{model:?}");
    }
    error
}

/// The first offending entry is named with the value as given, whatever the largest entry is.
#[test]
fn negative_nan_and_infinite_entries() {
    for bad in [-2.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.5e-300] {
        for largest in [1.0, 1e300, 1e-300] {
            // Row-major first is (0, 2), column-major first is (1, 0).
            let values = [largest, 0.0, bad, -7.0, largest, 0.0];
            for (name, result) in storages(&[2, 3], &values) {
                if name == "masked" && bad.is_nan() {
                    continue;
                }
                let (index, value) = match refused(result) {
                    DataError::NotFinite { index, value } if !bad.is_finite() => (index, value),
                    DataError::Negative { index, value } if bad.is_finite() => (index, value),
                    other => panic!("{name}: {other}"),
                };
                assert_eq!(index, [0, 2], "{name}");
                assert_eq!(value.to_bits(), bad.to_bits(), "{name}");
            }
        }
    }
}

/// In a dense masked tensor NaN marks a hidden cell; no other value does.
#[test]
fn nan_is_hidden_only_where_it_is_the_mark() {
    let values = vec![1.0, f64::NAN, 2.0, f64::INFINITY];
    let error = DenseTensor::masked(vec![2, 2], values, Order::RowMajor).unwrap_err();
    let expected = DataError::NotFinite {
        index: vec![1, 1],
        value: f64::INFINITY,
    };
    assert_eq!(error, expected);
}

/// `v = 0`.
#[test]
fn nothing_to_explain() {
    for (name, result) in storages(&[2, 3], &[0.0; 6]) {
        assert_eq!(refused(result), DataError::NoMass, "{name}");
    }
}

/// A mask with no observed positive entry, for all three masks.
#[test]
fn nothing_positive_observed() {
    let (shape, values) = (vec![2, 2], vec![5.0, 0.0, 0.0, 0.0]);
    let seen = [false, true, true, true];
    let boxed = |data: SparseTensor<f64>| Box::new(data) as Box<dyn Data<f64>>;
    let data = DenseTensor::with_mask(shape.clone(), values, Order::RowMajor, &seen);
    let error = refused(data.map(|data| Box::new(data) as Box<dyn Data<f64>>));
    assert_eq!(error, DataError::NoMass);
    let entry = |value: f64| Coordinates {
        shape: shape.clone(),
        indices: vec![0, 0],
        values: vec![value],
    };
    assert_eq!(
        refused(SparseTensor::all_but(entry(5.0), entry(1.0)).map(boxed)),
        DataError::NoMass
    );
    assert_eq!(
        refused(SparseTensor::stored_only(entry(0.0)).map(boxed)),
        DataError::NoMass
    );
}

#[test]
fn empty_axes_and_order_zero() {
    for (name, result) in storages(&[2, 0], &[]) {
        let expected = DataError::EmptyMode {
            mode: 1,
            shape: vec![2, 0],
        };
        assert_eq!(refused(result), expected, "{name}");
    }
    let dense = DenseTensor::new(vec![], vec![1.0], Order::RowMajor).unwrap_err();
    assert_eq!(dense, DataError::OrderZero);
    let none = || Coordinates::<f64> {
        shape: vec![],
        indices: vec![],
        values: vec![1.0],
    };
    assert_eq!(SparseTensor::new(none()).unwrap_err(), DataError::OrderZero);
    assert_eq!(
        SparseTensor::stored_only(none()).unwrap_err(),
        DataError::OrderZero
    );
    assert_eq!(
        SparseTensor::all_but(none(), none()).unwrap_err(),
        DataError::OrderZero
    );
}

#[test]
fn wrong_number_of_values() {
    let shape = vec![2, 2];
    let expected = DataError::Length {
        shape: shape.clone(),
        expected: 4,
        got: 3,
    };
    let three = vec![1.0; 3];
    let dense = DenseTensor::new(shape.clone(), three.clone(), Order::RowMajor);
    assert_eq!(dense.unwrap_err(), expected);
    let seen = [true; 3];
    let mask = DenseTensor::with_mask(shape.clone(), vec![1.0; 4], Order::RowMajor, &seen);
    assert_eq!(mask.unwrap_err(), expected);
    let short = Coordinates {
        shape: shape.clone(),
        indices: vec![0, 0, 1],
        values: vec![1.0; 2],
    };
    // It is an index that lacks, not a value.
    assert_eq!(
        SparseTensor::new(short).unwrap_err().to_string(),
        "2 stored values of a tensor of 2 modes need 4 index numbers, got 3"
    );
}

/// The position is that among the entries as given, those at hidden cells included.
#[test]
fn indices_outside_the_shape() {
    let entries = || Coordinates {
        shape: vec![2, 3],
        indices: vec![0, 0, 1, 1, 1, 3],
        values: vec![1.0; 3],
    };
    let expected = DataError::OutOfRange {
        position: 2,
        mode: 1,
        index: 3,
        size: 3,
    };
    let hidden = Coordinates {
        shape: vec![2, 3],
        indices: vec![0, 0],
        values: vec![1.0],
    };
    assert_eq!(SparseTensor::new(entries()).unwrap_err(), expected);
    assert_eq!(SparseTensor::stored_only(entries()).unwrap_err(), expected);
    assert_eq!(
        SparseTensor::all_but(entries(), hidden.clone()).unwrap_err(),
        expected
    );
    let good = Coordinates {
        shape: vec![2, 3],
        indices: vec![0, 1],
        values: vec![1.0],
    };
    let expected = DataError::OutOfRange {
        position: 2,
        mode: 1,
        index: 3,
        size: 3,
    };
    assert_eq!(
        SparseTensor::all_but(good.clone(), entries()).unwrap_err(),
        expected
    );
    let other = Coordinates {
        shape: vec![3, 2],
        ..hidden
    };
    let expected = DataError::Shape {
        what: "mask",
        got: vec![3, 2],
        expected: vec![2, 3],
    };
    assert_eq!(SparseTensor::all_but(good, other).unwrap_err(), expected);
}

/// Values at hidden cells are not read, bad ones included.
#[test]
fn hidden_values_are_not_read() {
    let at = |indices: Vec<u32>, values: Vec<f64>| Coordinates {
        shape: vec![2, 2],
        indices,
        values,
    };
    for bad in [f64::NAN, -1.0, f64::INFINITY, 1e300] {
        let data = SparseTensor::all_but(
            at(vec![0, 0, 1, 1], vec![bad, 2.0]),
            at(vec![0, 0], vec![bad]),
        );
        assert_eq!(data.unwrap().total(), 2.0);
        let seen = [false, true, true, true];
        let values = vec![bad, 0.0, 0.0, 2.0];
        let data = DenseTensor::with_mask(vec![2, 2], values, Order::RowMajor, &seen);
        assert_eq!(data.unwrap().total(), 2.0);
    }
}

/// Models of matrices refuse other orders where they meet the data; so do blocks of modes that the data do not have.
#[test]
fn wrong_order() {
    let data = DenseTensor::new(vec![2, 1, 2], vec![1.0; 4], Order::RowMajor).unwrap();
    for model in MODELS.into_iter().filter(|m| *m != Model::Plca) {
        let error = model.run(&data, 1, [None, None], 1).unwrap_err();
        let conflict = matches!(error, FitError::Conflict { .. });
        assert!(
            conflict && error.to_string().contains("order 3"),
            "{model:?}: {error}"
        );
    }
    let unknown = |error: FitError, block: &str| {
        let named = matches!(&error, FitError::UnknownBlock { name, .. } if name == block);
        assert!(named, "{error}");
    };
    let frozen = Plca::new(1).freeze("factor_3");
    unknown(
        plca_fit::Model::bind(&frozen, &data).unwrap_err(),
        "factor_3",
    );
    let many = [None, Some(DMatrix::from_element(2, 1, 0.5))];
    let vector = DenseTensor::new(vec![2], vec![1.0, 2.0], Order::RowMajor).unwrap();
    let error = Model::Plca.run(&vector, 1, many, 1).unwrap_err();
    unknown(error, "factor_1");
}
