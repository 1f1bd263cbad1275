//! States made by hand that are no distributions, or exclude what was observed: typed errors where they are measured.

use nalgebra::{DMatrix, dmatrix};
use plca_em::{
    Given, IndexMaps, MapEntry, Missing, Nmf, NmfState, Plca, PlcaState, Plsa, PlsaState, Shifted,
    Transformed, Update,
};
use plca_fit::{Checkpoint, FitError, Init, Model, Parameters, Solver, State, Stop};
use plca_tensor::{Data, DenseTensor, Order};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use super::states::{data, even, maps, plca, plsa, shifted, transformed};
use super::support::{after, solvers};

/// A state with a scaled column is none, whether made, read or resumed from; by rounding it may be off.
fn distributions<M: Model<f64>>(model: &M, state: &M::State) {
    let data = data();
    for (j, (name, _)) in state.parameters().blocks().enumerate() {
        for scale in [2.0, 0.0, 1.0 + 1e-7, 1.0 - 1e-7, 1.0 + 1e-9] {
            let mut at = state.parameters().clone();
            let column = usize::from(at.at(j).ncols() > 1);
            at.change(|k, block| {
                if k == j {
                    block.column_mut(column).scale_mut(scale);
                }
            });
            let run = model.on(&data).unwrap();
            let resumed = run.resume(Checkpoint::new(at.clone())).map(drop);
            if scale == 1.0 + 1e-9 {
                assert_eq!(resumed, Ok(()), "{name}");
                let em = model.bind(&data).unwrap();
                assert!(em.objective(&at).unwrap().is_finite(), "{name}");
                assert!(em.likelihood(&at).unwrap().is_finite(), "{name}");
                assert!(M::State::wrap(at).is_ok(), "{name}");
                continue;
            }
            for error in [resumed, M::State::wrap(at).map(drop)] {
                let Err(FitError::Sum {
                    block,
                    column: c,
                    sum,
                }) = error
                else {
                    panic!("{name}, {scale}: {error:?}");
                };
                assert_eq!((block.as_str(), c), (name, column));
                assert!((sum - scale).abs() < 1e-12, "{name}: {sum}");
            }
        }
    }
}

#[test]
fn sums() {
    distributions(&Plca::new(2), &plca());
    distributions(&Plsa::new(2), &plsa());
    let shifted_model = Shifted::new(2, vec![2, 2]);
    distributions(&shifted_model, &shifted());
    let transformed_model = Transformed::new(2, maps());
    distributions(&transformed_model, &transformed());
}

/// The same with a first row of zeros.
fn zeroed(rows: usize, columns: usize) -> DMatrix<f64> {
    let mut m = even(rows, columns).insert_row(0, 0.0);
    m = m.remove_row(rows);
    m * rows as f64 / (rows - 1) as f64
}

/// A state that excludes something observed is refused as a start, by a step that measures, and by a run from there, which does not take
/// what is no number for stationary.
fn excludes<M: Model<f64>>(model: &M, data: &dyn Data<f64>, state: &M::State) {
    let excluded = |what: &str, error: Option<FitError>| {
        let (index, value) = (vec![0, 0], 1.0);
        let expected = Some(FitError::Support { index, value });
        assert_eq!(error, expected, "{model:?}, {what}");
    };
    let at = state.parameters();
    let em = model.bind(data).unwrap();
    excluded("a step", em.step(&mut at.clone(), true).err());
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    excluded("a start", model.init(data, state, &mut rng).err());
    for solver in solvers(&*em) {
        for stop in [Stop::default(), Stop::default().residual_tol(1e-3)] {
            let run = model.on(data).unwrap().solver(solver).stop(stop);
            let ran = run.resume(Checkpoint::new(at.clone()));
            excluded(solver.name(), ran.err());
        }
    }
}

#[test]
fn support() {
    let (shape, values, order) = data().into_parts();
    let data = data();
    let factors = vec![zeroed(3, 2), even(4, 2)];
    let state = PlcaState::new(vec![0.5; 2].into(), factors).unwrap();
    excludes(&Plca::new(2), &data, &state);
    let mut seen = [true; 12];
    seen[5] = false;
    let masked = DenseTensor::with_mask(shape, values, order, &seen).unwrap();
    let config = Plca::new(2).missing(Missing::Multiplicative);
    excludes(&config, &masked, &state);
    let state = PlsaState::new(Given::Columns, zeroed(3, 2), even(2, 4), vec![0.25; 4]);
    excludes(&Plsa::new(2), &data, &state.unwrap());
    for update in [Update::Simultaneous, Update::Sequential] {
        let nmf = Nmf::new(2).update(update);
        let state = NmfState::new(zeroed(3, 2), even(2, 4)).unwrap();
        excludes(&nmf, &data, &state);
    }
    let zero_kernels = |at: &mut Parameters<f64>| {
        at.change(|j, block| {
            if j == 1 {
                *block = zeroed(4, 2);
            }
        });
    };
    let mut at = shifted().parameters().clone();
    zero_kernels(&mut at);
    let config = Shifted::new(2, vec![2, 2]);
    excludes(&config, &data, &State::wrap(at).unwrap());
    let mut at = transformed().parameters().clone();
    zero_kernels(&mut at);
    let config = Transformed::new(2, maps());
    excludes(&config, &data, &State::wrap(at).unwrap());
}

