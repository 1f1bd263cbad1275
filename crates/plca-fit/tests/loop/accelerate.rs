//! Accelerations: never worse than where they come from, and faster than plain steps where they can be.

use plca_fit::{
    Accelerate, Algorithm, Carried, Direction, Momentum, Parabolic, Plain, Squarem, StopError,
    StopReason, run,
};

use crate::toy::{START, State, TOY, Toy, exactly};

fn values<A: Algorithm<State = Carried<State>, Error = StopError>>(
    algorithm: &A,
    n: usize,
) -> Vec<f64> {
    let mut state = Carried::new(START);
    (0..n)
        .map(|_| {
            let measured = algorithm.step(&mut state, true).unwrap();
            measured.expect("asked for")
        })
        .collect()
}

/// No accelerated iteration makes the objective worse, in either direction.
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
                for values in [
                    values(&Plain(Squarem(toy)), 12),
                    values(&Parabolic(toy), 12),
                    values(&Momentum(toy), 40),
                ] {
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

/// Where extrapolation is always worse, an iteration is exactly so many plain steps.
// [SPEC 10]
#[test]
fn rejected_extrapolations_leave_plain_steps() {
    for nan in [false, true] {
        let toy = Toy {
            wild: true,
            nan,
            ..TOY
        };
        let after = |algorithm: &dyn Fn(&mut Carried<State>), iterations: usize| {
            let mut state = Carried::new(START);
            (0..iterations).for_each(|_| algorithm(&mut state));
            state.into_inner().x
        };
        let plain = |state: &mut Carried<State>| {
            Plain(toy).step(state, false).unwrap();
        };
        let squared = |state: &mut Carried<State>| {
            Plain(Squarem(toy)).step(state, false).unwrap();
        };
        let searched = |state: &mut Carried<State>| {
            Parabolic(toy).step(state, false).unwrap();
        };
        let carried = |state: &mut Carried<State>| {
            Momentum(toy).step(state, false).unwrap();
        };
        assert_eq!(after(&squared, 3), after(&plain, 6));
        // The first two points of a parabola are a step apart.
        assert_eq!(after(&searched, 5), after(&plain, 8));
        assert_eq!(after(&carried, 3), after(&plain, 9));
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
        ended: false,
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

/// So many plain steps.
fn powers(toy: &Toy, n: usize) -> State {
    let mut there = START;
    for _ in 0..n {
        toy.step(&mut there, false).unwrap();
    }
    there
}

/// Four steps, each from `x + β (x - x')`, `β = 1/2` at first and a fifth more after every iteration that was kept; after one that
/// was given up it is two thirds of that, and from then on the bound.
// [AG alg. 1] [SPEC 10]
#[test]
fn momentum_goes_on_in_the_direction_of_the_last_step() {
    let mut state = Carried::new(START);
    let mut at = [START.x, powers(&TOY, 1).x];
    Momentum(TOY).step(&mut state, false).unwrap();
    assert_eq!(state.inner().x, at[1]);
    for beta in [0.5, 0.5 * 1.2] {
        Momentum(TOY).step(&mut state, false).unwrap();
        for _ in 0..4 {
            let next = [0, 1].map(|i| TOY.rates[i] * (at[1][i] + beta * (at[1][i] - at[0][i])));
            at = [at[1], next];
        }
        assert!((0..2).all(|i| (state.inner().x[i] - at[1][i]).abs() < 1e-14));
        assert!((0..2).all(|i| (state.to_parts().0[0][i] - at[0][i]).abs() < 1e-14));
    }
    let (_, numbers) = state.to_parts();
    assert!((numbers[1] - 0.5 * 1.2 * 1.2).abs() < 1e-15 && numbers[2] == 1.0);
    let wild = Toy { wild: true, ..TOY };
    let mut state = Carried::new(START);
    for _ in 0..2 {
        Momentum(wild).step(&mut state, false).unwrap();
    }
    let (points, numbers) = state.to_parts();
    assert_eq!(points, [wild.pack(&powers(&wild, 4))]);
    assert_eq!(numbers[1..], [0.5 / 1.5, 0.5]);
}

/// Where the plain steps lead to an objective that is no number, nothing is remembered of it: one plain step at a time follows.
#[test]
fn momentum_forgets_what_no_number_guards() {
    let toy = Toy {
        rates: [2.0, 0.9],
        nan: true,
        ..TOY
    };
    let mut state = Carried::new(START);
    // One step, then four for every point ahead, which is worse.
    for steps in [1, 5, 9, 10, 11] {
        Momentum(toy).step(&mut state, false).unwrap();
        assert_eq!(state.inner(), &powers(&toy, steps));
        let (points, numbers) = state.to_parts();
        let known = toy.objective(state.inner()).unwrap().is_finite();
        assert_eq!(known, steps < 9);
        assert_eq!(
            (points.len(), numbers.len()),
            if known { (1, 3) } else { (0, 0) }
        );
    }
}

/// A state that was taken apart and put together goes on with the same bits; points of other parameters are forgotten.
#[test]
fn carried_states_go_on() {
    for n in 0..5 {
        let mut state = Carried::new(START);
        for _ in 0..n {
            Momentum(TOY).step(&mut state, false).unwrap();
        }
        let (points, numbers) = state.to_parts();
        let inner = state.inner().clone();
        let mut again = Carried::from_parts(inner.clone(), points.to_vec(), numbers.to_vec());
        let mut other = Carried::from_parts(inner, vec![vec![1.0; 3]], vec![-1.0, 0.5, 1.0]);
        for s in [&mut state, &mut again, &mut other] {
            Momentum(TOY).step(s, false).unwrap();
        }
        assert_eq!(state, again);
        assert!(other.to_parts().0.iter().all(|x| x.len() == 2));
    }
}

/// Runs of different kinds one after the other: none takes what another remembers for its own.
#[test]
fn accelerations_forget_what_others_remember() {
    let toy = Toy {
        rates: [0.9, -0.8],
        ..TOY
    };
    let (plain, momentum, parabolic) = (Plain(toy), Momentum(toy), Parabolic(toy));
    let mut state = Carried::new(START);
    let mut last = f64::NEG_INFINITY;
    for turn in 0..60 {
        match turn / 4 % 3 {
            0 => momentum.step(&mut state, false).unwrap(),
            1 => plain.step(&mut state, false).unwrap(),
            _ => parabolic.step(&mut state, false).unwrap(),
        };
        let value = toy.objective(state.inner()).unwrap();
        let known = [momentum.objective(&state), parabolic.objective(&state)];
        assert_eq!(known, [Ok(value); 2], "{turn}");
        assert!(value >= last, "{turn}: {last} {value}");
        last = value;
    }
}

/// A search from `x, ρ x, ρ² x` ends at `x(t) = (1 - t (1 - ρ))² x` with the last `t = 1 + 0.1 · 1.5^i` before the objective falls, and at
/// `x(1)` if it falls at once; two steps follow, and the next parabola has the point that they lead to.
// [PARABOLIC alg. P-EM] [SKELLAM 9]
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
        let mut searched = Carried::new(START);
        for _ in 0..3 {
            Parabolic(toy).step(&mut searched, false).unwrap();
        }
        let mut there = at(best);
        let (points, _) = searched.to_parts();
        let earlier = [1, 2].map(|n| toy.pack(&powers(&toy, n)));
        assert_eq!(points, earlier);
        for _ in 0..2 {
            toy.step(&mut there, false).unwrap();
        }
        let found = searched.into_inner();
        assert!(close(&found, &there), "{found:?}, not {there:?}");
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
    let plain = |n: usize| reached(values(&Plain(slow), n));
    assert!(reached(values(&Plain(Squarem(slow)), 3)).abs() < 1e-3 * plain(11).abs());
    assert!(reached(values(&Parabolic(slow), 4)) > plain(20));
    assert!(reached(values(&Momentum(slow), 16)).abs() < 0.1 * plain(60).abs());
}

/// Wrappers pass on what they do not change.
#[test]
fn accelerations_pass_on_the_rest() {
    let toy = Toy {
        direction: Direction::Minimise,
        last: 1,
        ..TOY
    };
    passes_on(&Plain(Squarem(toy)));
    passes_on(&Parabolic(toy));
    passes_on(&Momentum(toy));
}

fn passes_on<A: Algorithm<State = Carried<State>, Error = StopError>>(algorithm: &A) {
    let start = Carried::new(START);
    assert_eq!(algorithm.direction(), Direction::Minimise);
    assert_eq!(algorithm.objective(&start), Ok(17.0));
    assert_eq!(algorithm.residual(&start), Ok(Some(4.0)));
    let outcome = run(algorithm, start, &exactly(100), ()).unwrap();
    assert_eq!(
        (outcome.iterations, outcome.reason),
        (1, StopReason::HeldOut)
    );
}
