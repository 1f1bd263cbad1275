//! States made by hand: what does not fit the data or is no number is a typed error everywhere, never a panic.

use std::fmt::Debug;

use nalgebra::{DMatrix, DVector, dmatrix, dvector};
use plca_em::{
    Accelerate, Algorithm, EmError, Fast, FastState, FoldIn, Given, IndexMaps, Online, OnlineState,
    ParamError, Shifted, ShiftedState, Squarem, Stop, Transformed,
    before::{Nmf, NmfState, Plca, PlcaState, Plsa, PlsaState},
    run,
};
use plca_tensor::{DenseTensor, Order};

const SHAPE: [usize; 2] = [3, 4];

pub(super) fn data() -> DenseTensor<f64> {
    let values = (0..12).map(|i| 1.0 + f64::from(i % 5)).collect();
    DenseTensor::new(SHAPE.to_vec(), values, Order::RowMajor).unwrap()
}

/// Data in the four cells of a corner.
fn corner() -> Vec<f64> {
    let cells = (0..12).map(|i| if i % 4 < 2 && i < 8 { 2.0 } else { 0.0 });
    cells.collect()
}

pub(super) fn even(rows: usize, columns: usize) -> DMatrix<f64> {
    DMatrix::from_element(rows, columns, 1.0 / rows as f64)
}

/// Every way to spoil a block: too many rows, too few columns, none at all, and values that are no probabilities.
fn spoilt(block: &DMatrix<f64>) -> Vec<DMatrix<f64>> {
    let (rows, columns) = block.shape();
    let mut all = vec![
        even(rows + 1, columns),
        even(rows, columns + 1),
        even(rows, columns - 1),
        DMatrix::zeros(0, 0),
    ];
    for value in [f64::NAN, f64::INFINITY, -0.5] {
        let mut block = block.clone();
        block[(rows - 1, columns - 1)] = value;
        all.push(block);
    }
    all
}

fn spoilt_weights(weights: &DVector<f64>) -> Vec<DVector<f64>> {
    let as_block = DMatrix::from_column_slice(weights.len(), 1, weights.as_slice());
    let columns = spoilt(&as_block).into_iter();
    columns
        .map(|m| DVector::from_column_slice(m.as_slice()))
        .filter(|w| w.iter().sum::<f64>() != 1.0 || w.len() != weights.len())
        .collect()
}

pub(super) fn plca() -> PlcaState<f64> {
    PlcaState {
        weights: DVector::from_element(2, 0.5),
        factors: vec![even(3, 2), even(4, 2)],
        power: 1.0,
        iteration: 0,
    }
}

pub(super) fn plsa() -> PlsaState<f64> {
    PlsaState {
        basis: even(3, 2),
        mixture: even(2, 4),
        power: 1.0,
        iteration: 0,
    }
}

pub(super) fn shifted() -> ShiftedState<f64> {
    ShiftedState {
        weights: DVector::from_element(2, 0.5),
        kernels: even(4, 2),
        impulses: even(6, 2),
        iteration: 0,
    }
}

/// What a bad state must be: refused by every entry of the algorithm, and by the loop over it.
fn refused<A: Algorithm<Error = EmError>>(em: &A, state: &A::State) {
    let expected = |e: EmError| match e {
        EmError::Shape { .. } | EmError::Value { .. } | EmError::Order { .. } => {}
        EmError::Param(ParamError::Temper(_)) => {}
        e => panic!("{e}"),
    };
    for measure in [false, true] {
        expected(em.step(&mut state.clone(), measure).unwrap_err());
    }
    expected(em.objective(state).unwrap_err());
    expected(em.residual(state).unwrap_err());
    expected(
        run(em, state.clone(), &Stop::default(), ())
            .map(drop)
            .unwrap_err(),
    );
}

/// Whether the loop and the entries accept a state.
fn accepted<A: Algorithm<Error = EmError>>(em: &A, state: &A::State) {
    em.step(&mut state.clone(), true).unwrap();
    assert!(em.objective(state).unwrap().is_finite());
    em.residual(state).unwrap();
}

