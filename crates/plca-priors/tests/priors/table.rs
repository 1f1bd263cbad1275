//! Priors by name.

use std::sync::Arc;

use nalgebra::DMatrix;
use plca_priors::{
    CrossEntropy, Dirichlet, Entropic, Gamma, Lagged, Penalty, PriorError, PriorRules, Priors,
    RatePrior, RatePriors, Schedule, Scheduled, SimplexPrior, Step,
};

/// What an M-step makes of counts.
fn updated(prior: &dyn SimplexPrior<f64>) -> DMatrix<f64> {
    let counts = DMatrix::from_fn(3, 4, |i, z| 1.0 + (5 * i + 3 * z) as f64 % 7.0);
    let mut theta = DMatrix::from_element(3, 4, 1.0 / 3.0);
    prior.update(&counts, &mut theta, &Step::at(3)).unwrap();
    theta
}

#[test]
fn text_makes_the_prior_that_the_constructors_make() {
    let groups = |between, within| CrossEntropy::groups(&[0, 0, 1, 1], between, within).unwrap();
    let fading = Schedule::Decreasing { over: 9.0 };
    let follow = Lagged::groups(&[0, 0, 1, 1], 0.5, 2.0, &[(1, 0.5), (-2, -1.0)]).unwrap();
    #[rustfmt::skip]
    let cases: [(&str, Box<dyn SimplexPrior<f64>>, bool); 8] = [
        ("dirichlet:2.5", Box::new(Dirichlet::symmetric(2.5).unwrap()), true),
        ("entropic:-1.5", Box::new(Entropic::new(-1.5).unwrap()), true),
        ("entropic:.5r", Box::new(Entropic::relative(0.5).unwrap()), false),
        ("cross-entropy:groups=0/0/1/1,between=.5,within=.25", Box::new(groups(0.5, 0.25)), true),
        ("cross-entropy:groups=0/0/1/1,within=0,between=.2r,floor=1e-9", Box::new(groups(0.2, 0.0).relative().floor(1e-9).unwrap()), false),
        ("cross-entropy:groups=0/0/1/1,between=1,within=0,decrease=9", Box::new(Scheduled::new(groups(1.0, 0.0), fading).unwrap()), true),
        ("lagged:groups=0/0/1/1,between=.5,within=2,lags=1:.5/-2:-1", Box::new(follow.clone()), false),
        (
            "lagged:groups=0/0/1/1,between=.5r,within=2r,lags=1:.5/-2:-1,decrease=9",
            Box::new(Scheduled::new(follow.relative(), fading).unwrap()),
            false,
        ),
    ];
    for (text, want, density) in cases {
        let prior = Priors::<f64>::parse(text, (3, 4)).unwrap();
        assert_eq!(updated(&*prior), updated(&*want), "{text}");
        assert_eq!(
            (prior.has_density(), want.has_density()),
            (density, density),
            "{text}"
        );
    }
    let even = Priors::<f64>::parse("logistic-normal:1e-6", (3, 4)).unwrap();
    assert!(updated(&*even).iter().all(|x| (x - 1.0 / 3.0).abs() < 1e-4));
}

#[test]
fn text_that_makes_no_prior_is_refused() {
    #[rustfmt::skip]
    let cases = [
        ("dirichlet", "`` : expected a number"),
        ("dirichlet:x", "`x`: expected a number"),
        ("flat:1", "`1`: expected nothing"),
        ("sparse:1", "`sparse:1`: expected one of dirichlet:A, entropic:BETA[r]"),
        ("cross-entropy:groups=0/1,between=1,within=1", "the prior is for 2 components, the block has 4"),
        ("cross-entropy:groups=0/0/1/1,between=1", "`within` too"),
        ("cross-entropy:groups=0/0/1/1,groups=0", "given twice"),
        ("lagged:groups=0/0/1/1,between=1,within=1r,lags=1:1", "in the same units"),
        ("lagged:groups=0/0/1/1,between=1,within=1,lags=1", "`1`: expected LAG:WEIGHT, such as 1:0.5"),
        ("cross-entropy:beyond=1", "one of groups, between, within, decrease, floor"),
    ];
    for (text, part) in cases {
        let error = Priors::<f64>::parse(text, (3, 4)).unwrap_err().to_string();
        assert!(
            error.contains(&part.replace("` :", "`:")),
            "{text}: {error}"
        );
    }
    let negative = Priors::<f64>::parse("dirichlet:-1", (3, 4)).unwrap_err();
    assert_eq!(
        negative,
        PriorError::Domain {
            name: "alpha",
            value: -1.0
        }
    );
}

