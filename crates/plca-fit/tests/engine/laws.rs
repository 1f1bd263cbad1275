//! The laws hold for the toy, and each catches the error that it is for.

use std::sync::atomic::{AtomicU32, Ordering};

use nalgebra::DMatrix;
use plca_fit::laws::{
    Claims, Law, Renewal, Rounding, Violation, blocks, check, check_failure, check_model,
    check_moved, check_rate, check_resumed, check_threads, never_worse,
};
use plca_fit::{
    Algorithm, Checkpoint, FitError, Init, Model, Parameters, Sense, Solver,
    blocks::{Axes, BlockSpec, Constraint},
    em::Stepped,
};
use plca_tensor::{DenseTensor, Order};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use crate::toy::{START, Toy, toy};

const RATES: [f64; 2] = [0.9, 0.5];
const SOLVERS: [Solver; 4] = [
    Solver::Em,
    Solver::Squarem,
    Solver::Parabolic,
    Solver::Momentum,
];

fn claims() -> Claims {
    Claims::new(Rounding::derived(f64::EPSILON, 4, 17.0))
}

fn law(result: Result<(), Violation>) -> Option<Law> {
    result.err().map(|violation| violation.law)
}

#[test]
fn the_toy_obeys() {
    for sense in [Sense::Maximise, Sense::Minimise] {
        let toy = Toy {
            sense,
            ..toy(RATES)
        };
        let start = toy.at(START);
        for solver in SOLVERS {
            check(&toy, solver, &start, &claims()).unwrap();
            check_resumed(&toy, solver, &start, [4, 9], |saved| saved).unwrap();
        }
    }
}

#[test]
fn a_model_obeys() {
    let values = (0..12).map(|i| f64::from(i * 5 % 7)).collect();
    let data = DenseTensor::<f64>::new(vec![3, 4], values, Order::RowMajor).unwrap();
    let model = plca_em::Plca::new(2);
    let start = model
        .init(&data, Init::default(), &mut ChaCha8Rng::seed_from_u64(1))
        .unwrap();
    let claims = Claims::new(Rounding::derived(f64::EPSILON, 2 + 3 + 4, 40.0));
    let held = check_model(&model, &data, &start, &claims).unwrap();
    assert_eq!(held, Solver::ALL);
    // Of distributions that are exact to the bit there are none.
    let exact = Claims {
        rounding: Rounding {
            relative: 0.0,
            absolute: 0.0,
        },
        ..claims
    };
    let broken = check_model(&model, &data, &start, &exact).unwrap_err();
    assert!(broken.details.contains(": iteration "), "{broken}");
}

/// What is wrong with a method that halves its number.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    Refuses,
    Infinite,
    MeasuresLate,
    MeasuresNothing,
    MeasuringMoves,
    Grows,
    Residual,
    WritesAndFails,
    Hides,
    Wild,
}

#[derive(Debug)]
struct Halving {
    fault: Fault,
    hidden: AtomicU32,
    blocks: [BlockSpec<f64>; 1],
}

fn halving(fault: Fault) -> Halving {
    Halving {
        fault,
        hidden: AtomicU32::new(0),
        blocks: [BlockSpec::values(
            "x",
            (1, 1),
            Axes::SINGLE,
            Constraint::Free,
        )],
    }
}

fn at(x: f64) -> Parameters<f64> {
    Parameters::new(
        &halving(Fault::None).blocks,
        vec![DMatrix::from_element(1, 1, x)],
    )
    .unwrap()
}

fn failure() -> FitError {
    FitError::Conflict {
        what: "the fault".into(),
    }
}

impl Algorithm<f64> for Halving {
    fn blocks(&self) -> &[BlockSpec<f64>] {
        &self.blocks
    }

    fn step(&self, at: &mut Parameters<f64>, measure: bool) -> Result<Stepped, FitError> {
        let before = self.objective(at)?;
        let calls = self.hidden.fetch_add(1, Ordering::Relaxed) + 1;
        let factor = match self.fault {
            Fault::Refuses => return Err(failure()),
            Fault::Infinite => f64::INFINITY,
            Fault::MeasuringMoves if measure => 0.4,
            // Far from rounding, and far from a fault that eyes would see.
            Fault::Grows => 1.0 + 1e-10,
            Fault::Hides => 1.0 / f64::from(calls + 1),
            _ => 0.5,
        };
        at.change(|_, x| *x *= factor);
        at.count();
        let value = match self.fault {
            Fault::WritesAndFails => return Err(failure()),
            Fault::MeasuresLate => Some(self.objective(at)?),
            Fault::MeasuresNothing => None,
            _ => Some(before),
        };
        Ok(Stepped {
            value: value.filter(|_| measure),
            ..Stepped::default()
        })
    }

