//! All data in one block of weight 1: batch EM.

use std::sync::Arc;

use nalgebra::DMatrix;
use plca_em::{Given, Local, Online, OnlineState, Plca, PlcaState, Plsa, PlsaState, StepSize};
use plca_fit::{Init, Model, seed};
use plca_priors::Dirichlet;
use plca_tensor::strategies::{Start, problems};
use plca_tensor::{Data, Order, Real, normalise_columns};
use proptest::prelude::*;

use crate::properties::storages;

const ONE: Local = Local {
    max_iter: 1,
    tol: 0.0,
};

fn close<T: Real>(what: &str, a: &[T], b: &[T], tol: f64) -> Result<(), TestCaseError> {
    prop_assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(b) {
        let (a, b) = (a.to_f64(), b.to_f64());
        prop_assert!((a - b).abs() <= tol, "{what}: {a} and {b}");
    }
    Ok(())
}

fn plsa<T: Real>(
    data: &dyn Data<T>,
    given: Given,
    start: &Start<T>,
    alpha: Option<f64>,
    tol: f64,
) -> Result<(), TestCaseError> {
    let k = start.weights.len();
    let mut plsa = Plsa::new(k).given(given);
    if let Some(alpha) = alpha {
        let prior = Arc::new(Dirichlet::symmetric(alpha).unwrap());
        plsa = plsa.prior("basis", prior.clone()).prior("mixture", prior);
    }
    let mut mixture = start.factors[given.mode()].transpose();
    normalise_columns(&mut mixture);
    let basis = start.factors[given.explained()].clone();
    let marginal = vec![T::one(); data.shape()[given.mode()]];
    let mut marginal = DMatrix::from_vec(marginal.len(), 1, marginal);
    normalise_columns(&mut marginal);
    let marginal = marginal.as_slice().to_vec();
    let mut last = PlsaState::new(given, basis.clone(), mixture, marginal).unwrap();
    let learner = Online::new(plsa.clone())
        .step(StepSize::Constant(1.0))
        .local(ONE);
    let mut state = OnlineState::new(start.weights.clone(), vec![basis]).unwrap();
    let em = plsa.bind(data).unwrap();
    let mut batch = Init::from(&last).parameters(&*em, &mut seed(0)).unwrap();
    // With hidden cells a pass has another mass in every iteration, which only a prior can tell.
    let steps = if alpha.is_some() && !data.is_complete() {
        1
    } else {
        4
    };
    for _ in 0..steps {
        let ln_lik = em.likelihood(&batch).unwrap();
        em.step(&mut batch, false).unwrap();
        let learnt = learner.partial_fit_from(&mut state, data, &last).unwrap();
        state.end_pass();
        close(
            "basis",
            state.factors[0].as_slice(),
            batch.at(0).as_slice(),
            tol,
        )?;
        close(
            "mixture",
            learnt.state.mixture().as_slice(),
            batch.at(1).as_slice(),
            tol,
        )?;
        prop_assert!((learnt.ln_lik - ln_lik).abs() <= tol * (1.0 + ln_lik.abs()));
        last = learnt.state;
    }
    Ok(())
}

fn plca<T: Real>(
    data: &dyn Data<T>,
    start: &Start<T>,
    alpha: Option<f64>,
    tol: f64,
) -> Result<(), TestCaseError> {
    let mut plca = Plca::new(start.weights.len());
    if let Some(alpha) = alpha {
        plca = plca.prior("factor_0", Arc::new(Dirichlet::symmetric(alpha).unwrap()));
    }
    let shared: Vec<DMatrix<T>> = start.factors[..start.factors.len() - 1].to_vec();
    let learner = Online::new(plca.clone())
        .step(StepSize::Constant(1.0))
        .local(ONE);
    let mut state = OnlineState::new(start.weights.clone(), shared).unwrap();
    let mut last = PlcaState::new(start.weights.clone(), start.factors.clone()).unwrap();
    let em = plca.bind(data).unwrap();
    let mut batch = Init::from(&last).parameters(&*em, &mut seed(0)).unwrap();
    let steps = if alpha.is_some() && !data.is_complete() {
        1
    } else {
        4
    };
    for _ in 0..steps {
        em.step(&mut batch, false).unwrap();
        let learnt = learner.partial_fit_from(&mut state, data, &last).unwrap();
        state.end_pass();
        close(
            "weights",
            state.weights.as_slice(),
            batch.at(0).as_slice(),
            tol,
        )?;
        for (a, (_, b)) in state.factors.iter().zip(batch.blocks().skip(1)) {
            close("factor", a.as_slice(), b.as_slice(), tol)?;
        }
        let own = learnt.state.factors().last().unwrap();
        let (_, whole) = batch.blocks().last().unwrap();
        close("streamed", own.as_slice(), whole.as_slice(), tol)?;
        last = learnt.state;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// [SPEC 13.1] `s = C / v`, `W <- M-step(v s)`: the steps of `PlsaEm`, in every storage, with and without priors.
    #[test]
    fn one_block_of_plsa_is_batch_em(
        (table, start) in problems::<f64>(2..=2, 2..=6, 1..=3),
        given in prop_oneof![Just(Given::Rows), Just(Given::Columns)],
        alpha in prop::option::of(1.0..2.0f64),
    ) {
        for (_, data) in storages::complete(&table).into_iter().chain(storages::masked(&table)) {
            plsa(&*data, given, &start, alpha, 1e-12)?;
        }
    }

    /// [SPEC 13.1] The same of `PlcaEm`, matrices and tensors.
    #[test]
    fn one_block_of_plca_is_batch_em(
        (table, start) in problems::<f64>(2..=4, 2..=4, 1..=3), alpha in prop::option::of(1.0..2.0f64),
    ) {
        for (_, data) in storages::complete(&table).into_iter().chain(storages::masked(&table)) {
            plca(&*data, &start, alpha, 1e-12)?;
        }
    }

    /// In single precision too.
    #[test]
    fn one_block_is_batch_em_in_f32((table, start) in problems::<f32>(2..=2, 2..=6, 1..=3)) {
        let data = table.dense(Order::RowMajor).unwrap();
        plsa(&data, Given::Columns, &start, None, 1e-4)?;
        plca(&data, &start, None, 1e-4)?;
    }
}

/// Negative control: a block that weighs less than 1 is not batch EM.
#[test]
fn a_smaller_weight_is_another_step() {
    let table = plca_tensor::strategies::Table {
        shape: vec![2, 2],
        values: vec![4.0, 1.0, 0.0, 2.0],
        observed: vec![true; 4],
    };
    let data = table.dense(Order::RowMajor).unwrap();
    let plsa = Plsa::new(1);
    let basis = |step| -> f64 {
        let learner = Online::new(plsa.clone()).step(step);
        let mut state =
            OnlineState::new(nalgebra::dvector![1.0], vec![nalgebra::dmatrix![0.5; 0.5]]).unwrap();
        learner.partial_fit(&mut state, &data).unwrap();
        state.factors[0][(0, 0)]
    };
    // One component: rows have 5 and 2 of 7.
    assert!((basis(StepSize::Constant(1.0)) - 5.0 / 7.0).abs() < 1e-15);
    // [SPEC 13.1] (1 - 1/4) 1/2 + 1/4 5/7
    assert!((basis(StepSize::Constant(0.25)) - (0.375 + 0.25 * 5.0 / 7.0)).abs() < 1e-15);
}
