//! Priors inside models: trajectories of reference, schedules that advance, and data that stay possible.

use std::sync::Arc;

use nalgebra::{DMatrix, DVector, dmatrix};
use plca_em::{Algorithm, EmError, Plca, PlcaInit, PlcaState, Plsa, PlsaInit, PlsaState, Prior};
use plca_priors::{CrossEntropy, Dirichlet, Entropic, Schedule, Scheduled};
use plca_tensor::{DenseTensor, Order};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::Value;

fn cases(file: &str, kind: &str) -> Vec<Value> {
    let path = format!(
        "{}/../../testdata/golden/{file}.json",
        env!("CARGO_MANIFEST_DIR")
    );
    let golden: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let all = golden["cases"].as_array().unwrap().clone();
    let of_kind = |c: &Value| c["name"].as_str().unwrap().starts_with(kind);
    all.into_iter().filter(of_kind).collect()
}

fn numbers(v: &Value) -> Vec<f64> {
    let data = v["data"].as_array().unwrap();
    data.iter().map(|x| x.as_f64().unwrap()).collect()
}

fn matrix(v: &Value) -> DMatrix<f64> {
    let size = |i: usize| v["shape"][i].as_u64().map_or(1, |n| n as usize);
    DMatrix::from_row_slice(size(0), size(1), &numbers(v))
}

fn data(v: &Value) -> DenseTensor<f64> {
    let m = matrix(v);
    DenseTensor::new(vec![m.nrows(), m.ncols()], numbers(v), Order::RowMajor).unwrap()
}

fn rng() -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(0)
}

fn same(what: &str, got: &[f64], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (g, w) in got.iter().zip(want) {
        let error = (g - w).abs();
        assert!(
            error <= tolerance * w.abs().max(1.0),
            "{what}: {g} instead of {w}"
        );
    }
}

/// Steps to every point of a trajectory and calls `compare` there.
fn follow<A: Algorithm>(
    em: &A,
    mut state: A::State,
    case: &Value,
    compare: impl Fn(&A::State, &Value, f64),
) {
    let mut done = 0;
    for point in case["trajectory"].as_array().unwrap() {
        while done < point["iter"].as_u64().unwrap() {
            em.step(&mut state, false).ok().unwrap();
            done += 1;
        }
        compare(&state, point, case["tolerance"].as_f64().unwrap());
    }
    assert!(done > 0, "no reference points");
}

/// EM with the clipped step for groups on one factor [SPEC 8], its weight constant and decreasing.
// [CE eq. 7]
#[test]
fn cross_entropy_runs() {
    let cases = cases("cross_entropy", "run_");
    assert!(cases.len() >= 5);
    for case in &cases {
        let number = |name: &str| case[name].as_f64().unwrap();
        let groups: Vec<usize> = numbers(&case["groups"])
            .iter()
            .map(|&g| g as usize)
            .collect();
        let prior =
            CrossEntropy::groups(&groups, number("alpha_between"), number("beta_within")).unwrap();
        let over = number("decrease_T");
        let prior: Prior<f64> = if over > 0.0 {
            Arc::new(Scheduled::new(prior, Schedule::Decreasing { over }).unwrap())
        } else {
            Arc::new(prior)
        };
        let mode = number("constrained_mode") as usize;
        let plca = Plca::builder(groups.len()).factor_prior(mode, prior);
        let plca = plca.build().unwrap();
        let factors = case["init"]["factors"].as_array().unwrap();
        let init = PlcaInit {
            weights: Some(DVector::from_vec(numbers(&case["init"]["pz"]))),
            factors: factors.iter().map(|f| Some(matrix(f))).collect(),
        };
        let v = data(&case["V"]);
        let values = numbers(&case["V"]);
        let entropy: f64 = values
            .iter()
            .filter(|v| **v > 0.0)
            .map(|v| v * v.ln())
            .sum();
        let total: f64 = values.iter().sum();
        let em = plca.on(&v).unwrap();
        let state = plca.init(&v, &init, &mut rng()).unwrap();
        follow(&em, state, case, |state, point, tolerance| {
            let name = case["name"].as_str().unwrap();
            same(
                name,
                state.weights.as_slice(),
                &numbers(&point["pz"]),
                tolerance,
            );
            for (got, want) in state
                .factors
                .iter()
                .zip(point["factors"].as_array().unwrap())
            {
                same(name, got.as_slice(), matrix(want).as_slice(), tolerance);
            }
            let kl = entropy - total * total.ln() - em.ln_lik(state).unwrap();
            same(name, &[kl], &[point["kl"].as_f64().unwrap()], tolerance);
        });
    }
}

/// PLSA with an entropic prior on the mixtures, sparse and smooth, and its objective.
// [SPEC 6]
#[test]
fn entropic_runs() {
    let cases = cases("entropic_em", "plsa");
    assert!(cases.len() >= 3);
    for case in &cases {
        let beta = case["beta"].as_f64().unwrap();
        let init = PlsaInit {
            basis: Some(matrix(&case["init"]["P_x_given_z"])),
            mixture: Some(matrix(&case["init"]["P_z_given_y"])),
        };
        let k = init.basis.as_ref().unwrap().ncols();
        let plsa = Plsa::builder(k).mixture_prior(Arc::new(Entropic::new(beta).unwrap()));
        let plsa = plsa.build().unwrap();
        let v = data(&case["V"]);
        let em = plsa.on(&v).unwrap();
        let state = plsa.init(&v, &init, &mut rng()).unwrap();
        follow(&em, state, case, |state, point, tolerance| {
            let name = case["name"].as_str().unwrap();
            let block = |name: &str| matrix(&point[name]);
            same(
                name,
                state.basis.as_slice(),
                block("P_x_given_z").as_slice(),
                tolerance,
            );
            same(
                name,
                state.mixture.as_slice(),
                block("P_z_given_y").as_slice(),
                tolerance,
            );
            let want = point["objective"].as_f64().unwrap();
            same(name, &[em.objective(state).unwrap()], &[want], tolerance);
        });
    }
}

