//! The unit of the data: a power of two changes no bit, and any number the same fit by rounding alone.

use nalgebra::DMatrix;
use plca_dist::random;
use plca_fit::{FitError, Init, Model, Solver, State, Transform};
use plca_priors::Penalty;
use plca_tensor::{DenseTensor, Order, Real, times_power_of_two};
use pntf_l2::{ColumnNmf, Ntf, NtfUpdate, Pntf};

use crate::support::{exactly, rng};

fn data<T: Real>(shape: &[usize], unit: impl Fn(f64) -> f64) -> DenseTensor<T> {
    let mut rng = rng(3);
    let cells = shape.iter().product();
    // Rounded before they are scaled.
    let mut value = || T::lit(random::exponential(&mut rng)).to_f64();
    let values = (0..cells).map(|_| T::lit(unit(value()))).collect();
    DenseTensor::new(shape.to_vec(), values, Order::RowMajor).unwrap()
}

type Seen<T> = (Vec<f64>, Vec<DMatrix<T>>);

fn run<T: Real, M: Model<T>>(model: &M, data: &DenseTensor<T>, solver: Solver) -> Seen<T> {
    let run = model.on(data).unwrap().solver(solver);
    let run = run.stop(exactly(25).check_every(1));
    let fit = run.run(Init::default(), &mut rng(5)).unwrap();
    let trace = fit.trace().iter().map(|point| point.objective).collect();
    (trace, fit.state().parameters().matrices().to_vec())
}

/// Objectives in their unit, `2^squares`, and the model in that of the data, `2^e`: of every block a power of two, together `2^e` or nothing.
fn same_in_units<T: Real>(one: &Seen<T>, other: &Seen<T>, squares: i32, e: i32, what: &str) {
    let trace: Vec<f64> = one
        .0
        .iter()
        .map(|&x| times_power_of_two(x, squares))
        .collect();
    assert_eq!(trace, other.0, "{what} 2^{e}");
    let mut all = 0;
    for (a, b) in one.1.iter().zip(&other.1) {
        let exponent = |m: &DMatrix<T>| plca_tensor::exponent(m.amax().to_f64());
        let by = exponent(b) - exponent(a);
        for (x, y) in a.iter().zip(b) {
            let moved = times_power_of_two(x.to_f64(), by);
            let (x, y) = (x.to_f64(), y.to_f64());
            // Numbers that are subnormal in one of the units have fewer digits there, or none.
            let back = times_power_of_two(y, -by);
            let fewer = x.max(back).min(moved.max(y)) < T::TINY.to_f64();
            assert!(moved == y || fewer, "{what} 2^{e}: {moved} {y}");
        }
        all += by;
    }
    assert!(all == e || all == 0, "{what} 2^{e}: 2^{all}");
}

fn models_have_no_unit<T: Real>(shapes: &[Vec<usize>], exponents: &[i32]) {
    for shape in shapes {
        for &e in exponents {
            let data = |e| data::<T>(shape, |x| times_power_of_two(x, e));
            for solver in [
                Solver::Em,
                Solver::Momentum,
                Solver::Parabolic,
                Solver::Squarem,
            ] {
                for update in [NtfUpdate::Multiplicative, NtfUpdate::Hals] {
                    let ntf = Ntf::new(3).update(update);
                    let seen = |e| run(&ntf, &data(e), solver);
                    let what = format!("{update:?} {solver} {shape:?}");
                    same_in_units(&seen(0), &seen(e), 2 * e, e, &what);
                }
                let pntf = Pntf::new(3);
                let seen = |e| run(&pntf, &data(e), solver);
                same_in_units(&seen(0), &seen(e), 0, e, "pntf");
                if shape.len() == 2 {
                    let columns = ColumnNmf::new(3);
                    let seen = |e| run(&columns, &data(e), solver);
                    same_in_units(&seen(0), &seen(e), 0, e, "columns");
                }
            }
        }
    }
}

// [PNTF 5]
#[test]
fn powers_of_two_change_no_bit() {
    let shapes = [vec![12, 10], vec![7], vec![4, 3, 5]];
    models_have_no_unit::<f64>(&shapes, &[-480, -201, -1, 60, 499]);
    // The square of what single precision holds is a number in double precision.
    models_have_no_unit::<f32>(&shapes[..1], &[-90, -41, -1, 13]);
}

