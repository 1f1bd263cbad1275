//! What is refused, and where it says the fault lies.

use nalgebra::DMatrix;
use plca_em::{Evaluation, Likelihood, Shifted, Support};
use plca_fit::{FitError, Init, Model, Parameters, Settings};
use plca_tensor::Real;

use super::support::{EVALUATIONS, complete, dense, masked, rng};

#[test]
fn bad_input_is_refused_with_its_place() {
    let values = vec![1.0; 12];
    let data = dense::<f64>(&[3, 4], &values);
    let on = |kernel: Vec<usize>| {
        let shifted = Shifted::new(1, kernel);
        shifted.on(&data).map(drop).unwrap_err().to_string()
    };
    assert_eq!(
        on(vec![3, 5]),
        "the data are 3 x 4, expected at least 3 x at least 5"
    );
    assert_eq!(on(vec![3]), "the data are 3 x 4, expected at least 3");
    let refused = |s: Shifted| s.check().unwrap_err();
    let setting = |s: Shifted| match refused(s) {
        FitError::Setting { name, .. } => name,
        error => panic!("{error}"),
    };
    let shifted = || Shifted::new(1, vec![2, 2]);
    assert_eq!(setting(Shifted::new(1, vec![2, 0])), "kernel");
    assert_eq!(setting(Shifted::new(0, vec![2, 2])), "components");
    let supports = refused(shifted().supports(vec![Support::Full; 3]));
    assert!(matches!(supports, FitError::Conflict { .. }), "{supports}");
    let anneal = |alpha0, over| plca_em::Anneal { alpha0, over };
    for (alpha0, over) in [(0.0, 5.0), (-0.5, 5.0), (1.5, 5.0), (f64::NAN, 5.0)] {
        assert_eq!(setting(shifted().anneal(anneal(alpha0, over))), "anneal");
    }
    for over in [0.0, -1.0, f64::NAN] {
        assert_eq!(setting(shifted().anneal(anneal(0.5, over))), "anneal");
    }
    for alpha0 in [0.9, f64::INFINITY, f64::NAN] {
        let name = setting(shifted().impulse_power(anneal(alpha0, 5.0)));
        assert_eq!(name, "impulse_power");
    }
    let (_, hidden) = masked::<f64>(&[3, 4], &values, |i| i == 3).swap_remove(0);
    let literal = shifted()
        .support(Support::Same)
        .likelihood(Likelihood::Literal);
    let literal = literal.on(&*hidden).map(drop).unwrap_err();
    assert!(literal.to_string().contains("hidden cells"), "{literal}");
    // A kernel whose corner is 0 cannot explain the data's corner.
    let shifted = shifted().evaluation(Evaluation::Fft);
    let corner = DMatrix::from_column_slice(4, 1, &[0.0, 1.0, 1.0, 1.0]);
    let init = Init::default().block("kernels", corner);
    let refused = shifted.init(&data, init, &mut rng(0)).unwrap_err();
    let (index, value) = (vec![0, 0], 1.0);
    assert_eq!(refused, FitError::Support { index, value });
}

/// A cell that a state cannot explain is found by every way to compute the E-step, whether the likelihood is asked for or not;
/// a state that explains all is not refused, whatever else it has at 0.
fn lost_cells<T: Real>() {
    let small = |cell: f64| vec![0.5, 0.5, cell, 0.5, 0.0, 0.5];
    // Nothing is placed at 2 or 4.
    let impulses = DMatrix::from_fn(6, 1, |h, _| T::lit([0.25, 0.25, 0.0, 0.25, 0.0, 0.25][h]));
    let one = || DMatrix::from_element(1, 1, T::one());
    for (cell, lost) in [(0.0, false), (0.5, true), (1e-3, true)] {
        for (name, data) in complete::<T>(&[6], &small(cell)) {
            for evaluation in EVALUATIONS {
                let config = Shifted::new(1, vec![1]).evaluation(evaluation);
                let em = config.bind(&*data).unwrap();
                let blocks = vec![one(), one(), impulses.clone()];
                let state = Parameters::new(em.blocks(), blocks).unwrap();
                for measure in [false, true] {
                    let step = em.step(&mut state.clone(), measure).map(drop);
                    let context = format!("{name}, {evaluation:?}, {cell}, {measure}");
                    let is_support =
                        matches!(&step, Err(FitError::Support { index, .. }) if *index == [2]);
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
