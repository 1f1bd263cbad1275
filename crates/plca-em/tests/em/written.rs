//! States that are written down and read again: equal, and never larger than what was read.

use nalgebra::{DVector, dmatrix};
use plca_em::{Nmf, OnlineState, ShiftedState};
use plca_fit::engine::Solver;
use plca_tensor::strategies::written;

use crate::states::{data, even, nmf, plca, plsa};
use crate::support::after;

#[test]
fn no_matrix_claims_more_than_it_holds() {
    written![
        (plca(), 3),
        (plsa(), 3),
        (nmf(), 2),
        (
            ShiftedState {
                weights: DVector::from_element(1, 1.0),
                kernels: dmatrix![0.5; 0.5],
                impulses: dmatrix![1.0],
                iteration: 7,
            },
            2
        ),
        (
            OnlineState {
                weights: DVector::from_element(2, 0.5),
                factors: vec![even(3, 2), even(4, 2)],
                statistics: vec![even(3, 2), even(4, 2)],
                batches: 1,
                seen: 2.0,
                pass: 2.0,
                total: 2.0,
            },
            4
        ),
    ];
    let config = Nmf::builder(2).build().unwrap();
    for &solver in Solver::ALL {
        let fit = after(&config, &data(), &nmf(), solver, 1).unwrap();
        written![(fit.checkpoint().clone(), 2)];
    }
}
