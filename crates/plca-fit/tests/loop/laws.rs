//! The laws hold for the toy, and each catches the error that it is for.

use std::cell::Cell;

use plca_fit::laws::{
    Claims, Law, Rounding, Violation, check, check_accelerated, check_failure, check_moved,
    check_rate, check_resumed, check_threads, never_worse,
};
use plca_fit::{Accelerate, Algorithm, Direction, Progress, Stop, StopError};

use crate::toy::{START, State, TOY, Toy, exactly};

fn claims() -> Claims {
    Claims::new(Rounding::derived(f64::EPSILON, 4, 17.0))
}

#[test]
fn the_toy_obeys() {
    for direction in [Direction::Maximise, Direction::Minimise] {
        let toy = Toy { direction, ..TOY };
        check(&toy, &START, &claims()).unwrap();
        check_resumed(&toy, &START, &exactly(9), 4, Clone::clone).unwrap();
        check_accelerated(&toy, &START, &claims()).unwrap();
    }
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
}

#[derive(Debug)]
struct Halving {
    fault: Fault,
    hidden: Cell<u32>,
}

fn halving(fault: Fault) -> Halving {
    Halving {
        fault,
        hidden: Cell::new(0),
    }
}

impl Algorithm for Halving {
    type State = f64;
    type Error = StopError;

    fn step(&self, x: &mut f64, measure: bool) -> Result<Option<f64>, StopError> {
        let before = self.objective(x)?;
        self.hidden.set(self.hidden.get() + 1);
        *x *= match self.fault {
            Fault::Refuses => return Err(StopError::CheckEvery),
            Fault::Infinite => f64::INFINITY,
            Fault::MeasuringMoves if measure => 0.4,
            // Far from rounding, and far from a fault that eyes would see.
            Fault::Grows => 1.0 + 1e-10,
            Fault::Hides => 1.0 / f64::from(self.hidden.get() + 1),
            _ => 0.5,
        };
        match self.fault {
            Fault::WritesAndFails => Err(StopError::CheckEvery),
            Fault::MeasuresLate => self.objective(x).map(|now| measure.then_some(now)),
            Fault::MeasuresNothing => Ok(None),
            _ => Ok(measure.then_some(before)),
        }
    }

    fn objective(&self, x: &f64) -> Result<f64, StopError> {
        Ok(-x.abs())
    }

    fn residual(&self, _: &f64) -> Result<Option<f64>, StopError> {
        Ok((self.fault == Fault::Residual).then_some(-1.0))
    }
}

fn law(result: Result<(), Violation>) -> Option<Law> {
    result.err().map(|violation| violation.law)
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
        (Fault::Grows, Some(Law::Monotone)),
        (Fault::Residual, Some(Law::Residual)),
        (Fault::Hides, Some(Law::MeasuringChangesNothing)),
    ] {
        let found = law(check(&halving(fault), &8.0, &claims));
        assert_eq!(found, caught, "{fault:?}");
    }
    // An annealed method does not promise to rise, nor to measure.
    let annealed = Claims {
        monotone: false,
        ..claims
    };
    assert_eq!(law(check(&halving(Fault::Grows), &8.0, &annealed)), None);
    assert_eq!(
        law(check(&halving(Fault::MeasuresNothing), &8.0, &annealed)),
        None
    );
}

#[test]
fn failures_that_leave_a_trace_are_caught_by_name() {
    let failure = |fault| law(check_failure(&halving(fault), &8.0));
    assert_eq!(failure(Fault::Refuses), None);
    assert_eq!(failure(Fault::WritesAndFails), Some(Law::Atomic));
    assert_eq!(failure(Fault::None), Some(Law::Atomic));
}

