//! The logistic-normal M-step: optimality, limits, and equality of its two forms.

use nalgebra::{DMatrix, DVector, dmatrix, dvector};
use plca_priors::{LogisticNormal, SimplexPrior, Step, Weighted};
use proptest::prelude::*;

fn problem() -> impl Strategy<Value = (Vec<f64>, Vec<f64>, Vec<f64>, f64)> {
    (2..8usize).prop_flat_map(|n| {
        let count = prop_oneof![3 => 0.0..20.0f64, 1 => Just(0.0), 1 => 1e3..1e7f64];
        (
            prop::collection::vec(count, n),
            prop::collection::vec(-3.0..3.0f64, n),
            prop::collection::vec((-5.0..3.0f64).prop_map(f64::exp), n),
            -0.9..0.9f64,
        )
    })
}

fn correlated(mean: &[f64], variance: &[f64], r: f64) -> LogisticNormal {
    let n = mean.len();
    let s = DMatrix::from_fn(n, n, |i, j| {
        let scale = (variance[i] * variance[j]).sqrt();
        // r^|i-j| is positive definite
        scale * r.powi(i.abs_diff(j) as i32)
    });
    LogisticNormal::new(DVector::from_column_slice(mean), s).unwrap()
}

fn step(prior: &LogisticNormal, counts: &[f64]) -> DMatrix<f64> {
    let n = counts.len();
    let mut theta = DMatrix::from_element(n, 1, 1.0 / n as f64);
    prior
        .update(
            &DMatrix::from_column_slice(n, 1, counts),
            &mut theta,
            &Step::at(1),
        )
        .unwrap();
    theta
}

proptest! {
    /// No neighbour is better [SPEC 7], under the density that the prior itself gives.
    #[test]
    fn maximises((counts, mean, variance, r) in problem(), seed in 0..1000u32) {
        let prior = correlated(&mean, &variance, r);
        let theta = step(&prior, &counts);
        prop_assert!((theta.sum() - 1.0).abs() < 1e-12 && theta.iter().all(|&t| t >= 0.0));
        prop_assume!(theta.min() > 1e-200);
        let objective = |t: &DMatrix<f64>| {
            counts.iter().zip(t.iter()).map(|(c, t)| c * t.ln()).sum::<f64>() + prior.ln_density(t, &Step::at(1))
        };
        let best = objective(&theta);
        for k in 0..200u32 {
            let size = [1e-4, 1e-2, 0.3, 2.0][k as usize % 4];
            let mut other = DMatrix::from_fn(counts.len(), 1, |i, _| {
                let wave = f64::from((k + 1) * (seed + 1)) * (i as f64 + 1.0);
                theta[i] * (size * (wave * 0.7).sin()).exp()
            });
            let sum = other.sum();
            other /= sum;
            // `c ln θ` near θ = 1 has an error of `c` epsilons, however small it is.
            let rounding = 1e-11 * best.abs().max(1.0) + 1e-15 * counts.iter().sum::<f64>();
            prop_assert!(objective(&other) <= best + rounding);
        }
    }

    /// Independent entries are a covariance without correlation.
    #[test]
    fn forms_agree((counts, mean, variance, _) in problem()) {
        let full = step(&correlated(&mean, &variance, 0.0), &counts);
        let mean = DVector::from_vec(mean);
        let diagonal = LogisticNormal::independent(mean, &DVector::from_vec(variance)).unwrap();
        let diagonal = step(&diagonal, &counts);
        prop_assert!((full - diagonal).amax() < 1e-7);
    }

    /// Very wide: the counts alone. Very narrow: the mean alone. No counts: the mean.
    #[test]
    fn limits((counts, mean, _, _) in problem()) {
        prop_assume!(counts.iter().sum::<f64>() > 1.0);
        let n = mean.len();
        let m = DVector::from_column_slice(&mean);
        let with = |variance: f64| LogisticNormal::independent(m.clone(), &DVector::repeat(n, variance)).unwrap();
        let softmax = m.map(f64::exp) / m.map(f64::exp).sum();
        for theta in [step(&with(1e-14), &counts), step(&with(1.0), &vec![0.0; n])] {
            prop_assert!((&theta - &softmax).amax() < 1e-6);
        }
        let total: f64 = counts.iter().sum();
        let flat = step(&with(1.0).weighted(0.0), &counts);
        prop_assert!(flat.iter().zip(&counts).all(|(t, c)| (t - c / total).abs() < 1e-12));
        let wide = step(&with(1e9), &counts);
        prop_assert!(wide.iter().zip(&counts).all(|(t, c)| (t - c / total).abs() < 1e-4));
    }
}

