//! Starts that are drawn.

use nalgebra::DMatrix;
use plca_dist::random;
use plca_em::{Nmf, Update};
use plca_fit::{Init, Model, Solver, Stop};
use plca_tensor::{DenseTensor, Order, Real, times_power_of_two};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

/// Entries of a factor of an NMF are uniform between half and one and a half times a level. The product of both levels is `mean / K`, so that `W H` has the mean
/// of the data; they are equal where they can be with the digits of `mean / K`, else that of `W` is twice that of `H`: of data in another unit, a power of
/// two, the start has the same digits.
#[test]
fn starts_of_nmf_have_the_mean_of_the_data() {
    let v = DMatrix::from_fn(40, 30, |i, j| ((i + 3 * j) % 7) as f64);
    let nmf = Nmf::new(5);
    let start = |v: &DMatrix<f64>| {
        let values = v.as_slice().to_vec();
        let data = DenseTensor::new(vec![40, 30], values, Order::ColumnMajor).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        nmf.init(&data, Init::default(), &mut rng).unwrap()
    };
    let one = start(&v);
    // `mean / K` is a number from 1 to 2 times 2^-1, 2^0, 2^1, 2^2: an even power has a root.
    for (unit, ratio, by) in [
        (1.0, 2.0, [1.0, 1.0]),
        (2.0, 1.0, [1.0, 2.0]),
        (4.0, 2.0, [2.0, 2.0]),
        (8.0, 1.0, [2.0, 4.0]),
    ] {
        let v = &v * unit;
        let start = start(&v);
        assert_eq!(
            [start.w(), start.h()],
            [&(one.w() * by[0]), &(one.h() * by[1])]
        );
        let level = (v.mean() / 5.0 * ratio).sqrt();
        for (block, level) in [(start.w(), level), (start.h(), level / ratio)] {
            let over = block / level;
            assert!(over.iter().all(|x| (0.5..1.5).contains(x)), "{over}");
            // Of 150 and more uniform draws on an interval of length 1.
            assert!((over.mean() - 1.0).abs() < 5.0 / (12.0 * over.len() as f64).sqrt());
            assert!(over.min() < 0.6 && over.max() > 1.4, "{over}");
        }
        let mean = (start.w() * start.h()).mean();
        assert!((mean / v.mean() - 1.0).abs() < 0.2, "{mean}");
    }
}

/// In which of its factors a component has its scale does not change what is explained: for NMF it is another start of the same model.
#[test]
fn the_scale_of_a_component_may_be_in_either_factor_of_nmf() {
    fn of<T: Real>(exponents: &[i32], rounding: f64) {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let mut value = |_, _| T::lit(random::exponential(&mut rng));
        let (v, w) = (
            DMatrix::from_fn(12, 10, &mut value),
            DMatrix::from_fn(12, 3, &mut value),
        );
        let h = DMatrix::from_fn(3, 10, &mut value);
        let data = DenseTensor::new(vec![12, 10], v.as_slice().to_vec(), Order::ColumnMajor);
        let data = data.unwrap();
        let mut values = v.as_slice().to_vec();
        values[5] = T::lit(f64::NAN);
        let some = DenseTensor::masked(vec![12, 10], values, Order::ColumnMajor).unwrap();
        for (data, update) in [
            (&data, Update::Simultaneous),
            (&data, Update::Sequential),
            (&some, Update::Simultaneous),
        ] {
            let nmf = Nmf::new(3).update(update);
            let trace = |e: i32, solver: Solver| {
                let by = |x: T, e: i32| T::lit(times_power_of_two(x.to_f64(), e));
                let (mut w, mut h) = (w.clone(), h.clone());
                w.column_mut(0).apply(|x| *x = by(*x, e));
                h.row_mut(0).apply(|x| *x = by(*x, -e));
                let init = Init::default().block("w", w).block("h", h);
                let run = nmf.on(data).unwrap().solver(solver);
                let run = run.stop(Stop::default().max_iter(25).tol(0.0).check_every(1));
                let fit = run.run(init, &mut ChaCha8Rng::seed_from_u64(0)).unwrap();
                let trace = fit.trace().iter().map(|point| point.objective);
                trace.collect::<Vec<f64>>()
            };
            for solver in [Solver::Em, Solver::Momentum] {
                let one = trace(0, solver);
                for e in exponents.iter().flat_map(|&e| [e, -e]) {
                    for (x, y) in one.iter().zip(trace(e, solver)) {
                        assert!(
                            (x / y - 1.0).abs() < rounding,
                            "{update:?} {solver} 2^{e}: {x} {y}"
                        );
                    }
                }
            }
        }
    }
    of::<f64>(&[30, 510], 1e-11);
    of::<f32>(&[15, 60], 1e-4);
}

/// Of two components that share no cell one is far smaller: it may be so in either factor, or in both.
#[test]
fn a_small_component_may_be_small_in_either_factor_of_nmf() {
    fn of<T: Real>(small: i32, rounding: f64) {
        let by = |x: T, e: i32| T::lit(times_power_of_two(x.to_f64(), e));
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        let mut factor = |rows: usize, columns: usize| {
            DMatrix::from_fn(rows, columns, |_, _| {
                T::lit(1.0 + random::exponential(&mut rng))
            })
        };
        let (mut w, mut h) = (factor(8, 2), factor(2, 10));
        let noise = factor(8, 10);
        for i in 0..8 {
            w[(i, usize::from(i < 4))] = T::zero();
        }
        let mut v = (&w * &h).component_mul(&noise);
        v.rows_mut(4, 4).apply(|x| *x = by(*x, small));
        let data = DenseTensor::new(vec![8, 10], v.as_slice().to_vec(), Order::ColumnMajor);
        let data = data.unwrap();
        let nmf = Nmf::new(2);
        let h0 = h.clone();
        let mut end = |first: i32, second: i32| {
            let mut w = w.clone();
            w.column_mut(1).apply(|x| *x = by(*x, first));
            h = h0.clone();
            h.row_mut(1).apply(|x| *x = by(*x, second));
            let init = Init::default().block("w", w).block("h", h.clone());
            let run = nmf.on(&data).unwrap();
            let run = run.stop(Stop::default().max_iter(25).tol(0.0));
            let fit = run.run(init, &mut ChaCha8Rng::seed_from_u64(0)).unwrap();
            (&fit.state().w().clone() * fit.state().h()).map(|x| x.to_f64())
        };
        let one = end(small, 0);
        for (first, second) in [(0, small), (small / 2, small / 2)] {
            for (x, y) in one.iter().zip(end(first, second).iter()) {
                let apart = (x - y).abs();
                assert!(
                    apart <= rounding * x,
                    "2^{first} in W, 2^{second} in H: {x:e} {y:e}"
                );
            }
        }
    }
    of::<f64>(-540, 1e-12);
    of::<f32>(-70, 1e-5);
}
