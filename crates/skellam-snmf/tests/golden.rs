//! Reference trajectories.

mod support;

use nalgebra::DMatrix;
use plca_fit::Algorithm;
use serde_json::Value;
use skellam_snmf::{Entries, Prior, Replicates, SignedMatrix, Snmf, SnmfInit};
use support::{assert_near, matrix, number, rng, side};

/// Data of a case, in which hidden cells hold whatever the file has there.
fn data(case: &Value) -> SignedMatrix<f64> {
    let (values, observed) = (&case["V"], &case["observed"]);
    let rows = values.as_array().unwrap().len();
    let columns = values[0].as_array().unwrap().len();
    let seen = DMatrix::from_fn(rows, columns, |f, n| observed[f][n].as_bool().unwrap());
    let values = DMatrix::from_fn(rows, columns, |f, n| {
        values[f][n].as_f64().unwrap_or(f64::NAN)
    });
    SignedMatrix::with_mask(&values, &seen).unwrap()
}

fn prior(case: &Value) -> Prior {
    Prior {
        plus: Entries::Each(side(&case["alpha"], 0)),
        minus: Entries::Each(side(&case["alpha"], 1)),
        shape: Entries::Each(matrix(&case["a"])),
        rate: Entries::Each(matrix(&case["b"])),
    }
}

fn replicates(case: &Value) -> Replicates {
    match case["M"].as_str().unwrap() {
        "1" => Replicates::One,
        "inf" => Replicates::Limit,
        other => panic!("M = {other}"),
    }
}

/// [SKELLAM 4] [SKELLAM 5]
#[test]
fn em_trajectories() {
    let file = include_str!("../../../testdata/golden/trajectories_em.json");
    let golden: Value = serde_json::from_str(file).unwrap();
    let rtol = number(&golden["rtol"]);
    for case in golden["cases"].as_array().unwrap() {
        let data = data(case);
        let k = case["K"].as_u64().unwrap() as usize;
        let config = Snmf::builder(k)
            .replicates(replicates(case))
            .prior(prior(case))
            .build()
            .unwrap();
        let start = SnmfInit {
            atoms: Some((side(&case["theta0"], 0), side(&case["theta0"], 1))),
            activations: Some(matrix(&case["lambda0"])),
        };
        let em = config.on(&data).unwrap();
        let mut state = config.init(&data, &start, &mut rng(0)).unwrap();
        for iteration in 0..=50 {
            if let Some(want) = case["iterations"].get(iteration.to_string()) {
                let what = format!("{} after {iteration}", case["id"]);
                assert_near(&state.plus, &side(&want["theta"], 0), rtol, &what);
                assert_near(&state.minus, &side(&want["theta"], 1), rtol, &what);
                assert_near(&state.activations, &matrix(&want["lambda"]), rtol, &what);
                for (got, want) in [
                    (em.objective(&state).unwrap(), number(&want["objective"])),
                    (em.log_fit(&state), number(&want["fit"])),
                ] {
                    assert!(
                        (got - want).abs() <= rtol * want.abs(),
                        "{what}: {got} {want}"
                    );
                }
            }
            em.step(&mut state, false).unwrap();
        }
    }
}
