//! The nearest point of a simplex.
//!
//! ```math
//! \mathrm{argmin} \; \tfrac{1}{2} \lVert x - b \rVert^2, \quad x \ge 0, \quad \sum x = r
//! \qquad \text{is} \qquad
//! x = \max(b - \tau, 0), \quad \tau \text{ such that } \sum x = r
//! ```
//!
//! The threshold `τ` is found by sorting, by the active-set iteration of the paper with its two slips mended, or by a bound that
//! rises and a sweep over what it leaves. All work on `(b - max b) / r`, which has the same solution and overflows only to `-∞`,
//! where entries below `-1` are dropped unread: they can never be in the support.

mod active_set;
mod projector;
mod sort;
mod threshold;

use plca_tensor::parallel::wide;
use plca_tensor::{CompensatedSum, Real};

pub(crate) use projector::Projector;

/// Sums that are added side by side.
const LANES: usize = 8;

/// `Σ y`, compensated: many entries at the threshold would each keep a share of its rounding error.
fn total_of(y: &[f64]) -> f64 {
    let (chunks, rest) = y.as_chunks::<LANES>();
    let (sums, lost) = wide(
        #[inline(always)]
        || {
            let (mut sums, mut lost) = ([0.0; LANES], [0.0; LANES]);
            for chunk in chunks {
                for ((sum, lost), &x) in sums.iter_mut().zip(&mut lost).zip(chunk) {
                    let before = *sum;
                    *sum += x;
                    let added = *sum - before;
                    *lost += (before - (*sum - added)) + (x - added);
                }
            }
            (sums, lost)
        },
    );
    let all = sums.into_iter().chain(lost).chain(rest.iter().copied());
    all.collect::<CompensatedSum>().value()
}

/// The way in which the threshold of a projection is found. `[PNTF 3]` All three give the same point up to rounding.
///
/// ```
/// use pntf_l2::{Projection, project_with};
/// for method in [Projection::Sort, Projection::ActiveSet, Projection::Threshold] {
///     let mut b = [0.9, 0.6, -1.0];
///     project_with(&mut b, 1.0, method)?;
///     assert!((b[0] - 0.65f64).abs() < 1e-15 && b[2] == 0.0);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Projection {
    /// Sort, then scan: `O(d log d)`.
    Sort,
    /// Michelot's active set, Algorithm 1 of the paper mended: `O(d)` a round, usually under ten rounds. As printed it divides by
    /// `d` where it must divide by the number of coordinates left, and may stop before one dropped in the last round is set to 0.
    ActiveSet,
    /// A lower bound of `τ`, raised a few times by the mean of the entries above it, and the last sweep of Condat's method over what is left: `O(d)` in practice, the
    /// fastest measured.
    #[default]
    Threshold,
}

/// The reason why a vector could not be projected.
///
/// ```
/// let error = pntf_l2::project_onto_simplex(&mut [1.0, f64::NAN], 1.0).unwrap_err();
/// assert_eq!(error.to_string(), "entry 1 is NaN, not a finite number");
/// ```
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
/// ```math
/// \mathrm{argmin} \left\lbrace \tfrac{1}{2} \lVert x - b \rVert^2 : \; x \ge 0, \; \sum x = r \right\rbrace
///   = \max(b - \tau, 0), \qquad \tau \text{ such that } \sum x = r
/// ```
///
/// `r` is `radius`.
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

/// Replaces `b` by the nearest point with entries `>= 0` and sum `radius`, as [`project_onto_simplex`] does, by the method given.
///
/// # Errors
///
/// As there.
///
/// # Examples
///
/// ```
/// use pntf_l2::{Projection, project_with};
/// let mut b = [5.0f32, 1.0];
/// project_with(&mut b, 2.0, Projection::Sort)?;
/// assert_eq!(b, [2.0, 0.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
    let mut projector = Projector::new(method);
    if !projector.look(b) {
        let bad = (0..).zip(b.iter()).find(|(_, x)| !x.is_finite());
        let (index, value) = bad.map_or((0, f64::NAN), |(i, x)| (i, x.to_f64()));
        return Err(ProjectionError::Value { index, value });
    }
    projector.place(b, r, r);
    Ok(())
}
