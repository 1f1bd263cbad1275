//! Reference trajectories.

use crate::support;

use nalgebra::DMatrix;
use plca_fit::Init;
use plca_tensor::DenseTensor;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::Value;
use skellam_snmf::{
    Entries, Groups, Hyperparameters, Learner, Posterior, Prior, Rate, Replicates, Sharing, Snmf,
    SnmfVb, SnmfVbState, Statistics,
};

use support::{At, assert_near, masked, matrix, number, side, stacked, tensor};

/// Data of a case, in which hidden cells hold whatever the file has there.
fn data(case: &Value) -> DenseTensor<f64> {
    let (values, observed) = (&case["V"], &case["observed"]);
    let rows = values.as_array().unwrap().len();
    let columns = values[0].as_array().unwrap().len();
    let seen = DMatrix::from_fn(rows, columns, |f, n| observed[f][n].as_bool().unwrap());
    let values = DMatrix::from_fn(rows, columns, |f, n| {
        values[f][n].as_f64().unwrap_or(f64::NAN)
    });
    masked(&values, &seen)
}

fn prior(case: &Value) -> Prior {
    Prior {
        plus: Entries::Each(side(&case["alpha"], 0)),
        minus: Entries::Each(side(&case["alpha"], 1)),
        shape: Entries::Each(matrix(&case["a"])),
        rate: Entries::Each(matrix(&case["b"])),
    }
}

fn replicates(case: &Value) -> Replicates {
    match case["M"].as_str().unwrap() {
        "1" => Replicates::One,
        "inf" => Replicates::Limit,
        other => panic!("M = {other}"),
    }
}

/// [SKELLAM 4] [SKELLAM 5] [SKELLAM eq. 13] [SKELLAM eq. 15-16] [SKELLAM eq. 26] [SKELLAM eq. 27] [SKELLAM eq. 30]
#[test]
fn em_trajectories() {
    let file = include_str!("../../../testdata/golden/trajectories_em.json");
    let golden: Value = serde_json::from_str(file).unwrap();
    let rtol = number(&golden["rtol"]);
    for case in golden["cases"].as_array().unwrap() {
        let data = data(case);
        let k = case["K"].as_u64().unwrap() as usize;
        let config = Snmf::new(k)
            .replicates(replicates(case))
            .priors(prior(case));
        let atoms = stacked(&side(&case["theta0"], 0), &side(&case["theta0"], 1));
        let start = Init::default()
            .block("atoms", atoms)
            .block("activations", matrix(&case["lambda0"]));
        let mut at = At::start(&config, &data, start);
        for iteration in 0..=50 {
            if let Some(want) = case["iterations"].get(iteration.to_string()) {
                let what = format!("{} after {iteration}", case["id"]);
                let theta = stacked(&side(&want["theta"], 0), &side(&want["theta"], 1));
                assert_near(at.state().atoms(), &theta, rtol, &what);
                let lambda = matrix(&want["lambda"]);
                assert_near(at.state().activations(), &lambda, rtol, &what);
                for (got, want) in [
                    (at.objective(), number(&want["objective"])),
                    (at.fit(), number(&want["fit"])),
                ] {
                    assert!(
                        (got - want).abs() <= rtol * want.abs(),
                        "{what}: {got} {want}"
                    );
                }
            }
            at.step();
        }
    }
}

fn posterior(v: &Value, zero: &str) -> Posterior<f64> {
    Posterior {
        plus: side(&v[format!("alpha_hat{zero}")], 0),
        minus: side(&v[format!("alpha_hat{zero}")], 1),
        shape: matrix(&v[format!("a_hat{zero}")]),
        rate: matrix(&v[format!("b_hat{zero}")]),
    }
}

fn assert_posterior(got: &Posterior<f64>, want: &Posterior<f64>, rtol: f64, what: &str) {
    assert_near(&got.plus, &want.plus, rtol, what);
    assert_near(&got.minus, &want.minus, rtol, what);
    assert_near(&got.shape, &want.shape, rtol, what);
    assert_near(&got.rate, &want.rate, rtol, what);
}

/// [SKELLAM 6] [SKELLAM 7] [SKELLAM eq. 41-42]
#[test]
fn vbem_trajectories() {
    let file = include_str!("../../../testdata/golden/trajectories_vbem.json");
    let golden: Value = serde_json::from_str(file).unwrap();
    let rtol = number(&golden["rtol"]);
    for case in golden["cases"].as_array().unwrap() {
        let data = data(case);
        let k = case["K"].as_u64().unwrap() as usize;
        let config = SnmfVb::new(k)
            .replicates(replicates(case))
            .priors(prior(case));
        let start = SnmfVbState::new(posterior(case, "0")).unwrap();
        let mut at = At::start(&config, &data, &start);
        for iteration in 0..=50 {
            let Some(want) = case["iterations"].get(iteration.to_string()) else {
                at.step();
                continue;
            };
            let what = format!("{} after {iteration}", case["id"]);
            let expected = posterior(want, "");
            assert_posterior(&at.state().posterior(), &expected, rtol, &what);
            let (got, want) = (at.objective(), number(&want["elbo"]));
            assert!(
                (got - want).abs() <= rtol * want.abs(),
                "{what}: {got} {want}"
            );
            let measured = at.measured();
            assert!((measured - got).abs() <= 1e-13 * got.abs(), "{what}");
        }
    }
}