/// Beside a count of millions, an entry of 1e-7 is at its maximum too: the gradient of the objective is 0 to the rounding of its terms. [SPEC 7]
#[test]
fn a_small_entry_beside_a_large_one_is_exact() {
    let counts = [0.0, 8793522.13203401];
    let mean = [0.6751837226515848, 0.0];
    let variance = [0.8373443319040448, 12.356056840842582];
    let theta = step(&correlated(&mean, &variance, 0.3958515854360431), &counts);
    let s12 = 0.3958515854360431 * (variance[0] * variance[1]).sqrt();
    // Of two entries only the difference x = ln θ_0 - ln θ_1 counts, which is normal.
    let (m, s) = (mean[0] - mean[1], variance[0] + variance[1] - 2.0 * s12);
    let x = (theta[0] / theta[1]).ln();
    let (up, down) = (counts[1] * theta[0], (m - x) / s);
    assert!((up - down).abs() < 1e-9 * down.abs(), "{up} {down}");
}

#[test]
fn refuses() {
    let mean = DVector::from_column_slice(&[0.0, 0.0]);
    assert!(
        LogisticNormal::independent(mean.clone(), &DVector::from_column_slice(&[1.0, 0.0]))
            .is_err()
    );
    assert!(
        LogisticNormal::independent(mean.clone(), &DVector::from_column_slice(&[1.0])).is_err()
    );
    let singular = DMatrix::from_row_slice(2, 2, &[1.0, 1.0, 1.0, 1.0]);
    assert!(LogisticNormal::new(mean.clone(), singular).is_err());
    assert!(
        LogisticNormal::new(mean, DMatrix::from_row_slice(2, 2, &[1.0, 0.5, 0.4, 1.0])).is_err()
    );
}

/// However large counts are beside the prior, columns are theirs, and a second step from there changes nothing.
// [SPEC 7]
#[test]
fn huge_counts_are_not_lost_in_rounding() {
    let counts = [3.1, 0.7, 0.0, 11.3, 1e-7];
    let total: f64 = counts.iter().sum();
    let (mean, variance) = ([0.3, -1.0, 0.0, 2.0, 0.5], [1.0, 0.5, 2.0, 0.1, 3.0]);
    let forms = [
        correlated(&mean, &variance, 0.6),
        LogisticNormal::independent(
            DVector::from_column_slice(&mean),
            &DVector::from_column_slice(&variance),
        )
        .unwrap(),
    ];
    for prior in forms {
        for size in [1e15, 1e20, 1e40, 1e61, 1e100, 1e200] {
            let scaled = counts.map(|c| c * size);
            let mut theta = step(&prior, &scaled);
            for _ in 0..3 {
                for (t, c) in theta.iter().zip(counts) {
                    assert!(
                        *t > 0.0 && (t - c / total).abs() < 1e-12,
                        "{size:e}: {theta}"
                    );
                }
                let density = prior.ln_density(&theta, &Step::at(1));
                assert!(density.is_finite(), "{size:e}: {density}");
                let matrix = DMatrix::from_column_slice(5, 1, &scaled);
                prior.update(&matrix, &mut theta, &Step::at(1)).unwrap();
            }
        }
    }
}

/// From an entry that is far too small for its counts, where a step of Newton is of no use, the maximum is found.
// [SPEC 7]
#[test]
fn far_starts_lead_to_the_maximum() {
    let prior = LogisticNormal::independent(dvector![0.0, 0.0], &dvector![1.0, 1.0]).unwrap();
    for (size, share) in [(1e162, 3.5e-4), (1e60, 0.25), (1e3, 0.25)] {
        let counts = dmatrix![size * (1.0 - share); size * share];
        let found = |small: f64| {
            let mut theta = dmatrix![1.0 - small; small];
            prior.update(&counts, &mut theta, &Step::at(1)).unwrap();
            theta
        };
        let (near, far) = (found(0.3), found(1e-100));
        assert!((&near - &far).amax() < 1e-9, "{size:e}: {near} {far}");
    }
}

/// A common offset of the mean changes nothing, and costs no digits but those of the mean itself.
#[test]
fn densities_do_not_depend_on_an_offset_of_the_mean() {
    let theta = dmatrix![0.5; 0.5];
    for offset in [0.0, 1e4, 1e8] {
        let independent =
            LogisticNormal::independent(dvector![offset, offset + 1.0], &dvector![1.0, 1.0]);
        let full =
            LogisticNormal::new(dvector![offset, offset + 1.0], dmatrix![1.0, 0.5; 0.5, 1.0]);
        // d = (1/2, -1/2) beside the offset, and -1/2 d'Pd
        for (prior, expected) in [(independent, -0.25), (full, -0.5)] {
            let density = prior.unwrap().ln_density(&theta, &Step::at(1));
            assert!((density - expected).abs() < 1e-7, "{offset}: {density}");
        }
    }
}
