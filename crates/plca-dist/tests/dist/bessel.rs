//! Bessel ratios and `ln 0F1` against reference values, recurrences and bounds.

use crate::support;

use plca_dist::{bessel_ratio, bessel_rho, ln_0f1};
use proptest::prelude::*;
use serde_json::Value;
use support::{error_in_eps, number, rows, worst};

const TABLES: &str = include_str!("../../testdata/bessel.json");

/// The stated errors: 1e-15 for `ρ`, 4e-15 for `ln 0F1`, orders to 1e8, arguments from 1e-300 to 1e300. [DLMF 10.39.9]
/// [DLMF 10.41]
#[test]
fn stated_errors_hold() {
    let (error, row) = worst(
        &rows(TABLES, "rho"),
        |x| bessel_rho(x[0], x[1]).unwrap(),
        |_, want| want.abs(),
    );
    assert!(error <= 4.5, "rho: {error} eps at {row:?}");
    let (error, row) = worst(
        &rows(TABLES, "ln_0f1"),
        |x| ln_0f1(x[0], x[1]).unwrap(),
        |_, want| want.abs(),
    );
    assert!(error <= 18.0, "ln 0F1: {error} eps at {row:?}");
}

/// The golden tables. [SKELLAM 10] [DLMF 10.39.9] [DLMF 10.41]
#[test]
fn golden_tables() {
    let golden: Value =
        serde_json::from_str(include_str!("../../../testdata/golden/bessel_ratio.json")).unwrap();
    for case in golden["cases"].as_array().unwrap() {
        let (nu, z) = (number(&case["nu"]), number(&case["z"]));
        let error = error_in_eps(
            bessel_rho(nu, z).unwrap(),
            number(&case["rho"]),
            number(&case["rho"]),
        );
        assert!(error <= 4.5, "{error} eps: {case}");
        if !case["r_subnormal"].as_bool().unwrap() {
            let error = error_in_eps(
                bessel_ratio(nu, z).unwrap(),
                number(&case["r"]),
                number(&case["r"]),
            );
            assert!(error <= 5.0, "{error} eps: {case}");
        }
    }
    let golden: Value =
        serde_json::from_str(include_str!("../../../testdata/golden/log0f1.json")).unwrap();
    for case in golden["cases"].as_array().unwrap() {
        let want = number(&case["log0f1"]);
        let got = ln_0f1(number(&case["nu"]), number(&case["x"])).unwrap();
        let error = error_in_eps(got, want, want);
        assert!(error <= 18.0, "{error} eps: {case}");
    }
}

#[test]
fn refusals() {
    for bad in [-1.0, f64::NAN, f64::INFINITY, 1e301] {
        assert!(bessel_rho(bad, 1.0).is_err() && bessel_rho(1.0, bad).is_err());
        assert!(bessel_ratio(bad, 1.0).is_err() && bessel_ratio(1.0, bad).is_err());
        assert!(ln_0f1(bad, 1.0).is_err() && ln_0f1(1.0, bad).is_err());
    }
    assert_eq!(bessel_rho(0.0, 0.0), Ok(1.0));
    assert_eq!(ln_0f1(1e300, 0.0), Ok(0.0));
}

fn wide() -> impl Strategy<Value = f64> {
    prop_oneof![
        0.0..40.0f64,
        (-20.0..8.0f64).prop_map(|e| 10f64.powf(e)),
        Just(0.0)
    ]
}

proptest! {
    /// `ρ_ν = 1/(ν + 1 + (z²/4) ρ_{ν+1})`: the two sides take different paths. [DLMF 10.29.1]
    #[test]
    fn recurrence(nu in wide(), z in wide()) {
        let (low, high) = (bessel_rho(nu, z).unwrap(), bessel_rho(nu + 1.0, z).unwrap());
        let want = 1.0 / (nu + 1.0 + 0.25 * z * z * high);
        prop_assert!((low - want).abs() <= 10.0 * f64::EPSILON * want, "{low:e} {want:e}");
    }

    /// Amos's bounds, and `r` between 0 and 1. [SKELLAM 10]
    #[test]
    fn amos_bounds(nu in wide(), z in wide()) {
        let r = bessel_ratio(nu, z).unwrap();
        let slack = 1.0 + 8.0 * f64::EPSILON;
        prop_assert!(z / (nu + 0.5 + (nu + 1.5).hypot(z)) <= r * slack);
        prop_assert!(r <= z / (nu + 0.5 + (nu + 0.5).hypot(z)) * slack);
        prop_assert!((0.0..=1.0).contains(&r));
    }

    /// `ρ` falls with the order and with the argument, up to rounding.
    #[test]
    fn monotone(nu in wide(), z in wide(), step in 0.01..2.0f64) {
        let at = bessel_rho(nu, z).unwrap() * (1.0 + 8.0 * f64::EPSILON);
        prop_assert!(bessel_rho(nu * (1.0 + step), z).unwrap() <= at);
        prop_assert!(bessel_rho(nu, z * (1.0 + step)).unwrap() <= at);
    }

    /// `d ln 0F1(; ν+1; x) / dx = ρ_ν(2√x)` by central differences: ties the two functions together.
    #[test]
    fn derivative_of_ln_0f1(nu in 0.0..60.0f64, x in 0.1..2e3f64) {
        let h = 1e-4 * x;
        let slope = (ln_0f1(nu, x + h).unwrap() - ln_0f1(nu, x - h).unwrap()) / (2.0 * h);
        let want = bessel_rho(nu, 2.0 * x.sqrt()).unwrap();
        prop_assert!((slope - want).abs() <= 2e-8 * want + 1e-15 * ln_0f1(nu, x).unwrap() / h);
    }
}
