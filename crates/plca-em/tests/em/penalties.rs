//! KL-NMF with penalties on its factors: scikit-learn's trajectories, exact M-steps, and their optima.

use nalgebra::{DMatrix, dmatrix};
use plca_em::{Missing, Nmf, NmfState, Update};
use plca_fit::{FitError, Init, Model, Solver, State, Stop, Transform, seed};
use plca_priors::{Gamma, Penalty, RatePrior, Step};
use plca_tensor::strategies::problems;
use plca_tensor::{Coordinates, Data, DenseTensor, Order, SparseTensor};
use proptest::prelude::*;
use serde_json::Value;

use crate::support::matrix;

fn dense(m: &DMatrix<f64>) -> DenseTensor<f64> {
    let shape = vec![m.nrows(), m.ncols()];
    DenseTensor::new(shape, m.as_slice().to_vec(), Order::ColumnMajor).unwrap()
}

fn sparse(m: &DMatrix<f64>) -> SparseTensor<f64> {
    let places = (0..m.nrows()).flat_map(|i| (0..m.ncols()).map(move |j| (i, j)));
    let places: Vec<_> = places.filter(|&at| m[at] > 0.0).collect();
    let coordinates = Coordinates {
        shape: vec![m.nrows(), m.ncols()],
        indices: (places.iter().flat_map(|&(i, j)| [i as u32, j as u32])).collect(),
        values: places.iter().map(|&at| m[at]).collect(),
    };
    SparseTensor::new(coordinates).unwrap()
}

/// What scikit-learn makes of its settings: weights grow with the size of the other dimension.
fn of_scikit_learn(case: &Value, alpha: &str, size: usize) -> Penalty {
    let [alpha, ratio] = [alpha, "l1_ratio"].map(|name| case[name].as_f64().unwrap());
    let weight = size as f64 * alpha;
    Penalty::new(weight * ratio, weight * (1.0 - ratio)).unwrap()
}

/// Sequential updates with lagged penalties are the solver `mu` of scikit-learn, iteration by iteration.
#[test]
fn scikit_learn_makes_the_same_iterations() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../testdata/golden/sklearn_nmf_penalties.json"
    );
    let golden: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let cases = golden["cases"].as_array().unwrap();
    let mut compared = 0;
    for case in cases
        .iter()
        .filter(|c| c["beta_loss"] == "kullback-leibler")
    {
        let v = matrix(&case["V"]);
        let nmf = Nmf::new(case["K"].as_u64().unwrap() as usize)
            .update(Update::Sequential)
            .prior("w", of_scikit_learn(case, "alpha_W", v.ncols()).lagged())
            .prior("h", of_scikit_learn(case, "alpha_H", v.nrows()).lagged());
        let init = Init::default()
            .block("w", matrix(&case["W0"]))
            .block("h", matrix(&case["H0"]));
        for data in [&dense(&v) as &dyn Data<f64>, &sparse(&v)] {
            for point in case["trajectory"].as_array().unwrap() {
                let iterations = point["iter"].as_u64().unwrap() as usize;
                let stop = Stop::default().max_iter(iterations).tol(None);
                let run = nmf.on(data).unwrap().solver(Solver::Em).stop(stop);
                let fit = run.run(init.clone(), &mut seed(3)).unwrap();
                for (name, got) in [("W", fit.state().w()), ("H", fit.state().h())] {
                    let error = (got - matrix(&point[name])).amax();
                    assert!(error < 1e-13, "{name} after {iterations}: {error:e}");
                    compared += 1;
                }
            }
        }
    }
    assert_eq!(compared, 6 * 2 * 4 * 2);
}

/// `Σ V ln(V/Y) - V + Y` over the observed cells, by the definition.
fn divergence(v: &DMatrix<f64>, state: &NmfState<f64>) -> f64 {
    let y = state.w() * state.h();
    let cells = v.iter().zip(y.iter()).filter(|(v, _)| !v.is_nan());
    let log = |v: f64, y: f64| if v > 0.0 { v * (v / y).ln() } else { 0.0 };
    cells.map(|(&v, &y)| log(v, y) - v + y).sum()
}

