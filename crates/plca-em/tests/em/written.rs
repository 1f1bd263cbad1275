//! States that are written down and read again: equal, and never larger than what was read.

use nalgebra::DVector;
use plca_em::{Nmf, NmfState, OnlineState, Plca, PlcaState};
use plca_fit::{Checkpoint, FitError, Model, Solver};
use plca_tensor::strategies::written;

use crate::states::{data, even, nmf, plca, plsa, shifted, transformed};
use crate::support::after;

#[test]
fn no_matrix_claims_more_than_it_holds() {
    written![
        (plca(), 3),
        (plsa(), 3),
        (nmf(), 2),
        (shifted(), 3),
        (transformed(), 3),
        (
            OnlineState {
                weights: DVector::from_element(2, 0.5),
                factors: vec![even(3, 2), even(4, 2)],
                statistics: vec![even(3, 2), even(4, 2)],
                batches: 1,
                seen: 2.0,
                pass: 2.0,
                total: 2.0,
            },
            4
        ),
    ];
    let config = Nmf::new(2);
    for &solver in Solver::ALL {
        let fit = after(&config, &data(), &nmf(), solver, 1).unwrap();
        written![(fit.checkpoint().clone(), 2)];
    }
}

/// What is no state of the model is refused where it is read, and a checkpoint that is none where a run is to go on from it.
#[test]
fn what_is_read_is_checked() {
    let (config, data) = (Plca::new(2), data());
    let saved = serde_json::to_string(&plca()).unwrap();
    let broken = saved.replace("factor_1", "factor_2");
    let error = serde_json::from_str::<PlcaState<f64>>(&broken).unwrap_err();
    assert!(error.to_string().contains("factor_1"), "{error}");
    assert!(serde_json::from_str::<NmfState<f64>>(&saved).is_err());
    let mut lacks: serde_json::Value = serde_json::from_str(&saved).unwrap();
    lacks["blocks"].as_array_mut().unwrap().pop();
    assert!(serde_json::from_value::<PlcaState<f64>>(lacks.clone()).is_err());
    let end = after(&config, &data, &plca(), Solver::Em, 5).unwrap();
    let mut from = serde_json::to_value(end.checkpoint()).unwrap();
    let resume = |from: &serde_json::Value| {
        let from: Checkpoint<f64> = serde_json::from_value(from.clone()).unwrap();
        config.on(&data).unwrap().resume(from)
    };
    assert!(resume(&from).is_ok());
    from["parameters"]["blocks"][1][0][2] = (-1.0).into();
    let error = resume(&from).unwrap_err();
    assert!(matches!(error, FitError::Value { .. }), "{error}");
    from["parameters"] = lacks;
    let error = resume(&from).unwrap_err();
    assert!(matches!(error, FitError::Checkpoint { .. }), "{error}");
}
