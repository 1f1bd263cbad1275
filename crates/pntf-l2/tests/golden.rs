//! Every case of the reference vectors of the L2 family.

use nalgebra::DMatrix;
use pntf_l2::{Projection, project_with, simplex_qp};
use serde_json::Value;

fn golden(name: &str) -> Vec<Value> {
    let path = format!(
        "{}/../../testdata/golden/{name}.json",
        env!("CARGO_MANIFEST_DIR")
    );
    let file: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    file["cases"].as_array().unwrap().clone()
}

fn list(v: &Value) -> Vec<f64> {
    v.as_array()
        .unwrap()
        .iter()
        .map(|x| x.as_f64().unwrap())
        .collect()
}

const METHODS: [Projection; 3] = [
    Projection::Sort,
    Projection::ActiveSet,
    Projection::Threshold,
];

/// `|x - x*| <= 1e-14 (1 + |b|)` with `|b|` the size of the entries on the support; the exact support where entries are moderate.
#[test]
fn simplex_projection() {
    let cases = golden("simplex_projection");
    assert!(cases.len() >= 27);
    for case in cases {
        let (b, want) = (list(&case["b"]), list(&case["x"]));
        for method in METHODS {
            let mut x = b.clone();
            project_with(&mut x, 1.0, method).unwrap();
            for (i, (x, want)) in x.iter().zip(&want).enumerate() {
                let tol = 1e-14 * (1.0 + b[i].abs().min(1e3));
                assert!((x - want).abs() <= tol, "{method:?} {b:?}: {x} {want}");
            }
            let support = x.iter().filter(|&&x| x > 0.0).count() as u64;
            assert_eq!(
                support,
                case["support"].as_u64().unwrap(),
                "{method:?} {b:?}"
            );
        }
    }
}

#[test]
fn simplex_quadratic_programmes() {
    let cases = golden("simplex_qp");
    assert!(cases.len() >= 32);
    for case in cases {
        let f = list(&case["f"]["data"]);
        let h = DMatrix::from_row_slice(f.len(), f.len(), &list(&case["H"]["data"]));
        let scale = h.amax().max(f.iter().fold(0.0, |a: f64, x| a.max(x.abs())));
        let uniform = vec![1.0; f.len()];
        for start in [None, Some(&uniform[..])] {
            let qp = simplex_qp(&h, &f, start).unwrap();
            let name = &case["name"];
            assert!(
                qp.kkt_residual <= 1e-12 * scale,
                "{name}: {}",
                qp.kkt_residual
            );
            let want = case["objective"].as_f64().unwrap();
            assert!(
                (qp.objective - want).abs() <= 1e-13 * scale,
                "{name}: {} {want}",
                qp.objective
            );
            assert!(
                (qp.multiplier - case["nu"].as_f64().unwrap()).abs() <= 1e-12 * scale,
                "{name}"
            );
            if case["unique"] == true {
                for (x, want) in qp.weights.iter().zip(list(&case["x"])) {
                    assert!((x - want).abs() <= 1e-13, "{name}: {x} {want}");
                }
            }
        }
    }
}