/// The objective is the divergence and the penalties, and the likelihood that of no prior.
#[test]
fn the_objective_is_what_the_documentation_says() {
    let mut v = dmatrix![3.0, 0.0, 1.0; 2.0, 5.0, 0.5];
    let (w, h) = (
        Penalty::new(0.3, 0.2).unwrap(),
        Penalty::new(0.0, 0.7).unwrap(),
    );
    for hidden in [false, true] {
        if hidden {
            v[(1, 2)] = f64::NAN;
        }
        let data = DenseTensor::masked(
            vec![2, 3],
            v.transpose().as_slice().to_vec(),
            Order::RowMajor,
        );
        let data = data.unwrap();
        let nmf = Nmf::new(2).prior("w", w).prior("h", h);
        for update in [Update::Simultaneous, Update::Sequential] {
            let nmf = nmf.clone().update(update);
            let state = nmf.init(&data, Init::default(), &mut seed(3)).unwrap();
            let algorithm = nmf.bind(&data).unwrap();
            let d = divergence(&v, &state);
            let penalty = 0.3 * state.w().sum()
                + 0.1 * state.w().norm_squared()
                + 0.35 * state.h().norm_squared();
            let [objective, likelihood] = [
                algorithm.objective(state.parameters()).unwrap(),
                algorithm.likelihood(state.parameters()).unwrap(),
            ];
            assert!(
                (objective - d - penalty).abs() < 1e-12 * (d + penalty),
                "{objective}"
            );
            assert!((likelihood - d).abs() < 1e-12 * d, "{likelihood}");
            let measured = algorithm
                .step(&mut state.parameters().clone(), true)
                .unwrap();
            assert!((measured.value.unwrap() - objective).abs() < 1e-12 * objective);
        }
    }
}

/// `C / F - X`, what the likelihood gives an entry of `W` or `H`, by the definition: hidden cells give nothing.
fn slopes(v: &DMatrix<f64>, state: &NmfState<f64>) -> [DMatrix<f64>; 2] {
    let y = state.w() * state.h();
    let r = v.zip_map(&y, |v, y| match v.is_nan() {
        true => 0.0,
        false => v / y - 1.0,
    });
    [&r * state.h().transpose(), state.w().transpose() * r]
}

/// At the end of a run the slope of the likelihood is that of the penalty where an entry is positive, and below it where it is 0.
#[test]
fn runs_end_where_the_penalised_objective_is_stationary() {
    let v = DMatrix::from_fn(7, 6, |i, j| ((5 * i + 3 * j + i * j) % 11) as f64);
    let mut holed = v.clone();
    holed[(2, 3)] = f64::NAN;
    holed[(5, 0)] = f64::NAN;
    let exact = [
        Penalty::new(0.8, 0.0),
        Penalty::new(0.0, 0.6),
        Penalty::new(0.3, 0.4),
    ];
    let exact = exact.map(Result::unwrap);
    let lagged = exact.map(Penalty::lagged);
    for (v, updates) in [
        (&v, [Update::Simultaneous, Update::Sequential]),
        (&holed, [Update::Simultaneous, Update::Sequential]),
    ] {
        let data = v.as_slice().to_vec();
        let data = DenseTensor::masked(vec![7, 6], data, Order::ColumnMajor).unwrap();
        let mut ends: Vec<f64> = Vec::new();
        for (penalty, update) in exact
            .iter()
            .chain(&lagged)
            .flat_map(|p| updates.map(|u| (p, u)))
        {
            let nmf = Nmf::new(2).update(update);
            let nmf = nmf.prior("w", *penalty).prior("h", *penalty);
            let stop = Stop::default().max_iter(20_000).tol(1e-16).patience(3);
            let run = nmf.on(&data).unwrap().stop(stop);
            let fit = run.run(Init::default(), &mut seed(3)).unwrap();
            let state = fit.state();
            let slopes = slopes(v, state);
            for (slope, block) in slopes.iter().zip([state.w(), state.h()]) {
                for (slope, &x) in slope.iter().zip(block) {
                    let rest = slope - penalty.linear() - penalty.quadratic() * x;
                    assert!(
                        rest < 1e-4 && (x * rest).abs() < 1e-5,
                        "{penalty:?} {update:?}: {x} {rest}"
                    );
                }
            }
            ends.push(fit.objective());
        }
        // The lag changes the way, not where it leads.
        let (exact, lagged) = ends.split_at(6);
        for (a, b) in exact.iter().zip(lagged) {
            assert!((a - b).abs() < 1e-3 * a, "{ends:?}");
        }
    }
}