fn sharing(case: &Value) -> Sharing {
    let whole = |m: DMatrix<f64>| Groups::Each(m.map(|x| x as usize));
    let (rows, components) = side(&case["map_alpha"], 0).shape();
    Sharing {
        rows,
        components,
        plus: whole(side(&case["map_alpha"], 0)),
        minus: whole(side(&case["map_alpha"], 1)),
        shape: whole(matrix(&case["map_a"])),
        rate: whole(matrix(&case["map_b"])),
    }
}

fn vector(v: &Value) -> Vec<f64> {
    v.as_array().unwrap().iter().map(number).collect()
}

fn hyperparameters(v: &Value, zero: &str) -> Hyperparameters {
    let values = |name: &str| vector(&v[format!("{name}{zero}")]);
    Hyperparameters {
        alpha: values("alpha"),
        shape: values("a"),
        rate: values("b"),
    }
}

fn assert_slices(got: &[f64], want: &[f64], rtol: f64, what: &str) {
    let row = |x: &[f64]| DMatrix::from_row_slice(1, x.len(), x);
    assert_near(&row(got), &row(want), rtol, what);
}

fn assert_hyperparameters(got: &Hyperparameters, want: &Hyperparameters, rtol: f64, what: &str) {
    assert_slices(&got.alpha, &want.alpha, rtol, what);
    assert_slices(&got.shape, &want.shape, rtol, what);
    assert_slices(&got.rate, &want.rate, rtol, what);
}

fn assert_statistics(got: &Statistics, want: &Value, rtol: f64, what: &str) {
    assert_slices(&got.ln_activations, &vector(&want["e"]), rtol, what);
    assert_slices(&got.activations, &vector(&want["m"]), rtol, what);
    assert_slices(&got.ln_atoms, &vector(&want["c"]), rtol, what);
}

/// [SKELLAM 8] [SKELLAM eq. 45-51]
#[test]
fn batch_hyperparameters() {
    let file = include_str!("../../../testdata/golden/hyper_batch.json");
    let golden: Value = serde_json::from_str(file).unwrap();
    let rtol = number(&golden["rtol"]);
    for case in golden["cases"].as_array().unwrap() {
        let id = case["id"].as_str().unwrap();
        let sharing = sharing(case);
        let mut hyper = hyperparameters(case, "0");
        let posteriors = case["posteriors"].as_array().unwrap();
        let posteriors: Vec<_> = posteriors.iter().map(|p| posterior(p, "")).collect();
        let mut statistics =
            Statistics::of_prior(&sharing, &hyper, posteriors[0].shape.ncols()).unwrap();
        for (t, p) in (1..).zip(&posteriors) {
            let new = Statistics::of(p, &sharing).unwrap();
            statistics.blend(&new, 1.0 / f64::from(t)).unwrap();
        }
        assert_statistics(&statistics, case, rtol, id);
        for iteration in 0..=50 {
            if let Some(want) = case["iterations"].get(iteration.to_string()) {
                let what = format!("{id} after {iteration}");
                assert_hyperparameters(&hyper, &hyperparameters(want, ""), rtol, &what);
                let prior = hyper.prior(&sharing).unwrap();
                let divergences = posteriors.iter().map(|p| p.divergence(&prior).unwrap());
                let got = -divergences.sum::<f64>() / posteriors.len() as f64;
                let want = number(&want["mean_neg_kl"]);
                assert!(
                    (got - want).abs() <= rtol * want.abs(),
                    "{what}: {got} {want}"
                );
            }
            hyper.improve(&sharing, &statistics).unwrap();
        }
    }
}

/// [SKELLAM 6] [SKELLAM 8] [SKELLAM eq. 45-51]
#[test]
fn online_hyperparameters() {
    let file = include_str!("../../../testdata/golden/hyper_online.json");
    let golden: Value = serde_json::from_str(file).unwrap();
    let rtol = number(&golden["rtol"]);
    for case in golden["cases"].as_array().unwrap() {
        let k = case["K"].as_u64().unwrap() as usize;
        let rate = match case["rate"].as_f64() {
            Some(r) => Rate::Constant(r),
            None => Rate::Average,
        };
        let mut learner = Learner::new(sharing(case), hyperparameters(case, "0"), rate)
            .unwrap()
            .iterations(case["hyper_iterations"].as_u64().unwrap() as usize);
        let sets = case["V"].as_array().unwrap();
        for (t, (set, want)) in sets
            .iter()
            .zip(case["steps"].as_array().unwrap())
            .enumerate()
        {
            let what = format!("{} data set {t}", case["id"]);
            let data = tensor(&matrix(set));
            let vb = SnmfVb::new(k)
                .replicates(replicates(case))
                .priors(learner.prior().unwrap());
            let mut rng = ChaCha8Rng::seed_from_u64(0);
            let start = vb.at_prior(&data, 0.0, &mut rng).unwrap();
            let mut at = At::start(&vb, &data, &start);
            for _ in 0..case["vbem_iterations"].as_u64().unwrap() {
                at.step();
            }
            let state = at.state().posterior();
            assert_near(&state.plus, &side(&want["alpha_hat"], 0), rtol, &what);
            assert_near(&state.minus, &side(&want["alpha_hat"], 1), rtol, &what);
            assert_near(&state.shape, &matrix(&want["a_hat"]), rtol, &what);
            learner.learn(&state).unwrap();
            assert_statistics(learner.statistics(), want, rtol, &what);
            let want = hyperparameters(want, "");
            assert_hyperparameters(learner.hyperparameters(), &want, rtol, &what);
        }
    }
}
