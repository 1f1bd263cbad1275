//! Every case of the reference vectors of the L2 family.

use nalgebra::{DMatrix, DVector};
use plca_tensor::{Coordinates, Data, DenseTensor, Order, Real, SparseTensor};
use pntf_l2::{
    Algorithm, Ntf, NtfState, Pntf, PntfInit, PntfState, Projection, project_with, simplex_qp,
};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
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
        let init = PntfInit {
            weights: Some(DVector::from_vec(weights)),
            factors: factors(&case["init"]).into_iter().map(Some).collect(),
        };
        for data in &storages::<T>(&case["G"]) {
            let data = &**data;
            let pntf = Pntf::builder(k).build().unwrap();
            let mut state: PntfState<T> = pntf
                .init(data, &init, &mut ChaCha8Rng::seed_from_u64(0))
                .unwrap();
            let sweep = pntf.on(data).unwrap();
            let mut done = 0;
            for point in case["trajectory"].as_array().unwrap() {
                while done < point["iter"].as_u64().unwrap() {
                    sweep.step(&mut state, false).unwrap();
                    done += 1;
                }
                let objective = sweep.objective(&state).unwrap();
                let want = point["objective"].as_f64().unwrap();
                assert!(
                    (objective - want).abs() <= tol,
                    "{name} {done}: {objective} {want}"
                );
                if single {
                    continue;
                }
                close(
                    name,
                    state.weights.as_slice(),
                    &list(&point["lambda"]["data"]),
                    tol,
                );
                for (got, want) in state.factors.iter().zip(factors::<f64>(point)) {
                    close(name, got.as_slice(), want.as_slice(), tol);
                }
            }
        }
    }
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
        let init: Vec<_> = factors(&case["init"]).into_iter().map(Some).collect();
        for data in &storages::<f64>(&case["G"]) {
            let data = &**data;
            let ntf = Ntf::builder(k).build().unwrap();
            let mut state: NtfState<f64> = ntf
                .init(data, &init, &mut ChaCha8Rng::seed_from_u64(0))
                .unwrap();
            let sweep = ntf.on(data).unwrap();
            let mut done = 0;
            for point in case["trajectory"].as_array().unwrap() {
                while done < point["iter"].as_u64().unwrap() {
                    sweep.step(&mut state, false).unwrap();
                    done += 1;
                }
                for (got, want) in state.factors.iter().zip(factors::<f64>(point)) {
                    close(name, got.as_slice(), want.as_slice(), 1e-11);
                }
                if let Some(want) = point["objective"].as_f64() {
                    let objective = sweep.objective(&state).unwrap();
                    assert!(
                        (objective - want).abs() <= 1e-11,
                        "{name}: {objective} {want}"
                    );
                }
            }
        }
    }
}
