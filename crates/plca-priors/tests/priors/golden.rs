//! The Dirichlet M-step against reference vectors.

use nalgebra::DMatrix;
use plca_priors::{Dirichlet, SimplexPrior, Step};
use serde_json::Value;

fn numbers(v: &Value) -> Vec<f64> {
    v["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|x| x.as_f64().unwrap())
        .collect()
}

/// The Dirichlet step [SPEC 7], clipped and kept columns included.
#[test]
fn dirichlet_m_step() {
    let golden: Value = serde_json::from_str(include_str!(
        "../../../testdata/golden/dirichlet_mstep.json"
    ))
    .unwrap();
    for case in golden["cases"].as_array().unwrap() {
        let (counts, alpha) = (numbers(&case["counts"]), numbers(&case["alpha"]));
        let n = counts.len();
        let start = DMatrix::from_element(n, 1, 1.0 / n as f64);
        let mut theta = start.clone();
        let prior = Dirichlet::per_entry(DMatrix::from_vec(n, 1, alpha)).unwrap();
        prior
            .update(&DMatrix::from_vec(n, 1, counts), &mut theta, &Step::at(1))
            .unwrap();
        let want = if case["theta"].is_null() {
            start.as_slice().to_vec()
        } else {
            numbers(&case["theta"])
        };
        for (got, want) in theta.iter().zip(want) {
            assert!((got - want).abs() <= 1e-15, "{got} instead of {want}");
        }
    }
}
