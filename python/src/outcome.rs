//! What a fit came to, for Python: the same of data in one piece and of shards.

use numpy::PyArray1;
use plca::fit::{Fit, Parameters, Status, blocks::BlockSpec};
use plca::tensor::Real;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{Refused, wrong};

/// Whether a run came to its end.
fn converged(status: &Status) -> bool {
    matches!(
        status,
        Status::Converged | Status::Stationary | Status::Settled
    )
}

/// Whether a prior of these blocks adds a density to the objective.
pub(crate) fn is_posterior<T: Real>(blocks: &[BlockSpec<T>]) -> bool {
    let mut priors = blocks.iter().flat_map(|block| &block.prior);
    priors.any(|prior| prior.rules().has_density())
}

/// How a fit ended.
pub(crate) struct Outcome {
    iterations: usize,
    status: Status,
    pub(crate) objective: f64,
    /// The objective by which starts are compared, without the constant that all share.
    pub(crate) compared: f64,
    /// The objective without priors, where it was asked for.
    pub(crate) likelihood: Option<f64>,
    /// Whether the objective has a density of a prior in it.
    posterior: bool,
    trace: Vec<(usize, f64)>,
}

impl Outcome {
    /// Of a fit whose objective is a `posterior` or has no density in it.
    pub(crate) fn of<T: Real>(fit: &Fit<Parameters<T>>, posterior: bool) -> Result<Self, Refused> {
        let (objective, iterations) = (fit.objective(), fit.iterations());
        if !objective.is_finite() {
            return wrong(format!(
                "X: the objective became {objective} after {iterations} iterations"
            ));
        }
        let trace = fit.trace().iter().map(|p| (p.iteration, p.objective));
        Ok(Self {
            iterations,
            status: fit.status().clone(),
            objective,
            compared: fit.compared(),
            likelihood: None,
            posterior,
            trace: trace.collect(),
        })
    }

    /// Enters it into what a call answers.
    pub(crate) fn tell(&self, result: &Bound<'_, PyDict>) -> PyResult<()> {
        let py = result.py();
        result.set_item("iterations", self.iterations)?;
        result.set_item("status", self.status.to_string())?;
        result.set_item("converged", converged(&self.status))?;
        result.set_item("objective", self.objective)?;
        result.set_item("likelihood", self.likelihood)?;
        result.set_item("posterior", self.posterior)?;
        let trace = self.trace.iter().map(|&(i, x)| (i as u64, x));
        let (iterations, objectives): (Vec<u64>, Vec<f64>) = trace.unzip();
        let trace = (
            PyArray1::from_vec(py, iterations),
            PyArray1::from_vec(py, objectives),
        );
        result.set_item("trace", trace)
    }
}
