//! States made by hand that are no distributions, or exclude what was observed: typed errors where they are measured.

use nalgebra::{DMatrix, dmatrix};
use plca_em::{
    Algorithm, EmError, Given, IndexMaps, MapEntry, Missing, Nmf, NmfState, ParamError, Plca,
    PlcaState, Plsa, PlsaState, Shifted, ShiftedState, Transformed, Update, run,
};
use plca_fit::engine::{Checkpoint, FitError, Init, Model, Parameters, Solver, State, Stop};
use plca_tensor::{Data, DenseTensor, Order};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use super::states::{data, even, plca, plsa, shifted};
use super::support::after;

/// A state scaled in one column of one of its blocks, and that block's name.
type Scaled<S> = fn(usize, f64) -> (S, &'static str);

/// Columns that are no distributions have no likelihood; by rounding they may be off.
fn measured_if_distributions<A: Algorithm<Error = EmError>>(
    em: &A,
    blocks: usize,
    scaled: Scaled<A::State>,
    check: impl Fn(&A::State) -> Result<(), EmError>,
    ln_lik: impl Fn(&A::State) -> Result<f64, EmError>,
) where
    A::State: Clone,
{
    for block in 0..blocks {
        for scale in [2.0, 0.0, 1.0 + 1e-7, 1.0 - 1e-7] {
            let (mut state, name) = scaled(block, scale);
            let refused = |result: Result<(), EmError>| match result {
                Err(EmError::NotNormalised { block, column, sum }) => {
                    let last = usize::from(name != "weights");
                    assert_eq!((block.as_str(), column), (name, last));
                    assert!((sum - scale).abs() < 1e-12, "{name}: {sum}");
                }
                other => panic!("{name}, {scale}: {other:?}"),
            };
            refused(check(&state));
            refused(em.objective(&state).map(drop));
            refused(ln_lik(&state).map(drop));
            // An iteration makes distributions of what has mass.
            if scale > 0.0 {
                em.step(&mut state, false).unwrap();
                assert!(em.objective(&state).unwrap().is_finite());
            }
        }
        let (state, name) = scaled(block, 1.0 + 1e-9);
        assert_eq!(check(&state), Ok(()), "{name}");
        assert!(em.objective(&state).unwrap().is_finite(), "{name}");
        assert!(ln_lik(&state).unwrap().is_finite(), "{name}");
    }
}

/// A state with a scaled column is none, whether made, read or resumed from; by rounding it may be off.
fn distributions<M: Model<Scalar = f64>>(model: &M, state: &M::State) {
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

fn scaled_shifted(block: usize, scale: f64) -> (ShiftedState<f64>, &'static str) {
    let mut state = shifted();
    match block {
        0 => state.weights *= scale,
        1 => state.kernels.column_mut(1).scale_mut(scale),
        _ => state.impulses.column_mut(1).scale_mut(scale),
    }
    (state, ["weights", "kernels", "impulses"][block])
}

/// The shifts of a kernel of 2 x 2 cells within data of 3 x 4, as maps.
fn shifts() -> Transformed<f64> {
    let corners = (0..6).map(|at| at / 3 * 4 + at % 3);
    let table: Vec<i64> = corners.flat_map(|c| [c, c + 1, c + 4, c + 5]).collect();
    let maps = IndexMaps::new(12, 4, &table).unwrap();
    Transformed::builder(2, maps).build().unwrap()
}

#[test]
fn sums() {
    let data = data();
    distributions(&Plca::builder(2).build().unwrap(), &plca());
    distributions(&Plsa::builder(2).build().unwrap(), &plsa());

    let check = |s: &ShiftedState<f64>| s.check([4, 6]);
    let config = Shifted::builder(2, vec![2, 2]).build().unwrap();
    let em = config.on(&data).unwrap();
    measured_if_distributions(&em, 3, scaled_shifted, check, |s| em.ln_lik(s));
    let config = shifts();
    let em = config.on(&data).unwrap();
    measured_if_distributions(&em, 3, scaled_shifted, check, |s| em.ln_lik(s));
}

/// The same with a first row of zeros.
fn zeroed(rows: usize, columns: usize) -> DMatrix<f64> {
    let mut m = even(rows, columns).insert_row(0, 0.0);
    m = m.remove_row(rows);
    m * rows as f64 / (rows - 1) as f64
}

/// A state that excludes something observed is refused as a start, by a step that measures, and by a run from there, which does not take
/// what is no number for stationary.
fn excludes<M: Model<Scalar = f64>>(model: &M, data: &dyn Data<f64>, state: &M::State) {
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
    for &solver in Solver::ALL {
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
    excludes(&Plca::builder(2).build().unwrap(), &data, &state);
    let mut seen = [true; 12];
    seen[5] = false;
    let masked = DenseTensor::with_mask(shape, values, order, &seen).unwrap();
    let config = Plca::builder(2).missing(Missing::Multiplicative);
    excludes(&config.build().unwrap(), &masked, &state);
    let state = PlsaState::new(Given::Columns, zeroed(3, 2), even(2, 4), vec![0.25; 4]);
    excludes(&Plsa::builder(2).build().unwrap(), &data, &state.unwrap());
    for update in [Update::Simultaneous, Update::Sequential] {
        let nmf = Nmf::builder(2).update(update).build().unwrap();
        let state = NmfState::new(zeroed(3, 2), even(2, 4)).unwrap();
        excludes(&nmf, &data, &state);
    }
    let mut state = shifted();
    state.kernels.row_mut(0).fill(0.0);
    let excluded = |result: Result<Option<f64>, EmError>| {
        let (index, value) = (vec![0, 0], 1.0);
        assert_eq!(result, Err(EmError::Support { index, value }));
    };
    let config = Shifted::builder(2, vec![2, 2]).build().unwrap();
    excluded(config.on(&data).unwrap().step(&mut state.clone(), true));
    excluded(shifts().on(&data).unwrap().step(&mut state.clone(), true));
    let stop = plca_em::Stop {
        residual_tol: Some(1e-3),
        ..plca_em::Stop::default()
    };
    let result = run(&config.on(&data).unwrap(), state, &stop, ());
    assert!(matches!(result, Err(EmError::Support { .. })), "{result:?}");
}

/// A component that nothing is left of keeps its part of the other factor.
// [SPEC 0] [SI eq. 79] [SI eq. 80]
#[test]
fn dead_components_of_nmf() {
    let data = data();
    let (w, h) = (even(3, 2), even(2, 4));
    for update in [Update::Simultaneous, Update::Sequential] {
        let nmf = Nmf::builder(2).update(update).build().unwrap();
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
    let nmf = Nmf::builder(2).build().unwrap();
    let plca = Plca::builder(2).build().unwrap();
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
    fn refused<M: Model<Scalar = f64>>(model: &M, data: &dyn Data<f64>) {
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let start = model.init(data, Init::default(), &mut rng).unwrap();
        let mut saved = serde_json::to_value(start.parameters()).unwrap();
        saved["power"] = 0.5.into();
        let tempered: Parameters<f64> = serde_json::from_value(saved).unwrap();
        let run = model.on(data).unwrap().solver(Solver::Em);
        let refused = run.resume(Checkpoint::new(tempered)).unwrap_err();
        assert!(matches!(refused, FitError::Checkpoint { .. }), "{refused}");
    }
    let plca = Plca::builder(2).missing(Missing::Multiplicative);
    refused(&plca.build().unwrap(), &data);
    refused(&Nmf::builder(2).build().unwrap(), &data);
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
        let refused = IndexMaps::from_entries(cells, kernel, vec![entry]);
        let why = "more cells or maps than 32 bits can number";
        assert_eq!(refused.unwrap_err(), ParamError::Maps(why));
    }
}
