//! The gamma prior of a block of rates.

use nalgebra::{DMatrix, dmatrix};
use plca_priors::{Entries, Gamma, PriorError, RatePrior, Step};

/// One prior of blocks of `2 x 3`, given once, for every row and for every entry.
fn given(shape: f64, rate: f64) -> [Gamma; 3] {
    let all = Gamma::new(shape, rate);
    let rows = Gamma::of(Entries::PerComponent(vec![shape; 2]), Entries::All(rate));
    let each = DMatrix::from_element(2, 3, rate);
    let each = Gamma::of(Entries::All(shape), Entries::Each(each));
    [all, rows, each].map(Result::unwrap)
}

/// A prior that is the same everywhere has the bits of one that is given entry by entry.
#[test]
fn one_prior_for_all_is_that_of_each() {
    let counts = dmatrix![4.0, 0.0, 0.2; 1e-3, 7.0, 0.0];
    let exposure = dmatrix![2.0, 0.0, 1.0; 0.5, 3.0, 0.0];
    let before = DMatrix::from_element(2, 3, 0.7);
    for (shape, rate) in [(2.5, 0.5), (0.3, 0.1), (1.0, 0.0)] {
        let [all, rows, each] = given(shape, rate).map(|prior| {
            let mut theta = before.clone();
            let done = prior.update(&counts, &exposure, &mut theta, &Step::at(1));
            assert_eq!(done, Ok(()));
            theta
        });
        assert!(all == rows && all == each, "{all}{rows}{each}");
        // Neither counts nor exposure nor an opinion of the prior.
        let kept = [(0, 1), (1, 2)].map(|at| all[at] == before[at]);
        assert_eq!(kept, [rate == 0.0; 2]);
    }
}

/// A rate beyond the numbers is refused with its column, and the block keeps its values.
#[test]
fn overflow_is_refused_and_the_block_kept() {
    let counts = dmatrix![1.0, 2.0, 3.0; 4.0, 1e300, 1e300];
    let exposure = dmatrix![1.0, 1.0, 1.0; 1.0, 1e-100, 1e-100];
    let before = dmatrix![0.1, 0.2, 0.3; 0.4, 0.5, 0.6];
    for prior in given(1.5, 0.0) {
        let mut theta = before.clone();
        let refused = prior.update(&counts, &exposure, &mut theta, &Step::at(1));
        assert_eq!(refused, Err(PriorError::Overflow { column: 1 }));
        assert_eq!(theta, before);
    }
}
