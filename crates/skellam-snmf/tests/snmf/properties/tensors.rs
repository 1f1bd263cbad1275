//! Tensors with a signed first mode.

use nalgebra::{DMatrix, DVector};
use plca_fit::laws::check;
use plca_fit::{Algorithm, Squarem};
use proptest::prelude::*;
use skellam_snmf::{CpState, Replicates, Signed, SignedCp, Snmf};

use super::objective::claims;
use super::problem::{distance, problem, replicates};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// With one other mode it is the matrix model, step by step.
    #[test]
    fn one_other_mode_is_the_matrix_model(problem in problem(), m in replicates()) {
        let data = problem.data();
        let mut matrix = problem.factors();
        let weights: DVector<f64> = matrix.activations.column_sum();
        let mut factor = matrix.activations.transpose();
        for (mut column, &w) in factor.column_iter_mut().zip(weights.iter()) {
            column /= w;
        }
        let shape = [problem.values.ncols()];
        let cp = SignedCp::new(problem.k, m).unwrap();
        let cp = cp.on(&data, &shape).unwrap();
        let start = CpState { plus: matrix.plus.clone(), minus: matrix.minus.clone(), weights, factors: vec![factor] };
        let mut state = cp.start(start).unwrap();
        let config = Snmf::builder(problem.k).replicates(m).build().unwrap();
        let em = config.on(&data).unwrap();
        for _ in 0..10 {
            let value = cp.step(&mut state, true).unwrap().unwrap();
            prop_assert!((value - em.log_fit(&matrix)).abs() <= 1e-11 * (1.0 + value.abs() + problem.values.abs().sum()));
            em.step(&mut matrix, false).unwrap();
        }
        prop_assert!(distance(&state.activations(), &matrix.activations) <= 1e-10);
        prop_assert!(distance(&state.plus, &matrix.plus) <= 1e-10 && distance(&state.minus, &matrix.minus) <= 1e-10);
    }

    /// Orders 3 and 4: the objective never falls, and every factor is a distribution.
    #[test]
    fn never_loses(problem in problem(), m in replicates(), order in 2..4usize) {
        let shape = [3, 2, 4];
        let shape = &shape[..order];
        let n: usize = shape.iter().product();
        let (f, columns) = problem.values.shape();
        let values = DMatrix::from_fn(f, n, |i, j| problem.values[(i, j % columns)] + (j / columns) as f64);
        let data = Signed::from_matrix(values.clone()).unwrap();
        let cp = SignedCp::new(problem.k, m).unwrap();
        let mut state = cp.on(&data, shape).unwrap().random(&mut problem.rng()).unwrap();
        let claims = claims(1e-13, values.abs().sum(), 15);
        let em = cp.on(&data, shape).unwrap();
        check(&em, &state, &claims)?;
        for _ in 0..15 {
            em.step(&mut state, false).unwrap();
        }
        let fast = Squarem(em);
        check(&fast, &state, &claims)?;
        for _ in 0..15 {
            fast.step(&mut state, false).unwrap();
        }
        for factor in &state.factors {
            prop_assert!(plca_tensor::simplex_error(factor) <= 1e-13);
        }
    }
}

#[test]
fn refusals() {
    let data = Signed::from_matrix(DMatrix::from_element(2, 6, 1.0)).unwrap();
    assert!(SignedCp::new(0, Replicates::One).is_err());
    let cp = SignedCp::new(1, Replicates::One).unwrap();
    assert!(cp.on(&data, &[3, 3]).is_err() && cp.on(&data, &[]).is_err());
    assert!(cp.on(&data, &[usize::MAX, 2]).is_err());
    let em = cp.on(&data, &[3, 2]).unwrap();
    let side = || DMatrix::from_element(2, 1, 0.25);
    let good = CpState {
        plus: side(),
        minus: side(),
        weights: DVector::from_element(1, 6.0),
        factors: vec![
            DMatrix::from_element(3, 1, 1.0),
            DMatrix::from_element(2, 1, 1.0),
        ],
    };
    assert!(em.start(good.clone()).is_ok());
    let bad = |change: &dyn Fn(&mut CpState<f64>)| {
        let mut state = good.clone();
        change(&mut state);
        em.start(state).is_err()
    };
    assert!(bad(&|s| s.plus = DMatrix::zeros(1, 1)));
    assert!(bad(&|s| s.weights[0] = f64::NAN));
    assert!(bad(&|s| s.factors.truncate(1)));
    assert!(bad(&|s| s.factors[1].fill(0.0)));
    assert!(bad(&|s| s.plus.fill(0.0)));
}
