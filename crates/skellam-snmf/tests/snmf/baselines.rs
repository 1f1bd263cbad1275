//! Ding's semi-NMF and k-means.

use nalgebra::DMatrix;
use plca_fit::Algorithm;
use plca_fit::laws::{Claims, Rounding, check};
use proptest::prelude::*;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use skellam_snmf::{Ding, DingState, KMeans, Seeding, SnmfError, kmeans};

fn matrix() -> impl Strategy<Value = DMatrix<f64>> {
    (1..6usize, 1..20usize).prop_flat_map(|(f, n)| {
        let values = prop::collection::vec(-9.0..12.0f64, f * n);
        values.prop_map(move |v| DMatrix::from_vec(f, n, v))
    })
}

/// `(V - W H) Hᵀ = 0` within the rounding of its terms, of which the factorization of `H` makes some for each of its entries.
fn w_is_optimal(
    v: &DMatrix<f64>,
    DingState { w, h }: &DingState<f64>,
) -> Result<(), TestCaseError> {
    let slope = (v - w * h) * h.transpose();
    let size = (v.norm() + w.norm() * h.norm()) * h.norm();
    let rounding = f64::EPSILON * 8.0 * (4 + h.len()) as f64;
    prop_assert!(slope.norm() <= rounding * size, "{slope} of {size}");
    Ok(())
}

/// Three components of two samples always depend on each other; here two of three do so nearly.
#[test]
fn w_is_optimal_for_components_that_depend_on_each_other() {
    let v = DMatrix::from_row_slice(1, 2, &[4.131756739057387, 0.0]);
    let mut rng = ChaCha8Rng::seed_from_u64(14940614014930777158);
    let h = DMatrix::from_fn(3, 2, |_, _| plca_dist::random::uniform(&mut rng));
    let ding = Ding::new(3).unwrap();
    let steps = ding.on(&v).unwrap();
    let mut state = steps.start(h).unwrap();
    w_is_optimal(&v, &state).unwrap();
    steps.step(&mut state, false).unwrap();
    w_is_optimal(&v, &state).unwrap();
    for small in [1e-3, 1e-7, 1e-11] {
        let h = DMatrix::from_row_slice(2, 3, &[1.0, 2.0, 3.0, 1.0, 2.0, 3.0 + small]);
        let v = DMatrix::from_row_slice(1, 3, &[1.0, -1.0, 2.0]);
        w_is_optimal(&v, &Ding::new(2).unwrap().on(&v).unwrap().start(h).unwrap()).unwrap();
    }
}

