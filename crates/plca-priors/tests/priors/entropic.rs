//! The entropic M-step: reference vectors, optimality, symmetries, limits, and what is known to be wrong.

use nalgebra::DMatrix;
use plca_priors::{Dirichlet, Entropic, SimplexPrior, Step};
use proptest::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

fn numbers(v: &Value) -> Vec<f64> {
    let list = v.as_array().unwrap().iter();
    list.map(|x| x.as_f64().unwrap()).collect()
}

fn step(counts: &[f64], beta: f64) -> Vec<f64> {
    let n = counts.len();
    let mut theta = DMatrix::from_element(n, 1, 1.0 / n as f64);
    let prior = Entropic::new(beta).unwrap();
    prior
        .update(
            &DMatrix::from_column_slice(n, 1, counts),
            &mut theta,
            &Step::at(1),
        )
        .unwrap();
    theta.as_slice().to_vec()
}

fn term(c: f64, theta: f64, beta: f64) -> f64 {
    let likelihood = if c > 0.0 { c * theta.ln() } else { 0.0 };
    likelihood
        + if theta > 0.0 {
            beta * theta * theta.ln()
        } else {
            0.0
        }
}

fn objective(counts: &[f64], theta: &[f64], beta: f64) -> f64 {
    counts
        .iter()
        .zip(theta)
        .map(|(&c, &t)| term(c, t, beta))
        .sum()
}

/// The global maximiser [SPEC 6] to 32 digits, for both signs of the strength and all configurations.
#[test]
fn reference_vectors() {
    let golden: Value =
        serde_json::from_str(include_str!("../../../testdata/golden/entropic_mstep.json")).unwrap();
    for case in golden["cases"].as_array().unwrap() {
        let (counts, beta) = (numbers(&case["counts"]), case["beta"].as_f64().unwrap());
        for (got, want) in step(&counts, beta).iter().zip(numbers(&case["theta"])) {
            let tolerance = (1e-9 * want.abs()).min(1e-12);
            assert!(
                (got - want).abs() <= tolerance.max(1e-300),
                "{got} instead of {want}: {counts:?}, beta {beta}"
            );
        }
    }
}

/// Counts with ties, zeros and sizes of very different orders.
fn counts(most: usize) -> impl Strategy<Value = Vec<f64>> {
    let one = prop_oneof![
        2 => 0.01..10.0f64,
        1 => Just(1.0),
        1 => Just(0.0),
        1 => (-30.0..5.0f64).prop_map(f64::exp),
    ];
    prop::collection::vec(one, 2..=most).prop_filter("a count", |c| c.iter().any(|&c| c > 0.0))
}

fn strength() -> impl Strategy<Value = f64> {
    ((-6.0..4.0f64).prop_map(f64::exp), any::<bool>())
        .prop_map(|(b, sign)| if sign { b } else { -b })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Stationary [SPEC 6]: `c/θ + β ln θ` is the same for all positive entries.
    #[test]
    fn stationary(counts in counts(100), relative in strength()) {
        let beta = relative * counts.iter().sum::<f64>();
        let theta = step(&counts, beta);
        prop_assert!((theta.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        let g: Vec<f64> = counts.iter().zip(&theta)
            .filter(|&(&c, &t)| t > 1e-290 && (c > 1e-290 || beta < 0.0))
            .map(|(c, t)| c / t + beta * t.ln()).collect();
        let (lo, hi) = g.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), &x| (a.min(x), b.max(x)));
        let scale = counts.iter().zip(&theta).filter(|&(_, &t)| t > 0.0)
            .fold(beta.abs(), |a, (c, t)| a.max(c / t).max((beta * t.ln()).abs()));
        prop_assert!(hi - lo <= 1e-8 * scale, "spread {} of {scale}: {counts:?} beta {beta}: {theta:?}", hi - lo);
    }

    /// No random point of the simplex is better, nor any that gives one entry nearly everything.
    // [SPEC 6]
    #[test]
    fn beats_random_points(counts in counts(12), relative in strength(), seed: u64) {
        let beta = relative * counts.iter().sum::<f64>();
        let best = objective(&counts, &step(&counts, beta), beta);
        let tolerance = 1e-12 * best.abs().max(1.0);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        for k in 0..10_000 {
            let power = [0.2, 1.0, 3.0, 20.0][k % 4];
            let mut point: Vec<f64> = counts.iter()
                .map(|&c| if c == 0.0 && beta > 0.0 { 0.0 } else { (-rng.random::<f64>().ln()).powf(power) }).collect();
            let sum: f64 = point.iter().sum();
            point.iter_mut().for_each(|p| *p /= sum);
            let value = objective(&counts, &point, beta);
            prop_assert!(value.is_nan() || value <= best + tolerance, "{point:?} gives {value} > {best}");
        }
    }

    /// Larger counts have larger values, and permuted counts permuted values.
    // [SPEC 6]
    #[test]
    fn ordered_and_equivariant(counts in counts(80), relative in strength()) {
        let beta = relative * counts.iter().sum::<f64>();
        let theta = step(&counts, beta);
        let reversed: Vec<f64> = counts.iter().rev().copied().collect();
        let mut back = step(&reversed, beta);
        back.reverse();
        for i in 0..counts.len() {
            for j in 0..counts.len() {
                prop_assert!(counts[i] <= counts[j] || theta[i] >= theta[j] * (1.0 - 1e-12));
            }
            let tied = counts.iter().filter(|&&c| c == counts[i]).count() > 1;
            prop_assert!(tied || (theta[i] - back[i]).abs() <= 1e-11, "{} {}", theta[i], back[i]);
        }
    }

    /// A vanishing prior is no prior, continuously.
    #[test]
    fn vanishes(counts in counts(50), sign: bool) {
        let total: f64 = counts.iter().sum();
        for scale in [1e-3, 1e-6, 1e-9, 1e-300, 0.0] {
            let theta = step(&counts, if sign { scale * total } else { -scale * total });
            for (t, c) in theta.iter().zip(&counts) {
                prop_assert!((t - c / total).abs() <= 30.0 * scale + 1e-12);
            }
        }
    }
}

