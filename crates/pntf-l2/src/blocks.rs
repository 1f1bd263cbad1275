//! What the models share: given, frozen and extrapolated blocks.

use nalgebra::DMatrix;
use plca_fit::{
    FitError, Parameters,
    blocks::{Axis, BlockSpec, Constraint, Frozen},
};
use plca_tensor::arrange::Products;
use plca_tensor::{Data, DataError, Real};

use crate::QpError;
use crate::projection::Projector;
use crate::qp::{best_vertex, curvatures, gram_qp};

/// Refuses data with hidden cells.
pub(crate) fn check_complete<T: Real>(data: &Products<'_, T>, what: &str) -> Result<(), FitError> {
    match data.is_complete() {
        true => Ok(()),
        false => Err(FitError::Conflict {
            what: format!("{what} needs complete data, some cells are hidden"),
        }),
    }
}

/// Refuses data with negative cells.
pub(crate) fn check_signs<T: Real>(data: &dyn Data<T>) -> Result<(), FitError> {
    match &data.summary().negative {
        None => Ok(()),
        Some((index, value)) => Err(FitError::Data(DataError::Negative {
            index: index.clone(),
            value: *value,
        })),
    }
}

/// Whether a squared error that was found as the difference of sums of this size has fewer digits than it should: ten, in single precision nearly five.
pub(crate) fn cancels<T: Real>(value: f64, size: f64) -> bool {
    let unit = T::EPSILON.to_f64();
    // Rounding makes an error of a few units of the sums.
    let least = 9.0 * unit / (168.0 * unit).max(1e-10);
    // Not a number is not enough either.
    value.partial_cmp(&(least * size)) != Some(std::cmp::Ordering::Greater)
}

/// The number itself, if it is one.
pub(crate) fn finite(what: &str, value: f64) -> Result<f64, FitError> {
    match value.is_finite() {
        true => Ok(value),
        false => Err(FitError::NotFinite {
            what: what.into(),
            value,
        }),
    }
}

/// Why weights could not be found: of a product of Gram matrices nothing but its size can be wrong.
pub(crate) fn unsolved(error: QpError) -> FitError {
    match error {
        QpError::Value { name, index, value } => FitError::NotFinite {
            what: format!("`{name}` at {index:?} of the problem of the weights"),
            value,
        },
        other => FitError::Conflict {
            what: other.to_string(),
        },
    }
}

/// Flags of the frozen components of every block, none where none is frozen.
///
/// # Errors
///
/// [`FitError::Conflict`] for frozen entries: columns are projected as a whole.
pub(crate) fn kept<T: Real>(specs: &[BlockSpec<T>]) -> Result<Vec<Vec<bool>>, FitError> {
    let flags = specs.iter().map(|spec| match spec.frozen {
        Frozen::Entries(_) => Err(FitError::Conflict {
            what: format!(
                "frozen entries of `{}`: under squared error blocks and components can be frozen",
                spec.name
            ),
        }),
        _ => Ok(spec.frozen_components()),
    });
    flags.collect()
}

pub(crate) fn is_kept(kept: &[bool], z: usize) -> bool {
    kept.get(z) == Some(&true)
}

/// What frozen entries leave of 1.
fn left(values: &[f64], kept: &[bool]) -> f64 {
    let frozen = values.iter().enumerate().filter(|&(z, _)| is_kept(kept, z));
    1.0 - frozen.map(|(_, x)| x).sum::<f64>()
}

