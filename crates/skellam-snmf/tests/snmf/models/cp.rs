//! Tensors.

use nalgebra::{DMatrix, DVector, dmatrix, dvector};
use plca_fit::{FitError, Impossible, Init, Model, Settings, Solver, State, Transform};
use plca_priors::{Dirichlet, Gamma};
use plca_tensor::{DenseTensor, Order};
use skellam_snmf::{Replicates, SignedCp, SignedCpState, Snmf, SnmfState};

use super::{
    ALL, ITERATIONS, block, exactly, near, new, reconstructs, refusal, resumes, rng, storages,
};

fn now() -> SignedCp {
    SignedCp::new(3).replicates(Replicates::Limit)
}

/// Any mode may be the signed one: the fit is that of the tensor with this mode in front.
#[test]
fn any_mode_is_signed() {
    for mode in 0..3 {
        // In the second a mode stands in rows beside the signed one.
        let shapes = [[4, 3, 5], [2, 3, 40]];
        let all = shapes.iter().flat_map(|shape| storages::<f64>(shape));
        for (storage, data) in all {
            let mut order: Vec<usize> = (0..3).collect();
            order.remove(mode);
            order.insert(0, mode);
            let shape: Vec<usize> = order.iter().map(|&j| data.shape()[j]).collect();
            let cells: usize = shape.iter().product();
            let of = |index: &[usize]| {
                let moved = order.iter().map(|&j| index[j]).zip(&shape);
                moved.fold(0, |at, (i, n)| at * n + i)
            };
            let observed = data.summary().mask == plca_tensor::Mask::Observed;
            let mut values = vec![if observed { f64::NAN } else { 0.0 }; cells];
            let fill = if observed { 0.0 } else { f64::NAN };
            data.visit_mask(&mut |index| values[of(index)] = fill)
                .unwrap();
            data.visit(&mut |index, v| values[of(index)] = v).unwrap();
            let moved = DenseTensor::masked(shape, values, Order::RowMajor).unwrap();

            let (first, any) = (now(), now().signed_mode(mode));
            let (first, any) = (first, any);
            let expected = new(&first, &moved, Init::default(), Solver::Squarem);
            let fit = new(&any, &*data, Init::default(), Solver::Squarem);
            assert_eq!(fit.state().signed_mode(), mode);
            let pairs = fit.state().factors().iter().zip(expected.state().factors());
            for (factor, expected) in pairs {
                near(factor.as_slice(), expected.as_slice(), 1e-9, storage);
            }
            let (atoms, expected) = (fit.state().atoms(), expected.state().atoms());
            near(atoms.as_slice(), expected.as_slice(), 1e-9, storage);
            reconstructs(fit.state(), &*data);
        }
    }
}

/// A matrix is fitted as by the model of matrices from the same start, but for the scale that goes into the weights.
#[test]
fn a_tensor_of_order_two_is_a_matrix() {
    let (_, data) = storages::<f64>(&[7, 5]).swap_remove(1);
    let cp = new(&now(), &*data, Init::default(), Solver::Em);
    let cp = cp.state();
    let weights = DVector::from_column_slice(cp.weights());
    let activations = DMatrix::from_diagonal(&weights) * cp.factor(1).transpose();
    let snmf = Snmf::new(3).replicates(Replicates::Limit);
    let mut at = SnmfState::new(
        &cp.plus().into_owned(),
        &cp.minus().into_owned(),
        activations,
    )
    .unwrap()
    .parameters()
    .clone();
    let mut next = cp.parameters().clone();
    snmf.bind(&*data).unwrap().step(&mut at, false).unwrap();
    let bound = now();
    bound.bind(&*data).unwrap().step(&mut next, false).unwrap();
    near(at.at(0).as_slice(), next.at(0).as_slice(), 1e-12, "atoms");
    let sums = at.at(1).column_sum();
    near(sums.as_slice(), next.at(1).as_slice(), 1e-11, "weights");
}

