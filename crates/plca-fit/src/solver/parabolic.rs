//! Parabolic extrapolation (Berlinet & Roland 2009): a search along the parabola through the last three points, then two steps.

use plca_tensor::Real;

use super::{BoxedSteps, Memory, extrapolates, function, unless_rejected, within_range};
use crate::{Algorithm, FitError, Parameters, Stepped};

/// How far beyond the last point the first trial is.
const FIRST: f64 = 0.1;
/// By what the next one is further.
const GROWTH: f64 = 1.5;
/// Trials at most.
const TRIALS: i32 = 20;

/// Points further and further on the parabola.
pub(crate) fn trials<'a>(
    x0: &'a [f64],
    x1: &'a [f64],
    x2: &'a [f64],
) -> impl Iterator<Item = Vec<f64>> + 'a {
    (0..TRIALS).map(move |trial| {
        let t = 1.0 + FIRST * GROWTH.powi(trial);
        let point = |((&x0, &x1), &x2): ((&f64, &f64), &f64)| {
            // [PARABOLIC alg. P-EM] [SKELLAM 9] (1-t)² x0 + 2 t (1-t) x1 + t² x2
            (1.0 - t) * (1.0 - t) * x0 + 2.0 * t * (1.0 - t) * x1 + t * t * x2
        };
        x0.iter().zip(x1).zip(x2).map(point).collect()
    })
}

/// The best point on the parabola, of those that do better one after the other.
fn search<T: Real>(
    algorithm: &dyn Algorithm<T>,
    at: &Parameters<T>,
    [x0, x1, x2]: [&[f64]; 3],
    mut best: f64,
) -> Result<Parameters<T>, FitError> {
    let mut found = at.clone();
    for point in trials(x0, x1, x2) {
        let candidate = algorithm.extrapolated(at, &point, x2);
        // A point that the algorithm refuses ends the search like one that is worse.
        let Some(reached) = unless_rejected(algorithm.objective(&candidate))? else {
            break;
        };
        let better = reached != best && algorithm.sense().not_worse(reached, best);
        if !(reached.is_finite() && better && within_range(algorithm, &candidate)) {
            break;
        }
        best = reached;
        found = candidate;
    }
    Ok(found)
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
    memory.numbers.clear();
    let x2 = at.flat();
    let [x0, x1] = match &memory.points[..] {
        [x0, x1] => [x0.clone(), x1.clone()],
        known => {
            let mut points = known.to_vec();
            points.push(x2);
            let stepped = algorithm.step(at, true)?;
            // Without an objective for now there is nothing to search by.
            memory.points = if stepped.value.is_some() {
                points
            } else {
                Vec::new()
            };
            return Ok(stepped);
        }
    };
    let value = algorithm.objective(at)?;
    let two = |at: &mut Parameters<T>| -> Result<Vec<usize>, FitError> {
        let mut restored = algorithm.step(at, false)?.restored;
        restored.extend(algorithm.step(at, false)?.restored);
        Ok(restored)
    };
    let mut new = search(algorithm, at, [&x0, &x1, &x2], value)?;
    // Where no step leads on from what the search has found, or out of the range of numbers, two plain ones are taken.
    let restored = match unless_rejected(two(&mut new))? {
        Some(restored) if within_range(algorithm, &new) => restored,
        _ => {
            new = at.clone();
            two(&mut new)?
        }
    };
    *at = new;
    memory.points = vec![x1, x2];
    Ok(Stepped {
        value: measure.then_some(value),
        restored,
    })
}

pub(super) fn bind<T: Real>(algorithm: &dyn Algorithm<T>, memory: Memory) -> BoxedSteps<'_, T> {
    function(algorithm, memory, step)
}
