//! The weight problem: a small quadratic programme over the simplex.
//!
//! ```math
//! \min \tfrac{1}{2} l^\top H l - f^\top l,
//! \qquad l \ge 0, \quad \sum l = 1
//! ```
//!
//! In a factorization `H` is the elementwise product of the Gram matrices of all factors, and `f` the data contracted with every component.
//! So neither the vectorised data nor the matrix of vectorised components is ever formed.

mod face;
mod orthant;
mod search;

use nalgebra::{Cholesky, DMatrix};

pub(crate) use orthant::orthant_qp;
use search::{Domain, Problem};

/// Why [`simplex_qp`] or [`SimplexSolution::at`] refused its arguments.
///
/// ```
/// use pntf_l2::nalgebra::{self, dmatrix};
/// let error = pntf_l2::simplex_qp(&dmatrix![1.0, 2.0; 0.0, 1.0], &[1.0, 1.0], None).unwrap_err();
/// assert_eq!(error.to_string(), "`h` is not symmetric at (0, 1): 2 and 0");
/// ```
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum QpError {
    /// No unknowns.
    #[error("a quadratic programme without unknowns has no solution")]
    Empty,
    /// Sizes that do not fit together.
    #[error("`{name}` has size {got:?}, expected {expected:?}")]
    Shape {
        /// Which argument.
        name: &'static str,
        /// Its size.
        got: Vec<usize>,
        /// The size it must have.
        expected: Vec<usize>,
    },
    /// A value that is NaN or infinite, or a negative one in a start. The weights of [`SimplexSolution::at`] are named `start` too.
    #[error("`{name}` is {value} at {index:?}, not a usable number")]
    Value {
        /// Which argument.
        name: &'static str,
        /// Where.
        index: Vec<usize>,
        /// The value.
        value: f64,
    },
    /// A matrix that differs from its transpose by more than rounding: 1e-12 of its largest entry.
    #[error("`h` is not symmetric at ({row}, {column}): {upper} and {lower}")]
    Asymmetric {
        /// Row.
        row: usize,
        /// Column.
        column: usize,
        /// Entry at `(row, column)`.
        upper: f64,
        /// Entry at `(column, row)`.
        lower: f64,
    },
    /// A matrix for which the objective is not convex on the simplex: a search may stop away from the minimum, and no gap is valid.
    #[error(
        "`h` is not positive semidefinite on the simplex: dᵀ H d = {curvature} for a direction d with the largest entry at {}",
        largest(direction)
    )]
    Indefinite {
        /// `d`, of length 1; its entries sum to 0.
        direction: Vec<f64>,
        /// `dᵀ H d`.
        curvature: f64,
    },
}

/// Where a direction is largest.
fn largest(direction: &[f64]) -> usize {
    let entries = direction.iter().map(|x| x.abs()).enumerate();
    entries
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .map_or(0, |(at, _)| at)
}

/// Weights on the unit simplex, and a certificate of how close to the minimum they are. `[PNTF 4]`
///
/// [`simplex_qp`] returns a minimiser, [`at`](Self::at) the weights that it was given.
///
/// ```math
/// q(l) = \tfrac{1}{2} l^\top H l - f^\top l, \qquad g = H l - f, \qquad q(l) - \min q \le g \cdot l - \min_i g_i
/// ```
///
/// `l` are the weights, `min q` is the least value over the unit simplex, and the right side of the inequality is the [`gap`](Self::gap).
/// In a factorization `q` is half the squared error, less half the squared norm of the data.
///
/// ```
/// use pntf_l2::nalgebra::{self, dmatrix};
/// let qp = pntf_l2::simplex_qp(&dmatrix![1.0, 0.0; 0.0, 1.0], &[2.0, 0.0], None)?;
/// assert_eq!((&qp.weights[..], qp.objective), (&[1.0, 0.0][..], -1.5));
/// assert_eq!((qp.multiplier, qp.gap), (-1.0, 0.0));                   // g = (-1, 0)
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct SimplexSolution {
    /// The weights, `l`: entries `>= 0` with sum 1.
    pub weights: Vec<f64>,
    /// The objective, `½ lᵀ H l - fᵀ l`.
    pub objective: f64,
    /// The multiplier of `Σ l = 1`: `ν = g·l` with `g = H l - f`. At a minimiser `g_i = ν` wherever `l_i > 0`, and `g_i >= ν` elsewhere.
    pub multiplier: f64,
    /// How far these two conditions are from being met: the larger of `max |g_i - ν|` where `l_i > 0`, and `ν - min g`. At a minimiser it
    /// is 0 up to rounding.
    pub kkt_residual: f64,
    /// The gap, `g·l - min g`, at least 0: the objective is at most this far above its minimum.
    pub gap: f64,
    /// The number of linear systems solved, at least one for every support visited with more than one weight; 0 from [`at`](Self::at).
    pub iterations: usize,
}

