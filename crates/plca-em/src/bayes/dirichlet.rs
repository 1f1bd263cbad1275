//! Dirichlet laws of the columns of a block.

use nalgebra::DMatrix;
use plca_dist::{digamma, exp_digamma_slice, gamma_shape_kl_slice};
use plca_fit::{Axis, BlockSpec, FitError, Frozen};
use plca_priors::{Components, Entries};
use plca_tensor::parallel::for_each_part;
use plca_tensor::{CompensatedSum, Real};

/// Entries that one thread takes at a time.
const PART: usize = 4096;
/// Below this `e^ψ` has lost digits.
const FAINT: f64 = 1e-290;

/// How the entries of a block belong to its components.
pub(super) fn components<T: Real>(spec: &BlockSpec<T>) -> Components {
    match spec.components {
        Axis::Columns => Components::Columns(spec.shape.0),
        Axis::Rows | Axis::None => Components::Rows(spec.shape.0),
    }
}

/// A shape that is not a number: the counts of a step overflowed.
fn lost(name: &str, value: f64) -> FitError {
    FitError::NotFinite {
        what: format!("`{name}`"),
        value,
    }
}

fn sums<T: Real>(shapes: &DMatrix<T>) -> Vec<f64> {
    let columns = shapes.column_iter();
    let sum = columns.map(|column| column.iter().map(|x| x.to_f64()).sum());
    sum.collect()
}

/// Geometric means, `e^E[ln x]`: what an E-step sees of a block.
pub(super) fn geometric<T: Real>(name: &str, shapes: &DMatrix<T>) -> Result<DMatrix<T>, FitError> {
    let wrong = |x: &&T| !(**x > T::zero() && x.is_finite());
    if let Some(bad) = shapes.iter().find(wrong) {
        return Err(lost(name, bad.to_f64()));
    }
    let (rows, totals) = (shapes.nrows(), sums(shapes));
    let mut over = vec![0.0; totals.len()];
    exp_digamma_slice(&totals, &mut over).map_err(|_| lost(name, f64::INFINITY))?;
    let columns = (PART / rows.max(1)).max(1);
    let mut means = shapes.clone();
    for_each_part(means.as_mut_slice(), columns * rows, |part, values| {
        let shapes: Vec<f64> = values.iter().map(|x| x.to_f64()).collect();
        let mut psi = vec![0.0; shapes.len()];
        exp_digamma_slice(&shapes, &mut psi).expect("shapes are positive and finite");
        let each = values.chunks_exact_mut(rows).zip(psi.chunks_exact(rows));
        for (at, (values, psi)) in each.enumerate() {
            let over = over[part * columns + at];
            // [EXT 3] x~ = exp(ψ(a) - ψ(Σ a))
            for (x, psi) in values.iter_mut().zip(psi) {
                *x = T::lit(psi / over);
            }
        }
    });
    // The quotient of two numbers that are none.
    for (z, _) in over.iter().enumerate().filter(|(_, over)| **over < FAINT) {
        let psi = |x: f64| digamma(x).map_err(|_| lost(name, x));
        let total = psi(totals[z])?;
        for (x, shape) in means.column_mut(z).iter_mut().zip(&shapes.column(z)) {
            *x = T::lit((psi(shape.to_f64())? - total).exp());
        }
    }
    Ok(means)
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
