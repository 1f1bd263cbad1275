//! The unit of the data of models under squared error: a power of two changes no bit, and any number the same fit by rounding alone.

use nalgebra::DMatrix;
use plca_dist::random;
use plca_fit::{FitError, Init, Model, Solver, State, Transform, seed};
use plca_tensor::{DenseTensor, Order, Real, times_power_of_two};
use skellam_snmf::{Ding, DingState, KMeans};

fn data<T: Real>(columns: usize, unit: impl Fn(f64) -> f64) -> DenseTensor<T> {
    let mut rng = seed(5);
    let mut value = || T::lit(random::exponential(&mut rng) - 0.8).to_f64();
    let values = (0..9 * columns).map(|_| T::lit(unit(value()))).collect();
    DenseTensor::new(vec![9, columns], values, Order::RowMajor).unwrap()
}

fn run<T: Real, M: Model<T>>(
    model: &M,
    data: &DenseTensor<T>,
    solver: Solver,
) -> Result<(Vec<f64>, Vec<DMatrix<T>>), FitError> {
    let run = model.on(data)?.solver(solver);
    let run = run.stop(super::models::exactly(25).check_every(1));
    let fit = run.run(Init::default(), &mut seed(5))?;
    let trace = fit.trace().iter().map(|point| point.objective).collect();
    Ok((trace, fit.state().parameters().matrices().to_vec()))
}

fn have_no_unit<T: Real>(exponents: &[i32]) {
    let ding = Ding::new(3);
    let kmeans = KMeans::new(3);
    for &e in exponents {
        let data = |e| data::<T>(8, |x| times_power_of_two(x, e));
        let same =
            |model: &str, one: (Vec<f64>, Vec<DMatrix<T>>), other: (Vec<f64>, Vec<DMatrix<T>>)| {
                let squares = one.0.iter().map(|&x| times_power_of_two(x, 2 * e));
                assert_eq!(squares.collect::<Vec<_>>(), other.0, "{model} 2^{e}");
                // Basis or centres are in the unit of the data, activations and labels are not.
                let first = one.1[0].map(|x| T::lit(times_power_of_two(x.to_f64(), e)));
                assert_eq!(
                    [&first, &one.1[1]],
                    [&other.1[0], &other.1[1]],
                    "{model} 2^{e}"
                );
            };
        for solver in [
            Solver::Em,
            Solver::Momentum,
            Solver::Parabolic,
            Solver::Squarem,
        ] {
            let seen = |e| run(&ding, &data(e), solver).unwrap();
            same("ding", seen(0), seen(e));
        }
        let seen = |e| run(&kmeans, &data(e), Solver::Em).unwrap();
        same("kmeans", seen(0), seen(e));
    }
}

// [SKELLAM 12]
#[test]
fn powers_of_two_change_no_bit() {
    have_no_unit::<f64>(&[-500, -201, -1, 60, 499]);
    have_no_unit::<f32>(&[-90, -41, -1, 13, 90]);
}

/// Where squares of the data leave the range of numbers there is an error with the remedy, and no fit that is told to be perfect; every run
/// ends.
// [SKELLAM 12]
#[test]
fn squares_out_of_range_are_refused() {
    let ding = Ding::new(4);
    let kmeans = KMeans::new(4);
    for size in [1e160, 1e196, 1e300, 1e-160, 1e-200, 1e-300] {
        let data = data::<f64>(8, |x| x * size);
        for error in [
            run(&ding, &data, Solver::Em).unwrap_err(),
            run(&kmeans, &data, Solver::Em).unwrap_err(),
        ] {
            assert!(
                matches!(error, FitError::Beyond { .. }),
                "{size:e}: {error}"
            );
            assert!(error.to_string().ends_with("scale the data"), "{error}");
        }
    }
    // Those of single precision are numbers in double precision.
    let ding = Ding::new(4);
    let end = |size: f64| {
        *run(&ding, &data::<f32>(8, |x| x * size), Solver::Em)
            .unwrap()
            .0
            .last()
            .unwrap()
    };
    let one = end(1.0);
    assert!(one > 0.0);
    for size in [1e-30, 1e18, 1e20, 1e30] {
        assert!(
            (end(size) / size / size / one - 1.0).abs() < 1e-4,
            "{size:e}"
        );
    }
}

/// New data in another unit than those that were learnt from, and activations that carry the unit.
// [SKELLAM 12]
#[test]
fn transforms_have_no_unit() {
    let (_, blocks) = run(&Ding::new(3), &data(8, |x| x), Solver::Em).unwrap();
    let explain = |basis: i32, new: i32| {
        let basis = blocks[0].map(|x| times_power_of_two(x, basis));
        let learnt = DingState::new(basis, blocks[1].clone()).unwrap();
        let new = data(5, |x| times_power_of_two(1.5 * x, new));
        let found = learnt.transform(&new, &Transform::default()).unwrap();
        found.fit.state().activations().clone()
    };
    let one = explain(0, 0);
    for (basis, new) in [(0, 300), (-300, -300), (200, -200), (1, 0)] {
        let want = one.map(|x| times_power_of_two(x, new - basis));
        assert_eq!(explain(basis, new), want, "{basis} {new}");
    }
}

/// More components than columns: the basis is one of many, and no step is worse than the one before.
#[test]
fn no_step_is_worse_with_many_components() {
    let values = vec![-2.2076087f32, -5.0, 3.0, 2.6693704];
    let squares: f64 = values.iter().map(|&x| f64::from(x).powi(2)).sum();
    let v = DenseTensor::new(vec![1, 4], values, Order::RowMajor).unwrap();
    let ding = Ding::new(6);
    let mut rng = seed(5);
    for start in 0..3000 {
        let mut worst = f64::INFINITY;
        let mut at = Init::default();
        for step in 0..6 {
            let run = ding.on(&v).unwrap().stop(super::models::exactly(1));
            let fit = run.run(at, &mut rng).unwrap();
            assert!(
                fit.objective() <= worst,
                "{start} {step}: {}",
                fit.objective()
            );
            // But for the rounding of cells.
            worst = fit.objective() + 30.0 * f64::from(f32::EPSILON) * squares;
            at = fit.state().into();
        }
    }
}
