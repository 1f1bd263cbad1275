//! Empty documents, new words, and what is refused.

use std::sync::Arc;

use nalgebra::{dmatrix, dvector};
use plca_em::{Local, Missing, Online, OnlineState, Plca, Plsa, StepSize, StreamError};
use plca_fit::{FitError, Settings};
use plca_priors::Dirichlet;
use plca_tensor::{DataError, DenseTensor, Order};

use super::documents;

fn plsa() -> Online<Plsa> {
    Online::new(Plsa::new(2))
}

fn start() -> OnlineState<f64> {
    OnlineState::new(
        dvector![0.5, 0.5],
        vec![dmatrix![0.6, 0.1; 0.3, 0.2; 0.1, 0.7]],
    )
    .unwrap()
}

/// Documents without words change nothing but the number of mixtures.
#[test]
fn empty_documents_take_no_part() {
    let full = [vec![3.0, 1.0, 0.0], vec![0.0, 2.0, 5.0]];
    let with_empty = [full[0].clone(), vec![0.0; 3], full[1].clone(), vec![0.0; 3]];
    let (mut a, mut b) = (start(), start());
    plsa().partial_fit(&mut a, &documents(3, &full)).unwrap();
    let learnt = plsa()
        .partial_fit(&mut b, &documents(3, &with_empty))
        .unwrap();
    assert!((&a.factors[0] - &b.factors[0]).amax() < 1e-14);
    assert_eq!((a.batches, a.seen), (b.batches, b.seen));
    assert_eq!(learnt.state.mixture().column(1).as_slice(), [0.5, 0.5]);
}

/// [SPEC 13.3] A word that no topic has any more comes back when it is seen, and the others lose next to nothing.
#[test]
fn new_words_are_taken_in() {
    let learner = Online::new(Plsa::new(2)).step(StepSize::Average);
    let mut state = start();
    // The first block replaces the start: word 2 is gone.
    learner
        .partial_fit(&mut state, &documents(3, &[vec![3.0, 1.0, 0.0]]))
        .unwrap();
    assert_eq!(state.factors[0].row(2).amax(), 0.0);
    learner
        .partial_fit(&mut state, &documents(3, &[vec![0.0, 2.0, 2.0]]))
        .unwrap();
    let of_word: f64 = state.statistics[0].row(2).sum();
    assert!((of_word - 2.0 / 8.0).abs() < 1e-11, "{of_word}");
    let total: f64 = state.statistics[0].sum();
    assert!((total - 1.0).abs() < 1e-14);
}

/// Statistics that are no shares of a whole leave the numbers: the block is refused, and the state stays as it was.
#[test]
fn statistics_that_overflow_are_refused() {
    let mut state = start();
    state.statistics[0][(0, 0)] = 1e308;
    let before = state.clone();
    let refused = plsa().partial_fit(&mut state, &documents(3, &[vec![30.0, 10.0, 20.0]]));
    assert!(
        matches!(refused, Err(FitError::Value { .. })),
        "{refused:?}"
    );
    assert_eq!(state, before);
}

/// With a Dirichlet prior there are no zeros to begin with.
#[test]
fn a_prior_keeps_words_that_are_not_seen() {
    let prior = Arc::new(Dirichlet::symmetric(1.5).unwrap());
    let plsa = Plsa::new(1).prior("basis", prior);
    let learner = Online::new(plsa).step(StepSize::Average);
    let basis = |learner: Online<Plsa>| {
        let mut state = OnlineState::new(dvector![1.0], vec![dmatrix![0.2; 0.3; 0.5]]).unwrap();
        learner
            .partial_fit(&mut state, &documents(3, &[vec![3.0, 1.0, 0.0]]))
            .unwrap();
        state.factors[0].as_slice().to_vec()
    };
    // Counts of 3.5, 1.5, 0.5.
    let got = basis(learner.clone());
    let want = [3.5 / 5.5, 1.5 / 5.5, 0.5 / 5.5];
    assert!(
        got.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-15),
        "{got:?}"
    );
    // A stream that is known to have 40 counts: 30.5, 10.5, 0.5.
    let got = basis(learner.total(40.0));
    let want = [30.5 / 41.5, 10.5 / 41.5, 0.5 / 41.5];
    assert!(
        got.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-15),
        "{got:?}"
    );
}

