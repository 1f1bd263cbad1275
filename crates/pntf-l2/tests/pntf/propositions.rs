//! The paper's propositions, run as the specification corrects them.

use nalgebra::{DMatrix, DVector};
use plca_dist::random;
use plca_tensor::{Data, DenseTensor, Order};
use pntf_l2::propositions::*;
use pntf_l2::{Pntf, PntfState};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use crate::support::after;

fn simplex(rows: usize, columns: usize, rng: &mut ChaCha8Rng) -> DMatrix<f64> {
    let mut m = DMatrix::from_fn(rows, columns, |_, _| random::exponential(rng));
    for mut column in m.column_iter_mut() {
        column /= column.sum();
    }
    m
}

fn product(state: &PntfState<f64>) -> DMatrix<f64> {
    let weights = DVector::from_column_slice(state.weights());
    state.factor(0) * DMatrix::from_diagonal(&weights) * state.factor(1).transpose()
}

/// Descent from `P0` ends within `2 √ε` of it, at every size of the noise. Nothing is rescaled: `P0 + E` is fitted as it is.
// [HS prop. 1] [PNTF 6]
#[test]
fn proposition_1() {
    assert_eq!(l2_deviation_bound(0.0625), 0.5);
    for trial in 0..40 {
        let mut rng = ChaCha8Rng::seed_from_u64(trial);
        let weights = DVector::from_column_slice(simplex(3, 1, &mut rng).as_slice());
        let factors = vec![simplex(20, 3, &mut rng), simplex(20, 3, &mut rng)];
        let truth = PntfState::new(weights, factors).unwrap();
        let p0 = product(&truth);
        let size = 10f64.powi(-(trial as i32 % 4) - 2);
        let noise = DMatrix::from_fn(20, 20, |_, _| {
            size * (2.0 * random::uniform(&mut rng) - 1.0)
        });
        let values: Vec<f64> = (&p0 + &noise).iter().copied().collect();
        let Ok(data) = DenseTensor::new(vec![20, 20], values, Order::ColumnMajor) else {
            panic!()
        };
        if data.total() <= 0.0 {
            continue;
        }
        let pntf = Pntf::new(3).normalise(false);
        let fit = after(&pntf, &data, &truth, 200);
        let deviation = (product(fit.state()) - &p0).amax();
        assert!(deviation <= l2_deviation_bound(noise.amax()), "{deviation}");
    }
}

/// The closed form is a distribution and the best one, and its deviation lies between the bounds.
// [HS prop. 2] [PNTF 6]
#[test]
fn proposition_2() {
    for trial in 0..500 {
        let mut rng = ChaCha8Rng::seed_from_u64(trial);
        let n = 2 + trial as usize % 9;
        let p0 = simplex(n, 1, &mut rng) * simplex(n, 1, &mut rng).transpose();
        let noise = p0.map(|p| (3.0 * random::uniform(&mut rng) - 1.0) * p);
        let d = rank_one_relative_entropy(&p0, &noise).unwrap();
        assert!((d.fit.iter().sum::<f64>() - 1.0).abs() < 1e-14);
        let (low, high) = d.bounds();
        let added = noise.sum();
        let alpha = noise.column_sum() / (1.0 + added);
        let shrunk = added.abs() / (1.0 + added) * (p0.column_sum() / p0.sum()).amax();
        assert!((high - shrunk - alpha.amax()).abs() <= 1e-15);
        assert!((low - (shrunk - alpha.amax()).max(0.0)).abs() <= 1e-15);
        let deviation = d.deviation();
        assert!(
            low - 1e-15 <= deviation && deviation <= high + 1e-15,
            "{low} {deviation} {high}"
        );
        for ((p, q), alpha) in d.truth.iter().zip(&d.fit).zip(&d.alpha) {
            assert!((q - p - alpha + d.gamma / (1.0 + d.gamma) * p).abs() <= 1e-15);
        }
        // No other marginal is more likely: Σ_i m_i ln p_i is largest at p = m / Σ m.
        let data = &p0 + &noise;
        let ln_lik =
            |p: &[f64]| -> f64 { data.row_iter().zip(p).map(|(r, p)| r.sum() * p.ln()).sum() };
        let other = simplex(n, 1, &mut rng);
        assert!(ln_lik(&d.fit) >= ln_lik(other.as_slice()));
    }
}

/// A block model of `n` rows whose first `block` hold all mass.
fn block(n: usize, block: usize) -> DMatrix<f64> {
    let inside = 1.0 / (block * block) as f64;
    DMatrix::from_fn(
        n,
        n,
        |i, j| if i < block && j < block { inside } else { 0.0 },
    )
}

// [HS prop. 3] [PNTF 6]
#[test]
fn proposition_3() {
    // More entries below the noise level than rows, and fewer.
    assert_eq!(row_noise_bound(1.0, 3.0, 2), 0.5);
    assert_eq!(row_noise_bound(1.0, 3.0, 8), 0.75);
    for (n, epsilon) in [(50, 1e-2), (200, 1e-3), (600, 1e-4)] {
        let p0 = block(n, n / 5);
        let beta = p0.iter().filter(|&&p| p < epsilon).count() as f64;
        assert!(beta >= (n as f64).powf(1.5));
        let noise = one_sided_noise(&p0, epsilon, &mut ChaCha8Rng::seed_from_u64(n as u64));
        let d = rank_one_relative_entropy(&p0, &noise).unwrap();
        let worst = d.alpha.iter().fold(0.0, |a: f64, x| a.max(*x));
        let slack = 1.0 + 3.0 * ((n as f64).ln() / n as f64).sqrt();
        assert!(
            worst <= slack * row_noise_bound(epsilon, beta, n),
            "{n}: {worst}"
        );
    }
    // Without entries below the noise level the bound is 0, and false: the reason for the condition on β.
    let p0 = block(20, 20);
    let noise = one_sided_noise(&p0, 1e-3, &mut ChaCha8Rng::seed_from_u64(0));
    let d = rank_one_relative_entropy(&p0, &noise).unwrap();
    assert_eq!(row_noise_bound(1e-3, 0.0, 20), 0.0);
    assert!(d.alpha.iter().any(|&a| a > 0.0));
}

/// The relative deviation is near `1 - fraction`, not near 1.
// [HS cor. 1] [PNTF 6]
#[test]
fn corollary() {
    for (fraction, low, high) in [(0.1, 0.87, 0.93), (0.3, 0.65, 0.74)] {
        let p0 = block(1000, (1000.0 * fraction) as usize);
        let noise = one_sided_noise(&p0, 1e-4, &mut ChaCha8Rng::seed_from_u64(3));
        let d = rank_one_relative_entropy(&p0, &noise).unwrap();
        let relative = d.relative_deviation();
        assert!((low..=high).contains(&relative), "{relative}");
        assert!((relative - limiting_relative_deviation(fraction)).abs() < 0.05);
    }
}

#[test]
fn bad_input_is_named() {
    let p0 = DMatrix::from_element(2, 2, 0.25);
    assert!(matches!(
        rank_one_relative_entropy(&p0, &DMatrix::zeros(2, 3)),
        Err(PropositionError::Shape { .. })
    ));
    assert!(matches!(
        rank_one_relative_entropy(&p0, &DMatrix::from_element(2, 2, -0.5)),
        Err(PropositionError::Data {
            row: 0,
            column: 0,
            ..
        })
    ));
    assert!(matches!(
        rank_one_relative_entropy(&p0, &-&p0),
        Err(PropositionError::Total(_))
    ));
}
