//! A resumed run is the run it resumes, to the bit.

use std::ops::ControlFlow;

use plca_fit::{
    Algorithm, Carried, Iteration, Momentum, Parabolic, Plain, Progress, Squarem, Stop, StopError,
    StopReason, TracePoint, run, run_from,
};

use crate::toy::{START, State, TOY, Toy, exactly};

/// Every cut of every kind of run: the rest is what the whole would have been.
#[test]
fn resumed_is_uninterrupted() {
    let toys = [
        TOY,
        Toy { last: 9, ..TOY },
        Toy {
            rates: [0.99, 0.98],
            ..TOY
        },
    ];
    let stops = [
        exactly(12),
        Stop {
            max_iter: 20,
            tol: 0.05,
            patience: 3,
            check_every: 2,
            ..Stop::default()
        },
        Stop {
            max_iter: 12,
            tol: 0.05,
            check_every: 2,
            ..Stop::default()
        },
        Stop {
            max_iter: 12,
            tol: 1e-9,
            check_every: 2,
            residual_tol: Some(0.6),
            ..Stop::default()
        },
    ];
    let mut reasons = Vec::new();
    for toy in toys {
        for stop in stops {
            let mut saved: Vec<(State, Progress)> = vec![(START, Progress::default())];
            let keep = |i: &Iteration<'_, State>| {
                saved.push((i.state.clone(), i.progress));
                ControlFlow::Continue(())
            };
            let whole = run(&toy, START, &stop, keep).unwrap();
            assert_eq!(saved.len(), whole.iterations + 1);
            let finished = whole.reason != StopReason::Stationary;
            assert_eq!(whole.state.ended, finished, "{}", whole.reason);
            // Where a run ended another begins, and ends at once, as it did.
            let ended = Progress {
                iteration: whole.iterations,
                ended: Some(whole.reason),
                ..Progress::default()
            };
            let again = run_from(&toy, whole.state.clone(), ended, &stop, ()).unwrap();
            assert_eq!((&again.state, again.reason), (&whole.state, whole.reason));
            reasons.push(whole.reason);
            for (state, progress) in saved {
                let from = progress.iteration;
                let rest = run_from(&toy, state, progress, &stop, ()).unwrap();
                assert_eq!(
                    (&rest.state, rest.reason),
                    (&whole.state, whole.reason),
                    "from {from}"
                );
                assert_eq!(
                    (rest.iterations, rest.objective),
                    (whole.iterations, whole.objective)
                );
                let later: Vec<_> = whole.trace.iter().filter(|t| t.iteration >= from).collect();
                assert_eq!(rest.trace.iter().collect::<Vec<_>>(), later, "from {from}");
            }
        }
    }
    // The cases are not all alike.
    for reason in [
        StopReason::MaxIterations,
        StopReason::HeldOut,
        StopReason::Converged,
        StopReason::Stationary,
    ] {
        assert!(reasons.contains(&reason), "{reason} never met");
    }
}

/// The same for accelerated runs, whose memory is part of the state.
#[test]
fn resumed_accelerations_are_uninterrupted() {
    fn every_cut<A: Algorithm<State = Carried<State>, Error = StopError>>(algorithm: &A) {
        let stop = Stop {
            tol: 1e-12,
            check_every: 2,
            ..Stop::default()
        };
        let whole = run(algorithm, Carried::new(START), &stop, ()).unwrap();
        assert!(whole.iterations > 3, "{whole:?}");
        for cut in 0..=whole.iterations {
            let mut saved = (Carried::new(START), Progress::default());
            let until = |i: &Iteration<'_, Carried<State>>| {
                saved = (i.state.clone(), i.progress);
                ControlFlow::Continue(())
            };
            let first = Stop {
                max_iter: cut,
                ..stop
            };
            let half = run(algorithm, Carried::new(START), &first, until).unwrap();
            assert_eq!(half.iterations, cut);
            let rest = run_from(algorithm, saved.0, saved.1, &stop, ()).unwrap();
            assert_eq!(
                (rest.state, rest.reason, rest.iterations),
                (whole.state.clone(), whole.reason, whole.iterations),
                "from {cut}"
            );
        }
    }
    let toy = Toy {
        rates: [0.9, 0.4],
        ..TOY
    };
    every_cut(&Plain(Squarem(toy)));
    every_cut(&Parabolic(toy));
    every_cut(&Momentum(toy));
}

/// A count of checks that is full, as a file may hold it, stays so: it has met any patience.
#[test]
fn the_largest_count_of_checks_stays() {
    let checked = TracePoint {
        iteration: 0,
        objective: -1.0,
    };
    let full = Progress {
        iteration: 1,
        checked: Some(checked),
        small_changes: usize::MAX,
        ended: None,
    };
    let stop = Stop {
        max_iter: 9,
        tol: 1e9,
        check_every: 1,
        patience: usize::MAX,
        ..Stop::default()
    };
    let outcome = run_from(&TOY, START, full, &stop, ()).unwrap();
    assert_eq!(
        (outcome.reason, outcome.iterations),
        (StopReason::Converged, 2)
    );
}

/// Control: without its progress a resumed run does not end where the whole did.
#[test]
fn progress_is_needed_to_resume() {
    let toy = Toy {
        rates: [0.99, 0.99],
        ..TOY
    };
    let stop = Stop {
        max_iter: 50,
        tol: 0.05,
        check_every: 4,
        ..Stop::default()
    };
    let whole = run(&toy, START, &stop, ()).unwrap();
    let half = run(&toy, START, &exactly(3), ()).unwrap();
    let rest = run(&toy, half.state, &stop, ()).unwrap();
    assert_ne!(whole.state, rest.state);
}
