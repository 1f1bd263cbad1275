//! Iterates of every model by every solver, as they were before one engine made them all.

use nalgebra::DMatrix;
use plca_fit::{Init, Model, Parameters, Solver, State, Stop, seed};
use plca_tensor::{Coordinates, Data, DenseTensor, Order, SparseTensor};
use serde_json::{Map, Value};
use skellam_snmf::{Ding, Learner, Prior, Replicates, SignedCp, Snmf, SnmfState, SnmfVb};

use crate::support::number;

fn golden() -> Value {
    let file = include_str!("../../../testdata/golden/iterates_skellam.json");
    serde_json::from_str(file).unwrap()
}

fn text(v: &Value) -> &str {
    v.as_str().unwrap()
}

fn list(v: &Value) -> &[Value] {
    v.as_array().unwrap()
}

fn whole(v: &Value) -> usize {
    v.as_u64().unwrap() as usize
}

fn map(v: &Value) -> &Map<String, Value> {
    v.as_object().unwrap()
}

/// Data of a case, in the storage that it says; hidden cells are null.
fn data(v: &Value) -> Box<dyn Data<f64>> {
    let shape: Vec<usize> = list(&v["shape"]).iter().map(whole).collect();
    let values = list(&v["values"]).iter();
    let values: Vec<f64> = values.map(|x| x.as_f64().unwrap_or(f64::NAN)).collect();
    match text(&v["storage"]) {
        "dense" => Box::new(DenseTensor::new(shape, values, Order::RowMajor).unwrap()),
        "masked" => Box::new(DenseTensor::masked(shape, values, Order::RowMajor).unwrap()),
        _ => {
            let mut cells = Coordinates {
                shape: shape.clone(),
                indices: Vec::new(),
                values: Vec::new(),
            };
            for (at, &value) in values.iter().enumerate().filter(|(_, v)| !v.is_nan()) {
                let (mut rest, mut index) = (at, vec![0; shape.len()]);
                for (i, n) in index.iter_mut().zip(&shape).rev() {
                    (*i, rest) = ((rest % n) as u32, rest / n);
                }
                cells.indices.extend(index);
                cells.values.push(value);
            }
            Box::new(SparseTensor::stored_only(cells).unwrap())
        }
    }
}

fn block(v: &Value) -> DMatrix<f64> {
    let [rows, columns] = [0, 1].map(|i| whole(&v["shape"][i]));
    let values: Vec<f64> = list(&v["data"]).iter().map(number).collect();
    DMatrix::from_row_slice(rows, columns, &values)
}

fn start(case: &Value) -> Init<f64> {
    let blocks = map(&case["start"]).iter();
    blocks.fold(Init::default(), |init, (name, v)| {
        init.block(name, block(v))
    })
}

fn replicates(case: &Value) -> Replicates {
    match text(&case["M"]) {
        "1" => Replicates::One,
        "3" => Replicates::Finite(3),
        _ => Replicates::Limit,
    }
}

fn frozen(case: &Value) -> impl Iterator<Item = &str> {
    case["frozen"].as_array().into_iter().flatten().map(text)
}

fn prior(case: &Value) -> Option<Prior> {
    let prior = case.get("prior");
    prior.map(|v| serde_json::from_value(v.clone()).unwrap())
}

fn near(got: f64, want: f64, what: &str) {
    assert!(
        (got - want).abs() <= 1e-10 * want.abs(),
        "{what}: {got:e} instead of {want:e}"
    );
}

/// The entries of a file, of which each is a row, a column and a value.
fn near_entries(at: &Parameters<f64>, entries: &Value, what: &str) {
    for (name, entries) in map(entries) {
        let got = at.block(name).unwrap();
        for entry in list(entries) {
            let place = (whole(&entry[0]), whole(&entry[1]));
            near(
                got[place],
                number(&entry[2]),
                &format!("{what}, {name} {place:?}"),
            );
        }
    }
}

fn near_start(at: &Parameters<f64>, case: &Value, what: &str) {
    for (name, v) in map(&case["start"]) {
        let (got, want) = (at.block(name).unwrap(), block(v));
        for (got, want) in got.iter().zip(&want) {
            near(*got, *want, &format!("{what}, start, {name}"));
        }
    }
}

