//! Priors as data.

use std::sync::Arc;

use nalgebra::DMatrix;
use plca_priors::{
    Dirichlet, Entries, Gamma, Penalty, PriorError, PriorRules, PriorSpec, SimplexPrior, Step,
};
use proptest::prelude::*;

fn read(text: &str) -> PriorSpec {
    text.parse().unwrap()
}

proptest! {
    /// What a text says is what its own text says, to the last digit.
    #[test]
    fn numbers_survive_their_text(a in 1e-300f64..1e300, b in 1e-300f64..1e300) {
        let all = [
            PriorSpec::Dirichlet(Entries::All(a)),
            PriorSpec::Gamma(Entries::All(a), Entries::All(b)),
            Penalty::new(a, b).unwrap().into(),
            Penalty::new(a, 0.0).unwrap().into(),
        ];
        for spec in all {
            prop_assert_eq!(&read(&spec.to_string()), &spec);
        }
    }
}

#[test]
fn names_survive_their_text() {
    for text in [
        "entropic:0.3r",
        "flat",
        "logistic-normal:1",
        "neighbours:2",
        "dirichlet:2",
        "gamma:1,0.1",
        "rate:0.1",
        "rate:0.1,0.2",
    ] {
        assert_eq!(read(text).to_string(), text);
    }
}

/// A prior of one scalar alone.
#[derive(Debug)]
struct Double;

impl PriorRules for Double {
    fn check(&self, _: (usize, usize)) -> Result<(), PriorError> {
        Ok(())
    }
}

impl SimplexPrior<f64> for Double {
    fn update(
        &self,
        counts: &DMatrix<f64>,
        theta: &mut DMatrix<f64>,
        _: &Step<'_>,
    ) -> Result<(), PriorError> {
        theta.copy_from(counts);
        Ok(())
    }

    fn ln_density(&self, _: &DMatrix<f64>, _: &Step<'_>) -> f64 {
        0.0
    }
}

#[test]
fn a_prior_of_one_scalar_is_refused_by_data_of_the_other() {
    let one = PriorSpec::simplex_of(Double);
    assert!(one.simplex::<f64>((3, 2)).is_ok());
    let refused = one.simplex::<f32>((3, 2)).unwrap_err().to_string();
    assert!(refused.contains("Double"), "{refused}");
    let boxed: Arc<dyn SimplexPrior<f64>> = Arc::new(Double);
    assert!(PriorSpec::from(boxed).simplex::<f32>((3, 2)).is_err());
    // One of a law is that law, for either.
    let law = PriorSpec::simplex_of::<f64>(Dirichlet::symmetric(2.0).unwrap());
    assert_eq!(law, read("dirichlet:2"));
    assert!(law.simplex::<f32>((3, 2)).is_ok());
}

#[test]
fn each_view_refuses_other_laws() {
    let (shapes, gamma) = (
        read("dirichlet:2"),
        PriorSpec::from(Gamma::new(2.0, 0.1).unwrap()),
    );
    let (penalty, named) = (read("rate:0.1"), read("entropic:1"));
    assert!(shapes.shapes().is_ok() && !shapes.is_of_rates());
    assert!(gamma.gamma().is_ok() && gamma.is_of_rates());
    assert!(penalty.penalty().is_ok() && penalty.is_of_rates());
    for (spec, others) in [
        (&shapes, [false, true, true, true]),
        (&gamma, [true, false, true, false]),
        (&penalty, [true, true, false, false]),
        (&named, [true, true, true, true]),
    ] {
        let refused = [
            spec.shapes().is_err(),
            spec.gamma().is_err(),
            spec.penalty().is_err(),
            spec.rate::<f64>((2, 2)).is_err(),
        ];
        assert_eq!(refused, others, "{spec}");
    }
    assert!(named.simplex::<f64>((2, 2)).is_ok() && gamma.simplex::<f64>((2, 2)).is_err());
}

#[test]
fn what_is_no_prior_is_refused_when_it_is_read_or_used() {
    for text in [
        "dirichlet:",
        "dirichlet:x",
        "gamma:1",
        "rate:",
        "rate:-1",
        "gamma:1,x",
    ] {
        assert!(text.parse::<PriorSpec>().is_err(), "{text}");
    }
    let unknown: Result<PriorSpec, _> = "no-such-prior:1".parse();
    let used = unknown.and_then(|spec| spec.simplex::<f64>((2, 2)).map(drop));
    assert!(used.is_err());
}
