//! Updates inside one mode, column after column.

use nalgebra::{DMatrix, DMatrixViewMut};
use plca_tensor::Real;
use plca_tensor::parallel::for_each_part;

use crate::projection::Projector;

/// Columns whose changes are applied to the later ones together, by one matrix product.
const BLOCK: usize = 8;

/// Values that one thread takes at a time.
const PART: usize = 1 << 14;
/// Multiplications and additions of a product that are worth another thread.
const WORTH: usize = 1 << 23;
/// Columns of a part of a product at least: every part packs the left factor anew.
const WIDE: usize = 32;

/// A factor in double precision.
pub(crate) fn widen<T: Real>(m: &DMatrix<T>) -> DMatrix<f64> {
    let mut wide = DMatrix::zeros(m.nrows(), m.ncols());
    for_each_part(wide.as_mut_slice(), PART, |part, wide| {
        let from = &m.as_slice()[part * PART..];
        wide.iter_mut()
            .zip(from)
            .for_each(|(w, &x)| *w = x.to_f64());
    });
    wide
}

/// Adds `scale A B` to `c`, in parts of some columns.
fn add_product(c: &mut [f64], scale: f64, a: &DMatrix<f64>, b: &DMatrix<f64>) {
    let (rows, k) = a.shape();
    let most = WORTH.div_ceil(2 * rows * k).max(WIDE);
    // Even parts: a narrow one would be multiplied column by column.
    let even = b.ncols().div_ceil(b.ncols().div_ceil(most));
    let width = even.next_multiple_of(8);
    for_each_part(c, rows * width, |part, c| {
        let columns = c.len() / rows;
        let mut c = DMatrixViewMut::from_slice(c, rows, columns);
        c.gemm(scale, a, &b.columns(part * width, columns), 1.0);
    });
}

/// `Uᵀ U`.
pub(crate) fn gram(u: &DMatrix<f64>) -> DMatrix<f64> {
    let k = u.ncols();
    let mut g = DMatrix::zeros(k, k);
    // A blocked product with a transposed copy: `tr_mul` is one dot product after the other.
    add_product(g.as_mut_slice(), 1.0, &u.transpose(), u);
    // Symmetric to the bit.
    for j in 0..g.ncols() {
        for i in 0..j {
            g[(j, i)] = g[(i, j)];
        }
    }
    g
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
    add_product(n.as_mut_slice(), -1.0, u, &scaled);
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
            let column = u.column(t);
            for ((b, n), u) in b.iter_mut().zip(n.column(t).iter()).zip(column.iter()) {
                *b = n + rho * u;
            }
            if !replace(t, &mut b, rho) {
                continue;
            }
            let mut moved = change.column_mut(t - first);
            for ((d, &b), u) in moved.iter_mut().zip(&b).zip(u.column_mut(t).iter_mut()) {
                *d = b - *u;
                *u = b;
            }
            for later in t + 1..last {
                let factor = -w[t] * gamma[(t, later)];
                n.column_mut(later)
                    .axpy(factor, &change.column(t - first), 1.0);
            }
        }
        if last < k {
            let onto = DMatrix::from_fn(last - first, k - last, |i, j| {
                w[first + i] * gamma[(first + i, last + j)]
            });
            add_product(&mut n.as_mut_slice()[last * rows..], -1.0, &change, &onto);
        }
    }
}

/// [`descend`] with every column on the simplex. Components of weight 0 are left alone, or, to `revive` them, put where
/// the residual is largest; the objective does not depend on them.
pub(crate) fn descend_on_simplex(
    u: &mut DMatrix<f64>,
    m: &DMatrix<f64>,
    gamma: &DMatrix<f64>,
    w: &[f64],
    revive: bool,
    projector: &mut Projector,
) {
    descend(u, m, gamma, w, |t, b, rho| {
        if w[t] <= 0.0 && !revive {
            return false;
        }
        // [HS alg. 1] [PNTF 2] the projection of num / ρ, without forming that quotient
        projector.project(b, rho);
        true
    });
}
