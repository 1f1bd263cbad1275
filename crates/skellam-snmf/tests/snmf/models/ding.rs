//! Squared error.

use nalgebra::{DMatrix, dmatrix};
use plca_fit::{FitError, Init, Interrupt, Model, Settings, Solver, State, Status, Transform};
use plca_tensor::{Data, DenseTensor, Order, Real};
use skellam_snmf::{Ding, DingState};

use super::{ALL, block, exactly, new, reconstructs, refusal, resumes, rng, storages};

fn matrix<T: Real>(data: &dyn Data<T>) -> DMatrix<T> {
    let mut m = DMatrix::zeros(data.shape()[0], data.shape()[1]);
    let mut fill = |index: &[usize], v: f64| m[(index[0], index[1])] = T::lit(v);
    data.visit(&mut fill).unwrap();
    m
}

/// No solver makes the error larger; the basis is the best one at the end of each.
#[test]
fn solvers_are_monotone() {
    let (_, data) = storages::<f64>(&[7, 5]).swap_remove(0);
    let v = matrix(&*data);
    let ding = Ding::new(3);
    let stop = exactly(40).check_every(1);
    let plain = new(&ding, &*data, Init::default(), Solver::Em).objective();
    for solver in ALL {
        let run = ding.on(&*data).unwrap().solver(solver).stop(stop.clone());
        let fit = run.run(Init::default(), &mut rng()).unwrap();
        for w in fit.trace().windows(2) {
            assert!(w[1].objective <= w[0].objective * (1.0 + 1e-12), "{solver}");
        }
        assert!(fit.objective() < plain, "{solver}");
        let (w, h) = (fit.state().basis(), fit.state().activations());
        assert!(((&v - w * h) * h.transpose()).amax() < 1e-8, "{solver}");
    }
}

#[test]
fn frozen_blocks() {
    let (_, data) = storages::<f64>(&[7, 5]).swap_remove(0);
    let start = new(&Ding::new(3), &*data, Init::default(), Solver::Em);
    let start = start.into_state();
    for name in ["basis", "activations"] {
        let frozen = Ding::new(3).freeze(name);
        let fit = new(&frozen, &*data, &start, Solver::Em);
        assert_eq!(Some(&block(&fit, name)), start.parameters().block(name));
        let before = frozen.bind(&*data).unwrap().objective(start.parameters());
        assert!(fit.objective() <= before.unwrap(), "{name}");
    }
    let some = Ding::new(3).freeze_components("activations", [1]);
    let fit = new(&some, &*data, &start, Solver::Squarem);
    let h = fit.state().activations();
    assert_eq!(h.row(1), start.activations().row(1));
    assert_ne!(h.row(0), start.activations().row(0));
    let error = refusal(Ding::new(3).freeze_components("basis", [1]).check());
    assert!(matches!(error, FitError::Conflict { .. }), "{error}");
}

#[test]
fn checkpoints_and_reconstructions() {
    let (_, data) = storages::<f64>(&[7, 5]).swap_remove(0);
    let ding = Ding::new(3);
    for solver in ALL {
        resumes(&ding, &*data, solver);
    }
    let fit = new(&ding, &*data, Init::default(), Solver::Em);
    reconstructs(fit.state(), &*data);
    let saved = serde_json::to_value(fit.state()).unwrap();
    let read: DingState<f64> = serde_json::from_value(saved).unwrap();
    assert_eq!(&read, fit.state());
}

/// New columns under the basis: as with a frozen basis, and stationary where the activations have not vanished.
#[test]
fn new_columns_are_explained() {
    let (_, data) = storages::<f64>(&[7, 5]).swap_remove(0);
    let ding = Ding::new(3);
    let learnt = new(&ding, &*data, Init::default(), Solver::Em);
    let learnt = learnt.state();
    let (_, other) = storages::<f64>(&[7, 9]).swap_remove(0);
    let how = Transform::default().solver(Solver::Momentum);
    let explained = learnt.transform(&*other, &how).unwrap();
    assert_eq!(explained.fit.status(), &Status::Converged);
    let flag = Interrupt::default();
    flag.raise();
    let cut = learnt.transform(&*other, &how.clone().interrupt(flag));
    let cut = cut.unwrap().fit;
    assert_eq!((cut.status(), cut.iterations()), (&Status::Interrupted, 1));
    let state = explained.fit.state();
    assert_eq!(state.basis(), learnt.basis());
    let (w, h) = (state.basis(), state.activations());
    let gradient = w.transpose() * (w * h - matrix(&*other));
    assert!(gradient.component_mul(h).amax() < 0.1, "{gradient}");

    let start = learnt.transform(&*other, &how.clone().stop(exactly(0)));
    let start = start.unwrap().fit.into_state();
    let frozen = Ding::new(3).freeze("basis");
    let run = frozen.on(&*other).unwrap().solver(how.solver);
    let fit = run.stop(how.stop.clone().residual_tol(None));
    let fit = fit.run(&start, &mut rng()).unwrap();
    assert_eq!(fit.state(), state);
    let tall = DenseTensor::new(vec![3, 1], vec![1.0; 3], Order::RowMajor).unwrap();
    let error = refusal(learnt.transform(&tall, &how));
    assert!(matches!(error, FitError::DataShape { .. }), "{error}");
}

/// Hidden cells are refused, with the first of them.
#[test]
fn refusals() {
    let ding = Ding::new(3);
    for (storage, data) in storages::<f64>(&[7, 5]).into_iter().skip(1) {
        let error = refusal(ding.on(&*data));
        let first = match storage {
            "masked" => vec![0, 3],
            _ => vec![0, 2],
        };
        assert!(
            matches!(&error, FitError::Entry { index, .. } if index == &first),
            "{error}"
        );
    }
    let error = refusal(Ding::new(0).check());
    assert_eq!(error.to_string(), "`components` is 0, expected at least 1");
    let cube = DenseTensor::<f64>::new(vec![1, 1, 1], vec![1.0], Order::RowMajor).unwrap();
    assert!(matches!(refusal(ding.on(&cube)), FitError::Data(_)));
    let data = DenseTensor::new(vec![1, 1], vec![1.0], Order::RowMajor).unwrap();
    let run = |init| ding.on(&data).unwrap().run(init, &mut rng());
    let init = Init::default().block("activations", dmatrix![1.0; -1.0; 0.0]);
    let error = refusal(run(init));
    assert!(
        matches!(
            error,
            FitError::Value {
                row: 1,
                column: 0,
                ..
            }
        ),
        "{error}"
    );
}