    fn objective(&self, at: &Parameters<f64>) -> Result<f64, FitError> {
        Ok(-at.at(0)[0].abs())
    }

    fn unit(&self) -> f64 {
        1.0
    }

    fn residual(&self, _: &Parameters<f64>) -> Result<f64, FitError> {
        match self.fault {
            Fault::Residual => Ok(-1.0),
            _ => Err(FitError::NoResidual {
                why: "there is none".into(),
            }),
        }
    }

    fn extrapolates(&self, _: &Parameters<f64>) -> Result<(), FitError> {
        Ok(())
    }

    fn extrapolated(&self, base: &Parameters<f64>, flat: &[f64], _: &[f64]) -> Parameters<f64> {
        let mut new = base.clone();
        let wild = if self.fault == Fault::Wild { 2.0 } else { 1.0 };
        new.change(|_, x| x[0] = wild * flat[0]);
        new
    }
}

#[test]
fn errors_of_one_method_are_caught_by_name() {
    let claims = Claims::new(Rounding::derived(f64::EPSILON, 4, 8.0));
    for (fault, caught) in [
        (Fault::None, None),
        (Fault::Refuses, Some(Law::Accepts)),
        (Fault::Infinite, Some(Law::Accepts)),
        (Fault::MeasuresLate, Some(Law::Measured)),
        (Fault::MeasuresNothing, Some(Law::Measured)),
        (Fault::MeasuringMoves, Some(Law::MeasuringChangesNothing)),
        (Fault::Grows, Some(Law::Block)),
        (Fault::Residual, Some(Law::Residual)),
        (Fault::Hides, Some(Law::MeasuringChangesNothing)),
        (Fault::Wild, Some(Law::Extrapolated)),
    ] {
        let found = law(check(&halving(fault), Solver::Em, &at(8.0), &claims));
        assert_eq!(found, caught, "{fault:?}");
    }
    // An annealed method does not promise to rise, nor to measure.
    let annealed = Claims {
        monotone: false,
        renewal: Renewal::Otherwise,
        ..claims
    };
    for fault in [Fault::Grows, Fault::MeasuresNothing] {
        assert_eq!(
            law(check(&halving(fault), Solver::Em, &at(8.0), &annealed)),
            None
        );
    }
    // Plain steps that lose make extrapolated ones lose.
    for solver in [Solver::Squarem, Solver::Parabolic] {
        let grows = toy([1.5, 1.2]);
        assert_eq!(
            law(check(&grows, solver, &grows.at(START), &claims)),
            Some(Law::Block)
        );
    }
}

#[test]
fn failures_that_leave_a_trace_are_caught_by_name() {
    let failure = |fault| law(check_failure(&halving(fault), Solver::Em, &at(8.0)));
    assert_eq!(failure(Fault::Refuses), None);
    assert_eq!(failure(Fault::WritesAndFails), Some(Law::Atomic));
    assert_eq!(failure(Fault::None), Some(Law::Atomic));
}

#[test]
fn what_a_checkpoint_loses_is_caught_by_name() {
    let resumed = |fault, copy: fn(Checkpoint<f64>) -> Checkpoint<f64>| {
        law(check_resumed(
            &halving(fault),
            Solver::Em,
            &at(8.1),
            [3, 7],
            copy,
        ))
    };
    assert_eq!(resumed(Fault::None, |saved| saved), None);
    assert_eq!(resumed(Fault::Hides, |saved| saved), Some(Law::Resume));
    let in_single = |saved: Checkpoint<f64>| {
        let mut at = saved.parameters().clone();
        at.change(|_, x| x.apply(|x| *x = f64::from(*x as f32)));
        Checkpoint::new(at)
    };
    assert_eq!(resumed(Fault::None, in_single), Some(Law::Resume));
    // A solver that remembers, of which nothing is kept.
    let (toy, forget) = (toy(RATES), |saved: Checkpoint<f64>| {
        Checkpoint::new(saved.parameters().clone())
    });
    let start = toy.at(START);
    let forgets = check_resumed(&toy, Solver::Momentum, &start, [4, 9], forget);
    assert_eq!(law(forgets), Some(Law::Resume));
}

