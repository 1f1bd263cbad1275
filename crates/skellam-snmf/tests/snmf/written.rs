//! States that are written down and read again: equal, and never larger than what was read.

use std::fmt::Debug;

use nalgebra::{DVector, dmatrix};
use plca_tensor::strategies::overclaimed;
use serde::{Serialize, de::DeserializeOwned};
use skellam_snmf::{
    CpState, DingState, Entries, Groups, Hyperparameters, Learner, Posterior, Prior, Rate, Sharing,
    SnmfState,
};

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
    let each = || Entries::Each(matrix());
    reads(
        SnmfState {
            plus: matrix(),
            minus: matrix(),
            activations: matrix(),
        },
        3,
    );
    reads(
        CpState {
            plus: matrix(),
            minus: matrix(),
            weights: DVector::from_element(2, 0.5),
            factors: vec![matrix(), matrix()],
        },
        4,
    );
    reads(
        DingState {
            w: matrix(),
            h: matrix(),
        },
        2,
    );
    reads(
        Posterior {
            plus: matrix(),
            minus: matrix(),
            shape: matrix(),
            rate: matrix(),
        },
        4,
    );
    reads(
        Prior {
            plus: each(),
            minus: each(),
            shape: each(),
            rate: Entries::All(0.5),
        },
        3,
    );
    reads(Sharing::by_component(2, 2), 2);
    let start = Hyperparameters {
        alpha: vec![1.0],
        shape: vec![1.0],
        rate: vec![0.1],
    };
    let map = || Groups::Each(dmatrix![0, 0; 0, 0]);
    let maps = Sharing {
        shape: map(),
        rate: map(),
        ..Sharing::all(2, 2)
    };
    let learner = Learner::new(maps, start, Rate::Average);
    reads(learner.unwrap(), 2);
}
