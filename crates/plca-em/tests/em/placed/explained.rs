//! Starts of several, and new data under learnt kernels.

use nalgebra::DMatrix;
use plca_em::{Likelihood, Support};
use plca_fit::{FitError, Impossible, Init, Model, Solver, Transform};

use super::{SHAPE, exactly, fitted, shifted, storages};
use crate::shifted::support::{dense, rng};

/// The best of several starts is that of the runs from each.
#[test]
fn the_best_of_several_starts() {
    let (_, data) = storages::<f64>(&SHAPE).swap_remove(0);
    let model = shifted();
    let run = || {
        model
            .on(&*data)
            .unwrap()
            .solver(Solver::Em)
            .stop(exactly(12))
    };
    let mut draws = rng(3);
    let ends = (0..4).map(|_| run().run(Init::default(), &mut draws).unwrap());
    let ends: Vec<_> = ends.collect();
    let better = ends
        .iter()
        .max_by(|a, b| a.objective().total_cmp(&b.objective()));
    let fit = run().restarts(4).run(Init::default(), &mut rng(3)).unwrap();
    assert_eq!(fit.state(), better.unwrap().state());
}

/// New data under learnt kernels keep them bit for bit, in shapes of their own.
#[test]
fn new_data_are_explained() {
    let how = Transform::default();
    let how = how.clone().stop(exactly(15).residual_tol(None));
    for support in [Support::Valid, Support::Same, Support::Full] {
        let now = shifted().support(support);
        let (_, data) = storages::<f64>(&SHAPE).swap_remove(0);
        let learnt = fitted(&now, &*data, Init::default(), Solver::Em, 20);
        for (_, new) in storages::<f64>(&[9, 5]) {
            let kernels = learnt.state().kernels();
            let found = learnt.state().transform(&*new, &how).unwrap();
            assert_eq!(kernels, found.fit.state().kernels());
            assert_eq!(found.fit.state().geometry().data_shape(), [9, 5]);
        }
    }
    // What no kernel reaches is refused with its place, or left out and counted.
    let data = dense::<f64>(&[4], &[2.0, 1.0, 1.0, 3.0]);
    let kernel = nalgebra::dmatrix![0.0; 1.0];
    let geometry = plca_em::Geometry::new(&[4], &[2], &[Support::Valid]).unwrap();
    let even = DMatrix::from_element(3, 1, 1.0 / 3.0);
    let state = plca_em::ShiftedState::new(
        geometry,
        Likelihood::Conditional,
        nalgebra::dvector![1.0],
        kernel,
        even,
    );
    let state = state.unwrap();
    let refused = state.transform(&data, &Transform::default()).unwrap_err();
    let index = vec![0];
    assert_eq!(refused, FitError::Impossible { index, value: 2.0 });
    let drop = Transform::default().impossible(Impossible::Drop);
    let found = state.transform(&data, &drop).unwrap();
    assert_eq!(found.dropped, 2.0);
    assert!((found.fit.state().impulses()[2] - 0.6).abs() < 1e-12);
    assert!(found.gap[0] <= 1e-6);
}