#[test]
fn of_plca() {
    let (data, plca_config) = (data(), Plca::builder(2).build().unwrap());
    let em = plca_config.on(&data).unwrap();
    accepted(&em, &plca());
    let mut bad: Vec<PlcaState<f64>> = Vec::new();
    for weights in spoilt_weights(&plca().weights) {
        bad.push(PlcaState { weights, ..plca() });
    }
    for j in 0..2 {
        for factor in spoilt(&plca().factors[j]) {
            let mut state = plca();
            state.factors[j] = factor;
            bad.push(state);
        }
    }
    for factors in [vec![], vec![even(3, 2)], vec![even(3, 2); 3]] {
        bad.push(PlcaState { factors, ..plca() });
    }
    for power in [0.0, -1.0, 1.5, f64::NAN] {
        bad.push(PlcaState { power, ..plca() });
    }
    // Another number of components than the configuration has.
    bad.push(PlcaState {
        weights: DVector::from_element(3, 1.0 / 3.0),
        factors: vec![even(3, 3), even(4, 3)],
        ..plca()
    });
    for state in &bad {
        refused(&em, state);
        assert!(em.ln_lik(state).is_err());
        assert!(
            Squarem(plca_config.on(&data).unwrap())
                .step(&mut state.clone(), true)
                .is_err()
        );
        // Weights and the folded mode are not looked at: whatever comes back, it is no panic.
        let _ = state.fold_in(&data, 1, &FoldIn::default()).map(drop);
    }
}

#[test]
fn of_plsa() {
    let data = data();
    let config = Plsa::builder(2).build().unwrap();
    let em = config.on(&data).unwrap();
    accepted(&em, &plsa());
    let mut bad: Vec<PlsaState<f64>> = Vec::new();
    for basis in spoilt(&plsa().basis) {
        bad.push(PlsaState { basis, ..plsa() });
    }
    for mixture in spoilt(&plsa().mixture) {
        bad.push(PlsaState { mixture, ..plsa() });
    }
    bad.push(PlsaState {
        power: f64::NAN,
        ..plsa()
    });
    for state in &bad {
        refused(&em, state);
        assert!(em.ln_lik(state).is_err());
        let _ = state
            .fold_in(&data, Given::Columns, &FoldIn::default())
            .map(drop);
    }
}

#[test]
fn of_nmf() {
    let data = data();
    let good = NmfState {
        w: even(3, 2),
        h: even(2, 4),
    };
    for update in [plca_em::Update::Simultaneous, plca_em::Update::Sequential] {
        let config = Nmf::builder(2).update(update).build().unwrap();
        let em = config.on(&data).unwrap();
        accepted(&em, &good);
        let ws = spoilt(&good.w)
            .into_iter()
            .map(|w| NmfState { w, ..good.clone() });
        let hs = spoilt(&good.h)
            .into_iter()
            .map(|h| NmfState { h, ..good.clone() });
        for state in ws.chain(hs) {
            refused(&em, &state);
            for along in 0..3 {
                let _ = state.fold_in(&data, along, &FoldIn::default()).map(drop);
            }
        }
    }
}

/// The mapping between the two forms refuses what does not fit together, and a component without mass survives it.
#[test]
fn of_the_mapping_between_nmf_and_plca() -> Result<(), EmError> {
    let good = NmfState {
        w: dmatrix![0.5, 0.0; 1.5, 0.0],
        h: dmatrix![1.0, 3.0; 0.0, 0.0],
    };
    let image = good.to_plca()?;
    assert_eq!(image.weights.as_slice(), [1.0, 0.0]);
    assert_eq!(NmfState::from_plca(&image, &[2.0, 0.0], 8.0)?, good);
    let unequal = NmfState {
        h: even(3, 2),
        ..good.clone()
    };
    assert!(matches!(unequal.to_plca(), Err(EmError::Shape { .. })));

    let from = |image: &PlcaState<f64>, d: &[f64]| NmfState::from_plca(image, d, 8.0).unwrap_err();
    assert!(matches!(from(&image, &[2.0]), EmError::Shape { .. }));
    for d in [-1.0, f64::NAN, f64::INFINITY] {
        let error = from(&image, &[2.0, d]);
        assert!(
            matches!(
                error,
                EmError::Value {
                    row: 1,
                    column: 0,
                    ..
                }
            ),
            "{error}"
        );
    }
    for v in [-1.0, f64::NAN, f64::INFINITY] {
        let error = NmfState::from_plca(&image, &[2.0, 0.0], v).unwrap_err();
        let of_v = matches!(&error, EmError::Value { block, .. } if block == "v");
        assert!(of_v, "{error}");
    }
    // Beyond the range of the scalar: W D under the largest numbers, H D^-1 under the smallest.
    for (d, name) in [(f64::MAX, "w"), (5e-324, "h")] {
        let image = PlcaState {
            factors: vec![dmatrix![1.0, 0.0; 1.0, 0.0] * 1.5, image.factors[1].clone()],
            ..image.clone()
        };
        let error = from(&image, &[d, 0.0]);
        let beyond =
            matches!(&error, EmError::Value { block, value, .. } if block == name && *value > 1.0);
        assert!(beyond, "{error}");
    }
    let dead = EmError::ZeroColumn {
        block: "w".into(),
        column: 0,
    };
    assert_eq!(from(&image, &[0.0, 0.0]), dead);
    for factors in [vec![], vec![even(2, 2); 3]] {
        let image = PlcaState {
            factors,
            ..image.clone()
        };
        assert!(matches!(
            from(&image, &[2.0, 0.0]),
            EmError::Order { expected: 2, .. }
        ));
    }
    for factors in [vec![even(2, 3), even(2, 2)], vec![even(2, 2), even(2, 1)]] {
        let image = PlcaState {
            factors,
            ..image.clone()
        };
        assert!(matches!(from(&image, &[2.0, 0.0]), EmError::Shape { .. }));
    }
    Ok(())
}

