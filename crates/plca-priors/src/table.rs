//! Priors by name: what a command line or a file of settings chooses from.

use std::sync::Arc;

use plca_tensor::Real;

use crate::{PriorError, SimplexPrior};

/// A prior as text describes it, or what is wrong with the text.
pub(crate) type Parsed<T> = Result<Arc<dyn SimplexPrior<T>>, PriorError>;

/// A prior that is chosen by its name.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PriorEntry<T: Real> {
    /// The name before the colon.
    pub name: &'static str,
    /// What stands behind the colon.
    pub form: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// Makes it from what stands behind the colon, for a block of so many rows and columns.
    pub parse: fn(&str, (usize, usize)) -> Parsed<T>,
}

/// The table of priors.
///
/// ```
/// use plca_priors::{PriorError, Priors};
/// assert!(Priors::<f64>::parse("dirichlet:2.5", (4, 2))?.has_density());
/// assert!(Priors::<f64>::parse("dirichlet:-1", (4, 2)).is_err());
/// let names: Vec<_> = Priors::<f64>::ALL.iter().map(|entry| entry.name).collect();
/// assert!(names.contains(&"entropic"));
/// # Ok::<(), PriorError>(())
/// ```
#[derive(Debug)]
pub struct Priors<T>(std::marker::PhantomData<T>);

impl<T: Real> Priors<T> {
    /// The prior that `name:settings` describes, for a block of so many rows and columns.
    ///
    /// # Errors
    ///
    /// [`PriorError::Text`] for an unknown name and for what is no setting, [`PriorError::Domain`] for a value that the prior does not take,
    /// [`PriorError::Components`] for groups of another number of columns.
    pub fn parse(text: &str, shape: (usize, usize)) -> Parsed<T> {
        let known = || {
            let forms = Self::ALL.iter().map(|e| format!("{}:{}", e.name, e.form));
            forms.collect::<Vec<_>>().join(", ")
        };
        let (name, settings) = text.split_once(':').unwrap_or((text, ""));
        match Self::ALL.iter().find(|entry| entry.name == name) {
            Some(entry) => {
                let prior = (entry.parse)(settings, shape)?;
                prior.check(shape)?;
                Ok(prior)
            }
            None => Err(refused(text, format!("one of {}", known()))),
        }
    }
}

/// Text that is no setting.
pub(crate) fn refused(got: &str, expected: impl Into<String>) -> PriorError {
    PriorError::Text {
        got: got.into(),
        expected: expected.into(),
    }
}

/// A number.
pub(crate) fn number(text: &str) -> Result<f64, PriorError> {
    text.parse().map_err(|_| refused(text, "a number"))
}

/// A number, and whether an `r` behind it says that it is relative to the counts.
pub(crate) fn relative(text: &str) -> Result<(f64, bool), PriorError> {
    match text.strip_suffix('r') {
        Some(digits) => Ok((number(digits)?, true)),
        None => Ok((number(text)?, false)),
    }
}

/// `NAME=VALUE,…`, each name one of these and at most once: the values in the order of the names.
pub(crate) fn settings<'a, const N: usize>(
    text: &'a str,
    names: [&str; N],
) -> Result<[Option<&'a str>; N], PriorError> {
    let mut values = [None; N];
    for part in text.split(',') {
        let Some((name, value)) = part.split_once('=') else {
            return Err(refused(part, "NAME=VALUE"));
        };
        let Some(at) = names.iter().position(|known| *known == name) else {
            return Err(refused(name, format!("one of {}", names.join(", "))));
        };
        if values[at].replace(value).is_some() {
            return Err(refused(part, format!("`{name}` once, it is given twice")));
        }
    }
    Ok(values)
}
