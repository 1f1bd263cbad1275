//! What the result does not depend on, and counts that are refused.

use nalgebra::DMatrix;
use plca_tensor::Real;

use super::evaluate::{Trial, update};
use super::{Law, Violation};
use crate::{PriorError, SimplexPrior};

pub(super) fn check<T: Real>(trial: &Trial<'_, T>) -> Result<(), Violation> {
    scales(trial)?;
    start(trial)?;
    permutations(trial)?;
    columns_apart(trial)?;
    bad_counts(trial)?;
    shape(trial)
}

/// Tiny and huge counts are counts.
fn scales<T: Real>(trial: &Trial<'_, T>) -> Result<(), Violation> {
    for exponent in [-T::MAX_EXPONENT, -T::MAX_EXPONENT / 2, T::MAX_EXPONENT / 2] {
        let scale = T::lit(2f64.powi(exponent));
        trial.update(&(&trial.case.counts * scale), &trial.case.theta)?;
    }
    Ok(())
}

/// The block given is forgotten, except for columns that keep it.
fn start<T: Real>(trial: &Trial<'_, T>) -> Result<(), Violation> {
    if !trial.claims.unique {
        return Ok(());
    }
    let counts = &trial.case.counts;
    for other in &trial.case.others {
        let mut elsewhere = trial.update(counts, other)?;
        for z in 0..counts.ncols() {
            if trial.kept(z) || elsewhere.column(z) == other.column(z) {
                elsewhere.set_column(z, &trial.result.column(z));
            }
        }
        trial.agree(Law::StartForgotten, counts, &elsewhere, &trial.result)?;
    }
    Ok(())
}

/// `m` with its rows and columns in another order.
fn permuted<T: Real>(m: &DMatrix<T>, rows: &[usize], columns: &[usize]) -> DMatrix<T> {
    DMatrix::from_fn(m.nrows(), m.ncols(), |i, z| m[(rows[i], columns[z])])
}

/// The result of permuted counts is the permuted result.
fn permutations<T: Real>(trial: &Trial<'_, T>) -> Result<(), Violation> {
    let case = trial.case;
    let in_order = |n: usize| (0..n).collect::<Vec<_>>();
    let rows = (trial.claims.rows_alike).then(|| case.rows.clone());
    let columns = (trial.claims.columns_alike).then(|| case.columns.clone());
    let rows = rows.unwrap_or_else(|| in_order(case.counts.nrows()));
    let columns = columns.unwrap_or_else(|| in_order(case.counts.ncols()));
    let move_all = |m: &DMatrix<T>| permuted(m, &rows, &columns);
    let counts = move_all(&case.counts);
    let result = trial.update(&counts, &move_all(&case.theta))?;
    trial.agree(Law::Permutation, &counts, &result, &move_all(&trial.result))
}

/// Other counts in one column change no bit of the others.
fn columns_apart<T: Real>(trial: &Trial<'_, T>) -> Result<(), Violation> {
    if !trial.claims.columns_apart {
        return Ok(());
    }
    let case = trial.case;
    for z in 0..case.counts.ncols() {
        let mut counts = case.counts.clone();
        (counts.column_mut(z).iter_mut()).for_each(|c| *c = *c * T::lit(0.5) + T::one());
        let result = trial.update(&counts, &case.theta)?;
        for other in (0..case.counts.ncols()).filter(|&other| other != z) {
            if result.column(other) != trial.result.column(other) {
                let details = format!("column {other} depends on the counts of column {z}");
                return Err(Violation::new(Law::ColumnsApart, details));
            }
        }
    }
    Ok(())
}

/// Every place and every kind of bad count.
fn bad_counts<T: Real>(trial: &Trial<'_, T>) -> Result<(), Violation> {
    let case = trial.case;
    let rows = case.counts.nrows();
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, -1e-30] {
        for (i, z) in (0..case.counts.len()).map(|at| (at % rows, at / rows)) {
            let mut counts = case.counts.clone();
            counts[(i, z)] = T::lit(bad);
            let mut theta = case.theta.clone();
            let answer = trial.prior.update(&counts, &mut theta, &trial.step);
            let named = matches!(
                &answer,
                Err(PriorError::Count { row, column, value })
                    if (*row, *column) == (i, z) && value.to_bits() == T::lit(bad).to_f64().to_bits()
            );
            if !named || theta != case.theta {
                let details =
                    format!("{bad} at row {i} of column {z} gives {answer:?} and {theta}");
                return Err(Violation::new(Law::BadCount, details));
            }
        }
    }
    Ok(())
}

/// A row or a column too many.
fn shape<T: Real>(trial: &Trial<'_, T>) -> Result<(), Violation> {
    let (rows, columns) = trial.case.counts.shape();
    for (rows, columns) in [(rows + 1, columns), (rows, columns + 1)] {
        let counts = DMatrix::from_element(rows, columns, T::one());
        let mut theta = trial.case.theta.clone();
        let answer = trial.prior.update(&counts, &mut theta, &trial.step);
        if answer.is_ok() || theta != trial.case.theta {
            let details = format!("counts of {rows}x{columns} give {answer:?} and {theta}");
            return Err(Violation::new(Law::Shape, details));
        }
    }
    Ok(())
}

/// `factor` times the counts under `factor` times the log-density.
pub(super) fn strength<T: Real>(
    trial: &Trial<'_, T>,
    strong: &dyn SimplexPrior<T>,
    factor: f64,
) -> Result<(), Violation> {
    let case = trial.case;
    let many = &case.counts * T::lit(factor);
    let result = update(strong, trial.claims, &many, &case.theta, &trial.step)?;
    trial.agree(Law::Strength, &case.counts, &result, &trial.result)?;
    // Constants of the density do not count.
    let gain = |prior: &dyn SimplexPrior<T>, theta| {
        prior.ln_density(theta, &trial.step) - prior.ln_density(&trial.result, &trial.step)
    };
    for theta in &case.others {
        let (one, times) = (gain(trial.prior, theta), gain(strong, theta));
        let expected = factor * one;
        let size = 1.0 + expected.abs() + (factor * trial.ln_density(&trial.result)).abs();
        let agree = times == expected || (times - expected).abs() <= trial.epsilon() * size;
        if !agree {
            let details = format!(
                "ln p rises by {times}, not {factor} times {one}, from {} to {theta}",
                trial.result
            );
            return Err(Violation::new(Law::Strength, details));
        }
    }
    Ok(())
}
