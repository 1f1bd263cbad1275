//! Wrong calls of the library: each is refused by an error that names the place, the value and what was expected, or, where it is a mistake of the program as an
//! index outside an array is, by a panic that says the same.

use std::error::Error;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};

use plca::dist;
use plca::em::NmfState;
use plca::l2::{QpError, simplex_qp};
use plca::nalgebra::{DMatrix, dmatrix, dvector};
use plca::prelude::*;
use plca::priors::PriorError;
use plca::skellam::Posterior;
use plca::tensor::{Cp, DataError, Factor, Modes, Request};
use plca::{
    em::{Criterion, PlcaState, Selection},
    fit::{Checkpoint, Interrupt, Status},
    l2::PntfState,
    priors::Entropic,
    skellam::{Replicates, SnmfVb, SnmfVbState},
};

/// What a call says that is refused.
type Said = Result<(), String>;

/// With what an error comes from.
fn said<O: Debug, E: Error>(result: Result<O, E>) -> Said {
    result.map(drop).map_err(|e| {
        let parts = std::iter::successors(Some(&e as &dyn Error), |&e| e.source());
        parts
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(": ")
    })
}

fn dense(shape: &[usize], values: &[f64]) -> Result<DenseTensor<f64>, DataError> {
    DenseTensor::new(shape.to_vec(), values.to_vec(), Order::RowMajor)
}

fn data() -> DenseTensor<f64> {
    dense(&[2, 3], &[4.0, 0.0, 1.0, 0.0, 6.0, 1.0]).unwrap()
}

fn fitted() -> PlcaState<f64> {
    let plca = Plca::new(2);
    plca.fit(&data(), &mut plca::seed(0)).unwrap().into_state()
}

/// A fit of two components with a stop rule and a start.
fn run(stop: Stop, init: Init<f64>) -> Said {
    let plca = Plca::new(2);
    let data = data();
    let run = plca.on(&data).unwrap().stop(stop);
    said(run.run(init, &mut plca::seed(0)))
}

fn fit<M: Model<f64>>(model: M, data: &dyn Data<f64>) -> Said {
    said(model.fit(data, &mut plca::seed(0)))
}

fn check(calls: &[(Said, &str)]) {
    for (call, expected) in calls {
        let said = call.as_ref().expect_err(expected);
        assert!(said.contains(expected), "{said}\nexpected: {expected}");
        assert!(!said.contains('\n'), "{said}");
    }
}

#[test]
fn data_are_refused_by_their_place() {
    let stored = |shape: [usize; 2], indices: Vec<u32>, values: Vec<f64>| {
        let shape = shape.to_vec();
        said(SparseTensor::new(Coordinates {
            shape,
            indices,
            values,
        }))
    };
    let compressed = |outer: usize, indices: &[i64]| {
        let pointers: [i64; 3] = [0, 1, 2];
        said(SparseTensor::from_compressed(
            [2, 2],
            outer,
            &pointers,
            indices,
            &[1.0, 2.0],
        ))
    };
    let negative = dense(&[2, 2], &[1.0, -1.0, 2.0, 3.0]).unwrap();
    let zeros = dense(&[2, 2], &[0.0; 4]).unwrap();
    #[rustfmt::skip]
    check(&[
        (said(dense(&[2], &[1.0, f64::NAN])), "entry [1] is NaN"),
        (said(dense(&[2, 2], &[1e308; 4])), "sum to inf"),
        (said(dense(&[usize::MAX, 3], &[])), "is too large"),
        (said(dense(&[], &[1.0])), "order 0"),
        (stored([2, 2], vec![0, 5], vec![1.0]), "stored entry 0 has index 5 in mode 1"),
        (stored([2, 2], vec![0], vec![1.0, 2.0]), "need 4 index numbers, got 1"),
        (compressed(7, &[0, 1]), "the compressed mode is 7, expected 0"),
        (compressed(0, &[0, -1]), "stored entry 1 has an index in mode 1"),
        (fit(Plca::new(2), &negative), "entry [0, 1] is -1"),
        (fit(Plca::new(2), &zeros), "nothing to fit"),
    ]);
}

