//! Laws that every prior obeys, as a test kit (feature `laws`).
//!
//! [`check`] holds one prior against one random case of [`cases`]. What is true of some priors only is said in [`Claims`]. All
//! laws speak of the expected log-posterior of a block `θ` under expected counts `c`
//!
//! ```math
//! J(\theta) = \sum_{iz} c_{iz} \ln \theta_{iz} + \ln p(\theta),
//! \qquad 0 \ln 0 = 0
//! ```
//!
//! and never of the formula by which a prior maximises it, so they fit a prior of your own as well:
//!
//! ```
//! use plca_priors::{Dirichlet, laws};
//! use proptest::prelude::*;
//!
//! proptest! {
//!     // In a test module: `#[test]` here.
//!     fn dirichlet_obeys_the_laws(alpha in 1.0..5.0, case in laws::cases::<f64>(1..=5, 1..=3)) {
//!         laws::check(&Dirichlet::symmetric(alpha).unwrap(), &laws::Claims::default(), &case)?;
//!     }
//! }
//! dirichlet_obeys_the_laws();
//! ```

mod case;
mod evaluate;
mod invariance;
mod optimum;
mod promises;

use std::fmt;

use plca_tensor::Real;

pub use case::{Case, cases};

use crate::SimplexPrior;
use evaluate::Trial;

/// The quality of the M-step of a prior.
///
/// ```
/// use plca_priors::laws::{Claims, Optimum};
/// assert_eq!(Claims::default().optimum, Optimum::Global);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Optimum {
    /// It maximises `J` over the simplex, wherever a maximiser exists.
    Global,
    /// It maximises `J` over the entries that it does not clip to 0, or keeps the column as it was. For densities that are
    /// unbounded at the border, where clipping is a convention; terms of clipped entries are left out of `J`.
    OnSupport,
    /// It never lowers `J`.
    NotWorse,
    /// It promises nothing of `J`, as a projection.
    Unstated,
}

/// The promises of a prior beyond the laws of all priors. The default promises everything.
///
/// ```
/// use plca_priors::laws::{Claims, Optimum};
/// // A prior that may clip, and that knows its rows by name.
/// let claims = Claims { optimum: Optimum::OnSupport, rows_alike: false, ..Claims::default() };
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claims {
    /// How good the M-step is.
    pub optimum: Optimum,
    /// No two blocks are equally good: the result depends on the counts alone, not on the block given nor, where counts are
    /// equal, on their order. Columns that are left as they were are excepted. Without this claim results are compared by their `J`,
    /// and a column without counts may be left as it was.
    pub unique: bool,
    /// Permuting the rows permutes the result.
    pub rows_alike: bool,
    /// Permuting the columns permutes the result.
    pub columns_alike: bool,
    /// A column's result does not depend on the other columns.
    pub columns_apart: bool,
    /// Rounding that is forgiven, in units of the scalar's epsilon, relative to the terms that are added up (default 64).
    pub tolerance: f64,
}

impl Default for Claims {
    fn default() -> Self {
        Self {
            optimum: Optimum::Global,
            unique: true,
            rows_alike: true,
            columns_alike: true,
            columns_apart: true,
            tolerance: 64.0,
        }
    }
}

/// A law of [`check`], [`check_strength`] or [`check_promises`].
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_priors::{Dirichlet, laws};
/// let case = laws::Case::new(dmatrix![3.0; 1.0], dmatrix![0.5; 0.5]);
/// let prior = Dirichlet::symmetric(1.5)?;                             // weaker beside twice the counts
/// let violation = laws::check_strength(&prior, &prior, 2.0, &laws::Claims::default(), &case).unwrap_err();
/// assert_eq!(violation.law, laws::Law::Strength);
/// # Ok::<(), plca_priors::PriorError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Law {
    /// Finite non-negative counts are accepted, at every scale.
    Accepts,
    /// The result's columns are distributions.
    Distribution,
    /// `ln p` is a number or `-∞`, and finite at the result.
    Density,
    /// No other block has a larger `J`.
    Maximum,
    /// `J` is not smaller than it was.
    NotWorse,
    /// `J` is not smaller than it was with a column frozen, so that it keeps its values.
    Frozen,
    /// A column without counts changes only if the prior alone prefers the change.
    NothingSeen,
    /// A second M-step with the same counts changes nothing.
    Settled,
    /// The result does not depend on the block given.
    StartForgotten,
    /// Permuting rows or columns permutes the result.
    Permutation,
    /// Columns do not know each other.
    ColumnsApart,
    /// A count that is negative or not finite is refused by its place, and the block left as it was.
    BadCount,
    /// Counts of another shape than the block's are refused.
    Shape,
    /// Counts and the logarithm of the density times one factor: the same result.
    Strength,
    /// The log-density is `Σ a ln θ` up to a constant, for the pseudo-counts `a` that a prior gives, at every iteration.
    PseudoCounts,
    /// Unless a prior says that it may, it empties no entry that has counts.
    MayEmpty,
    /// From where a prior says that it is steady, it is one and the same, and its update never lowers its objective.
    Steady,
    /// The M-step of an iteration is the same when it is asked for again.
    Repeatable,
    /// The shapes that `check` accepts are those that `update` accepts.
    Fits,
}