#[test]
fn what_a_checkpoint_loses_is_caught_by_name() {
    let stop = Stop {
        max_iter: 7,
        tol: 0.0,
        check_every: 2,
        ..Stop::default()
    };
    let resumed = |fault, copy: fn(&(f64, Progress)) -> (f64, Progress)| {
        law(check_resumed(&halving(fault), &8.1, &stop, 3, copy))
    };
    assert_eq!(resumed(Fault::None, |saved| *saved), None);
    assert_eq!(resumed(Fault::Hides, |saved| *saved), Some(Law::Resume));
    let in_single = |saved: &(f64, Progress)| (f64::from(saved.0 as f32), saved.1);
    assert_eq!(resumed(Fault::None, in_single), Some(Law::Resume));
    let counted_anew = |saved: &(f64, Progress)| (saved.0, Progress::default());
    assert_eq!(resumed(Fault::None, counted_anew), Some(Law::Resume));
}

/// A toy whose steps measure what is always good.
struct Elsewhere(Toy);

impl Algorithm for Elsewhere {
    type State = State;
    type Error = StopError;

    fn step(&self, s: &mut State, measure: bool) -> Result<Option<f64>, StopError> {
        self.0.step(s, false)?;
        Ok(measure.then_some(0.0))
    }

    fn objective(&self, s: &State) -> Result<f64, StopError> {
        self.0.objective(s)
    }
}

impl Accelerate for Elsewhere {
    fn pack(&self, s: &State) -> Vec<f64> {
        self.0.pack(s)
    }

    fn unpack(&self, template: &State, flat: &[f64], _: &[f64]) -> State {
        self.0.unpack(template, flat, flat)
    }
}

#[test]
fn bad_extrapolations_are_caught_by_name() {
    let wild = Toy { wild: true, ..TOY };
    let packed = check_accelerated(&wild, &START, &claims());
    assert_eq!(law(packed), Some(Law::Packed));
    assert_eq!(
        law(check_accelerated(&Elsewhere(TOY), &START, &claims())),
        Some(Law::Measured)
    );
    // Plain steps that lose make accelerations lose.
    let grows = Toy {
        rates: [1.5, 1.2],
        ..TOY
    };
    let accelerated = check_accelerated(&grows, &START, &claims());
    assert_eq!(law(accelerated), Some(Law::Accelerated));
}

/// Coordinates exchanged, and a unit.
#[test]
fn what_depends_on_names_and_units_is_caught_by_name() {
    let swapped = Toy {
        rates: [TOY.rates[1], TOY.rates[0]],
        ..TOY
    };
    let swap = |s: &State| State {
        x: [s.x[1], s.x[0]],
        ..*s
    };
    let show = |s: &State| vec![s.x.to_vec()];
    let exact = Claims {
        entries: 0.0,
        ..claims()
    };
    let moved = |there: &Toy| {
        law(check_moved(
            Law::Permutation,
            &TOY,
            there,
            &START,
            swap,
            show,
            1.0,
            &exact,
        ))
    };
    assert_eq!(moved(&swapped), None);
    assert_eq!(moved(&TOY), Some(Law::Permutation));
    let doubled = |s: &State| State {
        x: s.x.map(|x| 2.0 * x),
        ..*s
    };
    let scaled = |unit| {
        law(check_moved(
            Law::Scale,
            &TOY,
            &TOY,
            &START,
            doubled,
            show,
            unit,
            &exact,
        ))
    };
    assert_eq!(scaled(4.0), None);
    assert_eq!(scaled(2.0), Some(Law::Scale));
}

/// Another rate of 1e-9: seen in the parameters unless they are claimed less exactly, and not before the iteration that it acts in.
#[test]
fn parameters_are_compared_as_exactly_as_claimed() {
    let off = Toy {
        rates: TOY.rates.map(|r| r * (1.0 + 1e-9)),
        ..TOY
    };
    let loose = Rounding {
        relative: 1e-6,
        absolute: 1e-6,
    };
    let show = |s: &State| vec![s.x.to_vec()];
    let same = |compared, entries| {
        let claims = Claims {
            compared,
            entries,
            ..Claims::new(loose)
        };
        let [a, b] = [&TOY, &off];
        law(check_moved(
            Law::Same,
            a,
            b,
            &START,
            Clone::clone,
            show,
            1.0,
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
        law(never_worse(Direction::Maximise, &values))
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
