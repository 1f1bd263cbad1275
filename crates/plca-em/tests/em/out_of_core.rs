//! Models of data that are read block by block: the bits of memory, and a typed error when a read fails.

use std::sync::Arc;

use nalgebra::DMatrix;
use plca_em::{
    Algorithm, EmError, FoldIn, Given, Impossible, Iteration, Need, NmfInit, PlcaInit, PlsaInit,
    Prior, Solver, Squarem, Stop, Update,
    before::{Nmf, Plca, Plsa, PlsaState},
    run,
};
use plca_priors::Dirichlet;
use plca_tensor::strategies::KeptBlocks;
use plca_tensor::{Coordinates, Data, DataError, OutOfCore, SparseTensor};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

fn entries() -> Coordinates<f64> {
    let cell = |i: u32, j: u32| f64::from((i * 7 + j * 5 + i * j) % 6);
    let (rows, columns) = (9, 7);
    let all = || (0..rows).flat_map(move |i| (0..columns).map(move |j| (i, j)));
    Coordinates {
        shape: vec![rows as usize, columns as usize],
        indices: all().flat_map(|(i, j)| [i, j]).collect(),
        values: all().map(|(i, j)| cell(i, j)).collect(),
    }
}

const STOP: Stop = Stop {
    max_iter: 5,
    tol: 0.0,
    check_every: 2,
    residual_tol: None,
    need: Need::Any,
    patience: 1,
};

/// A run on `data`, and the states that it went through.
type Ran<S, E> = (Result<plca_em::Outcome<S>, E>, Vec<S>);

fn ran<A: Algorithm>(algorithm: &A, state: A::State) -> Ran<A::State, A::Error> {
    let mut states = vec![state.clone()];
    let observer = |it: &Iteration<'_, A::State>| {
        states.push(it.state.clone());
        std::ops::ControlFlow::Continue(())
    };
    let outcome = run(algorithm, state, &STOP, observer);
    (outcome, states)
}

/// Runs `fit` in memory, out of core, and out of core with a failure at every read: what was observed until then is what the whole
/// run observed, and a step that fails leaves its state.
fn check<S: Clone + PartialEq + std::fmt::Debug>(
    fit: impl Fn(&dyn Data<f64>) -> Result<Ran<S, EmError>, EmError>,
    step: impl Fn(&dyn Data<f64>, &mut S) -> Result<(), EmError>,
) {
    let memory = SparseTensor::new(entries()).unwrap();
    let (whole, states) = fit(&memory).unwrap();
    let whole = whole.unwrap();
    let cut = |reads: usize| {
        let blocks = KeptBlocks::cut(&entries(), 20).unwrap();
        let count = blocks.count();
        assert!(count > 2);
        OutOfCore::new(blocks.fail_after(count + reads)).unwrap()
    };
    let (same, _) = fit(&cut(usize::MAX / 2)).unwrap();
    let same = same.unwrap();
    assert_eq!((&same.state, &same.trace), (&whole.state, &whole.trace));
    let mut reached = 0;
    for reads in 0.. {
        let data = cut(reads);
        let unread = |e: &EmError| matches!(e, EmError::Tensor(DataError::Source { .. }));
        match fit(&data) {
            Err(e) => assert!(unread(&e), "{e}"),
            Ok((Err(e), observed)) => {
                assert!(unread(&e), "{e}");
                assert_eq!(observed[..], states[..observed.len()]);
                reached = reached.max(observed.len());
            }
            Ok((Ok(outcome), _)) => {
                assert_eq!(outcome.state, whole.state);
                break;
            }
        }
        let mut state = states[1].clone();
        if let Err(e) = step(&cut(reads), &mut state) {
            assert!(unread(&e), "{e}");
            assert_eq!(state, states[1]);
        }
    }
    // The last measurement is after all iterations.
    assert_eq!(reached, STOP.max_iter + 1);
}

fn rng() -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(5)
}

