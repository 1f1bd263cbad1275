//! States that are written down and read again: equal, and never larger than what was read.

use std::fmt::Debug;

use nalgebra::{DVector, dmatrix};
use plca_em::{
    Algorithm, Carried, CooledState, Fast, FastState, Nmf, NmfState, OnlineState, ShiftedState,
};
use plca_tensor::strategies::overclaimed;
use serde::{Serialize, de::DeserializeOwned};

use crate::states::{data, even, plca, plsa};

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
    let nmf = || NmfState {
        w: even(3, 2),
        h: even(2, 4),
    };
    reads(plca(), 2);
    reads(plsa(), 2);
    reads(nmf(), 2);
    reads(
        ShiftedState {
            weights: DVector::from_element(1, 1.0),
            kernels: dmatrix![0.5; 0.5],
            impulses: dmatrix![1.0],
            iteration: 7,
        },
        2,
    );
    reads(
        OnlineState {
            weights: DVector::from_element(2, 0.5),
            factors: vec![even(3, 2), even(4, 2)],
            statistics: vec![even(3, 2), even(4, 2)],
            blocks: 1,
            seen: 2.0,
            pass: 2.0,
            total: 2.0,
        },
        4,
    );
    reads(
        CooledState {
            best: plca(),
            perplexity: 2.0,
            current: plca(),
            improved: true,
            ended: false,
        },
        4,
    );
    reads(Carried::new(nmf()), 2);
    // The model, and as a product twice.
    let (v, config) = (data(), Nmf::builder(2).build().unwrap());
    let fast = Fast::new(config.on(&v).unwrap()).unwrap();
    let mut state = FastState::new(nmf());
    fast.step(&mut state, false).unwrap();
    reads(state, 6);
}
