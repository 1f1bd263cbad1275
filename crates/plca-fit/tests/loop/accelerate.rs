//! Accelerations: never worse than plain steps, and better where they can be.

use std::convert::Infallible;

use plca_fit::{Algorithm, Direction, Parabolic, Squarem, StopReason, run};

use crate::toy::{START, State, TOY, Toy, exactly};

fn values<A: Algorithm<State = State, Error = Infallible>>(algorithm: &A, n: usize) -> Vec<f64> {
    let mut state = START;
    (0..n)
        .map(|_| {
            let measured = algorithm.step(&mut state, true).unwrap();
            measured.expect("asked for")
        })
        .collect()
}

/// Accelerated iterations are never worse than one plain step, in either direction.
// [SPEC 10]
#[test]
fn accelerations_are_monotone() {
    for direction in [Direction::Maximise, Direction::Minimise] {
        for rates in [
            [0.5, 0.9],
            [0.99, 0.3],
            [0.999, 0.998],
            [-0.7, 0.9],
            [1.0, 1.0],
        ] {
            for (wild, nan) in [(false, false), (true, false), (true, true)] {
                let toy = Toy {
                    rates,
                    direction,
                    wild,
                    nan,
                    ..TOY
                };
                for values in [values(&Squarem(toy), 12), values(&Parabolic(toy), 12)] {
                    for pair in values.windows(2) {
                        assert!(
                            direction.not_worse(pair[1], pair[0]),
                            "{rates:?}: {values:?}"
                        );
                    }
                }
            }
        }
    }
}

/// Where extrapolation is always worse, an iteration is exactly two plain steps.
// [SPEC 10]
#[test]
fn rejected_extrapolations_leave_two_steps() {
    for nan in [false, true] {
        let toy = Toy {
            wild: true,
            nan,
            ..TOY
        };
        let mut plain = START;
        for _ in 0..2 {
            toy.step(&mut plain, false).unwrap();
        }
        let (mut squared, mut searched) = (START, START);
        Squarem(toy).step(&mut squared, false).unwrap();
        Parabolic(toy).step(&mut searched, false).unwrap();
        assert_eq!((squared.x, searched.x), (plain.x, plain.x));
    }
}

/// `x' = (1 + a (1 - ρ))² x` for a coordinate that shrinks by `ρ`; `a` is the larger step of the two differences.
fn extrapolated(toy: &Toy, start: &State) -> State {
    let norm = |power: i32| {
        let terms = start.x.iter().zip(toy.rates);
        terms
            .map(|(x, rho)| ((1.0 - rho).powi(power) * x).powi(2))
            .sum::<f64>()
            .sqrt()
    };
    let a = -norm(1) / norm(2);
    let mut there = start.clone();
    for (x, rho) in there.x.iter_mut().zip(toy.rates) {
        *x *= (1.0 + a * (1.0 - rho)).powi(2);
    }
    there
}

fn close(a: &State, b: &State) -> bool {
    let pairs = a.x.iter().zip(b.x);
    pairs.fold(true, |all, (a, b)| all && (a - b).abs() <= 1e-12)
}

/// A squared step is that of the formula, followed by one plain step, where the objective there is not worse; where it is
/// worse the step is given up. The control shows that it would have been taken without the guard.
// [SQUAREM alg. SqS3] [SPEC 10]
#[test]
fn squared_steps_that_lower_the_objective_are_rejected() {
    let helpful = Toy {
        rates: [0.99, 0.5],
        ..TOY
    };
    // The slow coordinate decides the step, which throws the fast one past its aim; and that one counts.
    let harmful = Toy {
        rates: [0.99, 0.1],
        weights: [1.0, 1e4],
        ..TOY
    };
    let start = State {
        x: [4.0, 1e-4],
        steps: 0,
    };
    for (toy, taken) in [(helpful, true), (harmful, false)] {
        let mut plain = start.clone();
        toy.step(&mut plain, false).unwrap();
        let one = toy.objective(&plain).unwrap();
        toy.step(&mut plain, false).unwrap();
        let mut there = extrapolated(&toy, &start);
        assert_eq!(toy.objective(&there).unwrap() >= one, taken);
        toy.step(&mut there, false).unwrap();
        let mut squared = start.clone();
        Squarem(toy).step(&mut squared, false).unwrap();
        let expected = if taken { &there } else { &plain };
        assert!(close(&squared, expected), "{squared:?}, not {expected:?}");
        assert!(!close(&there, &plain));
    }
}

/// A search ends at `x(t) = (1 - t (1 - ρ))² x` with the last `t = 1 + 0.1 · 1.5^i` before the objective falls, and at `x(1)` if it
/// falls at once.
// [PARABOLIC alg. P-EM] [SPEC 10]
#[test]
fn a_search_ends_before_the_parabola_falls() {
    let helpful = Toy {
        rates: [0.9, 0.8],
        ..TOY
    };
    // The fast coordinate is past its aim at once.
    let harmful = Toy {
        rates: [-0.5, 0.9],
        ..TOY
    };
    for (toy, trials) in [(helpful, 11), (harmful, 0)] {
        let at = |t: f64| {
            let mut there = START;
            for (x, rho) in there.x.iter_mut().zip(toy.rates) {
                *x *= (1.0 - t * (1.0 - rho)).powi(2);
            }
            there
        };
        let value = |t: f64| toy.objective(&at(t)).unwrap();
        let (mut best, mut taken) = (1.0, 0);
        let mut next = 1.1;
        while value(next) > value(best) {
            (best, next) = (next, 1.0 + 1.5 * (next - 1.0));
            taken += 1;
        }
        assert_eq!(taken, trials);
        let mut searched = START;
        Parabolic(toy).step(&mut searched, false).unwrap();
        assert!(
            close(&searched, &at(best)),
            "{searched:?}, not {:?}",
            at(best)
        );
    }
}

/// Where it helps it is taken: with one slow rate a squared step lands on the answer.
// [SPEC 10]
#[test]
fn accelerations_accelerate() {
    let slow = Toy {
        rates: [0.99, 0.99],
        ..TOY
    };
    let reached = |values: Vec<f64>| *values.last().unwrap();
    let plain = reached(values(&slow, 11));
    assert!(reached(values(&Squarem(slow), 3)).abs() < 1e-3 * plain.abs());
    assert!(reached(values(&Parabolic(slow), 3)) > reached(values(&slow, 7)));
}

/// Wrappers pass on what they do not change.
#[test]
fn accelerations_pass_on_the_rest() {
    let toy = Toy {
        direction: Direction::Minimise,
        last: 1,
        ..TOY
    };
    let (a, b) = (Squarem(toy), Parabolic(toy));
    assert_eq!([a.direction(), b.direction()], [Direction::Minimise; 2]);
    assert_eq!([a.objective(&START), b.objective(&START)], [Ok(17.0); 2]);
    assert_eq!([a.residual(&START), b.residual(&START)], [Ok(Some(4.0)); 2]);
    let outcome = run(&a, START, &exactly(100), ()).unwrap();
    assert_eq!(
        (outcome.iterations, outcome.reason),
        (1, StopReason::HeldOut)
    );
}
