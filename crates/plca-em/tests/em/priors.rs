//! Priors inside models: trajectories of reference, schedules that advance, and data that stay possible.

use std::sync::Arc;

use nalgebra::{DMatrix, DVector, dmatrix};
use plca_em::{
    Geometry, Given, Likelihood, Plca, PlcaState, Plsa, PlsaState, Shifted, ShiftedState, Support,
};
use plca_fit::{Algorithm, Event, FitError, Init, Model, Solver, State};
use plca_priors::{CrossEntropy, Dirichlet, Entropic, LogisticNormal, Schedule, Scheduled};
use plca_tensor::{Data, DenseTensor, Order};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::Value;

use crate::support::{Prior, after, exactly, matrix};

use crate::support::normalised;

fn cases(file: &str, kind: &str) -> Vec<Value> {
    let path = format!(
        "{}/../testdata/golden/{file}.json",
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
fn follow<S: State<Scalar = f64>>(
    em: &dyn Algorithm<f64>,
    state: &S,
    case: &Value,
    compare: impl Fn(&S, &Value, f64),
) {
    let (mut at, mut done) = (state.parameters().clone(), 0);
    for point in case["trajectory"].as_array().unwrap() {
        while done < point["iter"].as_u64().unwrap() {
            em.step(&mut at, false).unwrap();
            done += 1;
        }
        compare(
            &S::wrap(at.clone()).unwrap(),
            point,
            case["tolerance"].as_f64().unwrap(),
        );
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
        let plca = Plca::new(groups.len()).prior(format!("factor_{mode}"), prior);
        let factors = case["init"]["factors"].as_array().unwrap();
        let mut init = Init::default().block("weights", matrix(&case["init"]["pz"]));
        for (j, factor) in factors.iter().enumerate() {
            init = init.block(format!("factor_{j}"), matrix(factor));
        }
        let v = data(&case["V"]);
        let values = numbers(&case["V"]);
        let entropy: f64 = values
            .iter()
            .filter(|v| **v > 0.0)
            .map(|v| v * v.ln())
            .sum();
        let total: f64 = values.iter().sum();
        let em = plca.bind(&v).unwrap();
        let state = plca.init(&v, init, &mut rng()).unwrap();
        follow(
            &*em,
            &state,
            case,
            |state: &PlcaState<f64>, point, tolerance| {
                let name = case["name"].as_str().unwrap();
                same(name, state.weights(), &numbers(&point["pz"]), tolerance);
                for (got, want) in state
                    .factors()
                    .iter()
                    .zip(point["factors"].as_array().unwrap())
                {
                    same(name, got.as_slice(), matrix(want).as_slice(), tolerance);
                }
                let kl = entropy - total * total.ln() - em.likelihood(state.parameters()).unwrap();
                same(name, &[kl], &[point["kl"].as_f64().unwrap()], tolerance);
            },
        );
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
        let basis = matrix(&case["init"]["P_x_given_z"]);
        let k = basis.ncols();
        let init = Init::default().block("basis", basis);
        let init = init.block("mixture", matrix(&case["init"]["P_z_given_y"]));
        let plsa = Plsa::new(k).prior("mixture", Arc::new(Entropic::new(beta).unwrap()));
        let v = data(&case["V"]);
        let em = plsa.bind(&v).unwrap();
        let state = plsa.init(&v, init, &mut rng()).unwrap();
        follow(
            &*em,
            &state,
            case,
            |state: &PlsaState<f64>, point, tolerance| {
                let name = case["name"].as_str().unwrap();
                let block = |name: &str| matrix(&point[name]);
                same(
                    name,
                    state.basis().as_slice(),
                    block("P_x_given_z").as_slice(),
                    tolerance,
                );
                same(
                    name,
                    state.mixture().as_slice(),
                    block("P_z_given_y").as_slice(),
                    tolerance,
                );
                let want = point["objective"].as_f64().unwrap();
                let objective = em.objective(state.parameters()).unwrap();
                same(name, &[objective], &[want], tolerance);
            },
        );
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
fn schedules_advance() -> Result<(), FitError> {
    let schedule = Schedule::Decreasing { over: 4.0 };
    let prior = Scheduled::new(Dirichlet::symmetric(5.0).unwrap(), schedule).unwrap();
    let prior: Prior<f64> = Arc::new(prior);
    fn advance<M: Model<f64>>(model: &M) -> Result<(), FitError> {
        let v = counts();
        let em = model.bind(&v)?;
        let start = model.init(&v, Init::default(), &mut rng())?;
        let mut at = start.parameters().clone();
        for done in 0..7 {
            assert_eq!(at.iteration(), done);
            assert_eq!(em.objective(&at)? == em.likelihood(&at)?, done >= 4);
            let measured = em.step(&mut at.clone(), true)?.value;
            assert_eq!(measured, Some(em.objective(&at)?));
            em.step(&mut at, false)?;
        }
        Ok(())
    }
    advance(&Plca::new(2).prior("factor_0", prior.clone()))?;
    advance(&Plsa::new(2).prior("basis", prior))
}

/// A prior that would empty a row of the data leaves `1e-12` of it in every column, which is told `[SPEC 8]`; blocks without such a
/// prior are left alone.
#[test]
fn data_stay_possible() -> Result<(), FitError> {
    // Row 1 has a count of 1.2 for two components; 0.9 are taken from either.
    let prior: Prior<f64> = Arc::new(Dirichlet::symmetric(0.1).unwrap());
    let first = dmatrix![0.4, 0.3; 0.3, 0.3; 0.3, 0.4];
    let second = dmatrix![0.5, 0.6; 0.5, 0.4];
    fn possible<M: Model<f64>>(model: &M, start: &M::State, name: &str) -> Result<(), FitError> {
        let v = counts();
        let one = after(model, &v, start, Solver::Em, 1)?;
        let block = one.state().parameters().block(name).unwrap();
        assert!(block.row(1).iter().all(|&x| 0.0 < x && x <= 1e-12));
        let (block, iteration) = (name.to_string(), 1);
        assert_eq!(one.events(), [Event::SupportRestored { block, iteration }]);
        for n in 2..=21 {
            let fit = after(model, &v, start, Solver::Em, n)?;
            let at = fit.state().parameters();
            assert!(model.bind(&v)?.likelihood(at)?.is_finite());
            assert!(at.matrices().iter().flatten().all(|x| x.is_finite()));
        }
        Ok(())
    }
    let plca = Plca::new(2).prior("factor_0", prior.clone());
    let factors = vec![first.clone(), second.clone()];
    let start = PlcaState::new(DVector::from_element(2, 0.5), factors)?;
    possible(&plca, &start, "factor_0")?;
    let plsa = Plsa::new(2).prior("basis", prior);
    let start = PlsaState::new(Given::Columns, first, second, vec![0.5; 2])?;
    possible(&plsa, &start, "basis")
}

/// A weight of 0 that costs no cell its support stays 0: components may die.
#[test]
fn components_may_die() -> Result<(), FitError> {
    let v = counts();
    let prior: Prior<f64> = Arc::new(Dirichlet::symmetric(0.01).unwrap());
    let plca = Plca::new(40).prior("weights", prior);
    let start = plca.init(&v, Init::default(), &mut rng())?;
    let fit = after(&plca, &v, &start, Solver::Em, 50)?;
    let weights = fit.state().weights();
    assert!(weights.iter().filter(|w| **w == 0.0).count() > 1);
    let at = fit.state().parameters();
    assert!(plca.bind(&v)?.likelihood(at)?.is_finite());
    Ok(())
}

/// Row 1 has half a count, which component 1 alone explains; the prior takes nine tenths.
fn half_a_count() -> (DenseTensor<f64>, Prior<f64>) {
    let v = DenseTensor::new(vec![2, 1], vec![4.0, 0.5], Order::RowMajor).unwrap();
    (v, Arc::new(Dirichlet::symmetric(0.1).unwrap()))
}

fn restored(q: f64) -> f64 {
    (q + 1e-12) / (1.0 + 2e-12)
}

/// A weight that its prior takes away although a cell has nothing else is restored, with all weights.
// [SPEC 8]
#[test]
fn weights_are_restored_where_the_data_need_them() -> Result<(), FitError> {
    let (v, prior) = half_a_count();
    let plca = Plca::new(2).prior("weights", prior);
    let factors = vec![dmatrix![1.0, 0.0; 0.0, 1.0], dmatrix![1.0, 1.0]];
    let start = PlcaState::new(DVector::from_element(2, 0.5), factors.clone())?;
    let mut at = start.parameters().clone();
    let stepped = plca.bind(&v)?.step(&mut at, false)?;
    assert_eq!(at.at(0).as_slice(), [restored(1.0), restored(0.0)]);
    assert_eq!((&at.matrices()[1..], at.iteration()), (&factors[..], 1));
    assert_eq!(stepped.restored, [0]);
    // Where no cell needs it, it stays away.
    let factors = vec![dmatrix![0.5, 0.5; 0.5, 0.5], dmatrix![1.0, 1.0]];
    let start = PlcaState::new(DVector::from_vec(vec![0.95, 0.05]), factors)?;
    let mut at = start.parameters().clone();
    let stepped = plca.bind(&v)?.step(&mut at, false)?;
    assert_eq!(at.at(0).as_slice(), [1.0, 0.0]);
    assert!(stepped.restored.is_empty());
    Ok(())
}

/// So are the weights of a shifted model.
// [SPEC 8]
#[test]
fn weights_of_shifted_models_are_restored() -> Result<(), FitError> {
    let (v, prior) = half_a_count();
    let shifted = Shifted::new(2, vec![2, 1]).prior("weights", prior);
    let start = ShiftedState::new(
        Geometry::new(&[2, 1], &[2, 1], &[Support::Valid])?,
        Likelihood::Conditional,
        DVector::from_element(2, 0.5),
        dmatrix![1.0, 0.0; 0.0, 1.0],
        dmatrix![1.0, 1.0],
    )?;
    let mut at = start.parameters().clone();
    let stepped = shifted.bind(&v)?.step(&mut at, false)?;
    assert_eq!(at.at(0).as_slice(), [restored(1.0), restored(0.0)]);
    assert_eq!(at.at(1), start.kernels());
    assert_eq!(stepped.restored, [0]);
    Ok(())
}

/// Pseudo-counts that differ from entry to entry, of blocks as high as they are wide: a fit ends where every entry has its own.
// [SPEC 7]
#[test]
fn pseudo_counts_of_single_entries() -> Result<(), FitError> {
    let (v, table) = square();
    let added = [of(1, 1), of(2, 3), of(3, 3)];
    let plca = Plca::new(3).prior("weights", prior(&added[0]));
    let plca = plca
        .prior("factor_0", prior(&added[1]))
        .prior("factor_1", prior(&added[2]));
    let run = plca.on(&v)?.solver(Solver::Em).stop(exactly(3000));
    let fit = run.run(Init::default(), &mut rng())?;
    let factors = fit.state().factors();
    let weights = DVector::from_column_slice(fit.state().weights());
    let p = DMatrix::from_diagonal(&weights);
    let q = table.component_div(&(&factors[0] * &p * factors[1].transpose()));
    let counts = [
        (&q * &factors[1] * &p).component_mul(&factors[0]),
        (q.transpose() * &factors[0] * &p).component_mul(&factors[1]),
    ];
    let n = counts[0].row_sum().transpose();
    let n = DMatrix::from_column_slice(3, 1, n.as_slice());
    let found = DMatrix::from_column_slice(3, 1, weights.as_slice());
    near("weights", &found, normalised(n + &added[0]));
    near("factor_0", &factors[0], normalised(&counts[0] + &added[1]));
    near("factor_1", &factors[1], normalised(&counts[1] + &added[2]));

    let plsa = Plsa::new(3)
        .prior("basis", prior(&added[1]))
        .prior("mixture", prior(&added[2]));
    let run = plsa.on(&v)?.solver(Solver::Em).stop(exactly(3000));
    let fit = run.run(Init::default(), &mut rng())?;
    let (basis, mixture) = (fit.state().basis(), fit.state().mixture());
    let q = table.component_div(&(basis * mixture));
    let of_basis = (&q * mixture.transpose()).component_mul(basis);
    let of_mixture = (basis.transpose() * &q).component_mul(mixture);
    near("basis", basis, normalised(of_basis + &added[1]));
    near("mixture", mixture, normalised(of_mixture + &added[2]));
    Ok(())
}

fn square() -> (DenseTensor<f64>, DMatrix<f64>) {
    let values = vec![3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0, 5.0];
    let v = DenseTensor::new(vec![3, 3], values.clone(), Order::RowMajor).unwrap();
    (v, DMatrix::from_row_slice(3, 3, &values))
}

fn of(seed: usize, columns: usize) -> DMatrix<f64> {
    DMatrix::from_fn(3, columns, |i, z| {
        0.2 + 0.9 * i as f64 + 0.4 * (z * (i + seed)) as f64
    })
}

fn prior(added: &DMatrix<f64>) -> Prior<f64> {
    Arc::new(Dirichlet::per_entry(added.map(|c| c + 1.0)).unwrap())
}

fn near(what: &str, a: &DMatrix<f64>, b: DMatrix<f64>) {
    assert!((a - &b).amax() < 1e-9, "{what}: {a} is not {b}");
}

// [SPEC 7]
#[test]
fn pseudo_counts_of_shifted_models() -> Result<(), FitError> {
    let (v, table) = square();
    let added = [of(1, 1), of(2, 3), of(3, 3)];
    // A kernel as high as the data: PLCA of the flattened matrix and a last mode of one index.
    let shifted = Shifted::new(3, vec![3, 1]).prior("weights", prior(&added[0]));
    let shifted = shifted
        .prior("kernels", prior(&added[1]))
        .prior("impulses", prior(&added[2]));
    let run = shifted.on(&v)?.solver(Solver::Em).stop(exactly(3000));
    let state = run.run(Init::default(), &mut rng())?.into_state();
    let (kernels, impulses) = (state.kernels(), state.impulses());
    let p = DMatrix::from_diagonal(&DVector::from_column_slice(state.weights()));
    let q = table.component_div(&(kernels * &p * impulses.transpose()));
    let of_kernels = (&q * impulses * &p).component_mul(kernels);
    let of_impulses = (q.transpose() * kernels * &p).component_mul(impulses);
    near("kernels", kernels, normalised(of_kernels + &added[1]));
    near("impulses", impulses, normalised(of_impulses + &added[2]));
    Ok(())
}

/// A prior that is nothing beside the counts changes nothing, however large these are: the objective is a number, rises, and is that without it.
// [SPEC 7]
#[test]
fn logistic_normal_columns_of_huge_counts() {
    let values = |size: f64| {
        (0..24)
            .map(|n| size * f64::from((7 * n + n * n) % 11 + 1))
            .collect()
    };
    for block in ["basis", "mixture"] {
        let rows = if block == "basis" { 8 } else { 5 };
        let ones = DVector::from_element(rows, 1.0);
        let prior = LogisticNormal::independent(DVector::zeros(rows), &ones).unwrap();
        for size in [1e40, 1e61, 1e100, 1e200] {
            let data = DenseTensor::new(vec![8, 3], values(size), Order::RowMajor).unwrap();
            let end = |plsa: Plsa| {
                let run = plsa.on(&data).unwrap().solver(Solver::Em);
                let run = run.stop(exactly(30).check_every(1));
                let fit = run.run(Init::default(), &mut rng()).unwrap();
                let trace: Vec<f64> = fit
                    .trace()
                    .iter()
                    .map(|p| p.objective / data.total())
                    .collect();
                assert!(
                    trace.iter().all(|x| x.is_finite()),
                    "{block} {size:e}: {trace:?}"
                );
                for pair in trace.windows(2) {
                    assert!(pair[1] >= pair[0] - 1e-13, "{block} {size:e}: {pair:?}");
                }
                trace[30]
            };
            let with = end(Plsa::new(5).prior(block, prior.clone()));
            let without = end(Plsa::new(5));
            assert!(
                (with - without).abs() < 1e-9,
                "{block} {size:e}: {with} {without}"
            );
        }
    }
}
