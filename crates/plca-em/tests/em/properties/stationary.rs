//! Optimality conditions: met at convergence, not before; certified gaps.

use nalgebra::DMatrix;
use plca_em::{
    Algorithm, PlcaInit, PlsaInit, Squarem, Stop, StopReason,
    before::{Plca, PlcaState, Plsa, PlsaState},
    run,
};
use plca_fit::laws::{Law, Rounding, Way, check_gradient};
use plca_tensor::strategies::{Start, Table, problems};
use plca_tensor::{Cp, Data, Factor, Modes, Order, Request, Rule};
use proptest::prelude::*;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use super::methods::{mixture, seen, show_plca};

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

fn stop() -> Stop {
    Stop {
        max_iter: 200_000,
        tol: f64::MIN_POSITIVE,
        check_every: 10,
        residual_tol: Some(1e-9),
        ..Stop::default()
    }
}

// [SPEC 1.1]
#[test]
fn residual_vanishes_at_convergence_only() {
    let table = table();
    let kinds: [Box<dyn Data<f64>>; 3] = [
        Box::new(table.dense(Order::RowMajor).unwrap()),
        Box::new(table.sparse().unwrap()),
        Box::new(table.masked(Order::RowMajor).unwrap()),
    ];
    for data in kinds {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let plca = Plca::<f64>::builder(2).build().unwrap();
        let em = plca.on(&*data).unwrap();
        let start = plca.init(&*data, &PlcaInit::default(), &mut rng).unwrap();
        assert!(em.residual(&start).unwrap().unwrap() > 1e-2);
        let fit = run(&Squarem(em), start, &stop(), ()).unwrap();
        assert_eq!(fit.reason, StopReason::Stationary);

        let plsa = Plsa::<f64>::builder(2).build().unwrap();
        let em = plsa.on(&*data).unwrap();
        let start = plsa.init(&*data, &PlsaInit::default(), &mut rng).unwrap();
        assert!(em.residual(&start).unwrap().unwrap() > 1e-2);
        let fit = run(&Squarem(em), start, &stop(), ()).unwrap();
        assert_eq!(fit.reason, StopReason::Stationary);
    }
}

/// `g_z`: how much the likelihood per unit of mass rises with `P(z)`.
fn gradient(data: &dyn Data<f64>, state: &PlcaState<f64>) -> Vec<f64> {
    let factors: Vec<_> = state.factors.iter().map(Factor::Columns).collect();
    let model = Cp {
        weights: Some(state.weights.as_slice()),
        factors: &factors,
    };
    // v P(z) g_z = Σ_i F_0[i,z] gradient[i,z]
    let gradient = Request::counts(Modes::one(0)).rule(Rule::Gradient);
    let m = data.e_step(&model, &gradient).unwrap().take(0);
    (0..state.weights.len())
        .map(|z| m.column(z).dot(&state.factors[0].column(z)) / state.weights[z] / data.total())
        .collect()
}

/// Raises the joint share of component `z` and index `i` of a mode by `1 + t`: `P(z)`, the mode's factor, and the sum of all.
fn raise(state: &PlcaState<f64>, mode: usize, (i, z): (usize, usize), t: f64) -> PlcaState<f64> {
    let mut state = state.clone();
    let more = 1.0 + t * state.factors[mode][(i, z)];
    state.weights[z] *= more;
    let sum = state.weights.sum();
    state.weights /= sum;
    let mut column = state.factors[mode].column_mut(z);
    column[i] *= 1.0 + t;
    column /= more;
    state
}

/// All ways to raise `P(z)`, and those to raise a joint share of one of these modes. `mass` is that of the completed data.
fn ways<'a>(
    state: &'a PlcaState<f64>,
    modes: &'a [usize],
    mass: f64,
) -> Vec<Way<'a, PlcaState<f64>>> {
    let k = state.weights.len();
    let components = (0..k).map(|z| Way {
        at: Box::new(move |t| {
            let mut state = state.clone();
            state.weights[z] *= 1.0 + t;
            let sum = state.weights.sum();
            state.weights /= sum;
            state
        }),
        unit: mass,
    });
    let entries = modes.iter().flat_map(|&mode| {
        let places =
            (0..state.factors[mode].nrows()).flat_map(move |i| (0..k).map(move |z| (i, z)));
        places.map(move |(i, z)| Way {
            at: Box::new(move |t| raise(state, mode, (i, z), t)),
            unit: mass * state.weights[z],
        })
    });
    components.chain(entries).collect()
}