/// Blocks are frozen and have priors one by one.
#[test]
fn frozen_blocks_and_priors() {
    let (_, data) = storages::<f64>(&[4, 3, 5]).swap_remove(1);
    let start = new(&now(), &*data, Init::default(), Solver::Em);
    let start = start.into_state();
    let names = ["atoms", "weights", "factor_1", "factor_2"];
    for name in names {
        let frozen = now().freeze(name);
        for solver in ALL {
            let fit = new(&frozen, &*data, &start, solver);
            for other in names {
                let kept = start.parameters().block(other) == Some(&block(&fit, other));
                assert_eq!(kept, name == other, "{name}, {other}, {solver}");
            }
            let trace = fit.trace().windows(2);
            trace.for_each(|w| assert!(w[1].objective >= w[0].objective));
        }
    }
    let smooth = Dirichlet::symmetric(1.5).unwrap();
    let cp = now()
        .prior("factor_2", smooth)
        .prior("weights", Gamma::new(1.0, 1.0).unwrap());
    let fit = new(&cp, &*data, &start, Solver::Squarem);
    let trace = fit.trace().windows(2);
    trace.for_each(|w| assert!(w[1].objective >= w[0].objective));
    // A rate of 1 halves what one step makes of the weights.
    let step = |cp: &SignedCp| {
        let mut at = start.parameters().clone();
        cp.bind(&*data).unwrap().step(&mut at, false).unwrap();
        at.at(1).clone()
    };
    let (free, halved) = (step(&now()), step(&cp));
    near(halved.as_slice(), (free / 2.0).as_slice(), 1e-12, "weights");
}

#[test]
fn checkpoints_carry_on() {
    for (_, data) in storages::<f64>(&[4, 3, 5]) {
        for solver in ALL {
            resumes(&now().signed_mode(1), &*data, solver);
        }
    }
    let (_, data) = storages::<f64>(&[4, 3, 5]).swap_remove(0);
    let cp = now().signed_mode(1);
    let fit = new(&cp, &*data, Init::default(), Solver::Em);
    let saved = serde_json::to_value(fit.state()).unwrap();
    let read: SignedCpState<f64> = serde_json::from_value(saved.clone()).unwrap();
    assert_eq!(&read, fit.state());
    let refused = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut saved = saved.clone();
        change(&mut saved);
        let error = serde_json::from_value::<SignedCpState<f64>>(saved).unwrap_err();
        error.to_string()
    };
    let error = refused(&|saved| saved["facts"] = serde_json::json!([]));
    assert!(error.contains("`signed_mode` is missing"), "{error}");
    for mode in [3.0, 0.5] {
        let error = refused(&|saved| saved["facts"] = serde_json::json!([["signed_mode", [mode]]]));
        assert!(error.contains("mode"), "{error}");
    }
    let error = refused(&|saved| saved["blocks"] = serde_json::json!([]));
    assert!(!error.is_empty());
    // Of another signed mode.
    let other = now().signed_mode(0);
    let error = refusal(other.on(&*data).unwrap().resume(fit.checkpoint().clone()));
    assert!(matches!(error, FitError::Checkpoint { .. }), "{error}");
}

