//! Priors that change and priors that empty entries: which is in force, and what keeps the data possible.

use nalgebra::DMatrix;
use plca_tensor::Real;

use crate::EmError;
use crate::plca::{Prior, m_step};

/// The prior in force at an iteration, counted from 1.
pub(crate) fn in_force<T: Real>(prior: Option<&Prior<T>>, iteration: usize) -> Option<Prior<T>> {
    prior.map(|prior| prior.at(iteration).unwrap_or_else(|| prior.clone()))
}

/// [`m_step`], and whether the prior set an entry to 0 that was positive: a cell of the data may then have lost its support.
pub(crate) fn emptying_step<T: Real>(
    block: &str,
    prior: Option<&Prior<T>>,
    counts: DMatrix<T>,
    theta: &mut DMatrix<T>,
) -> Result<bool, EmError> {
    let before = prior
        .is_some_and(|prior| prior.may_empty())
        .then(|| theta.clone());
    m_step(block, prior, counts, theta)?;
    let new_zero = |(before, after): (&T, &T)| *before > T::zero() && *after <= T::zero();
    Ok(before.is_some_and(|before| before.iter().zip(&*theta).any(new_zero)))
}

/// Gives every column of a block of `rows` rows a trace of everything back.
pub(crate) fn restore<T: Real>(block: &mut [T], rows: usize) {
    // [SPEC 8] q <- (q + 1e-12) / (1 + 1e-12 I)
    let whole = 1.0 + 1e-12 * rows as f64;
    for q in block {
        *q = T::lit((q.to_f64() + 1e-12) / whole);
    }
}