/// A frozen factor takes in nothing: the place is named.
#[test]
fn a_frozen_factor_stays_and_excludes() {
    let plca = Plca::new(2).freeze("factor_0");
    let learner = Online::new(plca);
    let frozen = dmatrix![0.5, 0.25; 0.5, 0.75; 0.0, 0.0];
    let mut state = OnlineState::new(dvector![0.5, 0.5], vec![frozen.clone()]).unwrap();
    learner
        .partial_fit(&mut state, &documents(3, &[vec![3.0, 1.0, 0.0]]))
        .unwrap();
    assert_eq!(state.factors[0], frozen);
    let before = state.clone();
    let refused = learner.partial_fit(&mut state, &documents(3, &[vec![3.0, 0.0, 4.0]]));
    assert_eq!(
        refused.unwrap_err(),
        FitError::Impossible {
            index: vec![2, 0],
            value: 4.0
        }
    );
    assert_eq!(state, before);
}

/// Every refusal leaves the state as it was.
#[test]
fn what_is_refused_changes_nothing() {
    let fresh = start();
    let refused = |state: &OnlineState<f64>, block: &DenseTensor<f64>| {
        let mut after = state.clone();
        let error = plsa().partial_fit(&mut after, block).unwrap_err();
        assert_eq!(&after, state);
        error
    };
    let dense = |shape: Vec<usize>| {
        let cells = shape.iter().product();
        DenseTensor::new(shape, vec![1.0; cells], Order::RowMajor).unwrap()
    };
    let error = refused(&fresh, &dense(vec![4, 2]));
    let expected = vec!["3".to_string(), "any".to_string()];
    assert_eq!(
        error,
        FitError::DataShape {
            got: vec![4, 2],
            expected: expected.clone()
        }
    );
    assert_eq!(
        refused(&fresh, &dense(vec![3, 2, 2])),
        FitError::DataShape {
            got: vec![3, 2, 2],
            expected
        }
    );
    let good = dense(vec![3, 2]);
    let other = OnlineState::new(dvector![1.0], vec![dmatrix![0.5; 0.2; 0.3]]).unwrap();
    assert!(matches!(
        refused(&other, &good),
        FitError::Shape { got: (1, 1), .. }
    ));
    let mut broken = start();
    broken.factors[0][(1, 1)] = -0.5;
    assert!(matches!(
        refused(&broken, &good),
        FitError::Value {
            row: 1,
            column: 1,
            ..
        }
    ));
    broken = start();
    broken.statistics.clear();
    assert!(matches!(refused(&broken, &good), FitError::Count { .. }));
    broken = start();
    broken.seen = -1.0;
    assert!(matches!(refused(&broken, &good), FitError::Value { .. }));
}