#[test]
fn of_shifted_and_transformed() {
    let data = data();
    let shifted_config = Shifted::builder(2, vec![2, 2]).build().unwrap();
    let of_shifted = shifted_config.on(&data).unwrap();
    let cell = |i: i64, j: i64| 4 * i + j;
    let places = (0..2).flat_map(|i| (0..3).map(move |j| (i, j)));
    let table: Vec<i64> = places
        .flat_map(|(i, j)| {
            [
                cell(i, j),
                cell(i, j + 1),
                cell(i + 1, j),
                cell(i + 1, j + 1),
            ]
        })
        .collect();
    let maps = IndexMaps::new(12, 4, &table).unwrap();
    let transformed_config = Transformed::builder(2, maps).build().unwrap();
    let of_transformed = transformed_config.on(&data).unwrap();
    accepted(&of_shifted, &shifted());
    accepted(&of_transformed, &shifted());
    let mut bad: Vec<ShiftedState<f64>> = Vec::new();
    for weights in spoilt_weights(&shifted().weights) {
        bad.push(ShiftedState {
            weights,
            ..shifted()
        });
    }
    for kernels in spoilt(&shifted().kernels) {
        bad.push(ShiftedState {
            kernels,
            ..shifted()
        });
    }
    for impulses in spoilt(&shifted().impulses) {
        bad.push(ShiftedState {
            impulses,
            ..shifted()
        });
    }
    for state in &bad {
        refused(&of_shifted, state);
        refused(&of_transformed, state);
        assert!(of_shifted.reconstruct(state).is_err());
        assert!(of_transformed.reconstruct(state).is_err());
        assert!(of_shifted.ln_lik(state).is_err() && of_transformed.ln_lik(state).is_err());
        assert!(of_shifted.window_mass(state).is_nan());
    }
}

/// States without components are refused by name, before any kernel sees them.
#[test]
fn without_components() {
    let none = NmfState::<f64> {
        w: DMatrix::zeros(3, 0),
        h: DMatrix::zeros(0, 4),
    };
    let refused = EmError::Param(ParamError::NoComponents);
    assert_eq!(none.check(&[3, 4]), Err(refused.clone()));
    assert_eq!(none.to_plca(), Err(refused.clone()));
    let fold_in = none.fold_in(&data(), 1, &FoldIn::default());
    assert_eq!(fold_in.unwrap_err(), refused);
    let none = PlcaState::<f64> {
        weights: DVector::zeros(0),
        factors: vec![DMatrix::zeros(3, 0), DMatrix::zeros(4, 0)],
        ..plca()
    };
    assert_eq!(
        none.fold_in(&data(), 1, &FoldIn::default()).unwrap_err(),
        refused
    );
}

/// Plain, accelerated, and by the loop: all go on from a state.
fn goes_on<A>(em: A, state: A::State) -> A::State
where
    A: Accelerate<Error = EmError>,
    A::State: Clone,
{
    accepted(&em, &state);
    let stop = Stop {
        max_iter: 2,
        ..Stop::default()
    };
    run(&Squarem(em), state, &stop, ()).unwrap().state
}

