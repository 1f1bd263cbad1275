//! Reference trajectories through files: dense and sparse data, every model.

use std::fmt::Write;

use serde_json::Value;

use crate::Folder;

pub(crate) fn cases(text: &str) -> Vec<Value> {
    let file: Value = serde_json::from_str(text).unwrap();
    file["cases"].as_array().unwrap().clone()
}

pub(crate) fn array(v: &Value) -> (Vec<usize>, Vec<f64>) {
    let shape = v["shape"].as_array().unwrap();
    let data = v["data"].as_array().unwrap();
    (
        shape.iter().map(|n| n.as_u64().unwrap() as usize).collect(),
        data.iter().map(|x| x.as_f64().unwrap()).collect(),
    )
}

pub(crate) fn put(folder: &Folder, name: &str, v: &Value) {
    let (shape, data) = array(v);
    folder.npy(name, &shape, &data);
}

pub(crate) fn init(folder: &Folder, blocks: &[(String, &Value)]) {
    let blocks: Vec<_> = blocks.iter().map(|(n, v)| (n.as_str(), array(v))).collect();
    let blocks: Vec<_> = blocks
        .iter()
        .map(|(n, (s, d))| (*n, &s[..], &d[..]))
        .collect();
    folder.arrays("init.npz", &blocks);
}

/// The non-zero entries with 1-based indices.
pub(crate) fn sparse(folder: &Folder, v: &Value) {
    let (shape, data) = array(v);
    let mut text = String::new();
    for (at, x) in data.iter().enumerate().filter(|(_, x)| **x != 0.0) {
        let mut rest = at;
        let mut index: Vec<usize> = shape
            .iter()
            .rev()
            .map(|n| {
                let i = rest % n + 1;
                rest /= n;
                i
            })
            .collect();
        index.reverse();
        for i in index {
            write!(text, "{i} ").unwrap();
        }
        writeln!(text, "{x:?}").unwrap();
    }
    folder.text("v.tns", &text);
}

pub(crate) fn shape_option(v: &Value) -> String {
    let sizes: Vec<String> = array(v).0.iter().map(usize::to_string).collect();
    format!("--shape {}", sizes.join("x"))
}

/// Tolerances as documented beside the data.
fn tolerance(iterations: u64) -> f64 {
    if iterations <= 50 { 1e-11 } else { 1e-9 }
}

fn close(got: f64, want: f64, tol: f64, what: &str) {
    assert!(
        (got - want).abs() <= tol * want.abs().max(1.0),
        "{what}: {got} {want}"
    );
}

fn same_blocks(folder: &Folder, want: &[(String, &Value)], tol: f64, what: &str) {
    let model = folder.model("out.npz");
    for (name, block) in want {
        let (shape, data) = array(block);
        let got = &model.arrays[name];
        assert_eq!(got.shape, shape, "{what} {name}");
        for (g, w) in got.values.iter().zip(&data) {
            close(*g, *w, tol, &format!("{what} {name}"));
        }
    }
}

fn plca_blocks(v: &Value) -> Vec<(String, &Value)> {
    let factors = v["factors"].as_array().unwrap().iter().enumerate();
    std::iter::once(("weights".to_string(), &v["pz"]))
        .chain(factors.map(|(j, f)| (format!("factor_{j}"), f)))
        .collect()
}

fn plsa_blocks(v: &Value) -> Vec<(String, &Value)> {
    vec![
        ("basis".into(), &v["P_x_given_z"]),
        ("mixture".into(), &v["P_z_given_y"]),
    ]
}

fn nmf_blocks(v: &Value) -> Vec<(String, &Value)> {
    vec![("w".into(), &v["W"]), ("h".into(), &v["H"])]
}

/// One fit of exactly `iter` iterations, compared with a point of a trajectory.
pub(crate) fn check(
    folder: &Folder,
    line: &str,
    point: &Value,
    blocks: &[(String, &Value)],
    objective: &str,
    what: &str,
) {
    let n = point["iter"].as_u64().unwrap();
    let summary = folder.json(&format!(
        "fit {line} --init init.npz --output out.npz --tol 0 --max-iter {n} --quiet"
    ));
    assert_eq!(summary["iterations"], n);
    let what = format!("{what}, {n} iterations");
    close(
        summary["objective"].as_f64().unwrap(),
        point[objective].as_f64().unwrap(),
        tolerance(n),
        &what,
    );
    same_blocks(folder, blocks, tolerance(n), &what);
}

