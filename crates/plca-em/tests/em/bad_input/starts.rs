//! Starts that no model may take, and those that it normalises.

use nalgebra::{DMatrix, dmatrix};
use plca_em::{Nmf, Plca, Plsa};
use plca_fit::{FitError, Init, Settings};
use plca_tensor::{DenseTensor, Order};

use super::models::{MODELS, Model, rng, storages};

fn data() -> DenseTensor<f64> {
    DenseTensor::new(
        vec![2, 3],
        vec![1.0, 0.0, 2.0, 3.0, 1.0, 0.5],
        Order::RowMajor,
    )
    .unwrap()
}

/// Why these weights are no start.
fn of_weights(weights: &[f64]) -> FitError {
    let init = Init::default().block(
        "weights",
        DMatrix::from_column_slice(weights.len(), 1, weights),
    );
    let plca = Plca::new(2);
    plca_fit::Model::init(&plca, &data(), init, &mut rng()).unwrap_err()
}

/// In the layout of the model's block.
fn as_stored(model: Model, mode: usize, (i, z): (usize, usize)) -> (usize, usize) {
    if model.lies(mode) { (z, i) } else { (i, z) }
}

#[test]
fn wrong_shape() {
    for model in MODELS {
        for (mode, rows) in [(0, 2), (1, 3)] {
            let mut start = [None, None];
            start[mode] = Some(DMatrix::from_element(rows + 1, 2, 0.5));
            let expected = FitError::Shape {
                block: model.blocks()[mode].into(),
                got: as_stored(model, mode, (rows + 1, 2)),
                expected: as_stored(model, mode, (rows, 2)),
            };
            assert_eq!(
                model.run(&data(), 2, start, 1).unwrap_err(),
                expected,
                "{model:?}"
            );
        }
    }
    let expected = FitError::Shape {
        block: "weights".into(),
        got: (3, 1),
        expected: (2, 1),
    };
    assert_eq!(of_weights(&[0.5; 3]), expected);
}

#[test]
fn negative_and_non_finite() {
    for bad in [-1e-9, f64::NAN, f64::INFINITY] {
        for model in MODELS {
            for (mode, rows) in [(0, 2), (1, 3)] {
                let mut m = DMatrix::from_element(rows, 2, 0.5);
                m[(1, 0)] = bad;
                let mut start = [None, None];
                start[mode] = Some(m);
                let error = model.run(&data(), 2, start, 1).unwrap_err();
                let FitError::Value {
                    block,
                    row,
                    column,
                    value,
                } = error
                else {
                    panic!("{model:?}: {error}");
                };
                assert_eq!(block, model.blocks()[mode]);
                assert_eq!((row, column), as_stored(model, mode, (1, 0)));
                assert_eq!(value.to_bits(), bad.to_bits());
            }
        }
        let error = of_weights(&[0.5, bad]);
        let FitError::Value {
            block,
            row: 1,
            column: 0,
            value,
        } = error
        else {
            panic!("{error:?}");
        };
        assert_eq!(
            (block.as_str(), value.to_bits()),
            ("weights", bad.to_bits())
        );
    }
}

/// Blocks that hold distributions need not sum to 1, but to something.
#[test]
fn columns_are_normalised_or_refused() {
    for model in MODELS.into_iter().filter(|m| !matches!(m, Model::Nmf(_))) {
        let start = |scale: f64| [Some(dmatrix![0.25, 0.5; 0.75, 0.5] * scale), None];
        // 1e308 each: the sum overflows, the shares do not.
        let fits = [1.0, 8.0, 1e308, 1e-300].map(|s| model.run(&data(), 2, start(s), 3).unwrap());
        for fit in &fits {
            for (a, b) in fit.blocks.iter().zip(&fits[0].blocks) {
                assert!((a - b).amax() <= 1e-14, "{model:?}");
            }
        }
        let zeros = if model.lies(0) {
            dmatrix![0.0, 0.0; 0.5, 1.0]
        } else {
            dmatrix![0.0, 0.5; 0.0, 1.0]
        };
        let error = model.run(&data(), 2, [Some(zeros), None], 1).unwrap_err();
        let expected = FitError::Empty {
            block: model.blocks()[0].into(),
            column: 0,
        };
        assert_eq!(error, expected, "{model:?}");
    }
    let expected = FitError::Empty {
        block: "weights".into(),
        column: 0,
    };
    assert_eq!(of_weights(&[0.0; 2]), expected);
}

/// The model is 0 where something was observed: the first such cell in row-major order is named.
#[test]
fn initial_support() {
    // Component 0 reaches columns 0 and 1, component 1 columns 0 and 2; row 0 has component 0 only.
    let rows = dmatrix![1.0, 0.0; 1.0, 1.0];
    let columns = dmatrix![1.0, 1.0; 1.0, 0.0; 0.0, 1.0];
    let values = [1.0, 4.0, 7.5, 0.25, 0.0, 9.0];
    for (name, data) in storages(&[2, 3], &values) {
        let data = data.unwrap();
        for model in MODELS {
            let start = [Some(rows.clone()), Some(columns.clone())];
            let result = model.run(&*data, 2, start, 1);
            // In this layout the zeros of a mixture are in rows, which does not matter to the support.
            let expected = FitError::Support {
                index: vec![0, 2],
                value: 7.5,
            };
            assert_eq!(result.unwrap_err(), expected, "{model:?}, {name}");
        }
    }
}

/// A zero of the model on a zero of the data is no error.
#[test]
fn zeros_on_zeros() {
    let diagonal = || Some(dmatrix![1.0, 0.0; 0.0, 1.0]);
    for (name, data) in storages(&[2, 2], &[2.0, 0.0, 0.0, 3.0]) {
        let data = data.unwrap();
        for model in MODELS {
            let fit = model.run(&*data, 2, [diagonal(), diagonal()], 5).unwrap();
            assert!(fit.objective.is_finite(), "{model:?}, {name}");
        }
    }
}

#[test]
fn frozen_blocks_must_be_given() {
    fn refused<M: plca_fit::Model<f64>>(model: &M, block: &str) {
        let block = block.into();
        let error = model.init(&data(), Init::default(), &mut rng());
        assert_eq!(error.err(), Some(FitError::NotGiven { block }));
    }
    for block in ["factor_1", "weights"] {
        refused(&Plca::new(2).freeze(block), block);
    }
    for block in ["basis", "mixture"] {
        refused(&Plsa::new(2).freeze(block), block);
    }
    for block in ["w", "h"] {
        refused(&Nmf::new(2).freeze(block), block);
    }
}

/// `b = 0` is an error, and so is everything else outside (0, 1].
#[test]
fn tempering_powers() {
    for bad in [0.0, -0.5, 1.0 + 1e-12, f64::INFINITY, f64::NAN] {
        let plca = Plca::new(2).temper(bad).check();
        let plsa = Plsa::new(2).temper(bad).check();
        for checked in [plca, plsa] {
            let error = checked.unwrap_err();
            let FitError::Setting { name, value, .. } = error else {
                panic!("{error}");
            };
            assert_eq!((name, value.to_bits()), ("temper", bad.to_bits()));
        }
    }
}
