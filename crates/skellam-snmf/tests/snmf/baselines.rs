//! Ding's semi-NMF and k-means.

use nalgebra::DMatrix;
use plca_dist::random;
use plca_fit::{Fit, FitError, Init, Model, Progress, Status, Stop};
use plca_tensor::{DenseTensor, Order, Real, times_power_of_two};
use proptest::prelude::*;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use skellam_snmf::{Ding, DingState, KMeans, KMeansState, Seeding};

use crate::support::{At, tensor};

fn matrix() -> impl Strategy<Value = DMatrix<f64>> {
    (1..6usize, 1..20usize).prop_flat_map(|(f, n)| {
        let values = prop::collection::vec(-9.0..12.0f64, f * n);
        values.prop_map(move |v| DMatrix::from_vec(f, n, v))
    })
}

/// `(V - W H) Hᵀ = 0` within the rounding of its terms, of which the factorization of `H` makes some for each of its entries.
fn w_is_optimal(v: &DMatrix<f64>, state: &DingState<f64>) -> Result<(), TestCaseError> {
    let (w, h) = (state.basis(), state.activations());
    let slope = (v - w * h) * h.transpose();
    let size = (v.norm() + w.norm() * h.norm()) * h.norm();
    let rounding = f64::EPSILON * 8.0 * (4 + h.len()) as f64;
    prop_assert!(slope.norm() <= rounding * size, "{slope} of {size}");
    Ok(())
}

fn ding(k: usize) -> Ding {
    Ding::new(k)
}

fn from(h: DMatrix<f64>) -> Init<f64> {
    Init::default().block("activations", h)
}

/// Three components of two samples always depend on each other; here two of three do so nearly.
#[test]
fn w_is_optimal_for_components_that_depend_on_each_other() {
    let v = DMatrix::from_row_slice(1, 2, &[4.131756739057387, 0.0]);
    let mut rng = ChaCha8Rng::seed_from_u64(14940614014930777158);
    let h = DMatrix::from_fn(3, 2, |_, _| random::uniform(&mut rng));
    let (three, data) = (ding(3), tensor(&v));
    let mut at = At::start(&three, &data, from(h));
    w_is_optimal(&v, &at.state()).unwrap();
    at.step();
    w_is_optimal(&v, &at.state()).unwrap();
    for small in [1e-3, 1e-7, 1e-11, 1e-17, 0.0] {
        let h = DMatrix::from_row_slice(2, 3, &[1.0, 2.0, 3.0, 1.0, 2.0, 3.0 + small]);
        let v = DMatrix::from_row_slice(1, 3, &[1.0, -1.0, 2.0]);
        w_is_optimal(&v, &At::start(&ding(2), &tensor(&v), from(h)).state()).unwrap();
    }
    // Of the many bases that are optimal the pseudo-inverse is the smallest: equal rows share alike, and rows of zeros get nothing.
    let h = DMatrix::from_row_slice(3, 3, &[1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0]);
    let v = DMatrix::from_row_slice(1, 3, &[1.0, -1.0, 2.0]);
    let state = At::start(&ding(3), &tensor(&v), from(h)).state();
    let want = DMatrix::from_row_slice(1, 3, &[5.0 / 28.0, 0.0, 5.0 / 28.0]);
    assert!((state.basis() - want).amax() < 1e-15, "{}", state.basis());
    let state = At::start(&ding(2), &tensor(&v), from(DMatrix::zeros(2, 3))).state();
    assert_eq!(*state.basis(), DMatrix::zeros(1, 2));
}

/// Entries of `H` that vanish come back: `up / down` is above all numbers, its root is not.
#[test]
fn vanished_entries_of_h_come_back() {
    let data = tensor(&DMatrix::from_row_slice(1, 2, &[1.0, 2.0]));
    let h = DMatrix::from_row_slice(1, 2, &[1e-317, 1.0]);
    let one = ding(1);
    let mut at = At::start(&one, &data, from(h));
    for _ in 0..200 {
        at.step();
    }
    assert!(at.objective() < 1e-9, "{:?}", at.state());
}