/// Ten equal counts [SPEC 6]: uniform is best at 7; at 8 one entry takes .60, although uniform is still a local maximum.
#[test]
fn the_optimum_jumps() {
    assert!(
        step(&[1.0; 10], 7.0)
            .iter()
            .all(|t| (t - 0.1).abs() < 1e-12)
    );
    let theta = step(&[1.0; 10], 8.0);
    assert!((theta[0] - 0.60).abs() < 0.005, "{theta:?}");
    assert!(objective(&[1.0; 10], &theta, 8.0) > objective(&[1.0; 10], &[0.1; 10], 8.0));
}

/// Counts over hundreds of orders of magnitude, as they arise where a loser is halved by every iteration: what is far below the rest
/// changes nothing.
#[test]
fn negligible_counts_change_nothing() {
    let mut wide = vec![1.0; 71];
    (wide[0], wide[70]) = (100.0, 1e-298);
    let mut cases: Vec<(Vec<f64>, f64)> = [30.0, 40.0, 50.0, 80.0]
        .map(|beta| (wide.clone(), beta))
        .into();
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    for span in [40.0, 80.0, 200.0, 600.0] {
        for _ in 0..40 {
            let draw = || (-span * rng.random::<f64>().powi(2)).exp();
            let counts: Vec<f64> = std::iter::repeat_with(draw).take(100).collect();
            let total: f64 = counts.iter().sum();
            let beta = total * 10f64.powf(1.5 * rng.random::<f64>() - 1.0);
            cases.push((counts, beta));
        }
    }
    for (counts, beta) in cases {
        let largest = counts.iter().copied().fold(0.0, f64::max);
        let kept = |c: &f64| if *c > 1e-20 * largest { *c } else { 0.0 };
        let few: Vec<f64> = counts.iter().map(kept).collect();
        let (all, alone) = (step(&counts, beta), step(&few, beta));
        let (a, b) = (objective(&few, &all, beta), objective(&few, &alone, beta));
        assert!((a - b).abs() <= 1e-9 * b.abs(), "beta {beta}: {a} {b}");
    }
}