/// Everything in the table has a name of its own and says what it does.
#[test]
fn names_are_different() {
    let all = Priors::<f32>::ALL;
    for (at, entry) in all.iter().enumerate() {
        assert!(!entry.about.is_empty());
        assert!(all[..at].iter().all(|other| other.name != entry.name));
    }
}

/// A shared prior answers and updates as what it shares.
#[test]
fn shared_priors_are_priors() {
    let groups = CrossEntropy::groups(&[0, 0, 1, 1], 0.5, 0.25).unwrap();
    let relative = Arc::new(Entropic::relative(0.5).unwrap());
    assert!(!PriorRules::has_density(&relative) && !PriorRules::steady(&relative, 1));
    let groups = Arc::new(groups.relative());
    assert!(PriorRules::may_empty(&groups) && PriorRules::check(&groups, (3, 5)).is_err());
    assert_eq!(updated(&groups), updated(&*groups));
    let dirichlet = Arc::new(Dirichlet::symmetric(2.5).unwrap());
    let counts = PriorRules::pseudo_counts(&dirichlet, (3, 4));
    assert_eq!(counts, dirichlet.as_ref().pseudo_counts((3, 4)));
    let theta = DMatrix::from_element(3, 4, 1.0 / 3.0);
    let density = |prior: &dyn SimplexPrior<f64>| prior.ln_density(&theta, &Step::at(1));
    assert_eq!(density(&dirichlet), density(&*dirichlet));
    let gamma = Arc::new(Gamma::new(3.0, 1.0).unwrap());
    let rate = |prior: &dyn RatePrior<f64>| {
        let mut rate = theta.clone();
        let counts = DMatrix::from_element(3, 4, 4.0);
        prior
            .update(&counts, &theta, &mut rate, &Step::at(1))
            .unwrap();
        (prior.ln_density(&rate, &Step::at(1)), rate)
    };
    assert_eq!(rate(&gamma), rate(&*gamma));
}

#[test]
fn text_makes_priors_on_rates() {
    let counts = DMatrix::from_fn(3, 4, |i, z| (5 * i + 3 * z) as f64 % 7.0);
    let exposure = DMatrix::from_fn(3, 4, |i, z| 0.5 + (i + z) as f64);
    let updated = |prior: &dyn RatePrior<f64>| {
        let mut theta = DMatrix::from_element(3, 4, 2.0);
        let done = prior.update(&counts, &exposure, &mut theta, &Step::at(1));
        done.map(|()| theta).unwrap()
    };
    let cases: [(&str, Box<dyn RatePrior<f64>>); 4] = [
        ("gamma:2,.5", Box::new(Gamma::new(2.0, 0.5).unwrap())),
        ("rate:.5", Box::new(Penalty::new(0.5, 0.0).unwrap())),
        ("rate:.5,2", Box::new(Penalty::new(0.5, 2.0).unwrap())),
        (
            "rate:.5,2,lagged",
            Box::new(Penalty::new(0.5, 2.0).unwrap().lagged()),
        ),
    ];
    for (text, want) in cases {
        let prior = RatePriors::<f64>::parse(text, (3, 4)).unwrap();
        assert_eq!(updated(&*prior), updated(&*want), "{text}");
    }
    for (text, part) in [
        ("gamma:2", "`2`: expected SHAPE,RATE"),
        ("rate:", "``: expected a number"),
        ("rate:1,2,3", "`1,2,3`: expected L1[,L2[,lagged]]"),
        ("rate:1,-2", "`quadratic` = -2 is outside the domain"),
        (
            "dirichlet:2",
            "`dirichlet:2`: expected one of gamma:SHAPE,RATE, rate:L1[,L2[,lagged]]",
        ),
    ] {
        let error = RatePriors::<f64>::parse(text, (3, 4)).unwrap_err();
        assert!(error.to_string().contains(part), "{text}: {error}");
    }
}