#[test]
fn plsa_runs_on_blocks_and_ends_with_their_failure() {
    let plsa = Plsa::<f64>::builder(2).build().unwrap();
    check(
        |data| {
            let state = plsa.init(data, &PlsaInit::default(), &mut rng())?;
            Ok(ran(&plsa.on(data)?, state))
        },
        |data, state| plsa.on(data)?.step(state, true).map(|_| ()),
    );
}

#[test]
fn plca_runs_on_blocks_and_ends_with_their_failure() {
    let plca = Plca::<f64>::builder(2).build().unwrap();
    check(
        |data| {
            let state = plca.init(data, &PlcaInit::default(), &mut rng())?;
            Ok(ran(&plca.on(data)?, state))
        },
        |data, state| {
            let em = plca.on(data)?;
            em.residual(state)?;
            em.step(state, false).map(|_| ())
        },
    );
    // Accelerated steps reject points that are refused, but not for this.
    check(
        |data| {
            let state = plca.init(data, &PlcaInit::default(), &mut rng())?;
            Ok(ran(&Squarem(plca.on(data)?), state))
        },
        |_, _| Ok(()),
    );
}

#[test]
fn nmf_runs_on_blocks_and_ends_with_their_failure() {
    for update in [Update::Simultaneous, Update::Sequential] {
        let nmf = Nmf::builder(2).update(update).build().unwrap();
        check(
            |data| {
                let state = nmf.init(data, &NmfInit::default(), &mut rng())?;
                Ok(ran(&nmf.on(data)?, state))
            },
            |data, state| nmf.on(data)?.step(state, false).map(|_| ()),
        );
    }
}

/// A prior that empties something has the data read once more after the M-step: failing there leaves the state too.
#[test]
fn priors_that_empty_leave_the_state_of_a_failed_step() {
    let prior: Prior<f64> = Arc::new(Dirichlet::symmetric(0.1).unwrap());
    let plsa = Plsa::builder(2).basis_prior(prior.clone()).build().unwrap();
    check(
        |data| {
            let state = plsa.init(data, &PlsaInit::default(), &mut rng())?;
            Ok(ran(&plsa.on(data)?, state))
        },
        |data, state| plsa.on(data)?.step(state, true).map(|_| ()),
    );
    let plca = Plca::builder(2).factor_prior(1, prior).build().unwrap();
    check(
        |data| {
            let state = plca.init(data, &PlcaInit::default(), &mut rng())?;
            Ok(ran(&plca.on(data)?, state))
        },
        |data, state| plca.on(data)?.step(state, true).map(|_| ()),
    );
}

/// What is certified was read to the end, whichever read fails; so are the observations that are left out.
#[test]
fn fold_ins_end_with_the_failure_of_their_blocks() {
    let memory = SparseTensor::new(entries()).unwrap();
    for (solver, least) in [(Solver::Em, 0.1), (Solver::Fast, 0.1), (Solver::Em, 0.0)] {
        let basis = DMatrix::from_fn(9, 2, |i, z| {
            if i == 4 {
                least
            } else {
                0.1 * (1 + (i + z) % 3) as f64
            }
        });
        let learned = PlsaState {
            basis,
            mixture: DMatrix::zeros(2, 0),
            power: 1.0,
            iteration: 0,
        };
        let how = FoldIn {
            stop: STOP,
            impossible: Impossible::Drop,
            solver,
        };
        let whole = learned.fold_in(&memory, Given::Columns, &how).unwrap();
        assert_eq!(whole.dropped > 0.0, least == 0.0);
        let mut failed = 0;
        for reads in 0.. {
            let blocks = KeptBlocks::cut(&entries(), 20).unwrap();
            let count = blocks.count();
            let data = OutOfCore::new(blocks.fail_after(count + reads)).unwrap();
            match learned.fold_in(&data, Given::Columns, &how) {
                Err(e) => {
                    assert!(
                        matches!(e, EmError::Tensor(DataError::Source { .. })),
                        "{e}"
                    );
                    failed += 1;
                }
                Ok(found) => {
                    assert_eq!((&found.gap, found.dropped), (&whole.gap, whole.dropped));
                    break;
                }
            }
        }
        assert!(failed > 2);
    }
}