/// Long columns, in which entries are grouped for the search, against the same columns with ties: three thousand equal counts, of
/// which one takes more than half although the strength is a quarter of the counts.
#[test]
fn long_columns_find_the_large_entry() {
    let counts = [1.0; 3000];
    let beta = 750.0;
    let theta = step(&counts, beta);
    assert!(theta[0] > 0.5, "{}", theta[0]);
    assert!(objective(&counts, &theta, beta) > objective(&counts, &[1.0 / 3000.0; 3000], beta));
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let counts: Vec<f64> = (0..5000).map(|_| -rng.random::<f64>().ln()).collect();
    for beta in [50.0, 500.0, 1000.0, 1250.0, 2000.0, 5000.0, -1250.0, -1e5] {
        let theta = step(&counts, beta);
        let best = objective(&counts, &theta, beta);
        // Moves between pairs, and towards each vertex.
        for k in 0..20_000 {
            let (i, j) = (rng.random_range(0..5000), rng.random_range(0..5000));
            let move_by = theta[j] * [1e-3, 0.1, 0.5, 0.9][k % 4];
            if i != j {
                let change = term(counts[i], theta[i] + move_by, beta)
                    - term(counts[i], theta[i], beta)
                    + term(counts[j], theta[j] - move_by, beta)
                    - term(counts[j], theta[j], beta);
                assert!(change <= 1e-12 * best.abs(), "beta {beta}: {change}");
            }
        }
        for large in [0.05, 0.3, 0.6, 0.9] {
            let top = (0..5000)
                .max_by(|&a, &b| counts[a].total_cmp(&counts[b]))
                .unwrap();
            let rest = 1.0 - theta[top];
            let point: Vec<f64> = (0..5000)
                .map(|i| {
                    if i == top {
                        large
                    } else {
                        theta[i] / rest * (1.0 - large)
                    }
                })
                .collect();
            assert!(
                objective(&counts, &point, beta) <= best + 1e-12 * best.abs(),
                "beta {beta}, {large}"
            );
        }
    }
}

/// Without counts: unchanged where the prior has no unique opinion, uniform where it has.
// [SPEC 6]
#[test]
fn no_counts() {
    let start = DMatrix::from_column_slice(3, 1, &[0.7, 0.2, 0.1]);
    let zero = DMatrix::zeros(3, 1);
    for (beta, want) in [
        (2.0, start.clone()),
        (0.0, start.clone()),
        (-2.0, DMatrix::from_element(3, 1, 1.0 / 3.0)),
    ] {
        let mut theta = start.clone();
        Entropic::new(beta)
            .unwrap()
            .update(&zero, &mut theta, &Step::at(1))
            .unwrap();
        assert_eq!(theta, want, "beta {beta}");
    }
    assert!(Entropic::new(f64::NAN).is_err() && Entropic::relative(f64::INFINITY).is_err());
}

/// The well-known fixed-point iteration is no substitute [SPEC 6]: at strengths above a quarter of the counts it misses the
/// maximiser on columns where this step finds it.
#[test]
fn the_fixed_point_iteration_fails() {
    let counts = [3.0, 2.9, 1.0];
    let beta = 9.0;
    let total: f64 = counts.iter().sum();
    let mut theta: Vec<f64> = counts.iter().map(|c| c / total).collect();
    for _ in 0..200 {
        let entropy: f64 = theta.iter().map(|t| t * t.ln()).sum();
        let lambda = -(total + beta + beta * entropy);
        for (t, c) in theta.iter_mut().zip(&counts) {
            let ln = (c / beta).ln() + 1.0 + lambda / beta;
            let gap = -1.0 - ln.min(-1.0);
            *t = plca_dist::lambert_wm1_gap(gap).map_or(f64::NAN, |w| -c / beta / w);
        }
        let sum: f64 = theta.iter().sum();
        theta.iter_mut().for_each(|t| *t /= sum);
    }
    let exact = step(&counts, beta);
    assert!(
        objective(&counts, &exact, beta) > objective(&counts, &theta, beta) + 0.1,
        "{theta:?} {exact:?}"
    );
}

/// Strengths and counts at the ends of the range still give distributions.
#[test]
fn extremes() {
    let sums_to_one = |prior: &dyn SimplexPrior<f64>, counts: &[f64]| {
        let counts = DMatrix::from_column_slice(counts.len(), 1, counts);
        let mut theta = DMatrix::from_element(counts.len(), 1, 1.0 / counts.len() as f64);
        prior.update(&counts, &mut theta, &Step::at(1)).unwrap();
        let sum = theta.sum();
        assert!((sum - 1.0).abs() < 1e-12, "{prior:?}: {theta}");
    };
    for rho in [1e300, -1e300, f64::MAX, f64::MIN] {
        for counts in [[1e10, 3e10], [1e300, 2e300], [1.0, 0.0]] {
            sums_to_one(&Entropic::relative(rho).unwrap(), &counts);
        }
    }
    for alpha in [1e308, f64::MAX] {
        sums_to_one(&Dirichlet::symmetric(alpha).unwrap(), &[1.0, 2.0, 3.0]);
    }
}
