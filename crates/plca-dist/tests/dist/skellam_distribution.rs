//! The Skellam law as a distribution, and exact draws of counts.

use crate::support;

use std::collections::HashMap;

use plca_dist::{Skellam, draw_poisson, poisson_ln_pmf, skellam_ln_pmf, skellam_ratios, thin};
use proptest::prelude::*;
use rand::distr::Distribution;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use statrs::{
    distribution::{Discrete, DiscreteCDF},
    statistics::{Max, Min},
};
use support::{rows, worst};

/// Relative error 1e-12 on either tail, from single counts to thousands, out to twelve deviations.
#[test]
fn tails_meet_references() {
    let file = include_str!("../../testdata/tails.json");
    let law = |x: &[f64]| Skellam::new(x[1], x[2]).unwrap();
    for (table, of) in [
        ("cdf", (|x, law| law.cdf(x)) as fn(i64, Skellam) -> f64),
        ("sf", |x, law| law.sf(x)),
    ] {
        let (error, row) = worst(
            &rows(file, table),
            |x| of(x[0] as i64, law(x)),
            |_, want| want,
        );
        assert!(
            error <= 1e-12 / f64::EPSILON,
            "{table}: {error} eps at {row:?}"
        );
    }
}

// [SKELLAM eq. 3] [SKELLAM eq. 4]
#[test]
fn moments_and_ends() {
    let law = Skellam::new(9.0, 7.0).unwrap();
    assert_eq!((law.mean(), law.variance()), (2.0, 16.0));
    assert_eq!(
        (law.skewness(), law.excess_kurtosis()),
        (2.0 / 64.0, 1.0 / 16.0)
    );
    assert_eq!((law.plus(), law.minus()), (9.0, 7.0));
    assert_eq!((law.min(), law.max()), (i64::MIN, i64::MAX));
    let constant = Skellam::new(0.0, 0.0).unwrap();
    assert_eq!((constant.min(), constant.max()), (0, 0));
    assert_eq!(
        (
            constant.pmf(0),
            constant.pmf(1),
            constant.cdf(-1),
            constant.cdf(0)
        ),
        (1.0, 0.0, 0.0, 1.0)
    );
    // Past every count.
    assert_eq!(
        (law.cdf(i64::MAX), law.cdf(i64::MIN), law.sf(i64::MAX)),
        (1.0, 0.0, 0.0)
    );
    for bad in [f64::NAN, -1.0, f64::INFINITY, 1e17] {
        assert!(Skellam::new(bad, 1.0).is_err() && Skellam::new(1.0, bad).is_err());
    }
}

/// Pearson's statistic of draws against a law, in its standard deviations; cells expecting fewer than five are pooled.
fn pearson(
    draws: impl Iterator<Item = i64>,
    ln_p: impl Fn(i64) -> f64,
    range: std::ops::RangeInclusive<i64>,
) -> f64 {
    let mut seen = HashMap::new();
    let mut n = 0.0;
    for v in draws {
        *seen.entry(v).or_insert(0.0) += 1.0;
        n += 1.0;
    }
    let (mut cells, mut statistic, mut rest) = (0.0f64, 0.0, (n, n));
    for v in range {
        let (want, got) = (n * ln_p(v).exp(), seen.get(&v).copied().unwrap_or(0.0));
        if want >= 5.0 {
            statistic += (got - want).powi(2) / want;
            cells += 1.0;
            rest = (rest.0 - want, rest.1 - got);
        }
    }
    if rest.0 > 1.0 {
        statistic += (rest.1 - rest.0).powi(2) / rest.0;
    }
    (statistic - cells) / (2.0 * cells).sqrt()
}

