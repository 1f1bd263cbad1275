//! What a run shows while it lasts: trace, observers, cancellation.

use std::ops::ControlFlow;

use plca_fit::{Iteration, StopReason, TracePoint, run};

use crate::toy::{START, State, TOY, exactly};

/// The trace has the objective after 0, 3, 6, … iterations, and that of the final state.
#[test]
fn trace_holds_every_check_and_the_end() {
    let outcome = run(&TOY, START, &exactly(8), ()).unwrap();
    let after = |n: usize| run(&TOY, START, &exactly(n), ()).unwrap().objective;
    let expected = [0, 3, 6, 8].map(|iteration| TracePoint {
        iteration,
        objective: after(iteration),
    });
    assert_eq!(outcome.trace, expected);
    assert_eq!(outcome.objective, after(8));
}

#[test]
fn observers_see_every_iteration() {
    let mut seen = Vec::new();
    let observer = |i: &Iteration<'_, State>| {
        assert_eq!(
            (i.state.steps, i.progress.iteration),
            (i.iteration, i.iteration)
        );
        seen.push((i.iteration, i.measured.map(|m| m.iteration)));
        ControlFlow::Continue(())
    };
    let outcome = run(&TOY, START, &exactly(5), observer).unwrap();
    assert_eq!(outcome.iterations, 5);
    assert_eq!(
        seen,
        [(1, Some(0)), (2, None), (3, None), (4, Some(3)), (5, None)]
    );
}

/// `Break` ends the run after that iteration; both observers of a pair are told.
#[test]
fn observers_may_cancel() {
    let (mut first, mut second) = (0, 0);
    let one = |i: &Iteration<'_, State>| {
        first = i.iteration;
        if i.iteration == 4 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let two = |i: &Iteration<'_, State>| {
        second = i.iteration;
        ControlFlow::Continue(())
    };
    let outcome = run(&TOY, START, &exactly(100), (one, two)).unwrap();
    assert_eq!(
        (outcome.iterations, outcome.reason),
        (4, StopReason::Interrupted)
    );
    assert_eq!((first, second), (4, 4));
    assert_eq!(outcome.trace.last().map(|t| t.iteration), Some(4));
    // Who cancels waits for nothing more.
    assert!(!outcome.state.ended);
    let uncancelled = run(&TOY, START, &exactly(4), ()).unwrap();
    assert_eq!(outcome.state.x, uncancelled.state.x);
}
