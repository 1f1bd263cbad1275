//! Priors by name: what a command line or a file of settings chooses from.

use std::sync::Arc;

use plca_tensor::Real;

use crate::{PriorError, PriorRules, RatePrior, Schedule, Scheduled, SimplexPrior, Weighted};

/// A prior as text describes it, or what is wrong with the text.
pub(crate) type Parsed<P> = Result<Arc<P>, PriorError>;

/// A prior that is chosen by its name; `P` is `dyn SimplexPrior<T>` or `dyn RatePrior<T>`.
#[derive(Debug)]
#[non_exhaustive]
pub struct PriorEntry<P: ?Sized> {
    /// The name before the colon.
    pub name: &'static str,
    /// What stands behind the colon.
    pub form: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// Makes the prior from the text after the colon, for a block with these numbers of rows and columns.
    pub parse: fn(&str, (usize, usize)) -> Parsed<P>,
}

/// The prior that `name:settings` describes, of a table.
fn find<P: PriorRules + ?Sized>(
    all: &[PriorEntry<P>],
    text: &str,
    shape: (usize, usize),
) -> Parsed<P> {
    let (name, settings) = text.split_once(':').unwrap_or((text, ""));
    let Some(entry) = all.iter().find(|entry| entry.name == name) else {
        let forms = all.iter().map(|e| format!("{}:{}", e.name, e.form));
        let known = forms.collect::<Vec<_>>().join(", ");
        return Err(refused(text, format!("one of {known}")));
    };
    let prior = (entry.parse)(settings, shape)?;
    prior.check(shape)?;
    Ok(prior)
}

/// The table of priors on columns that are distributions.
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
    /// The prior that `name:settings` describes, for a block with these numbers of rows and columns.
    ///
    /// # Errors
    ///
    /// [`PriorError::Text`] for an unknown name and for what is not a setting, [`PriorError::Domain`] for a value that the prior does not take,
    /// [`PriorError::Components`] for groups of another number of columns.
    pub fn parse(text: &str, shape: (usize, usize)) -> Parsed<dyn SimplexPrior<T>> {
        find(Self::ALL, text, shape)
    }
}

/// The table of priors on rates.
///
/// ```
/// use plca_priors::{PriorError, RatePriors};
/// assert!(RatePriors::<f64>::parse("gamma:2,0.5", (4, 2)).is_ok());
/// assert!(RatePriors::<f64>::parse("rate:0.1,0.01", (4, 2)).is_ok());
/// assert!(RatePriors::<f64>::parse("rate:-1", (4, 2)).is_err());
/// # Ok::<(), PriorError>(())
/// ```
#[derive(Debug)]
pub struct RatePriors<T>(std::marker::PhantomData<T>);

impl<T: Real> RatePriors<T> {
    /// The prior that `name:settings` describes, for a block with these numbers of rows and columns.
    ///
    /// # Errors
    ///
    /// [`PriorError::Text`] for an unknown name and for what is not a setting, [`PriorError::Domain`] for a value that the prior does not take.
    pub fn parse(text: &str, shape: (usize, usize)) -> Parsed<dyn RatePrior<T>> {
        find(Self::ALL, text, shape)
    }
}

/// Text that is not a setting.
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

/// The number of the group of every column, `0/0/1/1`.
pub(crate) fn groups(text: &str) -> Result<Vec<usize>, PriorError> {
    let groups = text.split('/').map(|group| {
        let number = group.parse();
        number.map_err(|_| refused(group, "a group, which is a whole number"))
    });
    groups.collect()
}

/// A setting that must be there.
pub(crate) fn needed<'a>(
    value: Option<&'a str>,
    name: &str,
    text: &str,
) -> Result<&'a str, PriorError> {
    value.ok_or_else(|| refused(text, format!("`{name}` too")))
}

/// Two weights in one unit, and whether it is relative to the counts: an `r` behind both of `between` and `within`, or behind neither.
pub(crate) fn weights(
    [between, within]: [Option<&str>; 2],
    text: &str,
) -> Result<([f64; 2], bool), PriorError> {
    let (a, r) = relative(needed(between, "between", text)?)?;
    let (b, s) = relative(needed(within, "within", text)?)?;
    // A weight of 0 is 0 in any unit.
    if r != s && a != 0.0 && b != 0.0 {
        let units = "`between` and `within` in the same units: an r behind both, or neither";
        return Err(refused(text, units));
    }
    Ok(([a, b], (r && a != 0.0) || (s && b != 0.0)))
}

/// The prior, which fades within a number of iterations if one is given.
pub(crate) fn fading<T: Real, P: SimplexPrior<T> + Weighted + 'static>(
    prior: P,
    over: Option<&str>,
) -> Parsed<dyn SimplexPrior<T>> {
    let Some(over) = over else {
        return Ok(Arc::new(prior));
    };
    let schedule = Schedule::Decreasing {
        over: number(over)?,
    };
    Ok(Arc::new(Scheduled::new(prior, schedule)?))
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
