//! Optimality conditions: met at convergence, not before; certified gaps.

use nalgebra::{DMatrix, DVector};
use plca_em::{Given, Plca, PlcaState, Plsa, PlsaState};
use plca_fit::laws::{Law, Rounding, Way, check_gradient};
use plca_fit::{Factored, Init, Model, Parameters, Solver, State, Status, Stop};
use plca_tensor::strategies::{Start, Table, problems};
use plca_tensor::{Data, Modes, Order, Request, Rule};
use proptest::prelude::*;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use super::methods::{mixture, seen, show_plca};
use crate::support::{after, residual};

/// Two overlapping patterns with a background: no exact fit, no zero in sight.
fn table() -> Table<f64> {
    let value = |i: usize, j: usize| {
        let (i, j) = (i as f64, j as f64);
        1.0 + 8.0 * (-(i - 2.0).powi(2) / 3.0 - (j - 1.0).powi(2)).exp()
            + 6.0 * (-(i - 5.0).powi(2) / 2.0 - (j - 5.0).powi(2) / 3.0).exp()
    };
    let values: Vec<f64> = (0..56).map(|at| value(at / 7, at % 7)).collect();
    let observed = (0..56).map(|at| at % 5 != 3).collect();
    Table {
        shape: vec![8, 7],
        values,
        observed,
    }
}

// [SPEC 1.1]
#[test]
fn residual_vanishes_at_convergence_only() {
    fn check<M: Model<f64>>(model: &M, data: &dyn Data<f64>) {
        let rng = || ChaCha8Rng::seed_from_u64(1);
        let start = model.init(data, Init::default(), &mut rng()).unwrap();
        assert!(residual(model, data, &start).unwrap() > 1e-2);
        let stop = Stop::default().max_iter(200_000).tol(None);
        let run = model.on(data).unwrap().solver(Solver::Squarem);
        let run = run.stop(stop.residual_tol(1e-9));
        let fit = run.run(&start, &mut rng()).unwrap();
        assert_eq!(fit.status(), &Status::Stationary);
        assert!(residual(model, data, fit.state()).unwrap() <= 1e-9);
    }
    let table = table();
    let kinds: [Box<dyn Data<f64>>; 3] = [
        Box::new(table.dense(Order::RowMajor).unwrap()),
        Box::new(table.sparse().unwrap()),
        Box::new(table.masked(Order::RowMajor).unwrap()),
    ];
    for data in kinds {
        check(&Plca::new(2), &*data);
        check(&Plsa::new(2), &*data);
    }
}

/// `g_z`: how much the likelihood per unit of mass rises with `P(z)`.
fn gradient(data: &dyn Data<f64>, state: &PlcaState<f64>) -> Vec<f64> {
    // v P(z) g_z = Σ_i F_0[i,z] gradient[i,z]
    let gradient = Request::counts(Modes::one(0)).rule(Rule::Gradient);
    let m = state.with_model(|model| data.e_step(model, &gradient).unwrap().take(0));
    let weights = state.weights().iter().enumerate();
    weights
        .map(|(z, w)| m.column(z).dot(&state.factor(0).column(z)) / w / data.total())
        .collect()
}

/// Weights that were raised, summing to 1 again.
fn shares(mut weights: DVector<f64>) -> DVector<f64> {
    let sum = weights.sum();
    weights /= sum;
    weights
}

fn place(weights: DVector<f64>, factors: Vec<DMatrix<f64>>) -> Parameters<f64> {
    let state = PlcaState::new(weights, factors).unwrap();
    state.parameters().clone()
}

fn parts(state: &PlcaState<f64>) -> (DVector<f64>, Vec<DMatrix<f64>>) {
    let weights = DVector::from_column_slice(state.weights());
    (weights, state.factors().to_vec())
}

/// Raises the joint share of component `z` and index `i` of a mode by `1 + t`: `P(z)`, the mode's factor, and the sum of all.
fn raise(state: &PlcaState<f64>, mode: usize, (i, z): (usize, usize), t: f64) -> Parameters<f64> {
    let (mut weights, mut factors) = parts(state);
    let more = 1.0 + t * factors[mode][(i, z)];
    weights[z] *= more;
    let mut column = factors[mode].column_mut(z);
    column[i] *= 1.0 + t;
    column /= more;
    place(shares(weights), factors)
}

/// All ways to raise `P(z)`, and those to raise a joint share of one of these modes. `mass` is that of the completed data.
fn ways<'a>(state: &'a PlcaState<f64>, modes: &'a [usize], mass: f64) -> Vec<Way<'a, f64>> {
    let k = state.weights().len();
    let components = (0..k).map(|z| Way {
        at: Box::new(move |t| {
            let (mut weights, factors) = parts(state);
            weights[z] *= 1.0 + t;
            place(shares(weights), factors)
        }),
        unit: mass,
    });
    let entries = modes.iter().flat_map(|&mode| {
        let places = (0..state.factor(mode).nrows()).flat_map(move |i| (0..k).map(move |z| (i, z)));
        places.map(move |(i, z)| Way {
            at: Box::new(move |t| raise(state, mode, (i, z), t)),
            unit: mass * state.weights()[z],
        })
    });
    components.chain(entries).collect()
}