/// Entries of `H` that vanish come back: `up / down` is above all numbers, its root is not.
#[test]
fn vanished_entries_of_h_come_back() {
    let v = DMatrix::from_row_slice(1, 2, &[1.0, 2.0]);
    let ding = Ding::new(1).unwrap();
    let steps = ding.on(&v).unwrap();
    let h = DMatrix::from_row_slice(1, 2, &[1e-317, 1.0]);
    let mut state = steps.start(h).unwrap();
    for _ in 0..200 {
        steps.step(&mut state, false).unwrap();
    }
    assert!(steps.objective(&state).unwrap() < 1e-9, "{state:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The squared error never grows. [SKELLAM 12]
    #[test]
    fn ding_never_loses(v in matrix(), k in 1..4usize, seed in any::<u64>()) {
        let ding = Ding::new(k).unwrap();
        let steps = ding.on(&v).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let h = DMatrix::from_fn(k, v.ncols(), |_, _| plca_dist::random::uniform(&mut rng));
        let mut state = steps.start(h).unwrap();
        let rounding = Rounding { relative: 0.0, absolute: 1e-9 * v.norm_squared() };
        check(&steps, &state, &Claims { iterations: 30, ..Claims::new(rounding) })?;
        for _ in 0..30 {
            steps.step(&mut state, false).unwrap();
        }
        prop_assert!(state.h.iter().all(|&x| x >= 0.0));
    }

    /// `H` entry by entry as the update is written, and then the `W` that is optimal for it: `(V - W H) Hᵀ = 0`. [SKELLAM 12]
    #[test]
    fn a_step_of_ding_is_its_formula(v in matrix(), k in 1..4usize, seed in any::<u64>()) {
        let ding = Ding::new(k).unwrap();
        let steps = ding.on(&v).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let h = DMatrix::from_fn(k, v.ncols(), |_, _| plca_dist::random::uniform(&mut rng));
        let mut state = steps.start(h).unwrap();
        let before = state.clone();
        steps.step(&mut state, false).unwrap();
        let parts = |x: f64| (0.5 * (x.abs() + x), 0.5 * (x.abs() - x));
        for z in 0..k {
            let w = before.w.column(z);
            for n in 0..v.ncols() {
                let (mut up, mut down) = parts(w.dot(&v.column(n)));
                // Of the terms before they cancel.
                let mut size = w.abs().dot(&v.column(n).abs());
                for l in 0..k {
                    let (other, h) = (before.w.column(l), before.h[(l, n)]);
                    let (plus, minus) = parts(w.dot(&other));
                    up += minus * h;
                    down += plus * h;
                    size += w.abs().dot(&other.abs()) * h;
                }
                let [old, new] = [before.h[(z, n)], state.h[(z, n)]].map(|h| h * h);
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
        let c = kmeans(&v, k, seeding, 1000, &mut ChaCha8Rng::seed_from_u64(seed)).unwrap();
        let distance = |n: usize, z: usize| (v.column(n) - c.centres.column(z)).norm_squared();
        let mut inertia = 0.0;
        for (n, &label) in c.labels.iter().enumerate() {
            prop_assert!((0..k).all(|z| distance(n, label) <= distance(n, z)));
            inertia += distance(n, label);
        }
        prop_assert!((inertia - c.inertia).abs() <= 1e-12 * (1.0 + inertia));
        let mean = v.column_mean();
        let one: f64 = v.column_iter().map(|x| (x - &mean).norm_squared()).sum();
        prop_assert!(c.inertia <= one * (1.0 + 1e-12) + 1e-12);
    }
}

/// `kmeans` makes the steps of the algorithm, as many as it says, and no more than it may.
#[test]
fn iterations_of_kmeans_are_counted() {
    let v = DMatrix::from_fn(2, 60, |f, n| ((7 * n + 3 * f) as f64).sin());
    for (seed, most) in (0..20).flat_map(|seed| [(seed, 0), (seed, 2), (seed, 1000)]) {
        let rng = || ChaCha8Rng::seed_from_u64(seed);
        let c = kmeans(&v, 4, Seeding::Random, most, &mut rng()).unwrap();
        let steps = KMeans::new(4).unwrap();
        let steps = steps.on(&v).unwrap();
        let mut state = steps.seed(Seeding::Random, &mut rng());
        let mut made = 0;
        while !state.settled && made < most {
            steps.step(&mut state, false).unwrap();
            made += 1;
        }
        assert_eq!((c.iterations, c.centres), (made, state.centres));
    }
}

/// The second centre is a sample with the probability of its squared distance from the first one over their sum.
#[test]
fn seeds_are_drawn_by_squared_distance() {
    let v = DMatrix::from_row_slice(1, 4, &[0.0, 1.0, 3.0, 4.0]);
    let steps = KMeans::new(2).unwrap();
    let steps = steps.on(&v).unwrap();
    let mut pairs = DMatrix::<f64>::zeros(5, 5);
    const DRAWS: f64 = 40_000.0;
    for seed in 0..DRAWS as u64 {
        let centres = steps.seed(Seeding::PlusPlus, &mut ChaCha8Rng::seed_from_u64(seed));
        let [a, b] = [0, 1].map(|k| centres.centres[k] as usize);
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
    assert!(Ding::new(0).is_err());
    assert!(matches!(
        Ding::new(1).unwrap().on(&v),
        Err(SnmfError::Value { column: 1, .. })
    ));
    assert!(kmeans(&v, 1, Seeding::Random, 9, &mut rng).is_err());
    let v = DMatrix::from_row_slice(1, 2, &[1.0, 1.0]);
    assert!(kmeans(&v, 0, Seeding::Random, 9, &mut rng).is_err());
    assert!(kmeans(&v, 3, Seeding::Random, 9, &mut rng).is_err());
    // All samples alike: no distance to seed by.
    assert_eq!(
        kmeans(&v, 2, Seeding::PlusPlus, 9, &mut rng)
            .unwrap()
            .inertia,
        0.0
    );
    let ding = Ding::new(1).unwrap();
    assert!(
        ding.on(&v)
            .unwrap()
            .start(DMatrix::from_element(1, 2, -1.0))
            .is_err()
    );
}
