//! The nearest point of a simplex.
//!
//! ```text
//! argmin ½‖x - b‖²,   x ≥ 0,  Σ x = r        is        x = max(b - τ, 0),   τ such that Σ x = r
//! ```
//!
//! The threshold `τ` is found by sorting, by the active-set iteration of the paper with its two slips mended, or by an
//! online threshold in one pass. All work on `(b - max b) / r`, which has the same solution and overflows only to `-∞`,
//! where entries below `-1` are dropped unread: they can never be in the support.

mod active_set;
mod sort;
mod threshold;

use plca_tensor::Real;

/// How the threshold is found. All three give the same point up to rounding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Projection {
    /// Sort, then scan: `O(d log d)`.
    Sort,
    /// Michelot's active set, Algorithm 1 of the paper mended: `O(d)` a round, usually under ten rounds.
    ActiveSet,
    /// Condat's online threshold: `O(d)` in practice, the fastest measured.
    #[default]
    Threshold,
}

/// Why a vector could not be projected.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ProjectionError {
    /// No entry.
    #[error("a vector without entries has no projection")]
    Empty,
    /// A NaN or an infinite entry.
    #[error("entry {index} is {value}, not a finite number")]
    Value {
        /// Where.
        index: usize,
        /// Its value.
        value: f64,
    },
    /// A radius that is negative or not finite.
    #[error("radius {0} is not a finite number >= 0")]
    Radius(f64),
}

/// Replaces `b` by the nearest point with entries `>= 0` and sum `radius`, by the default method.
///
/// The result sums to `radius` up to rounding. Radius 0 gives zeros. Cost `O(d)` in practice.
///
/// # Errors
///
/// [`ProjectionError`]: no entries, an entry that is not finite, a radius that is negative or not finite.
///
/// # Examples
///
/// ```
/// let mut b = [3.0, 1.0];
/// pntf_l2::project_onto_simplex(&mut b, 4.0)?;
/// assert_eq!(b, [3.0, 1.0]);
/// # Ok::<(), pntf_l2::ProjectionError>(())
/// ```
pub fn project_onto_simplex<T: Real>(b: &mut [T], radius: T) -> Result<(), ProjectionError> {
    project_with(b, radius, Projection::default())
}

/// As [`project_onto_simplex`], by sorting.
///
/// # Errors
///
/// As there.
pub fn project_by_sorting<T: Real>(b: &mut [T], radius: T) -> Result<(), ProjectionError> {
    project_with(b, radius, Projection::Sort)
}

/// As [`project_onto_simplex`], by the active-set iteration of the paper's Algorithm 1.
///
/// As printed, that algorithm divides by `d` where it must divide by the number of coordinates left, and may stop before
/// a coordinate dropped in the last round is set to 0.
///
/// # Errors
///
/// As there.
///
/// # Examples
///
/// ```
/// // As printed: (.789, .489, -.833); with the first slip mended alone: (.65, .35, -.833).
/// let mut b = [0.9, 0.6, -1.0];
/// pntf_l2::project_by_active_set(&mut b, 1.0)?;
/// assert!((b[0] - 0.65f64).abs() < 1e-15 && b[2] == 0.0);
/// # Ok::<(), pntf_l2::ProjectionError>(())
/// ```
pub fn project_by_active_set<T: Real>(b: &mut [T], radius: T) -> Result<(), ProjectionError> {
    project_with(b, radius, Projection::ActiveSet)
}

/// As [`project_onto_simplex`], by Condat's online threshold.
///
/// # Errors
///
/// As there.
pub fn project_by_threshold<T: Real>(b: &mut [T], radius: T) -> Result<(), ProjectionError> {
    project_with(b, radius, Projection::Threshold)
}

/// As [`project_onto_simplex`], by the method given.
///
/// # Errors
///
/// As there.
pub fn project_with<T: Real>(
    b: &mut [T],
    radius: T,
    method: Projection,
) -> Result<(), ProjectionError> {
    if b.is_empty() {
        return Err(ProjectionError::Empty);
    }
    let r = radius.to_f64();
    if !(r.is_finite() && r >= 0.0) {
        return Err(ProjectionError::Radius(r));
    }
    if let Some(index) = b.iter().position(|x| !x.is_finite()) {
        let value = b[index].to_f64();
        return Err(ProjectionError::Value { index, value });
    }
    if r == 0.0 {
        b.fill(T::zero());
        return Ok(());
    }
    let mut x: Vec<f64> = b.iter().map(|x| x.to_f64()).collect();
    Projector::new(method).project(&mut x, r);
    // The largest entries first lose nothing: x <= 1.
    b.iter_mut().zip(&x).for_each(|(b, &x)| *b = T::lit(x * r));
    Ok(())
}

/// A projection method with its memory, for many vectors.
#[derive(Clone, Debug, Default)]
pub(crate) struct Projector {
    method: Projection,
    candidates: Vec<f64>,
    delayed: Vec<f64>,
}

impl Projector {
    pub(crate) fn new(method: Projection) -> Self {
        Self {
            method,
            ..Self::default()
        }
    }

    /// Replaces `b` by its projection onto the simplex of `radius`, divided by `radius`: the result sums to 1.
    ///
    /// As the radius tends to 0 this tends to the vertex at the largest entry, equal shares where several are largest;
    /// below 1e-300, and for 0, it is that limit. Entries must be finite.
    pub(crate) fn project(&mut self, b: &mut [f64], radius: f64) {
        let largest = b.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // [PNTF 2] the limit: only exact ties share
        if radius < 1e-300 {
            let ties = b.iter().filter(|&&x| x == largest).count() as f64;
            b.iter_mut()
                .for_each(|x| *x = if *x == largest { 1.0 / ties } else { 0.0 });
            return;
        }
        b.iter_mut().for_each(|x| *x = (*x - largest) / radius);
        let reachable = b.iter().copied().filter(|&y| y > -1.0);
        let candidates = &mut self.candidates;
        candidates.clear();
        let found = match self.method {
            Projection::Sort => {
                candidates.extend(reachable);
                sort::threshold(candidates)
            }
            Projection::ActiveSet => {
                candidates.extend(reachable);
                active_set::threshold(candidates)
            }
            Projection::Threshold => threshold::threshold(reachable, candidates, &mut self.delayed),
        };
        // One more look at the support: all methods end in the same sum over the same entries.
        let (mut sum, mut count) = (0.0, 0.0);
        for &y in b.iter().filter(|&&y| y > found) {
            sum += y;
            count += 1.0;
        }
        let tau = if count > 0.0 {
            (sum - 1.0) / count
        } else {
            found
        };
        let mut total = 0.0;
        for x in b.iter_mut() {
            // [PNTF 3] x = max(b - τ, 0)
            *x = (*x - tau).max(0.0);
            total += *x;
        }
        b.iter_mut().for_each(|x| *x /= total);
    }
}
