//! States made by hand that are no distributions, or exclude what was observed: typed errors where they are measured.

use nalgebra::DMatrix;
use plca_em::{
    Algorithm, EmError, IndexMaps, MapEntry, Missing, Nmf, NmfState, ParamError, Plca, PlcaState,
    Plsa, Update,
};
use plca_tensor::{MaskedTensor, Order};

use super::states::{data, even, plca, plsa, shifted};

/// Columns that are no distributions have no likelihood.
#[test]
fn sums() {
    let data = data();
    let plca_config = Plca::builder(2).build().unwrap();
    let em = plca_config.on(&data).unwrap();
    let expected = |block: &str, sum: f64| EmError::NotNormalised {
        block: block.into(),
        column: 1,
        sum,
    };
    let mut state = plca();
    state.factors[1].column_mut(1).scale_mut(2.0);
    assert_eq!(state.check(&[3, 4]), Err(expected("factor_1", 2.0)));
    assert_eq!(em.objective(&state), Err(expected("factor_1", 2.0)));
    assert!(em.ln_lik(&state).is_nan());
    // An iteration makes distributions of anything.
    em.step(&mut state, false).unwrap();
    assert!(em.ln_lik(&state).is_finite());

    let plsa_config = Plsa::builder(2).build().unwrap();
    let mut state = plsa();
    state.mixture.column_mut(1).fill(0.0);
    let em = plsa_config.on(&data).unwrap();
    assert_eq!(em.objective(&state), Err(expected("mixture", 0.0)));
    let mut state = shifted();
    state.kernels.column_mut(1).scale_mut(0.5);
    assert_eq!(state.check([4, 6]), Err(expected("kernels", 0.5)));
}

/// A state that excludes something observed is refused where that is measured.
#[test]
fn support() {
    let data = data();
    let excluded = |result: Result<Option<f64>, EmError>| {
        assert!(matches!(result, Err(EmError::Support { .. })), "{result:?}");
    };
    let zeroed = |mut m: DMatrix<f64>| {
        m.row_mut(0).fill(0.0);
        m
    };
    let mut state = plca();
    state.factors[0] = zeroed(even(3, 2));
    let plca_config = Plca::builder(2).build().unwrap();
    excluded(plca_config.on(&data).unwrap().step(&mut state, true));
    let mut state = plsa();
    state.basis = zeroed(even(3, 2));
    let plsa_config = Plsa::builder(2).build().unwrap();
    excluded(plsa_config.on(&data).unwrap().step(&mut state, true));
    for update in [Update::Simultaneous, Update::Sequential] {
        let nmf = Nmf::builder(2).update(update).build().unwrap();
        let mut state = NmfState {
            w: zeroed(even(3, 2)),
            h: even(2, 4),
        };
        excluded(nmf.on(&data).unwrap().step(&mut state, true));
    }
}

/// A component that nothing is left of keeps its part of a factor.
#[test]
fn dead_components_of_nmf() {
    let data = data();
    let mut state = NmfState {
        w: even(3, 2),
        h: even(2, 4),
    };
    state.h.row_mut(1).fill(0.0);
    let nmf = Nmf::builder(2).update(Update::Sequential).build().unwrap();
    nmf.on(&data).unwrap().step(&mut state, false).unwrap();
    assert_eq!(state.w.column(1), even(3, 2).column(1));
    assert!(state.h.row(1).iter().all(|&x| x == 0.0));
}

/// Multiplicative updates have no power.
#[test]
fn tempered_states_are_refused_by_multiplicative_updates() {
    let values = vec![1.0, 2.0, f64::NAN, 4.0];
    let data = MaskedTensor::new(vec![2, 2], values, Order::RowMajor).unwrap();
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
    for map in [u32::MAX as usize, usize::MAX] {
        let entry = MapEntry {
            map,
            from: 0,
            to: None,
            weight: 1.0,
        };
        let refused = IndexMaps::from_entries(1, 1, vec![entry]);
        assert!(matches!(refused, Err(ParamError::Maps(_))));
    }
}