impl SimplexSolution {
    /// The certificate of given `weights`, which are first divided by their sum. Nothing is minimised.
    ///
    /// `h` is `k x k`; `f` and `weights` have length `k`. Weights that are all 0 stand for the best vertex, as in [`simplex_qp`].
    ///
    /// Cost: `O(k³)`, nearly all of it for the check that `h` is convex on the simplex.
    ///
    /// # Errors
    ///
    /// As [`simplex_qp`]; [`QpError`] calls the weights `start`.
    ///
    /// # Examples
    ///
    /// ```
    /// use pntf_l2::nalgebra::DMatrix;
    /// use pntf_l2::{SimplexSolution, simplex_qp};
    /// let (h, f) = (DMatrix::identity(2, 2), [2.0, 0.0]);
    /// let (at, best) = (SimplexSolution::at(&h, &f, &[0.5, 0.5])?, simplex_qp(&h, &f, None)?);
    /// assert_eq!((at.gap, at.objective - best.objective), (1.0, 0.75));
    /// # Ok::<(), pntf_l2::QpError>(())
    /// ```
    pub fn at(h: &DMatrix<f64>, f: &[f64], weights: &[f64]) -> Result<Self, QpError> {
        check(h, f, Some(weights))?;
        check_convex(h)?;
        Ok(solved(h, f, Some(weights), false))
    }
}

/// Minimises a convex quadratic function over the unit simplex.
///
/// ```math
/// \min_l \; \tfrac{1}{2} l^\top H l - f^\top l, \qquad l \ge 0, \quad \sum l = 1
/// ```
///
/// `h` is `k x k`; `f` and `start` have length `k`. `h` must be symmetric, and positive semi-definite along the simplex: `dᵀ H d ≥ 0` for
/// every `d` with `Σ d = 0`.
///
/// The method is an active set. The support is the set of weights that may be positive. With the others at 0 the minimum under `Σ l = 1` is
/// one linear system, solved by Cholesky, or in an eigenbasis if it is singular. A weight that reaches 0 leaves the support. At a minimum
/// on the support, the weight of the smallest `g_i = (H l - f)_i` outside enters, until none is below `ν = g·l`.
///
/// The search begins at `start`, divided by its sum. Without a start, or if all of it is 0, it begins at the best vertex: the single weight
/// of 1 with the least objective. If there are many minimisers, the search does not move where the objective is constant, so the result
/// stays near the start.
///
/// Cost: `O(k³)` at most for every system, and once for the check of `h`.
///
/// # Errors
///
/// [`QpError`]: no unknowns, sizes that disagree, values that are not finite, a negative value in `start`, an asymmetric `h`, or one that
/// is not positive semi-definite along the simplex.
///
/// # Examples
///
/// ```
/// use pntf_l2::nalgebra::{self, dmatrix};
/// // The nearest point to (0.9, 0.6, -1) of the simplex.
/// let qp = pntf_l2::simplex_qp(&pntf_l2::nalgebra::DMatrix::identity(3, 3), &[0.9, 0.6, -1.0], None)?;
/// assert!((qp.weights[0] - 0.65).abs() < 1e-15 && qp.weights[2] == 0.0 && qp.gap < 1e-15);
/// # Ok::<(), pntf_l2::QpError>(())
/// ```
pub fn simplex_qp(
    h: &DMatrix<f64>,
    f: &[f64],
    start: Option<&[f64]>,
) -> Result<SimplexSolution, QpError> {
    check(h, f, start)?;
    check_convex(h)?;
    Ok(solved(h, f, start, true))
}

/// [`simplex_qp`] for a product of Gram matrices, which needs no check of its curvature.
pub(crate) fn gram_qp(
    h: &DMatrix<f64>,
    f: &[f64],
    start: Option<&[f64]>,
) -> Result<SimplexSolution, QpError> {
    check(h, f, start)?;
    Ok(solved(h, f, start, true))
}

/// What weights are worth, `h` a product of Gram matrices. No face is solved.
pub(crate) fn gram_at(
    h: &DMatrix<f64>,
    f: &[f64],
    weights: &[f64],
) -> Result<SimplexSolution, QpError> {
    check(h, f, Some(weights))?;
    Ok(solved(h, f, Some(weights), false))
}