/// Draws follow the laws, on both sides of every change of method; draws of a law nearby do not.
#[test]
fn draws_follow_the_law() {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    for rate in [0.3, 9.9, 10.1, 400.0] {
        let draws: Vec<i64> = (0..40_000)
            .map(|_| draw_poisson(rate, &mut rng).unwrap() as i64)
            .collect();
        let off = |rate: f64| {
            pearson(
                draws.iter().copied(),
                |k| poisson_ln_pmf(k as f64, rate).unwrap(),
                0..=1000,
            )
        };
        assert!(off(rate).abs() < 6.0, "rate {rate}: {}", off(rate));
        assert!(off(rate * 1.05) > 6.0, "rate {rate}: {}", off(rate * 1.05));
    }
    for (n, keep) in [(20u64, 0.2), (40, 0.7), (1000, 0.3), (1000, 0.004)] {
        let draws: Vec<i64> = (0..40_000)
            .map(|_| thin(n, keep, &mut rng).unwrap() as i64)
            .collect();
        // P(k | k + rest = n) of two Poisson counts.
        let ln_p = |k: i64, keep: f64| {
            let n = n as f64;
            let pois = |k: f64, rate: f64| poisson_ln_pmf(k, rate).unwrap();
            pois(k as f64, n * keep) + pois(n - k as f64, n * (1.0 - keep)) - pois(n, n)
        };
        let off = |keep: f64| pearson(draws.iter().copied(), |k| ln_p(k, keep), 0..=n as i64);
        assert!(off(keep).abs() < 6.0, "{n} {keep}: {}", off(keep));
        assert!(off(keep * 1.05) > 6.0, "{n} {keep}: {}", off(keep * 1.05));
    }
    for (p, q) in [(0.4, 2.0), (30.0, 12.0)] {
        let law = Skellam::new(p, q).unwrap();
        let draws = (0..40_000).map(|_| law.sample(&mut rng));
        let off = pearson(draws, |v| law.ln_pmf(v), -200..=200);
        assert!(off.abs() < 6.0, "{p} {q}: {off}");
    }
}

/// Large counts are thinned around their share, and the ends keep all or nothing.
#[test]
fn thinning_of_large_counts_and_refusals() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let n = 1u64 << 53;
    for keep in [0.1, 0.5, 0.999] {
        let kept = thin(n, keep, &mut rng).unwrap() as f64;
        let spread = (n as f64 * keep * (1.0 - keep)).sqrt();
        assert!((kept - n as f64 * keep).abs() < 8.0 * spread);
    }
    assert_eq!(
        (thin(n, 1.0, &mut rng), thin(n, 0.0, &mut rng)),
        (Ok(n), Ok(0))
    );
    assert!(thin(n + 1, 0.5, &mut rng).is_err());
    assert!(thin(1, 1.5, &mut rng).is_err() && thin(1, f64::NAN, &mut rng).is_err());
    assert!(draw_poisson(-1.0, &mut rng).is_err());
    let most = 2f64.powi(52);
    assert!(draw_poisson(most, &mut rng).is_ok() && draw_poisson(most + 1.0, &mut rng).is_err());
}

/// Samples less spread than a Poisson law have one rate only; all negative ones the other.
#[test]
fn fit_at_the_border() {
    let law = Skellam::fit(&[3, 4, 3, 2, 3]).unwrap();
    assert_eq!((law.plus(), law.minus()), (3.0, 0.0));
    let law = Skellam::fit(&[-3, -4, -3, -2, -3]).unwrap();
    assert_eq!((law.plus(), law.minus()), (0.0, 3.0));
    let law = Skellam::fit(&[0, 0]).unwrap();
    assert_eq!((law.plus(), law.minus()), (0.0, 0.0));
    assert!(Skellam::fit(&[]).is_err());
    assert!(Skellam::fit(&[1 << 52]).is_err());
}

