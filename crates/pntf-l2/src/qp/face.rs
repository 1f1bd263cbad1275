//! The equality problem on one face of the domain.

use nalgebra::{Cholesky, DMatrix, DVector, Dyn, SymmetricEigen};

use super::search::Domain;

/// Where to go on a face.
pub(super) struct Step {
    /// One number for every coordinate of the support; on the simplex they sum to 0.
    pub(super) direction: Vec<f64>,
    /// Whether the objective falls for ever along it.
    pub(super) unbounded: bool,
    /// The largest slope that there was, in size.
    pub(super) slope: f64,
}

/// A pivot below this part of the largest one counts as singular.
const SINGULAR: f64 = 1e-12;
/// An eigenvalue below this part of the largest one counts as 0.
const FLAT: f64 = 1e-14;

/// `argmin ½ dᵀ H d + gᵀ d`, on the simplex with `Σ d = 0`, all on `support`; `None` if there is nothing to gain.
pub(super) fn direction(
    h: &DMatrix<f64>,
    support: &[usize],
    g: &[f64],
    domain: Domain,
    tol: f64,
) -> Option<Step> {
    let s = support.len();
    // With the mean removed the solution on the simplex is the same and the cancellation smaller.
    let mean = match domain {
        Domain::Simplex => g.iter().sum::<f64>() / s as f64,
        Domain::Orthant => 0.0,
    };
    let slope = DVector::from_iterator(s, g.iter().map(|g| g - mean));
    let largest = slope.amax();
    if largest <= 0.25 * tol {
        return None;
    }
    let face = DMatrix::from_fn(s, s, |i, j| h[(support[i], support[j])]);
    // [PNTF 4] `H d + g = ν 1` with `1ᵀ d = 0` on the simplex, in a basis of such `d`; else with `ν = 0`
    let solve = |h: DMatrix<f64>, g: DVector<f64>| match by_cholesky(&h, &g) {
        Some(y) => Some((y, false)),
        None => by_eigenvalues(h, &g, tol),
    };
    let (direction, unbounded) = match domain {
        Domain::Simplex => {
            let z = helmert(s);
            let (y, unbounded) = solve(reduced(&face), z.tr_mul(&slope))?;
            (z * y, unbounded)
        }
        Domain::Orthant => solve(face, slope)?,
    };
    (direction.amax() > 0.0).then(|| Step {
        direction: direction.iter().copied().collect(),
        unbounded,
        slope: largest,
    })
}

fn by_cholesky(h: &DMatrix<f64>, g: &DVector<f64>) -> Option<DVector<f64>> {
    let cholesky = Cholesky::new(h.clone())?;
    let pivots = cholesky.l_dirty().diagonal();
    let singular = pivots.min().powi(2) < SINGULAR * h.diagonal().max();
    (!singular).then(|| -cholesky.solve(g))
}

/// `M Z` with Helmert's orthonormal basis of `{d : Σ d = 0}`: column `j` of `Z` is `(1, ..., 1, -j, 0, ...)/√(j(j+1))`. Cost: that of a
/// copy, as columns are running sums.
fn times_helmert(m: &DMatrix<f64>) -> DMatrix<f64> {
    let mut sum = DVector::zeros(m.nrows());
    let mut product = DMatrix::zeros(m.nrows(), m.ncols() - 1);
    for (j, mut column) in product.column_iter_mut().enumerate() {
        let n = (j + 1) as f64;
        sum += m.column(j);
        column.copy_from(&sum);
        column.axpy(-n, &m.column(j + 1), 1.0);
        column /= (n * (n + 1.0)).sqrt();
    }
    product
}

pub(super) fn helmert(s: usize) -> DMatrix<f64> {
    times_helmert(&DMatrix::identity(s, s))
}

/// `Zᵀ H Z`, symmetric, bit for bit.
pub(super) fn reduced(h: &DMatrix<f64>) -> DMatrix<f64> {
    let reduced = times_helmert(&times_helmert(h).transpose());
    (&reduced + reduced.transpose()) * 0.5
}

/// Iterations of an eigenvalue decomposition at most; it takes a few for every value. Of what is not finite it would never end.
const ITERATIONS: usize = 100_000;

/// The eigenvalues of a symmetric matrix, if they are found.
pub(super) fn eigen(h: DMatrix<f64>) -> Option<SymmetricEigen<f64, Dyn>> {
    SymmetricEigen::try_new(h, f64::EPSILON, ITERATIONS)
}

fn by_eigenvalues(h: DMatrix<f64>, g: &DVector<f64>, tol: f64) -> Option<(DVector<f64>, bool)> {
    let eigen = eigen(h)?;
    let slopes = eigen.eigenvectors.tr_mul(g);
    let largest = eigen.eigenvalues.amax();
    let flat = |value: f64| value <= FLAT * largest.max(f64::MIN_POSITIVE);
    // A direction without curvature but with a slope is followed to the boundary, alone.
    let steep = |&i: &usize| flat(eigen.eigenvalues[i]) && slopes[i].abs() > tol;
    let unbounded = (0..slopes.len()).any(|i| steep(&i));
    let y = DVector::from_fn(slopes.len(), |i, _| {
        match (flat(eigen.eigenvalues[i]), unbounded) {
            (true, true) if slopes[i].abs() > tol => -slopes[i],
            (true, _) | (false, true) => 0.0,
            (false, false) => -slopes[i] / eigen.eigenvalues[i],
        }
    });
    Some((&eigen.eigenvectors * y, unbounded))
}