/// What only plain iterations can do is refused by name.
#[test]
fn coordinate_descent_and_residuals_are_refused() {
    let data = dense(&dmatrix![3.0, 0.0; 1.0, 2.0]);
    let penalty = Penalty::new(0.1, 0.0).unwrap();
    let nmf = Nmf::new(1).prior("w", penalty).prior("h", penalty);
    let run = |solver, stop: Stop| {
        let run = nmf.on(&data).unwrap().solver(solver).stop(stop);
        run.run(Init::default(), &mut seed(3))
    };
    let refused = run(Solver::Fast, Stop::default()).unwrap_err();
    let sentence =
        "the prior on `w` is not supported by coordinate descent: expected the solver `em`";
    assert_eq!(refused.to_string(), sentence);
    let refused = run(Solver::Em, Stop::default().residual_tol(1e-3)).unwrap_err();
    assert!(matches!(refused, FitError::NoResidual { .. }));
    let [auto, em] = [Solver::Auto, Solver::Em].map(|s| run(s, Stop::default()).unwrap());
    assert_eq!(auto.state(), em.state());
    for solver in [Solver::Squarem, Solver::Parabolic, Solver::Momentum] {
        let end = run(solver, Stop::default().tol(1e-12)).unwrap().objective();
        assert!((end - em.objective()).abs() < 1e-4, "{solver}: {end}");
    }
    // Steps that may make it worse are extrapolated by none.
    let lagged = Penalty::new(0.0, 1.0).unwrap().lagged();
    let nmf = Nmf::new(1).prior("w", lagged);
    let refused = nmf.on(&data).unwrap().solver(Solver::Squarem);
    let refused = refused.run(Init::default(), &mut seed(3)).unwrap_err();
    assert!(matches!(refused, FitError::Unsteady { block, .. } if block == "w"));
}

/// A gamma prior below 1 empties entries; what positive cells need comes back before the other factor is renewed.
#[test]
fn sequential_updates_give_support_back() {
    let data = dense(&dmatrix![0.2, 0.1; 0.1, 0.2]);
    let sparse = Gamma::new(0.2, 0.1).unwrap();
    for update in [Update::Simultaneous, Update::Sequential] {
        let nmf = Nmf::new(2).update(update);
        let nmf = nmf.prior("w", sparse.clone());
        let run = nmf.on(&data).unwrap().stop(Stop::default().max_iter(20));
        let fit = run.run(Init::default(), &mut seed(3)).unwrap();
        assert!(
            fit.objective().is_finite() && !fit.events().is_empty(),
            "{update:?}"
        );
    }
}

/// New data get the coefficients that the prior of their block asks for; that of the learnt block plays no part.
#[test]
fn new_data_are_explained_under_the_prior_of_their_block() {
    let learnt = NmfState::new(
        dmatrix![1.0, 0.2; 3.0, 0.1; 0.5, 2.0],
        dmatrix![1.0, 1.0; 1.0, 1.0],
    );
    let learnt = learnt.unwrap();
    let new = dmatrix![1.0, 4.0, 0.0; 4.0, 6.0, 0.0; 2.0, 0.0, 0.0];
    let penalty = Penalty::new(0.2, 0.3).unwrap();
    let nmf = Nmf::new(2).prior("h", penalty);
    let nmf = nmf.prior("w", Penalty::new(100.0, 0.0).unwrap());
    let how = Transform::default().stop(Stop::default().max_iter(5000).tol(1e-16));
    let explained = nmf.transform(&learnt, &dense(&new), &how).unwrap();
    assert_eq!((explained.gap.len(), &explained.empty), (0, &vec![2]));
    let state = explained.fit.state();
    assert_eq!(state.w(), learnt.w());
    assert_eq!(state.h().column(2).amax(), 0.0);
    let [_, slopes] = slopes(
        &new.columns(0, 2).into_owned(),
        &NmfState::new(state.w().clone(), state.h().columns(0, 2).into_owned()).unwrap(),
    );
    for (slope, &x) in slopes.iter().zip(state.h()) {
        let rest = slope - 0.2 - 0.3 * x;
        assert!(rest < 1e-4 && (x * rest).abs() < 1e-6, "{x} {rest}");
    }
    // Along the rows, too.
    let turned = NmfState::new(DMatrix::zeros(2, 2), learnt.w().transpose()).unwrap();
    let nmf = Nmf::new(2).prior("w", penalty);
    let rows = nmf
        .transform(&turned, &dense(&new.transpose()), &how.clone().along(0))
        .unwrap();
    assert!((rows.fit.state().w().transpose() - state.h()).amax() < 1e-6);
    // Without a prior there is a certificate.
    let plain = learnt
        .transform(&dense(&new), &Transform::default())
        .unwrap();
    assert_eq!(plain.gap.len(), 3);
}

