//! Squared extrapolation (SQUAREM; Varadhan & Roland 2008).
//!
//! ```math
//! \begin{aligned}
//! x_1 &= M(x_0), \qquad x_2 = M(x_1) \\
//! r &= x_1 - x_0, \qquad u = (x_2 - x_1) - r, \qquad a = - |r| / |u| \\
//! x &= M(x_0 - 2 a r + a^2 u)
//! \end{aligned}
//! ```
//!
//! `x` is kept if its predecessor is not worse than `x1`; otherwise `x2` is. Where `a` is not below -1 there is nothing to extrapolate.

use plca_tensor::Real;

use super::{BoxedSteps, Memory, extrapolates, function, unless_rejected, within_range};
use crate::{Algorithm, BlockSpec, FitError, Parameters, Stepped};

/// `|r|²` and `|u|²` of three points, entry by entry, divided by `size`: 1 for distributions and the unit of rates, so that the length of a step does not depend on it.
pub(crate) fn squares(points: impl Iterator<Item = [f64; 3]>, size: f64) -> [f64; 2] {
    let (mut r2, mut u2) = (0.0, 0.0);
    for [x0, x1, x2] in points {
        let r = (x1 - x0) / size;
        let u = (x2 - x1) / size - r;
        r2 += r * r;
        u2 += u * u;
    }
    [r2, u2]
}

/// `|r|²` and `|u|²` of all blocks, rates in parts of their unit.
fn squares_of<T: Real>(
    algorithm: &dyn Algorithm<T>,
    mut points: impl Iterator<Item = [f64; 3]>,
) -> [f64; 2] {
    let mut all = [0.0; 2];
    for (block, spec) in algorithm.blocks().iter().enumerate() {
        let entries = spec.shape.0 * spec.shape.1;
        let own: Vec<_> = points.by_ref().take(entries).collect();
        let sum = || own.iter().map(|[x0, ..]| x0.abs()).sum();
        let unit = algorithm.rate_unit(block).unwrap_or_else(sum);
        let [r2, u2] = squares(own.into_iter(), size(spec, unit));
        all = [all[0] + r2, all[1] + u2];
    }
    all
}

/// What the points of a block are measured in.
pub(crate) fn size<T: Real>(spec: &BlockSpec<T>, unit: f64) -> f64 {
    match spec.has_unit() && unit > 0.0 {
        true => unit,
        false => 1.0,
    }
}

/// The step length `a` from `|r|²` and `|u|²`; `None` where there is nothing to extrapolate.
pub(crate) fn length([r2, u2]: [f64; 2]) -> Option<f64> {
    // [SQUAREM alg. SqS3] [SPEC 10] a = -|r| / |u|, capped at -1
    let a = -(r2.sqrt() / u2.sqrt());
    // A step of -1 is x2 itself; without curvature a is infinite.
    (a.is_finite() && a < -1.0).then_some(a)
}

/// An entry of where three points lead.
pub(crate) fn point([x0, x1, x2]: [f64; 3], a: f64) -> f64 {
    let r = x1 - x0;
    // [SQUAREM alg. SqS3] [SPEC 10] x0 - 2 a r + a² u
    x0 - 2.0 * a * r + a * a * ((x2 - x1) - r)
}

fn step<T: Real>(
    algorithm: &dyn Algorithm<T>,
    at: &mut Parameters<T>,
    _: &mut Memory,
    measure: bool,
) -> Result<Stepped, FitError> {
    extrapolates(algorithm, at)?;
    if let Some(own) = algorithm.squared(at, measure) {
        return own;
    }
    let x0 = at.flat();
    let mut first = algorithm.step(at, measure)?;
    let x1 = at.flat();
    let second = algorithm.step(at, true)?;
    let objective1 = second.value;
    first.restored.extend(second.restored);
    let x2 = at.flat();
    // While a power moves there is nothing to compare an extrapolation with.
    if objective1.is_none() {
        return Ok(first);
    }
    let points = || {
        let all = x0.iter().zip(&x1).zip(&x2);
        all.map(|((&x0, &x1), &x2)| [x0, x1, x2])
    };
    let Some(a) = length(squares_of(algorithm, points())) else {
        return Ok(first);
    };
    let flat: Vec<f64> = points().map(|x| point(x, a)).collect();
    let mut candidate = algorithm.extrapolated(at, &flat, &x2);
    // A point that the algorithm refuses is rejected like one that is worse.
    let reached = unless_rejected(algorithm.step(&mut candidate, true))?;
    let reached = reached.and_then(|stepped| stepped.value);
    // [SPEC 10] accepted only if the objective is not worse
    if let (Some(new), Some(old)) = (reached, objective1)
        && new.is_finite()
        && within_range(algorithm, &candidate)
        && algorithm.sense().not_worse(new, old)
    {
        *at = candidate;
    }
    Ok(first)
}

pub(super) fn bind<T: Real>(algorithm: &dyn Algorithm<T>, memory: Memory) -> BoxedSteps<'_, T> {
    function(algorithm, memory, step)
}
