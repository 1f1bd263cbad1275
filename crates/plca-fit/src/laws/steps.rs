//! One algorithm from one start.

use plca_tensor::Real;

use super::places::{objective_at, unequal};
use super::renewal::{borders, settles, stands, step_laws};
use super::{Claims, Law, Rounding, Violation, Walk, check_counts, check_steps, check_valid};
use crate::{Algorithm, Checkpoint, FitError, Memory, Parameters, Sense, Solver};

/// Objectives of successive states, each with its rounding: none is worse than the one before.
///
/// # Errors
///
/// [`Law::Accepts`] if one is not finite, [`Law::Monotone`] with the iteration.
///
/// # Examples
///
/// ```
/// use plca_fit::{Sense, laws::{Law, Rounding, never_worse}};
/// let rounding = Rounding::derived(f64::EPSILON, 4, 1.0);
/// let with = |values: &[f64]| values.iter().map(|&x| (x, rounding)).collect::<Vec<_>>();
/// assert!(never_worse(Sense::Maximise, &with(&[-2.0, -1.0, -1.0 - 1e-15])).is_ok());
/// assert_eq!(never_worse(Sense::Minimise, &with(&[1.0, 1.1])).unwrap_err().law, Law::Monotone);
/// ```
pub fn never_worse(sense: Sense, values: &[(f64, Rounding)]) -> Result<(), Violation> {
    if let Some(i) = values.iter().position(|(value, _)| !value.is_finite()) {
        let details = format!("the objective after {i} iterations is {}", values[i].0);
        return Err(Violation::new(Law::Accepts, details));
    }
    (values.windows(2).enumerate()).try_for_each(|(i, pair)| {
        let [(old, before), (new, after)] = [pair[0], pair[1]];
        let allowed = before.allowed(old).max(after.allowed(old));
        not_worse(sense, [old, new], allowed, i + 1)
    })
}

/// An iteration makes an objective worse by no more than what is allowed.
fn not_worse(
    sense: Sense,
    [old, new]: [f64; 2],
    allowed: f64,
    iteration: usize,
) -> Result<(), Violation> {
    let forgiven = match sense {
        Sense::Maximise => new + allowed,
        Sense::Minimise => new - allowed,
    };
    if sense.not_worse(forgiven, old) {
        return Ok(());
    }
    let details = format!(
        "{old} became {new} in iteration {iteration}, worse by {:e} where rounding explains {allowed:e}",
        (new - old).abs()
    );
    Err(Violation::new(Law::Monotone, details))
}

