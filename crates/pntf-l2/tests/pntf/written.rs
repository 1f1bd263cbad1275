//! States that are written down and read again: equal, and never larger than what was read.

use std::fmt::Debug;

use nalgebra::{DVector, dmatrix};
use plca_tensor::strategies::overclaimed;
use pntf_l2::{Coefficients, ColumnNmfState, Mixture, NtfState, PntfState};
use serde::{Serialize, de::DeserializeOwned};

/// A state of so many matrices comes back; with any of them claiming more entries than it has, it is refused.
fn reads<S: Serialize + DeserializeOwned + PartialEq + Debug>(state: S, matrices: usize) {
    let text = serde_json::to_string(&state).unwrap();
    assert_eq!(serde_json::from_str::<S>(&text).unwrap(), state);
    let claims = overclaimed(&text);
    assert_eq!(claims.len(), 2 * matrices, "{text}");
    for claim in claims {
        let error = serde_json::from_str::<S>(&claim).expect_err(&claim);
        assert!(error.to_string().contains("has 0 values"), "{error}");
    }
}

#[test]
fn no_matrix_claims_more_than_it_holds() {
    let matrix = || dmatrix![0.5, 0.25; 0.5, 0.75];
    reads(
        PntfState {
            weights: DVector::from_element(2, 0.5),
            factors: vec![matrix(), matrix()],
            mass: 1.0,
        },
        2,
    );
    reads(
        NtfState {
            factors: vec![matrix(); 3],
        },
        3,
    );
    reads(
        ColumnNmfState {
            u: matrix(),
            v: matrix(),
        },
        2,
    );
    reads(
        Mixture {
            weights: matrix(),
            squared_errors: vec![0.5],
            gaps: vec![0.0],
            empty: vec![],
        },
        1,
    );
    reads(
        Coefficients {
            factor: matrix(),
            squared_errors: vec![0.5],
            gaps: vec![0.0],
        },
        1,
    );
}
