//! Over-relaxed EM: every step goes half as far again as EM does, where the objective is not worse for it.

use plca_tensor::Real;

use super::{BoxedSteps, Memory, extrapolates, function, unless_rejected, within_range};
use crate::{Algorithm, FitError, Parameters, Stepped};

fn step<T: Real>(
    algorithm: &dyn Algorithm<T>,
    at: &mut Parameters<T>,
    _: &mut Memory,
    measure: bool,
) -> Result<Stepped, FitError> {
    extrapolates(algorithm, at)?;
    let from = at.flat();
    let stepped = algorithm.step(at, true)?;
    let to = at.flat();
    let further = from.iter().zip(&to).map(|(x0, x1)| x0 + 1.5 * (x1 - x0));
    let candidate = algorithm.extrapolated(at, &further.collect::<Vec<_>>(), &to);
    let reached = unless_rejected(algorithm.objective(&candidate))?;
    if let (Some(new), Some(old)) = (reached, stepped.value)
        && new.is_finite()
        && within_range(algorithm, &candidate)
        && algorithm.sense().not_worse(new, old)
    {
        *at = candidate;
    }
    // A value is told where it is asked for: the stop rule compares those alone.
    let value = stepped.value.filter(|_| measure);
    Ok(Stepped { value, ..stepped })
}

pub(super) fn bind<T: Real>(algorithm: &dyn Algorithm<T>, memory: Memory) -> BoxedSteps<'_, T> {
    function(algorithm, memory, step)
}
