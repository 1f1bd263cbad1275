//! Every trajectory of the reference vectors, dense and sparse, in f64 and f32.

use nalgebra::DMatrix;
use plca_em::{Given, Missing, Nmf, NmfState, Plca, PlcaState, Plsa, PlsaState, Update};
use plca_fit::{Algorithm, Init, Model, State};
use plca_tensor::{Coordinates, Data, DenseTensor, Order, Real, SparseTensor};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::Value;

fn golden(name: &str) -> Value {
    let path = format!(
        "{}/../testdata/golden/{name}.json",
        env!("CARGO_MANIFEST_DIR")
    );
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn numbers(v: &Value) -> Vec<f64> {
    v["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|x| x.as_f64().unwrap_or(f64::NAN))
        .collect()
}

fn shape(v: &Value) -> Vec<usize> {
    v["shape"]
        .as_array()
        .unwrap()
        .iter()
        .map(|x| x.as_u64().unwrap() as usize)
        .collect()
}

fn matrix<T: Real>(v: &Value) -> DMatrix<T> {
    let s = shape(v);
    let data: Vec<T> = numbers(v).into_iter().map(T::lit).collect();
    DMatrix::from_row_slice(s[0], s.get(1).copied().unwrap_or(1), &data)
}

fn coordinates<T: Real>(
    shape: &[usize],
    values: &[f64],
    keep: impl Fn(usize) -> bool,
) -> Coordinates<T> {
    let mut c = Coordinates {
        shape: shape.to_vec(),
        indices: Vec::new(),
        values: Vec::new(),
    };
    for (position, &value) in values.iter().enumerate().filter(|(i, _)| keep(*i)) {
        let mut rest = position;
        let mut index = vec![0u32; shape.len()];
        for m in (0..shape.len()).rev() {
            index[m] = (rest % shape[m]) as u32;
            rest /= shape[m];
        }
        c.indices.extend(index);
        c.values.push(T::lit(value));
    }
    c
}

/// The same data in every storage; with a mask, in every masked storage.
fn storages<T: Real>(v: &Value, mask: Option<&Value>) -> Vec<Box<dyn Data<T>>> {
    let (shape, values) = (shape(v), numbers(v));
    let typed: Vec<T> = values.iter().map(|&x| T::lit(x)).collect();
    match mask {
        None => vec![
            Box::new(DenseTensor::new(shape.clone(), typed.clone(), Order::RowMajor).unwrap()),
            Box::new(DenseTensor::masked(shape.clone(), typed, Order::RowMajor).unwrap()),
            Box::new(SparseTensor::new(coordinates(&shape, &values, |i| values[i] > 0.0)).unwrap()),
            Box::new(SparseTensor::stored_only(coordinates(&shape, &values, |_| true)).unwrap()),
        ],
        Some(mask) => {
            let seen: Vec<bool> = numbers(mask).iter().map(|&m| m != 0.0).collect();
            vec![
                Box::new(
                    DenseTensor::with_mask(shape.clone(), typed, Order::RowMajor, &seen).unwrap(),
                ),
                Box::new(
                    SparseTensor::stored_only(coordinates(&shape, &values, |i| seen[i])).unwrap(),
                ),
                Box::new(
                    SparseTensor::all_but(
                        coordinates(&shape, &values, |i| values[i] > 0.0),
                        coordinates(&shape, &values, |i| !seen[i]),
                    )
                    .unwrap(),
                ),
            ]
        }
    }
}

/// 1e-11 up to 50 iterations, 1e-9 beyond; 1e-4 in f32.
fn tolerance<T: Real>(iteration: u64) -> f64 {
    if size_of::<T>() == 4 {
        1e-4
    } else if iteration <= 50 {
        1e-11
    } else {
        1e-9
    }
}

fn same<T: Real>(what: &str, got: &[T], want: &[T], tolerance: f64) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (g, w) in got.iter().zip(want) {
        let (g, w) = (g.to_f64(), w.to_f64());
        assert!(
            (g - w).abs() <= tolerance * w.abs().max(1.0),
            "{what}: {g} instead of {w}"
        );
    }
}

/// Steps to every reference point of a trajectory and calls `compare` there.
fn follow<S: State>(
    algorithm: &dyn Algorithm<S::Scalar>,
    state: &S,
    points: &Value,
    compare: impl Fn(&S, &Value, u64),
) {
    let (mut at, mut done) = (state.parameters().clone(), 0);
    for point in points.as_array().unwrap() {
        let iteration = point["iter"].as_u64().unwrap();
        while done < iteration {
            algorithm.step(&mut at, false).unwrap();
            done += 1;
        }
        compare(&S::wrap(at.clone()).unwrap(), point, iteration);
    }
    assert!(done > 0, "no reference points");
}

fn rng() -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(0)
}