#[test]
fn settings_are_refused_by_their_name() {
    let data = data();
    let cube = dense(&[2, 2, 2], &[1.0; 8]).unwrap();
    let halves = dense(&[1, 2], &[0.5, 1.0]).unwrap();
    let huge = |k: usize| {
        [
            fit(Plca::new(k), &data),
            fit(Nmf::new(k), &data),
            fit(Pntf::new(k), &data),
            fit(Ntf::new(k), &data),
            fit(Snmf::new(k), &data),
        ]
    };
    for call in huge(usize::MAX) {
        check(&[(
            call,
            "`components` is 18446744073709552000, expected so few",
        )]);
    }
    for call in huge(0) {
        check(&[(call, "`components` is 0, expected at least 1")]);
    }
    let other = Dirichlet::per_entry(dmatrix![1.0; 2.0; 3.0]).unwrap();
    let extrapolated = Plca::new(2).prior("factor_0", Entropic::relative(0.3).unwrap());
    let extrapolated = extrapolated.on(&data).unwrap().solver(Solver::Squarem);
    let unknown = Plca::new(2).prior("factor0", Entropic::new(1.0).unwrap());
    #[rustfmt::skip]
    check(&[
        (fit(unknown, &data), "no block is called `factor0`, expected weights, factor_0, factor_1"),
        (fit(Plca::new(2).prior("factor_0", other), &data), "prior on `factor_0`: hyperparameters are 3x1, the block is 2x2"),
        (said(extrapolated.run(Init::default(), &mut plca::seed(0))), "the prior on `factor_0` is no constant density"),
        (said(Entropic::new(f64::NAN)), "`beta` = NaN"),
        (fit(Plca::new(2).freeze("factor_0"), &data), "`factor_0` is frozen, but the start does not give it"),
        (fit(Plca::new(2).freeze_components("factor_0", [5]), &data), "there is no component 5 in `factor_0`, which has 2"),
        (fit(Shifted::new(2, vec![9, 9]), &data), "expected at least 9 x at least 9"),
        (fit(Snmf::new(1), &cube), "shape [2, 2, 2] is not a matrix"),
        (fit(Snmf::new(1).replicates(Replicates::One), &halves), "entry [0, 0] is 0.5, expected a whole number"),
        (said(Snmf::new(1).replicates(Replicates::Finite(0)).check()), "`replicates` is 0, expected at least 1"),
        (run(Stop::default().tol(f64::NAN), Init::default()), "`tol` is NaN, expected a finite number >= 0"),
        (run(Stop::default().residual_tol(-1.0), Init::default()), "`residual_tol` is -1"),
        (said("fastest".parse::<Solver>()), "no solver is called `fastest`, expected em"),
        (said(Selection::new(&data, Criterion::HeldOut, 2.0, plca::seed(0))), "share 2 to be held out is outside (0, 1)"),
    ]);
}

#[test]
fn starts_and_states_are_refused_by_their_block() {
    let block = |name: &str, m: DMatrix<f64>| run(Stop::default(), Init::default().block(name, m));
    let three = Plca::new(3);
    let data = data();
    let plca = Plca::new(2);
    let fit = plca.fit(&data, &mut plca::seed(0)).unwrap();
    let resumed = three.on(&data).unwrap().resume(fit.checkpoint().clone());
    let text = serde_json::to_string(fit.state()).unwrap();
    let negative = text.replacen("0.", "-0.", 1);
    let claimed = r#"{"names":["weights","factor_0"],"blocks":[[[1.0],1,1],[[1.0],1,1152921504606846976]],"iteration":0,"power":1.0,"mass":1.0,"facts":[]}"#;
    let read = |text: &str| said(serde_json::from_str::<PlcaState<f64>>(text));
    let new = dense(&[3, 4], &[1.0; 12]).unwrap();
    #[rustfmt::skip]
    check(&[
        (block("factor_0", dmatrix![0.5; 0.5]), "`factor_0` is 2x1, expected 2x2"),
        (block("weights", dmatrix![0.5; f64::NAN]), "`weights` has NaN in row 1, column 0"),
        (block("weights", dmatrix![0.0; 0.0]), "`weights`"),
        (said(resumed), "the checkpoint belongs to another run"),
        (said(PlcaState::<f64>::new(dvector![1.0], vec![])), "0 blocks"),
        (said(PlcaState::new(dvector![0.5, 0.25, 0.25], vec![dmatrix![1.0, 1.0]])), "`factor_0` is 1x2, expected 1x3"),
        (said(NmfState::<f64>::new(DMatrix::zeros(0, 0), DMatrix::zeros(0, 0))), "`components` is 0"),
        (read(&negative), "`weights` has -"),
        (read(claimed), "1152921504606846976"),
        (said(fit.state().transform(&new, &Transform::default()).map(drop)), "the data are 3 x 4, expected 2 x any"),
    ]);
}

