//! EM never loses, accelerated or not; wrong steps are caught.

use nalgebra::DMatrix;
use plca_fit::laws::{self, Rounding};
use plca_fit::{
    Algorithm, FitError, Model, Parameters, Run, Solver, State, Stop, blocks::BlockSpec,
    em::Stepped,
};
use plca_tensor::{Data, Real};
use proptest::prelude::*;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use skellam_snmf::{Prior, Replicates, Snmf, SnmfState};

use super::problem::{Problem, fixed, problem, replicates};

/// Objectives are sums of what has this size, in all, and are right to this part of it and of themselves.
#[derive(Clone, Copy)]
pub(super) struct Claims {
    pub(super) rounding: f64,
    pub(super) size: f64,
    pub(super) iterations: usize,
}

impl Claims {
    fn slack(self, objective: f64) -> f64 {
        self.rounding * (self.size + objective.abs())
    }
}

fn fails(what: &str, solver: Solver, found: impl std::fmt::Debug) -> TestCaseError {
    TestCaseError::fail(format!("{what}, {solver}: {found:?}"))
}

/// No iteration of a solver lowers the objective, which is that of the end; a run that is cut goes on as if it had not been.
fn never_loses<'a, S: State + PartialEq>(
    bind: &dyn Fn() -> Box<dyn Algorithm<S::Scalar> + 'a>,
    start: &S,
    solver: Solver,
    claims: Claims,
) -> Result<(), TestCaseError> {
    let run = |iterations| {
        let stop = Stop::default().max_iter(iterations).tol(None);
        let run = Run::<S>::new(bind()).solver(solver);
        run.stop(stop.check_every(1))
    };
    let failed = |error: FitError| fails("failed", solver, error);
    let fit = run(claims.iterations).run(start, &mut ChaCha8Rng::seed_from_u64(0));
    let fit = fit.map_err(failed)?;
    for w in fit.trace().windows(2) {
        let [before, after] = [w[0].objective, w[1].objective];
        if after.is_nan() || after < before - claims.slack(before) {
            return Err(fails("lost", solver, w));
        }
    }
    let end = bind().objective(fit.state().parameters());
    if end.map_err(failed)? != fit.compared() {
        return Err(fails("objective", solver, fit.objective()));
    }
    let half = run(claims.iterations / 2).run(start, &mut ChaCha8Rng::seed_from_u64(0));
    let from = half.map_err(failed)?.checkpoint().clone();
    let rest = run(claims.iterations).resume(from).map_err(failed)?;
    if rest.state() != fit.state() {
        return Err(fails("resumed", solver, rest.state()));
    }
    Ok(())
}

/// What a step measures is the objective before it.
fn measures<T: Real>(
    algorithm: &dyn Algorithm<T>,
    start: &Parameters<T>,
    claims: Claims,
) -> Result<(), TestCaseError> {
    let mut at = start.clone();
    for _ in 0..claims.iterations {
        let objective = algorithm.objective(&at).unwrap();
        let measured = algorithm.step(&mut at, true).unwrap().value.unwrap();
        let near = (measured - objective).abs() <= claims.slack(objective);
        prop_assert!(near, "{} is not {}", measured, objective);
    }
    Ok(())
}

/// The laws of a model: plain for so many iterations and accelerated for others.
pub(super) fn obeys<T: Real, M: Model<T, State: PartialEq>>(
    model: &M,
    data: &dyn Data<T>,
    start: &M::State,
    [plain, accelerated]: [Claims; 2],
) -> Result<(), TestCaseError> {
    let bind = || model.bind(data).unwrap();
    let rounding = Rounding {
        relative: plain.rounding,
        absolute: plain.rounding * plain.size,
    };
    let of_steps = laws::Claims {
        iterations: 3,
        settles: 0,
        ..laws::Claims::new(rounding)
    };
    laws::check_counts(&*bind(), start.parameters(), &of_steps)?;
    for solver in [
        Solver::Em,
        Solver::Squarem,
        Solver::Parabolic,
        Solver::Momentum,
    ] {
        laws::check(&*bind(), solver, start.parameters(), &of_steps)?;
    }
    measures(&*bind(), start.parameters(), plain)?;
    never_loses(&bind, start, Solver::Em, plain)?;
    for solver in [Solver::Squarem, Solver::Parabolic, Solver::Momentum] {
        never_loses(&bind, start, solver, accelerated)?;
    }
    Ok(())
}

