//! Properties of non-negative least squares of new observations.

use nalgebra::{DMatrix, DVector};
use plca_dist::random;
use plca_fit::{Explained, FitError, Reconstruct, Solver, Status, Transform};
use plca_tensor::{Coordinates, Data, DenseTensor, Order, SparseTensor};
use pntf_l2::{ColumnNmfState, MixtureState, NtfState, PntfState};
use proptest::prelude::*;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

/// Entries `>= 0`, a third of them 0; some columns the sum or the multiple of others.
fn components(rows: usize, k: usize, rng: &mut ChaCha8Rng) -> DMatrix<f64> {
    let mut a = DMatrix::from_fn(rows, k, |_, _| {
        random::exponential(rng) * f64::from(random::uniform(rng) > 0.33)
    });
    for z in 2..k {
        if random::uniform(rng) < 0.3 {
            let sum = a.column(z - 1) + a.column(z - 2) * random::uniform(rng);
            a.set_column(z, &sum);
        }
    }
    a
}

fn matrix(m: &DMatrix<f64>) -> DenseTensor<f64> {
    let shape = vec![m.nrows(), m.ncols()];
    DenseTensor::new(shape, m.as_slice().to_vec(), Order::ColumnMajor).unwrap()
}

/// Components of matrices: the factor of the observations is not looked at.
fn state(a: &DMatrix<f64>) -> NtfState<f64> {
    NtfState::new(vec![a.clone(), DMatrix::from_element(1, a.ncols(), 7.0)]).unwrap()
}

fn along(mode: usize) -> Transform {
    Transform::default().along(mode)
}

/// Columns as sums of components.
fn explain(a: &DMatrix<f64>, data: &dyn Data<f64>) -> Explained<NtfState<f64>> {
    state(a).transform(data, &along(1)).unwrap()
}

/// The coefficients, a row for each observation.
fn coefficients(found: &Explained<NtfState<f64>>) -> &DMatrix<f64> {
    found.fit.state().factor(1)
}

fn errors(found: &Explained<NtfState<f64>>) -> &[f64] {
    found.fit.state().squared_errors().unwrap()
}

