//! Priors on what belongs to the blocks, and blocks that priors emptied.

use std::sync::Arc;

use nalgebra::{dmatrix, dvector};
use plca_em::{Local, Online, OnlineState, Plca, Plsa, Prior, StepSize};
use plca_priors::{Dirichlet, Schedule, Scheduled};

use super::documents;

fn learner(prior: Prior<f64>, max_iter: usize) -> Online<Plsa> {
    let plsa = Plsa::new(2).prior("mixture", prior);
    let local = Local { max_iter, tol: 0.0 };
    Online::new(plsa).local(local)
}

/// [SPEC 8] `f(t) = max(0, 1 - (t - 1)/4)` of the block `t`, in all of its local iterations.
#[test]
fn schedules_go_by_blocks() {
    let schedule = Schedule::Decreasing { over: 4.0 };
    let prior = Dirichlet::symmetric(3.0).unwrap();
    let scheduled = learner(Arc::new(Scheduled::new(prior, schedule).unwrap()), 5);
    let basis = dmatrix![0.6, 0.1; 0.3, 0.2; 0.1, 0.7];
    let mut state = OnlineState::new(dvector![0.5, 0.5], vec![basis]).unwrap();
    let block = documents(3, &[vec![3.0, 1.0, 0.0], vec![0.0, 2.0, 5.0]]);
    for alpha in [3.0, 2.5, 2.0, 1.5, 1.0, 1.0] {
        let mut other = state.clone();
        let learnt = scheduled.partial_fit(&mut state, &block).unwrap();
        let constant = learner(Arc::new(Dirichlet::symmetric(alpha).unwrap()), 5);
        let expected = constant.partial_fit(&mut other, &block).unwrap();
        assert_eq!(learnt.iterations, 5);
        assert_eq!(learnt.state.mixture(), expected.state.mixture(), "{alpha}");
        assert_eq!(state, other, "{alpha}");
    }
}

/// [SPEC 8] Of the half count of the second topic the prior takes nine tenths, and no other has the second word: it gets a trace back,
/// and the mixture can be gone on from.
#[test]
fn emptied_mixtures_are_restored() {
    let learner = learner(Arc::new(Dirichlet::symmetric(0.1).unwrap()), 1);
    let basis = dmatrix![1.0, 0.0; 0.0, 1.0];
    let start = OnlineState::new(dvector![0.5, 0.5], vec![basis]).unwrap();
    let mut state = start.clone();
    let block = documents(2, &[vec![9.0, 0.5]]);
    let mut learnt = learner.partial_fit(&mut state, &block).unwrap();
    for _ in 0..3 {
        assert_eq!(learnt.restored, ["mixture"]);
        let least = learnt.state.mixture()[(1, 0)];
        assert_eq!(least, 1e-12 / (1.0 + 2.0 * 1e-12));
        learnt = (learner.partial_fit_from(&mut state, &block, &learnt.state)).unwrap();
    }
    // Nothing is given back where nothing was lost.
    let mut state = start;
    let block = documents(2, &[vec![9.0, 0.0]]);
    let learnt = learner.partial_fit(&mut state, &block).unwrap();
    assert_eq!(learnt.state.mixture().as_slice(), [1.0, 0.0]);
    assert!(learnt.restored.is_empty());
}

/// [SPEC 13.3] Words that a prior took away come back, and it is said whose prior it was.
#[test]
fn emptied_factors_are_named() {
    // Half a count of word 2, of which the prior takes nine tenths.
    let prior = Arc::new(Dirichlet::symmetric(0.1).unwrap());
    let block = documents(3, &[vec![4.0, 3.0, 0.5]]);
    let state = || OnlineState::new(dvector![1.0], vec![dmatrix![0.6; 0.3; 0.1]]).unwrap();
    let step = StepSize::Average;
    let plsa = Plsa::new(1).prior("basis", prior.clone());
    let learner = Online::new(plsa).step(step);
    let mut state_0 = state();
    let first = learner.partial_fit(&mut state_0, &block).unwrap();
    let second = learner.partial_fit(&mut state_0, &block).unwrap();
    assert!(first.restored.is_empty());
    assert_eq!(second.restored, ["basis"]);
    let plca = Plca::new(1).prior("factor_0", prior);
    let learner = Online::new(plca).step(step);
    let mut state_0 = state();
    learner.partial_fit(&mut state_0, &block).unwrap();
    let second = learner.partial_fit(&mut state_0, &block).unwrap();
    assert_eq!(second.restored, ["factor_0"]);
    // What no prior took is taken in without a word.
    let plsa = Plsa::new(1);
    let learner = Online::new(plsa).step(step);
    let mut state_0 = state();
    (learner.partial_fit(&mut state_0, &documents(3, &[vec![4.0, 3.0, 0.0]]))).unwrap();
    let second = learner.partial_fit(&mut state_0, &block).unwrap();
    assert!(second.restored.is_empty() && second.state.basis()[(2, 0)] > 0.0);
}