fn plca_case<T: Real>(case: &Value, mask: Option<&Value>, key: &str) {
    let k = case["K"].as_u64().unwrap() as usize;
    let mut plca = Plca::new(k);
    if let Some(b) = case["b"].as_f64() {
        plca = plca
            .temper(b)
            .temper_prior(case["temper_prior"].as_bool().unwrap());
    }
    let mut init = Init::default().block("weights", matrix::<T>(&case["init"]["pz"]));
    for (j, factor) in case["init"]["factors"]
        .as_array()
        .unwrap()
        .iter()
        .enumerate()
    {
        init = init.block(format!("factor_{j}"), matrix(factor));
    }
    for data in storages::<T>(&case["V"], mask) {
        let algorithm = plca.bind(&*data).unwrap();
        let state = plca.init(&*data, init.clone(), &mut rng()).unwrap();
        if let Some(want) = case["init_loglik"].as_f64() {
            same(
                "init",
                &[algorithm.objective(state.parameters()).unwrap()],
                &[want],
                tolerance::<T>(1),
            );
        }
        follow(
            &*algorithm,
            &state,
            &case["trajectory"],
            |state: &PlcaState<T>, point, iteration| {
                let tolerance = tolerance::<T>(iteration);
                same(
                    "pz",
                    state.weights(),
                    matrix::<T>(&point["pz"]).as_slice(),
                    tolerance,
                );
                for (got, want) in state
                    .factors()
                    .iter()
                    .zip(point["factors"].as_array().unwrap())
                {
                    same(
                        "factor",
                        got.as_slice(),
                        matrix::<T>(want).as_slice(),
                        tolerance,
                    );
                }
                same(
                    "likelihood",
                    &[algorithm.likelihood(state.parameters()).unwrap()],
                    &[point[key].as_f64().unwrap()],
                    tolerance,
                );
            },
        );
    }
}

fn plca<T: Real>() {
    for case in golden("plca")["cases"].as_array().unwrap() {
        plca_case::<T>(case, None, "loglik");
    }
    for case in golden("plca_tempered")["cases"].as_array().unwrap() {
        plca_case::<T>(case, None, "loglik");
    }
}

/// The EM steps of symmetric PLCA [SPEC 1.1] [SI eq. 2-4] [SI eq. 39-40] [LV eq. 11-14], tempered [SPEC 1.4], of orders 2 to 4.
#[test]
fn plca_f64() {
    plca::<f64>();
}

// [SPEC 1.1] [SPEC 1.4] [SI eq. 2-4] [LV eq. 11-14]
#[test]
fn plca_f32() {
    plca::<f32>();
}

