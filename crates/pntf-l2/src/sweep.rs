//! Updates inside one mode, column after column.

use nalgebra::{DMatrix, DMatrixView, DMatrixViewMut};
use plca_fit::{FitError, blocks::check_room};
use plca_tensor::Real;
use plca_tensor::parallel::{both, wide};

use crate::projection::Projector;

/// Columns whose changes are applied to the later ones together, by one matrix product.
const BLOCK: usize = 8;

/// Multiplications of a product that are worth another thread.
const WORTH: usize = 1 << 19;
/// Rows or columns of a part of a product at least: every part packs the other factor anew.
const LEAST: usize = 16;
/// Rows and columns of the library's tiles.
const TILE: usize = 8;

/// Refuses components whose products with each other, in all modes, no memory holds.
pub(crate) fn check_grams(components: usize, modes: usize) -> Result<(), FitError> {
    let each = components.checked_mul(components);
    check_room::<f64>(
        components,
        each.and_then(|each| each.checked_mul(modes + 2)),
    )
}

/// A factor in double precision.
pub(crate) fn widen<T: Real>(m: &DMatrix<T>) -> DMatrix<f64> {
    m.map(|x| x.to_f64())
}

type View<'a> = DMatrixView<'a, f64>;
type ViewMut<'a> = DMatrixViewMut<'a, f64>;

/// Adds `scale A B` to `c`, in halves of the longer side as long as they are worth it.
fn add_product(mut c: ViewMut<'_>, scale: f64, a: View<'_>, b: View<'_>) {
    let ((rows, columns), inner) = (c.shape(), a.ncols());
    let longer = rows.max(columns);
    if longer < 2 * LEAST || rows * columns * inner < 2 * WORTH {
        c.gemm(scale, &a, &b, 1.0);
        return;
    }
    let half = (longer / 2 + TILE / 2) / TILE * TILE;
    if rows == longer {
        let (top, bottom) = c.rows_range_pair_mut(..half, half..);
        both(
            || add_product(top, scale, a.rows(0, half), b),
            || add_product(bottom, scale, a.rows(half, rows - half), b),
        );
    } else {
        let (left, right) = c.columns_range_pair_mut(..half, half..);
        both(
            || add_product(left, scale, a, b.columns(0, half)),
            || add_product(right, scale, a, b.columns(half, columns - half)),
        );
    }
}

/// `Uᵀ U`.
pub(crate) fn gram(u: &DMatrix<f64>) -> DMatrix<f64> {
    let k = u.ncols();
    let mut g = DMatrix::<f64>::zeros(k, k);
    // A blocked product with a transposed copy: `tr_mul` is one dot product after the other.
    let transposed = u.transpose();
    add_product(g.as_view_mut(), 1.0, transposed.as_view(), u.as_view());
    // Symmetric to the bit.
    g.fill_lower_triangle_with_upper_triangle();
    g
}

/// [`gram`] of every factor.
pub(crate) fn grams<T: Real>(factors: &[DMatrix<T>]) -> Vec<DMatrix<f64>> {
    factors.iter().map(|f| gram(&widen(f))).collect()
}

/// Hadamard product of all Grams, or of all but one.
pub(crate) fn hadamard(grams: &[DMatrix<f64>], but: Option<usize>) -> DMatrix<f64> {
    let k = grams[0].ncols();
    let mut product = DMatrix::from_element(k, k, 1.0);
    for (_, g) in grams.iter().enumerate().filter(|&(m, _)| Some(m) != but) {
        product.component_mul_assign(g);
    }
    product
}

/// `Σ_i M[i,j] U[i,j]` for every component: the data contracted with it.
pub(crate) fn contracted(m: &DMatrix<f64>, u: &DMatrix<f64>) -> Vec<f64> {
    let columns = m.column_iter().zip(u.column_iter());
    columns.map(|(m, u)| m.dot(&u)).collect()
}

/// `M - U diag(w) Γ`: what the residual gives when it is contracted with every component's other modes.
pub(crate) fn residual_products(
    m: &DMatrix<f64>,
    u: &DMatrix<f64>,
    gamma: &DMatrix<f64>,
    w: &[f64],
) -> DMatrix<f64> {
    let mut scaled = gamma.clone();
    for (mut row, &w) in scaled.row_iter_mut().zip(w) {
        row *= w;
    }
    let mut n = m.clone();
    add_product(n.as_view_mut(), -1.0, u.as_view(), scaled.as_view());
    n
}