/// The mass of the completed data, and what rounding does to the likelihood of these data and this model.
fn completed(data: &dyn Data<f64>, state: &PlcaState<f64>) -> (f64, Rounding) {
    let mass = data.total() / seen(data, &show_plca(state).0, None);
    let rows = state.factors.iter().map(|f| f.nrows()).max().unwrap_or(0);
    let depth = state.weights.len() + state.factors.len() + rows;
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
        let plca = Plca::<f64>::builder(1).build().unwrap();
        let em = plca.on(&data).unwrap();
        let mut state = PlcaState { weights: start.weights, factors: start.factors, power: 1.0, iteration: 0 };
        em.step(&mut state, false).unwrap();
        prop_assert!(em.residual(&state).unwrap().unwrap() <= 1e-14);
        for (j, f) in state.factors.iter().enumerate() {
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
        let builder = (0..factors.len()).fold(Plca::<f64>::builder(weights.len()).freeze_weights(), |b, j| b.freeze_factor(j));
        let frozen = builder.build().unwrap();
        let mut state = PlcaState { weights, factors, power: 1.0, iteration: 0 };
        let before = state.clone();
        frozen.on(&data).unwrap().step(&mut state, false).unwrap();
        prop_assert_eq!((&state.weights, &state.factors), (&before.weights, &before.factors));

        let builder = (0..state.factors.len()).fold(Plca::<f64>::builder(state.weights.len()), |b, j| b.freeze_factor(j));
        let plca = builder.build().unwrap();
        let em = plca.on(&data).unwrap();
        let mut bounds = Vec::new();
        for _ in 0..100 {
            let gap = gradient(&data, &state).into_iter().fold(0.0, f64::max) - 1.0;
            bounds.push(em.objective(&state).unwrap() + data.total() * gap);
            em.step(&mut state, false).unwrap();
        }
        let reached = em.objective(&state).unwrap();
        for bound in bounds {
            prop_assert!(reached <= bound + 1e-11 * (1.0 + reached.abs() + data.total()), "{reached} above {bound}");
        }
    }

    /// The residual is the largest slope of the likelihood, with hidden cells and without.
    // [SPEC 1.1] [SPEC 4]
    #[test]
    fn residual_is_the_largest_slope((table, start) in problems::<f64>(1..=3, 1..=4, 1..=3)) {
        let Start { weights, factors } = start;
        let plca = Plca::<f64>::builder(weights.len()).build().unwrap();
        let state = PlcaState { weights, factors, power: 1.0, iteration: 0 };
        let modes: Vec<usize> = (0..state.factors.len()).collect();
        let kinds: [Box<dyn Data<f64>>; 2] = [Box::new(table.sparse().unwrap()), Box::new(table.masked(Order::RowMajor).unwrap())];
        for data in kinds {
            let (mass, rounding) = completed(&*data, &state);
            check_gradient(&plca.on(&*data).unwrap(), &state, &ways(&state, &modes, mass), &rounding)?;
        }
    }

    /// That of PLSA with its basis fixed, where the share of a component in column `y` counts in units of the column's mass.
    // [SPEC 2]
    #[test]
    fn residual_of_a_mixture_is_the_largest_slope((table, start) in problems::<f64>(2..=2, 1..=4, 1..=3)) {
        let data = table.sparse().unwrap();
        let plsa = Plsa::<f64>::builder(start.weights.len()).freeze_basis().build().unwrap();
        let state = PlsaState { basis: start.factors[0].clone(), mixture: mixture(&start, 1), power: 1.0, iteration: 0 };
        let raised = |z: usize, y: usize, t: f64| {
            let mut mixture: DMatrix<f64> = state.mixture.clone();
            mixture[(z, y)] *= 1.0 + t;
            let sum = mixture.column(y).sum();
            mixture.column_mut(y).scale_mut(1.0 / sum);
            PlsaState { mixture, ..state.clone() }
        };
        let masses = data.marginal(1).unwrap();
        let places = masses.iter().enumerate().filter(|(_, mass)| **mass > 0.0);
        let raised = &raised;
        let ways: Vec<_> = places
            .flat_map(|(y, &unit)| (0..start.weights.len()).map(move |z| Way { at: Box::new(move |t| raised(z, y, t)), unit }))
            .collect();
        let rounding = Rounding::derived(f64::EPSILON, start.weights.len() + 2 + table.shape[0], data.total());
        check_gradient(&plsa.on(&data).unwrap(), &state, &ways, &rounding)?;
    }
}

/// A residual that leaves out a block is caught, and is right for the other blocks.
// [SPEC 1.1]
#[test]
fn a_residual_that_forgets_a_factor_is_caught() {
    let data = table().dense(Order::RowMajor).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let plca = Plca::<f64>::builder(2).build().unwrap();
    let mut state = plca.init(&data, &PlcaInit::default(), &mut rng).unwrap();
    // What the first factor lacks most is at one index.
    state.factors[0].fill(0.01 / 7.0);
    state.factors[0].row_mut(7).fill(0.99);
    let (mass, rounding) = completed(&data, &state);
    let forgets = Plca::<f64>::builder(2).freeze_factor(0).build().unwrap();
    let forgets = forgets.on(&data).unwrap();
    let against =
        |modes: &[usize]| check_gradient(&forgets, &state, &ways(&state, modes, mass), &rounding);
    assert_eq!(against(&[0, 1]).unwrap_err().law, Law::Gradient);
    against(&[1]).unwrap();
}