/// One point has no skewness: there is none to divide by.
#[test]
fn one_point_has_no_skewness() {
    use statrs::statistics::DiscreteDistribution;
    let skewness = |p, q| DiscreteDistribution::skewness(&Skellam::new(p, q).unwrap());
    assert_eq!(skewness(0.0, 0.0), None);
    assert_eq!(skewness(0.0, 4.0), Some(-0.5));
    let law = Skellam::new(3.0, 4.0).unwrap();
    assert_eq!(DiscreteDistribution::mean(&law), Some(-1.0));
    assert_eq!(DiscreteDistribution::variance(&law), Some(7.0));
}

proptest! {
    /// `inverse_cdf(u)` is the least `v` with `cdf(v) ≥ u`, and the cdf grows by the pmf.
    #[test]
    fn inverse_of_the_cdf(p in 0.01..300.0f64, q in 0.01..300.0f64, u in 1e-6..0.999_999f64) {
        let law = Skellam::new(p, q).unwrap();
        let v = law.inverse_cdf(u);
        prop_assert!(law.cdf(v) >= u && law.cdf(v - 1) < u);
        prop_assert!((law.cdf(v) - law.cdf(v - 1) - law.pmf(v)).abs() <= 1e-13);
        prop_assert!((law.cdf(v) + law.sf(v) - 1.0).abs() <= 1e-15);
    }

    /// No rates near the fitted ones, off the line of equal means or on it, are more likely; the score is 0 inside.
    /// [SKELLAM eq. 7]
    #[test]
    fn fit_is_the_maximum(samples in prop::collection::vec(-40i64..60, 2..40)) {
        let law = Skellam::fit(&samples).unwrap();
        let ln = |p: f64, q: f64| samples.iter().map(|&v| skellam_ln_pmf(v as f64, p, q).unwrap()).sum::<f64>();
        let at = ln(law.plus(), law.minus());
        let slack = 1e-12 * (1.0 + at.abs());
        for step in [1e-3, 0.1, 1.0, 10.0] {
            for (a, b) in [(1.0, 1.0), (-1.0, -1.0), (1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)] {
                let (p, q) = (law.plus() + a * step, law.minus() + b * step);
                if p >= 0.0 && q >= 0.0 {
                    prop_assert!(ln(p, q) <= at + slack, "{law:?} {p} {q}");
                }
            }
        }
        if law.plus() > 0.0 && law.minus() > 0.0 {
            let score: f64 = samples.iter().map(|&v| skellam_ratios(v as f64, law.plus(), law.minus()).unwrap().0 - 1.0).sum();
            prop_assert!(score.abs() <= 1e-9 * samples.len() as f64, "{score}");
        }
    }
}

/// The law tends to the normal one: of samples `±x` both rates are `x²/2 (1 + c/x²)`, also where the slope of the likelihood has no digits.
#[test]
fn large_rates_are_fitted() {
    for x in [1_000i64, 5_000, 7_000, 1_000_000, 40_000_000] {
        let law = Skellam::fit(&[x, -x]).unwrap();
        let expected = 0.5 * (x as f64).powi(2);
        let apart = (law.minus() / expected - 1.0).abs();
        assert!(
            apart < 2.0 / expected + 1e-6 && law.mean() == 0.0,
            "{x}: {law:?}"
        );
    }
    // Beside many zeros one sample on either side is far out: the likelihood is still the largest there.
    let mut samples = vec![0; 9_998];
    samples.extend([1_000_000, -1_000_000]);
    let law = Skellam::fit(&samples).unwrap();
    let ln = |q: f64| {
        samples
            .iter()
            .map(|&v| skellam_ln_pmf(v as f64, q, q).unwrap())
            .sum::<f64>()
    };
    let q = law.minus();
    assert!(
        (q / 1e8 - 1.0 + 6.2e-6).abs() < 1e-6 && ln(q) >= ln(1e8),
        "{q}"
    );
    let law = Skellam::fit(&[3_000_000, 1_000_000]).unwrap();
    assert!((law.minus() / 0.5e12 - 1.0).abs() < 1e-5, "{law:?}");
}
