//! What settings, data and steps are refused with.

use nalgebra::DMatrix;
use plca_fit::engine::FitError;
use plca_tensor::Real;

use crate::{ParamError, Replicates, SnmfError};

/// Refuses a model without components or replicates.
pub(super) fn check_numbers(components: usize, replicates: Replicates) -> Result<(), FitError> {
    let refuse = |name| FitError::Setting {
        name,
        value: 0.0,
        expected: "at least 1",
    };
    if components == 0 {
        return Err(refuse("components"));
    }
    replicates.check().map_err(|_| refuse("replicates"))
}

/// A refused hyperparameter.
pub(super) fn of_prior(error: ParamError) -> FitError {
    match error {
        ParamError::Prior {
            name,
            row,
            column,
            value,
            range,
        } => FitError::Range {
            block: format!("prior {name}"),
            row,
            column,
            value,
            expected: range,
        },
        ParamError::Number { name, value, range } => FitError::Setting {
            name,
            value,
            expected: range,
        },
        ParamError::Floor(value) => FitError::Setting {
            name: "floor",
            value,
            expected: "a finite number >= 0",
        },
        other => FitError::Conflict {
            what: other.to_string(),
        },
    }
}

/// What the arrangement of data, or a helper of the steps, refuses.
pub(super) fn of(error: SnmfError) -> FitError {
    match error {
        SnmfError::NotWhole { row, column, value } => FitError::Entry {
            index: vec![row, column],
            value,
            expected: "a whole number, replicates being finitely many".into(),
        },
        SnmfError::TooLarge {
            row,
            column,
            value,
            largest,
        } => FitError::Entry {
            index: vec![row, column],
            value,
            expected: format!("at most {largest:e} in size"),
        },
        SnmfError::Shape {
            block,
            got,
            expected,
        } => FitError::Shape {
            block: format!("prior {block}"),
            got,
            expected,
        },
        SnmfError::Prior(error) => of_prior(error),
        SnmfError::NotFinite { block } => FitError::NotFinite {
            what: format!("`{block}`"),
            value: f64::NAN,
        },
        other => FitError::Conflict {
            what: other.to_string(),
        },
    }
}

/// Refuses counts that are no numbers; those below 0, which are rounding errors, become 0.
pub(super) fn finite<T: Real>(block: &str, counts: &mut DMatrix<T>) -> Result<(), FitError> {
    let mut bad = None;
    for c in counts.iter_mut() {
        if !c.is_finite() {
            bad.get_or_insert(c.to_f64());
        }
        *c = if *c > T::zero() { *c } else { T::zero() };
    }
    match bad {
        Some(value) => Err(FitError::NotFinite {
            what: format!("`{block}`"),
            value,
        }),
        None => Ok(()),
    }
}
