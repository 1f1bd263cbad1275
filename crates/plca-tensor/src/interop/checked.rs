//! Matrices in the form in which `nalgebra` writes them, held against their own size (feature `serde`).
//!
//! `nalgebra` multiplies the two sizes that it reads without looking for an overflow: matrices that it reads from untrusted bytes may
//! claim more numbers than they hold. States of models read theirs by these functions, and yours can:
//!
//! ```
//! # use nalgebra::DMatrix;
//! #[derive(serde::Serialize, serde::Deserialize)]
//! struct Topics {
//!     #[serde(deserialize_with = "plca_tensor::checked::matrix")]
//!     basis: DMatrix<f64>,
//!     #[serde(deserialize_with = "plca_tensor::checked::matrices")]
//!     others: Vec<DMatrix<f64>>,
//! }
//! let topics: Topics = serde_json::from_str(r#"{ "basis": [[0.5, 0.5], 2, 1], "others": [] }"#)?;
//! assert_eq!(topics.basis.shape(), (2, 1));
//!
//! let claims = r#"{ "basis": [[], 2, 9223372036854775808], "others": [] }"#;
//! let error = serde_json::from_str::<Topics>(claims).err().expect("2 * 2^63 is 0 only without its carry");
//! assert!(error.to_string().starts_with("a matrix of 2 x 9223372036854775808 has 0 values"));
//! # Ok::<(), serde_json::Error>(())
//! ```

use nalgebra::{DMatrix, Scalar};
use serde::de::Error;
use serde::{Deserialize, Deserializer};

struct Checked<T>(DMatrix<T>);

impl<'de, T: Scalar + Deserialize<'de>> Deserialize<'de> for Checked<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (values, rows, columns) = <(Vec<T>, usize, usize)>::deserialize(deserializer)?;
        if rows.checked_mul(columns) == Some(values.len()) {
            return Ok(Self(DMatrix::from_vec(rows, columns, values)));
        }
        Err(D::Error::custom(format!(
            "a matrix of {rows} x {columns} has {} values",
            values.len()
        )))
    }
}

/// Reads a matrix.
///
/// # Errors
///
/// The format's own; a number of values that is not that of the matrix's entries.
pub fn matrix<'de, T, D>(deserializer: D) -> Result<DMatrix<T>, D::Error>
where
    T: Scalar + Deserialize<'de>,
    D: Deserializer<'de>,
{
    Checked::deserialize(deserializer).map(|checked| checked.0)
}

/// Reads a list of matrices.
///
/// # Errors
///
/// As [`matrix`], of the first.
pub fn matrices<'de, T, D>(deserializer: D) -> Result<Vec<DMatrix<T>>, D::Error>
where
    T: Scalar + Deserialize<'de>,
    D: Deserializer<'de>,
{
    let all = Vec::<Checked<T>>::deserialize(deserializer)?;
    Ok(all.into_iter().map(|checked| checked.0).collect())
}
