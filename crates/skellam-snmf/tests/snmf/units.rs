//! The unit of real data is that of the results, and nothing else depends on it.

use nalgebra::DMatrix;
use plca_fit::{Fit, FitError, Init, Model, Solver, State, Stop, Transform};
use plca_tensor::{DenseTensor, Order, Real};
use proptest::prelude::*;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use skellam_snmf::{
    Prior, Reach, Replicates, ShiftedSnmf, SignedCp, SignedCpState, Snmf, SnmfState,
};

const SOLVERS: [Solver; 5] = [
    Solver::Auto,
    Solver::Em,
    Solver::Squarem,
    Solver::Parabolic,
    Solver::Momentum,
];

/// Two components and noise, some cells hidden; the numbers are those of the scalar.
fn values<T: Real>(rows: usize, columns: usize, seed: u64) -> Vec<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut uniform = || plca_dist::random::uniform(&mut rng);
    let atoms = DMatrix::from_fn(rows, 2, |_, _| uniform() - 0.5);
    let activations = DMatrix::from_fn(2, columns, |_, _| uniform());
    let product = atoms * activations;
    let cell = |at: usize| {
        let noise = 0.05 * (uniform() - 0.5);
        let hidden = uniform() < 0.1;
        let value = T::lit(product[(at / columns, at % columns)] + noise);
        if hidden { f64::NAN } else { value.to_f64() }
    };
    (0..rows * columns).map(cell).collect()
}

fn tensor<T: Real>(shape: &[usize], values: &[f64], unit: f64) -> DenseTensor<T> {
    let values = values.iter().map(|v| T::lit(v * unit)).collect();
    DenseTensor::masked(shape.to_vec(), values, Order::RowMajor).unwrap()
}

fn fitted<T: Real, M: Model<T>>(
    model: &M,
    data: &DenseTensor<T>,
    run: (Solver, Stop),
) -> Fit<M::State> {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let on = model.on(data).unwrap().solver(run.0).stop(run.1);
    on.run(Init::default(), &mut rng).unwrap()
}

/// The blocks in the unit of the data: what carries it is named.
fn same<S: State>(one: &Fit<S>, other: &Fit<S>, scaled: &[&str], unit: f64) {
    assert_eq!(one.status(), other.status());
    assert_eq!(one.iterations(), other.iterations());
    assert_eq!(one.compared() * unit, other.compared());
    let blocks = other.state().parameters().blocks();
    for ((name, a), (_, b)) in one.state().parameters().blocks().zip(blocks) {
        let by = if scaled.contains(&name) { unit } else { 1.0 };
        for (x, y) in a.iter().zip(b) {
            let [x, y] = [x, y].map(|x| x.to_f64());
            // Of shares that small the counts leave the range of numbers.
            let lost = by == 1.0 && x.max(y) * unit < S::Scalar::TINY.to_f64();
            assert!(
                x * by == y || lost,
                "{name} in the unit {unit:e}: {x:e} became {y:e}"
            );
        }
    }
}

/// Powers of two round nothing: every model, every solver, with the default stop rule and constants of priors in the objective.
fn powers<T: Real>(m: Replicates, units: &[i32]) {
    let (shape, tensor_shape) = ([6, 20], [5, 4, 6]);
    let (matrix, cells) = (values::<T>(6, 20, 1), values::<T>(5, 24, 2));
    let snmf = Snmf::new(2).priors(Prior::flat());
    let snmf = snmf.replicates(m);
    let cp = SignedCp::new(2).replicates(m).with_constants(true);
    let shifted = ShiftedSnmf::new(2, vec![3, 4]).replicates(m);
    let shifted = shifted.reach(vec![Reach::Full]);
    let stop = Stop::default().max_iter(60);
    for solver in SOLVERS {
        let run = || (solver, stop.clone());
        let of_matrix = fitted(&snmf, &tensor::<T>(&shape, &matrix, 1.0), run());
        let of_tensor = fitted(&cp, &tensor::<T>(&tensor_shape, &cells, 1.0), run());
        let of_shifts = fitted(&shifted, &tensor::<T>(&shape, &matrix, 1.0), run());
        for &power in units {
            let unit = 2f64.powi(power);
            let other = fitted(&snmf, &tensor::<T>(&shape, &matrix, unit), run());
            same(&of_matrix, &other, &["activations"], unit);
            let other = fitted(&cp, &tensor::<T>(&tensor_shape, &cells, unit), run());
            same(&of_tensor, &other, &["weights"], unit);
            let other = fitted(&shifted, &tensor::<T>(&shape, &matrix, unit), run());
            same(&of_shifts, &other, &["activations"], unit);
        }
    }
}

