//! The E-step that the models share: expected counts, with hidden cells imputed where there are any.

use nalgebra::DMatrix;
use plca_tensor::{Cp, Data, DataError, Expected, Modes, Real, Request, Rule};

/// Expected counts, in this unit, and the observed-data objective of the multinomial models.
///
/// With hidden cells these are the counts of `M∘V + (1-M)∘s P`, `s = v_obs / Σ_obs P`, which is never formed:
/// `C_j = C_j(observed) + s (F_j's whole mass - X_j)`; the objective is `Σ_obs V ln P - v_obs ln Σ_obs P`.
pub(crate) fn completed<T: Real>(
    data: &dyn Data<T>,
    model: &Cp<'_, T>,
    modes: Modes,
    measure: bool,
    unit: f64,
) -> Result<Expected<T>, DataError> {
    let wanted = Request::counts(modes).value(measure).count_unit(unit);
    let expected = data.e_step(model, &wanted)?;
    if data.is_complete() {
        return Ok(expected);
    }
    let exposure = Request::counts(modes).value(true).rule(Rule::Exposure);
    let seen = data.e_step(model, &exposure)?;
    // [SPEC 4] L_M = Σ_obs V ln P - v_obs ln Σ_obs P
    let value = measure.then(|| expected.value() - data.total() * seen.value().ln());
    // [SPEC 4] s = v_obs / Σ_obs P
    let s = T::lit(data.total() / unit / seen.value());
    Ok(with_hidden(expected, &seen, model, s, value))
}

/// The E-step over the observed cells, the mass of the model in the hidden ones, and that in the observed ones; with `measure`, the value in
/// that unit.
pub(crate) fn apart<T: Real>(
    data: &dyn Data<T>,
    model: &Cp<'_, T>,
    modes: Modes,
    measure: Option<f64>,
) -> Result<(Expected<T>, Expected<T>, f64), DataError> {
    let wanted = Request::counts(modes);
    let measured = wanted.value(measure.is_some()).unit(measure.unwrap_or(1.0));
    let observed = data.e_step(model, &measured)?;
    let seen = data.e_step(model, &wanted.value(true).rule(Rule::Exposure))?;
    let nothing = (0..model.factors.len()).map(|mode| {
        let (rows, columns) = observed.get(mode)?.shape();
        Some(DMatrix::zeros(rows, columns))
    });
    let nothing = Expected::new(nothing.collect(), None);
    let hidden = with_hidden(nothing, &seen, model, T::one(), None);
    Ok((observed, hidden, seen.value()))
}

/// Adds `s` times the mass of the model in hidden cells to the counts.
pub(crate) fn with_hidden<T: Real>(
    mut expected: Expected<T>,
    seen: &Expected<T>,
    model: &Cp<'_, T>,
    s: T,
    value: Option<f64>,
) -> Expected<T> {
    let counts = (0..model.factors.len()).map(|mode| {
        expected.get(mode)?;
        let seen = seen.get(mode)?;
        let mut counts = expected.take(mode);
        add_hidden(&mut counts, seen, model, mode, s);
        Some(counts)
    });
    Expected::new(counts.collect(), value)
}

/// `counts += s (whole - seen)`, where `whole` is the mass that the model gives to all cells.
pub(crate) fn add_hidden<T: Real>(
    counts: &mut DMatrix<T>,
    seen: &DMatrix<T>,
    model: &Cp<'_, T>,
    mode: usize,
    s: T,
) {
    let whole = model.exposure(mode);
    counts.zip_zip_apply(seen, &whole, |c, seen, whole| {
        // Rounding must not take counts away.
        if whole > seen {
            *c += s * (whole - seen);
        }
    });
}
