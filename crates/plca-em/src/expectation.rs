//! The E-step that the models share: expected counts, with hidden cells imputed where there are any.

use nalgebra::DMatrix;
use plca_tensor::{Expected, Model, Observed, Real, Wanted};

/// Expected counts and the observed-data objective of the multinomial models.
///
/// With hidden cells these are the counts of `M∘V + (1-M)∘s P`, `s = v_obs / Σ_obs P`, which is never formed:
/// `C_j = C_j(observed) + s (F_j's whole mass - X_j)`; the objective is `Σ_obs V ln P - v_obs ln Σ_obs P`.
pub(crate) fn completed<T: Real, X: Observed<T> + ?Sized>(
    data: &X,
    model: &Model<'_, T>,
    modes: &[bool],
    measure: bool,
) -> Expected<T> {
    let mut expected = data.expect(
        model,
        Wanted {
            modes,
            ln_lik: measure,
        },
    );
    if data.is_complete() {
        return expected;
    }
    let mut needed = modes.to_vec();
    if !needed.contains(&true) {
        needed[0] = true;
    }
    let seen = data.exposure(model, &needed);
    let seen_mass: f64 = seen
        .iter()
        .flatten()
        .next()
        .map_or(0.0, |x| x.iter().map(|x| x.to_f64()).sum());
    if measure {
        // [SPEC 4] L_M = Σ_obs V ln P - v_obs ln Σ_obs P
        expected.ln_lik -= data.total() * seen_mass.ln();
    }
    // [SPEC 4] s = v_obs / Σ_obs P
    let s = T::lit(data.total() / seen_mass);
    for (j, (counts, seen)) in expected.counts.iter_mut().zip(&seen).enumerate() {
        if let (Some(counts), Some(seen)) = (counts, seen) {
            add_hidden(counts, seen, model, j, s);
        }
    }
    expected
}

/// `counts += s (whole - seen)`, where `whole` is the mass that the model gives to all cells.
pub(crate) fn add_hidden<T: Real>(
    counts: &mut DMatrix<T>,
    seen: &DMatrix<T>,
    model: &Model<'_, T>,
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
