//! The diffnomial law against reference values, its special cases and its own draws.

use crate::support;

use plca_dist::{Diffnomial, DistError, skellam_ln_pmf};
use proptest::prelude::*;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::Value;
use support::{error_in_eps, number, rows, worst};

fn near(got: f64, want: f64, rel: f64) -> bool {
    error_in_eps(got, want, want.abs()) <= rel / f64::EPSILON
}

/// The variance keeps its digits for all totals: 100 eps.
#[test]
fn variances_meet_references() {
    let rows = rows(include_str!("../../testdata/diffnomial.json"), "variance");
    let variance = |x: &[f64]| Diffnomial::new(x[0] as i64, &x[1..2], &x[2..3])?.variance(0);
    let (error, row) = worst(&rows, |x| variance(x).unwrap().0, |_, want| want);
    assert!(error <= 100.0, "{error} eps at {row:?}");
}

/// One side of a `K x 2` array.
fn side(pairs: &Value, s: usize) -> Vec<f64> {
    pairs
        .as_array()
        .unwrap()
        .iter()
        .map(|p| number(&p[s]))
        .collect()
}

/// The golden table. [SKELLAM 2] [SKELLAM eq. 7] [SKELLAM eq. 9]
#[test]
fn golden_table() {
    let file = include_str!("../../../testdata/golden/diffnomial.json");
    let golden: Value = serde_json::from_str(file).unwrap();
    let rtol = number(&golden["rtol"]);
    for case in golden["cases"].as_array().unwrap() {
        let (plus, minus) = (side(&case["lam"], 0), side(&case["lam"], 1));
        let law = Diffnomial::new(case["v"].as_i64().unwrap(), &plus, &minus).unwrap();
        assert!(near(law.ln_normaliser(), number(&case["log_norm"]), rtol));
        for point in case["points"].as_array().unwrap() {
            let counts =
                |s| -> Vec<u64> { side(&point["s"], s).iter().map(|&n| n as u64).collect() };
            let got = law.ln_pmf(&counts(0), &counts(1)).unwrap();
            assert!(near(got, number(&point["logpmf"]), rtol), "{got} {point}");
        }
        for k in 0..plus.len() {
            let (mean, var) = (law.mean(k).unwrap(), law.variance(k).unwrap());
            for (got, want) in [(mean, &case["mean"][k]), (var, &case["var"][k])] {
                assert!(near(got.0, number(&want[0]), rtol), "{got:?} {want}");
                assert!(near(got.1, number(&want[1]), rtol), "{got:?} {want}");
            }
        }
        for (j, want) in case["log_marginal_k0_plus_0_to_9"]
            .as_array()
            .unwrap()
            .iter()
            .enumerate()
        {
            let got = law.ln_marginal_plus(0, j as u64).unwrap();
            assert!(near(got, number(want), rtol), "{got} {want}");
        }
    }
}

#[test]
fn refusals() {
    let rates = [1.0, 2.0];
    for bad in [-1.0, f64::NAN, f64::INFINITY, 1e16] {
        assert!(Diffnomial::new(0, &[1.0, bad], &rates).is_err());
        assert!(Diffnomial::new(0, &rates, &[bad, 1.0]).is_err());
    }
    assert!(matches!(
        Diffnomial::new(1, &[0.0; 2], &rates),
        Err(DistError::Domain { name: "v", .. })
    ));
    assert!(
        Diffnomial::new(-1, &rates, &[0.0; 2]).is_err()
            && Diffnomial::new(i64::MIN, &rates, &rates).is_err()
    );
    assert!(Diffnomial::new(0, &rates, &[1.0]).is_err() && Diffnomial::new(0, &[], &[]).is_err());
    assert!(Diffnomial::replicated(0, 0, &rates, &rates).is_err());
    let law = Diffnomial::replicated(1, 2, &rates, &rates).unwrap();
    assert_eq!(law.counts(), 4);
    assert!(law.mean(2).is_err() && law.variance(2).is_err());
    assert!(law.ln_marginal_plus(2, 0).is_err() && law.ln_marginal_minus(0, u64::MAX).is_err());
    assert!(law.ln_pmf(&[0; 2], &[0; 4]).is_err());
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    assert!(law.sample_into(&mut [0; 4], &mut [0; 2], &mut rng).is_err());
}

