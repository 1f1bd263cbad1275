//! EM never loses, accelerated or not; wrong steps are caught.

use std::fmt::Debug;

use nalgebra::DMatrix;
use plca_fit::laws::{Claims, Law, Rounding, Violation, check, check_accelerated};
use plca_fit::{Accelerate, Algorithm, Carried, Momentum};
use proptest::prelude::*;
use skellam_snmf::{Prior, Replicates, Snmf, SnmfState};

use super::problem::{fixed, problem, replicates};

/// Objectives are sums of what has this size, in all.
pub(super) fn claims(rounding: f64, size: f64, iterations: usize) -> Claims {
    Claims {
        iterations,
        ..Claims::new(Rounding {
            relative: rounding,
            absolute: rounding * size,
        })
    }
}

/// The laws of every method, plain for so many iterations and accelerated for others.
pub(super) fn obeys<A: Accelerate<State: PartialEq + Debug>>(
    algorithm: &A,
    start: &A::State,
    [plain, accelerated]: [&Claims; 2],
) -> Result<(), Violation> {
    check(algorithm, start, plain)?;
    check_accelerated(algorithm, start, accelerated)
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
        let claims = |iterations| claims(1e-13, problem.values.abs().sum(), iterations);
        let start = problem.factors();
        obeys(&em, &start, [&claims(40), &claims(15)])?;
        let start = Carried::new(start);
        let momentum = Momentum(config.on(&data).unwrap());
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
        check(&em, &problem.factors(), &claims(1e-13, problem.values.abs().sum(), 40))?;
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
        let before = measure.then(|| self.objective(state)).transpose()?;
        self.0.step(state, false)?;
        Ok(before)
    }

    fn objective(&self, state: &A::State) -> Result<f64, A::Error> {
        self.1.objective(state)
    }
}

/// The test above can fail: at a fit it catches the ratios of another number of replicates, and those of other data.
#[test]
fn wrong_ratios_are_caught() {
    let problem = fixed(
        DMatrix::from_fn(6, 20, |i, j| ((i * 7 + j * 5) % 11) as f64 - 4.0),
        DMatrix::from_element(6, 20, true),
        3,
        0,
    );
    let data = problem.data();
    let config = |m| Snmf::builder(3).replicates(m).build().unwrap();
    let (one, limit) = (config(Replicates::One), config(Replicates::Limit));
    let (right, limit) = (one.on(&data).unwrap(), limit.on(&data).unwrap());
    let mut fitted = problem.factors();
    for _ in 0..300 {
        right.step(&mut fitted, false).unwrap();
    }
    let claims = claims(1e-6, problem.values.abs().sum(), 50);
    let wrong = Mismatched(limit, one.on(&data).unwrap());
    let found = check(&wrong, &fitted, &claims).unwrap_err();
    assert_eq!(found.law, Law::Monotone, "{found}");
    let mut other = problem.clone();
    other.values[(0, 0)] = 9.0;
    let other = other.data();
    let wrong = Mismatched(one.on(&other).unwrap(), one.on(&data).unwrap());
    let found = check(&wrong, &fitted, &claims).unwrap_err();
    assert_eq!(found.law, Law::Monotone, "{found}");
}
