//! What a method must satisfy, as functions that say where it does not.

use plca_tensor::strategies::Start;
use plca_tensor::{Observed, Real};

use crate::methods::{Method, Step};

/// Per scalar type: what rounding may do.
pub(crate) trait Precision: Real {
    /// Fall, relative to `1 + |L|`.
    const FALL: f64;
}

impl Precision for f64 {
    const FALL: f64 = 1e-12;
}

impl Precision for f32 {
    const FALL: f64 = 1e-6;
}

/// Whether `x > limit`; NaN exceeds everything.
fn exceeds(x: f64, limit: f64) -> bool {
    x.is_nan() || x > limit
}

/// The objective never falls, beyond rounding, in `n` iterations.
///
/// `P` sums to 1 to a rounding error only, which moves the likelihood by that many times `v`, however small it is:
/// hence the data's mass beside `1 + |L|`. Where the observed mass is found by subtraction, it is known to a rounding
/// error of the whole: hence `v / seen`.
pub(crate) fn never_falls<T: Precision>(
    method: &Method<T>,
    data: &dyn Observed<T>,
    start: &Start<T>,
    n: usize,
) -> Result<(), String> {
    let steps = method(data, start, n);
    if !steps[0].value.is_finite() {
        return Err(format!("starts at {}", steps[0].value));
    }
    for (i, pair) in steps.windows(2).enumerate() {
        let (old, new) = (&pair[0], &pair[1]);
        let subtraction = T::EPSILON.to_f64() / old.seen.min(new.seen);
        let allowed =
            T::FALL * (1.0 + old.value.abs() + data.total()) + 4.0 * subtraction * data.total();
        if exceeds(old.value - new.value, allowed) {
            let i = i + 1;
            return Err(format!(
                "{} fell to {} in iteration {i}",
                old.value, new.value
            ));
        }
    }
    Ok(())
}

/// Entries are non-negative and columns sum to 1 after every iteration.
pub(crate) fn stays_on_the_simplex<T: Real>(steps: &[Step<T>]) -> Result<(), String> {
    for (i, step) in steps.iter().enumerate() {
        let rows = step
            .blocks
            .iter()
            .map(|b| b.values.nrows().max(b.values.ncols()))
            .max();
        let allowed = T::EPSILON.to_f64() * (4.0 + rows.unwrap_or(0) as f64);
        if exceeds(step.simplex, allowed) {
            return Err(format!("off by {} after {i} iterations", step.simplex));
        }
    }
    Ok(())
}
