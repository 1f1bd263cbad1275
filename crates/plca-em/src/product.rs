//! What the models of products of factors share.

use nalgebra::DMatrix;
use plca_fit::FitError;
use plca_tensor::{Cp, Data, DataError, Factor, Modes, Real, Request, Rule, check_counts};

/// The first positive cell, in row-major order, to which a model gives the probability 0.
pub(crate) fn unsupported<T: Real>(
    data: &dyn Data<T>,
    model: &Cp<'_, T>,
) -> Result<Option<(Vec<usize>, f64)>, DataError> {
    match check_counts(data) {
        // A shard may be without mass, of data that have some.
        Err(DataError::NoMass) => return Ok(None),
        checked => checked?,
    }
    let positive = |values: &[T]| values.iter().all(|&x| x > T::zero());
    let some = |weights: &[T]| weights.iter().any(|&w| w > T::zero());
    if model.weights.is_none_or(some) && model.factors.iter().all(|f| positive(f.values())) {
        return Ok(None);
    }
    let mut first: Option<(Vec<usize>, f64)> = None;
    data.visit(&mut |index, value| {
        let earlier = first.as_ref().is_none_or(|(i, _)| index < i.as_slice());
        if earlier && model.cell(index) <= 0.0 {
            first = Some((index.to_vec(), value));
        }
    })?;
    Ok(first)
}

/// After a log-likelihood of `-inf`: refuses the first cell without support, if the model itself has none there.
pub(crate) fn check_measured<T: Real>(
    ln_lik: Option<f64>,
    data: &dyn Data<T>,
    model: &Cp<'_, T>,
) -> Result<(), FitError> {
    if ln_lik != Some(f64::NEG_INFINITY) {
        return Ok(());
    }
    match unsupported(data, model)? {
        Some((index, value)) => Err(FitError::Support { index, value }),
        None => Ok(()),
    }
}

/// What counts of these data are told in: their unit, within what the scalar can hold of it and its inverse.
pub(crate) fn count_unit<T: Real>(data: &dyn Data<T>) -> f64 {
    let most = 2f64.powi(T::MAX_EXPONENT - 2);
    data.unit().clamp(1.0 / most, most)
}

/// A block to a power, entry by entry.
pub(crate) fn power<T: Real>(block: &DMatrix<T>, power: T) -> DMatrix<T> {
    block.map(|x| x.powf(power))
}

/// Mass of a model over the observed cells, for every index of one mode.
pub(crate) fn seen_mass<T: Real>(
    data: &dyn Data<T>,
    model: &Cp<'_, T>,
    mode: usize,
) -> Result<Vec<f64>, DataError> {
    let exposure = Request::counts(Modes::one(mode)).rule(Rule::Exposure);
    let seen = data.e_step(model, &exposure)?.take(mode);
    let cell = |i, z| match model.factors[mode] {
        Factor::Columns(_) => seen[(i, z)].to_f64(),
        Factor::Rows(_) => seen[(z, i)].to_f64(),
    };
    let mass = |i| (0..model.components()).map(|z| cell(i, z)).sum();
    Ok((0..model.factors[mode].rows()).map(mass).collect())
}

/// Refuses a tempering power outside `(0, 1]`.
pub(crate) fn check_power(value: f64) -> Result<(), FitError> {
    let good = value > 0.0 && value <= 1.0;
    FitError::unless(good, "temper", value, "a power in (0, 1]")
}

/// The error of settings or data that do not go together.
pub(crate) fn conflict<O>(what: impl Into<String>) -> Result<O, FitError> {
    Err(FitError::Conflict { what: what.into() })
}
