//! What is refused, and where it says the fault lies.

use nalgebra::{DMatrix, DVector};
use plca_em::{
    Algorithm, EmError, Evaluation, Likelihood, ParamError, Shifted, ShiftedBuilder, ShiftedInit,
    ShiftedState, Support,
};

use plca_tensor::Real;

use super::support::{EVALUATIONS, complete, dense, masked, rng};

#[test]
fn bad_input_is_refused_with_its_place() {
    let values = vec![1.0; 12];
    let data = dense::<f64>(&[3, 4], &values);
    let on = |kernel: Vec<usize>| {
        let shifted = Shifted::<f64>::builder(1, kernel).build().unwrap();
        shifted.on(&data).map(drop).unwrap_err()
    };
    assert_eq!(
        on(vec![3, 5]),
        EmError::Kernel {
            dimension: 1,
            extent: 5,
            size: 4
        }
    );
    assert_eq!(
        on(vec![3]),
        EmError::Order {
            expected: 1,
            got: 2
        }
    );
    let built = |b: ShiftedBuilder<f64>| b.build().map(drop).unwrap_err();
    let builder = || Shifted::<f64>::builder(1, vec![2, 2]);
    assert_eq!(
        built(Shifted::builder(1, vec![2, 0])),
        ParamError::Extent { dimension: 1 }
    );
    assert_eq!(
        built(Shifted::builder(0, vec![2, 2])),
        ParamError::NoComponents
    );
    assert_eq!(
        built(builder().supports(vec![Support::Full; 3])),
        ParamError::Supports {
            expected: 2,
            got: 3
        }
    );
    let anneal = |alpha0, over| plca_em::Anneal { alpha0, over };
    for (alpha0, over) in [(0.0, 5.0), (-0.5, 5.0), (1.5, 5.0), (f64::NAN, 5.0)] {
        assert!(matches!(
            built(builder().anneal(anneal(alpha0, over))),
            ParamError::AnnealPower { .. }
        ));
    }
    for over in [0.0, -1.0, f64::NAN] {
        assert!(matches!(
            built(builder().anneal(anneal(0.5, over))),
            ParamError::AnnealDuration(_)
        ));
    }
    for alpha0 in [0.9, f64::INFINITY, f64::NAN] {
        let refused = built(builder().impulse_power(anneal(alpha0, 5.0)));
        assert!(matches!(refused, ParamError::AnnealPower { .. }));
    }
    let (_, hidden) = masked::<f64>(&[3, 4], &values, |i| i == 3).swap_remove(0);
    let literal = builder()
        .support(Support::Same)
        .likelihood(Likelihood::Literal);
    assert_eq!(
        literal.build().unwrap().on(&*hidden).map(drop).unwrap_err(),
        EmError::LiteralWithHidden
    );
    // A kernel whose corner is 0 cannot explain the data's corner.
    let shifted = builder().evaluation(Evaluation::Fft).build().unwrap();
    let init = ShiftedInit {
        kernels: Some(DMatrix::from_column_slice(4, 1, &[0.0, 1.0, 1.0, 1.0])),
        ..ShiftedInit::default()
    };
    let refused = shifted
        .on(&data)
        .unwrap()
        .init(&init, &mut rng(0))
        .unwrap_err();
    assert_eq!(
        refused,
        EmError::Support {
            index: vec![0, 0],
            value: 1.0
        }
    );
}

/// A cell that a state cannot explain is found by every way to compute the E-step, whether the likelihood is asked for or not;
/// a state that explains all is not refused, whatever else it has at 0.
fn lost_cells<T: Real>() {
    let small = |cell: f64| vec![0.5, 0.5, cell, 0.5, 0.0, 0.5];
    // Nothing is placed at 2 or 4.
    let state = ShiftedState {
        weights: DVector::from_element(1, T::one()),
        kernels: DMatrix::from_element(1, 1, T::one()),
        impulses: DMatrix::from_fn(6, 1, |h, _| T::lit([0.25, 0.25, 0.0, 0.25, 0.0, 0.25][h])),
        iteration: 0,
    };
    for (cell, lost) in [(0.0, false), (0.5, true), (1e-3, true)] {
        for (name, data) in complete::<T>(&[6], &small(cell)) {
            for evaluation in EVALUATIONS {
                let config = Shifted::builder(1, vec![1]).evaluation(evaluation);
                let config = config.build().unwrap();
                let em = config.on(&*data).unwrap();
                for measure in [false, true] {
                    let step = em.step(&mut state.clone(), measure).map(drop);
                    let context = format!("{name}, {evaluation:?}, {cell}, {measure}");
                    let is_support =
                        matches!(&step, Err(EmError::Support { index, .. }) if *index == [2]);
                    assert_eq!(is_support, lost, "{context}");
                    assert_eq!(step.is_err(), lost, "{context}");
                }
            }
        }
    }
}

#[test]
fn lost_cells_are_found_by_all() {
    lost_cells::<f64>();
    lost_cells::<f32>();
}
