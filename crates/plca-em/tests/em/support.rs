//! Models iterated by hand.

use std::sync::Arc;

use nalgebra::DMatrix;
use plca_fit::{Algorithm, Checkpoint, Fit, FitError, Model, Solver, State, Stop};
use plca_priors::SimplexPrior;
use plca_tensor::{Data, DenseTensor, Order, Real};
use serde_json::Value;

pub(crate) type Prior<T> = Arc<dyn SimplexPrior<T>>;

/// The cases of a file of reference vectors.
pub(crate) fn cases(text: &str) -> Vec<Value> {
    let file: Value = serde_json::from_str(text).unwrap();
    file["cases"].as_array().unwrap().clone()
}

/// A list of whole numbers.
pub(crate) fn whole(v: &Value) -> Vec<usize> {
    let all = v.as_array().unwrap().iter();
    all.map(|n| n.as_u64().unwrap() as usize).collect()
}

/// A list of numbers, or of flags as 0 and 1.
pub(crate) fn floats(v: &Value) -> Vec<f64> {
    let all = v.as_array().unwrap().iter();
    all.map(|x| x.as_f64().unwrap_or_else(|| f64::from(u8::from(x == true))))
        .collect()
}

pub(crate) fn near(what: &str, got: f64, want: f64, tol: f64) {
    let far = (got - want).abs();
    assert!(far <= tol * want.abs().max(1.0), "{what}: {got} {want}");
}

pub(crate) fn normalised(mut m: DMatrix<f64>) -> DMatrix<f64> {
    plca_tensor::normalise_columns(&mut m);
    m
}

/// A matrix as data, NaN for hidden cells.
pub(crate) fn dense(m: &DMatrix<f64>) -> DenseTensor<f64> {
    let shape = vec![m.nrows(), m.ncols()];
    DenseTensor::masked(shape, m.as_slice().to_vec(), Order::ColumnMajor).unwrap()
}

/// An array of two dimensions or one, in row-major order.
pub(crate) fn matrix(v: &Value) -> DMatrix<f64> {
    let shape = whole(&v["shape"]);
    let columns = shape.get(1).copied().unwrap_or(1);
    DMatrix::from_row_slice(shape[0], columns, &floats(&v["data"]))
}

/// So many iterations, and nothing else that ends a run.
pub(crate) fn exactly(n: usize) -> Stop {
    Stop::default().max_iter(n).tol(None)
}

/// What so many iterations make of a state.
pub(crate) fn after<T: Real, M: Model<T>>(
    model: &M,
    data: &dyn Data<T>,
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
pub(crate) fn residual<T: Real, M: Model<T>>(
    model: &M,
    data: &dyn Data<T>,
    state: &M::State,
) -> Result<f64, FitError> {
    model.bind(data)?.residual(state.parameters())
}