fn plsa<T: Real>() {
    for case in golden("plsa")["cases"].as_array().unwrap() {
        let given = if case["direction"] == "x1|x2" {
            Given::Columns
        } else {
            Given::Rows
        };
        let fold_in = case["V_new_columns"].is_object();
        let k = case["K"].as_u64().unwrap() as usize;
        // New data are stored as columns in both directions.
        let mut plsa = Plsa::new(k).given(if fold_in { Given::Columns } else { given });
        if let Some(b) = case["b"].as_f64() {
            plsa = plsa.temper(b);
        }
        if fold_in {
            plsa = plsa.freeze("basis");
        }
        let init = Init::default()
            .block("basis", matrix::<T>(&case["init"]["P_x_given_z"]))
            .block("mixture", matrix(&case["init"]["P_z_given_y"]));
        for data in storages::<T>(
            if fold_in {
                &case["V_new_columns"]
            } else {
                &case["V"]
            },
            None,
        ) {
            let algorithm = plsa.bind(&*data).unwrap();
            let state = plsa.init(&*data, init.clone(), &mut rng()).unwrap();
            let basis = state.basis().clone();
            follow(
                &*algorithm,
                &state,
                &case["trajectory"],
                |state: &PlsaState<T>, point, iteration| {
                    let tolerance = tolerance::<T>(iteration);
                    if fold_in {
                        assert_eq!(state.basis(), &basis, "a frozen block changed");
                    } else {
                        same(
                            "basis",
                            state.basis().as_slice(),
                            matrix::<T>(&point["P_x_given_z"]).as_slice(),
                            tolerance,
                        );
                    }
                    same(
                        "mixture",
                        state.mixture().as_slice(),
                        matrix::<T>(&point["P_z_given_y"]).as_slice(),
                        tolerance,
                    );
                    let want = point["loglik_conditional"].as_f64().unwrap();
                    same(
                        "likelihood",
                        &[algorithm.likelihood(state.parameters()).unwrap()],
                        &[want],
                        tolerance,
                    );
                },
            );
        }
    }
}

/// PLSA in both directions [SPEC 2] [LV eq. 10], tempered [SPEC 1.4] [HOFMANN alg. TEM], and fold-in [SPEC 1.5].
#[test]
fn plsa_f64() {
    plsa::<f64>();
}

// [SPEC 2] [SPEC 1.4] [SPEC 1.5] [LV eq. 10] [HOFMANN alg. TEM]
#[test]
fn plsa_f32() {
    plsa::<f32>();
}

fn nmf<T: Real>() {
    for case in golden("nmf_kl")["cases"].as_array().unwrap() {
        let k = case["K"].as_u64().unwrap() as usize;
        let init = Init::default()
            .block("w", matrix::<T>(&case["W0"]))
            .block("h", matrix(&case["H0"]));
        for (update, points) in [
            (Update::Sequential, "sequential"),
            (Update::Simultaneous, "simultaneous"),
        ] {
            let nmf = Nmf::new(k).update(update);
            for data in storages::<T>(&case["V"], None)
                .into_iter()
                .filter(|d| d.is_complete())
            {
                let algorithm = nmf.bind(&*data).unwrap();
                let state = nmf.init(&*data, init.clone(), &mut rng()).unwrap();
                follow(
                    &*algorithm,
                    &state,
                    &case[points],
                    |state: &NmfState<T>, point, iteration| {
                        let tolerance = tolerance::<T>(iteration);
                        same(
                            "W",
                            state.w().as_slice(),
                            matrix::<T>(&point["W"]).as_slice(),
                            tolerance,
                        );
                        same(
                            "H",
                            state.h().as_slice(),
                            matrix::<T>(&point["H"]).as_slice(),
                            tolerance,
                        );
                        let kl = algorithm.objective(state.parameters()).unwrap();
                        let want = point["kl"].as_f64().unwrap();
                        same("divergence", &[kl], &[want], tolerance);
                        if point["plca_pz"].is_object() {
                            let image = state.to_plca().unwrap();
                            same(
                                "pz",
                                image.weights(),
                                matrix::<T>(&point["plca_pz"]).as_slice(),
                                tolerance,
                            );
                            same(
                                "F1",
                                image.factor(0).as_slice(),
                                matrix::<T>(&point["plca_F1"]).as_slice(),
                                tolerance,
                            );
                            same(
                                "F2",
                                image.factor(1).as_slice(),
                                matrix::<T>(&point["plca_F2"]).as_slice(),
                                tolerance,
                            );
                            let d: Vec<T> = matrix::<T>(&case["D"]).as_slice().to_vec();
                            let back =
                                NmfState::from_plca(&image, &d, T::lit(data.total())).unwrap();
                            same(
                                "W back",
                                back.w().as_slice(),
                                state.w().as_slice(),
                                tolerance,
                            );
                            same(
                                "H back",
                                back.h().as_slice(),
                                state.h().as_slice(),
                                tolerance,
                            );
                        }
                    },
                );
            }
        }
    }
}

