//! One method from one start.

use std::fmt::Debug;
use std::ops::ControlFlow;

use super::{Claims, Law, Rounding, Violation, objective, step};
use crate::{
    Accelerate, Algorithm, Carried, Direction, Iteration, Momentum, Parabolic, Plain, Progress,
    Squarem, Stop, run, run_from,
};

/// Objectives of successive states, each with its rounding: none is worse than the one before.
///
/// # Errors
///
/// [`Law::Accepts`] if one is not finite, [`Law::Monotone`] with the iteration.
///
/// # Examples
///
/// ```
/// use plca_fit::{Direction, laws::{Law, Rounding, never_worse}};
/// let rounding = Rounding::derived(f64::EPSILON, 4, 1.0);
/// let with = |values: &[f64]| values.iter().map(|&x| (x, rounding)).collect::<Vec<_>>();
/// assert!(never_worse(Direction::Maximise, &with(&[-2.0, -1.0, -1.0 - 1e-15])).is_ok());
/// assert_eq!(never_worse(Direction::Minimise, &with(&[1.0, 1.1])).unwrap_err().law, Law::Monotone);
/// ```
pub fn never_worse(direction: Direction, values: &[(f64, Rounding)]) -> Result<(), Violation> {
    if let Some(i) = values.iter().position(|(value, _)| !value.is_finite()) {
        let details = format!("the objective after {i} iterations is {}", values[i].0);
        return Err(Violation::new(Law::Accepts, details));
    }
    (values.windows(2).enumerate()).try_for_each(|(i, pair)| {
        let [(old, before), (new, after)] = [pair[0], pair[1]];
        let allowed = before.allowed(old).max(after.allowed(old));
        not_worse(direction, [old, new], allowed, i + 1)
    })
}

/// An iteration makes an objective worse by no more than what is allowed.
fn not_worse(
    direction: Direction,
    [old, new]: [f64; 2],
    allowed: f64,
    iteration: usize,
) -> Result<(), Violation> {
    let forgiven = match direction {
        Direction::Maximise => new + allowed,
        Direction::Minimise => new - allowed,
    };
    if direction.not_worse(forgiven, old) {
        return Ok(());
    }
    let details = format!(
        "{old} became {new} in iteration {iteration}, worse by {:e} where rounding explains {allowed:e}",
        (new - old).abs()
    );
    Err(Violation::new(Law::Monotone, details))
}

/// Holds a method against [`Law::Accepts`], [`Law::Measured`], [`Law::MeasuringChangesNothing`], [`Law::Monotone`] and
/// [`Law::Residual`], on the way from `start`. Two steps and an objective per iteration.
///
/// # Errors
///
/// The first [`Violation`] met.
///
/// # Examples
///
/// A method that measures the state it leaves, not the one it was given:
///
/// ```
/// use plca_fit::{Algorithm, StopError, laws::{Claims, Law, Rounding, check}};
/// struct Late;
/// impl Algorithm for Late {
///     type State = f64;
///     type Error = StopError;
///     fn step(&self, x: &mut f64, measure: bool) -> Result<Option<f64>, StopError> {
///         *x /= 2.0;
///         Ok(measure.then(|| -x.powi(2)))
///     }
///     fn objective(&self, x: &f64) -> Result<f64, StopError> { Ok(-x.powi(2)) }
/// }
/// let claims = Claims::new(Rounding::derived(f64::EPSILON, 2, 1.0));
/// assert_eq!(check(&Late, &1.0, &claims).unwrap_err().law, Law::Measured);
/// ```
pub fn check<A: Algorithm>(
    algorithm: &A,
    start: &A::State,
    claims: &Claims,
) -> Result<(), Violation>
where
    A::State: PartialEq + Debug,
{
    let mut state = start.clone();
    let mut before = objective(algorithm, &state, 0)?;
    for i in 1..=claims.iterations {
        let mut unmeasured = state.clone();
        let measured = step(algorithm, &mut state, true, i)?;
        step(algorithm, &mut unmeasured, false, i)?;
        if unmeasured != state {
            let details = format!(
                "iteration {i} leads to {state:?} where it measures, to {unmeasured:?} where not"
            );
            return Err(Violation::new(Law::MeasuringChangesNothing, details));
        }
        let allowed = claims.rounding.allowed(before);
        let right = match measured {
            Some(value) => (value - before).abs() <= allowed,
            None => !claims.monotone,
        };
        if !right {
            let details = format!(
                "iteration {i} measures {measured:?} of a state whose objective is {before}"
            );
            return Err(Violation::new(Law::Measured, details));
        }
        let after = objective(algorithm, &state, i)?;
        if claims.monotone {
            not_worse(algorithm.direction(), [before, after], allowed, i)?;
        }
        residual(algorithm, &state, i)?;
        before = after;
    }
    Ok(())
}

