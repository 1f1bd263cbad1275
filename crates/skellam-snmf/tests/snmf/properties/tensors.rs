//! Tensors with a signed mode.

use nalgebra::{DMatrix, DVector};
use plca_fit::{Init, Model, Reconstruct, Solver, Stop};
use plca_tensor::{DenseTensor, Order};
use proptest::prelude::*;
use skellam_snmf::{SignedCp, SignedCpState, Snmf};

use super::objective::{Claims, obeys};
use super::problem::{distance, problem, replicates};
use crate::support::{At, from_factors, stacked};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// With one other mode it is the matrix model, step by step.
    #[test]
    fn one_other_mode_is_the_matrix_model(problem in problem(), m in replicates()) {
        let data = problem.tensor();
        let matrix = problem.factors();
        let weights: DVector<f64> = matrix.activations.column_sum();
        let mut factor = matrix.activations.transpose();
        for (mut column, &w) in factor.column_iter_mut().zip(weights.iter()) {
            column /= w;
        }
        let cp = SignedCp::new(problem.k).replicates(m);
        let start = SignedCpState::new(&matrix.plus, &matrix.minus, &weights, vec![factor], 0).unwrap();
        let mut tensor = At::start(&cp, &data, &start);
        let config = Snmf::new(problem.k).replicates(m);
        let mut em = At::start(&config, &data, from_factors(&matrix));
        for _ in 0..10 {
            let value = tensor.measured();
            prop_assert!((value - em.fit()).abs() <= 1e-11 * (1.0 + value.abs() + problem.values.abs().sum()));
            em.step();
        }
        let (tensor, matrix) = (tensor.state(), em.state());
        let weights = DMatrix::from_diagonal(&DVector::from_column_slice(tensor.weights()));
        let activations = weights * tensor.factor(1).transpose();
        prop_assert!(distance(&activations, matrix.activations()) <= 1e-10);
        prop_assert!(distance(tensor.atoms(), matrix.atoms()) <= 1e-10);
    }

    /// Orders 3 and 4: the objective never falls, and every factor is a distribution.
    #[test]
    fn never_loses(problem in problem(), m in replicates(), order in 3..5usize, mode in 0..3usize) {
        let (f, columns) = problem.values.shape();
        let mut shape = [3, 2, 4][..order - 1].to_vec();
        shape.insert(mode, f);
        let cells: usize = shape.iter().product();
        let value = |at: usize| {
            let (i, j) = (at % f, at / f);
            problem.values[(i, j % columns)] + (j / columns) as f64
        };
        let values: Vec<f64> = (0..cells).map(value).collect();
        let size = values.iter().map(|v| v.abs()).sum();
        let data = DenseTensor::new(shape, values, Order::RowMajor).unwrap();
        let cp = SignedCp::new(problem.k).replicates(m).signed_mode(mode);
        let start = cp.init(&data, Init::default(), &mut problem.rng()).unwrap();
        let claims = Claims { rounding: 1e-13, size, iterations: 15 };
        obeys(&cp, &data, &start, [claims; 2])?;
        let run = cp.on(&data).unwrap().solver(Solver::Squarem).stop(Stop::default().max_iter(15).tol(None));
        let fit = run.run(&start, &mut problem.rng()).unwrap();
        let state = fit.state();
        prop_assert_eq!(state.components(), problem.k);
        for factor in state.factors() {
            prop_assert!(plca_tensor::simplex_error(factor) <= 1e-13);
        }
        prop_assert!(plca_tensor::simplex_error(state.atoms()) <= 1e-13);
    }
}

#[test]
fn refusals() {
    let data = DenseTensor::new(vec![2, 3, 2], vec![1.0; 12], Order::RowMajor).unwrap();
    let cp = SignedCp::new(1).replicates(skellam_snmf::Replicates::Limit);
    let side = || DMatrix::from_element(2, 1, 0.25);
    let good = || {
        Init::default()
            .block("atoms", stacked(&side(), &side()))
            .block("weights", DMatrix::from_element(1, 1, 6.0))
            .block("factor_1", DMatrix::from_element(3, 1, 1.0))
            .block("factor_2", DMatrix::from_element(2, 1, 1.0))
    };
    let refused = |init: Init<f64>| {
        let mut rng =
            <rand_chacha::ChaCha8Rng as rand_chacha::rand_core::SeedableRng>::seed_from_u64(0);
        cp.init(&data, init, &mut rng).is_err()
    };
    assert!(!refused(good()));
    let atoms = |x: f64, rows| good().block("atoms", DMatrix::from_element(rows, 1, x));
    assert!(refused(atoms(0.25, 2)) && refused(atoms(0.0, 4)));
    let bad = |name: &str, x: f64, rows| good().block(name, DMatrix::from_element(rows, 1, x));
    assert!(refused(bad("weights", f64::NAN, 1)));
    assert!(refused(bad("factor_2", 0.0, 2)));
    assert!(refused(bad("factor_3", 1.0, 2)));
}
