//! Divergences of gamma laws against their formula and reference values.

use plca_dist::{DistError, digamma, gamma_shape_kl_slice, ln_gamma};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// The formula, to the error that is stated and that of the formula.
    /// [DLMF 5.11.1] [DLMF 5.11.2]
    #[test]
    fn slices_of_gamma_divergences(pairs in prop::collection::vec((-2.5..7.0f64, -2.5..4.0f64), 1..40)) {
        let (s, a): (Vec<f64>, Vec<f64>) = pairs.into_iter().map(|(s, a)| (10f64.powf(s), 10f64.powf(a))).unzip();
        let mut kl = vec![0.0; s.len()];
        gamma_shape_kl_slice(&s, &a, &mut kl).unwrap();
        for ((&got, &s), &a) in kl.iter().zip(&s).zip(&a) {
            let want = (s - a) * digamma(s).unwrap() - ln_gamma(s).unwrap() + ln_gamma(a).unwrap();
            let stated = 12.0 + s + a * (1.0 + s.ln().abs()) + a * a.ln().abs() + 1.0 / s;
            let scalar = (s - a).abs() * (1.0 + s.ln().abs() + 1.0 / s) + s * s.ln().abs();
            prop_assert!((got - want).abs() <= 16.0 * f64::EPSILON * (stated + scalar), "{} {}: {} {}", s, a, got, want);
        }
        let mut none = vec![7.0; s.len()];
        gamma_shape_kl_slice(&s, &s, &mut none).unwrap();
        prop_assert!(none.iter().all(|&x| x == 0.0));
    }
}

/// Against 40 digits, to the error that is stated. [DLMF 5.11.1] [DLMF 5.11.2]
#[test]
fn slices_of_gamma_divergences_keep_their_digits() {
    let cases = [
        (1e15, 1.0, 999_999_999_999_981.4),
        (1e21, 1.0, 1e21),
        (1e-3, 2.0, 1_993.243_389_406_305),
        (1.0, 1e-2, 4.028_036_369_789_504),
        (340.0, 341.0, 0.001_471_309_111_256_453),
    ];
    let s = cases.map(|c| c.0);
    let a = cases.map(|c| c.1);
    let mut kl = [0.0; 5];
    gamma_shape_kl_slice(&s, &a, &mut kl).unwrap();
    for (got, (s, a, want)) in kl.into_iter().zip(cases) {
        let stated = 12.0 + s + a * (1.0 + s.ln().abs()) + 1.0 / s;
        assert!(
            (got - want).abs() <= 16.0 * f64::EPSILON * stated,
            "{got} {want}"
        );
    }
}

#[test]
fn refusals() {
    let mut out = [7.0; 2];
    for bad in [0.0, -1.0, 1e-301, f64::NAN, f64::INFINITY] {
        for (shape, prior) in [([1.0, bad], [1.0, 1.0]), ([1.0, 1.0], [1.0, bad])] {
            let refused = gamma_shape_kl_slice(&shape, &prior, &mut out);
            assert!(matches!(refused, Err(DistError::Domain { .. })));
        }
    }
    let refused = gamma_shape_kl_slice(&[1.0], &[1.0, 1.0], &mut out);
    assert!(matches!(refused, Err(DistError::Length { .. })));
    assert!(gamma_shape_kl_slice(&[1.0], &[1.0], &mut out).is_err());
    assert_eq!(out, [7.0; 2]);
}
