//! States that are written down and read again: equal, and never larger than what was read.

use nalgebra::{DVector, dmatrix};
use plca_tensor::strategies::written;
use pntf_l2::{Coefficients, ColumnNmfState, Mixture, NtfState, PntfState};

#[test]
fn no_matrix_claims_more_than_it_holds() {
    let matrix = || dmatrix![0.5, 0.25; 0.5, 0.75];
    written![
        (
            PntfState {
                weights: DVector::from_element(2, 0.5),
                factors: vec![matrix(), matrix()],
                mass: 1.0,
            },
            2
        ),
        (
            NtfState {
                factors: vec![matrix(); 3],
            },
            3
        ),
        (
            ColumnNmfState {
                u: matrix(),
                v: matrix(),
            },
            2
        ),
        (
            Mixture {
                weights: matrix(),
                squared_errors: vec![0.5],
                gaps: vec![0.0],
                empty: vec![],
            },
            1
        ),
        (
            Coefficients {
                factor: matrix(),
                squared_errors: vec![0.5],
                gaps: vec![0.0],
            },
            1
        ),
    ];
}