/// New data along a mode: what the same iterations make of the free blocks alone.
#[test]
fn new_data_are_explained() {
    let (_, data) = storages::<f64>(&[4, 3, 5]).swap_remove(0);
    let cp = now();
    let learnt = new(&cp, &*data, Init::default(), Solver::Em);
    let learnt = learnt.state();
    for (along, shape) in [(2, [4, 3, 6]), (1, [4, 6, 5])] {
        for (storage, other) in storages::<f64>(&shape) {
            let how = Transform::default().along(along).stop(exactly(ITERATIONS));
            let explained = cp.transform(learnt, &*other, &how.clone().solver(Solver::Em));
            let explained = explained.unwrap();
            let state = explained.fit.state();
            let kept = if along == 2 { "factor_1" } else { "factor_2" };
            let of = |state: &SignedCpState<f64>| state.parameters().block(kept).cloned();
            assert_eq!(of(state), of(learnt), "{storage}");
            assert_eq!(state.atoms(), learnt.atoms(), "{storage}");

            let frozen = now().freeze("atoms").freeze(kept);
            let mut size = 0.0;
            let mut add = |_: &[usize], v: f64| size += v.abs();
            other.visit(&mut add).unwrap();
            let even = DMatrix::from_element(6, 3, 1.0 / 6.0);
            let start = Init::from(learnt)
                .block("weights", DMatrix::from_element(3, 1, size / 3.0))
                .block(format!("factor_{along}"), even);
            let fit = new(&frozen, &*other, start, Solver::Em);
            assert_eq!(state, fit.state(), "{storage}");
        }
    }
    let error = refusal(cp.transform(learnt, &*data, &Transform::default().along(0)));
    assert!(matches!(error, FitError::Conflict { .. }), "{error}");
    let error = refusal(cp.transform(learnt, &*data, &Transform::default().along(3)));
    assert!(
        matches!(error, FitError::Mode { mode: 3, modes: 3 }),
        "{error}"
    );
}

/// Refusals name the cell of the tensor.
#[test]
fn refusals() {
    let data = |values| DenseTensor::new(vec![2, 2, 2], values, Order::RowMajor).unwrap();
    let mut values = vec![1.0, 2.0, 3.0, 6.0, -1.0, -2.0, -3.0, -6.0];
    let whole = data(values.clone());
    values[6] = 0.5;
    let half = data(values);
    for mode in 0..3 {
        let cp = SignedCp::new(1)
            .replicates(Replicates::Limit)
            .signed_mode(mode);
        let cp = cp.replicates(Replicates::One);
        let error = refusal(cp.on(&half));
        let named =
            matches!(&error, FitError::Entry { index, value: 0.5, .. } if index == &[1, 1, 0]);
        assert!(named, "{error}");
    }
    let (plus, minus) = (dmatrix![0.5; 0.5], dmatrix![0.0; 0.0]);
    let one = dmatrix![0.5; 0.5];
    let learnt = SignedCpState::new(&plus, &minus, &dvector![1.0], vec![one.clone(), one], 0);
    let learnt = learnt.unwrap();
    let cp = SignedCp::new(1).replicates(Replicates::Limit);
    let how = Transform::default();
    let error = refusal(cp.transform(&learnt, &whole, &how));
    let expected = FitError::Impossible {
        index: vec![1, 0, 0],
        value: -1.0,
    };
    assert_eq!(error, expected);
    let how = how.impossible(Impossible::Drop);
    let explained = cp.transform(&learnt, &whole, &how).unwrap();
    assert_eq!((explained.dropped, explained.empty), (12.0, vec![]));
    let error = refusal(cp.on(&whole).unwrap().run(&learnt, &mut rng()));
    let expected = FitError::Support {
        index: vec![1, 0, 0],
        value: -1.0,
    };
    assert_eq!(error, expected);
    let error = refusal(SignedCp::new(0).replicates(Replicates::Limit).check());
    assert_eq!(error.to_string(), "`components` is 0, expected at least 1");
    let cp = SignedCp::new(1)
        .replicates(Replicates::Limit)
        .signed_mode(3);
    let error = refusal(cp.on(&whole));
    assert!(
        matches!(error, FitError::Mode { mode: 3, modes: 3 }),
        "{error}"
    );
    let line = DenseTensor::new(vec![2], vec![1.0, -1.0], Order::RowMajor).unwrap();
    let cp = SignedCp::new(1).replicates(Replicates::Limit);
    let error = refusal(cp.on(&line));
    assert!(matches!(error, FitError::Conflict { .. }), "{error}");
}
