//! The residual beside finite differences of the objective.

use plca_tensor::Real;

use super::{Law, Rounding, Violation, objective};
use crate::{Algorithm, Parameters};

/// A way from a state along which an optimum has no slope, for a constrained state a curve within its domain.
pub struct Way<'a, T: Real> {
    /// The parameters so far along the way; at 0 the parameters themselves.
    pub at: Box<dyn Fn(f64) -> Parameters<T> + 'a>,
    /// What the slope is divided by to be in the unit of the residual.
    pub unit: f64,
}

impl<T: Real> std::fmt::Debug for Way<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Way")
            .field("unit", &self.unit)
            .finish_non_exhaustive()
    }
}

/// Checks a residual against [`Law::Gradient`]: at any valid state it is the largest slope of the objective along the given ways, each in its
/// unit. The slopes are central differences, so the law knows no formula of the method.
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
/// use nalgebra::{DMatrix, dmatrix};
/// use plca_fit::laws::{Law, Rounding, Way, check_gradient};
/// use plca_fit::{blocks::{Axes, BlockSpec}, em::Stepped, Algorithm, FitError, Parameters};
///
/// /// `Σ c ln θ`; a residual that is right, or counts twice.
/// #[derive(Debug)]
/// struct Shares { counts: DMatrix<f64>, seen: usize, blocks: [BlockSpec<f64>; 1] }
///
/// impl Algorithm<f64> for Shares {
///     fn blocks(&self) -> &[BlockSpec<f64>] { &self.blocks }
///     fn step(&self, at: &mut Parameters<f64>, _: bool) -> Result<Stepped, FitError> {
///         at.change(|_, theta| *theta = &self.counts / 5.0);
///         at.count();
///         Ok(Stepped::default())
///     }
///     fn objective(&self, at: &Parameters<f64>) -> Result<f64, FitError> { Ok(self.counts.dot(&at.at(0).map(f64::ln))) }
///     fn unit(&self) -> f64 { 5.0 }
///     fn extrapolates(&self, _: &Parameters<f64>) -> Result<(), FitError> { Ok(()) }
///     fn residual(&self, at: &Parameters<f64>) -> Result<f64, FitError> {
///         Ok((0..self.seen).map(|i| (self.counts[i] / 5.0 - at.at(0)[i]).abs()).sum())
///     }
/// }
///
/// let shares = |seen| Shares { counts: dmatrix![4.0; 1.0], seen, blocks: [BlockSpec::simplex("theta", (2, 1), Axes::factor(0))] };
/// let theta = |x: DMatrix<f64>| Parameters::new(&shares(1).blocks, vec![&x / x.sum()]);
/// let raised = |i: usize| Way {
///     at: Box::new(move |t| {
///         let mut x = dmatrix![0.5; 0.5];
///         x[i] *= 1.0 + t;
///         theta(x).expect("a distribution")
///     }),
///     unit: 5.0,
/// };
/// let ways = [raised(0), raised(1)];
/// let rounding = Rounding::derived(f64::EPSILON, 4, 5.0);
/// let with = |seen| check_gradient(&shares(seen), &theta(dmatrix![0.5; 0.5]).expect("a distribution"), &ways, &rounding);
/// assert!(with(1).is_ok());                                        // |4/5 - 1/2|, the largest slope
/// assert_eq!(with(2).unwrap_err().law, Law::Gradient);             // their sum
/// ```
pub fn check_gradient<T: Real>(
    algorithm: &dyn Algorithm<T>,
    state: &Parameters<T>,
    ways: &[Way<'_, T>],
    rounding: &Rounding,
) -> Result<(), Violation> {
    let broken = |details: String| Err(Violation::new(Law::Gradient, details));
    if rounding.relative <= 0.0 || ways.is_empty() {
        return broken("it needs a relative rounding above 0 and a way".into());
    }
    let residual = match algorithm.residual(state) {
        Ok(residual) => residual,
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
