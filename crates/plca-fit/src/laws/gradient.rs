//! The residual beside finite differences of the objective.

use super::{Law, Rounding, Violation, objective};
use crate::Algorithm;

/// A way from a state along which an optimum has no slope, for a constrained state a curve within its domain.
pub struct Way<'a, S> {
    /// The state so far along the way; at 0 the state itself.
    pub at: Box<dyn Fn(f64) -> S + 'a>,
    /// What the slope is divided by to be in the unit of the residual.
    pub unit: f64,
}

impl<S> std::fmt::Debug for Way<'_, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Way")
            .field("unit", &self.unit)
            .finish_non_exhaustive()
    }
}

/// Holds a residual against [`Law::Gradient`]: at a state, of which nothing is asked, it is the largest slope of the objective over some
/// ways, each in its unit. The slopes are central differences, so the law knows no formula of the method.
///
/// For shares `θ` on the simplex the way that raises one of them is `θ_i (1 + t)`, divided by the sum: its slope is `v θ_i (g_i - 1)` where
/// the likelihood has the gradient `v g`, and `v`, the mass, its unit. For columns of several factors under weights it is the joint share of a
/// component and an index that is raised, and its unit is `v P(z)`.
///
/// The step of the differences is `h = relative^(1/3)`, of a relative rounding error that is not 0. What rounding adds, `allowed/h`, and what
/// curvature adds, `h² allowed/relative`, are then equal; both are forgiven.
///
/// # Errors
///
/// The [`Violation`]; [`Law::Accepts`] where an objective cannot be had.
///
/// # Examples
///
/// ```
/// use plca_fit::{Algorithm, StopError, laws::{Law, Rounding, Way, check_gradient}};
///
/// /// `Σ c ln θ`; a residual that is right, or forgets one entry.
/// struct Shares { counts: [f64; 2], seen: usize }
/// impl Algorithm for Shares {
///     type State = [f64; 2];
///     type Error = StopError;
///     fn step(&self, theta: &mut [f64; 2], _measure: bool) -> Result<Option<f64>, StopError> {
///         *theta = self.counts.map(|c| c / 5.0);
///         Ok(None)
///     }
///     fn objective(&self, theta: &[f64; 2]) -> Result<f64, StopError> {
///         Ok(self.counts[0] * theta[0].ln() + self.counts[1] * theta[1].ln())
///     }
///     fn residual(&self, theta: &[f64; 2]) -> Result<Option<f64>, StopError> {
///         Ok(Some((0..self.seen).map(|i| (self.counts[i] / 5.0 - theta[i]).abs()).sum()))
///     }
/// }
///
/// let theta = [0.5, 0.5];
/// let raised = |i: usize| Way {
///     at: Box::new(move |t| {
///         let mut theta = theta;
///         theta[i] *= 1.0 + t;
///         theta.map(|x| x / (theta[0] + theta[1]))
///     }),
///     unit: 5.0,
/// };
/// let ways = [raised(0), raised(1)];
/// let rounding = Rounding::derived(f64::EPSILON, 4, 5.0);
/// let with = |seen| check_gradient(&Shares { counts: [4.0, 1.0], seen }, &theta, &ways, &rounding);
/// assert!(with(1).is_ok());                                        // |4/5 - 1/2|, the largest slope
/// assert_eq!(with(2).unwrap_err().law, Law::Gradient);             // their sum
/// ```
pub fn check_gradient<A: Algorithm>(
    algorithm: &A,
    state: &A::State,
    ways: &[Way<'_, A::State>],
    rounding: &Rounding,
) -> Result<(), Violation> {
    let broken = |details: String| Err(Violation::new(Law::Gradient, details));
    let residual = match algorithm.residual(state) {
        Ok(Some(residual)) => residual,
        other => return broken(format!("the residual is {other:?}")),
    };
    let value = objective(algorithm, state, 0)?;
    let h = rounding.relative.cbrt();
    // Of rounding and of curvature.
    let error = 2.0 * rounding.allowed(value) / h;
    let (mut largest, mut allowed) = (0.0f64, 0.0f64);
    for Way { at, unit } in ways {
        let [ahead, behind] = [at(h), at(-h)].map(|state| objective(algorithm, &state, 0));
        largest = largest.max(((ahead? - behind?) / (2.0 * h) / unit).abs());
        allowed = allowed.max(error / unit.abs());
    }
    if (residual - largest).abs() <= allowed {
        return Ok(());
    }
    broken(format!(
        "the residual is {residual}, the largest slope {largest}, of which {allowed:e} is the error of differences"
    ))
}
