//! The equality problem on one face of the simplex.

use nalgebra::{Cholesky, DMatrix, DVector, SymmetricEigen};

/// Where to go on a face.
pub(super) struct Step {
    /// One number for every coordinate of the support; they sum to 0.
    pub(super) direction: Vec<f64>,
    /// Whether the objective falls for ever along it.
    pub(super) unbounded: bool,
}

/// A pivot below this part of the largest one counts as singular.
const SINGULAR: f64 = 1e-12;
/// An eigenvalue below this part of the largest one counts as 0.
const FLAT: f64 = 1e-14;

/// `argmin ½ dᵀ H d + gᵀ d` with `Σ d = 0`, all on `support`; `None` if there is nothing to gain.
pub(super) fn direction(h: &DMatrix<f64>, support: &[usize], g: &[f64], tol: f64) -> Option<Step> {
    let s = support.len();
    let mean = g.iter().sum::<f64>() / s as f64;
    let spread = g.iter().fold(0.0, |a: f64, g| a.max((g - mean).abs()));
    if spread <= 0.25 * tol {
        return None;
    }
    let face = DMatrix::from_fn(s, s, |i, j| h[(support[i], support[j])]);
    bordered(&face, g, mean).or_else(|| eigenbasis(&face, g, mean, tol))
}

/// [PNTF 4] the bordered system by Cholesky: `H d + g = ν 1`, `1ᵀ d = 0`.
fn bordered(face: &DMatrix<f64>, g: &[f64], mean: f64) -> Option<Step> {
    let s = g.len();
    let cholesky = Cholesky::new(face.clone())?;
    let pivots = cholesky.l_dirty().diagonal();
    if pivots.min().powi(2) < SINGULAR * face.diagonal().max() {
        return None;
    }
    // With the mean removed the solution is the same and the cancellation smaller.
    let centred = DVector::from_iterator(s, g.iter().map(|g| g - mean));
    let along_g = cholesky.solve(&centred);
    let along_ones = cholesky.solve(&DVector::from_element(s, 1.0));
    let nu = along_g.sum() / along_ones.sum();
    let direction: Vec<f64> = (along_ones * nu - along_g).iter().copied().collect();
    let sum: f64 = direction.iter().sum();
    Some(Step {
        direction: direction.iter().map(|d| d - sum / s as f64).collect(),
        unbounded: false,
    })
}

/// [PNTF 4] in an orthonormal basis `Z` of `{d : Σ d = 0}`: `(Zᵀ H Z) y = -Zᵀ g` by eigendecomposition.
fn eigenbasis(face: &DMatrix<f64>, g: &[f64], mean: f64, tol: f64) -> Option<Step> {
    let s = g.len();
    // Helmert's basis: column j is (1, ..., 1, -j, 0, ...)/√(j(j+1)).
    let z = DMatrix::from_fn(s, s - 1, |i, j| {
        let n = (j + 1) as f64;
        let norm = (n * (n + 1.0)).sqrt();
        match i.cmp(&(j + 1)) {
            std::cmp::Ordering::Less => 1.0 / norm,
            std::cmp::Ordering::Equal => -n / norm,
            std::cmp::Ordering::Greater => 0.0,
        }
    });
    let reduced = z.transpose() * face * &z;
    let symmetric = (&reduced + reduced.transpose()) * 0.5;
    let centred = DVector::from_iterator(s, g.iter().map(|g| g - mean));
    let eigen = SymmetricEigen::new(symmetric);
    let slopes = eigen.eigenvectors.transpose() * (z.transpose() * centred);
    let largest = eigen.eigenvalues.amax();
    let flat = |value: f64| value <= FLAT * largest.max(f64::MIN_POSITIVE);
    // A direction without curvature but with a slope is followed to the boundary, alone.
    let steep = |&i: &usize| flat(eigen.eigenvalues[i]) && slopes[i].abs() > tol;
    let unbounded = (0..s - 1).any(|i| steep(&i));
    let y = DVector::from_fn(s - 1, |i, _| {
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