/// `x >= 0`, the slopes `Aᵀ (A x - g)` are `>= 0` and 0 where `x > 0`, and the numbers beside are what they say.
fn check(
    a: &DMatrix<f64>,
    g: &DMatrix<f64>,
    found: &Explained<NtfState<f64>>,
    mode: usize,
) -> Result<(), TestCaseError> {
    let factor = found.fit.state().factor(mode);
    prop_assert_eq!(factor.shape(), (g.ncols(), a.ncols()));
    for (i, g) in g.column_iter().enumerate() {
        let x = factor.row(i).transpose();
        let error = a * &x - g;
        let slopes = a.transpose() * &error;
        let norm = g.norm_squared();
        for (z, (&x, &slope)) in x.iter().zip(slopes.iter()).enumerate() {
            let tol = 1e-12 * a.column(z).norm() * g.norm();
            prop_assert!(x >= 0.0 && slope >= -tol, "{x} {slope}");
            prop_assert!(x == 0.0 || slope <= tol, "{x} {slope}");
            prop_assert!(a.column(z).amax() > 0.0 || x == 0.0);
        }
        prop_assert!((errors(found)[i] - error.norm_squared()).abs() <= 1e-13 * norm);
        prop_assert!(
            (0.0..=1e-12 * norm).contains(&found.gap[i]),
            "gap {}",
            found.gap[i]
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// The optimality conditions hold whatever the rank and the sign of the data.
    // [PNTF 8]
    #[test]
    fn optimality_conditions_hold(rows in 1..12usize, k in 1..20usize, negative: bool, seed: u64) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let a = components(rows, k, &mut rng);
        let g = DMatrix::from_fn(rows, 4, |_, _| random::exponential(&mut rng) - f64::from(negative));
        check(&a, &g, &explain(&a, &matrix(&g)), 1)?;
    }

    /// What is a sum of components is explained exactly, and by those coefficients where the components are independent.
    #[test]
    fn sums_of_components_are_explained(extra in 0..5usize, k in 1..8usize, seed: u64) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let a = DMatrix::from_fn(k + extra, k, |i, z| random::uniform(&mut rng) + 3.0 * f64::from(i == z));
        let x = DMatrix::from_fn(k, 3, |_, _| random::exponential(&mut rng));
        let found = explain(&a, &matrix(&(&a * &x)));
        prop_assert!((coefficients(&found).transpose() - &x).amax() <= 1e-11 * x.amax());
        prop_assert!(errors(&found).iter().all(|&e| e <= 1e-13 * (&a * &x).norm_squared()));
    }

    /// `x` of `s g` is `s x`, and a component of twice the size has half the coefficient: powers of two change no bit.
    #[test]
    fn scales_of_data_and_components(k in 1..8usize, exponent in -400..400i32, seed: u64) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let a = components(9, k, &mut rng);
        let g = DMatrix::from_fn(9, 2, |_, _| random::exponential(&mut rng));
        let plain = explain(&a, &matrix(&g));
        let plain = coefficients(&plain);
        let s = 2f64.powi(exponent);
        let scaled = explain(&a, &matrix(&(&g * s)));
        prop_assert_eq!(coefficients(&scaled), &(plain * s));
        let mut other = a.clone();
        other.column_mut(0).scale_mut(s);
        let mut want = plain.clone();
        want.column_mut(0).scale_mut(s.recip());
        let scaled = explain(&other, &matrix(&g));
        prop_assert_eq!(coefficients(&scaled), &want);
    }

    /// Any mode of a tensor, dense or sparse, is the matrix of its slices under the Khatri-Rao product of the other factors.
    #[test]
    fn slices_of_a_tensor(mode in 0..3usize, k in 1..5usize, seed: u64) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let shape = [3, 4, 2];
        let factors: Vec<_> = shape.iter().map(|&n| DMatrix::from_fn(n, k, |_, _| random::exponential(&mut rng))).collect();
        let values: Vec<f64> = (0..24).map(|_| random::exponential(&mut rng)).collect();
        let others: Vec<usize> = (0..3).filter(|&m| m != mode).collect();
        let (rows, columns) = (shape[others[0]] * shape[others[1]], shape[mode]);
        let (mut a, mut g) = (DMatrix::zeros(rows, k), DMatrix::zeros(rows, columns));
        let mut indices = Vec::new();
        for (at, &value) in values.iter().enumerate() {
            let index = [at / 8, at / 2 % 4, at % 2];
            let row = index[others[0]] * shape[others[1]] + index[others[1]];
            g[(row, index[mode])] = value;
            for z in 0..k {
                a[(row, z)] = factors[others[0]][(index[others[0]], z)] * factors[others[1]][(index[others[1]], z)];
            }
            indices.extend(index.map(|i| i as u32));
        }
        let learned = NtfState::new(factors).unwrap();
        let dense = DenseTensor::new(shape.to_vec(), values.clone(), Order::RowMajor).unwrap();
        let sparse = SparseTensor::new(Coordinates { shape: shape.to_vec(), indices, values }).unwrap();
        for data in [&dense as &dyn Data<f64>, &sparse] {
            check(&a, &g, &learned.transform(data, &along(mode)).unwrap(), mode)?;
        }
    }
}

/// The gap is a bound: no coefficients among ten thousand do better by more. Clipping the solution without the constraint does worse.
// [PNTF 8]
#[test]
fn random_coefficients_are_no_better() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for k in [2, 5, 12] {
        let a = components(8, k, &mut rng);
        let g = DMatrix::from_fn(8, 1, |_, _| random::exponential(&mut rng));
        let found = explain(&a, &matrix(&g));
        let best = coefficients(&found).row(0).transpose();
        let least = errors(&found)[0] - found.gap[0] - 1e-14;
        for trial in 0..10_000 {
            let size = if trial % 2 == 0 { 1.0 } else { 1e-3 };
            let near = best.map(|x| {
                let moved = size * (2.0 * random::uniform(&mut rng) - 1.0);
                f64::max(x + moved, 0.0)
            });
            assert!((&a * near - &g).norm_squared() >= least);
        }
    }
    let (a, g) = (
        DMatrix::from_row_slice(2, 2, &[1.0, 1.0, 0.0, 1.0]),
        DMatrix::from_column_slice(2, 1, &[1.0, 3.0]),
    );
    let clipped = a.clone().lu().solve(&g).unwrap().map(|x: f64| x.max(0.0));
    let found = explain(&a, &matrix(&g));
    assert!((&a * clipped - &g).norm_squared() > errors(&found)[0] + 1.0);
}

