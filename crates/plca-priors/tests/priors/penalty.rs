//! Penalties on blocks of rates.

use nalgebra::{DMatrix, dmatrix};
use plca_priors::{Penalty, PriorError, PriorRules, RatePrior, Step};
use proptest::prelude::*;

/// The new rate of one entry.
fn renewed(penalty: Penalty, c: f64, x: f64, old: f64) -> Result<f64, PriorError> {
    let [c, x] = [c, x].map(|x| DMatrix::from_element(1, 1, x));
    let mut theta = DMatrix::from_element(1, 1, old);
    penalty.update(&c, &x, &mut theta, &Step::at(1))?;
    Ok(theta[0])
}

proptest! {
    /// `(x + λ + μ θ) θ = c` whatever the sizes: the slope of the objective is 0, and it is concave.
    #[test]
    fn the_rate_is_the_root(
        c in -150..=150i32, x in -150..=150i32, l in -150..=150i32, q in -150..=150i32,
    ) {
        let [c, x, l, q] = [c, x, l, q].map(|e| 1.5 * 10f64.powi(e));
        let theta = renewed(Penalty::new(l, q).unwrap(), c, x, 1.0).unwrap();
        // Each term as a share of c: no product leaves the range.
        let share = (x + l) / c * theta + q / c * theta * theta;
        prop_assert!((share - 1.0).abs() < 1e-13, "{theta}: {share}");
    }

    /// Where the old rate is the root already, a lag changes nothing.
    #[test]
    fn fixed_points_have_no_lag(c in 0.0..9.0f64, x in 0.1..9.0f64, l in 0.0..3.0f64, q in 0.0..3.0f64) {
        let penalty = Penalty::new(l, q).unwrap();
        let root = renewed(penalty, c, x, 1.0).unwrap();
        let again = renewed(penalty.lagged(), c, x, root).unwrap();
        prop_assert!((root - again).abs() <= 1e-14 * root, "{root} {again}");
    }
}

#[test]
fn entries_that_nothing_speaks_of_keep_their_rates() {
    let none = Penalty::new(0.0, 0.0).unwrap();
    assert_eq!(renewed(none, 0.0, 0.0, 0.7), Ok(0.7));
    let prefers = [Penalty::new(1.0, 0.0), Penalty::new(1.0, 1.0)];
    for penalty in prefers.map(Result::unwrap) {
        assert_eq!(renewed(penalty, 0.0, 0.0, 0.7), Ok(0.0));
        assert_eq!(renewed(penalty.lagged(), 0.0, 0.0, 0.7), Ok(0.0));
    }
}

/// Only a rate that is no number is refused, not one whose square is none.
#[test]
fn large_numbers_are_met() {
    let [linear, both] = [Penalty::new(1e-10, 0.0), Penalty::new(1e-10, 1e250)];
    let refused = Err(PriorError::Overflow { column: 0 });
    assert_eq!(renewed(linear.unwrap(), 1e300, 1e-10, 1.0), refused);
    let theta = renewed(both.unwrap(), 1e300, 1e-10, 1.0).unwrap();
    assert!((theta / 1e25 - 1.0).abs() < 1e-14, "{theta}");
}

#[test]
fn blocks_of_other_shapes_are_refused() {
    let penalty = Penalty::new(1.0, 1.0).unwrap();
    let mut theta = dmatrix![0.5, 0.5];
    let refused = penalty.update(
        &dmatrix![1.0],
        &dmatrix![1.0, 1.0],
        &mut theta,
        &Step::at(1),
    );
    let error = PriorError::CountsShape {
        got: (1, 1),
        expected: (1, 2),
    };
    assert_eq!((refused, theta), (Err(error), dmatrix![0.5, 0.5]));
    assert!(penalty.steady(1) && !penalty.lagged().steady(1));
    assert!(Penalty::new(1.0, 0.0).unwrap().lagged().steady(1));
}

/// A whole block, in both precisions, is that of its entries.
#[test]
fn blocks_are_renewed_entry_by_entry() {
    let counts = DMatrix::from_fn(5, 7, |i, j| ((3 * i + 5 * j) % 11) as f64);
    let exposure = DMatrix::from_fn(5, 7, |i, j| 0.25 + ((i + 2 * j) % 5) as f64);
    for (l, q) in [(0.3, 0.0), (0.0, 0.7), (0.2, 0.1)] {
        let exact = Penalty::new(l, q).unwrap();
        for penalty in [exact, exact.lagged()] {
            let mut double = DMatrix::from_element(5, 7, 1.5f64);
            let mut single = double.map(|x| x as f32);
            let done = penalty.update(&counts, &exposure, &mut double, &Step::at(1));
            assert_eq!(done, Ok(()));
            let [c, x] = [&counts, &exposure].map(|m| m.map(|x| x as f32));
            assert_eq!(penalty.update(&c, &x, &mut single, &Step::at(1)), Ok(()));
            for at in 0..35 {
                let one = renewed(penalty, counts[at], exposure[at], 1.5);
                assert_eq!(Ok(double[at]), one);
                assert!((f64::from(single[at]) - double[at]).abs() < 1e-6 * (1.0 + double[at]));
            }
        }
    }
}
