//! Reference trajectories of the Skellam models through files.

use serde_json::Value;

use crate::Folder;

fn number(v: &Value) -> f64 {
    v.as_f64()
        .unwrap_or_else(|| v.as_str().unwrap().parse().unwrap())
}

/// Nested lists as a shape and its values in C order.
fn array(v: &Value) -> (Vec<usize>, Vec<f64>) {
    let Some(list) = v.as_array() else {
        let flag = v.as_bool().map(|b| f64::from(u8::from(b)));
        return (vec![], vec![flag.unwrap_or_else(|| number(v))]);
    };
    let parts: Vec<_> = list.iter().map(array).collect();
    let mut shape = vec![list.len()];
    shape.extend(&parts[0].0);
    (shape, parts.into_iter().flat_map(|p| p.1).collect())
}

fn write(folder: &Folder, name: &str, blocks: &[(&str, &Value)]) {
    let blocks: Vec<_> = blocks.iter().map(|(n, v)| (*n, array(v))).collect();
    let blocks: Vec<_> = blocks
        .iter()
        .map(|(n, (s, d))| (*n, &s[..], &d[..]))
        .collect();
    folder.arrays(name, &blocks);
}

/// Every point of every trajectory of a file, through the command line.
fn check(
    text: &str,
    model: &str,
    start: &[(&str, &str)],
    blocks: &[(&str, &str)],
    objective: &str,
) {
    let golden: Value = serde_json::from_str(text).unwrap();
    let rtol = number(&golden["rtol"]);
    for case in golden["cases"].as_array().unwrap() {
        let folder = Folder::new();
        let (shape, mut values) = array(&case["V"]);
        let (_, observed) = array(&case["observed"]);
        // What is hidden must not matter.
        for (x, _) in values.iter_mut().zip(&observed).filter(|(_, o)| **o == 0.0) {
            *x = f64::NAN;
        }
        folder.npy("v.npy", &shape, &values);
        folder.npy("seen.npy", &shape, &observed);
        let given = |pairs: &[(&'static str, &str)]| -> Vec<(&'static str, Value)> {
            pairs
                .iter()
                .map(|(n, key)| (*n, case[*key].clone()))
                .collect()
        };
        let priors = given(&[
            ("atoms.dirichlet", "alpha"),
            ("activations.gamma_shape", "a"),
            ("activations.gamma_rate", "b"),
        ]);
        let priors: Vec<_> = priors.iter().map(|(n, v)| (*n, v)).collect();
        write(&folder, "priors.npz", &priors);
        let start: Vec<_> = start.iter().map(|(n, key)| (*n, &case[*key])).collect();
        write(&folder, "init.npz", &start);
        let m = case["M"].as_str().unwrap();
        for (n, want) in case["iterations"].as_object().unwrap() {
            let summary = folder.json(&format!(
                "fit {model} v.npy --mask seen.npy --replicates {m} --init init.npz --priors priors.npz \
                 --output out.npz --tol 0 --max-iter {n} --quiet"
            ));
            let what = format!("{} after {n}", case["id"]);
            let (got, value) = (number(&summary["objective"]), number(&want[objective]));
            assert!(
                (got - value).abs() <= rtol * value.abs(),
                "{what}: {got} {value}"
            );
            if let Some(fit) = want.get("fit") {
                let (got, fit) = (number(&summary["log_likelihood"]), number(fit));
                assert!((got - fit).abs() <= rtol * fit.abs(), "{what}: {got} {fit}");
            }
            let written = folder.model("out.npz");
            for (name, key) in blocks {
                let (shape, values) = array(&want[*key]);
                let got = &written.arrays[*name];
                assert_eq!(got.shape, shape, "{what} {name}");
                for (g, w) in got.values.iter().zip(&values) {
                    assert!((g - w).abs() <= rtol * w.abs(), "{what} {name}: {g} {w}");
                }
            }
        }
    }
}

#[test]
fn em_trajectories_match_the_reference() {
    let text = include_str!("../../../testdata/golden/trajectories_em.json");
    let start = [("atoms", "theta0"), ("activations", "lambda0")];
    let blocks = [("atoms", "theta"), ("activations", "lambda")];
    check(text, "skellam", &start, &blocks, "objective");
}

#[test]
fn variational_trajectories_match_the_reference() {
    let text = include_str!("../../../testdata/golden/trajectories_vbem.json");
    let start = [
        ("atoms_shape", "alpha_hat0"),
        ("activations_shape", "a_hat0"),
        ("activations_rate", "b_hat0"),
    ];
    let blocks = [
        ("atoms_shape", "alpha_hat"),
        ("activations_shape", "a_hat"),
        ("activations_rate", "b_hat"),
    ];
    check(text, "skellam-vb", &start, &blocks, "elbo");
}