const COUNTS: [f64; 6] = [9.0, 8.0, 1.0, 0.2, 7.0, 9.0];

fn counts() -> DenseTensor<f64> {
    DenseTensor::new(vec![3, 2], COUNTS.to_vec(), Order::RowMajor).unwrap()
}

/// A scheduled prior counts the steps in the state: a run and its continuation from a copy are one, and after the schedule
/// the objective is the likelihood.
// [SPEC 8]
#[test]
fn schedules_advance() -> Result<(), EmError> {
    let schedule = Schedule::Decreasing { over: 4.0 };
    let prior = Scheduled::new(Dirichlet::symmetric(5.0).unwrap(), schedule).unwrap();
    let (v, prior): (_, Prior<f64>) = (counts(), Arc::new(prior));
    let plca = Plca::builder(2).factor_prior(0, prior.clone()).build()?;
    let em = plca.on(&v)?;
    let mut state = plca.init(&v, &PlcaInit::default(), &mut rng())?;
    for done in 0..7 {
        assert_eq!(state.iteration, done);
        assert_eq!(
            em.objective(&state)? == em.ln_lik(&state).unwrap(),
            done >= 4
        );
        assert_eq!(
            em.step(&mut state.clone(), true)?,
            Some(em.objective(&state)?)
        );
        em.step(&mut state, false)?;
    }
    let plsa = Plsa::builder(2).basis_prior(prior).build()?;
    let em = plsa.on(&v)?;
    let mut state = plsa.init(&v, &PlsaInit::default(), &mut rng())?;
    for done in 0..7 {
        assert_eq!(state.iteration, done);
        assert_eq!(
            em.objective(&state)? == em.ln_lik(&state).unwrap(),
            done >= 4
        );
        assert_eq!(
            em.step(&mut state.clone(), true)?,
            Some(em.objective(&state)?)
        );
        em.step(&mut state, false)?;
    }
    Ok(())
}

/// A prior that would empty a row of the data leaves `1e-12` of it in every column `[SPEC 8]`; blocks without such a prior
/// are left alone.
#[test]
fn data_stay_possible() -> Result<(), EmError> {
    // Row 1 has a count of 1.2 for two components; 0.9 are taken from either.
    let (v, prior): (_, Prior<f64>) = (counts(), Arc::new(Dirichlet::symmetric(0.1).unwrap()));
    let trace = |x: f64| 0.0 < x && x <= 1e-12;
    let plca = Plca::builder(2).factor_prior(0, prior.clone()).build()?;
    let mut state = PlcaState {
        weights: DVector::from_element(2, 0.5),
        factors: vec![
            dmatrix![0.4, 0.3; 0.3, 0.3; 0.3, 0.4],
            dmatrix![0.5, 0.6; 0.5, 0.4],
        ],
        power: 1.0,
        iteration: 0,
    };
    let em = plca.on(&v)?;
    em.step(&mut state, false)?;
    assert!(
        state.factors[0].row(1).iter().all(|&x| trace(x)),
        "{state:?}"
    );
    for _ in 0..20 {
        em.step(&mut state, false)?;
        assert!(em.ln_lik(&state).unwrap().is_finite());
        assert!(state.factors.iter().flatten().all(|x| x.is_finite()));
    }
    let plsa = Plsa::builder(2).basis_prior(prior).build()?;
    let mut state = PlsaState {
        basis: dmatrix![0.4, 0.3; 0.3, 0.3; 0.3, 0.4],
        mixture: dmatrix![0.5, 0.6; 0.5, 0.4],
        power: 1.0,
        iteration: 0,
    };
    let em = plsa.on(&v)?;
    em.step(&mut state, false)?;
    assert!(state.basis.row(1).iter().all(|&x| trace(x)), "{state:?}");
    for _ in 0..20 {
        em.step(&mut state, false)?;
        assert!(em.ln_lik(&state).unwrap().is_finite());
        assert!(
            state
                .basis
                .iter()
                .chain(&state.mixture)
                .all(|x| x.is_finite())
        );
    }
    Ok(())
}

/// A weight of 0 that costs no cell its support stays 0: components may die.
#[test]
fn components_may_die() -> Result<(), EmError> {
    let v = counts();
    let prior: Prior<f64> = Arc::new(Dirichlet::symmetric(0.01).unwrap());
    let plca = Plca::builder(40).weights_prior(prior).build()?;
    let em = plca.on(&v)?;
    let mut state = plca.init(&v, &PlcaInit::default(), &mut rng())?;
    for _ in 0..50 {
        em.step(&mut state, false)?;
    }
    assert!(state.weights.iter().filter(|w| **w == 0.0).count() > 1);
    assert!(em.ln_lik(&state).unwrap().is_finite());
    Ok(())
}
