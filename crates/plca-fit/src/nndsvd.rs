//! A start of matrix factorizations read off the leading singular vectors of the data.

use nalgebra::DMatrix;
use plca_dist::random::uniform;
use plca_tensor::arrange::Products;
use plca_tensor::{Real, exponent};
use rand::Rng;

use super::{FitError, Progress, in_unit};

/// The values of the entries that [`Init::nndsvd`](super::Init::nndsvd) leaves at 0. Multiplicative updates never move an entry from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fill {
    /// They stay 0.
    #[default]
    Zero,
    /// The mean of the observed cells.
    Mean,
    /// Numbers drawn uniformly between 0 and a hundredth of that mean.
    Random,
}

/// Vectors that are found beyond those that are wanted.
const MORE: usize = 10;
/// Multiplications by `V Vᵀ`: each brings the vectors nearer to the leading ones by the square of the ratio of their singular values.
const POWERS: usize = 7;
/// Products of the data with all vectors, each a step of the work.
const PRODUCTS: usize = 2 * POWERS + 2;
/// Iterations of the decomposition of a small matrix at most; it takes a few for every value.
const SWEEPS: usize = 100_000;
/// Entries below this share of the largest one of their factor are taken for 0.
const FAINT: f64 = 1e-6;

/// Two non-negative factors `W`, `I x K`, and `H`, `K x J`, from the `K` leading singular vectors of a matrix.
///
/// ```math
/// V \approx \sum_z \sigma_z u_z v_z^\top,
/// \qquad W_z H_z = \sigma_z m_z \frac{u_z^\pm (v_z^\pm)^\top}{\lVert u_z^\pm \rVert \, \lVert v_z^\pm \rVert},
/// \qquad m_z = \lVert u_z^\pm \rVert \, \lVert v_z^\pm \rVert
/// ```
///
/// `u⁺` are the positive entries of a vector and `u⁻` the negated negative ones; of the two signs the one with the larger `m` is taken, and of the
/// first pair, which has one sign where the data have, the absolute values. Both factors take the square root of the scale. (Boutsidis and
/// Gallopoulos 2008.)
///
/// Hidden cells count as the mean of the observed ones, of which there are `observed`. The vectors are those of a random subspace of `K + 10` dimensions
/// after 7 multiplications by `V Vᵀ` (Halko, Martinsson and Tropp 2011), exact where a side of the matrix has no more. The generator gives the subspace column after
/// column, then what [`Fill::Random`] needs, `W` first.
///
/// Cost: 16 products of the data with `K + 10` vectors, and `O((I + J) (K + 10)²)`.
///
/// # Errors
///
/// [`FitError::Conflict`] for data that are not a matrix and for more components than it has rows or columns, [`FitError::NotFinite`] where products
/// overflow.
#[doc(hidden)]
pub fn nndsvd<T: Real>(
    data: &Products<'_, T>,
    observed: f64,
    components: usize,
    fill: Fill,
    rng: &mut dyn Rng,
    progress: &mut Progress<'_>,
) -> Result<[DMatrix<T>; 2], FitError> {
    let &[rows, columns] = data.shape() else {
        let order = data.shape().len();
        let what = format!("the start `nndsvd` is for matrices, the data have order {order}");
        return Err(FitError::Conflict { what });
    };
    let most = rows.min(columns);
    if components > most {
        let what = format!(
            "the start `nndsvd` has at most {most} components for a matrix of {rows} x {columns}, not {components}"
        );
        return Err(FitError::Conflict { what });
    }
    let mean = data.total() / data.scale() / observed;
    let [u, v] = leading(data, mean, components, rng, progress)?;
    let (mut w, mut h) = (
        DMatrix::<f64>::zeros(rows, components),
        DMatrix::<f64>::zeros(components, columns),
    );
    for z in 0..components {
        let (u, v) = (u.column(z), v.column(z));
        let [(u, v), (other_u, other_v)] = match z {
            0 => [(u.abs(), v.abs()), (u.abs(), v.abs())],
            _ => [1.0, -1.0].map(|s| (u.map(|x| (s * x).max(0.0)), v.map(|x| (s * x).max(0.0)))),
        };
        let (size, other) = (u.norm() * v.norm(), other_u.norm() * other_v.norm());
        let (u, v, size) = match size >= other {
            true => (u, v, size),
            false => (other_u, other_v, other),
        };
        if size > 0.0 {
            let scale = size.sqrt();
            w.set_column(z, &(&u * (scale / u.norm())));
            h.set_row(z, &(v.transpose() * (scale / v.norm())));
        }
    }
    let mut filled = |mut factor: DMatrix<f64>| {
        let least = FAINT * factor.max();
        for x in factor.iter_mut().filter(|x| **x <= least) {
            *x = match fill {
                Fill::Zero => 0.0,
                Fill::Mean => mean.abs(),
                Fill::Random => 0.01 * mean.abs() * uniform(rng),
            };
        }
        factor.map(T::lit)
    };
    Ok([filled(w), filled(h)])
}