/// The law that was broken, and how.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_priors::{Dirichlet, laws};
/// let case = laws::Case::new(dmatrix![3.0; 1.0], dmatrix![0.5; 0.5]);
/// let prior = Dirichlet::symmetric(1.5)?;                             // weaker beside twice the counts
/// let violation = laws::check_strength(&prior, &prior, 2.0, &laws::Claims::default(), &case).unwrap_err();
/// assert!(violation.to_string().starts_with("law `Strength` is broken"));
/// # Ok::<(), plca_priors::PriorError>(())
/// ```
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("law `{law:?}` is broken: {details}")]
pub struct Violation {
    /// The law.
    pub law: Law,
    /// The numbers.
    pub details: String,
}

impl Violation {
    fn new(law: Law, details: impl fmt::Display) -> Self {
        Self {
            law,
            details: details.to_string(),
        }
    }
}

/// Checks a prior against every law, except for [`Law::Strength`] which needs a second prior.
///
/// # Errors
///
/// The first [`Violation`] met.
///
/// # Examples
///
/// A prior that forgets to divide by the sum is caught:
///
/// ```
/// use nalgebra::{DMatrix, dmatrix};
/// use plca_priors::{PriorError, PriorRules, SimplexPrior, Step, laws};
///
/// #[derive(Debug)]
/// struct Careless;
/// impl PriorRules for Careless {}
/// impl SimplexPrior<f64> for Careless {
///     fn update(&self, counts: &DMatrix<f64>, theta: &mut DMatrix<f64>, step: &Step<'_>) -> Result<(), PriorError> {
///         theta.copy_from(counts);
///         Ok(())
///     }
///     fn ln_density(&self, _: &DMatrix<f64>, _: &Step<'_>) -> f64 { 0.0 }
/// }
///
/// let case = laws::Case::new(dmatrix![3.0; 1.0], dmatrix![0.5; 0.5]);
/// let violation = laws::check(&Careless, &laws::Claims::default(), &case).unwrap_err();
/// assert_eq!(violation.law, laws::Law::Distribution);
/// ```
pub fn check<T: Real>(
    prior: &dyn SimplexPrior<T>,
    claims: &Claims,
    case: &Case<T>,
) -> Result<(), Violation> {
    let trial = Trial::new(prior, claims, case, 1)?;
    optimum::check(&trial)?;
    invariance::check(&trial)
}

/// Checks the strength of a prior against that of the counts: where `strong`'s log-density is `factor` times that of `prior`, it
/// makes of `factor` times the counts what `prior` makes of the counts. So a prior counts in the unit of the data.
///
/// # Errors
///
/// A [`Violation`], of [`Law::Strength`] or of a law that this presupposes.
///
/// # Examples
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_priors::{Dirichlet, laws};
/// let case = laws::Case::new(dmatrix![3.0; 1.0], dmatrix![0.5; 0.5]);
/// // (α - 1) ln θ: twice as strong is α = 1 + 2 · 0.5.
/// let (prior, strong) = (Dirichlet::symmetric(1.5)?, Dirichlet::symmetric(2.0)?);
/// assert!(laws::check_strength(&prior, &strong, 2.0, &laws::Claims::default(), &case).is_ok());
/// assert!(laws::check_strength(&prior, &prior, 2.0, &laws::Claims::default(), &case).is_err());
/// # Ok::<(), plca_priors::PriorError>(())
/// ```
pub fn check_strength<T: Real>(
    prior: &dyn SimplexPrior<T>,
    strong: &dyn SimplexPrior<T>,
    factor: f64,
    claims: &Claims,
    case: &Case<T>,
) -> Result<(), Violation> {
    invariance::strength(&Trial::new(prior, claims, case, 1)?, strong, factor)
}

/// Checks what a prior says of itself (`pseudo_counts`, `may_empty`, `steady`, `check`) against what it does, at some iterations in
/// increasing order, counted from 1.
///
/// # Errors
///
/// A [`Violation`], of [`Law::PseudoCounts`], [`Law::MayEmpty`], [`Law::Steady`], [`Law::Repeatable`], [`Law::Fits`], or of a law that these presuppose.
///
/// # Examples
///
/// A prior that claims another's pseudo-counts:
///
/// ```
/// use nalgebra::{DMatrix, dmatrix};
/// use plca_priors::{Dirichlet, Flat, PriorError, PriorRules, SimplexPrior, Step, laws};
///
/// #[derive(Debug)]
/// struct Boastful;
/// impl PriorRules for Boastful {
///     fn pseudo_counts(&self, (rows, columns): (usize, usize)) -> Option<DMatrix<f64>> { Some(DMatrix::from_element(rows, columns, 1.0)) }
/// }
/// impl SimplexPrior<f64> for Boastful {
///     fn update(&self, counts: &DMatrix<f64>, theta: &mut DMatrix<f64>, step: &Step<'_>) -> Result<(), PriorError> { Flat.update(counts, theta, step) }
///     fn ln_density(&self, _: &DMatrix<f64>, _: &Step<'_>) -> f64 { 0.0 }
/// }
///
/// let case = laws::Case::new(dmatrix![3.0; 1.0], dmatrix![0.5; 0.5]);
/// let claims = laws::Claims::default();
/// assert!(laws::check_promises(&Dirichlet::symmetric(2.0)?, &[1], &claims, &case).is_ok());
/// let violation = laws::check_promises(&Boastful, &[1], &claims, &case).unwrap_err();
/// assert_eq!(violation.law, laws::Law::PseudoCounts);
/// # Ok::<(), PriorError>(())
/// ```
pub fn check_promises<T: Real>(
    prior: &dyn SimplexPrior<T>,
    iterations: &[usize],
    claims: &Claims,
    case: &Case<T>,
) -> Result<(), Violation> {
    promises::check(prior, iterations, claims, case)
}