/// One pass of block coordinate descent over the columns of `u`.
///
/// For each column `t` in turn `replace(t, b, ρ)` receives `b = M[:,t] - Σ_{j≠t} w_j Γ[j,t] u_j` and `ρ = w_t Γ[t,t]`,
/// both with the newest columns, and puts the new column in place of `b`; `false` keeps the old one.
pub(crate) fn descend(
    u: &mut DMatrix<f64>,
    m: &DMatrix<f64>,
    gamma: &DMatrix<f64>,
    w: &[f64],
    mut replace: impl FnMut(usize, &mut [f64], f64) -> bool,
) {
    let (rows, k) = u.shape();
    let mut n = residual_products(m, u, gamma, w);
    let mut b = vec![0.0; rows];
    for first in (0..k).step_by(BLOCK) {
        let last = (first + BLOCK).min(k);
        let mut change = DMatrix::<f64>::zeros(rows, last - first);
        for t in first..last {
            // [PNTF 2] num = M_r[:,t] - Σ_{j≠t} λ_j Γ[j,t] U_r[:,j]
            let rho = w[t] * gamma[(t, t)];
            let at = |column: usize| column * rows..(column + 1) * rows;
            let residual = &n.as_slice()[at(t)];
            let column = &mut u.as_mut_slice()[at(t)];
            wide(
                #[inline(always)]
                || {
                    for ((b, n), u) in b.iter_mut().zip(residual).zip(&*column) {
                        *b = n + rho * u;
                    }
                },
            );
            if !replace(t, &mut b, rho) {
                continue;
            }
            let later = &mut n.as_mut_slice()[(t + 1) * rows..];
            let moved = &mut change.as_mut_slice()[at(t - first)];
            let gammas = gamma.row(t);
            wide(
                #[inline(always)]
                || {
                    for ((d, &b), u) in moved.iter_mut().zip(&b).zip(column) {
                        *d = b - *u;
                        *u = b;
                    }
                    let columns = later.chunks_exact_mut(rows).zip(t + 1..last);
                    for (later, column) in columns {
                        let factor = -w[t] * gammas[column];
                        for (n, &d) in later.iter_mut().zip(&*moved) {
                            *n += factor * d;
                        }
                    }
                },
            );
        }
        if last < k {
            let onto = DMatrix::from_fn(last - first, k - last, |i, j| {
                w[first + i] * gamma[(first + i, last + j)]
            });
            let later = n.columns_mut(last, k - last);
            add_product(later, -1.0, change.as_view(), onto.as_view());
        }
    }
}

/// [`descend`] with every column on the simplex. Components that are `kept` stay as they are, and so do those of weight 0, or, to `revive`
/// them, they are put where the residual is largest; the objective does not depend on them. `reward` is what sparsity takes off the curvature.
pub(crate) fn descend_on_simplex(
    u: &mut DMatrix<f64>,
    m: &DMatrix<f64>,
    gamma: &DMatrix<f64>,
    w: &[f64],
    kept: &[bool],
    (revive, reward): (bool, f64),
    projector: &mut Projector,
) {
    descend(u, m, gamma, w, |t, b, rho| {
        if kept.get(t) == Some(&true) || (w[t] <= 0.0 && !revive) {
            return false;
        }
        put_on_simplex(b, rho, reward, projector);
        true
    });
}

/// The column on the simplex that minimises `(ρ - r)/2 |u|² - b·u`, in place of `b`.
fn put_on_simplex(b: &mut [f64], rho: f64, reward: f64, projector: &mut Projector) {
    // [EXT 8] ρ' = ρ - 2 μ
    let curvature = rho - reward;
    if reward <= 0.0 || curvature > 0.0 {
        // [HS alg. 1] [PNTF 2] the projection of num / ρ, without forming that quotient
        return projector.project(b, curvature);
    }
    // [EXT 8] concave: the vertex of the first largest entry
    let first = (1..b.len()).fold(0, |best, i| if b[i] > b[best] { i } else { best });
    b.fill(0.0);
    b[first] = 1.0;
}

#[cfg(test)]
mod tests {
    use super::*;

    // [EXT 8]
    #[test]
    fn sparse_columns_match_the_reference() {
        let golden = include_str!("../../testdata/golden/quadratic_sparsity.json");
        let golden: serde_json::Value = serde_json::from_str(golden).unwrap();
        let cases = golden["cases"].as_array().unwrap().iter();
        let mut checked = 0;
        for case in cases.filter(|case| case["kind"] == "column") {
            let list = |name: &str| -> Vec<f64> {
                let data = case[name]["data"].as_array().unwrap().iter();
                data.map(|x| x.as_f64().unwrap()).collect()
            };
            let number = |name: &str| case[name].as_f64().unwrap();
            let (mut u, rho, reward) = (list("num"), number("rho"), 2.0 * number("mu"));
            put_on_simplex(&mut u, rho, reward, &mut Projector::default());
            for (u, want) in u.iter().zip(list("u")) {
                let far = (u - want).abs();
                assert!(far <= number("tolerance"), "{}: {u} {want}", case["name"]);
            }
            checked += 1;
        }
        assert_eq!(checked, 7);
    }
}
