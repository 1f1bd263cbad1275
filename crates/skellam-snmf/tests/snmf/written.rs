//! States that are written down and read again: equal, and never larger than what was read.

use nalgebra::{dmatrix, dvector};
use plca_fit::FitError;
use plca_tensor::strategies::written;
use skellam_snmf::{
    DingState, Entries, Factors, Groups, Hyperparameters, Learner, Posterior, Prior, Rate, Sharing,
    SignedCpState, SnmfState, SnmfVbState, Statistics,
};

#[test]
fn no_matrix_claims_more_than_it_holds() {
    let matrix = || dmatrix![0.5, 0.25; 0.5, 0.75];
    let half = || matrix() / 2.0;
    let each = || Entries::Each(matrix());
    written![
        (SnmfState::new(&half(), &half(), matrix()).unwrap(), 2),
        (
            SignedCpState::new(&half(), &half(), &dvector![0.5, 0.5], vec![matrix(); 2], 1)
                .unwrap(),
            4
        ),
        (DingState::new(matrix(), matrix()).unwrap(), 2),
        (
            SnmfVbState::new(Posterior {
                plus: matrix(),
                minus: matrix(),
                shape: matrix(),
                rate: matrix(),
            })
            .unwrap(),
            3
        ),
        (
            Factors {
                plus: half(),
                minus: half(),
                activations: matrix(),
            },
            3
        ),
        (
            Posterior {
                plus: matrix(),
                minus: matrix(),
                shape: matrix(),
                rate: matrix(),
            },
            4
        ),
        (
            Prior {
                plus: each(),
                minus: each(),
                shape: each(),
                rate: Entries::All(0.5),
            },
            3
        ),
        (Sharing::by_component(2, 2), 2),
    ];
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
    written![(learner.unwrap(), 2)];
}

/// Numbers of components that are shared by all cost nothing, however many a file claims; what is learnt goes with the sums.
#[test]
fn components_that_are_all_alike_cost_nothing() {
    const MANY: usize = 1 << 50;
    let start = || Hyperparameters {
        alpha: vec![0.75],
        shape: vec![2.0],
        rate: vec![0.5],
    };
    let learnt = |components: usize, times: f64| {
        let sharing = Sharing::all(3, components);
        let mut statistics = Statistics::of_prior(&sharing, &start(), 5).unwrap();
        let mut hyper = start();
        statistics.ln_atoms[0] -= 1.25 * times;
        statistics.activations[0] *= 2.0;
        hyper.improve(&sharing, &statistics).unwrap();
        (hyper, statistics.ln_atoms[0] / times)
    };
    assert_eq!(learnt(MANY, MANY as f64), learnt(1, 1.0));
    assert_ne!(learnt(1, 1.0).0, start());
}

/// A map that points past the values is refused before there are sums for all that it points to.
#[test]
fn groups_without_a_value_are_refused() {
    let start = Hyperparameters {
        alpha: vec![1.0],
        shape: vec![1.0],
        rate: vec![0.1],
    };
    let plus = Groups::Each(dmatrix![0; 0]);
    let sharing = Sharing {
        plus,
        ..Sharing::all(2, 1)
    };
    let learner = Learner::new(sharing, start, Rate::Average).unwrap();
    let text = serde_json::to_string(&learner).unwrap();
    let group = 1usize << 31;
    let spoilt = text.replacen("[[0,0],2,1]", &format!("[[0,{group}],2,1]"), 1);
    assert_ne!(spoilt, text);
    let mut learner: Learner = serde_json::from_str(&spoilt).unwrap();
    let factors = Factors {
        plus: dmatrix![0.5; 0.25],
        minus: dmatrix![0.125; 0.125],
        activations: dmatrix![2.0],
    };
    let refused = learner.learn_known(&factors).unwrap_err();
    let needed = group + 1;
    let expected = FitError::Conflict {
        what: format!("1 of `alpha` given, the sharing refers to {needed}"),
    };
    assert_eq!(refused, expected);
}
