//! Errors of distributions and special functions.

/// Why a distribution or a special function refused its arguments.
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
