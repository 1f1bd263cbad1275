//! Known iterates: runs of other code of the same models, `crates/testdata/golden/iterates_shifted.json`.

use std::sync::Arc;

use nalgebra::DMatrix;
use plca_em::{Anneal, Evaluation, IndexMaps, Likelihood, MapEntry, Shifted, Support, Transformed};
use plca_fit::{Init, Model, Reconstruct, Solver, State};
use plca_priors::{Dirichlet, Entropic, Schedule, Scheduled, SimplexPrior};
use plca_tensor::Data;
use serde_json::Value;

use super::{exactly, rng};
use crate::shifted::support::{complete, masked};
use crate::support::whole;

fn numbers(v: &Value) -> Vec<f64> {
    let all = v.as_array().unwrap().iter();
    all.map(|x| x.as_f64().unwrap_or(f64::NAN)).collect()
}

fn names(v: &Value) -> Vec<&str> {
    let all = v.as_array().into_iter().flatten();
    all.map(|name| name.as_str().unwrap()).collect()
}

fn data(case: &Value) -> Box<dyn Data<f64>> {
    let (shape, values) = (whole(&case["shape"]), numbers(&case["V"]));
    let storage = case["storage"].as_str().unwrap();
    let hidden = |i: usize| values[i].is_nan();
    let mut all = match values.iter().any(|x| x.is_nan()) {
        true => masked::<f64>(&shape, &values, hidden),
        false => complete::<f64>(&shape, &values),
    };
    let at = all.iter().position(|(name, _)| *name == storage).unwrap();
    all.swap_remove(at).1
}

/// Columns of `1 + (7 i + 5 z + 3 j) mod 11`, normalised, of block `j`.
fn start(j: usize, rows: usize, columns: usize) -> DMatrix<f64> {
    let entry = |i, z| 1.0 + ((7 * i + 5 * z + 3 * j) % 11) as f64;
    let mut block = DMatrix::from_fn(rows, columns, entry);
    plca_tensor::normalise_columns(&mut block);
    block
}

fn supports(case: &Value) -> Vec<Support> {
    let of = |name: &str| match name {
        "valid" => Support::Valid,
        "same" => Support::Same,
        "full" => Support::Full,
        other => panic!("{other}"),
    };
    names(&case["supports"]).into_iter().map(of).collect()
}

fn likelihood(case: &Value) -> Likelihood {
    match case["likelihood"].as_str() {
        Some("literal") => Likelihood::Literal,
        _ => Likelihood::Conditional,
    }
}

fn evaluation(case: &Value) -> Evaluation {
    match case["evaluation"].as_str() {
        Some("direct") => Evaluation::Direct,
        Some("sparse") => Evaluation::Sparse,
        Some("matrix") => Evaluation::Matrix,
        Some("fft") => Evaluation::Fft,
        _ => Evaluation::Auto,
    }
}

fn power(v: &Value) -> Option<Anneal> {
    let alpha0 = v["alpha0"].as_f64()?;
    let over = v["over"].as_f64().unwrap();
    Some(Anneal { alpha0, over })
}

type Priors = Vec<(String, Arc<dyn SimplexPrior<f64>>)>;

fn priors(case: &Value) -> Priors {
    let all = case["priors"].as_object().into_iter().flatten();
    let of = |v: &Value| -> Arc<dyn SimplexPrior<f64>> {
        if let Some(alpha) = v["dirichlet"].as_f64() {
            return Arc::new(Dirichlet::symmetric(alpha).unwrap());
        }
        let entropic = Entropic::new(v["entropic"].as_f64().unwrap()).unwrap();
        match v["decreasing"].as_f64() {
            Some(over) => {
                Arc::new(Scheduled::new(entropic, Schedule::Decreasing { over }).unwrap())
            }
            None => Arc::new(entropic),
        }
    };
    all.map(|(block, prior)| (block.clone(), of(prior)))
        .collect()
}

fn maps(case: &Value) -> IndexMaps {
    let kernel = case["kernel"][0].as_u64().unwrap() as usize;
    let cells = whole(&case["shape"]).iter().product();
    let numbers = numbers(&case["maps"]);
    let entry = |e: &[f64; 4]| MapEntry {
        map: e[0] as usize,
        from: e[1] as usize,
        to: (e[2] >= 0.0).then_some(e[2] as usize),
        weight: e[3],
    };
    let entries = numbers.as_chunks::<4>().0.iter().map(entry);
    IndexMaps::from_entries(cells, kernel, entries.collect()).unwrap()
}

/// A number within 1e-10 of itself, or within 1e-14 of what is nearly 0.
fn same(what: &str, got: &[f64], want: &[f64]) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (g, w) in got.iter().zip(want) {
        let off = (g - w).abs();
        assert!(off <= 1e-14 + 1e-10 * w.abs(), "{what}: {g} is not {w}");
    }
}

fn follow<M: Model<f64>>(case: &Value, model: &M)
where
    M::State: Reconstruct<Scalar = f64>,
{
    let name = case["name"].as_str().unwrap();
    let data = data(case);
    let em = model.bind(&*data).unwrap();
    let blocks = em.blocks().iter().enumerate();
    let init = blocks.fold(Init::default(), |init, (j, spec)| {
        init.block(&*spec.name, start(j, spec.shape.0, spec.shape.1))
    });
    let solver: Solver = case["solver"].as_str().unwrap().parse().unwrap();
    let stop = exactly(case["iterations"].as_u64().unwrap() as usize);
    let run = model.on(&*data).unwrap().solver(solver).stop(stop);
    let fit = run.run(init, &mut rng(0)).unwrap();
    let at = fit.state().parameters();
    for (block, got) in at.blocks() {
        same(
            &format!("{name}, {block}"),
            got.as_slice(),
            &numbers(&case[block]),
        );
    }
    // While a power moves there is no objective to measure at the end.
    let objective = em.objective(at).unwrap();
    same(name, &[objective], &[case["objective"].as_f64().unwrap()]);
    let cells = fit.state().reconstruct().unwrap().into_parts().1;
    same(&format!("{name}, cells"), &cells, &numbers(&case["cells"]));
    match case["residual"].as_f64() {
        Some(residual) => same(name, &[em.residual(at).unwrap()], &[residual]),
        None => assert!(em.residual(at).is_err(), "{name}"),
    }
}

/// A model with the settings that both kinds share.
macro_rules! set {
    ($model:expr, $case:expr) => {{
        let mut model = $model.likelihood(likelihood($case));
        if let Some(anneal) = power(&$case["anneal"]) {
            model = model.anneal(anneal);
        }
        if let Some(sharp) = power(&$case["impulse_power"]) {
            model = model.impulse_power(sharp);
        }
        for (block, prior) in priors($case) {
            model = model.prior(&block, prior);
        }
        for block in names(&$case["frozen"]) {
            model = model.freeze(block);
        }
        model
    }};
}

// [SPEC 5.1] [SPEC 5.2] [SPEC 5.3] [SPEC 5.7]
#[test]
fn runs_end_where_they_did() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../testdata/golden/iterates_shifted.json"
    );
    let file: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let cases = file["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 39);
    for case in cases {
        let k = case["K"].as_u64().unwrap() as usize;
        if case["maps"].is_array() {
            let model = Transformed::new(k, maps(case));
            follow(case, &set!(model, case));
            continue;
        }
        let model = Shifted::new(k, whole(&case["kernel"])).supports(supports(case));
        follow(case, &set!(model.evaluation(evaluation(case)), case));
    }
}