fn residual<A: Algorithm>(
    algorithm: &A,
    state: &A::State,
    iteration: usize,
) -> Result<(), Violation> {
    match algorithm.residual(state) {
        Ok(None) => Ok(()),
        Ok(Some(r)) if r >= 0.0 => Ok(()),
        wrong => Err(Violation::new(
            Law::Residual,
            format!("after {iteration} iterations it is {wrong:?}"),
        )),
    }
}

/// Holds a method whose step from `state` must fail against [`Law::Atomic`]: it fails, and the state keeps its bits.
///
/// # Errors
///
/// The [`Violation`].
///
/// # Examples
///
/// ```
/// use plca_fit::{Algorithm, StopError, laws::{Law, check_failure}};
/// struct Careless;
/// impl Algorithm for Careless {
///     type State = f64;
///     type Error = StopError;
///     fn step(&self, x: &mut f64, _measure: bool) -> Result<Option<f64>, StopError> {
///         *x -= 1.0;                                                  // before it looks
///         if *x < 0.0 { Err(StopError::Tolerance(*x)) } else { Ok(None) }
///     }
///     fn objective(&self, x: &f64) -> Result<f64, StopError> { Ok(*x) }
/// }
/// assert_eq!(check_failure(&Careless, &0.5).unwrap_err().law, Law::Atomic);
/// ```
pub fn check_failure<A: Algorithm>(algorithm: &A, state: &A::State) -> Result<(), Violation>
where
    A::State: PartialEq + Debug,
{
    for measure in [false, true] {
        let mut tried = state.clone();
        let details = match algorithm.step(&mut tried, measure) {
            Ok(_) => "the step was to fail and did not".to_owned(),
            Err(_) if tried == *state => continue,
            Err(e) => format!("a step that failed ({e}) made {tried:?} of {state:?}"),
        };
        return Err(Violation::new(Law::Atomic, details));
    }
    Ok(())
}

/// Holds a run against [`Law::Resume`]: interrupted after `cut` iterations and resumed from a `copy` of what a checkpoint keeps, it
/// has the same state, the same trace and the same end. A `copy` through a file format shows that the format keeps every bit;
/// `|saved| saved.clone()` shows that the method hides nothing from its state.
///
/// # Errors
///
/// The [`Violation`]; [`Law::Accepts`] where the run itself fails.
///
/// # Examples
///
/// A method that counts its steps where no checkpoint sees it:
///
/// ```
/// use std::cell::Cell;
/// use plca_fit::{Algorithm, Stop, StopError, laws::{Law, check_resumed}};
/// struct Secret(Cell<f64>);
/// impl Algorithm for Secret {
///     type State = f64;
///     type Error = StopError;
///     fn step(&self, x: &mut f64, _measure: bool) -> Result<Option<f64>, StopError> {
///         self.0.set(self.0.get() + 1.0);
///         *x += self.0.get();
///         Ok(None)
///     }
///     fn objective(&self, x: &f64) -> Result<f64, StopError> { Ok(*x) }
/// }
/// let stop = Stop { max_iter: 5, ..Stop::default() };
/// let violation = check_resumed(&Secret(Cell::new(0.0)), &0.0, &stop, 2, |saved| *saved).unwrap_err();
/// assert_eq!(violation.law, Law::Resume);
/// ```
pub fn check_resumed<A: Algorithm>(
    algorithm: &A,
    start: &A::State,
    stop: &Stop,
    cut: usize,
    copy: impl Fn(&(A::State, Progress)) -> (A::State, Progress),
) -> Result<(), Violation>
where
    A::State: PartialEq + Debug,
{
    let failed = |e: A::Error| Violation::new(Law::Accepts, format!("the run fails: {e}"));
    let mut saved = (cut == 0).then(|| copy(&(start.clone(), Progress::default())));
    let keep = |i: &Iteration<'_, A::State>| {
        if i.iteration == cut {
            saved = Some(copy(&(i.state.clone(), i.progress)));
        }
        ControlFlow::Continue(())
    };
    let whole = run(algorithm, start.clone(), stop, keep).map_err(failed)?;
    let Some((state, progress)) = saved else {
        if whole.iterations < cut {
            return Ok(()); // It ended earlier and has nothing to resume.
        }
        let details = format!("no observer saw iteration {cut} of {whole:?}");
        return Err(Violation::new(Law::Resume, details));
    };
    let rest = run_from(algorithm, state, progress, stop, ()).map_err(failed)?;
    let later = whole.trace.iter().filter(|t| t.iteration >= cut);
    let same = rest.state == whole.state
        && rest.reason == whole.reason
        && rest.iterations == whole.iterations
        && rest.objective.to_bits() == whole.objective.to_bits()
        && rest.trace.iter().eq(later);
    if same {
        return Ok(());
    }
    let details = format!("cut after {cut} iterations it ends as {rest:?}, uncut as {whole:?}");
    Err(Violation::new(Law::Resume, details))
}

