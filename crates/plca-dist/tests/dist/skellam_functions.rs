//! Skellam density, divergence and E-step ratios against reference values and their identities.

use crate::support;

use plca_dist::{
    poisson_ln_pmf, skellam_divergence, skellam_divergence_slice, skellam_limit_ratios,
    skellam_ln_pmf, skellam_ratios, skellam_ratios_slice,
};
use proptest::prelude::*;
use serde_json::Value;
use support::{error_in_eps, number, rows, worst};

const TABLES: &str = include_str!("../../testdata/skellam.json");

fn condition(v: f64, p: f64, q: f64) -> f64 {
    // The difference once rounded; exact in all tables but for near ties, which it describes well enough.
    (v.abs() + p + q) / ((v - p) + q).abs()
}

/// The stated errors: 1e-14 max(1, |value|) of the densities, 2e-15 (1 + condition) of the divergence.
/// [SKELLAM eq. 31]
#[test]
fn stated_errors_hold() {
    let (error, row) = worst(
        &rows(TABLES, "ln_pmf"),
        |x| skellam_ln_pmf(x[0], x[1], x[2]).unwrap(),
        |_, want| want.abs().max(1.0),
    );
    assert!(error <= 45.0, "ln pmf: {error} eps at {row:?}");
    let (error, row) = worst(
        &rows(TABLES, "poisson"),
        |x| poisson_ln_pmf(x[0], x[1]).unwrap(),
        |_, want| want.abs().max(1.0),
    );
    assert!(error <= 45.0, "Poisson: {error} eps at {row:?}");
    let (error, row) = worst(
        &rows(TABLES, "divergence"),
        |x| skellam_divergence(x[0], x[1], x[2]).unwrap(),
        |x, want| want * (1.0 + condition(x[0], x[1], x[2])),
    );
    assert!(error <= 9.0, "divergence: {error} eps at {row:?}");
}

/// The golden tables. [SKELLAM 1] [SKELLAM 4] [SKELLAM 5] [SKELLAM eq. 7] [SKELLAM eq. 31]
#[test]
fn golden_tables() {
    let file = include_str!("../../../testdata/golden/skellam_logpmf.json");
    let golden: Value = serde_json::from_str(file).unwrap();
    for case in golden["cases"].as_array().unwrap() {
        let [v, p, q, want] = ["v", "lp", "lm", "logpmf"].map(|k| number(&case[k]));
        let error = error_in_eps(
            skellam_ln_pmf(v, p, q).unwrap(),
            want,
            want.abs().clamp(1.0, f64::MAX),
        );
        assert!(error <= 45.0, "{error} eps: {case}");
    }
    let file = include_str!("../../../testdata/golden/divergence.json");
    let golden: Value = serde_json::from_str(file).unwrap();
    for case in golden["cases"].as_array().unwrap() {
        let [v, p, q, want] = ["v", "lp", "lm", "D"].map(|k| number(&case[k]));
        let got = skellam_divergence(v, p, q).unwrap();
        if want == 0.0 {
            assert_eq!(got, 0.0, "{case}");
        } else {
            let error = error_in_eps(got, want, want * (1.0 + number(&case["cond"])));
            assert!(error <= 9.0, "{error} eps: {got} {case}");
        }
    }
    let file = include_str!("../../../testdata/golden/ratio_G.json");
    let golden: Value = serde_json::from_str(file).unwrap();
    for case in golden["cases"].as_array().unwrap() {
        let [p, q, v1, v_inf] = ["lp", "lm", "v1", "vinf"].map(|k| number(&case[k]));
        let one = skellam_ratios(v1, p, q).unwrap();
        let limit = skellam_limit_ratios(v_inf, p, q).unwrap();
        for (got, want) in [(one, &case["G1"]), (limit, &case["Ginf"])] {
            for (got, want) in [(got.0, number(&want[0])), (got.1, number(&want[1]))] {
                let error = error_in_eps(got, want, want);
                assert!(error <= 8.0, "{error} eps: {got} {case}");
            }
        }
    }
}

#[test]
fn slices_are_the_scalars() {
    for n in [0, 1, 33, 64] {
        let v: Vec<f64> = (0..n).map(|i| f64::from(i % 7 - 3)).collect();
        let p: Vec<f64> = (0..n).map(|i| f64::from(i % 5) * 3.7).collect();
        let q: Vec<f64> = (0..n).map(|i| f64::from(i * i % 11)).collect();
        let (mut a, mut b) = (vec![f64::NAN; n as usize], vec![f64::NAN; n as usize]);
        skellam_ratios_slice(&v, &p, &q, &mut a, &mut b).unwrap();
        let mut d = vec![f64::NAN; n as usize];
        skellam_divergence_slice(&v, &p, &q, &mut d).unwrap();
        for i in 0..n as usize {
            assert_eq!(d[i], skellam_divergence(v[i], p[i], q[i]).unwrap());
            assert_eq!((a[i], b[i]), skellam_ratios(v[i], p[i], q[i]).unwrap());
        }
    }
    let (mut a, mut b) = ([7.0], [7.0]);
    assert!(skellam_ratios_slice(&[f64::NAN], &[1.0], &[1.0], &mut a, &mut b).is_err());
    assert!(skellam_ratios_slice(&[1.0], &[1.0], &[1.0, 2.0], &mut a, &mut b).is_err());
    assert!(skellam_divergence_slice(&[1.0], &[-1.0], &[1.0], &mut a).is_err());
    assert!(skellam_divergence_slice(&[1.0], &[1.0], &[1.0, 2.0], &mut a).is_err());
    assert_eq!((a, b), ([7.0], [7.0]));
}

