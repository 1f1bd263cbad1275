//! States that are written down and read again: equal, and never larger than what was read.

use nalgebra::{DVector, dmatrix};
use plca_em::{
    Algorithm, Carried, CooledState, Fast, FastState, OnlineState, ShiftedState,
    before::{Nmf, NmfState},
};
use plca_tensor::strategies::written;

use crate::states::{data, even, plca, plsa};

#[test]
fn no_matrix_claims_more_than_it_holds() {
    let nmf = || NmfState {
        w: even(3, 2),
        h: even(2, 4),
    };
    written![
        (plca(), 2),
        (plsa(), 2),
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
        (
            CooledState {
                best: plca(),
                perplexity: 2.0,
                current: plca(),
                improved: true,
                ended: false,
            },
            4
        ),
        (Carried::new(nmf()), 2),
    ];
    // The model, and as a product twice.
    let (v, config) = (data(), Nmf::builder(2).build().unwrap());
    let fast = Fast::new(config.on(&v).unwrap()).unwrap();
    let mut state = FastState::new(nmf());
    fast.step(&mut state, false).unwrap();
    written![(state, 6)];
}