#[test]
fn plca_trajectories_match_the_reference() {
    for text in [
        include_str!("../../../testdata/golden/plca.json"),
        include_str!("../../../testdata/golden/plca_tempered.json"),
    ] {
        for case in cases(text) {
            let folder = Folder::new();
            put(&folder, "v.npy", &case["V"]);
            sparse(&folder, &case["V"]);
            init(&folder, &plca_blocks(&case["init"]));
            let mut options = String::new();
            if let Some(b) = case["b"].as_f64() {
                write!(options, "--temper {b}").unwrap();
            }
            if case["temper_prior"] == true {
                options += " --temper-prior";
            }
            let sizes = shape_option(&case["V"]);
            for data in ["v.npy".to_string(), format!("v.tns {sizes}")] {
                for point in case["trajectory"].as_array().unwrap() {
                    let what = format!("{} {data}", case["name"]);
                    check(
                        &folder,
                        &format!("plca {data} {options}"),
                        point,
                        &plca_blocks(point),
                        "loglik",
                        &what,
                    );
                }
            }
        }
    }
}

#[test]
fn plsa_trajectories_and_fold_in_match_the_reference() {
    for case in cases(include_str!("../../../testdata/golden/plsa.json")) {
        let folder = Folder::new();
        let given = u8::from(case["direction"] == "x1|x2");
        init(&folder, &plsa_blocks(&case["init"]));
        let mut options = format!("--given {given}");
        let fold_in = case["V_new_columns"].is_object();
        if fold_in {
            // New observations are columns in the file.
            let (shape, data) = array(&case["V_new_columns"]);
            folder.npy("v.npy", &shape, &data);
            options = "--given 1 --freeze basis".into();
        } else {
            put(&folder, "v.npy", &case["V"]);
        }
        if let Some(b) = case["b"].as_f64() {
            write!(options, " --temper {b}").unwrap();
        }
        for point in case["trajectory"].as_array().unwrap() {
            let n = point["iter"].as_u64().unwrap();
            folder.ok(&format!(
                "fit plsa v.npy {options} --init init.npz --output out.npz --tol 0 --max-iter {n} --quiet"
            ));
            let want = if fold_in {
                vec![("mixture".to_string(), &point["P_z_given_y"])]
            } else {
                plsa_blocks(point)
            };
            same_blocks(
                &folder,
                &want,
                tolerance(n),
                &format!("{} {n}", case["name"]),
            );
        }
    }
}

#[test]
fn nmf_trajectories_match_the_reference() {
    for case in cases(include_str!("../../../testdata/golden/nmf_kl.json")) {
        let folder = Folder::new();
        put(&folder, "v.npy", &case["V"]);
        sparse(&folder, &case["V"]);
        init(
            &folder,
            &[("w".into(), &case["W0"]), ("h".into(), &case["H0"])],
        );
        let sizes = shape_option(&case["V"]);
        for update in ["sequential", "simultaneous"] {
            for data in ["v.npy".to_string(), format!("v.tns {sizes}")] {
                for point in case[update].as_array().unwrap() {
                    let blocks = [("w".into(), &point["W"]), ("h".into(), &point["H"])];
                    let line = format!("nmf-kl {data} --update {update}");
                    check(
                        &folder,
                        &line,
                        point,
                        &blocks,
                        "kl",
                        &format!("{} {line}", case["name"]),
                    );
                }
            }
        }
    }
}

#[test]
fn masked_trajectories_match_the_reference() {
    for case in cases(include_str!("../../../testdata/golden/missing.json")) {
        let folder = Folder::new();
        put(&folder, "v.npy", &case["V"]);
        put(&folder, "m.npy", &case["mask"]);
        // The same mask said by NaN, and as a list of hidden cells.
        let ((shape, v), (_, m)) = (array(&case["V"]), array(&case["mask"]));
        let nan: Vec<f64> = v
            .iter()
            .zip(&m)
            .map(|(&v, &m)| if m == 0.0 { f64::NAN } else { v })
            .collect();
        folder.npy("nan.npy", &shape, &nan);
        let mut hidden = String::new();
        for (at, _) in m.iter().enumerate().filter(|(_, m)| **m == 0.0) {
            writeln!(hidden, "{} {} 1", at / shape[1] + 1, at % shape[1] + 1).unwrap();
        }
        folder.text("hidden.tns", &hidden);
        sparse(&folder, &case["V"]);
        let sizes = shape_option(&case["V"]);
        let plca = case["init"]["pz"].is_object();
        let blocks = if plca { plca_blocks } else { nmf_blocks };
        init(&folder, &blocks(&case["init"]));
        let (model, objective) = if plca {
            ("plca --missing-method imputation", "loglik_observed")
        } else {
            ("nmf-kl --missing-method multiplicative", "kl_observed")
        };
        for data in [
            "v.npy --mask m.npy".to_string(),
            // The mask is not needed where NaN says the same, and may stand beside it.
            "nan.npy --missing nan".into(),
            "nan.npy --mask m.npy".into(),
            format!("v.tns {sizes} --mask hidden.tns"),
        ] {
            for point in case["trajectory"].as_array().unwrap() {
                let line = format!("{model} {data}");
                check(
                    &folder,
                    &line,
                    point,
                    &blocks(point),
                    objective,
                    &format!("{} {line}", case["name"]),
                );
            }
        }
    }
}
