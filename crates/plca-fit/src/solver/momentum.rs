//! Extrapolation along the way that the parameters come, with a monotone guard (Ang & Gillis 2019).
//!
//! ```math
//! y = x + \beta (x - x'),
//! \qquad (x', x) \gets (x, M(y))
//! ```
//!
//! An iteration is four such steps. The fourth point is kept if its objective is not worse than that of the first `x`, and `β` grows; otherwise
//! it shrinks and the iteration is four plain steps.

use plca_tensor::Real;

use super::{BoxedSteps, Memory, extrapolates, function, unless_rejected, within_range};
use crate::{Algorithm, Axis, Constraint, FitError, Parameters, Stepped};

/// The first `β`; its growth and that of its bound where a step was kept, its fall where not.
pub(crate) const FIRST: f64 = 0.5;
const GROWTH: f64 = 1.2;
const BOUND: f64 = 1.04;
const FALL: f64 = 1.5;
/// Steps of an iteration.
pub(crate) const STEPS: usize = 4;

/// `y`, in place of `before`.
pub(crate) fn extrapolate(before: &mut [f64], now: &[f64], beta: f64) {
    for (old, x) in before.iter_mut().zip(now) {
        // [AG alg. 1] [SPEC 10] y <- x + β (x - x')
        *old = x + beta * (x - *old);
    }
}

/// The next `β` and its bound.
pub(crate) fn next(kept: bool, beta: f64, most: f64) -> (f64, f64) {
    // [AG alg. 1] [SPEC 10] β grows up to β_max, and β_max up to 1; or β_max <- β, β <- β / 1.5
    match kept {
        true => ((GROWTH * beta).min(most), (BOUND * most).min(1.0)),
        false => (beta / FALL, beta),
    }
}

/// Share of the largest entry of a component below which an entry is small.
const SMALL: f64 = 1e-5;

/// Small entries are not extrapolated downwards. A step of EM multiplies: what extrapolation has brought near 0 would take many to come back.
fn hold_small<T: Real>(algorithm: &dyn Algorithm<T>, ahead: &mut [f64], now: &[f64]) {
    if algorithm.expectation().is_none() {
        return;
    }
    let mut place = 0;
    for spec in algorithm.blocks() {
        let (rows, columns) = spec.shape;
        let values = place..place + rows * columns;
        place = values.end;
        if !matches!(
            spec.constraint,
            Constraint::Simplex | Constraint::NonNegative
        ) {
            continue;
        }
        let (ahead, now) = (&mut ahead[values.clone()], &now[values]);
        let component = |at: usize| match spec.axes.components() {
            Axis::Columns => at / rows,
            Axis::Rows => at % rows,
            Axis::None => 0,
        };
        let mut largest = vec![0.0f64; rows.max(columns)];
        for (at, &x) in now.iter().enumerate() {
            let largest = &mut largest[component(at)];
            *largest = largest.max(x);
        }
        for (at, (y, &x)) in ahead.iter_mut().zip(now).enumerate() {
            if x < SMALL * largest[component(at)] && *y < x {
                *y = x;
            }
        }
    }
}

/// Where an iteration leads.
struct Reached<T: Real> {
    at: Parameters<T>,
    /// The point before it.
    before: Vec<f64>,
    value: f64,
    restored: Vec<usize>,
}

/// Four steps, each from where the last two points lead; `None` if the algorithm refuses a point, or one is at the end of the range of numbers.
fn ahead<T: Real>(
    algorithm: &dyn Algorithm<T>,
    x: &Parameters<T>,
    flat: &[f64],
    before: &[f64],
    beta: f64,
) -> Result<Option<Reached<T>>, FitError> {
    let (mut at, mut now, mut before) = (x.clone(), flat.to_vec(), before.to_vec());
    let mut restored = Vec::new();
    for step in 0..STEPS {
        if step > 0 {
            before = std::mem::replace(&mut now, at.flat());
        }
        extrapolate(&mut before, &now, beta);
        hold_small(algorithm, &mut before, &now);
        at = algorithm.extrapolated(&at, &before, &now);
        let Some(stepped) = unless_rejected(algorithm.step(&mut at, false))? else {
            return Ok(None);
        };
        if !within_range(algorithm, &at) {
            return Ok(None);
        }
        restored.extend(stepped.restored);
    }
    let value = unless_rejected(algorithm.objective(&at))?;
    Ok(value
        .filter(|value| value.is_finite())
        .map(|value| Reached {
            at,
            before: now,
            value,
            restored,
        }))
}

/// Four plain steps.
fn plain<T: Real>(algorithm: &dyn Algorithm<T>, x: &Parameters<T>) -> Result<Reached<T>, FitError> {
    let (mut at, mut before, mut restored) = (x.clone(), Vec::new(), Vec::new());
    for step in 1..=STEPS {
        if step == STEPS {
            before = at.flat();
        }
        restored.extend(algorithm.step(&mut at, false)?.restored);
    }
    let value = algorithm.objective(&at)?;
    Ok(Reached {
        at,
        before,
        value,
        restored,
    })
}

/// A plain step, after which there are two points.
fn begin<T: Real>(
    algorithm: &dyn Algorithm<T>,
    at: &mut Parameters<T>,
    memory: &mut Memory,
) -> Result<Stepped, FitError> {
    let flat = at.flat();
    let stepped = algorithm.step(at, true)?;
    *memory = Memory::default();
    // Without an objective for now there is nothing to compare a point with.
    if stepped.value.is_some() {
        let value = algorithm.objective(at)?;
        remember(memory, flat, [value, FIRST, 1.0]);
    }
    Ok(stepped)
}

/// What the next iteration needs: nothing if its point cannot be compared with any number.
fn remember(memory: &mut Memory, before: Vec<f64>, numbers: [f64; 3]) {
    *memory = Memory::default();
    if numbers[0].is_finite() {
        memory.points = vec![before];
        memory.numbers = numbers.to_vec();
    }
}

fn step<T: Real>(
    algorithm: &dyn Algorithm<T>,
    at: &mut Parameters<T>,
    memory: &mut Memory,
    measure: bool,
) -> Result<Stepped, FitError> {
    if !extrapolates(algorithm, at)? {
        *memory = Memory::default();
        return algorithm.step(at, measure);
    }
    let (points, numbers) = (&memory.points[..], &memory.numbers[..]);
    let ([before], &[value, beta, most]) = (points, numbers) else {
        return begin(algorithm, at, memory);
    };
    let flat = at.flat();
    if before.len() != flat.len() {
        return begin(algorithm, at, memory);
    }
    let ahead = ahead(algorithm, at, &flat, before, beta)?;
    let kept = ahead.filter(|new| algorithm.sense().not_worse(new.value, value));
    let (beta, most) = next(kept.is_some(), beta, most);
    let new = kept.map_or_else(|| plain(algorithm, at), Ok)?;
    if value.is_finite() && new.value.is_infinite() {
        // A probability came below what the scalar can tell from 0, and the next step would be refused: the point stays.
        at.count();
        remember(memory, flat, [value, beta, most]);
        return Ok(Stepped {
            value: measure.then_some(value),
            restored: Vec::new(),
        });
    }
    *at = new.at;
    remember(memory, new.before, [new.value, beta, most]);
    Ok(Stepped {
        value: measure.then_some(value),
        restored: new.restored,
    })
}

pub(super) fn bind<T: Real>(algorithm: &dyn Algorithm<T>, memory: Memory) -> BoxedSteps<'_, T> {
    function(algorithm, memory, step)
}
