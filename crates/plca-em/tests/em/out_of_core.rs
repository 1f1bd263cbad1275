//! Models of data that are read block by block: the bits of memory, and a typed error when a read fails.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::Arc;

use nalgebra::DMatrix;
use plca_em::{Given, Nmf, Plca, Plsa, PlsaState, Update};
use plca_fit::{
    Checkpoint, Fit, FitError, Impossible, Init, Iteration, Model, Parameters, Solver, State,
    Transform, seed,
};
use plca_priors::Dirichlet;
use plca_tensor::strategies::KeptBlocks;
use plca_tensor::{Coordinates, Data, DataError, OutOfCore, SparseTensor};

use super::support::{Prior, exactly};

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

const ITERATIONS: usize = 5;

/// A run on `data`, and the parameters that it went through.
type Ran<S> = (Result<Fit<S>, FitError>, Vec<Parameters<f64>>);

fn ran<M: Model<f64>>(
    model: &M,
    data: &dyn Data<f64>,
    solver: Solver,
) -> Result<Ran<M::State>, FitError> {
    let start = model.init(data, Init::default(), &mut seed(5))?;
    let start = start.parameters().clone();
    let seen = RefCell::new(vec![start.clone()]);
    let note = |it: &Iteration<'_, f64>| {
        seen.borrow_mut().push(it.parameters().clone());
        ControlFlow::Continue(())
    };
    let run = model.on(data)?.solver(solver).observe(note);
    let run = run.stop(exactly(ITERATIONS).check_every(2));
    let fit = run.resume(Checkpoint::new(start));
    Ok((fit, seen.into_inner()))
}

fn cut(reads: usize) -> OutOfCore<f64, KeptBlocks<f64>> {
    let blocks = KeptBlocks::cut(&entries(), 20).unwrap();
    let count = blocks.count();
    assert!(count > 2);
    OutOfCore::new(blocks.fail_after(count + reads)).unwrap()
}

fn unread(error: &FitError) -> bool {
    matches!(error, FitError::Data(DataError::Source { .. }))
}

/// Runs in memory, out of core, and out of core with a failure at every read: what was observed until then is what the whole
/// run observed, and a step that fails leaves its parameters.
fn check<M: Model<f64>>(model: &M, solvers: &[Solver]) {
    for &solver in solvers {
        let memory = SparseTensor::new(entries()).unwrap();
        let (whole, states) = ran(model, &memory, solver).unwrap();
        let whole = whole.unwrap();
        let ends = |fit: &Fit<M::State>| (fit.state().parameters().clone(), fit.trace().to_vec());
        let (same, _) = ran(model, &cut(usize::MAX / 2), solver).unwrap();
        assert_eq!(ends(&same.unwrap()), ends(&whole), "{solver}");
        let mut reached = 0;
        for reads in 0.. {
            match ran(model, &cut(reads), solver) {
                Err(e) => assert!(unread(&e), "{e}"),
                Ok((Err(e), observed)) => {
                    assert!(unread(&e), "{e}");
                    assert_eq!(observed[..], states[..observed.len()]);
                    reached = reached.max(observed.len());
                }
                Ok((Ok(fit), _)) => {
                    assert_eq!(ends(&fit), ends(&whole), "{solver}");
                    break;
                }
            }
            let data = cut(reads);
            for measure in [false, true] {
                let mut at = states[1].clone();
                let stepped = model.bind(&data).and_then(|em| {
                    match em.residual(&at) {
                        Err(FitError::NoResidual { .. }) => {}
                        residual => drop(residual?),
                    }
                    em.step(&mut at, measure)
                });
                if let Err(e) = stepped {
                    assert!(unread(&e), "{e}");
                    assert_eq!(at, states[1]);
                }
            }
        }
        // The last measurement is after all iterations.
        assert_eq!(reached, ITERATIONS + 1, "{solver}");
    }
}

#[test]
fn plsa_runs_on_blocks_and_ends_with_their_failure() {
    let plsa = Plsa::new(2);
    check(&plsa, &[Solver::Em, Solver::Fast]);
}

/// Accelerated steps reject points that are refused, but not for this.
#[test]
fn plca_runs_on_blocks_and_ends_with_their_failure() {
    let plca = Plca::new(2);
    check(&plca, Solver::ALL);
}

#[test]
fn nmf_runs_on_blocks_and_ends_with_their_failure() {
    for update in [Update::Simultaneous, Update::Sequential] {
        let nmf = Nmf::new(2).update(update);
        check(&nmf, &[Solver::Em, Solver::Fast]);
    }
}

/// A prior that empties something has the data read once more after the M-step: failing there leaves the parameters too.
#[test]
fn priors_that_empty_leave_the_state_of_a_failed_step() {
    let prior: Prior<f64> = Arc::new(Dirichlet::symmetric(0.1).unwrap());
    let plsa = Plsa::new(2).prior("basis", prior.clone());
    check(&plsa, &[Solver::Em]);
    let plca = Plca::new(2).prior("factor_1", prior);
    check(&plca, &[Solver::Em]);
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
        let mut basis = basis;
        plca_tensor::normalise_columns(&mut basis);
        let mixture = DMatrix::from_element(2, 1, 0.5);
        let learned = PlsaState::new(Given::Columns, basis, mixture, vec![1.0]).unwrap();
        let how = Transform::default().solver(solver);
        let how = how.impossible(Impossible::Drop);
        let how = how.stop(exactly(ITERATIONS).check_every(2));
        let whole = learned.transform(&memory, &how).unwrap();
        assert_eq!(whole.dropped > 0.0, least == 0.0);
        let mut failed = 0;
        for reads in 0.. {
            match learned.transform(&cut(reads), &how) {
                Err(e) => {
                    assert!(unread(&e), "{e}");
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
