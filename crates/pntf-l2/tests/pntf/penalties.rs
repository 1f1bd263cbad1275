//! Penalties on the factors of the unconstrained factorization.

use nalgebra::{DMatrix, dmatrix};
use plca_fit::{FitError, Init, Model, Solver, Stop, Transform};
use plca_priors::{Dirichlet, Penalty, PriorError};
use plca_tensor::{DenseTensor, Order};
use pntf_l2::{Ntf, NtfState, NtfUpdate, Settings};
use serde_json::Value;

use crate::support::rng;

fn matrix(v: &Value) -> DMatrix<f64> {
    let size = |i: usize| v["shape"][i].as_u64().unwrap() as usize;
    let data = v["data"].as_array().unwrap().iter();
    let data: Vec<f64> = data.map(|x| x.as_f64().unwrap()).collect();
    DMatrix::from_row_slice(size(0), size(1), &data)
}

fn dense(m: &DMatrix<f64>) -> DenseTensor<f64> {
    let shape = vec![m.nrows(), m.ncols()];
    DenseTensor::new(shape, m.as_slice().to_vec(), Order::ColumnMajor).unwrap()
}

/// Both solvers of scikit-learn, iteration by iteration: it halves the squared error, and its weights grow with the size of the other dimension.
#[test]
fn scikit_learn_makes_the_same_iterations() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../testdata/golden/sklearn_nmf_penalties.json"
    );
    let golden: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let cases = golden["cases"].as_array().unwrap().iter();
    let mut compared = 0;
    for case in cases.filter(|c| c["beta_loss"] == "frobenius") {
        let v = matrix(&case["V"]);
        let number = |name: &str| case[name].as_f64().unwrap();
        let ratio = number("l1_ratio");
        let weights = [
            ("factor_0", 2.0 * v.ncols() as f64 * number("alpha_W")),
            ("factor_1", 2.0 * v.nrows() as f64 * number("alpha_H")),
        ];
        let update = match case["solver"].as_str().unwrap() {
            "mu" => NtfUpdate::Multiplicative,
            _ => NtfUpdate::Hals,
        };
        let ntf = Ntf::new(case["K"].as_u64().unwrap() as usize).update(update);
        let ntf = weights.iter().fold(ntf, |ntf, (name, weight)| {
            ntf.prior(
                *name,
                Penalty::new(weight * ratio, weight * (1.0 - ratio)).unwrap(),
            )
        });
        let init = Init::default()
            .block("factor_0", matrix(&case["W0"]))
            .block("factor_1", matrix(&case["H0"]).transpose());
        let data = dense(&v);
        for point in case["trajectory"].as_array().unwrap() {
            let iterations = point["iter"].as_u64().unwrap() as usize;
            let stop = Stop::default().max_iter(iterations).tol(None);
            let run = ntf.on(&data).unwrap().solver(Solver::Em).stop(stop);
            let fit = run.run(init.clone(), &mut rng(0)).unwrap();
            let h = matrix(&point["H"]).transpose();
            for (j, want) in [matrix(&point["W"]), h].iter().enumerate() {
                let error = (fit.state().factor(j) - want).amax();
                assert!(error < 1e-12, "factor {j} after {iterations}: {error:e}");
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 6 * 4 * 2);
}

/// The objective is the squared error and the penalties, and falls from step to step, also where data are negative.
#[test]
fn the_objective_falls() {
    let v = DMatrix::from_fn(6, 5, |i, j| ((5 * i + 3 * j + i * j) % 7) as f64);
    for update in [NtfUpdate::Multiplicative, NtfUpdate::Hals] {
        let v = match update {
            NtfUpdate::Hals => v.add_scalar(-1.5),
            _ => v.clone(),
        };
        let data = dense(&v);
        for [l0, q0, l1, q1] in [
            [3.0, 0.0, 0.0, 2.0],
            [1.0, 1.0, 0.5, 4.0],
            [60.0, 0.0, 0.0, 0.0],
        ] {
            let ntf = Ntf::new(2).update(update);
            let ntf = ntf
                .prior("factor_0", Penalty::new(l0, q0).unwrap())
                .prior("factor_1", Penalty::new(l1, q1).unwrap());
            let algorithm = ntf.bind(&data).unwrap();
            let mut at = Init::default()
                .parameters(&*algorithm, &mut rng(0))
                .unwrap();
            let mut last = f64::INFINITY;
            for _ in 0..60 {
                let [u0, u1] = [at.at(0), at.at(1)];
                let squares = (&v - u0 * u1.transpose()).norm_squared();
                let penalty = l0 * u0.sum()
                    + 0.5 * q0 * u0.norm_squared()
                    + l1 * u1.sum()
                    + 0.5 * q1 * u1.norm_squared();
                let likelihood = algorithm.likelihood(&at).unwrap();
                assert!((likelihood - squares).abs() < 1e-11 * v.norm_squared());
                let objective = algorithm.objective(&at).unwrap();
                assert!(
                    (objective - squares - penalty).abs() < 1e-11 * (v.norm_squared() + penalty)
                );
                let measured = algorithm.step(&mut at, true).unwrap().value.unwrap();
                assert!((measured - objective).abs() < 1e-11 * (v.norm_squared() + penalty));
                assert!(
                    measured <= last + 1e-11 * v.norm_squared(),
                    "{update:?}: {last} {measured}"
                );
                last = measured;
            }
        }
    }
}

/// New data get the optimum under the penalty of their factor; that of another one plays no part.
#[test]
fn new_data_are_explained_under_the_penalty_of_their_factor() {
    let learnt = NtfState::new(vec![
        dmatrix![1.0, 0.2; 3.0, 0.1; 0.5, 2.0],
        dmatrix![1.0, 1.0; 1.0, 1.0],
    ]);
    let learnt = learnt.unwrap();
    let new = dmatrix![1.0, 4.0, 0.0, -1.0; 4.0, 6.0, 0.0, 0.0; 2.0, 0.0, 0.0, 3.0];
    let ntf = Ntf::new(2)
        .prior("factor_1", Penalty::new(0.7, 0.3).unwrap())
        .prior("factor_0", Penalty::new(9.0, 0.0).unwrap());
    let how = Transform::default().stop(Stop::default().max_iter(4000).tol(1e-16));
    let explained = ntf.transform(&learnt, &dense(&new), &how).unwrap();
    assert!(explained.gap.is_empty());
    let (w, h) = (learnt.factor(0), explained.fit.state().factor(1));
    assert_eq!(explained.fit.state().factor(0), w);
    let slopes = 2.0 * (h * w.transpose() - new.transpose()) * w;
    for (slope, &x) in slopes.iter().zip(h) {
        let slope = slope + 0.7 + 0.3 * x;
        assert!(slope > -1e-6 && (x * slope).abs() < 1e-6, "{x} {slope}");
    }
    let along = how.clone().along(0);
    let plain = ntf.transform(&learnt, &dense(&dmatrix![1.0, 2.0]), &along);
    assert!(plain.unwrap().gap.is_empty());
    let other = Ntf::new(2).prior("factor_0", Penalty::new(9.0, 0.0).unwrap());
    let other = other.transform(&learnt, &dense(&new), &how).unwrap();
    let plain = learnt.transform(&dense(&new), &how).unwrap();
    assert_eq!(
        (other.fit.state(), other.gap),
        (plain.fit.state(), plain.gap)
    );
}

#[test]
fn other_blocks_and_weights_are_refused() {
    let data = dense(&dmatrix![1.0, 2.0; 3.0, 4.0]);
    let ntf = Ntf::new(1).prior("w", Penalty::new(1.0, 0.0).unwrap());
    let refused = ntf.bind(&data).map(drop).unwrap_err();
    assert!(matches!(refused, FitError::UnknownBlock { name, .. } if name == "w"));
    for (linear, quadratic) in [(-1.0, 0.0), (0.0, f64::NAN), (f64::INFINITY, 0.0)] {
        let refused = Penalty::new(linear, quadratic);
        assert!(matches!(refused, Err(PriorError::Domain { .. })));
    }
    let lagged = Penalty::new(0.0, 1.0).unwrap().lagged();
    let refused = Ntf::new(1).prior("factor_0", lagged).check();
    assert!(matches!(refused, Err(FitError::Conflict { .. })));
    let other = Dirichlet::symmetric(2.0).unwrap();
    let refused = Ntf::new(1).prior("factor_0", other).check();
    assert!(matches!(refused, Err(FitError::Prior { .. })));
}