/// The mass of the completed data, and what rounding does to the likelihood of these data and this model.
fn completed(data: &dyn Data<f64>, state: &PlcaState<f64>) -> (f64, Rounding) {
    let mass = data.total() / seen(data, &show_plca(state.parameters()).0, None);
    let rows = state.factors().iter().map(|f| f.nrows()).max().unwrap_or(0);
    let depth = state.weights().len() + state.factors().len() + rows;
    let rounding = Rounding::derived(f64::EPSILON, depth, data.total() + mass);
    (mass, rounding)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// One component: the first step is the answer, `F_j = marginal / v`, and the residual is 0.
    // [SPEC 1.1]
    #[test]
    fn one_component_converges_at_once((table, start) in problems::<f64>(1..=4, 1..=5, 1..=1)) {
        let data = table.sparse().unwrap();
        let plca = Plca::new(1);
        let start = PlcaState::new(start.weights, start.factors).unwrap();
        let fit = after(&plca, &data, &start, Solver::Em, 1).unwrap();
        prop_assert!(residual(&plca, &data, fit.state()).unwrap() <= 1e-14);
        for (j, f) in fit.state().factors().iter().enumerate() {
            for (x, m) in f.iter().zip(data.marginal(j).unwrap()) {
                prop_assert!((x - m / data.total()).abs() <= 1e-14);
            }
        }
    }

    /// With fixed factors `L* - L <= v (max_z g_z - 1)` [SPEC 1.1].
    #[test]
    fn gap_is_certified((table, start) in problems::<f64>(1..=3, 2..=5, 1..=4)) {
        let data = table.sparse().unwrap();
        let Start { weights, factors } = start;
        let (k, modes) = (weights.len(), factors.len());
        let fixed = || (0..modes).fold(Plca::new(k), |b, j| b.freeze(format!("factor_{j}")));
        let state = PlcaState::new(weights, factors).unwrap();
        let frozen = fixed().freeze("weights");
        let stays = after(&frozen, &data, &state, Solver::Em, 1).unwrap();
        prop_assert_eq!(stays.state().parameters().matrices(), state.parameters().matrices());

        let plca = fixed();
        let em = plca.bind(&data).unwrap();
        let mut at = state.parameters().clone();
        let mut bounds = Vec::new();
        for _ in 0..100 {
            let state = PlcaState::wrap(at.clone()).unwrap();
            let gap = gradient(&data, &state).into_iter().fold(0.0, f64::max) - 1.0;
            bounds.push(em.objective(&at).unwrap() + data.total() * gap);
            em.step(&mut at, false).unwrap();
        }
        let reached = em.objective(&at).unwrap();
        for bound in bounds {
            prop_assert!(reached <= bound + 1e-11 * (1.0 + reached.abs() + data.total()), "{reached} above {bound}");
        }
    }

    /// The residual is the largest slope of the likelihood, with hidden cells and without.
    // [SPEC 1.1] [SPEC 4]
    #[test]
    fn residual_is_the_largest_slope((table, start) in problems::<f64>(1..=3, 1..=4, 1..=3)) {
        let Start { weights, factors } = start;
        let plca = Plca::new(weights.len());
        let modes: Vec<usize> = (0..factors.len()).collect();
        let state = PlcaState::new(weights, factors).unwrap();
        let kinds: [Box<dyn Data<f64>>; 2] = [Box::new(table.sparse().unwrap()), Box::new(table.masked(Order::RowMajor).unwrap())];
        for data in kinds {
            let (mass, rounding) = completed(&*data, &state);
            let em = plca.bind(&*data).unwrap();
            check_gradient(&*em, state.parameters(), &ways(&state, &modes, mass), &rounding)?;
        }
    }

    /// That of PLSA with its basis fixed, where the share of a component in column `y` counts in units of the column's mass.
    // [SPEC 2]
    #[test]
    fn residual_of_a_mixture_is_the_largest_slope((table, start) in problems::<f64>(2..=2, 1..=4, 1..=3)) {
        let data = table.sparse().unwrap();
        let plsa = Plsa::new(start.weights.len()).freeze("basis");
        let masses = data.marginal(1).unwrap();
        let given = || masses.iter().map(|v| v / data.total()).collect();
        let state = |mixture| PlsaState::new(Given::Columns, start.factors[0].clone(), mixture, given()).unwrap();
        let raised = |z: usize, y: usize, t: f64| {
            let mut mixture: DMatrix<f64> = mixture(&start, 1);
            mixture[(z, y)] *= 1.0 + t;
            let sum = mixture.column(y).sum();
            mixture.column_mut(y).scale_mut(1.0 / sum);
            state(mixture).parameters().clone()
        };
        let places = masses.iter().enumerate().filter(|(_, mass)| **mass > 0.0);
        let raised = &raised;
        let ways: Vec<_> = places
            .flat_map(|(y, &unit)| (0..start.weights.len()).map(move |z| Way { at: Box::new(move |t| raised(z, y, t)), unit }))
            .collect();
        let rounding = Rounding::derived(f64::EPSILON, start.weights.len() + 2 + table.shape[0], data.total());
        let em = plsa.bind(&data).unwrap();
        let at = state(mixture(&start, 1));
        check_gradient(&*em, at.parameters(), &ways, &rounding)?;
    }
}

/// A residual that leaves out a block is caught, and is right for the other blocks.
// [SPEC 1.1]
#[test]
fn a_residual_that_forgets_a_factor_is_caught() {
    let data = table().dense(Order::RowMajor).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let plca = Plca::new(2);
    let start = plca.init(&data, Init::default(), &mut rng).unwrap();
    // What the first factor lacks most is at one index.
    let (weights, mut factors) = parts(&start);
    factors[0].fill(0.01 / 7.0);
    factors[0].row_mut(7).fill(0.99);
    let state = PlcaState::new(weights, factors).unwrap();
    let (mass, rounding) = completed(&data, &state);
    let forgets = Plca::new(2).freeze("factor_0");
    let em = forgets.bind(&data).unwrap();
    let at = state.parameters();
    let against = |modes: &[usize]| check_gradient(&*em, at, &ways(&state, modes, mass), &rounding);
    assert_eq!(against(&[0, 1]).unwrap_err().law, Law::Gradient);
    against(&[1]).unwrap();
}