#[test]
fn small_problems_are_refused_by_their_sizes() {
    let one = dmatrix![1.0, 0.0; 0.0, 1.0];
    let none = simplex_qp(&DMatrix::zeros(0, 0), &[], None);
    assert!(matches!(none, Err(QpError::Empty)), "{none:?}");
    let beta = Entropic::new(f64::NAN);
    assert!(matches!(beta, Err(PriorError::Domain { .. })), "{beta:?}");
    #[rustfmt::skip]
    check(&[
        (said(simplex_qp(&one, &[1.0], None)), "`h` has size [2, 2], expected [1, 1]"),
        (said(simplex_qp(&dmatrix![1.0, 0.0], &[1.0], None)), "`h` has size [1, 2]"),
        (said(dist::exp_digamma_slice(&[1.0], &mut [0.0; 3])), "`out` has 3 elements instead of 1"),
        (said(dist::thin(u64::MAX, 0.5, &mut plca::seed(0))), "`count`"),
    ]);
    // The largest numbers have a solution like others.
    let huge = simplex_qp(&dmatrix![1e308, 0.0; 0.0, 1e308], &[1e308, -1e308], None);
    assert_eq!(huge.unwrap().weights, [1.0, 0.0]);
}

/// Mistakes of the program, which the documents of each function name under "Panics".
#[test]
fn indices_outside_panic_with_their_limits() {
    fn panics<O>(expected: &str, call: impl FnOnce() -> O) {
        let panic = catch_unwind(AssertUnwindSafe(call))
            .map(drop)
            .expect_err(expected);
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or(panic.downcast_ref::<&str>().map(ToString::to_string));
        let text = text.unwrap_or_default();
        assert!(text.contains(expected), "{text}\nexpected: {expected}");
    }
    let state = fitted();
    panics("there is no mode 7, the model has 2", || {
        state.factor(7).clone()
    });
    panics("there is no mode", || state.factor(usize::MAX).clone());
    panics("index [5, 5] outside shape [2, 3]", || data().get(&[5, 5]));
    panics("mode 64 of 64", || Modes::all(99));
    panics("no number is below 0", || {
        dist::random::below(0, &mut plca::seed(0))
    });
    panics("got 3", || {
        Coordinates::<f64>::empty(&[2, 2]).push(&[0, 0, 0], 1.0)
    });
    panics("one factor per mode", || {
        let a = dmatrix![1.0];
        let factors = [Factor::Columns(&a)];
        let model = Cp {
            weights: None,
            factors: &factors,
        };
        data().e_step(&model, &Request::counts(Modes::all(1)))
    });
    panics("index out of bounds", || state.cell(&[9, 9]));
    panics("mismatched matrix dimensions", || {
        let one = || dmatrix![1.0];
        let posterior = Posterior {
            plus: one(),
            minus: one(),
            shape: dmatrix![1.0, 2.0],
            rate: one(),
        };
        posterior.means()
    });
}

/// A run that is told to end in its first iteration, and one of none, are results like others.
#[test]
fn short_runs_are_results() {
    assert_eq!(run(Stop::default().max_iter(0), Init::default()), Ok(()));
    let plca = Plca::new(1_000_000);
    let data = data();
    let few = plca.on(&data).unwrap().stop(Stop::default().max_iter(2));
    assert!(few.run(Init::default(), &mut plca::seed(0)).is_ok());
    let plca = Plca::new(2);
    let ended = plca.on(&data).unwrap().observe(|_: &Iteration<'_, f64>| {
        std::ops::ControlFlow::Break(Status::Custom("enough".into()))
    });
    let ended = ended.run(Init::default(), &mut plca::seed(0)).unwrap();
    assert_eq!(ended.status(), &Status::Custom("enough".into()));
    let tiny = dense(&[2, 2], &[1e-320, 2e-320, 5e-324, 1e-320]).unwrap();
    let tiny = plca.fit(&tiny, &mut plca::seed(0)).unwrap();
    assert!(tiny.objective().is_finite());
}

/// What users keep beside their own things, and send to other threads.
#[test]
fn types_may_go_to_other_threads() {
    fn is<T: Send + Sync + 'static>() {}
    is::<PlcaState<f64>>();
    is::<Plca>();
    is::<FitError>();
    is::<DataError>();
    is::<PriorError>();
    is::<QpError>();
    is::<SparseTensor<f64>>();
    is::<DenseTensor<f32>>();
    is::<Checkpoint<f64>>();
    is::<Fit<PlcaState<f64>>>();
    is::<Init<f64>>();
    is::<Interrupt>();
    is::<Transform>();
    is::<SnmfVb>();
    is::<SnmfVbState<f64>>();
    is::<plca::skellam::Learner>();
    is::<PntfState<f64>>();
    is::<dist::Skellam>();
}
