//! States that are written down and read again: equal, and never larger than what was read.

use std::fmt::{Debug, Display};

/// Every text made from the JSON of a state by replacing one of its matrices with one whose number of entries is 0 only without
/// the carry. None of them is to be read.
///
/// ```
/// let state = r#"{"w":[[0.5,0.5],2,1],"weights":[[1.0],1,null]}"#;
/// let claims = plca_tensor::strategies::overclaimed(state);
/// assert_eq!(claims[0], r#"{"w":[[],2,9223372036854775808],"weights":[[1.0],1,null]}"#);
/// assert_eq!(claims[1], r#"{"w":[[],9223372036854775808,2],"weights":[[1.0],1,null]}"#);
/// assert_eq!(claims.len(), 2);                                        // a vector has one size
/// ```
pub fn overclaimed(json: &str) -> Vec<String> {
    let mut claims = Vec::new();
    for (end, _) in json.match_indices("],") {
        let (Some(begin), Some(rest)) = (json[..end].rfind('['), json[end + 2..].split_once(']'))
        else {
            continue;
        };
        let sizes: Vec<_> = rest.0.split(',').map(str::parse::<usize>).collect();
        if let [Ok(_), Ok(_)] = sizes[..] {
            for sizes in ["2,9223372036854775808", "9223372036854775808,2"] {
                claims.push(format!("{}[],{sizes}]{}", &json[..begin], rest.1));
            }
        }
    }
    claims
}

/// A state comes back from its text. With any of its matrices claiming more entries than it has, it is refused.
///
/// # Panics
///
/// If the state does not come back, has another number of matrices, or is read with a false claim.
///
/// # Examples
///
/// See [`written`](crate::strategies::written).
pub fn check_written<S: PartialEq + Debug, E: Debug + Display>(
    state: S,
    matrices: usize,
    write: impl Fn(&S) -> Result<String, E>,
    read: impl Fn(&str) -> Result<S, E>,
) {
    let text = write(&state).unwrap();
    assert_eq!(read(&text).unwrap(), state);
    let claims = overclaimed(&text);
    assert_eq!(claims.len(), 2 * matrices, "{text}");
    for claim in claims {
        let error = read(&claim).expect_err(&claim);
        assert!(error.to_string().contains("has 0 values"), "{error}");
    }
}

/// [`check_written`] for states, each with its number of matrices, and `serde_json`.
///
/// ```
/// use plca_tensor::strategies::written;
/// #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
/// struct State {
///     #[serde(deserialize_with = "plca_tensor::checked::matrix")]
///     w: nalgebra::DMatrix<f64>,
/// }
/// written![(State { w: nalgebra::dmatrix![0.5, 0.25] }, 1)];
/// ```
#[macro_export]
#[doc(hidden)]
macro_rules! __written {
    ($(($state:expr, $matrices:expr)),+ $(,)?) => {
        $($crate::strategies::check_written(
            $state,
            $matrices,
            |state| serde_json::to_string(state),
            |text| serde_json::from_str(text),
        );)+
    };
}

#[doc(inline)]
pub use __written as written;