/// Coordinates exchanged, and a unit.
#[test]
fn what_depends_on_names_and_units_is_caught_by_name() {
    let (here, swapped) = (toy(RATES), toy([RATES[1], RATES[0]]));
    let exact = Claims {
        entries: 0.0,
        ..claims()
    };
    let start = here.at(START);
    let swap = |at: &Parameters<f64>| here.at([at.at(0)[1], at.at(0)[0]]);
    let moved = |there: &Toy| {
        law(check_moved(
            Law::Permutation,
            [&here, there],
            &start,
            swap,
            blocks,
            |objective| objective,
            &exact,
        ))
    };
    assert_eq!(moved(&swapped), None);
    assert_eq!(moved(&here), Some(Law::Permutation));
    let doubled = |at: &Parameters<f64>| here.at([2.0 * at.at(0)[0], 2.0 * at.at(0)[1]]);
    let scaled = |unit| {
        law(check_moved(
            Law::Scale,
            [&here, &here],
            &start,
            doubled,
            blocks,
            |objective| unit * objective,
            &exact,
        ))
    };
    assert_eq!(scaled(4.0), None);
    assert_eq!(scaled(2.0), Some(Law::Scale));
}

/// Another rate of 1e-9: seen in the parameters unless they are claimed less exactly, and not before the iteration that it acts in.
#[test]
fn parameters_are_compared_as_exactly_as_claimed() {
    let (here, off) = (toy(RATES), toy(RATES.map(|r| r * (1.0 + 1e-9))));
    let loose = Rounding {
        relative: 1e-6,
        absolute: 1e-6,
    };
    let same = |compared, entries| {
        let claims = Claims {
            compared,
            entries,
            ..Claims::new(loose)
        };
        law(check_moved(
            Law::Same,
            [&here, &off],
            &here.at(START),
            Clone::clone,
            blocks,
            |objective| objective,
            &claims,
        ))
    };
    assert_eq!(same(3, 1e-6), None);
    assert_eq!(same(3, 1e-12), Some(Law::Same));
    assert_eq!(same(0, 0.0), None);
    assert_eq!(Claims::new(loose).entries, 1e-3);
}

#[test]
fn losses_are_forgiven_as_far_as_stated() {
    let stated = Rounding {
        relative: 0.0,
        absolute: 0.5,
    };
    let of = |values: [f64; 3]| {
        let values = values.map(|value| (value, stated));
        law(never_worse(Sense::Maximise, &values))
    };
    assert_eq!(of([1e9, 1e9 - 0.5, 1e9 - 1.0]), None);
    assert_eq!(of([1e9, 1e9 - 0.5, 1e9 - 1.1]), Some(Law::Monotone));
    assert_eq!(of([1.0, f64::INFINITY, 2.0]), Some(Law::Accepts));
    assert_eq!(of([1.0, 2.0, f64::NAN]), Some(Law::Accepts));
}

#[test]
fn threads_are_counted() {
    assert_eq!(law(check_threads(|| 3)), None);
    assert_eq!(
        law(check_threads(rayon::current_num_threads)),
        Some(Law::Threads)
    );
}

/// Of 100 trials at 0.95, `P(X <= 81) = 5.0e-7` and `P(X <= 82) = 2.2e-6` lie on the two sides of the limit.
#[test]
fn rates_are_believed_as_far_as_stated() {
    let of_hundred = |successes| law(check_rate(0.95, 100, |seed| seed < successes));
    for successes in 0..=100 {
        let broken = (successes <= 81).then_some(Law::Rate);
        assert_eq!(of_hundred(successes), broken, "{successes}");
    }
    // One failure of one at a rate of 0.999 is no proof; of three, all failed, it is: 1e-9.
    assert_eq!(law(check_rate(0.999, 1, |_| false)), None);
    assert_eq!(law(check_rate(0.999, 3, |_| false)), Some(Law::Rate));
}
