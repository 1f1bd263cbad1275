//! Dirichlet laws of the columns of a block.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use nalgebra::DMatrix;
use plca_dist::{digamma, exp_digamma_slice, gamma_shape_kl_slice};
use plca_fit::{
    FitError,
    blocks::{Axis, BlockSpec, Frozen},
};
use plca_priors::{Components, Entries};
use plca_tensor::parallel::{for_each_part, sum};
use plca_tensor::{CompensatedSum, Real};

/// Entries that one thread takes at a time.
const PART: usize = 4096;
/// Below this `e^ψ` has lost digits.
pub(super) const FAINT: f64 = 1e-290;

/// How the entries of a block belong to its components.
pub(super) fn components<T: Real>(spec: &BlockSpec<T>) -> Components {
    match spec.axes.components() {
        Axis::Columns => Components::Columns(spec.shape.0),
        Axis::Rows | Axis::None => Components::Rows(spec.shape.0),
    }
}

/// A shape that is not a number: the counts of a step overflowed.
pub(super) fn lost(name: &str, value: f64) -> FitError {
    FitError::NotFinite {
        what: format!("`{name}`"),
        value,
    }
}

/// What the columns of a block sum to.
pub(super) fn sums<T: Real>(shapes: &DMatrix<T>) -> Vec<f64> {
    let columns = shapes.column_iter();
    let sums = columns.map(|column| column.iter().map(|x| x.to_f64()).sum());
    sums.collect()
}

/// Geometric means, `e^E[ln x]`: what an E-step sees of a block.
pub(super) fn geometric<T: Real>(name: &str, shapes: &DMatrix<T>) -> Result<DMatrix<T>, FitError> {
    let (rows, k) = shapes.shape();
    let mut means = DMatrix::zeros(rows, k);
    let part = (PART / rows.max(1)).max(1) * rows.max(1);
    let wrong = AtomicBool::new(false);
    for_each_part(means.as_mut_slice(), part, |at, means| {
        let shapes = &shapes.as_slice()[at * part..][..means.len()];
        let a: Vec<f64> = shapes.iter().map(|x| x.to_f64()).collect();
        let sums: Vec<f64> = a.chunks_exact(rows).map(sum).collect();
        let (mut psi, mut over) = (vec![0.0; a.len()], vec![0.0; sums.len()]);
        if exp_digamma_slice(&a, &mut psi).is_err() || exp_digamma_slice(&sums, &mut over).is_err()
        {
            wrong.store(true, Relaxed);
            return;
        }
        let columns = means.chunks_exact_mut(rows).zip(psi.chunks_exact(rows));
        for (column, (means, psi)) in columns.enumerate() {
            let (all, over) = (sums[column], over[column]);
            // [EXT 3] x~ = exp(ψ(a) - ψ(Σ a))
            let (pairs, scale) = (means.iter_mut().zip(psi), 1.0 / over);
            match over < FAINT {
                false => pairs.for_each(|(x, psi)| *x = T::lit(psi * scale)),
                // The quotient of two numbers that are none.
                true => {
                    let of = |x: f64| digamma(x).unwrap_or(f64::NAN);
                    let pairs = means.iter_mut().zip(&a[column * rows..]);
                    pairs.for_each(|(x, &a)| *x = T::lit((of(a) - of(all)).exp()));
                }
            }
        }
    });
    match wrong.into_inner() {
        false => Ok(means),
        true => {
            let wrong = |x: &&T| !(**x > T::zero() && x.is_finite());
            let bad = shapes.iter().find(wrong).map(|x| x.to_f64());
            Err(lost(name, bad.unwrap_or(f64::INFINITY)))
        }
    }
}

/// The columns that are frozen, one flag each; none if none is.
fn kept<T: Real>(spec: &BlockSpec<T>) -> Vec<bool> {
    match spec.frozen {
        Frozen::Whole => vec![true; spec.shape.1],
        Frozen::No => Vec::new(),
        _ => spec.frozen_components(),
    }
}

/// The divergence of the free columns from their prior.
pub(super) fn divergence<T: Real>(
    spec: &BlockSpec<T>,
    shapes: &DMatrix<T>,
    prior: &Entries,
) -> Result<f64, FitError> {
    let (rows, axis, kept) = (shapes.nrows(), components(spec), kept(spec));
    let (mut a, mut a0, mut kl) = (
        vec![0.0; rows + 1],
        vec![0.0; rows + 1],
        vec![0.0; rows + 1],
    );
    let mut sum = CompensatedSum::default();
    for (z, column) in shapes.column_iter().enumerate() {
        if kept.get(z) == Some(&true) {
            continue;
        }
        for (i, x) in column.iter().enumerate() {
            (a[i], a0[i]) = (x.to_f64(), prior.get(z * rows + i, axis));
        }
        (a[rows], a0[rows]) = (a[..rows].iter().sum(), a0[..rows].iter().sum());
        gamma_shape_kl_slice(&a, &a0, &mut kl).map_err(|_| lost(&spec.name, f64::NAN))?;
        // [EXT 3] KL of Dirichlet laws: those of gamma laws of the entries, less that of the sums
        kl[..rows].iter().for_each(|&x| sum += x);
        sum += -kl[rows];
    }
    Ok(sum.value())
}

/// The means, shapes divided by their sums.
pub(super) fn means<T: Real>(shapes: &DMatrix<T>) -> DMatrix<T> {
    let mut means = shapes.clone();
    for (mut column, sum) in means.column_iter_mut().zip(sums(shapes)) {
        column.apply(|x| *x = T::lit(x.to_f64() / sum));
    }
    means
}

/// How far a column of probabilities that were written with few digits may be from 1.
const ROUNDED: f64 = 1e-3;

/// Refuses probabilities in the place of shapes: those of a posterior are not below its prior's.
pub(super) fn refuse_probabilities<T: Real>(
    spec: &BlockSpec<T>,
    shapes: &DMatrix<T>,
    prior: &Entries,
) -> Result<(), FitError> {
    if !sums(shapes).iter().all(|sum| (sum - 1.0).abs() <= ROUNDED) {
        return Ok(());
    }
    let (rows, columns) = shapes.shape();
    let axis = components(spec);
    let places = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
    for (row, column) in places {
        let value = shapes[(row, column)].to_f64();
        let prior = prior.get(column * rows + row, axis);
        if value < prior * (1.0 - ROUNDED) {
            return Err(FitError::Probabilities {
                block: spec.name.to_string(),
                row,
                column,
                value,
                prior,
            });
        }
    }
    Ok(())
}
