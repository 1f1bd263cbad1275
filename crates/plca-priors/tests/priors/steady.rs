//! Which priors an accelerated run may rely on.

use nalgebra::DMatrix;
use plca_priors::laws::{Claims, cases, check_promises};
use plca_priors::{
    CrossEntropy, CrossEntropyOrder, CrossEntropyStep, Dirichlet, Entropic, Flat, Schedule,
    Scheduled, SimplexPrior, Step,
};
use proptest::prelude::*;

/// `Σ c ln θ + ln p(θ)`.
fn objective(prior: &dyn SimplexPrior<f64>, counts: &DMatrix<f64>, theta: &DMatrix<f64>) -> f64 {
    let terms = counts.iter().zip(theta).filter(|(c, _)| **c > 0.0);
    terms.map(|(c, x)| c * x.ln()).sum::<f64>() + prior.ln_density(theta, &Step::at(1))
}

fn alike() -> CrossEntropy {
    let prior = CrossEntropy::groups(&[0, 0, 1], 0.0, 2.0).unwrap();
    prior.step(CrossEntropyStep::ExactSimilarity).unwrap()
}

/// What is steady from iteration 3 on, and what never is.
#[rustfmt::skip]
fn priors() -> Vec<(&'static str, bool, Box<dyn SimplexPrior<f64>>)> {
    let apart = || CrossEntropy::groups(&[0, 0, 1], 3.0, 0.0).unwrap();
    let fading = |over| Schedule::Decreasing { over };
    let growing = Schedule::Increasing { over: 2.0 };
    let entropic = Entropic::new(1.5).unwrap();
    let relative = |rho| Entropic::relative(rho).unwrap();
    vec![
        ("flat", true, Box::new(Flat)),
        ("dirichlet", true, Box::new(Dirichlet::symmetric(1.5).unwrap())),
        ("clipped dirichlet", false, Box::new(Dirichlet::symmetric(0.5).unwrap())),
        ("entropic", true, Box::new(entropic)),
        ("entropic, grown", true, Box::new(Scheduled::new(entropic, growing).unwrap())),
        ("entropic, gone", true, Box::new(Scheduled::new(entropic, fading(2.0)).unwrap())),
        ("entropic, fading", false, Box::new(Scheduled::new(entropic, fading(5.0)).unwrap())),
        ("entropic, relative", false, Box::new(relative(0.5))),
        ("entropic, relative 0", true, Box::new(relative(0.0))),
        ("entropic, relative, grown", false, Box::new(Scheduled::new(relative(0.5), growing).unwrap())),
        ("entropic, relative, gone", true, Box::new(Scheduled::new(relative(0.5), fading(2.0)).unwrap())),
        ("clipped", false, Box::new(apart())),
        ("clipped, with a floor", false, Box::new(apart().floor(1e-9).unwrap())),
        ("clipped, gone", true, Box::new(Scheduled::new(apart(), fading(2.0)).unwrap())),
        ("similar", false, Box::new(alike())),
        ("similar, relative", false, Box::new(alike().relative())),
        ("similar, in turn", false, Box::new(alike().order(CrossEntropyOrder::Parity))),
    ]
}

#[test]
fn steady_or_not() {
    for (name, steady, prior) in priors() {
        for iteration in [3, 4, 100] {
            let late = name == "entropic, fading" && iteration == 100;
            assert_eq!(
                prior.steady(iteration),
                steady || late,
                "{name} at {iteration}"
            );
        }
    }
}

proptest! {
    /// What priors say of themselves is so: what they add, what they empty, from when they rest, and which blocks they fit.
    #[test]
    fn promises_are_kept(case in cases::<f64>(2..=6, 3..=3)) {
        let claims = Claims { tolerance: 4e3, ..Claims::default() };
        for (name, _, prior) in priors() {
            check_promises(&*prior, &[1, 2, 3, 4, 100], &claims, &case)
                .map_err(|e| TestCaseError::fail(format!("{name}: {e}")))?;
        }
    }
}

/// An entry with counts is lost where a similar column has none: the same of the exact step.
#[test]
fn similar_steps_fall_at_zeros() {
    let counts = nalgebra::dmatrix![0.0, 0.0, 0.0; 1.0, 0.0, 0.0];
    let mut theta = nalgebra::dmatrix![0.98, 1.0, 0.98; 0.02, 0.0, 0.02];
    let before = objective(&alike(), &counts, &theta);
    alike().update(&counts, &mut theta, &Step::at(1)).unwrap();
    assert!(objective(&alike(), &counts, &theta) < before);
}

/// A strength that grows with the counts costs likelihood, and there is no density to make up for it.
#[test]
fn relative_entropic_steps_fall() {
    let prior = Entropic::relative(0.5).unwrap();
    let counts = nalgebra::dmatrix![6.0; 4.0];
    let mut theta = nalgebra::dmatrix![0.6; 0.4];
    let before = objective(&prior, &counts, &theta);
    prior.update(&counts, &mut theta, &Step::at(1)).unwrap();
    assert!(objective(&prior, &counts, &theta) < before);
}

/// Clipping lowers what it is said to raise: that is why it is not steady.
#[test]
fn clipped_steps_fall() {
    let prior = CrossEntropy::groups(&[0, 1], 3.0, 0.0).unwrap();
    let counts = nalgebra::dmatrix![2.0, 2.0; 2.0, 1.0];
    let mut theta = nalgebra::dmatrix![0.01, 0.99; 0.99, 0.01];
    let before = objective(&prior, &counts, &theta);
    prior.update(&counts, &mut theta, &Step::at(1)).unwrap();
    assert!(objective(&prior, &counts, &theta) < before);
}