#[test]
fn bad_input_is_named_and_extremes_are_explained() {
    let a = DMatrix::from_row_slice(2, 2, &[1.0, 0.0, 0.0, 1.0]);
    let learned = state(&a);
    let data =
        |values: &[f64; 2]| DenseTensor::new(vec![2, 1], values.to_vec(), Order::RowMajor).unwrap();
    let refuse = |learned: &NtfState<f64>, data: &dyn Data<f64>, mode| {
        learned.transform(data, &along(mode)).unwrap_err()
    };
    let good = data(&[1.0, 2.0]);
    assert_eq!(
        refuse(&learned, &good, 2),
        FitError::Mode { mode: 2, modes: 2 }
    );
    let cube = DenseTensor::new(vec![2, 1, 1], vec![1.0, 2.0], Order::RowMajor).unwrap();
    let tall = DenseTensor::new(vec![3, 1], vec![1.0; 3], Order::RowMajor).unwrap();
    for data in [&cube, &tall] {
        let error = refuse(&learned, data, 1);
        assert!(matches!(error, FitError::DataShape { .. }), "{error}");
    }
    let hidden = DenseTensor::masked(vec![2, 1], vec![1.0, f64::NAN], Order::RowMajor).unwrap();
    let error = refuse(&learned, &hidden, 1);
    assert!(matches!(error, FitError::Conflict { .. }), "{error}");
    let error = learned.transform(&good, &along(1).solver(Solver::Squarem));
    assert!(matches!(error, Err(FitError::Conflict { .. })));
    let error = NtfState::new(vec![-&a]).unwrap_err();
    assert!(
        matches!(error, FitError::Value { value: -1.0, .. }),
        "{error}"
    );
    let too_large =
        |error: FitError| assert!(matches!(error, FitError::NotFinite { .. }), "{error}");
    // Errors that are beyond the range of numbers would be told as 0.
    for size in [8e307, 1e160, 1e-160, 1e-300] {
        let error = refuse(&learned, &data(&[size, size]), 1);
        assert!(matches!(error, FitError::Beyond { .. }), "{error}");
        assert!(error.to_string().ends_with("scale the data"), "{error}");
    }
    too_large(refuse(&state(&(&a * 1e-200)), &data(&[1e150, 1.0]), 1));
    // Squares of these components overflow or vanish, their coefficients do not.
    for size in [1e-300, 1e-160, 1e160, 1e300] {
        let found = explain(&(&a * size), &good);
        let want = DVector::from_vec(vec![1.0 / size, 2.0 / size]);
        let got = coefficients(&found).row(0).transpose();
        assert!((got - &want).amax() <= 1e-15 * want.amax(), "{size}");
    }
    // Units of columns over many modes overflow, the coefficients of small data do not.
    let cube = |x: f64| DenseTensor::new(vec![1, 1, 1], vec![x], Order::RowMajor).unwrap();
    let tiny = DMatrix::from_element(1, 1, 1e-200);
    let factors = vec![tiny.clone(), tiny, DMatrix::from_element(1, 1, 1.0)];
    let learned_tiny = NtfState::new(factors).unwrap();
    let found = learned_tiny.transform(&cube(1e-150), &along(2)).unwrap();
    assert!((found.fit.state().factor(2)[(0, 0)] / 1e250 - 1.0).abs() <= 1e-15);
    too_large(refuse(&learned_tiny, &cube(1.0), 2));
    // Nothing, and components that are nothing.
    let found = explain(&a, &data(&[0.0, 0.0]));
    assert_eq!(coefficients(&found).amax(), 0.0);
    let found = explain(&(&a * 0.0), &good);
    assert_eq!(
        (coefficients(&found).amax(), errors(&found)[0], found.gap[0]),
        (0.0, 5.0, 0.0)
    );
}