/// Draws have the stated means and variances, within six standard errors; those of a law nearby have not.
#[test]
fn draws_follow_the_law() {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    for (v, replicates, scale) in [
        (0, 1, 1.0),
        (7, 1, 0.2),
        (-3, 3, 1.0),
        (50, 1, 40.0),
        (4, 2, 1e3),
    ] {
        let (plus, minus) = (
            [1.0, 0.0, 2.5].map(|x| x * scale),
            [0.3, 2.0, 0.0].map(|x| x * scale),
        );
        let law = Diffnomial::replicated(v, replicates, &plus, &minus).unwrap();
        let other =
            Diffnomial::replicated(v + 1 + scale as i64, replicates, &plus, &minus).unwrap();
        let n = 20_000;
        let mut sums = [[0.0f64; 4]; 6];
        let (mut a, mut b) = (vec![0; law.counts()], vec![0; law.counts()]);
        for _ in 0..n {
            law.sample_into(&mut a, &mut b, &mut rng).unwrap();
            let total = |s: &[u64]| s.iter().sum::<u64>() as i64;
            assert_eq!(total(&a) - total(&b), v);
            for k in 0..3 {
                // The last replicate: the one that gets the rest.
                for (s, want, i) in [
                    (a[law.counts() - 3 + k], law.mean(k).unwrap().0, 2 * k),
                    (b[law.counts() - 3 + k], law.mean(k).unwrap().1, 2 * k + 1),
                ] {
                    let off = s as f64 - want;
                    for (power, sum) in (1..).zip(&mut sums[i]) {
                        *sum += off.powi(power);
                    }
                }
            }
        }
        let n = f64::from(n);
        let mut apart = 0.0f64;
        for k in 0..3 {
            #[rustfmt::skip]
            let cases = [
                (2 * k, law.mean(k).unwrap().0, law.variance(k).unwrap().0, other.mean(k).unwrap().0),
                (2 * k + 1, law.mean(k).unwrap().1, law.variance(k).unwrap().1, other.mean(k).unwrap().1),
            ];
            for (i, mean, var, elsewhere) in cases {
                let [first, second, _, fourth] = sums[i].map(|s| s / n);
                assert!(
                    first.abs() <= 6.0 * (var / n).sqrt(),
                    "mean of {i}: {first} {law:?}"
                );
                let error = ((fourth - var * var).max(0.0) / n).sqrt();
                assert!(
                    (second - var).abs() <= 6.0 * error,
                    "variance of {i}: {second} {var} {law:?}"
                );
                apart = apart.max((mean + first - elsewhere).abs() / (var / n).sqrt().max(1e-300));
            }
        }
        assert!(apart > 6.0, "{apart} {law:?}");
    }
}

/// Rates, their totals and the difference reach as far as 2^51, and no further.
#[test]
fn limits_are_those_promised() {
    let most = 2f64.powi(51);
    let rate = |rate, replicates| Diffnomial::replicated(0, replicates, &[rate], &[1.0]).is_ok();
    assert!(rate(most, 1) && !rate(most + 1.0, 1));
    assert!(rate(0.5 * most, 2) && !rate(0.5 * most + 1.0, 2));
    assert!(rate(0.0, 1) && !rate(-0.5, 1));
    let difference = |v| Diffnomial::new(v, &[1.0], &[1.0]);
    for v in [1 << 51, -(1 << 51)] {
        assert!(difference(v).is_ok() && difference(v + v.signum()).is_err());
    }
    // A side of no rates has no counts.
    let sides = |v, p, q| Diffnomial::new(v, &[p], &[q]).is_ok();
    assert!(sides(0, 0.0, 0.0) && sides(1, 1.0, 0.0) && sides(-1, 0.0, 1.0));
    assert!(!sides(1, 0.0, 1.0) && !sides(-1, 1.0, 0.0));
    let nothing = Diffnomial::new(0, &[0.0], &[0.0]).unwrap();
    assert_eq!(nothing.ln_normaliser(), 0.0);
}

