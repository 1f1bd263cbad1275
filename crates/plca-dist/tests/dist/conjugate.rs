//! Gamma and Dirichlet posteriors against integrals and identities.

use plca_dist::{
    DistError, digamma, dirichlet_kl, dirichlet_mean_ln, gamma_kl, gamma_mean_ln,
    gamma_shape_kl_slice, ln_gamma,
};
use proptest::prelude::*;

/// `∫ f(ln x) p(x) dx` of a gamma law, by the trapezoidal rule in `ln x`: exact to rounding for such integrands.
fn gamma_mean(shape: f64, rate: f64, f: impl Fn(f64) -> f64) -> f64 {
    let norm = shape * rate.ln() - ln_gamma(shape).unwrap();
    let step = 1.0 / 64.0;
    (-8000..1000)
        .map(|i| {
            let u = f64::from(i) * step;
            (shape * u - rate * u.exp() + norm).exp() * f(u) * step
        })
        .sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Both are means under the law.
    #[test]
    fn gamma_is_its_integral(s in 0.5..40.0f64, r in 0.1..10.0f64, a in 0.5..40.0f64, b in 0.1..10.0f64) {
        let want = gamma_mean(s, r, |ln| ln);
        prop_assert!((gamma_mean_ln(s, r).unwrap() - want).abs() <= 1e-11 * (1.0 + want.abs()));
        let ln_p = |s: f64, r: f64, ln: f64| s * r.ln() - ln_gamma(s).unwrap() + (s - 1.0) * ln - r * ln.exp();
        let want = gamma_mean(s, r, |ln| ln_p(s, r, ln) - ln_p(a, b, ln));
        prop_assert!((gamma_kl((s, r), (a, b)).unwrap() - want).abs() <= 1e-10 * (1.0 + want.abs()));
    }

    /// The form for slices is the scalar one, to the error that it states and that of the scalar form.
    /// [DLMF 5.11.1] [DLMF 5.11.2]
    #[test]
    fn slices_of_gamma_divergences(pairs in prop::collection::vec((-2.5..7.0f64, -2.5..4.0f64), 1..40)) {
        let (s, a): (Vec<f64>, Vec<f64>) = pairs.into_iter().map(|(s, a)| (10f64.powf(s), 10f64.powf(a))).unzip();
        let mut kl = vec![0.0; s.len()];
        gamma_shape_kl_slice(&s, &a, &mut kl).unwrap();
        for ((&got, &s), &a) in kl.iter().zip(&s).zip(&a) {
            let want = gamma_kl((s, 1.0), (a, 1.0)).unwrap();
            let stated = 12.0 + s + a * (1.0 + s.ln().abs()) + a * a.ln().abs() + 1.0 / s;
            let scalar = (s - a).abs() * (1.0 + s.ln().abs() + 1.0 / s) + s * s.ln().abs();
            prop_assert!((got - want).abs() <= 16.0 * f64::EPSILON * (stated + scalar), "{} {}: {} {}", s, a, got, want);
        }
        let mut none = vec![7.0; s.len()];
        gamma_shape_kl_slice(&s, &s, &mut none).unwrap();
        prop_assert!(none.iter().all(|&x| x == 0.0));
    }

    /// A Dirichlet law is made of gamma laws: `Σ KL(Gamma(α̂_i)‖Gamma(α_i)) = KL(Dirichlet) + KL(Gamma(Σ α̂)‖Gamma(Σ α))`.
    #[test]
    fn dirichlet_is_made_of_gammas(pairs in prop::collection::vec((0.01..30.0f64, 0.01..30.0f64), 1..8)) {
        let (alpha, prior): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        let parts: f64 = alpha.iter().zip(&prior).map(|(&a, &p)| gamma_kl((a, 1.0), (p, 1.0)).unwrap()).sum();
        let whole = gamma_kl((alpha.iter().sum(), 1.0), (prior.iter().sum(), 1.0)).unwrap();
        let got = dirichlet_kl(&alpha, &prior).unwrap();
        prop_assert!((got - (parts - whole)).abs() <= 1e-11 * (1.0 + parts.abs() + whole.abs()));
        prop_assert!(got >= -1e-11 * (1.0 + parts));
        let mut ln = vec![0.0; alpha.len()];
        dirichlet_mean_ln(&alpha, &mut ln).unwrap();
        let total = digamma(alpha.iter().sum()).unwrap();
        for (ln, &a) in ln.iter().zip(&alpha) {
            prop_assert_eq!(*ln, digamma(a).unwrap() - total);
        }
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
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(gamma_mean_ln(bad, 1.0).is_err() && gamma_mean_ln(1.0, bad).is_err());
        for (q, p) in [
            ((bad, 1.0), (1.0, 1.0)),
            ((1.0, bad), (1.0, 1.0)),
            ((1.0, 1.0), (bad, 1.0)),
            ((1.0, 1.0), (1.0, bad)),
        ] {
            assert!(matches!(gamma_kl(q, p), Err(DistError::Domain { .. })));
        }
        assert!(dirichlet_mean_ln(&[1.0, bad], &mut out).is_err());
        assert!(
            dirichlet_kl(&[1.0, bad], &[1.0, 1.0]).is_err()
                && dirichlet_kl(&[1.0], &[bad]).is_err()
        );
    }
    assert!(dirichlet_mean_ln(&[1e308, 1e308], &mut out).is_err());
    assert!(matches!(
        dirichlet_kl(&[1.0], &[1.0, 1.0]),
        Err(DistError::Length { .. })
    ));
    assert!(dirichlet_mean_ln(&[1.0], &mut out).is_err());
    assert_eq!(out, [7.0; 2]);
}
