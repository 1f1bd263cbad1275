//! The result is the best block, as far as its prior claims.

use nalgebra::DMatrix;
use plca_tensor::{Real, normalise_columns};

use super::evaluate::{Trial, update};
use super::{Law, Optimum, Violation};

pub(super) fn check<T: Real>(trial: &Trial<'_, T>) -> Result<(), Violation> {
    density(trial)?;
    match trial.claims.optimum {
        Optimum::Global | Optimum::OnSupport => maximum(trial)?,
        Optimum::NotWorse => {
            better(trial, Law::NotWorse, &trial.case.theta)?;
        }
        Optimum::Unstated => return Ok(()),
    }
    frozen(trial)?;
    // Where columns know each other, the gain of one is not the prior's alone.
    if trial.claims.optimum != Optimum::OnSupport && trial.claims.columns_apart {
        nothing_seen(trial)?;
    }
    settled(trial)
}

/// `ln p` is finite at the result and nowhere NaN or infinite.
fn density<T: Real>(trial: &Trial<'_, T>) -> Result<(), Violation> {
    let (counts, result) = (&trial.case.counts, &trial.result);
    for theta in &trial.case.others {
        trial.posterior(counts, theta, theta)?;
    }
    trial.posterior(counts, result, result)?;
    let density = trial.ln_density(result);
    if density == f64::NEG_INFINITY {
        let details = format!("the result {result} from {counts} has density 0");
        return Err(Violation::new(Law::Density, details));
    }
    Ok(())
}

/// `J` of the result is at least that of `candidate`.
fn better<T: Real>(
    trial: &Trial<'_, T>,
    law: Law,
    candidate: &DMatrix<T>,
) -> Result<(), Violation> {
    let (counts, result) = (&trial.case.counts, &trial.result);
    let reached = trial.posterior(counts, result, result)?;
    let other = trial.posterior(counts, candidate, result)?;
    if reached.value >= other.value - reached.rounding {
        return Ok(());
    }
    let excess = other.value - reached.value;
    let details = format!("{candidate} is better than {result} by {excess:e}, for {counts}");
    Err(Violation::new(law, details))
}

/// No block on the way from the result to other blocks is better: all columns moved at once, and one at a time.
fn maximum<T: Real>(trial: &Trial<'_, T>) -> Result<(), Violation> {
    better_unless_kept(trial, &trial.case.theta, Law::NotWorse)?;
    for other in &trial.case.others {
        better_unless_kept(trial, other, Law::Maximum)?;
    }
    Ok(())
}

fn better_unless_kept<T: Real>(
    trial: &Trial<'_, T>,
    other: &DMatrix<T>,
    law: Law,
) -> Result<(), Violation> {
    let result = &trial.result;
    let on_support = trial.claims.optimum == Optimum::OnSupport;
    let unseen = |z| trial.case.counts.column(z).sum() == T::zero();
    let mut target = other.clone();
    for z in 0..target.ncols() {
        // Without counts a prior may have several favourites: then it is right to choose none.
        if trial.kept(z) && (on_support || (!trial.claims.unique && unseen(z))) {
            target.set_column(z, &result.column(z));
        } else if on_support {
            for (x, r) in target.column_mut(z).iter_mut().zip(result.column(z).iter()) {
                if *r == T::zero() {
                    *x = T::zero();
                }
            }
            if target.column(z).sum() == T::zero() {
                target.set_column(z, &result.column(z));
            }
        }
    }
    normalise_columns(&mut target);
    for t in [1.0, 0.3, 0.1, 1e-2, 1e-3] {
        let mut all = result.clone();
        for z in 0..result.ncols() {
            let mixed = result.column(z) * T::lit(1.0 - t) + target.column(z) * T::lit(t);
            all.set_column(z, &mixed);
            let mut one = result.clone();
            one.set_column(z, &mixed);
            better(trial, law, &one)?;
        }
        better(trial, law, &all)?;
    }
    Ok(())
}

/// With a frozen column put back, which a caller does, `J` is not worse either.
fn frozen<T: Real>(trial: &Trial<'_, T>) -> Result<(), Violation> {
    let (counts, theta) = (&trial.case.counts, &trial.case.theta);
    if trial.claims.optimum == Optimum::OnSupport {
        return Ok(());
    }
    for z in 0..theta.ncols() {
        let flags: Vec<bool> = (0..theta.ncols()).map(|other| other == z).collect();
        let step = trial.step.frozen(&flags);
        let mut result = update(trial.prior, trial.claims, counts, theta, &step)?;
        result.set_column(z, &theta.column(z));
        let before = trial.posterior(counts, theta, theta)?;
        let after = trial.posterior(counts, &result, &result)?;
        if after.value < before.value - after.rounding {
            let excess = before.value - after.value;
            let details = format!(
                "{theta} is better by {excess:e} than {result}, with column {z} frozen, for {counts}"
            );
            return Err(Violation::new(Law::Frozen, details));
        }
    }
    Ok(())
}

/// A column without counts keeps its value unless the prior prefers the new one.
fn nothing_seen<T: Real>(trial: &Trial<'_, T>) -> Result<(), Violation> {
    let case = trial.case;
    for z in (0..case.counts.ncols()).filter(|&z| case.counts.column(z).sum() == T::zero()) {
        let mut before = trial.result.clone();
        before.set_column(z, &case.theta.column(z));
        let pairs = before.iter().zip(&trial.result);
        let moved = pairs.fold(0.0, |m: f64, (a, b)| m.max((a.to_f64() - b.to_f64()).abs()));
        let gain = trial.ln_density(&trial.result) - trial.ln_density(&before);
        if gain <= 0.0 && moved > trial.epsilon().sqrt() {
            let details = format!("column {z} moved from {before} to {}", trial.result);
            return Err(Violation::new(Law::NothingSeen, details));
        }
    }
    Ok(())
}

/// The M-step of the result is the result.
fn settled<T: Real>(trial: &Trial<'_, T>) -> Result<(), Violation> {
    if trial.claims.optimum == Optimum::NotWorse {
        return Ok(());
    }
    let counts = &trial.case.counts;
    let again = trial.update(counts, &trial.result)?;
    trial.agree(Law::Settled, counts, &again, &trial.result)
}
