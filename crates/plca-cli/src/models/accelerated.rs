//! Runs as `--accelerate` asks for, and what their checkpoints hold besides a model's blocks.

use plca_fit::{Algorithm, Carried, Observer, Outcome, Plain, Progress, Stop};
use plca_io::Array;

use crate::blocks::Arrays;
use crate::failure::Failure;

/// Names in a checkpoint: a row for every point, and the numbers beside them.
const POINTS: &str = "accelerate.points";
const NUMBERS: &str = "accelerate.numbers";

/// Runs an algorithm that has no acceleration.
pub(crate) fn plainly<A: Algorithm>(
    algorithm: A,
    (state, progress): (Carried<A::State>, Progress),
    stop: &Stop,
    observer: impl Observer<Carried<A::State>>,
) -> Result<Outcome<Carried<A::State>>, Failure>
where
    Failure: From<A::Error>,
{
    Ok(plca_fit::run_from(
        &Plain(algorithm),
        state,
        progress,
        stop,
        observer,
    )?)
}

/// Adds what a run remembers to the blocks of its state.
pub(crate) fn remember<S>(state: &Carried<S>, arrays: &mut Arrays) {
    let (points, numbers) = state.to_parts();
    if let Some(first) = points.first() {
        let shape = vec![points.len(), first.len()];
        arrays.insert(POINTS.into(), Array::new(shape, points.concat()));
    }
    if !numbers.is_empty() {
        arrays.insert(
            NUMBERS.into(),
            Array::new(vec![numbers.len()], numbers.to_vec()),
        );
    }
}

/// Takes what [`remember`] added.
pub(crate) fn recall(arrays: &mut Arrays) -> (Vec<Vec<f64>>, Vec<f64>) {
    let points = arrays.remove(POINTS).map_or_else(Vec::new, |a| {
        let each = a.values.len() / a.shape.first().map_or(1, |&n| n.max(1));
        let rows = a.values.chunks(each.max(1));
        rows.map(<[f64]>::to_vec).collect()
    });
    let numbers = arrays.remove(NUMBERS).map_or_else(Vec::new, |a| a.values);
    (points, numbers)
}