/// The start is that which is drawn, unless it has to be given, and all runs end where they did; how many.
fn check<M: Model<f64>>(model: &M, case: &Value) -> usize {
    let id = text(&case["id"]);
    let data = data(&case["data"]);
    if frozen(case).next().is_none() {
        let drawn = model.init(&*data, Init::default(), &mut seed(3)).unwrap();
        near_start(drawn.parameters(), case, id);
    }
    for run in list(&case["runs"]) {
        let solver: Solver = text(&run["solver"]).parse().unwrap();
        let what = format!("{id}, {solver}");
        // The recorded squared steps of real data have a length that depends on the unit of the data; no other reference is known.
        let of_unit = matches!(text(&case["model"]), "skellam" | "skellam-cp")
            && replicates(case) == Replicates::Limit;
        if of_unit && solver == Solver::Squarem {
            continue;
        }
        let stop = Stop::default().max_iter(12).tol(None);
        let fit = model.on(&*data).unwrap().solver(solver).stop(stop);
        let fit = fit.run(start(case), &mut seed(3)).unwrap();
        near(fit.objective(), number(&run["objective"]), &what);
        near_entries(fit.state().parameters(), &run["entries"], &what);
    }
    list(&case["runs"]).len()
}

fn em(case: &Value) -> Snmf {
    let em = Snmf::new(3).replicates(replicates(case)).real_data(true);
    let em = frozen(case).fold(em, |em, name| em.freeze(name));
    match prior(case) {
        Some(prior) => {
            let floor = case.get("floor").map_or(0.0, number);
            em.priors(prior).floor(floor)
        }
        None => em,
    }
}

fn vb(case: &Value) -> SnmfVb {
    let vb = SnmfVb::new(3).replicates(replicates(case)).real_data(true);
    let vb = frozen(case).fold(vb, |vb, name| vb.freeze(name));
    vb.priors(prior(case).unwrap())
}

fn cp(case: &Value) -> SignedCp {
    SignedCp::new(3).replicates(replicates(case))
}

/// Hyperparameters learnt from one data set after another.
fn learns(case: &Value) {
    let id = text(&case["id"]);
    let mut learner: Learner = serde_json::from_value(case["learner"].clone()).unwrap();
    for (t, set) in list(&case["sets"]).iter().enumerate() {
        let what = format!("{id}, data set {t}");
        let data = data(&set["data"]);
        let vb = SnmfVb::new(3).priors(learner.prior().unwrap());
        let drawn = vb.init(&*data, Init::default(), &mut seed(3)).unwrap();
        near_start(drawn.parameters(), set, &what);
        let stop = Stop::default().max_iter(12).tol(None);
        let run = vb.on(&*data).unwrap().solver(Solver::Em).stop(stop);
        let fit = run.run(start(set), &mut seed(3)).unwrap();
        near(fit.objective(), number(&set["objective"]), &what);
        learner.learn(&fit.state().posterior()).unwrap();
        let learnt = learner.hyperparameters();
        let lists = [
            ("alpha", &learnt.alpha),
            ("a", &learnt.shape),
            ("b", &learnt.rate),
        ];
        for (name, got) in lists {
            assert_eq!(got.len(), list(&set[name]).len(), "{what}");
            let pairs = got.iter().zip(list(&set[name]));
            pairs.for_each(|(got, want)| near(*got, number(want), &what));
        }
    }
}

/// The update from factors as a start.
fn from_means(case: &Value) {
    let data = data(&case["data"]);
    let means = |name: &str| block(&case["means"][name]);
    let (plus, minus) = (means("plus"), means("minus"));
    let means = SnmfState::new(&plus, &minus, means("activations")).unwrap();
    let at = vb(case).at_means(&*data, &means).unwrap();
    near_start(at.parameters(), case, text(&case["id"]));
}

#[test]
fn iterates_are_as_before() {
    let mut runs = 0;
    for case in list(&golden()["cases"]) {
        match text(&case["model"]) {
            _ if case.get("learner").is_some() => learns(case),
            _ if case.get("means").is_some() => from_means(case),
            "skellam" => runs += check(&em(case), case),
            "skellam-vb" => runs += check(&vb(case), case),
            "skellam-cp" => runs += check(&cp(case), case),
            "snmf-ding" => runs += check(&Ding::new(3), case),
            other => panic!("{other}"),
        }
    }
    assert_eq!(runs, 66);
}
