//! What the laws ask of a model, and how problems are run.

use plca::fit::laws::{Terms, Violation};
use plca::prelude::*;
use plca::tensor::strategies::Table;
use plca::{
    fit::{Parameters, Run},
    tensor::Real,
};
use proptest::test_runner::{Config as ProptestConfig, TestCaseError};

use super::problem::{Kind, Problem, stored};

/// A model as the laws see it.
pub(crate) trait Subject {
    type Model<T: Real>: Model<T>;

    /// The data that it takes.
    fn kind() -> Kind;

    /// The model with the settings of a problem.
    fn model<T: Real>(problem: &Problem) -> Result<Self::Model<T>, FitError>;

    /// The objective of parameters, by the page of files and the specification.
    fn define(problem: &Problem, cells: &Table<f64>, at: &Parameters<f64>) -> Terms;

    /// Where runs begin.
    fn init<T: Real>(_: &Problem) -> Init<T> {
        Init::default()
    }

    /// The unit of the data of a problem.
    fn unit(problem: &Problem) -> f64 {
        problem.power_of_ten([240.0, 28.0])
    }

    /// Whether no step makes the objective worse.
    fn monotone(_: &Problem) -> bool {
        true
    }
}

pub(crate) type StateOf<M, T> = <<M as Subject>::Model<T> as Model<T>>::State;

/// What a run makes of the model and data of a problem, by its solver, or by plain iterations where the model does not take it.
pub(crate) fn fitted<M: Subject, T: Real, R>(
    problem: &Problem,
    data: &dyn Data<T>,
    run: impl Fn(Run<'_, StateOf<M, T>>) -> Result<R, FitError>,
) -> Result<R, TestCaseError> {
    let by = |solver| {
        let model = M::model::<T>(problem)?;
        run(model.on(data)?.solver(solver))
    };
    let fit = by(problem.solver).or_else(|error| match error {
        FitError::Conflict { .. } | FitError::NotSeparable { .. } | FitError::Unsteady { .. } => {
            by(Solver::Em)
        }
        other => Err(other),
    });
    fit.map_err(|error| TestCaseError::fail(format!("refused: {error}")))
}

/// A model whose equations have units.
pub(crate) trait Measured: Subject {
    /// The power of the unit that the objective is multiplied by.
    const POWER: i32;

    /// The problem without numbers that stand beside the data.
    fn plain(problem: &Problem) -> Problem {
        problem.without(&[0])
    }

    /// By what a block or a fact is multiplied if the data are multiplied by `s`.
    fn block(problem: &Problem, name: &str, s: f64) -> f64;

    /// How many blocks share the unit in equal parts.
    fn root(_: &Problem) -> i32 {
        1
    }

    /// The powers of ten that data are multiplied by at most, in double and in single precision.
    fn most(_: &Problem) -> [f64; 2] {
        [250.0, 30.0]
    }
}

/// A model whose transform looks at observations one by one.
pub(crate) trait Explains: Subject {
    /// The data that it explains.
    fn explained() -> Kind {
        Self::kind()
    }

    /// The mode of the observations.
    fn along(problem: &Problem) -> usize;

    /// All that is said of every observation, by bits.
    fn explain<T: Real>(
        problem: &Problem,
        learnt: &StateOf<Self, T>,
        data: &dyn Data<T>,
        how: &Transform,
    ) -> Result<Vec<Vec<u64>>, FitError>;
}

/// A law as the outcome of a case.
pub(crate) fn holds(checked: Result<(), Violation>) -> Result<(), TestCaseError> {
    checked.map_err(|violation| TestCaseError::fail(violation.to_string()))
}

/// A few cases, or as many as the environment says.
pub(crate) fn few(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        ..ProptestConfig::default()
    }
}

/// What `case` says, computed in one thread: waking others takes longer than such small problems, whose results do not depend on it.
pub(crate) fn in_one_thread(
    case: impl FnOnce() -> Result<(), TestCaseError> + Send,
) -> Result<(), TestCaseError> {
    thread_local! {
        static POOL: rayon::ThreadPool =
            rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("one thread more");
    }
    POOL.with(|pool| pool.install(case))
}

/// As many iterations as a problem says, without a test of convergence.
pub(crate) fn stop(problem: &Problem) -> Stop {
    Stop::default()
        .tol(None)
        .max_iter(problem.iterations)
        .check_every(3)
}

/// Data as stored, and cell by cell.
type Cells<T> = (Box<dyn Data<T>>, Table<f64>);

/// The data of a problem as stored, and cell by cell.
pub(crate) fn data_of<T: Real>(problem: &Problem, unit: f64) -> Result<Cells<T>, TestCaseError> {
    let table = problem.table::<T>(unit);
    let cells = Table {
        shape: table.shape.clone(),
        values: table.values.iter().map(|v| v.to_f64()).collect(),
        observed: table.observed.clone(),
    };
    let data = stored(&table, problem.storage).map_err(|e| TestCaseError::fail(e.to_string()))?;
    Ok((data, cells))
}

/// How exactly an objective is known.
pub(crate) fn relative<T: Real>() -> f64 {
    match T::MAX_EXPONENT < 1000 {
        true => 2e-5,
        false => 1e-10,
    }
}
