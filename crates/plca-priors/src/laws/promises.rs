//! What a prior says of itself is so.

use nalgebra::DMatrix;
use plca_tensor::Real;

use super::evaluate::Trial;
use super::{Case, Claims, Law, Violation};
use crate::SimplexPrior;

pub(super) fn check<T: Real>(
    prior: &dyn SimplexPrior<T>,
    iterations: &[usize],
    claims: &Claims,
    case: &Case<T>,
) -> Result<(), Violation> {
    let mut steady: Option<(usize, DMatrix<T>, f64)> = None;
    for &iteration in iterations {
        let trial = Trial::new(prior, claims, case, iteration).map_err(|violation| {
            let details = format!("{} in iteration {iteration}", violation.details);
            Violation::new(violation.law, details)
        })?;
        again(&trial)?;
        fits(&trial)?;
        pseudo_counts(&trial)?;
        may_empty(&trial)?;
        if !prior.steady(iteration) {
            if let Some((since, ..)) = steady {
                let details = format!("steady from {since} on, but not at {iteration}");
                return Err(Violation::new(Law::Steady, details));
            }
            continue;
        }
        rises(&trial, iteration)?;
        let density = trial.ln_density(&trial.result);
        let (since, result, before) =
            steady.get_or_insert((iteration, trial.result.clone(), density));
        if trial.result != *result || density.to_bits() != before.to_bits() {
            let details = format!(
                "steady from {since} on, but at {iteration} {} of density {density} instead of {result} of {before}",
                trial.result
            );
            return Err(Violation::new(Law::Steady, details));
        }
    }
    Ok(())
}

/// The same M-step, asked for twice, is the same.
fn again<T: Real>(trial: &Trial<'_, T>) -> Result<(), Violation> {
    if trial.update(&trial.case.counts, &trial.case.theta)? == trial.result {
        return Ok(());
    }
    let details = format!(
        "asked twice for iteration {}, two blocks came",
        trial.step.iteration
    );
    Err(Violation::new(Law::Repeatable, details))
}

/// `check` accepts the shapes that `update` accepts, and no other.
fn fits<T: Real>(trial: &Trial<'_, T>) -> Result<(), Violation> {
    let (rows, columns) = trial.case.counts.shape();
    for (rows, columns) in [(rows, columns), (rows + 1, columns), (rows, columns + 1)] {
        let counts = DMatrix::from_element(rows, columns, T::one());
        let mut theta = DMatrix::from_element(rows, columns, T::lit(1.0 / rows as f64));
        let updated = trial.prior.update(&counts, &mut theta, &trial.step);
        let checked = trial.prior.check((rows, columns));
        if checked.is_ok() != updated.is_ok() {
            let details =
                format!("of {rows}x{columns} `check` says {checked:?}, `update` {updated:?}");
            return Err(Violation::new(Law::Fits, details));
        }
    }
    Ok(())
}

/// The log-density is `Σ a ln θ` up to a constant.
fn pseudo_counts<T: Real>(trial: &Trial<'_, T>) -> Result<(), Violation> {
    let (rows, columns) = trial.case.counts.shape();
    let Some(pseudo) = trial.prior.pseudo_counts((rows, columns)) else {
        return Ok(());
    };
    let broken = |details| Err(Violation::new(Law::PseudoCounts, details));
    let counts = |a: &f64| a.is_finite() && *a >= 0.0;
    if pseudo.shape() != (rows, columns) || !pseudo.iter().all(counts) {
        return broken(format!("{pseudo} for a block of {rows}x{columns}"));
    }
    // Blocks without zeros: half of the way from one to the uniform block.
    let even = T::lit(0.5 / rows as f64);
    let inner = |m: &DMatrix<T>| m.map(|x| x * T::lit(0.5) + even);
    let value = |theta: &DMatrix<T>| {
        let terms = pseudo.iter().zip(theta).map(|(a, x)| a * x.to_f64().ln());
        let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), t| (sum + t, size + t.abs()));
        (trial.ln_density(theta) - sum, size)
    };
    let (constant, _) = value(&inner(&trial.case.theta));
    for other in &trial.case.others {
        let (here, size) = value(&inner(other));
        let allowed = trial.epsilon() * (1.0 + size + pseudo.sum() + constant.abs());
        if (here - constant).abs() > allowed || here.is_nan() {
            return broken(format!(
                "ln p - Σ a ln θ is {constant} in one place and {here} in another, for a = {pseudo}"
            ));
        }
    }
    Ok(())
}

/// No entry with counts is emptied by a prior that never does so.
fn may_empty<T: Real>(trial: &Trial<'_, T>) -> Result<(), Violation> {
    if trial.prior.may_empty() {
        return Ok(());
    }
    let counts = &trial.case.counts;
    for (z, column) in counts.column_iter().enumerate() {
        let sum = column.sum();
        for (i, &c) in column.iter().enumerate() {
            // A share that is no normal number is lost by the scalar, not by the prior.
            let is_seen = c > T::zero() && c / sum > T::TINY.sqrt();
            if is_seen && trial.result[(i, z)] == T::zero() {
                let details = format!("row {i} of column {z} with the count {c} is emptied");
                return Err(Violation::new(Law::MayEmpty, details));
            }
        }
    }
    Ok(())
}

/// The update of a steady prior does not lower its objective.
fn rises<T: Real>(trial: &Trial<'_, T>, iteration: usize) -> Result<(), Violation> {
    let Case { counts, theta, .. } = trial.case;
    let before = trial.posterior(counts, theta, theta)?;
    let after = trial.posterior(counts, &trial.result, &trial.result)?;
    if after.value >= before.value - after.rounding {
        return Ok(());
    }
    let details = format!(
        "steady at {iteration}, but the objective fell from {} to {}",
        before.value, after.value
    );
    Err(Violation::new(Law::Steady, details))
}