/// A given value of a block on simplices, whose entries are as `allowed`. Distributions are not touched; a column that is not one is projected, one of
/// zeros becomes uniform. A frozen column keeps its shape: it is divided by its sum. Beside frozen entries the others are projected onto what is left. `[PNTF 1]`
///
/// # Errors
///
/// Those of [`BlockSpec::check_values`]; [`FitError::Empty`] for a frozen column of zeros, [`FitError::Conflict`] for frozen entries that sum to more than 1.
pub(crate) fn given<T: Real>(
    spec: &BlockSpec<T>,
    mut value: DMatrix<T>,
    allowed: Constraint,
) -> Result<DMatrix<T>, FitError> {
    let mut spec = spec.clone();
    spec.constraint = allowed;
    spec.check_values(&value)?;
    let close = 4.0 * T::EPSILON.to_f64() * value.nrows() as f64;
    let (frozen, mut projector) = (spec.frozen_components(), Projector::default());
    for (z, mut column) in value.column_iter_mut().enumerate() {
        let mut values: Vec<f64> = column.iter().map(|x| x.to_f64()).collect();
        let (sum, is_signed) = (values.iter().sum::<f64>(), values.iter().any(|&x| x < 0.0));
        if (sum - 1.0).abs() <= close && !is_signed {
            continue;
        }
        let (is_frozen, kept): (bool, &[bool]) = match spec.axes.components() {
            Axis::Columns => (is_kept(&frozen, z), &[]),
            _ => (spec.frozen == Frozen::Whole, &frozen),
        };
        if is_frozen && values.iter().all(|&x| x == 0.0) {
            return Err(FitError::Empty {
                block: spec.name.to_string(),
                column: z,
            });
        }
        if is_frozen && !is_signed && sum.is_finite() {
            values.iter_mut().for_each(|x| *x /= sum);
        } else if is_frozen {
            projector.project(&mut values, 1.0);
        } else {
            let left = left(&values, kept);
            if left < -1e-12_f64.max(close) {
                let (name, kept) = (&spec.name, 1.0 - left);
                let what = format!(
                    "frozen entries of column {z} of `{name}` sum to {kept}: expected at most 1"
                );
                return Err(FitError::Conflict { what });
            }
            let old: Vec<f64> = (0..values.len())
                .map(|i| if is_kept(kept, i) { values[i] } else { 0.0 })
                .collect();
            project(&mut projector, &mut values, |i| old[i], kept);
        }
        for (x, value) in column.iter_mut().zip(values) {
            *x = T::lit(value);
        }
    }
    Ok(value)
}

/// The weights on the simplex that minimise `½ lᵀ H l - fᵀ l - μ |l|²`, searched from the old ones. What is frozen keeps its weight; the
/// others share what is left.
pub(crate) fn weigh(
    h: &DMatrix<f64>,
    f: &[f64],
    old: &[f64],
    kept: &[bool],
    mu: f64,
) -> Result<Vec<f64>, FitError> {
    let free: Vec<usize> = (0..old.len()).filter(|&z| !is_kept(kept, z)).collect();
    if free.len() == old.len() {
        return sparse_qp(h, f, old, mu);
    }
    let mut weights = old.to_vec();
    let left = left(old, kept);
    if free.is_empty() || left <= 0.0 {
        return Ok(weights);
    }
    // [PNTF 4] on a smaller simplex: l = left m for what is free, and f less what the rest explains
    let rest = |i: usize| {
        let frozen = (0..old.len()).filter(|&j| is_kept(kept, j));
        f[i] - frozen.map(|j| h[(i, j)] * old[j]).sum::<f64>()
    };
    let k = free.len();
    let small = DMatrix::from_fn(k, k, |i, j| h[(free[i], free[j])] * left * left);
    let linear: Vec<f64> = free.iter().map(|&i| left * rest(i)).collect();
    let start: Vec<f64> = free.iter().map(|&i| old[i]).collect();
    let found = sparse_qp(&small, &linear, &start, mu * left * left)?;
    for (&z, m) in free.iter().zip(found) {
        weights[z] = left * m;
    }
    Ok(weights)
}