/// The leading singular vectors, in columns, each times the root of its value.
fn leading<T: Real>(
    data: &Products<'_, T>,
    mean: f64,
    components: usize,
    rng: &mut dyn Rng,
    progress: &mut Progress<'_>,
) -> Result<[DMatrix<f64>; 2], FitError> {
    let (rows, columns) = (data.shape()[0], data.shape()[1]);
    let size = (components + MORE).min(rows).min(columns);
    // The data, hidden cells filled, times vectors along one mode, and divided by an even power of two: `qr` squares what it is given.
    let mut products = 0..;
    let mut times = |mode: usize, vectors: &DMatrix<f64>| {
        progress.step(products.next().unwrap_or(PRODUCTS), PRODUCTS)?;
        let product = product(data, mean, mode, vectors);
        match product.iter().find(|x| !x.is_finite()) {
            Some(&value) => Err(FitError::NotFinite {
                what: "a product of the data with singular vectors".into(),
                value,
            }),
            None => {
                let unit = exponent(product.amax()) / 2;
                Ok((in_unit(&product, -2 * unit), unit))
            }
        }
    };
    let drawn = DMatrix::from_fn(columns, size, |_, _| 2.0 * uniform(rng) - 1.0);
    let mut q = times(0, &drawn)?.0.qr().q();
    for _ in 0..POWERS {
        let right = times(1, &q)?.0.qr().q();
        q = times(0, &right)?.0.qr().q();
    }
    // V ≈ Q (Vᵀ Q)ᵀ, and Vᵀ Q = P R: what is on the left of R belongs to the right of V.
    let (product, unit) = times(1, &q)?;
    let (p, r) = product.qr().unpack();
    let [right, left] = singular(&r).ok_or_else(|| FitError::Conflict {
        what: "the singular vectors of the data were not found: expected another start".into(),
    })?;
    Ok([q * left, p * right].map(|vectors| in_unit(&vectors, unit)))
}

/// The singular vectors of a square matrix, left and right, in columns, each times the root of its value; largest values first.
///
/// They are the eigenvectors of `[0 R; Rᵀ 0]` for positive values. `svd` of `nalgebra` (0.35) has no correct digit for some matrices of low rank.
fn singular(r: &DMatrix<f64>) -> Option<[DMatrix<f64>; 2]> {
    let n = r.nrows();
    let mut both = DMatrix::zeros(2 * n, 2 * n);
    both.view_mut((0, n), (n, n)).copy_from(r);
    both.view_mut((n, 0), (n, n)).copy_from(&r.transpose());
    let eigen = both.try_symmetric_eigen(5.0 * f64::EPSILON, SWEEPS)?;
    let mut order: Vec<usize> = (0..2 * n).collect();
    order.sort_by(|&a, &b| eigen.eigenvalues[b].total_cmp(&eigen.eigenvalues[a]));
    let side = |first: usize| {
        DMatrix::from_fn(n, n, |i, z| {
            let root = (2.0 * eigen.eigenvalues[order[z]].max(0.0)).sqrt();
            root * eigen.eigenvectors[(first + i, order[z])]
        })
    };
    Some([side(0), side(n)])
}

/// The data in their own units, hidden cells as the mean, times vectors along one mode.
fn product<T: Real>(
    data: &Products<'_, T>,
    mean: f64,
    mode: usize,
    vectors: &DMatrix<f64>,
) -> DMatrix<f64> {
    let (size, n) = (vectors.ncols(), data.shape()[mode]);
    let scale = 1.0 / data.scale();
    let vectors = vectors.map(T::lit);
    let factors = |own: DMatrix<T>, other: DMatrix<T>| match mode {
        0 => [own, other],
        _ => [other, own],
    };
    if data.is_complete() {
        return data.mttkrp(&factors(DMatrix::zeros(n, size), vectors), mode) * scale;
    }
    // One component more, which is the mean everywhere, fills the hidden cells.
    let ones = |n| DMatrix::from_element(n, 1, T::one());
    let mut own = DMatrix::zeros(n, size + 1);
    own.set_column(size, &ones(n).column(0));
    let mut other = vectors.insert_column(size, T::zero());
    let others = other.nrows();
    other.set_column(size, &ones(others).column(0));
    let mut weights = vec![T::zero(); size + 1];
    weights[size] = T::lit(mean);
    let (product, _) = data.completed_mttkrp(scale, &weights, &factors(own, other), mode);
    product.remove_column(size)
}