fn clusters(
    v: &DMatrix<f64>,
    k: usize,
    seeding: Seeding,
    max_iter: usize,
    rng: &mut ChaCha8Rng,
) -> Result<Fit<KMeansState<f64>>, FitError> {
    let model = KMeans::new(k).seeding(seeding);
    let stop = Stop::default().max_iter(max_iter).tol(None);
    model.on(&tensor(v))?.stop(stop).run(Init::default(), rng)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The squared error never grows. [SKELLAM 12]
    #[test]
    fn ding_never_loses(v in matrix(), k in 1..4usize, seed in any::<u64>()) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let h = DMatrix::from_fn(k, v.ncols(), |_, _| random::uniform(&mut rng));
        let (ding, data) = (ding(k), tensor(&v));
        let mut at = At::start(&ding, &data, from(h));
        let mut before = f64::INFINITY;
        for _ in 0..30 {
            let (objective, measured) = (at.objective(), at.measured());
            prop_assert_eq!(objective, measured);
            prop_assert!(objective <= before + 1e-9 * v.norm_squared(), "{} {}", before, objective);
            before = objective;
        }
        prop_assert!(at.state().activations().iter().all(|&x| x >= 0.0));
    }

    /// `H` entry by entry as the update is written, and then the `W` that is optimal for it: `(V - W H) Hᵀ = 0`. [SKELLAM 12]
    #[test]
    fn a_step_of_ding_is_its_formula(v in matrix(), k in 1..4usize, seed in any::<u64>()) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let h = DMatrix::from_fn(k, v.ncols(), |_, _| random::uniform(&mut rng));
        let (ding, data) = (ding(k), tensor(&v));
        let mut at = At::start(&ding, &data, from(h));
        let before = at.state();
        at.step();
        let state = at.state();
        let parts = |x: f64| (0.5 * (x.abs() + x), 0.5 * (x.abs() - x));
        for z in 0..k {
            let w = before.basis().column(z);
            for n in 0..v.ncols() {
                let (mut up, mut down) = parts(w.dot(&v.column(n)));
                // Of the terms before they cancel.
                let mut size = w.abs().dot(&v.column(n).abs());
                for l in 0..k {
                    let (other, h) = (before.basis().column(l), before.activations()[(l, n)]);
                    let (plus, minus) = parts(w.dot(&other));
                    up += minus * h;
                    down += plus * h;
                    size += w.abs().dot(&other.abs()) * h;
                }
                let [old, new] = [before.activations()[(z, n)], state.activations()[(z, n)]].map(|h| h * h);
                prop_assert!((new * down - old * up).abs() <= 1e-13 * size * (old + new));
            }
        }
        w_is_optimal(&v, &state)?;
    }

    /// Every sample is with its nearest centre, and centres are means; inertia is no more than that of one cluster.
    #[test]
    fn kmeans_is_a_fixed_point(v in matrix(), k in 1..5usize, seed in any::<u64>(), plus in any::<bool>()) {
        let k = k.min(v.ncols());
        let seeding = if plus { Seeding::PlusPlus } else { Seeding::Random };
        let fit = clusters(&v, k, seeding, 1000, &mut ChaCha8Rng::seed_from_u64(seed)).unwrap();
        let c = fit.state();
        let distance = |n: usize, z: usize| (v.column(n) - c.centres().column(z)).norm_squared();
        let mut inertia = 0.0;
        for (n, label) in c.labels().into_iter().enumerate() {
            prop_assert!((0..k).all(|z| distance(n, label) <= distance(n, z)));
            inertia += distance(n, label);
        }
        prop_assert_eq!(fit.status(), &Status::Settled);
        prop_assert!((inertia - fit.objective()).abs() <= 1e-12 * (1.0 + inertia));
        let mean = v.column_mean();
        let one: f64 = v.column_iter().map(|x| (x - &mean).norm_squared()).sum();
        prop_assert!(fit.objective() <= one * (1.0 + 1e-12) + 1e-12);
    }
}

/// The second centre is a sample with the probability of its squared distance from the first one over their sum.
#[test]
fn seeds_are_drawn_by_squared_distance() {
    let v = DMatrix::from_row_slice(1, 4, &[0.0, 1.0, 3.0, 4.0]);
    let data = tensor(&v);
    let model = KMeans::new(2);
    let steps = model.bind(&data).unwrap();
    let mut pairs = DMatrix::<f64>::zeros(5, 5);
    const DRAWS: f64 = 40_000.0;
    for seed in 0..DRAWS as u64 {
        let blocks = steps
            .draw(
                &mut ChaCha8Rng::seed_from_u64(seed),
                &mut Progress::silent(),
            )
            .unwrap();
        let [a, b] = [0, 1].map(|k| blocks[0][k] as usize);
        pairs[(a, b)] += 1.0;
    }
    for &a in &v {
        let squares = v.map(|b: f64| (a - b).powi(2));
        for (&b, square) in v.iter().zip(&squares) {
            let p = square / squares.sum() / 4.0;
            let miss = pairs[(a as usize, b as usize)] - DRAWS * p;
            // Five standard deviations of a binomial count.
            assert!(miss.abs() <= 5.0 * (DRAWS * p).sqrt(), "{a} {b} {pairs}");
        }
    }
}