#[test]
fn powers_of_two() {
    for m in [Replicates::Limit, Replicates::Auto] {
        powers::<f64>(m, &[-300, -60, -23, 40, 300]);
        powers::<f32>(m, &[-40, -20, 30, 60]);
    }
}

/// New data in another unit have the same activations in that unit.
#[test]
fn transforms() {
    for m in [Replicates::Limit, Replicates::Auto] {
        transformed(m);
    }
}

fn transformed(m: Replicates) {
    let matrix = values::<f64>(6, 20, 3);
    let cells = values::<f64>(5, 24, 4);
    let snmf = Snmf::new(2).replicates(m);
    let cp = SignedCp::new(2).replicates(m);
    let run = || (Solver::Em, Stop::default().max_iter(40));
    let learnt = fitted(&snmf, &tensor(&[6, 20], &matrix, 1.0), run());
    let learnt_cp = fitted(&cp, &tensor(&[5, 4, 6], &cells, 1.0), run());
    let how = Transform::default();
    let explain = |unit: f64| {
        let new = tensor::<f64>(&[6, 20], &matrix, unit);
        let state: &SnmfState<f64> = learnt.state();
        snmf.transform(state, &new, &how).unwrap().fit
    };
    let explain_cp = |unit: f64| {
        let new = tensor::<f64>(&[5, 4, 6], &cells, unit);
        let state: &SignedCpState<f64> = learnt_cp.state();
        cp.transform(state, &new, &how).unwrap().fit
    };
    let (one, one_cp) = (explain(1.0), explain_cp(1.0));
    for power in [-300, -50, 50, 300] {
        let unit = 2f64.powi(power);
        same(&one, &explain(unit), &["activations"], unit);
        same(&one_cp, &explain_cp(unit), &["weights"], unit);
    }
}

/// The objective per unit after equally many iterations.
fn per_unit<T: Real>(exponent: f64, seed: u64, tol: f64) {
    let unit = 10f64.powf(exponent);
    let matrix = values::<T>(5, 9, seed);
    let run = || (Solver::Em, Stop::default().max_iter(30).tol(None));
    let close = |one: f64, other: f64| {
        let other = other / unit;
        assert!(
            (one - other).abs() <= tol * one.abs(),
            "{one} {other} {unit:e}"
        );
    };
    let snmf = Snmf::new(2).replicates(Replicates::Limit);
    let objective = |unit| fitted(&snmf, &tensor::<T>(&[5, 9], &matrix, unit), run()).compared();
    close(objective(1.0), objective(unit));
    let cp = SignedCp::new(2).replicates(Replicates::Limit);
    let objective = |unit| fitted(&cp, &tensor::<T>(&[5, 3, 3], &matrix, unit), run()).compared();
    close(objective(1.0), objective(unit));
    let shifted = ShiftedSnmf::new(2, vec![2, 3]).replicates(Replicates::Limit);
    let objective = |unit| fitted(&shifted, &tensor::<T>(&[5, 9], &matrix, unit), run()).compared();
    close(objective(1.0), objective(unit));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn any_unit(exponent in -250.0..250.0f64, seed: u64) {
        per_unit::<f64>(exponent, seed, 1e-9);
    }

    #[test]
    fn any_unit_in_single_precision(exponent in -30.0..30.0f64, seed: u64) {
        per_unit::<f32>(exponent, seed, 1e-4);
    }
}

/// Sizes whose sum is no number are refused, with the largest of them.
#[test]
fn sums_beyond_the_numbers() {
    let data = tensor::<f32>(&[1, 3], &[3e38, 0.5, -3.2e38], 1.0);
    let model = Snmf::new(1);
    let error = model
        .fit(&data, &mut ChaCha8Rng::seed_from_u64(0))
        .unwrap_err();
    assert!(
        matches!(&error, FitError::Entry { index, .. } if *index == [0, 2]),
        "{error}"
    );
}