// [PNTF 5]
#[test]
fn any_unit_gives_the_same_fit() {
    for update in [NtfUpdate::Multiplicative, NtfUpdate::Hals] {
        let ntf = Ntf::new(3).update(update);
        let end = |s: f64| {
            let (trace, _) = run(&ntf, &data::<f64>(&[12, 10], |x| x * s), Solver::Em);
            trace.last().unwrap() / s / s
        };
        for s in [1e-150, 3e-40, 7e33, 1e149] {
            assert!((end(s) / end(1.0) - 1.0).abs() < 1e-9, "{update:?} {s:e}");
        }
        let ntf = Ntf::new(3).update(update);
        let end = |s: f64| {
            let (trace, _) = run(&ntf, &data::<f32>(&[12, 10], |x| x * s), Solver::Em);
            trace.last().unwrap() / s / s
        };
        for s in [1e-30, 3e-12, 7e30] {
            assert!((end(s) / end(1.0) - 1.0).abs() < 1e-4, "{update:?} {s:e}");
        }
    }
}

/// In which of its factors a component has its scale, or all have, does not change what is explained.
// [PNTF 5]
#[test]
fn the_scale_of_a_component_may_be_in_any_factor() {
    fn of<T: Real>(exponents: &[i32]) {
        let data = data::<T>(&[12, 10], |x| x);
        for (update, components) in [
            (NtfUpdate::Multiplicative, 1),
            (NtfUpdate::Multiplicative, 3),
            (NtfUpdate::Hals, 1),
            (NtfUpdate::Hals, 3),
        ] {
            let ntf = Ntf::new(3).update(update);
            let trace = |e: i32| {
                let mut rng = rng(8);
                let mut factor = |n: usize, e: i32| {
                    let mut factor =
                        DMatrix::from_fn(n, 3, |_, _| T::lit(random::exponential(&mut rng)));
                    let mut first = factor.columns_mut(0, components);
                    first.apply(|x| *x = T::lit(times_power_of_two(x.to_f64(), e)));
                    factor
                };
                let init = Init::default().block("factor_0", factor(12, e));
                let init = init.block("factor_1", factor(10, -e));
                let run = ntf.on(&data).unwrap().stop(exactly(25).check_every(1));
                let fit = run.run(init, &mut crate::support::rng(0)).unwrap();
                let trace = fit.trace().iter().map(|point| point.objective);
                trace.collect::<Vec<f64>>()
            };
            for e in exponents.iter().flat_map(|&e| [e, -e]) {
                assert_eq!(trace(0), trace(e), "{update:?} {components} 2^{e}");
            }
        }
    }
    of::<f64>(&[30, 530, 700]);
    of::<f32>(&[30, 70]);
}

/// Where they cannot be brought together, since one is frozen, squares that are no numbers are refused.
#[test]
fn factors_whose_squares_are_no_numbers_are_refused() {
    let data = data::<f64>(&[4, 3], |x| x);
    let ntf = Ntf::new(1).freeze("factor_0");
    for (a, b) in [(1e200, 1e-200), (1e-200, 1e200)] {
        let init = Init::default().block("factor_0", DMatrix::from_element(4, 1, a));
        let init = init.block("factor_1", DMatrix::from_element(3, 1, b));
        let told = ntf.on(&data).unwrap().run(init, &mut rng(0));
        let told = told.map(|fit| fit.objective());
        assert!(matches!(told, Err(FitError::Beyond { .. })), "{told:?}");
    }
}

/// A penalty has a unit: in squares of the data for squares of entries.
// [PNTF 5]
#[test]
fn penalties_scale_with_the_data() {
    let end = |e: i32| {
        let by = |x: f64, e: i32| times_power_of_two(x, e);
        let mut ntf = Ntf::new(3).update(NtfUpdate::Hals);
        // Two factors of one half of an even power each.
        for mode in ["factor_0", "factor_1"] {
            ntf = ntf.prior(mode, Penalty::new(by(0.3, 3 * e / 2), by(0.2, e)).unwrap());
        }
        run(&ntf, &data::<f64>(&[12, 10], |x| by(x, e)), Solver::Em)
    };
    for e in [-300, -2, 64] {
        same_in_units(&end(0), &end(e), 2 * e, e, "penalties");
    }
}

/// Coefficients of new data are in their unit.
// [PNTF 8]
#[test]
fn transforms_have_no_unit() {
    let ntf = Ntf::new(3);
    let learnt = ntf.fit(&data(&[12, 10], |x| x), &mut rng(1)).unwrap();
    let explain = |e: i32| {
        let new = data(&[12, 4], |x| times_power_of_two(1.5 * x, e));
        let found = learnt
            .state()
            .transform(&new, &Transform::default())
            .unwrap();
        let state = found.fit.state();
        (
            state.factor(1).clone(),
            state.squared_errors().unwrap().to_vec(),
        )
    };
    let (x, errors) = explain(0);
    for e in [-490, -77, 1, 300] {
        let (got, found) = explain(e);
        assert_eq!(got, x.map(|x| times_power_of_two(x, e)), "2^{e}");
        let scaled = errors.iter().map(|&x| times_power_of_two(x, 2 * e));
        assert_eq!(found, scaled.collect::<Vec<_>>(), "2^{e}");
    }
}
