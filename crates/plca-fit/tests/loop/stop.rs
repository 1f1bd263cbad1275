//! When a run ends.

use plca_fit::{Algorithm, Direction, Need, Stop, StopError, StopReason, TracePoint, run};

use crate::toy::{START, Script, TOY, Toy, exactly};

#[test]
fn tolerance_zero_runs_every_iteration() {
    // Nothing changes from the start on.
    let still = Toy {
        rates: [1.0, 1.0],
        ..TOY
    };
    let outcome = run(&still, START, &exactly(17), ()).unwrap();
    assert_eq!(
        (outcome.iterations, outcome.reason),
        (17, StopReason::MaxIterations)
    );
    assert_eq!(outcome.state.steps, 17);
}

/// Each test ends a run without the other.
#[test]
fn the_tests_do_not_depend_on_each_other() {
    let stop = Stop {
        residual_tol: Some(0.1),
        ..exactly(1000)
    };
    let outcome = run(&TOY, START, &stop, ()).unwrap();
    assert_eq!(outcome.reason, StopReason::Stationary);
    assert!((1..1000).contains(&outcome.iterations));
    let still = Toy {
        rates: [1.0, 1.0],
        ..TOY
    };
    for residual_tol in [None, Some(0.0)] {
        let stop = Stop {
            tol: 1e-300,
            residual_tol,
            ..exactly(1000)
        };
        let outcome = run(&still, START, &stop, ()).unwrap();
        assert_eq!(outcome.reason, StopReason::Converged);
    }
}

/// Where both are needed neither ends a run alone, and the later of them does; a test that is not made is not needed.
#[test]
fn both_tests_may_be_needed() {
    let stop = |tol, residual_tol, need| Stop {
        tol,
        residual_tol,
        need,
        ..exactly(200)
    };
    let still = Toy {
        rates: [1.0, 1.0],
        ..TOY
    };
    let end = |toy: &Toy, stop: &Stop| {
        let outcome = run(toy, START, stop, ()).unwrap();
        (outcome.reason, outcome.iterations)
    };
    // Nothing changes, far away; all changes by the same share, up to 0.
    for (toy, tol, other) in [
        (&still, 1e-3, StopReason::Converged),
        (&TOY, 1e-9, StopReason::Stationary),
    ] {
        let any = end(toy, &stop(tol, Some(0.1), Need::Any));
        assert_eq!(any.0, other);
        let all = end(toy, &stop(tol, Some(0.1), Need::All));
        assert_eq!(all, (StopReason::MaxIterations, 200));
    }
    // The second coordinate stays at 1: near from iteration 3 on, and later still.
    let settles = Toy {
        rates: [0.5, 1.0],
        ..TOY
    };
    let near = end(&settles, &stop(1e-3, Some(1.5), Need::Any));
    let change = end(&settles, &stop(1e-3, None, Need::All));
    assert_eq!(near, (StopReason::Stationary, 3));
    assert_eq!(change.0, StopReason::Converged);
    assert!(change.1 > 6);
    assert_eq!(end(&settles, &stop(1e-3, Some(1.5), Need::All)), change);
    assert_eq!(end(&settles, &stop(0.0, Some(1.5), Need::All)), near);
    // The other way round: the change is allowed from the start.
    let all = end(&TOY, &stop(10.0, Some(0.1), Need::All));
    let any = end(&TOY, &stop(10.0, Some(0.1), Need::Any));
    assert_eq!(all.0, StopReason::Converged);
    assert!(all.1 > any.1);
}

/// A tolerance of what the algorithm does not measure is refused before the first iteration.
#[test]
fn no_residual_to_stop_by() {
    for tol in [0.0, 1e-6] {
        let stop = Stop {
            residual_tol: Some(tol),
            ..Stop::default()
        };
        let refused = run(&Script(&[-8.0, -4.0]), 0, &stop, ()).unwrap_err();
        assert_eq!(refused, StopError::NoResidual(tol));
    }
}

#[test]
fn no_iterations_is_the_start() {
    let outcome = run(&TOY, START, &exactly(0), ()).unwrap();
    assert_eq!(outcome.state, START);
    assert_eq!(
        outcome.trace,
        [TracePoint {
            iteration: 0,
            objective: -17.0
        }]
    );
    assert_eq!(outcome.reason, StopReason::MaxIterations);
}