/// Checks an algorithm under a solver against [`Law::Accepts`], [`Law::Measured`], [`Law::MeasuringChangesNothing`], [`Law::Monotone`],
/// [`Law::Residual`], [`Law::Extrapolated`], [`Law::Valid`], [`Law::Frozen`] and [`Law::Stuck`], on the way from `start`; plain steps against
/// [`Law::Block`] too, and all that [`check_steps`] looks at. Two steps and an objective per iteration, of plain steps an objective per
/// block more. Where the objective gets worse or stays, [`check_counts`] and the blocks of a plain step say why, if they can.
///
/// # Errors
///
/// The first [`Violation`] met.
///
/// # Examples
///
/// See [the module](super).
pub fn check<T: Real>(
    algorithm: &dyn Algorithm<T>,
    solver: Solver,
    start: &Parameters<T>,
    claims: &Claims,
) -> Result<(), Violation> {
    extrapolated(algorithm, start, claims)?;
    let mut walk = Walk::new(algorithm, solver, (start, Memory::default(), 0))?;
    let mut before = walk.objective()?;
    for i in 1..=claims.iterations {
        let old = walk.at.clone();
        let here = (&walk.at, walk.steps.memory(), i - 1);
        let mut unmeasured = Walk::new(algorithm, solver, here)?;
        unmeasured.step(false)?;
        let measured = walk.step(true)?;
        if unmeasured.at != walk.at || unmeasured.steps.memory() != walk.steps.memory() {
            let with = [
                format!("after iteration {i} that measures"),
                "after one that does not".into(),
            ];
            let with = [&*with[0], &*with[1]];
            return Err(unequal(
                Law::MeasuringChangesNothing,
                [&walk.at, &unmeasured.at],
                with,
            ));
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
        let after = walk.objective()?;
        let values = [before, after];
        let held = match solver {
            Solver::Em => {
                // Under one prior, where it changes on its way.
                let at = walk.at.clone().at_iteration(old.iteration());
                let values = [before, objective_at(algorithm, &at)?];
                step_laws(algorithm, [&old, &walk.at], values, claims)
            }
            _ => check_valid(algorithm.blocks(), &old, &walk.at),
        };
        let held = match claims.monotone {
            true => held
                .and_then(|()| not_worse(algorithm.sense(), values, allowed, i))
                .and_then(|()| stands(algorithm, [&old, &walk.at], values, claims)),
            false => held,
        };
        held.map_err(|violation| traced(violation, algorithm, [&old, &walk.at], claims))?;
        residual(algorithm, &walk.at, i)?;
        before = after;
    }
    if solver == Solver::Em {
        let last = walk.at.clone();
        let settled = settles(walk, claims);
        settled.map_err(|violation| traced(violation, algorithm, [&last, &last], claims))?;
        borders(algorithm, start, claims)?;
    }
    Ok(())
}

/// The cause of an objective that gets worse or stays: the E-step behind the algorithm, or one block of a plain step, if either can be blamed; else the violation itself.
fn traced<T: Real>(
    violation: Violation,
    algorithm: &dyn Algorithm<T>,
    [at, new]: [&Parameters<T>; 2],
    claims: &Claims,
) -> Violation {
    if !matches!(violation.law, Law::Monotone | Law::Block | Law::Stuck) {
        return violation;
    }
    if let Err(cause) = check_counts(algorithm, at, claims)
        && matches!(cause.law, Law::Expectation | Law::Value | Law::Exposure)
    {
        return cause;
    }
    match violation.law {
        // An extrapolated step is as wrong as the plain ones that it is made of.
        Law::Monotone => [at, new]
            .into_iter()
            .filter_map(|at| check_steps(algorithm, at, claims).err())
            .find(|cause| cause.block.is_some())
            .unwrap_or(violation),
        _ => violation,
    }
}

fn residual<T: Real>(
    algorithm: &dyn Algorithm<T>,
    at: &Parameters<T>,
    iteration: usize,
) -> Result<(), Violation> {
    match algorithm.residual(at) {
        Err(FitError::NoResidual { .. }) => Ok(()),
        Ok(r) if r >= 0.0 => Ok(()),
        wrong => Err(Violation::new(
            Law::Residual,
            format!("after {iteration} iterations it is {wrong:?}"),
        )),
    }
}

/// Values that extrapolation does not move are those that it was given.
fn extrapolated<T: Real>(
    algorithm: &dyn Algorithm<T>,
    start: &Parameters<T>,
    claims: &Claims,
) -> Result<(), Violation> {
    let flat = start.flat();
    let again = algorithm.extrapolated(start, &flat, &flat);
    for ((name, old), new) in start.blocks().zip(again.matrices()) {
        // Columns are normalised, or projected, which errs by as much in small entries as in large ones. A projection sets entries to 0 that lie within two roundings
        // of its threshold, which has one of its own, as an entry has once it is moved: all of them may go to the largest.
        let normalising = 4.0 * old.nrows() as f64 * T::EPSILON.to_f64();
        let largest = old
            .iter()
            .fold(0.0, |most: f64, x| most.max(x.to_f64().abs()));
        let allowed = claims.rounding.relative.max(normalising) * largest;
        let close = |(a, b): (&T, &T)| (a.to_f64() - b.to_f64()).abs() <= allowed;
        if old.shape() != new.shape() {
            let details = format!("{:?} becomes {:?}", old.shape(), new.shape());
            return Err(Violation::new(Law::Extrapolated, details).at(name.into(), None));
        }
        if let Some(e) = old.iter().zip(new).position(|pair| !close(pair)) {
            let details = format!("{} becomes {}", old[e], new[e]);
            let entry = Some((e % old.nrows(), e / old.nrows()));
            return Err(Violation::new(Law::Extrapolated, details).at(name.into(), entry));
        }
    }
    Ok(())
}

/// Checks an algorithm under a solver, whose first step must fail here, against [`Law::Atomic`]: it fails, and the parameters keep their bits.
///
/// # Errors
///
/// The [`Violation`].
///
/// # Examples
///
/// ```
/// use plca_fit::laws::{Law, check_failure};
/// use plca_fit::{blocks::{Axes, BlockSpec, Constraint}, em::Stepped, Algorithm, FitError, Parameters, Solver};
///
/// #[derive(Debug)]
/// struct Careless([BlockSpec<f64>; 1]);
///
/// impl Algorithm<f64> for Careless {
///     fn blocks(&self) -> &[BlockSpec<f64>] { &self.0 }
///     fn step(&self, at: &mut Parameters<f64>, _: bool) -> Result<Stepped, FitError> {
///         at.change(|_, x| x[0] -= 1.0);                              // before it looks
///         match at.at(0)[0] < 0.0 {
///             true => Err(FitError::Conflict { what: "below 0".into() }),
///             false => Ok(Stepped::default()),
///         }
///     }
///     fn objective(&self, at: &Parameters<f64>) -> Result<f64, FitError> { Ok(at.at(0)[0]) }
///     fn unit(&self) -> f64 { 1.0 }
///     fn extrapolates(&self, _: &Parameters<f64>) -> Result<(), FitError> { Ok(()) }
/// }
///
/// let careless = Careless([BlockSpec::values("x", (1, 1), Axes::SINGLE, Constraint::Free)]);
/// let at = Parameters::new(&careless.0, vec![nalgebra::dmatrix![0.5]])?;
/// assert_eq!(check_failure(&careless, Solver::Em, &at).unwrap_err().law, Law::Atomic);
/// # Ok::<(), FitError>(())
/// ```
pub fn check_failure<T: Real>(
    algorithm: &dyn Algorithm<T>,
    solver: Solver,
    at: &Parameters<T>,
) -> Result<(), Violation> {
    for measure in [false, true] {
        let mut walk = Walk::new(algorithm, solver, (at, Memory::default(), 0))?;
        let details = match walk.steps.step(&mut walk.at, measure) {
            Ok(_) => "the step was to fail and did not".to_owned(),
            Err(_) if walk.at == *at => continue,
            Err(e) => {
                let found = unequal(Law::Atomic, [at, &walk.at], ["before", "after"]);
                let details = format!("a step that failed ({e}) changed it: {}", found.details);
                return Err(Violation { details, ..found });
            }
        };
        return Err(Violation::new(Law::Atomic, details));
    }
    Ok(())
}

/// Checks an algorithm under a solver against [`Law::Resume`]: interrupted after `cut` of `n` iterations and resumed from a `copy` of the
/// checkpoint, it has the same parameters. A `copy` through a file format shows that the format keeps every bit; `|saved| saved` shows that the
/// algorithm hides nothing from its parameters.
///
/// # Errors
///
/// The [`Violation`]; [`Law::Accepts`] where an iteration fails.
pub fn check_resumed<T: Real>(
    algorithm: &dyn Algorithm<T>,
    solver: Solver,
    start: &Parameters<T>,
    [cut, n]: [usize; 2],
    copy: impl Fn(Checkpoint<T>) -> Checkpoint<T>,
) -> Result<(), Violation> {
    let mut whole = Walk::new(algorithm, solver, (start, Memory::default(), 0))?;
    for _ in 0..cut {
        whole.step(false)?;
    }
    let mut saved = Checkpoint::new(whole.at.clone());
    saved.memory = whole.steps.memory();
    let saved = copy(saved);
    let mut rest = Walk::new(algorithm, solver, (&saved.parameters, saved.memory, cut))?;
    for _ in cut..n {
        whole.step(false)?;
        rest.step(false)?;
    }
    if whole.at == rest.at && whole.steps.memory() == rest.steps.memory() {
        return Ok(());
    }
    let with = format!("cut after {cut} of {n} iterations");
    Err(unequal(
        Law::Resume,
        [&rest.at, &whole.at],
        [&with, "uncut"],
    ))
}