/// Both forms of KL-NMF [SPEC 3] and the mapping of one of them to PLCA and back [SI eq. 79] [SI eq. 80].
// [SI eq. 97] [LV eq. 1] [LS eq. 5]
#[test]
fn nmf_f64() {
    nmf::<f64>();
}

// [SPEC 3] [SI eq. 79-80] [SI eq. 97] [LV eq. 1] [LS eq. 5]
#[test]
fn nmf_f32() {
    nmf::<f32>();
}

fn missing<T: Real>() {
    for case in golden("missing")["cases"].as_array().unwrap() {
        let mask = &case["mask"];
        if case["init"]["pz"].is_object() {
            plca_case::<T>(case, Some(mask), "loglik_observed");
            continue;
        }
        let init = Init::default()
            .block("w", matrix::<T>(&case["init"]["W"]))
            .block("h", matrix(&case["init"]["H"]));
        let k = case["K"].as_u64().unwrap() as usize;
        let nmf = Nmf::new(k).missing(Missing::Multiplicative);
        for data in storages::<T>(&case["V"], Some(mask)) {
            let algorithm = nmf.bind(&*data).unwrap();
            let state = nmf.init(&*data, init.clone(), &mut rng()).unwrap();
            // The same updates through PLCA, whose observed likelihood has no scale.
            let plca = Plca::new(k).missing(Missing::Multiplicative);
            let plca_algorithm = plca.bind(&*data).unwrap();
            let mut image = state.to_plca().unwrap().parameters().clone();
            follow(
                &*algorithm,
                &state,
                &case["trajectory"],
                |state: &NmfState<T>, point, iteration| {
                    let tolerance = tolerance::<T>(iteration);
                    same(
                        "W",
                        state.w().as_slice(),
                        matrix::<T>(&point["W"]).as_slice(),
                        tolerance,
                    );
                    same(
                        "H",
                        state.h().as_slice(),
                        matrix::<T>(&point["H"]).as_slice(),
                        tolerance,
                    );
                    let kl = algorithm.objective(state.parameters()).unwrap();
                    let want = point["kl_observed"].as_f64().unwrap();
                    same("divergence", &[kl], &[want], tolerance);
                    let ln_lik = plca_algorithm
                        .likelihood(state.to_plca().unwrap().parameters())
                        .unwrap();
                    same(
                        "likelihood",
                        &[ln_lik],
                        &[point["loglik_observed"].as_f64().unwrap()],
                        tolerance,
                    );
                },
            );
            for _ in 0..5 {
                plca_algorithm.step(&mut image, false).unwrap();
            }
            let five = case["trajectory"]
                .as_array()
                .unwrap()
                .iter()
                .find(|p| p["iter"] == 5)
                .unwrap();
            let want = five["loglik_observed"].as_f64().unwrap();
            same(
                "as PLCA",
                &[plca_algorithm.likelihood(&image).unwrap()],
                &[want],
                tolerance::<T>(5),
            );
        }
    }
}

/// Missing entries by imputation and by masked updates [SPEC 4].
#[test]
fn missing_f64() {
    missing::<f64>();
}

// [SPEC 4]
#[test]
fn missing_f32() {
    missing::<f32>();
}