pub(super) fn fitted(problem: &Problem) -> SnmfState<f64> {
    let factors = problem.factors();
    SnmfState::new(&factors.plus, &factors.minus, factors.activations).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The objective never falls, with a prior of shapes from 1 up and without, plain and accelerated. [SKELLAM 5]
    #[test]
    fn em_never_loses(problem in problem(), m in replicates(), flat in any::<bool>()) {
        let prior = if flat { Prior::flat() } else { problem.prior(1.0) };
        let config = Snmf::new(problem.k).replicates(m).priors(prior);
        let claims = |iterations| Claims { rounding: 1e-13, size: problem.values.abs().sum(), iterations };
        obeys(&config, &problem.tensor(), &fitted(&problem), [claims(40), claims(15)])?;
    }

    /// Neither does it on data that are not whole, if these are allowed.
    #[test]
    fn em_never_loses_on_real_data(mut problem in problem()) {
        problem.values *= 0.37;
        let config = Snmf::new(problem.k).replicates(Replicates::One).real_data(true);
        let claims = Claims { rounding: 1e-13, size: problem.values.abs().sum(), iterations: 15 };
        obeys(&config, &problem.tensor(), &fitted(&problem), [claims; 2])?;
    }
}

/// The steps of one algorithm judged by another.
#[derive(Debug)]
struct Mismatched<'a>([Box<dyn Algorithm<f64> + 'a>; 2]);

impl Algorithm<f64> for Mismatched<'_> {
    fn blocks(&self) -> &[BlockSpec<f64>] {
        self.0[0].blocks()
    }

    fn step(&self, at: &mut Parameters<f64>, measure: bool) -> Result<Stepped, FitError> {
        let value = measure.then(|| self.objective(at)).transpose()?;
        let stepped = self.0[0].step(at, false)?;
        Ok(Stepped { value, ..stepped })
    }

    fn objective(&self, at: &Parameters<f64>) -> Result<f64, FitError> {
        self.0[1].objective(at)
    }

    fn unit(&self) -> f64 {
        self.0[1].unit()
    }

    fn extrapolates(&self, at: &Parameters<f64>) -> Result<(), FitError> {
        self.0[0].extrapolates(at)
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
    let data = problem.tensor();
    let config = |m| Snmf::new(3).replicates(m);
    let (one, limit) = (config(Replicates::One), config(Replicates::Limit));
    let run = one.on(&data).unwrap().solver(Solver::Em);
    let run = run.stop(Stop::default().max_iter(300).tol(None));
    let start = run.run(&fitted(&problem), &mut problem.rng()).unwrap();
    let claims = Claims {
        rounding: 1e-6,
        size: problem.values.abs().sum(),
        iterations: 50,
    };
    let mut other = problem.clone();
    other.values[(0, 0)] = 9.0;
    let other = other.tensor();
    let bind = |model: &'static str| -> Box<dyn Algorithm<f64> + '_> {
        match model {
            "right" => one.bind(&data).unwrap(),
            "limit" => limit.bind(&data).unwrap(),
            _ => one.bind(&other).unwrap(),
        }
    };
    let judge = |steps| {
        let judged = || -> Box<dyn Algorithm<f64> + '_> {
            Box::new(Mismatched([bind(steps), bind("right")]))
        };
        never_loses(&judged, start.state(), Solver::Em, claims)
    };
    judge("right").unwrap();
    for wrong in ["limit", "other"] {
        let found = judge(wrong).unwrap_err();
        assert!(found.to_string().contains("lost"), "{wrong}: {found}");
    }
}