/// Blocks without mass and with values that are no counts are refused by number; the stream goes on after them.
#[test]
fn bad_blocks_are_named_and_lose_nothing() {
    let block = |v: [f64; 3]| DenseTensor::new(vec![3, 1], v.to_vec(), Order::RowMajor);
    let good = [[1.0, 2.0, 0.0], [0.0, 1.0, 4.0], [2.0, 0.0, 1.0]];
    let mut whole = start();
    plsa().fit_stream(&mut whole, good.map(block)).unwrap();
    for (bad, why) in [
        ([0.0; 3], DataError::NoMass),
        (
            [1.0, -2.0, 0.0],
            DataError::Negative {
                index: vec![1, 0],
                value: -2.0,
            },
        ),
    ] {
        let mut state = start();
        let failed = plsa().fit_stream(&mut state, [good[0], bad, good[1]].map(block));
        let source = FitError::Data(why);
        assert_eq!(failed.unwrap_err(), StreamError::Batch { batch: 1, source });
        assert_eq!((state.batches, state.pass), (1, 3.0));
        plsa()
            .fit_stream(&mut state, good[1..].iter().map(|&v| block(v)))
            .unwrap();
        assert_eq!(state, whole);
    }
    let nan = block([f64::NAN, 1.0, 1.0]);
    assert!(matches!(nan, Err(DataError::NotFinite { .. })));
    let tall = DenseTensor::new(vec![4, 1], vec![1.0; 4], Order::RowMajor);
    let failed = plsa()
        .fit_stream(&mut start(), [block(good[0]), tall])
        .unwrap_err();
    assert_eq!(failed.to_string(), "batch 1 of the stream");
    let why = std::error::Error::source(&failed).unwrap().to_string();
    assert!(why.starts_with("the data are 4 x 1"), "{why}");
    // Nothing comes of nothing.
    let mut state = start();
    let none: [Result<DenseTensor<f64>, DataError>; 0] = [];
    assert_eq!(plsa().fit_stream(&mut state, none).unwrap().batches, 0);
    assert_eq!(state, start());
}

/// Settings that no stream can have.
#[test]
fn settings_are_checked() {
    let plsa = || Plsa::new(2);
    let conflict = |plsa: Plsa| matches!(Online::new(plsa).check(), Err(FitError::Conflict { .. }));
    assert!(conflict(plsa().freeze("basis")));
    assert!(conflict(plsa().freeze("mixture")));
    let prior = Arc::new(Dirichlet::symmetric(1.1).unwrap());
    let conflict = |plca: Plca| matches!(Online::new(plca).check(), Err(FitError::Conflict { .. }));
    let plca = || Plca::new(2);
    assert!(conflict(plca().freeze("weights")));
    assert!(conflict(plca().prior("weights", prior.clone())));
    assert!(conflict(plca().missing(Missing::Multiplicative)));
    // Which mode is streamed is known once there is a block.
    let block = documents(3, &[vec![1.0, 1.0, 1.0]]);
    for last in [plca().freeze("factor_1"), plca().prior("factor_1", prior)] {
        let learner = Online::new(last);
        let refused = learner.partial_fit(&mut start(), &block).unwrap_err();
        assert!(matches!(refused, FitError::Conflict { .. }));
    }
    let laws = [
        StepSize::Power {
            kappa: 0.5,
            t0: 1.0,
        },
        StepSize::Power {
            kappa: 1.01,
            t0: 1.0,
        },
        StepSize::Power {
            kappa: f64::NAN,
            t0: 1.0,
        },
        StepSize::Power {
            kappa: 0.7,
            t0: -1.0,
        },
        StepSize::Power {
            kappa: 0.7,
            t0: f64::INFINITY,
        },
        StepSize::Constant(0.0),
        StepSize::Constant(1.5),
    ];
    for law in laws {
        let refused = Online::new(plsa()).step(law).check();
        assert!(matches!(refused, Err(FitError::Setting { .. })), "{law:?}");
    }
    for local in [
        Local {
            max_iter: 0,
            tol: 0.0,
        },
        Local {
            max_iter: 1,
            tol: f64::NAN,
        },
    ] {
        assert!(Online::new(plsa()).local(local).check().is_err());
    }
    for total in [0.0, f64::NAN, f64::INFINITY] {
        assert!(Online::new(plsa()).total(total).check().is_err());
    }
    assert!(OnlineState::<f64>::new(dvector![], vec![]).is_err());
    assert!(OnlineState::new(dvector![1.0], vec![]).is_err());
    assert!(OnlineState::new(dvector![1.0], vec![dmatrix![0.0; 0.0]]).is_err());
}
