//! States made by hand that are no distributions, or exclude what was observed: typed errors where they are measured.

use nalgebra::DMatrix;
use plca_em::{
    Algorithm, EmError, Given, IndexMaps, MapEntry, Missing, ParamError, Shifted, ShiftedState,
    Stop, Transformed, Update,
    before::{Nmf, NmfState, Plca, PlcaState, Plsa, PlsaState},
    run,
};
use plca_tensor::{DenseTensor, Order};

use super::states::{data, even, plca, plsa, shifted};

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

fn scaled_plca(block: usize, scale: f64) -> (PlcaState<f64>, &'static str) {
    let mut state = plca();
    match block {
        0 => state.weights *= scale,
        _ => state.factors[block - 1].column_mut(1).scale_mut(scale),
    }
    (state, ["weights", "factor_0", "factor_1"][block])
}

fn scaled_plsa(block: usize, scale: f64) -> (PlsaState<f64>, &'static str) {
    let mut state = plsa();
    let blocks = [&mut state.basis, &mut state.mixture];
    blocks.map(|b| b.column_mut(1))[block].scale_mut(scale);
    (state, ["basis", "mixture"][block])
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
    let config = Plca::builder(2).build().unwrap();
    let em = config.on(&data).unwrap();
    let check = |s: &PlcaState<f64>| s.check(&[3, 4]);
    measured_if_distributions(&em, 3, scaled_plca, check, |s| em.ln_lik(s));

    let config = Plsa::builder(2).build().unwrap();
    let em = config.on(&data).unwrap();
    let check = |s: &PlsaState<f64>| s.check(&[3, 4], Given::default());
    measured_if_distributions(&em, 2, scaled_plsa, check, |s| em.ln_lik(s));

    let check = |s: &ShiftedState<f64>| s.check([4, 6]);
    let config = Shifted::builder(2, vec![2, 2]).build().unwrap();
    let em = config.on(&data).unwrap();
    measured_if_distributions(&em, 3, scaled_shifted, check, |s| em.ln_lik(s));
    let config = shifts();
    let em = config.on(&data).unwrap();
    measured_if_distributions(&em, 3, scaled_shifted, check, |s| em.ln_lik(s));
}

/// A state that excludes something observed is refused where that is measured.
#[test]
fn support() {
    let (shape, values, order) = data().into_parts();
    let data = data();
    let excluded = |result: Result<Option<f64>, EmError>| {
        let (index, value) = (vec![0, 0], 1.0);
        assert_eq!(result, Err(EmError::Support { index, value }));
    };
    let zeroed = |mut m: DMatrix<f64>| {
        m.row_mut(0).fill(0.0);
        m
    };
    let mut state = plca();
    state.factors[0] = zeroed(even(3, 2));
    let config = Plca::builder(2).build().unwrap();
    excluded(config.on(&data).unwrap().step(&mut state.clone(), true));
    let mut seen = [true; 12];
    seen[5] = false;
    let masked = DenseTensor::with_mask(shape, values, order, &seen).unwrap();
    let config = Plca::builder(2).missing(Missing::Multiplicative);
    let config = config.build().unwrap();
    excluded(config.on(&masked).unwrap().step(&mut state, true));
    let mut state = plsa();
    state.basis = zeroed(even(3, 2));
    let config = Plsa::builder(2).build().unwrap();
    excluded(config.on(&data).unwrap().step(&mut state, true));
    for update in [Update::Simultaneous, Update::Sequential] {
        let nmf = Nmf::builder(2).update(update).build().unwrap();
        let mut state = NmfState {
            w: zeroed(even(3, 2)),
            h: even(2, 4),
        };
        excluded(nmf.on(&data).unwrap().step(&mut state, true));
    }
    let mut state = shifted();
    state.kernels = zeroed(even(4, 2));
    let config = Shifted::builder(2, vec![2, 2]).build().unwrap();
    excluded(config.on(&data).unwrap().step(&mut state.clone(), true));
    excluded(shifts().on(&data).unwrap().step(&mut state, true));
}