/// Holds what [`Squarem`], [`Parabolic`] and [`Momentum`] make of a method against all laws of [`check`], with
/// [`Law::Accelerated`] in the place of [`Law::Monotone`], against [`Law::Resume`] and against [`Law::Packed`].
///
/// # Errors
///
/// The first [`Violation`] met.
///
/// # Examples
///
/// A method that unpacks the wrong number:
///
/// ```
/// use plca_fit::{Accelerate, Algorithm, StopError, laws::{Claims, Law, Rounding, check_accelerated}};
/// struct Halving;
/// impl Algorithm for Halving {
///     type State = [f64; 2];
///     type Error = StopError;
///     fn step(&self, x: &mut [f64; 2], measure: bool) -> Result<Option<f64>, StopError> {
///         let before = if measure { Some(self.objective(x)?) } else { None };
///         x.iter_mut().for_each(|x| *x /= 2.0);
///         Ok(before)
///     }
///     fn objective(&self, x: &[f64; 2]) -> Result<f64, StopError> { Ok(-(x[0] * x[0] + x[1] * x[1])) }
/// }
/// impl Accelerate for Halving {
///     fn pack(&self, x: &[f64; 2]) -> Vec<f64> { x.to_vec() }
///     fn unpack(&self, _: &[f64; 2], flat: &[f64], _: &[f64]) -> [f64; 2] { [flat[0], flat[0]] }
/// }
/// let claims = Claims::new(Rounding::derived(f64::EPSILON, 3, 1.0));
/// assert_eq!(check_accelerated(&Halving, &[1.0, 0.5], &claims).unwrap_err().law, Law::Packed);
/// ```
pub fn check_accelerated<A: Accelerate>(
    algorithm: &A,
    start: &A::State,
    claims: &Claims,
) -> Result<(), Violation>
where
    A::State: PartialEq + Debug,
{
    let packed = algorithm.pack(start);
    let again = algorithm.pack(&algorithm.unpack(start, &packed, &packed));
    let close = |(a, b): (&f64, &f64)| (a - b).abs() <= claims.rounding.relative * a.abs();
    if again.len() != packed.len() || !packed.iter().zip(&again).all(close) {
        let details = format!("{packed:?} are unpacked and packed again as {again:?}");
        return Err(Violation::new(Law::Packed, details));
    }
    let start = Carried::new(start.clone());
    accelerated("Squarem", &Plain(Squarem(algorithm)), &start, claims)?;
    accelerated("Parabolic", &Parabolic(algorithm), &start, claims)?;
    accelerated("Momentum", &Momentum(algorithm), &start, claims)
}

fn accelerated<A: Algorithm>(
    name: &str,
    algorithm: &A,
    start: &A::State,
    claims: &Claims,
) -> Result<(), Violation>
where
    A::State: PartialEq + Debug,
{
    let stop = Stop {
        max_iter: claims.iterations,
        tol: 0.0,
        check_every: 2,
        ..Stop::default()
    };
    check(algorithm, start, claims)
        .and_then(|()| check_resumed(algorithm, start, &stop, claims.iterations / 2, Clone::clone))
        .map_err(|violation| Violation {
            law: match violation.law {
                Law::Monotone => Law::Accelerated,
                law => law,
            },
            details: format!("{name}: {}", violation.details),
        })
}