/// A component that nothing is left of keeps its part of the other factor.
// [SPEC 0] [SI eq. 79] [SI eq. 80]
#[test]
fn dead_components_of_nmf() {
    let data = data();
    let (w, h) = (even(3, 2), even(2, 4));
    for update in [Update::Simultaneous, Update::Sequential] {
        let nmf = Nmf::new(2).update(update);
        let one = |w: DMatrix<f64>, h: DMatrix<f64>| {
            let start = NmfState::new(w, h).unwrap();
            let fit = after(&nmf, &data, &start, Solver::Em, 1);
            fit.unwrap().into_state()
        };
        let mut dead = h.clone();
        dead.row_mut(1).fill(0.0);
        let state = one(w.clone(), dead);
        assert_eq!(state.w().column(1), w.column(1), "{update:?}");
        assert!(state.h().row(1).iter().all(|&x| x == 0.0));
        let mut dead = w.clone();
        dead.column_mut(1).fill(0.0);
        let state = one(dead, h.clone());
        assert_eq!(state.h().row(1), h.row(1), "{update:?}");
        assert!(state.w().column(1).iter().all(|&x| x == 0.0));
    }
}

/// A component that dies in a step of EM keeps its column of `W`, as it does in PLCA of the same product.
// [SPEC 0] [SPEC 3]
#[test]
fn components_that_die_in_a_step_of_nmf() {
    let values = vec![3.0, 1.0, 0.0, 0.0];
    let data = DenseTensor::new(vec![2, 2], values, Order::RowMajor).unwrap();
    let start = NmfState::new(dmatrix![2.0, 0.0; 1.0, 5.0], dmatrix![1.0, 1.0; 2.0, 3.0]);
    let start = start.unwrap();
    let image = start.to_plca().unwrap();
    let nmf = Nmf::new(2);
    let plca = Plca::new(2);
    for n in 1..4 {
        let state = after(&nmf, &data, &start, Solver::Em, n).unwrap();
        let image = after(&plca, &data, &image, Solver::Em, n).unwrap();
        let (state, image) = (state.state(), image.state());
        assert_eq!(state.w().column(1).as_slice(), [0.0, 5.0]);
        assert_eq!(image.weights()[1], 0.0);
        assert_eq!(image.factor(0).column(1).as_slice(), [0.0, 1.0]);
        let back = NmfState::from_plca(image, &[3.0, 5.0], 4.0).unwrap();
        assert!((state.w() - back.w()).amax() < 1e-14);
        assert!((state.h() - back.h()).amax() < 1e-14);
    }
}

/// Multiplicative updates have no power, and neither has NMF.
#[test]
fn tempered_states_are_refused_where_there_is_no_power() {
    let values = vec![1.0, 2.0, f64::NAN, 4.0];
    let data = DenseTensor::masked(vec![2, 2], values, Order::RowMajor).unwrap();
    fn refused<M: Model<f64>>(model: &M, data: &dyn Data<f64>) {
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let start = model.init(data, Init::default(), &mut rng).unwrap();
        let mut saved = serde_json::to_value(start.parameters()).unwrap();
        saved["power"] = 0.5.into();
        let tempered: Parameters<f64> = serde_json::from_value(saved).unwrap();
        let run = model.on(data).unwrap().solver(Solver::Em);
        let refused = run.resume(Checkpoint::new(tempered)).unwrap_err();
        assert!(matches!(refused, FitError::Checkpoint { .. }), "{refused}");
    }
    let plca = Plca::new(2).missing(Missing::Multiplicative);
    refused(&plca, &data);
    refused(&Nmf::new(2), &data);
}

#[test]
fn maps_are_numbered_with_32_bits() {
    let many = u32::MAX as usize;
    let sizes = [(many - 1, 1, 1), (many, 1, 1), (usize::MAX, 1, 1)];
    for (map, cells, kernel) in [&sizes[..], &[(0, many, 1), (0, 1, many)]].concat() {
        let entry = MapEntry {
            map,
            from: 0,
            to: None,
            weight: 1.0,
        };
        let refused = IndexMaps::from_entries(cells, kernel, vec![entry]).unwrap_err();
        let why = "index maps: more cells or maps than 32 bits can number";
        assert_eq!(refused.to_string(), why);
    }
}