#[test]
fn borders_and_refusals() {
    assert_eq!(skellam_ln_pmf(0.0, 0.0, 0.0), Ok(0.0));
    assert_eq!(skellam_ln_pmf(-1.0, 2.0, 0.0), Ok(f64::NEG_INFINITY));
    assert_eq!(skellam_divergence(-1.0, 2.0, 0.0), Ok(f64::INFINITY));
    assert_eq!(skellam_divergence(0.0, 0.0, 0.0), Ok(0.0));
    for bad in [f64::NAN, f64::INFINITY, -1.0, 1e301] {
        for (v, p, q) in [(1.0, bad, 1.0), (1.0, 1.0, bad)] {
            assert!(skellam_ln_pmf(v, p, q).is_err() && skellam_divergence(v, p, q).is_err());
            assert!(skellam_ratios(v, p, q).is_err() && skellam_limit_ratios(v, p, q).is_err());
        }
        assert!(bad == -1.0 || skellam_ln_pmf(bad, 1.0, 1.0).is_err());
        assert!(poisson_ln_pmf(bad, 1.0).is_err() && poisson_ln_pmf(1.0, bad).is_err());
    }
}

fn rate() -> impl Strategy<Value = f64> {
    prop_oneof![0.0..30.0f64, (-12.0..7.0f64).prop_map(|e| 10f64.powf(e))]
}

proptest! {
    /// `Σ_v Sk(v) = 1`. A wrong rate or a dropped factor shows.
    #[test]
    fn mass_is_one(p in 0.0..60.0f64, q in 0.0..60.0f64) {
        let reach = (p - q).abs() + 12.0 * (p + q).sqrt() + 40.0;
        let total: f64 = (-(reach as i64)..=reach as i64)
            .map(|v| skellam_ln_pmf(v as f64, p, q).unwrap().exp())
            .sum();
        prop_assert!((total - 1.0).abs() <= 1e-13, "{total}");
    }

    /// `Sk(-v; p,q) = Sk(v; q,p)` to the bit, and so for `D` and the ratios.
    #[test]
    fn mirrored(v in -50i32..50, p in rate(), q in rate()) {
        let v = f64::from(v);
        prop_assert_eq!(skellam_ln_pmf(v, p, q), skellam_ln_pmf(-v, q, p));
        prop_assert_eq!(skellam_divergence(v, p, q), skellam_divergence(-v, q, p));
        let (a, b) = (skellam_ratios(v, p, q).unwrap(), skellam_ratios(-v, q, p).unwrap());
        prop_assert_eq!(a, (b.1, b.0));
    }

    /// `p G⁺ - q G⁻ = v` for one draw and for infinitely many, and then `G⁺ G⁻ = 1`.
    #[test]
    fn ratios_keep_the_difference(v in -50i32..50, p in rate(), q in rate()) {
        let v = f64::from(v);
        prop_assume!(p > 0.0 && q > 0.0);
        for (a, b) in [skellam_ratios(v, p, q).unwrap(), skellam_limit_ratios(v, p, q).unwrap()] {
            let size = v.abs() + p * a + q * b;
            prop_assert!((p * a - q * b - v).abs() <= 16.0 * f64::EPSILON * size);
        }
        let (a, b) = skellam_limit_ratios(v, p, q).unwrap();
        prop_assert!((a * b - 1.0).abs() <= 4.0 * f64::EPSILON);
    }

    /// `D(cv | cp,cq) = c D(v | p,q)`, and `D` is the least over hidden counts: any split costs more. [SKELLAM eq. 32]
    #[test]
    fn homogeneous_and_least(v in -20.0..20.0f64, p in 0.1..30.0f64, q in 0.1..30.0f64, y in 0.0..40.0f64) {
        let d = skellam_divergence(v, p, q).unwrap();
        let scaled = skellam_divergence(4.0 * v, 4.0 * p, 4.0 * q).unwrap();
        prop_assert_eq!(scaled, 4.0 * d);
        let (x, y) = (v.max(0.0) + y, (-v).max(0.0) + y);
        prop_assert!(d <= (plca_dist::deviance(x, p) + plca_dist::deviance(y, q)) * (1.0 + 1e-11) + 1e-14);
    }

    /// Finite or `-inf`, never NaN, over the whole domain.
    #[test]
    fn never_nan(v in -300.0..300.0f64, p in -300.0..300.0f64, q in -300.0..300.0f64, sign in any::<bool>()) {
        let (v, p, q) = (10f64.powf(v) * if sign { 1.0 } else { -1.0 }, 10f64.powf(p), 10f64.powf(q));
        prop_assert!(!skellam_ln_pmf(v, p, q).unwrap().is_nan(), "{v} {p} {q}");
        let d = skellam_divergence(v, p, q).unwrap();
        prop_assert!(d >= 0.0, "{d}");
        let (a, b) = skellam_ratios(v, p, q).unwrap();
        prop_assert!(a >= 0.0 && b >= 0.0, "{a} {b}");
    }
}
