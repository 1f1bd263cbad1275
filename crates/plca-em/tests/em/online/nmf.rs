//! KL-NMF from batches of columns: PLSA, with the scale in `H`.

use nalgebra::DMatrix;
use plca_em::{Given, Local, Missing, Nmf, Online, Plsa, StepSize, Update};
use plca_fit::{FitError, Model, Settings, State, seed};
use plca_priors::Penalty;
use plca_tensor::{Data, DenseTensor, Order};

use crate::support::dense;

fn cells(n: usize, first: usize) -> DMatrix<f64> {
    DMatrix::from_fn(6, n, |i, j| ((5 * i + 3 * (j + first) + i * j) % 7) as f64)
}

/// Columns are learnt from as PLSA does, bit for bit; `W H` has their sums, and the divergence is that of the definition.
#[test]
fn batches_teach_what_they_teach_plsa() {
    let nmf = Online::new(Nmf::new(3));
    let plsa = Plsa::new(3).given(Given::Columns);
    let plsa = Online::new(plsa);
    let mut state = nmf.init(&[6], &mut seed(2)).unwrap();
    let mut other = plsa.init(&[6], &mut seed(2)).unwrap();
    for first in 0..5 {
        let mut batch = cells(8, first);
        if first == 3 {
            batch[(1, 2)] = f64::NAN;
            batch[(4, 2)] = f64::NAN;
            batch.column_mut(5).fill(0.0);
        }
        let data = dense(&batch);
        let met = state.factors[0].clone();
        let learnt = nmf.partial_fit(&mut state, &data).unwrap();
        plsa.partial_fit(&mut other, &data).unwrap();
        assert_eq!(state, other);
        let (w, h) = (learnt.state.w(), learnt.state.h());
        assert_eq!(w, &met);
        let y = w * h;
        for j in 0..8 {
            let seen = |m: &DMatrix<f64>| -> f64 {
                (0..6)
                    .filter(|&i| !batch[(i, j)].is_nan())
                    .map(|i| m[(i, j)])
                    .sum()
            };
            assert!((seen(&y) - seen(&batch)).abs() < 1e-12 * (1.0 + seen(&batch)));
        }
        // An iteration short of the state: no worse.
        let model = Nmf::new(3);
        let divergence = model
            .bind(&data)
            .unwrap()
            .objective(learnt.state.parameters())
            .unwrap();
        assert!(divergence <= -learnt.ln_lik + 1e-9 && -learnt.ln_lik < 1.1 * divergence + 1.0);
    }
}

/// All data in one batch, nothing remembered: plain simultaneous updates, but for the scale that `W` and `H` may exchange.
#[test]
fn one_batch_without_memory_is_an_iteration() {
    let v = cells(7, 0);
    let data = dense(&v);
    let learner = Online::new(Nmf::new(2));
    let learner = learner.step(StepSize::Constant(1.0)).local(Local {
        max_iter: 1,
        tol: 0.0,
    });
    let mut state = learner.init(&[6], &mut seed(2)).unwrap();
    let mut last = learner.partial_fit(&mut state, &data).unwrap();
    let model = Nmf::new(2).update(Update::Simultaneous);
    let algorithm = model.bind(&data).unwrap();
    let mut at = None;
    for _ in 0..5 {
        let w = state.factors[0].clone();
        let here = plca_em::NmfState::new(w, last.state.h().clone()).unwrap();
        let mut next = here.parameters().clone();
        algorithm.step(&mut next, false).unwrap();
        last = learner.partial_fit_from(&mut state, &data, &here).unwrap();
        // H of the step, and W up to the sums of its columns.
        assert!((next.at(1) - last.state.h()).amax() < 1e-12 * v.amax() * 10.0);
        let mut shares = next.at(0).clone();
        shares.column_iter_mut().for_each(|mut c| c /= c.sum());
        assert!((shares - &state.factors[0]).amax() < 1e-12);
        let objective = algorithm.objective(last.state.parameters()).unwrap();
        assert!(at.is_none_or(|before| objective <= before));
        at = Some(objective);
    }
}

#[test]
fn settings_that_tie_batches_together_are_refused() {
    let nmf = || Nmf::new(2);
    let penalty = Penalty::new(1.0, 0.0).unwrap();
    for (model, part) in [
        (nmf().freeze("w"), "use transform"),
        (nmf().freeze_components("w", [0]), "use transform"),
        (nmf().freeze("h"), "belongs to its batches"),
        (nmf().prior("w", penalty), "cannot have priors"),
    ] {
        let refused = Online::new(model).check().unwrap_err();
        assert!(
            matches!(&refused, FitError::Conflict { what } if what.contains(part)),
            "{refused}"
        );
    }
    // How a fit renews its factors plays no part.
    let sequential = nmf().missing(Missing::Multiplicative);
    let learner = Online::new(sequential);
    let mut state = learner.init(&[6], &mut seed(2)).unwrap();
    let cube = DenseTensor::new(vec![6, 2, 2], vec![1.0; 24], Order::RowMajor).unwrap();
    let refused = learner.partial_fit(&mut state, &cube as &dyn Data<f64>);
    assert!(matches!(refused, Err(FitError::DataShape { .. })));
}
