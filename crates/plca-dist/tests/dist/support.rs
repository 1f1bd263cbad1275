//! Reference tables: rows of numbers by name.

use serde_json::Value;

/// A number; infinities are strings.
pub(crate) fn number(v: &Value) -> f64 {
    v.as_f64()
        .unwrap_or_else(|| v.as_str().unwrap().parse().unwrap())
}

/// The rows of one table.
pub(crate) fn rows(file: &str, table: &str) -> Vec<Vec<f64>> {
    let file: Value = serde_json::from_str(file).unwrap();
    let rows: Vec<Vec<f64>> = (file[table].as_array().unwrap().iter())
        .map(|row| row.as_array().unwrap().iter().map(number).collect())
        .collect();
    assert!(!rows.is_empty(), "{table}");
    rows
}

/// `|got - want| / scale` in units of `eps`, infinity if it is NaN; equal values, infinite ones too, give 0.
pub(crate) fn error_in_eps(got: f64, want: f64, scale: f64) -> f64 {
    if got == want {
        return 0.0;
    }
    let error = (got - want).abs() / (f64::EPSILON * scale);
    if error.is_nan() { f64::INFINITY } else { error }
}

/// The largest error of a function on a table whose last column is the value, with the row where it is.
pub(crate) fn worst(
    rows: &[Vec<f64>],
    f: impl Fn(&[f64]) -> f64,
    scale: impl Fn(&[f64], f64) -> f64,
) -> (f64, Vec<f64>) {
    rows.iter()
        .map(|row| {
            let (want, x) = row.split_last().unwrap();
            // Below the normal numbers the unit is absolute.
            let scale = scale(x, *want).max(f64::MIN_POSITIVE);
            (error_in_eps(f(x), *want, scale), row.clone())
        })
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .unwrap()
}
