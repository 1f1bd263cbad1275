//! The equality problem on one face of the domain.

use nalgebra::{Cholesky, DMatrix, DVector, SymmetricEigen};

use super::search::Domain;

/// Where to go on a face.
pub(super) struct Step {
    /// One number for every coordinate of the support; on the simplex they sum to 0.
    pub(super) direction: Vec<f64>,
    /// Whether the objective falls for ever along it.
    pub(super) unbounded: bool,
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
    if slope.amax() <= 0.25 * tol {
        return None;
    }
    let face = DMatrix::from_fn(s, s, |i, j| h[(support[i], support[j])]);
    by_cholesky(&face, &slope, domain).or_else(|| by_eigenvalues(&face, slope, domain, tol))
}

/// [PNTF 4] `H d + g = ν 1`; on the simplex with `1ᵀ d = 0`, the bordered system, else with `ν = 0`.
fn by_cholesky(face: &DMatrix<f64>, slope: &DVector<f64>, domain: Domain) -> Option<Step> {
    let s = slope.len();
    let cholesky = Cholesky::new(face.clone())?;
    let pivots = cholesky.l_dirty().diagonal();
    if pivots.min().powi(2) < SINGULAR * face.diagonal().max() {
        return None;
    }
    let mut direction = -cholesky.solve(slope);
    if domain == Domain::Simplex {
        let along_ones = cholesky.solve(&DVector::from_element(s, 1.0));
        let nu = -direction.sum() / along_ones.sum();
        direction += along_ones * nu;
        direction.add_scalar_mut(-direction.sum() / s as f64);
    }
    Some(Step {
        direction: direction.iter().copied().collect(),
        unbounded: false,
    })
}

/// Helmert's orthonormal basis of `{d : Σ d = 0}`: column `j` is `(1, ..., 1, -j, 0, ...)/√(j(j+1))`.
pub(super) fn helmert(s: usize) -> DMatrix<f64> {
    DMatrix::from_fn(s, s - 1, |i, j| {
        let n = (j + 1) as f64;
        let norm = (n * (n + 1.0)).sqrt();
        match i.cmp(&(j + 1)) {
            std::cmp::Ordering::Less => 1.0 / norm,
            std::cmp::Ordering::Equal => -n / norm,
            std::cmp::Ordering::Greater => 0.0,
        }
    })
}

/// [PNTF 4] in an orthonormal basis `Z` of the directions allowed: `(Zᵀ H Z) y = -Zᵀ g` by eigendecomposition.
fn by_eigenvalues(
    face: &DMatrix<f64>,
    slope: DVector<f64>,
    domain: Domain,
    tol: f64,
) -> Option<Step> {
    let s = slope.len();
    let z = match domain {
        Domain::Simplex => helmert(s),
        Domain::Orthant => DMatrix::identity(s, s),
    };
    let reduced = z.transpose() * face * &z;
    let symmetric = (&reduced + reduced.transpose()) * 0.5;
    let eigen = SymmetricEigen::new(symmetric);
    let slopes = eigen.eigenvectors.transpose() * (z.transpose() * slope);
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
    let direction = z * (&eigen.eigenvectors * y);
    (direction.amax() > 0.0).then(|| Step {
        direction: direction.iter().copied().collect(),
        unbounded,
    })
}