fn rates() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(prop_oneof![3 => 0.01..3.0f64, 1 => Just(0.0)], 2..=2)
}

proptest! {
    /// `Σ_s p(s | v) = 1`, with the stated means and variances, by enumeration. [SKELLAM 2] [SKELLAM eq. 7]
    /// [SKELLAM eq. 9]
    #[test]
    fn enumeration(v in -3i64..4, a in rates(), b in rates()) {
        let Ok(law) = Diffnomial::new(v, &a, &b) else {
            prop_assume!(false);
            unreachable!()
        };
        // Σ over one side of two components, up to totals that hold all but 1e-16.
        let (mut mass, mut first, mut second) = (0.0, 0.0, 0.0);
        for plus in 0..36u64 {
            let Ok(minus) = u64::try_from(plus as i64 - v) else { continue };
            for i in 0..=plus {
                for j in 0..=minus {
                    let p = law.ln_pmf(&[i, plus - i], &[j, minus - j]).unwrap().exp();
                    mass += p;
                    first += p * i as f64;
                    second += p * (i as f64).powi(2);
                }
            }
        }
        prop_assert!((mass - 1.0).abs() <= 1e-11, "{mass}");
        prop_assert!((first - law.mean(0).unwrap().0).abs() <= 1e-10);
        prop_assert!((second - first * first - law.variance(0).unwrap().0).abs() <= 1e-8);
    }

    /// Marginals sum to 1 and have the stated mean. [SKELLAM 2]
    #[test]
    fn marginals(v in -20i64..20, replicates in 1usize..4, a in rates(), b in rates()) {
        prop_assume!(a[0] > 0.0 && b[0] > 0.0);
        let law = Diffnomial::replicated(v, replicates, &a, &b).unwrap();
        let (mean_plus, mean_minus) = law.mean(0).unwrap();
        for (mean, ln_p) in [
            (mean_plus, &(|j| law.ln_marginal_plus(0, j).unwrap()) as &dyn Fn(u64) -> f64),
            (mean_minus, &|j| law.ln_marginal_minus(0, j).unwrap()),
        ] {
            let p: Vec<f64> = (0..120).map(|j| ln_p(j).exp()).collect();
            prop_assert!((p.iter().sum::<f64>() - 1.0).abs() <= 1e-12);
            let first: f64 = p.iter().zip(0..).map(|(p, j)| p * f64::from(j)).sum();
            prop_assert!((first - mean).abs() <= 1e-11 * (1.0 + mean));
        }
    }

    /// `Var m = PQ - E[S⁺] E[S⁻]`, across the change to the expansion. `ln Z = P + Q + ln Sk`.
    #[test]
    fn variance_of_the_lesser_total(v in -60i64..60, p in 0.01..60.0f64, q in 0.01..60.0f64) {
        let (a, b) = ([p], [q]);
        let law = Diffnomial::new(v, &a, &b).unwrap();
        let (plus, minus) = law.mean(0).unwrap();
        let (var, _) = law.variance(0).unwrap();
        prop_assert!((var - (p * q - plus * minus)).abs() <= 1e-14 * (p * q + plus * minus));
        let want = p + q + skellam_ln_pmf(v as f64, p, q).unwrap();
        prop_assert!((law.ln_normaliser() - want).abs() <= 1e-13 * (200.0 + p + q));
        // (λ⁺, λ⁻) -> (c λ⁺, λ⁻/c) changes nothing.
        let (a, b) = ([4.0 * p], [0.25 * q]);
        let same = Diffnomial::new(v, &a, &b).unwrap().variance(0).unwrap();
        prop_assert!(near(same.0, var, 1e-12) && near(same.1, var, 1e-12));
    }
}
