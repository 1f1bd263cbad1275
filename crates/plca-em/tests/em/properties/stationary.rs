//! Optimality conditions: met at convergence, not before; certified gaps.

use plca_em::{
    Algorithm, Plca, PlcaInit, PlcaState, Plsa, PlsaInit, Squarem, Stop, StopReason, run,
};
use plca_tensor::strategies::{Start, Table, problems};
use plca_tensor::{Factor, Model, Observed, Order};
use proptest::prelude::*;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

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
    let kinds: [Box<dyn Observed<f64>>; 3] = [
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
fn gradient(data: &dyn Observed<f64>, state: &PlcaState<f64>) -> Vec<f64> {
    let factors: Vec<_> = state.factors.iter().map(Factor::Columns).collect();
    let model = Model {
        weights: Some(state.weights.as_slice()),
        factors: &factors,
    };
    // v P(z) g_z = Σ_i F_1[i,z] multiplier[i,z]
    let m = data.multiplier(&model, 0);
    (0..state.weights.len())
        .map(|z| m.column(z).dot(&state.factors[0].column(z)) / state.weights[z] / data.total())
        .collect()
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
            for (x, m) in f.iter().zip(data.marginal(j)) {
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
}
