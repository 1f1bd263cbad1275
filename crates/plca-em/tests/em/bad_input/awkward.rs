//! Input that is awkward but allowed: empty slices, dead components, wholly hidden rows.

use nalgebra::{DMatrix, DVector, dmatrix};
use plca_em::{Missing, Nmf, Plca, PlcaState};
use plca_fit::{Init, Model as _, State};
use plca_tensor::{Coordinates, Data, DenseTensor, Order, SparseTensor, unobserved};

use super::models::{MODELS, Model, rng, storages};

/// An all-zero row or column: its row of the factor is exactly 0 after one M-step; a mixture is kept as it was.
#[test]
fn all_zero_slices() {
    let values = [1.0, 0.0, 2.0, 0.0, 0.0, 0.0, 3.0, 0.0, 1.0];
    for (name, data) in storages(&[3, 3], &values) {
        let data = data.unwrap();
        for model in MODELS {
            let before = model.run(&*data, 2, [None, None], 0).unwrap();
            let fit = model.run(&*data, 2, [None, None], 1).unwrap();
            for mode in 0..2 {
                let row = fit.blocks[mode].row(1).clone_owned();
                if model.blocks()[mode] == "mixture" {
                    assert!(
                        (row - before.blocks[mode].row(1)).amax() <= 1e-15,
                        "{model:?}, {name}"
                    );
                } else {
                    assert_eq!(row.amax(), 0.0, "{model:?}, {name}, mode {mode}");
                }
            }
            let later = model.run(&*data, 2, [None, None], 20).unwrap();
            assert!(later.objective.is_finite(), "{model:?}, {name}");
        }
    }
}

/// A component without counts: factors kept, weight exactly 0, for ever; nothing becomes NaN.
#[test]
fn dead_components() {
    let rows: DMatrix<f64> = dmatrix![0.5, 0.0; 0.5, 0.0; 0.0, 1.0];
    // Component 1 reaches row 2 only, where nothing was observed.
    let values = [1.0f64, 2.0, 3.0, 1.0, 0.0, 0.0];
    for (name, data) in storages(&[3, 2], &values) {
        let data = data.unwrap();
        for n in [1, 7] {
            let fit = Model::Plca
                .run(&*data, 2, [Some(rows.clone()), None], n)
                .unwrap();
            let start = Model::Plca
                .run(&*data, 2, [Some(rows.clone()), None], 0)
                .unwrap();
            let weights = fit.weights.unwrap();
            assert_eq!(weights.as_slice(), [1.0, 0.0], "{name}");
            for (now, before) in fit.blocks.iter().zip(&start.blocks) {
                assert_eq!(now.column(1), before.column(1), "{name}");
            }
            for model in MODELS {
                let fit = model.run(&*data, 2, [Some(rows.clone()), None], n).unwrap();
                assert!(fit.objective.is_finite(), "{model:?}, {name}");
                assert!(
                    fit.blocks.iter().all(|b| b.iter().all(|x| x.is_finite())),
                    "{model:?}, {name}"
                );
            }
        }
    }
    // Given with weight 0: dead from the start.
    let data = DenseTensor::new(vec![3, 2], values.to_vec(), Order::RowMajor).unwrap();
    let plca = Plca::new(2);
    let factors = vec![
        dmatrix![0.4, 0.2; 0.4, 0.3; 0.2, 0.5],
        dmatrix![0.5, 0.1; 0.5, 0.9],
    ];
    let weights = DVector::from_vec(vec![1.0, 0.0]);
    let state = PlcaState::new(weights, factors.clone()).unwrap();
    let mut at = state.parameters().clone();
    let em = plca.bind(&data).unwrap();
    for _ in 0..5 {
        em.step(&mut at, true).unwrap();
    }
    assert_eq!(at.at(0).as_slice(), [1.0, 0.0]);
    for (now, before) in at.matrices()[1..].iter().zip(&factors) {
        assert_eq!(now.column(1), before.column(1));
    }
    assert!(em.residual(&at).unwrap() <= 1e-15);
}

