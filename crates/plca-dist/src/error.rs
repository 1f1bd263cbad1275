//! Errors of distributions and special functions.

/// The reason why a distribution or a special function refused its arguments.
///
/// ```
/// use plca_dist::{DistError, Skellam};
/// let refused = Skellam::new(-1.0, 1.0).unwrap_err();
/// assert_eq!(refused, DistError::Domain { name: "plus", value: -1.0 });
/// assert_eq!(refused.to_string(), "`plus` = -1 is outside the domain");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DistError {
    /// An argument lies outside the domain.
    #[error("`{name}` = {value} is outside the domain")]
    Domain {
        /// As in the signature.
        name: &'static str,
        /// The offending value.
        value: f64,
    },
    /// Two slices that belong together differ in length.
    #[error("`{name}` has {found} elements instead of {expected}")]
    Length {
        /// As in the signature.
        name: &'static str,
        /// Elements that there should be.
        expected: usize,
        /// Elements that there are.
        found: usize,
    },
}

/// Refuses an argument that is not within the domain.
#[inline]
pub(crate) fn domain(name: &'static str, value: f64, within: bool) -> Result<(), DistError> {
    if within {
        Ok(())
    } else {
        Err(DistError::Domain { name, value })
    }
}

/// Refuses a number that is not positive and finite.
#[inline]
pub(crate) fn positive(name: &'static str, value: f64) -> Result<(), DistError> {
    domain(name, value, value > 0.0 && value.is_finite())
}

/// Refuses a slice of another length.
#[inline]
pub(crate) fn same_length(
    name: &'static str,
    found: usize,
    expected: usize,
) -> Result<(), DistError> {
    if found == expected {
        Ok(())
    } else {
        Err(DistError::Length {
            name,
            expected,
            found,
        })
    }
}