/// A component that nothing is left of keeps its part of the other factor.
// [SPEC 0] [SI eq. 79] [SI eq. 80]
#[test]
fn dead_components_of_nmf() {
    let data = data();
    for update in [Update::Simultaneous, Update::Sequential] {
        let nmf = Nmf::builder(2).update(update).build().unwrap();
        let em = nmf.on(&data).unwrap();
        let start = NmfState {
            w: even(3, 2),
            h: even(2, 4),
        };
        let mut state = start.clone();
        state.h.row_mut(1).fill(0.0);
        em.step(&mut state, false).unwrap();
        assert_eq!(state.w.column(1), start.w.column(1), "{update:?}");
        assert!(state.h.row(1).iter().all(|&x| x == 0.0));
        let mut state = start.clone();
        state.w.column_mut(1).fill(0.0);
        em.step(&mut state, false).unwrap();
        assert_eq!(state.h.row(1), start.h.row(1), "{update:?}");
        assert!(state.w.column(1).iter().all(|&x| x == 0.0));
    }
}

/// A component that dies in a step of EM keeps its column of `W`, as it does in PLCA of the same product.
// [SPEC 0] [SPEC 3]
#[test]
fn components_that_die_in_a_step_of_nmf() {
    let values = vec![3.0, 1.0, 0.0, 0.0];
    let data = DenseTensor::new(vec![2, 2], values, Order::RowMajor).unwrap();
    let mut state = NmfState {
        w: nalgebra::dmatrix![2.0, 0.0; 1.0, 5.0],
        h: nalgebra::dmatrix![1.0, 1.0; 2.0, 3.0],
    };
    let (nmf, plca) = (
        Nmf::builder(2).build().unwrap(),
        Plca::builder(2).build().unwrap(),
    );
    let mut image = state.to_plca().unwrap();
    for _ in 0..3 {
        nmf.on(&data).unwrap().step(&mut state, false).unwrap();
        plca.on(&data).unwrap().step(&mut image, false).unwrap();
        assert_eq!(state.w.column(1).as_slice(), [0.0, 5.0]);
        assert_eq!(image.weights[1], 0.0);
        assert_eq!(image.factors[0].column(1).as_slice(), [0.0, 1.0]);
        let back = NmfState::from_plca(&image, &[3.0, 5.0], 4.0).unwrap();
        assert!((&state.w - back.w).amax() < 1e-14 && (&state.h - back.h).amax() < 1e-14);
    }
}

/// What is no number is no stationary point: a run goes on to the step that names the place.
#[test]
fn states_without_support_are_not_stationary() {
    let data = data();
    let stop = Stop {
        residual_tol: Some(1e-3),
        ..Stop::default()
    };
    let mut state = plca();
    state.factors[0].row_mut(0).fill(0.0);
    let config = Plca::builder(2).build().unwrap();
    let result = run(&config.on(&data).unwrap(), state.clone(), &stop, ());
    assert!(matches!(result, Err(EmError::Support { .. })), "{result:?}");
    let nmf = Nmf::builder(2).build().unwrap();
    let state = NmfState {
        w: state.factors.swap_remove(0),
        h: even(2, 4),
    };
    let result = run(&nmf.on(&data).unwrap(), state, &stop, ());
    assert!(matches!(result, Err(EmError::Support { .. })), "{result:?}");
    let mut state = plsa();
    state.basis.row_mut(0).fill(0.0);
    let config = Plsa::builder(2).build().unwrap();
    let result = run(&config.on(&data).unwrap(), state, &stop, ());
    assert!(matches!(result, Err(EmError::Support { .. })), "{result:?}");
    let mut state = shifted();
    state.kernels.row_mut(0).fill(0.0);
    let config = Shifted::builder(2, vec![2, 2]).build().unwrap();
    let result = run(&config.on(&data).unwrap(), state, &stop, ());
    assert!(matches!(result, Err(EmError::Support { .. })), "{result:?}");
}

/// Multiplicative updates have no power.
#[test]
fn tempered_states_are_refused_by_multiplicative_updates() {
    let values = vec![1.0, 2.0, f64::NAN, 4.0];
    let data = DenseTensor::masked(vec![2, 2], values, Order::RowMajor).unwrap();
    let plca_config = Plca::builder(2).missing(Missing::Multiplicative);
    let plca_config = plca_config.build().unwrap();
    let mut state = PlcaState {
        factors: vec![even(2, 2), even(2, 2)],
        power: 0.5,
        ..plca()
    };
    let refused = plca_config.on(&data).unwrap().step(&mut state, true);
    assert!(matches!(
        refused,
        Err(EmError::Param(ParamError::Conflict(_)))
    ));
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
