//! The limit of many replicates, and NMF as its special case.

use nalgebra::DMatrix;
use plca_em::{Nmf, NmfState, Update};
use plca_fit::{Model, State};
use plca_tensor::{DenseTensor, Order};
use proptest::prelude::*;
use skellam_snmf::{Replicates, Snmf};

use super::problem::{Problem, apart, distance, problem};
use crate::support::{At, from_factors};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Non-negative data without a negative side: KL-NMF, both factors from one ratio. [SKELLAM 5]
    #[test]
    fn non_negative_data_are_nmf(problem in problem()) {
        let (f, n) = problem.values.shape();
        let problem = Problem { values: problem.values.map(|x| x.max(0.0)), seen: DMatrix::from_element(f, n, true), ..problem };
        prop_assume!(problem.values.amax() > 0.0);
        let mut state = problem.factors();
        let sums = state.plus.row_sum();
        for (mut column, &sum) in state.plus.column_iter_mut().zip(sums.iter()) {
            column /= sum;
        }
        state.minus.fill(0.0);
        let nmf_state = NmfState::new(state.plus.clone(), state.activations.clone()).unwrap();
        let mut at = nmf_state.parameters().clone();
        let data = problem.tensor();
        let config = Snmf::new(problem.k).replicates(Replicates::Limit);
        let mut em = At::start(&config, &data, from_factors(&state));
        let tensor = DenseTensor::new(vec![f, n], problem.values.as_slice().to_vec(), Order::ColumnMajor).unwrap();
        let nmf = Nmf::new(problem.k).update(Update::Simultaneous);
        let nmf = nmf.bind(&tensor).unwrap();
        for _ in 0..50 {
            em.step();
            nmf.step(&mut at, false).unwrap();
        }
        state = em.state().to_factors();
        prop_assert_eq!(state.minus.amax(), 0.0);
        let nmf_state = NmfState::wrap(at).unwrap();
        prop_assert!(distance(&state.activations, nmf_state.h()) <= 1e-12);
        // An empty component keeps its atom here, and vanishes there.
        let alive: Vec<usize> = (0..problem.k).filter(|&z| nmf_state.h().row(z).amax() > 0.0).collect();
        prop_assert!(distance(&state.plus.select_columns(&alive), &nmf_state.w().select_columns(&alive)) <= 1e-12);
        let (a, b) = (em.objective(), nmf.objective(nmf_state.parameters()).unwrap());
        prop_assert!((a + b).abs() <= 1e-11 * (1.0 + problem.values.sum()));
    }

    /// `M → ∞`: updates differ by `O(1/M)`, and `Lfit_M = Lfit - Σ ln(2π M w)/(2M) + O(1/M²)`. [SKELLAM 4]
    /// [SKELLAM eq. 22] [SKELLAM eq. 27] [SKELLAM eq. 30]
    #[test]
    fn many_replicates_tend_to_the_limit(problem in problem()) {
        let data = problem.tensor();
        let start = problem.factors();
        let config = |m| Snmf::new(problem.k).replicates(m);
        let limit = config(Replicates::Limit);
        let mut limit = At::start(&limit, &data, from_factors(&start));
        let fit = limit.fit();
        limit.step();
        let next = limit.state().to_factors();
        let (p, q) = (&start.plus * &start.activations, &start.minus * &start.activations);
        let mut before = [f64::INFINITY; 2];
        for m in [80u32, 8000, 800_000] {
            let finite = config(Replicates::Finite(m));
            let mut finite = At::start(&finite, &data, from_factors(&start));
            let m = f64::from(m);
            let mut spread = 0.0;
            for (at, &v) in problem.values.iter().enumerate().filter(|&(at, _)| problem.seen[at]) {
                let w = v.hypot(2.0 * (p[at] * q[at]).sqrt());
                spread += (std::f64::consts::TAU * m * w).ln() / (2.0 * m);
            }
            let value = (finite.fit() - (fit - spread)).abs();
            finite.step();
            let step = apart(&finite.state().to_factors(), &next);
            // A hundred times as many replicates: a ten-thousandth and a hundredth, down to rounding.
            let rounding = 1e-13 * (1.0 + problem.values.abs().sum());
            prop_assert!(value <= (1e-4 * 1.3 * before[0]).max(rounding), "value {value} after {}", before[0]);
            prop_assert!(step <= (1e-2 * 1.3 * before[1]).max(1e-13), "step {step} after {}", before[1]);
            before = [value, step];
        }
    }
}
