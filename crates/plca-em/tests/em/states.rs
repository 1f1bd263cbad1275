//! States made by hand: what does not fit the data or is no number is a typed error everywhere, never a panic.

use nalgebra::{DMatrix, DVector, dmatrix, dvector};
use plca_em::{
    Geometry, Given, IndexMaps, Likelihood, Nmf, NmfState, Online, OnlineState, Plca, PlcaState,
    Plsa, PlsaState, Shifted, ShiftedState, Support, Transformed, TransformedState, Update,
};
use plca_fit::{Checkpoint, FitError, Model, Parameters, State, Transform, blocks::Frozen};
use plca_tensor::{DenseTensor, Order};

use super::support::{exactly, solvers};

const SHAPE: [usize; 2] = [3, 4];

pub(super) fn data() -> DenseTensor<f64> {
    let values = (0..12).map(|i| 1.0 + f64::from(i % 5)).collect();
    DenseTensor::new(SHAPE.to_vec(), values, Order::RowMajor).unwrap()
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

pub(super) fn plca() -> PlcaState<f64> {
    let factors = vec![even(3, 2), even(4, 2)];
    PlcaState::new(DVector::from_element(2, 0.5), factors).unwrap()
}

pub(super) fn plsa() -> PlsaState<f64> {
    PlsaState::new(Given::Columns, even(3, 2), even(2, 4), vec![0.25; 4]).unwrap()
}

pub(super) fn nmf() -> NmfState<f64> {
    NmfState::new(even(3, 2), even(2, 4)).unwrap()
}

pub(super) fn shifted() -> ShiftedState<f64> {
    let geometry = Geometry::new(&SHAPE, &[2, 2], &[Support::Valid]).unwrap();
    let weights = DVector::from_element(2, 0.5);
    let conditional = Likelihood::Conditional;
    ShiftedState::new(geometry, conditional, weights, even(4, 2), even(6, 2)).unwrap()
}

/// The shifts of a kernel of 2 x 2 cells within the data, as maps.
pub(super) fn maps() -> IndexMaps {
    let corners = (0..6).map(|at| at / 3 * 4 + at % 3);
    let table: Vec<i64> = corners.flat_map(|c| [c, c + 1, c + 4, c + 5]).collect();
    IndexMaps::new(12, 4, &table).unwrap()
}

pub(super) fn transformed() -> TransformedState<f64> {
    let (weights, conditional) = (DVector::from_element(2, 0.5), Likelihood::Conditional);
    let (kernels, impulses) = (even(4, 2), even(6, 2));
    TransformedState::new(maps(), &SHAPE, conditional, weights, kernels, impulses).unwrap()
}

/// Blocks as a file may have them.
type Named = Vec<(String, DMatrix<f64>)>;

fn named(state: &impl State<Scalar = f64>) -> Named {
    let blocks = state.parameters().blocks();
    blocks.map(|(name, m)| (name.into(), m.clone())).collect()
}

/// A good state goes on under every solver that the model takes. With a block that is spoilt, one too few, one too many or of another name it is refused by all
/// of them, and so is a power or a mass that is none; whatever becomes of new data, it is no panic.
fn guarded<M: Model<f64>>(
    model: &M,
    state: &M::State,
    other: &[Named],
    transform: impl Fn(&M::State),
) {
    let data = data();
    let run = |solver, at: Parameters<f64>| {
        let run = model.on(&data).unwrap().solver(solver).stop(exactly(2));
        run.resume(Checkpoint::new(at))
    };
    let good = named(state);
    let mut bad = other.to_vec();
    for (j, (name, block)) in good.iter().enumerate() {
        for block in spoilt(block) {
            let mut blocks = good.clone();
            blocks[j].1 = block;
            bad.push(blocks);
        }
        let mut blocks = good.clone();
        blocks[j].0 = format!("{name}_");
        bad.push(blocks);
    }
    bad.push(good[1..].to_vec());
    bad.push([good.clone(), vec![("more".into(), even(3, 2))]].concat());
    let fact = |at: Parameters<f64>| {
        let facts = state.parameters().facts();
        facts.fold(at, |at, (name, numbers)| {
            at.with_fact(name.to_string(), numbers.to_vec())
        })
    };
    let em = model.bind(&data).unwrap();
    for solver in solvers(&*em) {
        let at = fact(Parameters::named(good.clone(), 1.0));
        assert!(run(solver, at).unwrap().objective().is_finite());
        for blocks in &bad {
            let at = fact(Parameters::named(blocks.clone(), 1.0));
            match run(solver, at.clone()).unwrap_err() {
                FitError::Checkpoint { .. } | FitError::Value { .. } => {}
                e => panic!("{solver}: {e}"),
            }
            if let Ok(state) = M::State::wrap(at) {
                transform(&state);
            }
        }
        let saved = serde_json::to_value(state.parameters()).unwrap();
        for (name, values) in [("power", [0.0, -1.0, 1.5]), ("mass", [-1.0, -0.5, -1e300])] {
            for value in values {
                let mut saved = saved.clone();
                saved[name] = value.into();
                let at: Parameters<f64> = serde_json::from_value(saved).unwrap();
                let of = |error| matches!(error, FitError::Setting { name: n, .. } if n == name);
                assert!(of(run(solver, at.clone()).unwrap_err()));
                assert!(of(M::State::wrap(at).unwrap_err()));
            }
        }
    }
}

#[test]
fn of_plca() {
    let config = Plca::new(2);
    // Other numbers of modes, and another number of components than the configuration has.
    let weights = |k: usize| ("weights".to_string(), even(k, 1));
    let factor = |j: usize, block| (format!("factor_{j}"), block);
    let other = [
        vec![weights(2)],
        vec![weights(2), factor(0, even(3, 2))],
        vec![weights(3), factor(0, even(3, 3)), factor(1, even(4, 3))],
    ];
    guarded(&config, &plca(), &other, |state| {
        let _ = state.transform(&data(), &Transform::default().along(1));
    });
}

#[test]
fn of_plsa() {
    let config = Plsa::new(2);
    guarded(&config, &plsa(), &[], |state| {
        let _ = state.transform(&data(), &Transform::default());
    });
    // Given along another mode.
    let rows = PlsaState::new(Given::Rows, even(4, 2), even(2, 3), vec![1.0 / 3.0; 3]).unwrap();
    let from = Checkpoint::new(rows.parameters().clone());
    let refused = config.on(&data()).unwrap().resume(from).unwrap_err();
    assert!(matches!(refused, FitError::Checkpoint { .. }), "{refused}");
}

#[test]
fn of_nmf() {
    for update in [Update::Simultaneous, Update::Sequential] {
        let config = Nmf::new(2).update(update);
        guarded(&config, &nmf(), &[], |state| {
            for along in 0..3 {
                let _ = state.transform(&data(), &Transform::default().along(along));
            }
        });
    }
}

/// The mapping between the two forms refuses what does not fit together, and a component without mass survives it.
#[test]
fn of_the_mapping_between_nmf_and_plca() -> Result<(), FitError> {
    let w = dmatrix![0.5, 0.0; 1.5, 0.0];
    let good = NmfState::new(w.clone(), dmatrix![1.0, 3.0; 0.0, 0.0])?;
    let image = good.to_plca()?;
    assert_eq!(image.weights(), [1.0, 0.0]);
    assert_eq!(NmfState::from_plca(&image, &[2.0, 0.0], 8.0)?, good);
    let unequal = NmfState::new(w, even(3, 2));
    assert!(matches!(unequal, Err(FitError::Shape { .. })));

    let from = |image: &PlcaState<f64>, d: &[f64]| NmfState::from_plca(image, d, 8.0).unwrap_err();
    assert!(matches!(from(&image, &[2.0]), FitError::Shape { .. }));
    let of = |error: FitError, name: &str| {
        let named = matches!(&error, FitError::Value { block, .. } if block == name);
        assert!(named, "{error}");
    };
    for bad in [-1.0, f64::NAN, f64::INFINITY] {
        of(from(&image, &[2.0, bad]), "w");
        of(
            NmfState::from_plca(&image, &[2.0, 0.0], bad).unwrap_err(),
            "h",
        );
    }
    // Beyond the range of the scalar: H D^-1 under the smallest number.
    of(from(&image, &[5e-324, 0.0]), "h");
    let dead = FitError::Empty {
        block: "w".into(),
        column: 0,
    };
    assert_eq!(from(&image, &[0.0, 0.0]), dead);
    let weights = || DVector::from_vec(vec![1.0, 0.0]);
    for order in [1, 3] {
        let image = PlcaState::new(weights(), vec![even(2, 2); order])?;
        assert!(matches!(
            from(&image, &[2.0, 0.0]),
            FitError::Conflict { .. }
        ));
    }
    let none = PlcaState::new(weights(), vec![]);
    assert!(matches!(none, Err(FitError::Count { got: 0, .. })));
    for factors in [vec![even(2, 3), even(2, 2)], vec![even(2, 2), even(2, 1)]] {
        let unequal = PlcaState::new(weights(), factors);
        assert!(matches!(unequal, Err(FitError::Shape { .. })));
    }
    Ok(())
}

#[test]
fn of_shifted_and_transformed() {
    let config = Shifted::new(2, vec![2, 2]);
    guarded(&config, &shifted(), &[], |state| {
        let _ = state.transform(&data(), &Transform::default());
    });
    let config = Transformed::new(2, maps());
    guarded(&config, &transformed(), &[], |state| {
        let _ = state.transform(&data(), &Transform::default());
    });
}

/// States without components are refused, before any kernel sees them.
#[test]
fn without_components() {
    let none = |rows: usize| DMatrix::<f64>::zeros(rows, 0);
    let nmf = NmfState::new(none(3), DMatrix::zeros(0, 4)).map(drop);
    let plca = PlcaState::new(DVector::zeros(0), vec![none(3), none(4)]).map(drop);
    let plsa = PlsaState::new(Given::Columns, none(3), DMatrix::zeros(0, 4), vec![0.25; 4]);
    for state in [nmf, plca, plsa.map(drop)] {
        let error = state.unwrap_err();
        let named = matches!(
            &error,
            FitError::Setting {
                name: "components",
                ..
            }
        );
        assert!(named, "{error}");
    }
}

/// Under every solver that the model takes, a full count of the iterations that made the parameters stays; a full count of those of the run ends it.
fn full<M: Model<f64>>(model: &M, state: &M::State) {
    const MOST: usize = usize::MAX;
    let data = data();
    let em = model.bind(&data).unwrap();
    for solver in solvers(&*em) {
        let on = || model.on(&data).unwrap().solver(solver);
        let full = state.parameters().clone().at_iteration(MOST);
        let fit = on().stop(exactly(3)).resume(Checkpoint::new(full)).unwrap();
        assert_eq!(fit.checkpoint().parameters().iteration(), MOST, "{solver}");
        let mut saved = serde_json::to_value(fit.checkpoint()).unwrap();
        saved["iteration"] = MOST.into();
        let from = serde_json::from_value(saved).unwrap();
        let fit = on().resume(from).unwrap();
        assert_eq!(fit.iterations(), MOST, "{solver}");
    }
}

/// Counters that are full, as files may hold them, stay so.
#[test]
fn the_largest_counts_stay() {
    let data = data();
    full(&Plca::new(2), &plca());
    full(&Plsa::new(2), &plsa());
    full(&Shifted::new(2, vec![2, 2]), &shifted());
    let model = Transformed::new(2, maps());
    full(&model, &transformed());

    let mut state = OnlineState::new(DVector::from_element(2, 0.5), vec![even(3, 2)]).unwrap();
    state.batches = u64::MAX;
    let learner = Plca::new(2);
    let learner = Online::new(learner);
    learner.partial_fit(&mut state, &data).unwrap();
    assert_eq!(state.batches, u64::MAX);
}

/// What solvers extrapolate is the whole state, block after block: every entry once, and back again; but for what comes from the data.
#[test]
fn states_are_extrapolated_whole() {
    fn whole<M: Model<f64>>(model: &M, state: &M::State) {
        // A size and numbers that nothing rounds.
        let values = vec![4.0, 1.0, 1.0, 2.0];
        let data = DenseTensor::new(vec![2, 2], values, Order::RowMajor).unwrap();
        let em = model.bind(&data).unwrap();
        let at = state.parameters();
        let flat: Vec<f64> = at.matrices().iter().flatten().copied().collect();
        assert_eq!(&em.extrapolated(at, &flat, &flat), at);
        // From elsewhere, the same.
        let mut base = at.clone();
        base.change(|j, block| {
            if em.blocks()[j].frozen == Frozen::No {
                block.fill(0.5);
            }
        });
        assert_eq!(&em.extrapolated(&base, &flat, &flat), at);
    }
    let (a, b) = (
        dmatrix![0.5, 0.25; 0.5, 0.75],
        dmatrix![0.125, 1.0; 0.875, 0.0],
    );
    let nmf = NmfState::new(a.clone(), b.clone()).unwrap();
    whole(&Nmf::new(2), &nmf);
    let plsa = PlsaState::new(Given::Columns, a.clone(), b.clone(), vec![0.625, 0.375]);
    whole(&Plsa::new(2), &plsa.unwrap());
    let geometry = Geometry::new(&[2, 2], &[2, 1], &[Support::Valid]).unwrap();
    let (weights, conditional) = (dvector![0.25, 0.75], Likelihood::Conditional);
    let shifted = ShiftedState::new(geometry, conditional, weights, a.clone(), b.clone());
    let model = Shifted::new(2, vec![2, 1]);
    whole(&model, &shifted.unwrap());
    let plca = PlcaState::new(dvector![0.25, 0.75], vec![a, b]);
    whole(&Plca::new(2), &plca.unwrap());
}
