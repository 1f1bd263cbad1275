//! Lambert W against reference values and its defining equation.

use crate::support;

use plca_dist::{
    DistError, lambert_w0, lambert_w0_exp, lambert_wm1, lambert_wm1_gap, ln_lambert_w0_exp,
    ln_neg_lambert_w0_gap,
};
use proptest::prelude::*;
use serde_json::Value;
use support::{rows, worst};

const TABLES: &str = include_str!("../../testdata/lambert.json");

fn relative(_: &[f64], want: f64) -> f64 {
    want.abs()
}

/// The stated 4 eps, over the whole range of doubles and up to the branch point. [SPEC 6] [DLMF 4.13]
#[test]
fn stated_errors_hold() {
    type Form = fn(&[f64]) -> f64;
    let forms: [(&str, Form); 5] = [
        ("wm1", |x| lambert_wm1(x[0]).unwrap()),
        ("w0", |x| lambert_w0(x[0]).unwrap()),
        ("ln_w0_exp", |x| ln_lambert_w0_exp(x[0]).unwrap()),
        ("gap_ln_neg_w0", |x| ln_neg_lambert_w0_gap(x[0]).unwrap()),
        // What is stored is W + 1; adding 1 back is exact only to the rounding of W.
        ("gap_wm1_plus_1", |x| lambert_wm1_gap(x[0]).unwrap() + 1.0),
    ];
    for (name, form) in forms {
        let scale = |x: &[f64], want: f64| match name {
            "gap_wm1_plus_1" => 1.0 + relative(x, want),
            _ => relative(x, want),
        };
        let (error, row) = worst(&rows(TABLES, name), form, scale);
        assert!(error <= 4.0, "{name}: {error} eps at {row:?}");
    }
}

/// The golden table: both branches of negative arguments, log of `W_0` of positive ones. [SPEC 6]
#[test]
fn golden_table() {
    let golden: Value =
        serde_json::from_str(include_str!("../../../testdata/golden/lambert_w.json")).unwrap();
    let mut seen = 0;
    for case in golden["cases"].as_array().unwrap() {
        for row in case["rows"].as_array().unwrap() {
            let near = |got: f64, key: &str, tolerance: f64| {
                let want = row[key].as_f64().unwrap();
                assert!(
                    // A value of 5e-58 is the reference's own rounding of a zero.
                    (got - want).abs() <= tolerance * want.abs() + 1e-50,
                    "{key} {got} {want} {row}"
                );
            };
            if let Some(l) = row["log_abs_arg"].as_f64() {
                let gap = -1.0 - l;
                near(lambert_wm1_gap(gap).unwrap(), "W_minus1", 4e-15);
                near(ln_neg_lambert_w0_gap(gap).unwrap(), "log_abs_W0", 4e-15);
            } else {
                let l = row["log_arg"].as_f64().unwrap();
                near(ln_lambert_w0_exp(l).unwrap(), "log_W0", 4e-15);
            }
            seen += 1;
        }
    }
    assert!(seen > 50, "{seen}");
}

#[test]
fn borders_and_refusals() {
    assert_eq!(lambert_w0(-0.36787944117144233), Ok(-1.0));
    assert_eq!(lambert_wm1(-0.36787944117144233), Ok(-1.0));
    assert_eq!(lambert_w0(0.0), Ok(0.0));
    assert!(lambert_w0(-0.0).is_ok_and(|w| w == 0.0));
    assert_eq!(lambert_wm1_gap(0.0), Ok(-1.0));
    assert_eq!(ln_neg_lambert_w0_gap(0.0), Ok(0.0));
    assert_eq!(lambert_w0_exp(-800.0), Ok(0.0));
    let refused = |r: Result<f64, DistError>| matches!(r, Err(DistError::Domain { .. }));
    for x in [-0.3678794411714424, f64::NAN, f64::NEG_INFINITY] {
        assert!(refused(lambert_w0(x)) && refused(lambert_wm1(x)), "{x}");
    }
    assert!(refused(lambert_w0(f64::INFINITY)));
    assert!(refused(lambert_wm1(0.0)) && refused(lambert_wm1(1.0)));
    for g in [-1e-300, f64::NAN, f64::INFINITY] {
        assert!(refused(lambert_wm1_gap(g)) && refused(ln_neg_lambert_w0_gap(g)));
        assert!(g == -1e-300 || (refused(ln_lambert_w0_exp(g)) && refused(lambert_w0_exp(g))));
    }
}

proptest! {
    /// `w + ln w = l` for `w = W_0(e^l)`, and `ln W_0(e^l) + W_0(e^l) = l`.
    #[test]
    fn defining_equation(l in prop_oneof![-700.0..1e3f64, 1e3..1e300f64]) {
        let (w, q) = (lambert_w0_exp(l).unwrap(), ln_lambert_w0_exp(l).unwrap());
        let bound = 4.0 * f64::EPSILON * l.abs().max(1.0);
        prop_assert!((w + w.ln() - l).abs() <= bound, "{w}");
        prop_assert!((w + q - l).abs() <= bound, "{w} {q}");
    }

    /// `u - ln u = y` on both branches, and the branches lie on their side of 1. [DLMF 4.13]
    #[test]
    fn both_branches(y in prop_oneof![1.0..1.1f64, 1.0..700.0f64]) {
        let u = -lambert_wm1_gap(y - 1.0).unwrap();
        let q = ln_neg_lambert_w0_gap(y - 1.0).unwrap();
        prop_assert!(u >= 1.0 && q <= 0.0);
        prop_assert!((u - u.ln() - y).abs() <= 4.0 * f64::EPSILON * y);
        prop_assert!((q.exp() - q - y).abs() <= 4.0 * f64::EPSILON * y);
    }

    /// `W_0` increases and `W_-1` decreases.
    #[test]
    fn monotone(a in -0.3678794..-1e-9f64, step in 1e-9..0.3f64) {
        let b = (a + step).min(-1e-10);
        prop_assert!(lambert_w0(a).unwrap() < lambert_w0(b).unwrap());
        prop_assert!(lambert_wm1(a).unwrap() > lambert_wm1(b).unwrap());
    }
}