fn penalties() -> impl Strategy<Value = (f64, f64)> {
    prop_oneof![
        (0.0..3.0f64).prop_map(|l| (l, 0.0)),
        (0.0..3.0f64).prop_map(|q| (0.0, q)),
        ((0.0..3.0f64), (0.0..3.0f64)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// `D` and the penalties never rise, whatever is hidden or frozen and by whichever solver.
    #[test]
    fn the_penalised_divergence_falls(
        (table, start) in problems::<f64>(2..=2, 1..=5, 1..=4), w in penalties(), h in penalties(),
        squarem: bool, freeze in 0..4usize, gamma in prop::option::of(1.0..3.0f64),
    ) {
        let k = start.weights.len();
        let mut storages: Vec<(Box<dyn Data<f64>>, Option<Missing>)> = vec![
            (Box::new(table.dense(Order::RowMajor).unwrap()), None), (Box::new(table.sparse().unwrap()), None),
        ];
        for missing in [Missing::Multiplicative, Missing::Imputation] {
            storages.push((Box::new(table.masked(Order::RowMajor).unwrap()), Some(missing)));
        }
        for (data, missing) in &storages {
            for update in [Update::Simultaneous, Update::Sequential] {
                let mut nmf = Nmf::new(k)
                    .prior("w", Penalty::new(w.0, w.1).unwrap());
                nmf = match gamma {
                    Some(shape) => nmf.prior("h", Gamma::new(shape, 0.1 + h.0).unwrap()),
                    None => nmf.prior("h", Penalty::new(h.0, h.1).unwrap()),
                };
                nmf = match missing {
                    Some(missing) => nmf.missing(*missing),
                    None => nmf.update(update),
                };
                nmf = match freeze {
                    1 => nmf.freeze_components("w", [0]),
                    2 => nmf.freeze_components("h", [k - 1]),
                    _ => nmf,
                };
                let algorithm = nmf.bind(&**data).unwrap();
                let init = Init::default()
                    .block("w", DMatrix::from_fn(table.shape[0], k, |i, z| 0.2 + ((3 * i + 5 * z) % 7) as f64))
                    .block("h", DMatrix::from_fn(k, table.shape[1], |z, j| 0.1 + ((2 * j + 3 * z) % 5) as f64));
                let mut at = init.parameters(&*algorithm, &mut seed(3)).unwrap();
                let solver = if squarem { Solver::Squarem } else { Solver::Em };
                let mut steps = solver.on(&*algorithm, Default::default()).unwrap();
                let mut last = algorithm.objective(&at).unwrap();
                for _ in 0..25 {
                    steps.step(&mut at, false).unwrap();
                    let next = algorithm.objective(&at).unwrap();
                    let slack = 1e-11 * (1.0 + last.abs() + data.total() + data.self_information().unwrap().abs());
                    prop_assert!(next <= last + slack, "{last} {next}");
                    last = next;
                }
            }
        }
    }

    /// Penalties of 0 are no penalties, but for rounding.
    #[test]
    fn nothing_is_nothing((table, start) in problems::<f64>(2..=2, 1..=5, 1..=4), l in 0.0..2.0f64) {
        let k = start.weights.len();
        let data = table.dense(Order::RowMajor).unwrap();
        let run = |nmf: Nmf| {
            let stop = Stop::default().max_iter(9).tol(None);
            let run = nmf.on(&data).unwrap().solver(Solver::Em).stop(stop);
            run.run(Init::default(), &mut seed(3)).unwrap().into_state()
        };
        let none = Penalty::new(0.0, 0.0).unwrap();
        let plain = run(Nmf::new(k));
        let zero = run(Nmf::new(k).prior("w", none).prior("h", none));
        prop_assert_eq!(plain, zero);
        // The gamma law of shape 1 is the linear penalty.
        let linear = run(Nmf::new(k).prior("h", Penalty::new(l, 0.0).unwrap()));
        let gamma = run(Nmf::new(k).prior("h", Gamma::new(1.0, l).unwrap()));
        prop_assert_eq!(linear, gamma);
    }
}

/// A density is that of the documentation.
#[test]
fn densities_add_up() {
    let penalty = Penalty::new(2.0, 4.0).unwrap();
    let density = penalty.ln_density(&dmatrix![1.0, 0.5], &Step::at(1));
    assert_eq!(density, -(2.0 + 2.0 + 1.0 + 0.5));
}
