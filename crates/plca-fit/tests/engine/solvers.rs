//! Solvers that extrapolate: never worse than where they come from, and faster than plain steps where they can be.

use nalgebra::DMatrix;
use plca_fit::{
    Checkpoint, FitError, Parameters, Sense, Solver, State,
    blocks::{Axes, BlockSpec, Constraint},
    solver::Memory,
};

use super::toy::{START, Stand, Toy, toy};

const ALL: [Solver; 3] = [Solver::Squarem, Solver::Parabolic, Solver::Momentum];

/// What so many iterations measure.
fn values(toy: &Toy, solver: Solver, n: usize) -> Vec<f64> {
    let mut at = toy.at(START);
    let mut steps = solver.on(toy, Memory::default()).unwrap();
    let mut values = || steps.step(&mut at, true).unwrap().value.unwrap();
    (0..n).map(|_| values()).collect()
}

/// No iteration makes the objective worse, in either direction.
// [SPEC 10]
#[test]
fn solvers_are_monotone() {
    for sense in [Sense::Maximise, Sense::Minimise] {
        for rates in [
            [0.5, 0.9],
            [0.99, 0.3],
            [0.999, 0.998],
            [-0.7, 0.9],
            [1.0, 1.0],
        ] {
            for (wild, nan) in [(false, false), (true, false), (true, true)] {
                let toy = Toy {
                    sense,
                    wild,
                    nan,
                    ..toy(rates)
                };
                for solver in ALL {
                    let values = values(&toy, solver, 40);
                    for pair in values.windows(2) {
                        let good = sense.not_worse(pair[1], pair[0]);
                        assert!(good, "{solver}, {rates:?}: {values:?}");
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
            ..toy([0.5, 0.9])
        };
        assert_eq!(toy.after(Solver::Em, 7).x, toy.powers(START, 7));
        assert_eq!(toy.after(Solver::Squarem, 3).x, toy.powers(START, 6));
        // The first two points of a parabola are a step apart.
        assert_eq!(toy.after(Solver::Parabolic, 5).x, toy.powers(START, 8));
        assert_eq!(toy.after(Solver::Momentum, 3).x, toy.powers(START, 9));
    }
}

fn close(a: [f64; 2], b: [f64; 2]) -> bool {
    a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-12)
}

/// A squared step is that of the formula, `x' = (1 + a (1 - ρ))² x` for a coordinate that shrinks by `ρ`, followed by one plain step,
/// where the objective there is not worse; where it is worse the step is given up. The control shows that it would have been taken
/// without the guard.
// [SQUAREM alg. SqS3] [SPEC 10]
#[test]
fn squared_steps_that_lower_the_objective_are_rejected() {
    let helpful = toy([0.99, 0.5]);
    // The slow coordinate decides the step, which throws the fast one past its aim; and that one counts.
    let harmful = Toy {
        weights: [1.0, 1e4],
        ..toy([0.99, 0.1])
    };
    let start = [4.0, 1e-4];
    for (toy, taken) in [(helpful, true), (harmful, false)] {
        let norm = |power: i32| {
            let terms = start.iter().zip(toy.rates);
            let squares = terms.map(|(x, rho)| ((1.0 - rho).powi(power) * x).powi(2));
            squares.sum::<f64>().sqrt()
        };
        let a = -norm(1) / norm(2);
        let there = [0, 1].map(|i| (1.0 + a * (1.0 - toy.rates[i])).powi(2) * start[i]);
        let one = toy.value(&toy.powers(start, 1));
        assert_eq!(toy.value(&there) >= one, taken);
        let (there, plain) = (toy.powers(there, 1), toy.powers(start, 2));
        let from = Checkpoint::new(toy.at(start));
        let squared = Stand::of(toy.go_on(from, Solver::Squarem, 1)).x;
        let expected = if taken { there } else { plain };
        assert!(close(squared, expected), "{squared:?}, not {expected:?}");
        assert!(!close(there, plain));
    }
}

/// Four steps, each from `x + β (x - x')`, `β = 1/2` at first and a fifth more after every iteration that was kept; after one that
/// was given up it is two thirds of that, and from then on the bound.
// [AG alg. 1] [SPEC 10]
#[test]
fn momentum_goes_on_in_the_direction_of_the_last_step() {
    let plain = toy([0.5, 0.9]);
    let mut at = [START, plain.powers(START, 1)];
    assert_eq!(plain.after(Solver::Momentum, 1).x, at[1]);
    for (n, beta) in [(2, 0.5), (3, 0.5 * 1.2)] {
        let stand = plain.after(Solver::Momentum, n);
        for _ in 0..4 {
            let next = [0, 1].map(|i| plain.rates[i] * (at[1][i] + beta * (at[1][i] - at[0][i])));
            at = [at[1], next];
        }
        assert!((0..2).all(|i| (stand.x[i] - at[1][i]).abs() < 1e-14));
        assert!((0..2).all(|i| (stand.points[0][i] - at[0][i]).abs() < 1e-14));
        assert!((stand.numbers[1] - beta * 1.2).abs() < 1e-15 && stand.numbers[2] == 1.0);
    }
    let wild = Toy {
        wild: true,
        ..plain
    };
    let stand = wild.after(Solver::Momentum, 2);
    assert_eq!(stand.points, [wild.powers(START, 4)]);
    assert_eq!(stand.numbers[1..], [0.5 / 1.5, 0.5]);
}

/// Where the plain steps lead to an objective that is no number, nothing is remembered of it: one plain step at a time follows.
#[test]
fn momentum_forgets_what_no_number_guards() {
    let toy = Toy {
        nan: true,
        ..toy([2.0, 0.9])
    };
    // One step, then four for every point ahead, which is worse.
    for (n, steps) in [(1, 1), (2, 5), (3, 9), (4, 10), (5, 11)] {
        let stand = toy.after(Solver::Momentum, n);
        assert_eq!(stand.x, toy.powers(START, steps));
        let known = toy.value(&stand.x).is_finite();
        assert_eq!(known, steps < 9);
        let sizes = (stand.points.len(), stand.numbers.len());
        assert_eq!(sizes, if known { (1, 3) } else { (0, 0) });
    }
}

/// What another model remembers is forgotten.
#[test]
fn points_of_other_parameters_are_forgotten() {
    let toy = toy([0.5, 0.9]);
    let mut other = toy.go_on(Checkpoint::new(toy.at(START)), Solver::Momentum, 3);
    let arrays = other.take_arrays();
    other
        .put_arrays(|name| match name {
            "memory.0" => Some(DMatrix::from_element(3, 1, 1.0)),
            _ => (arrays.iter().find(|(other, _)| other == name)).map(|(_, m)| m.clone()),
        })
        .unwrap();
    let x = Stand::of(other.clone()).x;
    let stand = Stand::of(toy.go_on(other, Solver::Momentum, 1));
    assert_eq!(
        (stand.x, stand.points),
        (toy.powers(x, 1), vec![x.to_vec()])
    );
}

/// Runs under different solvers one after the other: none takes what another remembers for its own.
#[test]
fn solvers_forget_what_others_remember() {
    let toy = toy([0.9, -0.8]);
    let mut at = Checkpoint::new(toy.at(START));
    let mut last = f64::NEG_INFINITY;
    for turn in 0..60 {
        let solver = [Solver::Momentum, Solver::Em, Solver::Parabolic][turn / 4 % 3];
        at = toy.go_on(at, solver, 1);
        let value = toy.value(at.parameters().at(0).as_slice());
        assert!(value >= last, "{turn}: {last} {value}");
        last = value;
    }
}

/// A search from `x, ρ x, ρ² x` ends at `x(t) = (1 - t (1 - ρ))² x` with the last `t = 1 + 0.1 · 1.5^i` before the objective falls, and at
/// `x(1)` if it falls at once; two steps follow, and the next parabola has the point that they lead to.
// [PARABOLIC alg. P-EM] [SKELLAM 9]
#[test]
fn a_search_ends_before_the_parabola_falls() {
    // The fast coordinate of the second is past its aim at once.
    for (toy, trials) in [(toy([0.9, 0.8]), 11), (toy([-0.5, 0.9]), 0)] {
        let at = |t: f64| [0, 1].map(|i| (1.0 - t * (1.0 - toy.rates[i])).powi(2) * START[i]);
        let (mut best, mut taken, mut next) = (1.0, 0, 1.1);
        while toy.value(&at(next)) > toy.value(&at(best)) {
            (best, next) = (next, 1.0 + 1.5 * (next - 1.0));
            taken += 1;
        }
        assert_eq!(taken, trials);
        let stand = toy.after(Solver::Parabolic, 3);
        assert_eq!(stand.points, [1, 2].map(|n| toy.powers(START, n)));
        let there = toy.powers(at(best), 2);
        assert!(close(stand.x, there), "{stand:?}, not {there:?}");
    }
}

/// Where it helps it is taken: with one slow rate a squared step lands on the answer.
// [SPEC 10]
#[test]
fn solvers_accelerate() {
    let slow = toy([0.99, 0.99]);
    let reached = |solver, n| *values(&slow, solver, n).last().unwrap();
    let plain = |n| reached(Solver::Em, n);
    assert!(reached(Solver::Squarem, 3).abs() < 1e-3 * plain(11).abs());
    assert!(reached(Solver::Parabolic, 4) > plain(20));
    assert!(reached(Solver::Momentum, 16).abs() < 0.1 * plain(60).abs());
}

/// Rates that grow in every step, to an objective that rises with them. No solver takes what it extrapolates beyond half of the range of numbers from their
/// unit: plain steps are left there. Nearer to the unit it is taken, and so it is of shapes, which have no unit.
#[test]
fn what_is_extrapolated_stays_within_half_of_the_range() {
    // The iterations until a solver has extrapolated once, and the plain steps that they come to.
    let solvers = [
        (Solver::Squarem, 1, 2),
        (Solver::Parabolic, 3, 4),
        (Solver::Momentum, 2, 5),
    ];
    for unit in [2f64.powi(-300), 1.0] {
        let most = unit * 2f64.powi(511);
        let growing = Toy {
            weights: [-1.0 / most, 0.0].map(|w| w / most),
            unit: Some(unit),
            ..toy([1.1, 1.1])
        };
        for (solver, iterations, steps) in solvers {
            // A search ends where a third more would leave the range.
            let near = if solver == Solver::Parabolic {
                3.8
            } else {
                16.0
            };
            let shapes = Toy {
                specs: [BlockSpec::values(
                    "x",
                    (2, 1),
                    Axes::factor(0),
                    Constraint::Positive,
                )],
                ..growing.clone()
            };
            let cases = [
                (&growing, 1.7, false),
                (&growing, near, true),
                (&shapes, 1.7, true),
            ];
            for (growing, below, taken) in cases {
                let start = [most / below; 2];
                let from = Checkpoint::new(growing.at(start));
                let x = Stand::of(growing.go_on(from, solver, iterations)).x;
                let plain = growing.powers(start, steps);
                assert_eq!(x[0] > 1.1 * plain[0], taken, "{solver}: {x:?} {plain:?}");
            }
        }
    }
}

/// A run of a model of any kind ends with numbers, or says what is none.
#[test]
fn parameters_are_numbers() {
    for bad in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
        let mut at = toy([0.5; 2]).at([1.0; 2]);
        at.change(|_, x| x[1] = bad);
        let wrapped = Parameters::wrap(at);
        let Err(FitError::NotFinite { what, value }) = wrapped else {
            panic!("{wrapped:?}");
        };
        assert_eq!(what, "a value of `x`");
        assert!(value.total_cmp(&bad).is_eq(), "{value}");
    }
}
