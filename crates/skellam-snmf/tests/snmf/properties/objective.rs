//! EM never loses, accelerated or not; wrong steps are caught.

use plca_fit::{Algorithm, Carried, Momentum, Parabolic, Squarem};
use proptest::prelude::*;
use skellam_snmf::{Prior, Replicates, Snmf, SnmfState};

use super::problem::{problem, replicates};

/// Largest loss of `steps` iterations, relative to the size of what is added up.
pub(super) fn worst_loss<A: Algorithm>(
    algorithm: &A,
    mut state: A::State,
    steps: usize,
    size: f64,
) -> f64
where
    A::Error: std::fmt::Debug,
{
    let mut before = algorithm.objective(&state).unwrap();
    let mut worst = 0.0f64;
    for _ in 0..steps {
        algorithm.step(&mut state, false).unwrap();
        let after = algorithm.objective(&state).unwrap();
        assert!(after.is_finite(), "{after}");
        worst = worst.max((before - after) / (size + before.abs()));
        before = after;
    }
    worst
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The objective never falls, with a prior of shapes from 1 up and without, plain and accelerated. [SKELLAM 5]
    #[test]
    fn em_never_loses(problem in problem(), m in replicates(), flat in any::<bool>()) {
        let prior = if flat { Prior::flat() } else { problem.prior(1.0) };
        let config = Snmf::builder(problem.k).replicates(m).prior(prior).build().unwrap();
        let data = problem.data();
        let em = config.on(&data).unwrap();
        let size = problem.values.abs().sum();
        let start = problem.factors();
        prop_assert!(worst_loss(&em, start.clone(), 40, size) <= 1e-13);
        prop_assert!(worst_loss(&Squarem(config.on(&data).unwrap()), start.clone(), 15, size) <= 1e-13);
        let start = Carried::new(start);
        prop_assert!(worst_loss(&Parabolic(config.on(&data).unwrap()), start.clone(), 15, size) <= 1e-13);
        let momentum = Momentum(config.on(&data).unwrap());
        prop_assert!(worst_loss(&momentum, start.clone(), 15, size) <= 1e-13);
        // What it remembers is the objective.
        let mut state = start;
        momentum.step(&mut state, false).unwrap();
        prop_assert_eq!(momentum.objective(&state).unwrap(), em.objective(state.inner()).unwrap());
    }

    /// Neither does it on data that are not whole, if these are allowed.
    #[test]
    fn em_never_loses_on_real_data(mut problem in problem()) {
        problem.values *= 0.37;
        let config = Snmf::builder(problem.k).replicates(Replicates::One).real_data().build().unwrap();
        let data = problem.data();
        let em = config.on(&data).unwrap();
        prop_assert!(worst_loss(&em, problem.factors(), 40, problem.values.abs().sum()) <= 1e-13);
    }
}

/// The steps of one likelihood judged by another.
struct Mismatched<A, B>(A, B);

impl<A: Algorithm<State = SnmfState<f64>>, B: Algorithm<State = A::State, Error = A::Error>>
    Algorithm for Mismatched<A, B>
{
    type State = A::State;
    type Error = A::Error;

    fn step(&self, state: &mut A::State, measure: bool) -> Result<Option<f64>, A::Error> {
        self.0.step(state, measure)
    }

    fn objective(&self, state: &A::State) -> Result<f64, A::Error> {
        self.1.objective(state)
    }
}

/// The test above can fail: at a fit it catches the ratios of another number of replicates, and those of other data.
#[test]
fn wrong_ratios_are_caught() {
    let problem = super::problem::Problem {
        values: nalgebra::DMatrix::from_fn(6, 20, |i, j| ((i * 7 + j * 5) % 11) as f64 - 4.0),
        seen: nalgebra::DMatrix::from_element(6, 20, true),
        k: 3,
        seed: 0,
    };
    let data = problem.data();
    let config = |m| Snmf::builder(3).replicates(m).build().unwrap();
    let (one, limit) = (config(Replicates::One), config(Replicates::Limit));
    let (right, limit) = (one.on(&data).unwrap(), limit.on(&data).unwrap());
    let mut fitted = problem.factors();
    for _ in 0..300 {
        right.step(&mut fitted, false).unwrap();
    }
    let size = problem.values.abs().sum();
    let wrong = Mismatched(limit, one.on(&data).unwrap());
    assert!(worst_loss(&wrong, fitted.clone(), 50, size) > 1e-6);
    let mut other = problem.clone();
    other.values[(0, 0)] = 9.0;
    let other = other.data();
    let wrong = Mismatched(one.on(&other).unwrap(), one.on(&data).unwrap());
    assert!(worst_loss(&wrong, fitted, 50, size) > 1e-6);
}