/// A 3 x 3 matrix of rank 1 whose row 1 was not observed.
fn hidden_row() -> [(&'static str, Box<dyn Data<f64>>); 3] {
    let shape = vec![3, 3];
    let values = vec![1.0, 2.0, 3.0, 5.0, 5.0, 5.0, 2.0, 4.0, 6.0];
    let seen: Vec<bool> = (0..9).map(|at| at / 3 != 1).collect();
    let coordinates = |keep: &dyn Fn(usize) -> bool| Coordinates {
        shape: shape.clone(),
        indices: (0..9u32)
            .filter(|&at| keep(at as usize))
            .flat_map(|at| [at / 3, at % 3])
            .collect(),
        values: (0..9).filter(|&at| keep(at)).map(|at| values[at]).collect(),
    };
    let masked = DenseTensor::with_mask(shape.clone(), values.clone(), Order::RowMajor, &seen);
    let listed = SparseTensor::all_but(coordinates(&|_| true), coordinates(&|at| !seen[at]));
    let stored = SparseTensor::stored_only(coordinates(&|at| seen[at]));
    [
        ("masked", Box::new(masked.unwrap())),
        ("all but", Box::new(listed.unwrap())),
        ("stored only", Box::new(stored.unwrap())),
    ]
}

/// A wholly masked row is allowed and flagged; its entries stay finite, and those of a rank-1 fit elsewhere are exact.
#[test]
fn wholly_hidden_rows() {
    for (name, data) in hidden_row() {
        assert_eq!(unobserved(&*data).unwrap(), [vec![1], vec![]], "{name}");
        for model in MODELS {
            // Simultaneous multiplicative updates do not exist; the model chooses.
            let fit = model.run(&*data, 1, [None, None], 200).unwrap();
            assert!(
                fit.blocks.iter().all(|b| b.iter().all(|x| x.is_finite())),
                "{model:?}, {name}"
            );
            let column = &fit.blocks[1];
            if model.blocks()[1] != "mixture" {
                let share = |i: usize| column[(i, 0)] / column.sum();
                for (i, want) in [1.0 / 6.0, 1.0 / 3.0, 0.5].into_iter().enumerate() {
                    assert!(
                        (share(i) - want).abs() <= 1e-9,
                        "{model:?}, {name}: {}",
                        share(i)
                    );
                }
            }
            if model.blocks()[0] != "mixture" {
                let rows = &fit.blocks[0];
                assert!(
                    (rows[(2, 0)] / rows[(0, 0)] - 2.0).abs() <= 1e-9,
                    "{model:?}, {name}"
                );
                assert!(
                    rows[(1, 0)] > 0.0,
                    "{model:?}, {name}: the hidden row is not 0"
                );
            }
        }
    }
}

/// Multiplicative updates keep the entries of a wholly hidden row to the bit.
#[test]
fn multiplicative_updates_keep_hidden_rows() {
    for (name, data) in hidden_row() {
        let w = DMatrix::from_row_slice(3, 2, &[1.0, 2.0, 0.3, 0.7, 1.5, 0.5]);
        let nmf = Nmf::new(2).missing(Missing::Multiplicative);
        let em = nmf.bind(&*data).unwrap();
        let start = Init::default().block("w", w.clone());
        let mut at = start.parameters(&*em, &mut rng()).unwrap();
        for _ in 0..10 {
            em.step(&mut at, false).unwrap();
        }
        assert_eq!(at.at(0).row(1), w.row(1), "{name}");
        assert!(at.at(0).row(0) != w.row(0));
    }
}

/// Complete data have nothing unobserved; stored zeros and all-zero rows are observations.
#[test]
fn zeros_are_observations() {
    for (name, data) in storages(&[2, 2], &[1.0, 2.0, 0.0, 0.0]) {
        let data = data.unwrap();
        assert_eq!(unobserved(&*data).unwrap(), [[0usize; 0]; 2], "{name}");
    }
    let values = vec![1.0, f64::NAN, 2.0, f64::NAN, 3.0, f64::NAN];
    for (order, shape, hidden) in [
        (Order::RowMajor, vec![3, 2], 1),
        (Order::ColumnMajor, vec![2, 3], 0),
    ] {
        let data = DenseTensor::masked(shape, values.clone(), order).unwrap();
        let unobserved = unobserved(&data).unwrap();
        assert_eq!(unobserved[hidden], [1]);
        assert!(unobserved[1 - hidden].is_empty());
    }
}

/// A random start of a model larger than the data is fine.
#[test]
fn more_components_than_cells() {
    let data = DenseTensor::new(vec![1, 2], vec![1.0, 3.0], Order::RowMajor).unwrap();
    for model in MODELS {
        let fit = model.run(&data, 9, [None, None], 5).unwrap();
        assert!(fit.objective.is_finite(), "{model:?}");
    }
    let plca = Plca::new(9);
    let start = plca.init(&data, Init::default(), &mut rng()).unwrap();
    assert_eq!(start.weights().len(), 9);
}