/// `|L_new - L_old| <= tol |L_new|` between checks: the first check at which it holds ends the run.
#[test]
fn converged_at_the_first_check_within_tolerance() {
    for direction in [Direction::Maximise, Direction::Minimise] {
        let toy = Toy {
            direction,
            rates: [0.99, 0.99],
            ..TOY
        };
        for check_every in [1, 4] {
            // Between checks the objective falls by the factor q: the relative change is 1/q - 1.
            let q = 0.99f64.powi(2 * check_every as i32);
            for (tol, ends) in [
                ((1.0 / q - 1.0) * 1.001, true),
                ((1.0 / q - 1.0) * 0.999, false),
            ] {
                let stop = Stop {
                    max_iter: 100,
                    tol,
                    check_every,
                    ..Stop::default()
                };
                let outcome = run(&toy, START, &stop, ()).unwrap();
                if ends {
                    // The second check measures the state after `check_every` steps, in the step after it.
                    assert_eq!(outcome.reason, StopReason::Converged);
                    assert_eq!(outcome.iterations, check_every + 1);
                } else {
                    assert_eq!(
                        (outcome.reason, outcome.iterations),
                        (StopReason::MaxIterations, 100)
                    );
                }
            }
        }
    }
}

/// `patience` counts checks in a row: a change in between starts the count anew.
#[test]
fn patience_passes_over_plateaus() {
    let script = Script(&[-8.0, -4.0, -4.0, -2.0, -2.0, -2.0, -1.0, -1.0, -1.0, -1.0]);
    for (patience, iterations) in [(1, 3), (2, 6), (3, 10)] {
        let stop = Stop {
            max_iter: 50,
            patience,
            check_every: 1,
            ..Stop::default()
        };
        let outcome = run(&script, 0, &stop, ()).unwrap();
        // One iteration more: each measures the state that it leaves.
        assert_eq!(
            (outcome.iterations, outcome.reason),
            (iterations, StopReason::Converged),
            "patience {patience}"
        );
    }
}

#[test]
fn stationary_when_the_residual_is_small() {
    let stop = Stop {
        max_iter: 1000,
        tol: 1e-300,
        check_every: 5,
        residual_tol: Some(0.1),
        ..Stop::default()
    };
    let outcome = run(&TOY, START, &stop, ()).unwrap();
    assert_eq!(outcome.reason, StopReason::Stationary);
    assert_eq!(outcome.iterations % 5, 0);
    assert!(TOY.residual(&outcome.state).unwrap().unwrap() <= 0.1);
    let earlier = run(&TOY, START, &exactly(outcome.iterations - 5), ()).unwrap();
    assert!(TOY.residual(&earlier.state).unwrap().unwrap() > 0.1);
}

#[test]
fn the_algorithm_may_end_the_run() {
    let toy = Toy { last: 4, ..TOY };
    let outcome = run(&toy, START, &exactly(100), ()).unwrap();
    assert_eq!(
        (outcome.iterations, outcome.reason),
        (4, StopReason::HeldOut)
    );
}

#[test]
fn meaningless_stop_rules_are_refused() {
    for tol in [-1e-9, f64::INFINITY] {
        assert_eq!(
            Stop {
                tol,
                ..Stop::default()
            }
            .check(),
            Err(StopError::Tolerance(tol))
        );
        let stop = Stop {
            residual_tol: Some(tol),
            ..Stop::default()
        };
        assert_eq!(stop.check(), Err(StopError::Tolerance(tol)));
    }
    let nan = Stop {
        tol: f64::NAN,
        ..Stop::default()
    };
    assert!(matches!(nan.check(), Err(StopError::Tolerance(t)) if t.is_nan()));
    assert_eq!(
        Stop {
            check_every: 0,
            ..Stop::default()
        }
        .check(),
        Err(StopError::CheckEvery)
    );
    let impatient = Stop {
        patience: 0,
        ..Stop::default()
    };
    assert_eq!(impatient.check(), Err(StopError::Patience));
    assert_eq!(Stop::default().check(), Ok(()));
    assert_eq!(exactly(0).check(), Ok(()));
}

/// NaN is never an improvement and never convergence.
#[test]
fn nan_is_not_convergence() {
    assert!(!Direction::Maximise.not_worse(f64::NAN, 0.0));
    assert!(!Direction::Minimise.not_worse(f64::NAN, 0.0));
    let broken = Toy {
        rates: [1e9, 1e9],
        nan: true,
        ..TOY
    };
    let stop = Stop {
        max_iter: 9,
        tol: 0.5,
        check_every: 1,
        ..Stop::default()
    };
    let outcome = run(&broken, START, &stop, ()).unwrap();
    assert_eq!(outcome.reason, StopReason::MaxIterations);
    assert!(outcome.objective.is_nan());
}
