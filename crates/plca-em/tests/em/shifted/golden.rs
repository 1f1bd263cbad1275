//! Every trajectory of the reference vectors, by every arithmetic and from every storage.

use nalgebra::DMatrix;
use plca_em::{
    Anneal, Evaluation, IndexMaps, Likelihood, Shifted, ShiftedState, Support, Transformed,
};
use plca_fit::{Algorithm, Init, Model, Parameters, State};
use plca_tensor::{Data, Real};
use serde_json::Value;

use super::support::{EVALUATIONS, complete, rng};

fn cases(name: &str) -> Vec<Value> {
    let path = format!(
        "{}/../testdata/golden/{name}.json",
        env!("CARGO_MANIFEST_DIR")
    );
    let file: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    file["cases"].as_array().unwrap().clone()
}

fn sizes(v: &Value) -> Vec<usize> {
    let all = v.as_array().unwrap().iter();
    all.map(|n| n.as_u64().unwrap() as usize).collect()
}

fn numbers(v: &Value) -> Vec<f64> {
    let all = v["data"].as_array().unwrap().iter();
    all.map(|x| x.as_f64().unwrap()).collect()
}

/// `(K, cells…)` as one column of cells for every component.
fn block<T: Real>(v: &Value) -> DMatrix<T> {
    let k = sizes(&v["shape"])[0];
    let values: Vec<T> = numbers(v).into_iter().map(T::lit).collect();
    DMatrix::from_vec(values.len() / k, k, values)
}

fn supports(mode: &Value) -> Vec<Support> {
    let named = |v: &Value| match v.as_str().unwrap() {
        "valid" => Support::Valid,
        "same" => Support::Same,
        "full" => Support::Full,
        other => panic!("support {other}"),
    };
    match mode.as_array() {
        Some(all) => all.iter().map(named).collect(),
        None => vec![named(mode)],
    }
}

fn configuration(case: &Value, evaluation: Evaluation) -> Shifted {
    let k = case["K"].as_u64().unwrap() as usize;
    let mut shifted = Shifted::new(k, sizes(&case["kernel_shape"]))
        .supports(supports(&case["mode"]))
        .likelihood(Likelihood::Literal)
        .evaluation(evaluation);
    if case["kernels_fixed"] == true {
        shifted = shifted.freeze("kernels");
    }
    if let Some(alpha0) = case["anneal"]["alpha0"].as_f64() {
        let over = case["anneal"]["T"].as_f64().unwrap();
        shifted = shifted.anneal(Anneal { alpha0, over });
    }
    shifted
}

fn start<T: Real>(init: &Value, impulses: &str) -> Init<T> {
    let weights: Vec<T> = numbers(&init["pz"]).into_iter().map(T::lit).collect();
    Init::default()
        .block("weights", DMatrix::from_vec(weights.len(), 1, weights))
        .block("kernels", block(&init["kernels"]))
        .block("impulses", block(&init[impulses]))
}

/// 1e-11 up to 50 iterations, 1e-9 beyond; 1e-4 in f32.
fn tolerance<T: Real>(iteration: u64) -> f64 {
    match (size_of::<T>(), iteration) {
        (4, _) => 1e-4,
        (_, 0..=50) => 1e-11,
        _ => 1e-9,
    }
}

fn same<T: Real>(what: &str, got: &[T], want: &Value, tolerance: f64) {
    let want = numbers(want);
    assert_eq!(got.len(), want.len(), "{what}");
    for (g, w) in got.iter().zip(want) {
        let g = g.to_f64();
        assert!(
            (g - w).abs() <= tolerance * w.abs().max(1.0),
            "{what}: {g} instead of {w}"
        );
    }
}

/// Follows a trajectory from its start; `each` sees the parameters at every point of it.
fn follow<T: Real>(
    name: &str,
    case: &Value,
    impulses: &str,
    algorithm: &dyn Algorithm<T>,
    each: impl Fn(&Parameters<T>, &Value, f64),
) {
    let init = start::<T>(&case["init"], impulses);
    let mut at = init.parameters(algorithm, &mut rng(0)).unwrap();
    let mut points = 0;
    for point in case["trajectory"].as_array().unwrap() {
        let iteration = point["iter"].as_u64().unwrap();
        while at.iteration() < iteration as usize {
            algorithm.step(&mut at, false).unwrap();
        }
        let t = tolerance::<T>(iteration);
        for (block, key) in ["pz", "kernels", impulses].into_iter().enumerate() {
            same(
                &format!("{name}, {key}"),
                at.at(block).as_slice(),
                &point[key],
                t,
            );
        }
        let (got, want) = (
            algorithm.objective(&at).unwrap(),
            point["loglik"].as_f64().unwrap(),
        );
        assert!(
            (got - want).abs() <= t * want.abs(),
            "{name}: {got} instead of {want}"
        );
        each(&at, point, t);
        points += 1;
    }
    assert!(points > 0);
}

fn shifted<T: Real>(case: &Value, evaluation: Evaluation, storage: &str, data: &dyn Data<T>) {
    let config = configuration(case, evaluation);
    let geometry = config.geometry(data.shape()).unwrap();
    let name = format!("{}, {evaluation:?}, {storage}", case["name"]);
    let impulse = sizes(&case["impulse_shape"]);
    assert_eq!(geometry.impulse_shape(), impulse, "{name}");
    assert_eq!(geometry.offset(), sizes(&case["offset"]), "{name}");
    let em = config.bind(data).unwrap();
    follow(&name, case, "impulses", &*em, |at, point, t| {
        let got = ShiftedState::wrap(at.clone()).unwrap().window_mass();
        let want = point["mass_in_domain"].as_f64().unwrap();
        assert!(
            (got - want).abs() <= t,
            "{name}: mass {got} instead of {want}"
        );
    });
}

fn every_trajectory<T: Real>() {
    let cases = cases("siplca");
    assert_eq!(cases.len(), 11);
    for case in &cases {
        let (shape, values) = (sizes(&case["V"]["shape"]), numbers(&case["V"]));
        for (storage, data) in complete::<T>(&shape, &values) {
            for evaluation in EVALUATIONS {
                shifted(case, evaluation, storage, &*data);
            }
        }
    }
}

// [SPEC 5.1] [SPEC 5.2] [SPEC 5.4] [SI eq. 6-15]
#[test]
fn shifted_trajectories_match_the_reference() {
    every_trajectory::<f64>();
}

// [SPEC 5.1] [SPEC 5.2] [SPEC 5.4] [SI eq. 6-15]
#[test]
fn single_precision_follows_the_reference() {
    every_trajectory::<f32>();
}

// [SPEC 5.7]
#[test]
fn transformed_trajectories_match_the_reference() {
    let cases = cases("transform_invariant");
    assert_eq!(cases.len(), 2);
    for case in &cases {
        let table = case["index_map"]["data"].as_array().unwrap();
        let table: Vec<i64> = table.iter().map(|x| x.as_f64().unwrap() as i64).collect();
        let kernel = sizes(&case["index_map"]["shape"])[1];
        let values = numbers(&case["V_flat"]);
        let maps = IndexMaps::new(values.len(), kernel, &table).unwrap();
        let k = case["K"].as_u64().unwrap() as usize;
        let config = Transformed::new(k, maps).likelihood(Likelihood::Literal);
        // A square of five: the maps know nothing of the shape.
        for (storage, data) in complete::<f64>(&[5, 5], &values) {
            let name = format!("{}, {storage}", case["name"]);
            let em = config.bind(&*data).unwrap();
            follow(&name, case, "weights", &*em, |_, _, _| {});
        }
    }
}
