//! Factors and models by themselves: no components, and places that are not there.

use nalgebra::{DMatrix, dmatrix};
use plca_tensor::{Cp, Factor};

#[test]
fn without_components() {
    let (columns, rows) = (DMatrix::<f64>::zeros(3, 0), DMatrix::<f64>::zeros(0, 3));
    for factor in [Factor::Columns(&columns), Factor::Rows(&rows)] {
        assert_eq!((factor.rows(), factor.components()), (3, 0));
        assert!(factor.component_sums().is_empty());
        let factors = [factor; 2];
        let model = Cp {
            weights: None,
            factors: &factors,
        };
        assert_eq!((model.cell(&[0, 2]), model.mass()), (0.0, 0.0));
    }
}

fn joint(index: &[usize]) -> f64 {
    let (a, b) = (dmatrix![0.5; 0.5], dmatrix![0.25; 0.75]);
    let factors = [Factor::Columns(&a), Factor::Columns(&b)];
    let model = Cp {
        weights: None,
        factors: &factors,
    };
    model.joint(index, 0)
}

#[test]
fn a_place_of_the_model() {
    assert_eq!(joint(&[1, 1]), 0.375);
}

#[test]
#[should_panic = "one index for every mode"]
fn a_place_with_too_few_indices() {
    joint(&[1]);
}

#[test]
#[should_panic = "one index for every mode"]
fn a_place_with_too_many_indices() {
    joint(&[1, 1, 0]);
}