#[test]
fn refusals() {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let v = DMatrix::from_row_slice(1, 2, &[1.0, f64::NAN]);
    let refused = ding(1).on(&tensor(&v)).map(drop).unwrap_err();
    assert!(matches!(&refused, FitError::Entry { index, .. } if index == &[0, 1]));
    assert!(clusters(&v, 1, Seeding::Random, 9, &mut rng).is_err());
    let v = DMatrix::from_row_slice(1, 2, &[1.0, 1.0]);
    assert!(clusters(&v, 0, Seeding::Random, 9, &mut rng).is_err());
    assert!(clusters(&v, 3, Seeding::Random, 9, &mut rng).is_err());
    // All samples alike: no distance to seed by.
    assert_eq!(
        clusters(&v, 2, Seeding::PlusPlus, 9, &mut rng)
            .unwrap()
            .objective(),
        0.0
    );
    let start = from(DMatrix::from_element(1, 2, -1.0));
    assert!(ding(1).init(&tensor(&v), start, &mut rng).is_err());
}

/// In which factor a component has its scale does not change what is explained.
#[test]
fn the_scale_of_a_component_may_be_in_either_factor() {
    fn of<T: Real>(exponents: &[i32], rounding: f64) {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let mut value = |sign: f64| T::lit(sign * random::exponential(&mut rng));
        let v = DMatrix::from_fn(12, 10, |i, _| value(if i % 2 == 0 { 1.0 } else { -1.0 }));
        let w = DMatrix::from_fn(12, 3, |_, _| value(1.0));
        let h = DMatrix::from_fn(3, 10, |_, _| value(1.0));
        let data = DenseTensor::new(vec![12, 10], v.as_slice().to_vec(), Order::ColumnMajor);
        let data = data.unwrap();
        let ding = Ding::new(3);
        let trace = |e: i32, given: bool| {
            let by = |x: T, e: i32| T::lit(times_power_of_two(x.to_f64(), e));
            let (mut w, mut h) = (w.clone(), h.clone());
            w.column_mut(0).apply(|x| *x = by(*x, e));
            h.row_mut(0).apply(|x| *x = by(*x, -e));
            let mut init = Init::default().block("activations", h);
            if given {
                init = init.block("basis", w);
            }
            let run = ding.on(&data).unwrap();
            let run = run.stop(Stop::default().max_iter(25).tol(0.0).check_every(1));
            let fit = run.run(init, &mut ChaCha8Rng::seed_from_u64(0)).unwrap();
            let trace = fit.trace().iter().map(|point| point.objective);
            trace.collect::<Vec<f64>>()
        };
        for given in [true, false] {
            let one = trace(0, given);
            for e in exponents.iter().flat_map(|&e| [e, -e]) {
                for (x, y) in one.iter().zip(trace(e, given)) {
                    assert!((x / y - 1.0).abs() < rounding, "{e} {given}: {x} {y}");
                }
            }
        }
    }
    of::<f64>(&[20, 40, 400], 1e-12);
    of::<f32>(&[10, 20, 60], 1e-5);
}

/// Where the activations of a component are so small that its basis is beyond the numbers, this is an error, at the start and on the way.
#[test]
fn a_basis_beyond_the_numbers_is_refused() {
    let v = DMatrix::from_row_slice(2, 3, &[1e12f32, 2e12, -3e12, 4e12, 5e12, -1e12]);
    let data = DenseTensor::new(vec![2, 3], v.as_slice().to_vec(), Order::ColumnMajor).unwrap();
    let ding = Ding::new(2);
    let h = DMatrix::from_row_slice(2, 3, &[1.0f32, 2.0, 1.0, 1e-30, 3e-30, 4e-30]);
    let w = DMatrix::from_row_slice(2, 2, &[1e12f32, 3e38, 2e12, 3e38]);
    let only = Init::default().block("activations", h);
    for init in [only.clone(), only.block("basis", w)] {
        let run = ding.on(&data).unwrap().stop(Stop::default().max_iter(5));
        let told = run.run(init, &mut ChaCha8Rng::seed_from_u64(0));
        let told = told.map(|fit| fit.state().basis().clone());
        assert!(matches!(told, Err(FitError::NotFinite { .. })), "{told:?}");
    }
}
