//! The digamma family against reference values, recurrences and each other.

use crate::support;

use plca_dist::{
    digamma, exp_digamma, exp_digamma_slice, inverse_digamma, ln_gamma, stirling_error, trigamma,
};
use proptest::prelude::*;
use serde_json::Value;
use support::{error_in_eps, number, rows, worst};

const TABLES: &str = include_str!("../../testdata/digamma.json");

fn check(table: &str, limit: f64, f: impl Fn(f64) -> f64, scale: impl Fn(f64, f64) -> f64) {
    let (error, row) = worst(&rows(TABLES, table), |x| f(x[0]), |x, w| scale(x[0], w));
    assert!(error <= limit, "{table}: {error} eps at {row:?}");
}

/// Of `ψ`, `ψ'`, `ln Γ` and what Stirling's formula leaves of it, on every branch. [DLMF 5.11.1] [DLMF 5.11.2]
/// [DLMF 5.15.8]
#[test]
fn stated_errors_hold() {
    let relative = |_: f64, want: f64| want.abs();
    check("digamma", 4.0, |x| digamma(x).unwrap(), relative);
    check("trigamma", 4.0, |x| trigamma(x).unwrap(), relative);
    check(
        "ln_gamma",
        4.0,
        |x| ln_gamma(x).unwrap(),
        |_, want| want.abs().max(0.1),
    );
    check(
        "exp_digamma",
        8.0,
        |x| exp_digamma(x).unwrap(),
        |x, want| want * (1.0 + 1.0 / x),
    );
    check(
        "inverse_digamma",
        4.5,
        |y| inverse_digamma(y).unwrap(),
        |y, want| want * (1.0 + y.abs()),
    );
    check(
        "stirling_error",
        8.0,
        |x| stirling_error(x).unwrap(),
        |x, want| if x < 1.0 { 0.25 * (1.0 - x.ln()) } else { want },
    );
}

/// The golden table of the inverse. [SKELLAM 10]
#[test]
fn golden_table() {
    let file = include_str!("../../../testdata/golden/inv_digamma.json");
    let golden: Value = serde_json::from_str(file).unwrap();
    for case in golden["cases"].as_array().unwrap() {
        let (y, want) = (number(&case["y"]), number(&case["x"]));
        let error = error_in_eps(inverse_digamma(y).unwrap(), want, want * (1.0 + y.abs()));
        assert!(error <= 4.5, "{error} eps: {case}");
    }
}

#[test]
fn slices_are_the_scalars() {
    for n in [0usize, 1, 32, 45] {
        let x: Vec<f64> = (0..n).map(|i| 1e-3 * 1.9f64.powi(i as i32)).collect();
        let mut exp = vec![f64::NAN; n];
        exp_digamma_slice(&x, &mut exp).unwrap();
        for i in 0..n {
            assert_eq!(exp[i], exp_digamma(x[i]).unwrap());
        }
    }
    let mut out = [7.0; 2];
    assert!(exp_digamma_slice(&[1.0, 0.0], &mut out).is_err());
    assert!(exp_digamma_slice(&[1.0], &mut out).is_err());
    assert_eq!(out, [7.0; 2]);
}

/// What overflows the stack or loops elsewhere is refused here.
#[test]
fn borders_and_refusals() {
    for bad in [0.0, -0.5, -1e9, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert!(digamma(bad).is_err() && trigamma(bad).is_err());
        assert!(exp_digamma(bad).is_err() && ln_gamma(bad).is_err());
        assert!(stirling_error(bad).is_err());
        assert!(bad.is_finite() || inverse_digamma(bad).is_err());
    }
    assert_eq!(exp_digamma(1e-5), Ok(0.0));
    assert_eq!(inverse_digamma(800.0), Ok(f64::INFINITY));
    assert_eq!(exp_digamma(f64::MAX), Ok(f64::MAX));
    assert_eq!(digamma(1e-310), Ok(f64::NEG_INFINITY));
    // Below the normal numbers, but not yet 0.
    assert!((1e-320..1e-308).contains(&exp_digamma(1.0 / 735.0).unwrap()));
}

proptest! {
    /// `ψ(x+1) = ψ(x) + 1/x` and `ψ'(x+1) = ψ'(x) - 1/x²`. [DLMF 5.5.2]
    #[test]
    fn recurrence(x in prop_oneof![1e-3..30.0f64, 30.0..1e6f64]) {
        let (a, b) = (digamma(x).unwrap(), digamma(x + 1.0).unwrap());
        prop_assert!((b - a - 1.0 / x).abs() <= 8.0 * f64::EPSILON * (a.abs() + b.abs() + 1.0 / x));
        let (a, b) = (trigamma(x).unwrap(), trigamma(x + 1.0).unwrap());
        prop_assert!((a - b - 1.0 / (x * x)).abs() <= 8.0 * f64::EPSILON * a);
    }

    /// There and back again, from 1e-15 to 1e250. [DLMF 5.11.2]
    #[test]
    fn inverse_of_digamma(e in -15.0..250.0f64) {
        let x = 10f64.powf(e);
        let y = digamma(x).unwrap();
        let back = inverse_digamma(y).unwrap();
        prop_assert!((back - x).abs() <= 8.0 * f64::EPSILON * x * (1.0 + y.abs()), "{x:e} {back:e}");
    }

    /// `e^ψ` of its own formula is the exponential of `ψ`, and lies between `x - 1/2` and `x`, up to rounding.
    #[test]
    fn exponential(e in -2.0..200.0f64) {
        let x = 10f64.powf(e);
        let (got, want) = (exp_digamma(x).unwrap(), digamma(x).unwrap().exp());
        prop_assert!((got - want).abs() <= 8.0 * f64::EPSILON * want * (2.0 + 1.0 / x + x.ln().abs()));
        let slack = 4.0 * f64::EPSILON;
        prop_assert!(got <= x * (1.0 + slack) && got >= (x - 0.5) * (1.0 - slack));
    }

    /// `ψ` increases, `ψ'` falls.
    #[test]
    fn monotone(x in 1e-6..100.0f64, step in 1e-6..1.0f64) {
        prop_assert!(digamma(x).unwrap() < digamma(x * (1.0 + step)).unwrap());
        prop_assert!(trigamma(x).unwrap() > trigamma(x * (1.0 + step)).unwrap());
    }
}

/// The logarithm of the gamma function is the same routine with and without the feature `distributions`.
#[test]
fn the_feature_changes_no_bit_of_ln_gamma() {
    let exponents = (-300..=300).map(|e| 10f64.powi(e));
    let numbers = (1..4000).map(|i| f64::from(i) / 128.0);
    for x in exponents.chain(numbers) {
        let (by_feature, without) = (ln_gamma(x).unwrap(), libm::lgamma_r(x).0);
        assert_eq!(by_feature.to_bits(), without.to_bits(), "{x}");
    }
}
