//! Models of the engine, iterated by hand and under the laws of all methods.

use std::sync::Arc;

use plca_fit::engine::{
    Algorithm, Checkpoint, Fit, FitError, Memory, Model, Parameters, Sense, Solver, State, Stop,
};
use plca_fit::{Direction, Failure};
use plca_priors::SimplexPrior;
use plca_tensor::{Data, Real};

pub(crate) type Prior<T> = Arc<dyn SimplexPrior<T>>;

/// So many iterations, and nothing else that ends a run.
pub(crate) fn exactly(n: usize) -> Stop {
    Stop::default().max_iter(n).tol(None)
}

/// What so many iterations make of a state.
pub(crate) fn after<M: Model>(
    model: &M,
    data: &dyn Data<M::Scalar>,
    start: &M::State,
    solver: Solver,
    n: usize,
) -> Result<Fit<M::State>, FitError> {
    let run = model.on(data)?.solver(solver).stop(exactly(n));
    run.resume(Checkpoint::new(start.parameters().clone()))
}

/// The solvers that a model takes: coordinate descent where it separates.
pub(crate) fn solvers<T: Real>(algorithm: &dyn Algorithm<T>) -> Vec<Solver> {
    let separates = algorithm.separable().is_ok();
    let all = Solver::ALL.iter().copied();
    all.filter(|&solver| separates || solver != Solver::Fast)
        .collect()
}

/// The residual of a state.
pub(crate) fn residual<M: Model>(
    model: &M,
    data: &dyn Data<M::Scalar>,
    state: &M::State,
) -> Result<f64, FitError> {
    model.bind(data)?.residual(state.parameters())
}

/// A model on data under a solver, for the kit of laws.
pub(crate) struct Lawful<'a, T: Real> {
    algorithm: &'a dyn Algorithm<T>,
    solver: Solver,
}

/// Where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Place<T: Real> {
    pub(crate) at: Parameters<T>,
    memory: Memory,
}

impl<T: Real> Place<T> {
    /// The start of a run.
    pub(crate) fn new(state: &impl State<Scalar = T>) -> Self {
        Self {
            at: state.parameters().clone(),
            memory: Memory::default(),
        }
    }
}

impl<'a, T: Real> Lawful<'a, T> {
    pub(crate) fn new(algorithm: &'a dyn Algorithm<T>, solver: Solver) -> Self {
        Self { algorithm, solver }
    }
}

/// Why it has no step.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error(transparent)]
pub(crate) struct Refused(#[from] FitError);

impl From<plca_fit::StopError> for Refused {
    fn from(error: plca_fit::StopError) -> Self {
        panic!("{error}")
    }
}

impl Failure for Refused {}

impl<T: Real> plca_fit::Algorithm for Lawful<'_, T> {
    type State = Place<T>;
    type Error = Refused;

    fn step(&self, place: &mut Place<T>, measure: bool) -> Result<Option<f64>, Refused> {
        let mut steps = self.solver.on(self.algorithm, place.memory.clone())?;
        let stepped = steps.step(&mut place.at, measure)?;
        place.memory = steps.memory();
        Ok(stepped.value)
    }

    fn objective(&self, place: &Place<T>) -> Result<f64, Refused> {
        Ok(self.algorithm.objective(&place.at)?)
    }

    fn direction(&self) -> Direction {
        match self.algorithm.sense() {
            Sense::Maximise => Direction::Maximise,
            Sense::Minimise => Direction::Minimise,
        }
    }

    fn residual(&self, place: &Place<T>) -> Result<Option<f64>, Refused> {
        match self.algorithm.residual(&place.at) {
            Ok(residual) => Ok(Some(residual)),
            Err(FitError::NoResidual { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