/// The minimiser, or the start if there is no `search`, and its certificate.
fn solved(h: &DMatrix<f64>, f: &[f64], start: Option<&[f64]>, search: bool) -> SimplexSolution {
    // Powers of two, so that nothing overflows and no bit changes.
    let largest = h.amax().max(f.iter().fold(0.0, |a: f64, x| a.max(x.abs())));
    let exponent = if largest > 0.0 {
        -plca_tensor::exponent(largest)
    } else {
        0
    };
    let half = 2f64.powi(exponent / 2);
    let rest = 2f64.powi(exponent - exponent / 2);
    let scaled = h.map(|x| x * half * rest);
    let target: Vec<f64> = f.iter().map(|x| x * half * rest).collect();
    let mut l = match start {
        Some(start) if start.iter().any(|&x| x > 0.0) => {
            let largest = start.iter().copied().fold(0.0, f64::max);
            let mut l: Vec<f64> = start.iter().map(|x| x / largest).collect();
            let sum: f64 = l.iter().sum();
            l.iter_mut().for_each(|x| *x /= sum);
            l
        }
        _ => best_vertex(&scaled, &target),
    };
    let problem = Problem::new(&scaled, &target, Domain::Simplex);
    let iterations = if search { problem.solve(&mut l) } else { 0 };
    let g = problem.gradient(&l);
    let nu: f64 = g.iter().zip(&l).map(|(g, l)| g * l).sum();
    let least = g.iter().copied().fold(f64::INFINITY, f64::min);
    let on_support = g.iter().zip(&l).filter(|(_, l)| **l > 0.0);
    let spread = on_support.fold(0.0, |a: f64, (g, _)| a.max((g - nu).abs()));
    let linear: f64 = target.iter().zip(&l).map(|(f, l)| f * l).sum();
    let back = |x: f64| x / half / rest;
    SimplexSolution {
        weights: l,
        // ½ lᵀ H l - fᵀ l = ½ (g·l - f·l)
        objective: back(0.5 * (nu - linear)),
        multiplier: back(nu),
        kkt_residual: back(spread.max(nu - least)),
        // [PNTF 4] certified suboptimality
        gap: back((nu - least).max(0.0)),
        iterations,
    }
}

/// The least and the largest `dᵀ H d` of the `d` of length 1 that sum to 0, for `H` of two rows at least.
pub(crate) fn curvatures(h: &DMatrix<f64>) -> [f64; 2] {
    let values = face::eigen(face::reduced(h)).map(|eigen| eigen.eigenvalues);
    values.map_or([f64::NAN; 2], |values| [values.min(), values.max()])
}

/// Refuses a matrix with `dᵀ H d < 0` for a `d` that sums to 0.
fn check_convex(h: &DMatrix<f64>) -> Result<(), QpError> {
    /// A negative eigenvalue within this part of the largest one is rounding.
    const ROUNDING: f64 = 1e-12;
    let largest = h.amax();
    if h.ncols() < 2 || largest <= 0.0 || Cholesky::new(h / largest).is_some() {
        return Ok(());
    }
    let Some(eigen) = face::eigen(face::reduced(&(h / largest))) else {
        return Ok(());
    };
    let (at, least) = eigen.eigenvalues.argmin();
    if least >= -ROUNDING * eigen.eigenvalues.amax().max(1.0) {
        return Ok(());
    }
    let direction = face::helmert(h.ncols()) * eigen.eigenvectors.column(at);
    Err(QpError::Indefinite {
        direction: direction.iter().copied().collect(),
        curvature: least * largest,
    })
}

fn check(h: &DMatrix<f64>, f: &[f64], start: Option<&[f64]>) -> Result<(), QpError> {
    let k = f.len();
    if k == 0 {
        return Err(QpError::Empty);
    }
    if h.shape() != (k, k) {
        return Err(QpError::Shape {
            name: "h",
            got: vec![h.nrows(), h.ncols()],
            expected: vec![k, k],
        });
    }
    let finite = |name: &'static str, values: &[f64], signed: bool| match (values.iter())
        .position(|x| !(x.is_finite() && (signed || *x >= 0.0)))
    {
        Some(i) => Err(QpError::Value {
            name,
            index: vec![i],
            value: values[i],
        }),
        None => Ok(()),
    };
    finite("f", f, true)?;
    let tol = 1e-12 * h.amax();
    for row in 0..k {
        for column in 0..k {
            let (upper, lower) = (h[(row, column)], h[(column, row)]);
            if !upper.is_finite() {
                return Err(QpError::Value {
                    name: "h",
                    index: vec![row, column],
                    value: upper,
                });
            }
            if lower.is_finite() && (upper - lower).abs() > tol {
                return Err(QpError::Asymmetric {
                    row,
                    column,
                    upper,
                    lower,
                });
            }
        }
    }
    if let Some(start) = start {
        if start.len() != k {
            return Err(QpError::Shape {
                name: "start",
                got: vec![start.len()],
                expected: vec![k],
            });
        }
        finite("start", start, false)?;
    }
    Ok(())
}

/// [PNTF 4] the best vertex: `argmin H_jj/2 - f_j`.
pub(crate) fn best_vertex(h: &DMatrix<f64>, f: &[f64]) -> Vec<f64> {
    let value = |j: usize| 0.5 * h[(j, j)] - f[j];
    let best = (1..f.len()).fold(0, |a, b| if value(b) < value(a) { b } else { a });
    let mut l = vec![0.0; f.len()];
    l[best] = 1.0;
    l
}
