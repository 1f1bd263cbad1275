//! The rules for one block of parameters, the same in all models: which prior is in force, what an M-step makes of counts,
//! how far a block is from stationary, and how it takes part in an extrapolation.

use nalgebra::{DMatrix, DVector};
use plca_priors::Step;
use plca_tensor::{Real, normalise_columns};

use crate::{EmError, Prior};

/// A vector as a block of one column.
pub(crate) fn column<T: Real>(v: &DVector<T>) -> DMatrix<T> {
    DMatrix::from_column_slice(v.len(), 1, v.as_slice())
}

fn refused(block: &str, source: plca_priors::PriorError) -> EmError {
    EmError::Prior {
        block: block.into(),
        source,
    }
}

/// Refuses a prior that was made for a block of another shape.
pub(crate) fn check_prior<T: Real>(
    block: &str,
    prior: Option<&Prior<T>>,
    shape: (usize, usize),
) -> Result<(), EmError> {
    let checked = prior.map_or(Ok(()), |prior| prior.check(shape));
    checked.map_err(|source| refused(block, source))
}

/// The iteration after so many, counted from 1. A state that was made by hand may hold the largest count, which stays.
pub(crate) fn following(iterations: usize) -> usize {
    iterations.saturating_add(1)
}

/// The M-step of a column-stochastic block; a column without counts keeps its values. Tells whether the prior set an entry to
/// 0 that was positive: a cell of the data may then have lost its support.
pub(crate) fn m_step<T: Real>(
    block: &str,
    prior: Option<&Prior<T>>,
    mut counts: DMatrix<T>,
    theta: &mut DMatrix<T>,
    iteration: usize,
) -> Result<bool, EmError> {
    let Some(prior) = prior else {
        // [SI eq. 4] [SI eq. 15] [SI eq. 40] [LV eq. 14] [SPEC 1.1] [SPEC 2] [SPEC 5.1] F <- C / n
        let sums = normalise_columns(&mut counts);
        for (z, _) in sums.iter().enumerate().filter(|&(_, &s)| s <= T::zero()) {
            counts.set_column(z, &theta.column(z));
        }
        *theta = counts;
        return Ok(false);
    };
    let before = prior.may_empty().then(|| theta.clone());
    prior
        .update(&counts, theta, &Step::at(iteration))
        .map_err(|source| refused(block, source))?;
    let new_zero = |(before, after): (&T, &T)| *before > T::zero() && *after <= T::zero();
    Ok(before.is_some_and(|before| before.iter().zip(&*theta).any(new_zero)))
}

/// Changes a state as a whole: where that fails, the state is left as it was. It `can_fail` where a prior has its say or data are read;
/// elsewhere nothing is copied.
pub(crate) fn whole_or_not<S: Clone, R>(
    state: &mut S,
    can_fail: bool,
    change: impl FnOnce(&mut S) -> Result<R, EmError>,
) -> Result<R, EmError> {
    let before = can_fail.then(|| state.clone());
    let changed = change(state);
    if let (Err(_), Some(before)) = (&changed, before) {
        *state = before;
    }
    changed
}

/// What [`restore`] adds to every entry.
const TRACE: f64 = 1e-12;

/// `(q + 1e-12) / (1 + 1e-12 I)`
fn with_trace(q: f64, rows: usize) -> f64 {
    // [SPEC 8] q <- (q + 1e-12) / (1 + 1e-12 I)
    (q + TRACE) / (1.0 + TRACE * rows as f64)
}

/// Gives every column of a block of `rows` rows a trace of everything back.
pub(crate) fn restore<T: Real>(block: &mut [T], rows: usize) {
    for q in block {
        *q = T::lit(with_trace(q.to_f64(), rows));
    }
}

/// What of a model an iteration may change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Free {
    pub(crate) weights: bool,
    pub(crate) block: bool,
}

/// The largest of these over what is free and the live components, from the counts `C` of a block `F` under weights `P(z)`; NaN if one
/// of them is no number.
///
/// ```text
/// |n / v - P(z)|,   |F (g - 1)| = |C / (v P(z)) - F|,   |C / n - F| where the weights are frozen
/// ```
pub(crate) fn residual<T: Real>(
    counts: &DMatrix<T>,
    block: &DMatrix<T>,
    weights: &DVector<T>,
    free: Free,
) -> f64 {
    let mut worst: f64 = 0.0;
    let mut meet = |change: f64| worst = largest(worst, change.abs());
    // With hidden cells the completed data have more mass than was observed.
    let total: f64 = counts.iter().map(|c| c.to_f64()).sum();
    for (z, weight) in weights.iter().map(|w| w.to_f64()).enumerate() {
        let column = counts.column(z);
        let n: f64 = column.iter().map(|c| c.to_f64()).sum();
        if free.weights {
            meet(n / total - weight);
        }
        let n = if free.weights { weight * total } else { n };
        if !free.block || n <= 0.0 {
            continue;
        }
        for (c, f) in column.iter().zip(&block.column(z)) {
            // [SPEC 1.1] F g = C / (v P(z))
            meet(c.to_f64() / n - f.to_f64());
        }
    }
    worst
}

/// The larger of two numbers; NaN if one of them is.
pub(crate) fn largest(a: f64, b: f64) -> f64 {
    if a >= b || a.is_nan() { a } else { b }
}

/// All entries of some blocks as one list, the parameters in which extrapolation is measured.
pub(crate) fn pack<'a, T: Real>(blocks: impl IntoIterator<Item = &'a [T]>) -> Vec<f64> {
    let entries = blocks.into_iter().flatten();
    entries.map(|x| x.to_f64()).collect()
}

/// An extrapolated list, taken apart again in the order of [`pack`].
#[derive(Debug)]
pub(crate) struct Extrapolated<'a> {
    values: std::iter::Zip<std::slice::Iter<'a, f64>, std::slice::Iter<'a, f64>>,
}

impl<'a> Extrapolated<'a> {
    /// `last` holds the last EM values.
    pub(crate) fn new(flat: &'a [f64], last: &'a [f64]) -> Self {
        Self {
            values: flat.iter().zip(last),
        }
    }

    /// The next block, which keeps its values if it is frozen.
    pub(crate) fn take<T: Real>(&mut self, block: &mut [T], frozen: bool) {
        for (x, (&new, &last)) in block.iter_mut().zip(&mut self.values) {
            if !frozen {
                // [SPEC 10] an entry that left the orthant becomes a tenth of its last EM value
                *x = T::lit(if new > 0.0 { new } else { 0.1 * last });
            }
        }
    }

    /// [`take`](Self::take), then columns that sum to 1.
    pub(crate) fn take_columns<T: Real>(&mut self, block: &mut DMatrix<T>, frozen: bool) {
        self.take(block.as_mut_slice(), frozen);
        if !frozen {
            normalise_columns(block);
        }
    }

    /// [`take`](Self::take), then weights that sum to 1.
    pub(crate) fn take_weights<T: Real>(&mut self, weights: &mut DVector<T>, frozen: bool) {
        self.take(weights.as_mut_slice(), frozen);
        if !frozen {
            let total = weights.sum();
            *weights /= total;
        }
    }
}

/// Refuses to guard steps by an objective that they may make worse: that of a prior which still changes, or which has none.
pub(crate) fn check_steady<T: Real>(
    block: &str,
    prior: Option<&Prior<T>>,
    iteration: usize,
) -> Result<(), EmError> {
    if prior.is_none_or(|prior| prior.steady(iteration)) {
        Ok(())
    } else {
        Err(EmError::Unsteady {
            block: block.into(),
            iteration,
        })
    }
}
