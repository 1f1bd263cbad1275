//! Every case of the reference vectors of the L2 family.

use nalgebra::DMatrix;
use plca_fit::{Init, Model, Parameters, Solver, State, Transform};
use plca_tensor::{Coordinates, Data, DenseTensor, Order, Real, SparseTensor};
use pntf_l2::{
    ColumnNmf, Ntf, NtfState, NtfUpdate, Pntf, PntfState, Projection, project_with, simplex_qp,
};
use serde_json::Value;

use crate::support::{exactly, rng};

fn golden(name: &str) -> Vec<Value> {
    let path = format!(
        "{}/../testdata/golden/{name}.json",
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
// [HS alg. 1] [PNTF 3]
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

// [PNTF 4]
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

fn shape(v: &Value) -> Vec<usize> {
    let sizes = v["shape"].as_array().unwrap();
    sizes.iter().map(|x| x.as_u64().unwrap() as usize).collect()
}

fn matrix<T: Real>(v: &Value) -> DMatrix<T> {
    let data: Vec<T> = list(&v["data"]).into_iter().map(T::lit).collect();
    let s = shape(v);
    DMatrix::from_row_slice(s[0], s[1], &data)
}

fn factors<T: Real>(v: &Value) -> Vec<DMatrix<T>> {
    v["factors"]
        .as_array()
        .unwrap()
        .iter()
        .map(matrix)
        .collect()
}

/// A start from the factors of a case.
fn start<T: Real>(v: &Value) -> Init<T> {
    let factors = factors(v).into_iter().enumerate();
    factors.fold(Init::default(), |init, (j, factor)| {
        init.block(format!("factor_{j}"), factor)
    })
}

/// The same array in both memory orders and as entries.
fn storages<T: Real>(v: &Value) -> Vec<Box<dyn Data<T>>> {
    let (shape, values) = (shape(v), list(&v["data"]));
    let typed: Vec<T> = values.iter().map(|&x| T::lit(x)).collect();
    let mut entries = Coordinates {
        shape: shape.clone(),
        indices: Vec::new(),
        values: typed.clone(),
    };
    let mut columns = vec![T::zero(); typed.len()];
    for (position, &x) in typed.iter().enumerate() {
        let (mut rest, mut index) = (position, vec![0; shape.len()]);
        for m in (0..shape.len()).rev() {
            index[m] = rest % shape[m];
            rest /= shape[m];
        }
        let column_major = (0..shape.len())
            .rev()
            .fold(0, |at, m| at * shape[m] + index[m]);
        columns[column_major] = x;
        entries.indices.extend(index.iter().map(|&i| i as u32));
    }
    vec![
        Box::new(DenseTensor::new(shape.clone(), typed, Order::RowMajor).unwrap()),
        Box::new(DenseTensor::new(shape, columns, Order::ColumnMajor).unwrap()),
        Box::new(SparseTensor::new(entries).unwrap()),
    ]
}

fn close<T: Real>(what: &str, got: &[T], want: &[f64], tol: f64) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (got, want) in got.iter().zip(want) {
        let got = got.to_f64();
        assert!(
            (got - want).abs() <= tol * want.abs().max(1.0),
            "{what}: {got} {want}"
        );
    }
}

/// Trajectories of [`Pntf`]; in `f32` only the objective is compared, and loosely: another path to the same place.
fn pntf<T: Real>() {
    let cases = golden("pntf");
    assert!(cases.len() >= 5);
    let single = size_of::<T>() == 4;
    for case in cases {
        let name = case["name"].as_str().unwrap();
        let tol = if single {
            1e-5
        } else {
            case["tolerance"].as_f64().unwrap()
        };
        let k = case["K"].as_u64().unwrap() as usize;
        let weights: Vec<T> = list(&case["init"]["lambda"]["data"])
            .into_iter()
            .map(T::lit)
            .collect();
        let init = start(&case["init"]).block("weights", DMatrix::from_vec(k, 1, weights));
        for data in &storages::<T>(&case["G"]) {
            let pntf = Pntf::new(k);
            let sweep = pntf.bind(&**data).unwrap();
            let mut at = init.parameters(&*sweep, &mut rng(0)).unwrap();
            let mut done = 0;
            for point in case["trajectory"].as_array().unwrap() {
                while done < point["iter"].as_u64().unwrap() {
                    sweep.step(&mut at, false).unwrap();
                    done += 1;
                }
                let objective = sweep.objective(&at).unwrap();
                let want = point["objective"].as_f64().unwrap();
                assert!(
                    (objective - want).abs() <= tol,
                    "{name} {done}: {objective} {want}"
                );
                if single {
                    continue;
                }
                let state = PntfState::wrap(at.clone()).unwrap();
                close(name, state.weights(), &list(&point["lambda"]["data"]), tol);
                for (got, want) in state.factors().iter().zip(factors::<f64>(point)) {
                    close(name, got.as_slice(), want.as_slice(), tol);
                }
            }
        }
    }
}

/// Trajectories under quadratic sparsity; in `f32` the first sweeps alone, whose vertices are far from the next best.
fn sparse<T: Real>() {
    let cases = golden("quadratic_sparsity").into_iter();
    let cases: Vec<_> = cases.filter(|case| case["kind"] == "sweeps").collect();
    assert_eq!(cases.len(), 4);
    let single = size_of::<T>() == 4;
    for case in cases {
        let name = case["name"].as_str().unwrap();
        let k = case["K"].as_u64().unwrap() as usize;
        let weights = list(&case["init"]["lambda"]["data"]).into_iter();
        let weights = weights.map(T::lit).collect();
        let init = start(&case["init"]).block("weights", DMatrix::from_vec(k, 1, weights));
        let mut pntf = Pntf::new(k).sparsity("weights", case["mu_weights"].as_f64().unwrap());
        for (j, mu) in list(&case["mu"]).into_iter().enumerate() {
            pntf = pntf.sparsity(format!("factor_{j}"), mu);
        }
        for data in &storages::<T>(&case["G"]) {
            let sweep = pntf.bind(&**data).unwrap();
            let mut at = init.parameters(&*sweep, &mut rng(0)).unwrap();
            let mut done = 0;
            for point in case["trajectory"].as_array().unwrap() {
                let iter = point["iter"].as_u64().unwrap();
                while done < iter {
                    sweep.step(&mut at, false).unwrap();
                    done += 1;
                }
                let tol = if single { 1e-5 } else { 1e-11 };
                let values = [sweep.objective(&at), sweep.likelihood(&at)];
                for (got, want) in values.into_iter().zip(["objective", "squared_error"]) {
                    close(name, &[got.unwrap()], &[point[want].as_f64().unwrap()], tol);
                }
                if single {
                    continue;
                }
                let state = PntfState::wrap(at.clone()).unwrap();
                close(name, state.weights(), &list(&point["lambda"]["data"]), tol);
                for (j, got) in state.factors().iter().enumerate() {
                    let want = matrix::<f64>(&point[format!("factor_{j}")]);
                    close(name, got.as_slice(), want.as_slice(), tol);
                }
            }
        }
    }
}

// [EXT 8]
#[test]
fn sparse_f64() {
    sparse::<f64>();
}

// [EXT 8]
#[test]
fn sparse_f32() {
    sparse::<f32>();
}

// [PNTF 1] [PNTF 2] [PNTF 5]
#[test]
fn pntf_f64() {
    pntf::<f64>();
}

// [PNTF 5]
#[test]
fn pntf_f32() {
    pntf::<f32>();
}

/// Multiplicative updates, from given factors.
// [PNTF 5]
#[test]
fn lee_seung() {
    let cases = golden("lee_seung_l2");
    assert!(cases.len() >= 2);
    for case in cases {
        let name = case["name"].as_str().unwrap();
        let k = case["K"].as_u64().unwrap() as usize;
        for data in &storages::<f64>(&case["G"]) {
            let ntf = Ntf::new(k);
            let sweep = ntf.bind(&**data).unwrap();
            let mut at = start(&case["init"])
                .parameters(&*sweep, &mut rng(0))
                .unwrap();
            let mut done = 0;
            for point in case["trajectory"].as_array().unwrap() {
                while done < point["iter"].as_u64().unwrap() {
                    sweep.step(&mut at, false).unwrap();
                    done += 1;
                }
                for (got, want) in at.matrices().iter().zip(factors::<f64>(point)) {
                    close(name, got.as_slice(), want.as_slice(), 1e-11);
                }
                if let Some(want) = point["objective"].as_f64() {
                    let objective = sweep.objective(&at).unwrap();
                    assert!(
                        (objective - want).abs() <= 1e-11,
                        "{name}: {objective} {want}"
                    );
                }
            }
        }
    }
}

/// The array of a case: dense, with hidden cells, or as entries.
fn data_of(case: &Value) -> Box<dyn Data<f64>> {
    let shape = shape(&case["V"]);
    let cells = case["V"]["data"].as_array().unwrap();
    let values = cells.iter().map(|x| x.as_f64().unwrap_or(f64::NAN));
    match case["storage"].as_str().unwrap() {
        "masked" => {
            Box::new(DenseTensor::masked(shape, values.collect(), Order::RowMajor).unwrap())
        }
        "sparse" => storages(&case["V"]).swap_remove(2),
        _ => Box::new(DenseTensor::new(shape, values.collect(), Order::RowMajor).unwrap()),
    }
}

/// The given blocks of a case.
fn blocks_of(case: &Value) -> Vec<(String, DMatrix<f64>)> {
    let given = case["init"].as_object().unwrap().iter();
    given.map(|(name, m)| (name.clone(), matrix(m))).collect()
}

/// Objective and parameters of a case after its iterations.
fn iterated<M: Model<f64>>(model: &M, case: &Value) -> (f64, Parameters<f64>) {
    let data = data_of(case);
    let init = match case["settings"]["start"].as_str() {
        Some(_) => Init::deflation(),
        None => Init::default(),
    };
    let blocks = blocks_of(case).into_iter();
    let init = blocks.fold(init, |init, (name, block)| init.block(name, block));
    let solver: Solver = case["solver"].as_str().unwrap().parse().unwrap();
    let iterations = case["iterations"].as_u64().unwrap() as usize;
    let run = model.on(&*data).unwrap().solver(solver);
    let fit = run
        .stop(exactly(iterations))
        .run(init, &mut rng(0))
        .unwrap();
    assert_eq!(fit.iterations(), iterations);
    (fit.objective(), fit.state().parameters().clone())
}

/// Sum of the squared errors and parameters of new data under the blocks of a case.
fn explained(case: &Value, along: usize) -> (f64, Parameters<f64>) {
    let data = data_of(case);
    let how = Transform::default().along(along);
    let blocks = blocks_of(case).into_iter();
    let (weights, factors): (Vec<_>, Vec<_>) = blocks.partition(|(name, _)| name == "weights");
    let factors = factors.into_iter().map(|(_, factor)| factor).collect();
    let Some((_, weights)) = weights.first() else {
        let found = NtfState::new(factors).unwrap().transform(&*data, &how);
        let state = found.unwrap().fit.into_state();
        let errors = state.squared_errors().unwrap().iter().sum();
        return (errors, state.parameters().clone());
    };
    let learnt = PntfState::new(weights.column(0).into_owned(), factors).unwrap();
    let state = learnt.transform(&*data, &how).unwrap().fit.into_state();
    let errors = state.squared_errors().unwrap().iter().sum();
    (errors, state.parameters().clone())
}

/// Iterates of all models, and new data that they explain.
// [PNTF 1] [PNTF 5] [PNTF 8]
#[test]
fn iterates() {
    let cases = golden("iterates_l2");
    assert_eq!(cases.len(), 29);
    for case in cases {
        let (name, settings) = (case["name"].as_str().unwrap(), &case["settings"]);
        let k = case["K"].as_u64().unwrap() as usize;
        let frozen = settings["freeze"].as_array().into_iter().flatten();
        let frozen = frozen.map(|block| block.as_str().unwrap());
        let (objective, at) = match (settings["along"].as_u64(), case["model"].as_str().unwrap()) {
            (Some(along), _) => explained(&case, along as usize),
            (None, "ntf") => {
                let update = match settings["update"].as_str().unwrap() {
                    "hals" => NtfUpdate::Hals,
                    _ => NtfUpdate::Multiplicative,
                };
                let ntf = frozen.fold(Ntf::new(k).update(update), |model, f| model.freeze(f));
                iterated(&ntf, &case)
            }
            (None, "column-nmf") => {
                let columns = frozen.fold(ColumnNmf::new(k), |model, f| model.freeze(f));
                iterated(&columns, &case)
            }
            (None, _) => {
                let pntf = frozen.fold(Pntf::new(k), |pntf, f| pntf.freeze(f));
                let pntf = pntf.revive(settings["revive"] == true);
                let pntf = pntf.normalise(settings["normalise"] != false);
                iterated(&pntf, &case)
            }
        };
        let near = |what: &str, got: f64, want: f64| {
            let far = (got - want).abs();
            assert!(far <= 1e-10 * want.abs(), "{name}, {what}: {got} {want}");
        };
        near("objective", objective, case["objective"].as_f64().unwrap());
        for (block, entries) in case["entries"].as_object().unwrap() {
            for entry in entries.as_array().unwrap() {
                let place = [0, 1].map(|axis| entry[axis].as_u64().unwrap() as usize);
                let got = at.block(block).unwrap()[(place[0], place[1])];
                near(block, got, entry[2].as_f64().unwrap());
            }
        }
    }
}