/// Counters that are full, as files may hold them, stay so.
#[test]
fn the_largest_counts_stay() {
    const MOST: usize = usize::MAX;
    let data = data();
    let plca_of = Plca::builder(2).build().unwrap();
    let full = PlcaState {
        iteration: MOST,
        ..plca()
    };
    let on = || plca_of.on(&data).unwrap();
    assert_eq!(goes_on(on(), full.clone()).iteration, MOST);
    let fast = Fast::new(on()).unwrap();
    let mut state = FastState::new(full);
    fast.step(&mut state, true).unwrap();
    // How many steps led to a state is one more counter.
    let text = serde_json::to_string(&state).unwrap();
    let more = text.replace("\"steps\":1}", &format!("\"steps\":{MOST}}}"));
    assert_ne!(more, text);
    state = serde_json::from_str(&more).unwrap();
    for _ in 0..3 {
        fast.step(&mut state, true).unwrap();
    }
    assert_eq!(state.model().iteration, MOST);
    assert_eq!(
        serde_json::to_string(&state)
            .unwrap()
            .matches(&MOST.to_string())
            .count(),
        2
    );

    let plsa_of = Plsa::builder(2).build().unwrap();
    let full = PlsaState {
        iteration: MOST,
        ..plsa()
    };
    let on = || plsa_of.on(&data).unwrap();
    assert_eq!(goes_on(on(), full.clone()).iteration, MOST);
    let mut state = FastState::new(full);
    Fast::new(on()).unwrap().step(&mut state, true).unwrap();
    Fast::new(on()).unwrap().step(&mut state, true).unwrap();
    assert_eq!(state.model().iteration, MOST);

    let full = ShiftedState {
        iteration: MOST,
        ..shifted()
    };
    let shifted_of = Shifted::builder(2, vec![2, 2]).build().unwrap();
    let state = goes_on(shifted_of.on(&data).unwrap(), full.clone());
    assert_eq!(state.iteration, MOST);
    let maps = IndexMaps::new(12, 4, &[0, 1, 4, 5]).unwrap();
    let transformed_of = Transformed::builder(2, maps).build().unwrap();
    let full = ShiftedState {
        impulses: even(1, 2),
        ..full
    };
    let on = DenseTensor::new(SHAPE.to_vec(), corner(), Order::RowMajor).unwrap();
    let state = goes_on(transformed_of.on(&on).unwrap(), full);
    assert_eq!(state.iteration, MOST);

    let mut state = OnlineState::new(plca().weights, vec![even(3, 2)]).unwrap();
    state.batches = u64::MAX;
    let learner = plca_em::Plca::<f64>::builder(2).build().unwrap();
    let learner = Online::builder(learner).build().unwrap();
    learner.partial_fit(&mut state, &data).unwrap();
    assert_eq!(state.batches, u64::MAX);
}

/// What accelerations extrapolate is the whole state: every entry once, and back again.
#[test]
fn states_are_packed_whole() {
    fn whole<A: Accelerate<State: PartialEq + Debug>>(
        model: &A,
        state: &A::State,
        entries: &[f64],
    ) {
        let flat = model.pack(state);
        assert_eq!(flat, entries);
        assert_eq!(&model.unpack(state, &flat, &flat), state);
    }
    // A size and numbers that nothing rounds.
    let data = DenseTensor::new(vec![2, 2], vec![4.0, 1.0, 1.0, 2.0], Order::RowMajor).unwrap();
    let (a, b) = (
        dmatrix![0.5, 0.25; 0.5, 0.75],
        dmatrix![0.125, 1.0; 0.875, 0.0],
    );
    let both: Vec<f64> = a.iter().chain(&b).copied().collect();
    let nmf = Nmf::builder(2).build().unwrap();
    let state = NmfState {
        w: a.clone(),
        h: b.clone(),
    };
    whole(&nmf.on(&data).unwrap(), &state, &both);
    let plsa = Plsa::builder(2).build().unwrap();
    let state = PlsaState {
        basis: a.clone(),
        mixture: b.clone(),
        power: 1.0,
        iteration: 0,
    };
    whole(&plsa.on(&data).unwrap(), &state, &both);
    let plca = Plca::builder(2).build().unwrap();
    let weights = dvector![0.25, 0.75];
    let state = PlcaState {
        weights: weights.clone(),
        factors: vec![a, b],
        power: 1.0,
        iteration: 0,
    };
    let all: Vec<f64> = weights.iter().copied().chain(both).collect();
    whole(&plca.on(&data).unwrap(), &state, &all);
}