/// Weights on the simplex of an objective `½ lᵀ H l - fᵀ l - μ |l|²` that is at most that of the `old` ones, which are first divided by their
/// sum; the least where the function is convex, or concave.
fn sparse_qp(h: &DMatrix<f64>, f: &[f64], old: &[f64], mu: f64) -> Result<Vec<f64>, FitError> {
    if mu <= 0.0 || old.len() < 2 {
        return Ok(gram_qp(h, f, Some(old)).map_err(unsolved)?.weights);
    }
    let [least, largest] = curvatures(h);
    // [EXT 8] H - 2 μ I along the simplex: convex, concave, or neither
    if least > 2.0 * mu {
        let mut convex = h.clone();
        for i in 0..old.len() {
            convex[(i, i)] -= 2.0 * mu;
        }
        return Ok(gram_qp(&convex, f, Some(old)).map_err(unsolved)?.weights);
    }
    if largest <= 2.0 * mu {
        return Ok(best_vertex(h, f));
    }
    // [EXT 8] the concave part replaced by its tangent, which is above it
    let sum: f64 = old.iter().sum();
    let tangent = f.iter().zip(old).map(|(f, l)| f + 2.0 * mu * l / sum);
    let tangent: Vec<f64> = tangent.collect();
    Ok(gram_qp(h, &tangent, Some(old)).map_err(unsolved)?.weights)
}

/// Projects a column onto the simplex. What is frozen keeps its old value; the others are projected onto what is left.
pub(crate) fn project(
    projector: &mut Projector,
    values: &mut [f64],
    old: impl Fn(usize) -> f64,
    kept: &[bool],
) {
    let free: Vec<usize> = (0..values.len()).filter(|&z| !is_kept(kept, z)).collect();
    if free.len() == values.len() {
        return projector.project(values, 1.0);
    }
    for z in (0..values.len()).filter(|&z| is_kept(kept, z)) {
        values[z] = old(z);
    }
    let left = left(values, kept);
    if free.is_empty() || left <= 0.0 {
        return free.into_iter().for_each(|z| values[z] = old(z));
    }
    let mut some: Vec<f64> = free.iter().map(|&z| values[z]).collect();
    projector.project(&mut some, left);
    for (z, x) in free.into_iter().zip(some) {
        values[z] = left * x;
    }
}

/// Extrapolated parameters: columns on simplices are projected, those with a value that is not a number stay; a number that is not positive is
/// that of `last`.
pub(crate) fn extrapolated<T: Real>(
    specs: &[BlockSpec<T>],
    projector: &mut Projector,
    base: &Parameters<T>,
    flat: &[f64],
    last: &[f64],
) -> Parameters<T> {
    let mut at = base.clone();
    let mut place = 0;
    at.change(|j, block| {
        let spec = &specs[j];
        let values = place..place + block.len();
        place = values.end;
        if spec.frozen == Frozen::Whole {
            return;
        }
        let (values, last) = (&flat[values.clone()], &last[values]);
        if spec.constraint != Constraint::Simplex {
            for (x, (&new, &last)) in block.iter_mut().zip(values.iter().zip(last)) {
                let good = new > 0.0 && new.is_finite();
                *x = T::lit(if good { new } else { last });
            }
            return;
        }
        let (kept, rows) = (spec.frozen_components(), block.nrows());
        let columns = block.as_mut_slice().chunks_exact_mut(rows);
        for (t, (column, values)) in columns.zip(values.chunks_exact(rows)).enumerate() {
            let rows_kept: &[bool] = match spec.axes.components() {
                Axis::Columns if is_kept(&kept, t) => continue,
                Axis::Rows => &kept,
                _ => &[],
            };
            if values.iter().all(|x| x.is_finite()) {
                let mut values = values.to_vec();
                project(projector, &mut values, |z| column[z].to_f64(), rows_kept);
                column
                    .iter_mut()
                    .zip(values)
                    .for_each(|(c, x)| *c = T::lit(x));
            }
        }
    });
    at
}

/// Replaces one block.
pub(crate) fn put<T: Real>(at: &mut Parameters<T>, place: usize, new: &DMatrix<f64>) {
    at.change(|j, block| {
        if j == place {
            block.zip_apply(new, |x, new| *x = T::lit(new));
        }
    });
}