fn topics(topics: DMatrix<f64>) -> PntfState<f64> {
    let k = topics.ncols();
    let documents = DMatrix::from_element(1, k, 1.0);
    let weights = DVector::from_element(k, 1.0 / k as f64);
    PntfState::new(weights, vec![topics, documents]).unwrap()
}

/// The error of an observation does not depend on how small it is beside the others, where squares of its values are 0 too. Where squares
/// overflow, as its sum is nothing beside its values, it is refused.
#[test]
fn small_observations_have_their_errors() {
    let learned = topics(DMatrix::from_column_slice(3, 1, &[0.5, 0.25, 0.25]));
    let beside_a_large_one = |g: [f64; 3]| {
        let values = vec![1.0, 3.0, 0.0, g[0], g[1], g[2]];
        let data = DenseTensor::new(vec![3, 2], values, Order::ColumnMajor).unwrap();
        let found = learned.transform(&data, &along(1));
        found.map(|found| found.fit.state().squared_errors().unwrap().to_vec())
    };
    for s in [1.0, 1e-100, 1e-160, 1e-170, 1e-250, 1e-305] {
        for error in beside_a_large_one([s, 3.0 * s, 0.0]).unwrap() {
            assert!((error - 0.375).abs() <= 1e-12, "{s}: {error}");
        }
    }
    let refused = beside_a_large_one([1.0, -1.0, 1e-300]).unwrap_err();
    assert!(matches!(refused, FitError::NotFinite { .. }), "{refused}");
}

/// What sums to nothing is not explained: its error is no number of the data's internal scale.
#[test]
fn observations_without_a_positive_sum_have_no_error() {
    let learned = topics(DMatrix::identity(2, 2));
    let data = DenseTensor::new(vec![2, 2], vec![1.0, 3.0, -2.0, 1.0], Order::RowMajor).unwrap();
    let found = learned.transform(&data, &along(1)).unwrap();
    assert_eq!(
        (&found.empty[..], found.fit.status()),
        (&[0][..], &Status::Settled)
    );
    let state = found.fit.state();
    assert_eq!(
        (state.squared_errors().unwrap()[0], found.gap[0]),
        (0.0, 0.0)
    );
    assert_eq!(state.mixture().column(0).as_slice(), [0.5, 0.5]);
    // A factorization of columns explains them alike.
    let columns = ColumnNmfState::new(DMatrix::identity(2, 2), DMatrix::from_element(2, 1, 0.5));
    let others = columns.unwrap().transform(&data, &along(1)).unwrap();
    assert_eq!(
        (others.fit.state().v(), &others.gap),
        (state.mixture(), &found.gap)
    );
    assert_eq!(
        (others.fit.state().totals(), &others.empty),
        (state.totals(), &found.empty)
    );
}

/// Mixtures are in the units of the data again when cells are asked for, whichever mode the observations lie along.
#[test]
fn mixtures_have_the_sums_of_the_data() {
    let factors = vec![
        DMatrix::from_row_slice(2, 2, &[0.75, 0.25, 0.25, 0.75]),
        DMatrix::identity(2, 2),
        DMatrix::from_element(1, 2, 1.0),
    ];
    let learned = PntfState::new(DVector::from_element(2, 0.5), factors).unwrap();
    // Each observation is 4 times the first component, and 8 times the second.
    let values = vec![3.0, 1.0, 2.0, 6.0];
    let data = DenseTensor::new(vec![2, 2, 1], values, Order::ColumnMajor).unwrap();
    let found = learned.transform(&data, &along(1)).unwrap();
    let state: &MixtureState<f64> = found.fit.state();
    assert_eq!((state.along(), state.totals()), (1, vec![4.0, 8.0]));
    for (index, want) in [
        ([0, 0, 0], 3.0),
        ([1, 0, 0], 1.0),
        ([0, 1, 0], 2.0),
        ([1, 1, 0], 6.0),
    ] {
        let got = state.cell(&index);
        assert!((got - want).abs() <= 1e-14, "{index:?}: {got} {want}");
    }
}
