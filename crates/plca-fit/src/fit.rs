//! What a run gives back, and what continues it.

use nalgebra::DMatrix;
use plca_tensor::Real;

use super::{FitError, Memory, Parameters, State, Status};

/// The value of the objective at one point of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct TracePoint {
    /// Iterations done, 0 for the start; those before a resumption included.
    pub iteration: usize,
    /// Objective of the parameters after them; of a run's last point, of the parameters that it ends with.
    pub objective: f64,
}

/// An event in a run besides its iterations.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Event {
    /// A prior had emptied entries of a block that positive cells need; 1e-12 was added to each of its entries.
    SupportRestored {
        /// Name of the block.
        block: String,
        /// The iteration, counted from 1.
        iteration: usize,
    },
}

/// The state of a run: all that is needed to continue it as if it had not been interrupted.
///
/// With the feature `serde` it can be kept in any format that keeps every digit of a number. JSON does if `serde_json` has its feature `float_roundtrip`; without it
/// a number that is read may differ in its last digit, and so does the run that goes on.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Checkpoint<T: Real> {
    pub(super) parameters: Parameters<T>,
    pub(super) memory: Memory,
    pub(super) iteration: usize,
    /// The last check, which the next is compared with.
    pub(super) checked: Option<TracePoint>,
    /// Checks in a row, up to the last, that found a change within the tolerance.
    pub(super) small_changes: usize,
    /// Why the run ended: a run resumed from here ends at once, as it did.
    pub(super) ended: Option<Status>,
}

impl<T: Real> Checkpoint<T> {
    /// A run that has not begun, from these parameters.
    pub fn new(parameters: Parameters<T>) -> Self {
        Self {
            parameters,
            memory: Memory::default(),
            iteration: 0,
            checked: None,
            small_changes: 0,
            ended: None,
        }
    }

    /// The parameters.
    pub fn parameters(&self) -> &Parameters<T> {
        &self.parameters
    }

    /// Iterations done.
    pub fn iteration(&self) -> usize {
        self.iteration
    }

    /// Takes the large parts out, by name, so that a file can hold them as arrays beside the rest; scalars are widened to `f64`, which
    /// changes none.
    pub fn take_arrays(&mut self) -> Vec<(String, DMatrix<f64>)> {
        let column = |values: Vec<f64>| DMatrix::from_vec(values.len(), 1, values);
        let mut arrays = self.parameters.take_arrays();
        for (j, point) in self.memory.points.iter_mut().enumerate() {
            arrays.push((format!("memory.{j}"), column(std::mem::take(point))));
        }
        let numbers = std::mem::take(&mut self.memory.numbers);
        arrays.push(("memory.numbers".into(), column(numbers)));
        arrays
    }

    /// Puts back what [`take_arrays`](Self::take_arrays) took, which `find` finds by its name.
    ///
    /// # Errors
    ///
    /// [`FitError::Checkpoint`] with the first that is not found.
    pub fn put_arrays(
        &mut self,
        mut find: impl FnMut(&str) -> Option<DMatrix<f64>>,
    ) -> Result<(), FitError> {
        let mut find = |name: &str| {
            find(name).ok_or_else(|| FitError::Checkpoint {
                what: format!("it has no `{name}`"),
            })
        };
        self.parameters.put_arrays(&mut find)?;
        for (j, point) in self.memory.points.iter_mut().enumerate() {
            *point = find(&format!("memory.{j}"))?.as_slice().to_vec();
        }
        self.memory.numbers = find("memory.numbers")?.as_slice().to_vec();
        Ok(())
    }
}

/// A fitted state, and how the run came to it.
#[derive(Clone, Debug)]
#[must_use]
pub struct Fit<S: State> {
    pub(super) state: S,
    pub(super) status: Status,
    pub(super) objective: f64,
    pub(super) compared: f64,
    pub(super) held_out_perplexity: Option<f64>,
    pub(super) trace: Vec<TracePoint>,
    pub(super) events: Vec<Event>,
    pub(super) checkpoint: Checkpoint<S::Scalar>,
}

impl<S: State> Fit<S> {
    /// The same fit with plain parameters as its state: one type for all models.
    pub fn untyped(self) -> Fit<Parameters<S::Scalar>> {
        Fit {
            state: self.state.parameters().clone(),
            status: self.status,
            objective: self.objective,
            compared: self.compared,
            held_out_perplexity: self.held_out_perplexity,
            trace: self.trace,
            events: self.events,
            checkpoint: self.checkpoint,
        }
    }

    /// The state that the run ended with.
    pub fn state(&self) -> &S {
        &self.state
    }

    /// The same fit with other blocks, which take the place of the fitted ones: a run goes on from them as from a start. Objective and trace stay those of the fitted
    /// blocks.
    ///
    /// # Errors
    ///
    /// Those of [`State::wrap`].
    pub fn change(
        mut self,
        change: impl FnOnce(&mut Parameters<S::Scalar>),
    ) -> Result<Self, FitError> {
        let mut parameters = self.state.parameters().clone();
        change(&mut parameters);
        self.checkpoint = Checkpoint {
            iteration: self.checkpoint.iteration,
            ..Checkpoint::new(parameters.clone())
        };
        self.state = S::wrap(parameters)?;
        Ok(self)
    }

    /// The state that the run ended with, taken out.
    pub fn into_state(self) -> S {
        self.state
    }

    /// The reason why the run ended.
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// The number of iterations done, those before a resumption included.
    pub fn iterations(&self) -> usize {
        self.checkpoint.iteration
    }

    /// The objective of the state, in its unit: nats for a likelihood.
    pub fn objective(&self) -> f64 {
        self.objective
    }

    /// The objective without the [`constant`](super::Algorithm::constant) that all fits of the model to the data share: what such fits are compared by.
    pub fn compared(&self) -> f64 {
        self.compared
    }

    /// The perplexity of the held-out counts under the state, where they chose it; see [`Cooling`](super::Cooling).
    pub fn held_out_perplexity(&self) -> Option<f64> {
        self.held_out_perplexity
    }

    /// The objective at every check of this run, and at its end.
    pub fn trace(&self) -> &[TracePoint] {
        &self.trace
    }

    /// The events in the run besides its iterations.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The checkpoint that continues the run.
    pub fn checkpoint(&self) -> &Checkpoint<S::Scalar> {
        &self.checkpoint
    }
}
