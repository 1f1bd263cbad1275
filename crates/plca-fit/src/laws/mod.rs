//! What every model obeys (feature `laws`): a test kit for models and algorithms of your own.
//!
//! Each function holds a subject against one or a few laws and returns the first [`Violation`]: which law, in which block and at which entry, what is
//! wrong (the expectation, the value, the exposure or the step), and the numbers.
//! The laws are made of the contract of [`Algorithm`] and never of the formulas of a model.
//!
//! | function | laws |
//! |---|---|
//! | [`check_model`] | [`check_counts`], [`check`] and [`check_resumed`] with every solver, [`check_unsupported`], [`check_threads`] |
//! | [`check`] | a step succeeds, the measured value is the objective, measuring changes nothing, monotone, residual; of plain steps [`check_steps`] |
//! | [`check_counts`] | counts less exposure are the slope of the value: tells a wrong expectation, value and exposure apart |
//! | [`check_steps`] | plain steps leave every block valid, renew each to one that is not worse, and leave none that still has a slope |
//! | [`check_valid`] | one step leaves every block valid, and what is frozen as it was |
//! | [`check_unsupported`] | the first datum that no component explains is named, and nothing else |
//! | [`check_failure`] | a step that fails changes nothing |
//! | [`check_resumed`] | a run that is interrupted and resumed is bit-identical to one that is not |
//! | [`check_threads`] | the number of threads changes no bit |
//! | [`check_moved`] | permutations and scales of the data permute and scale the result |
//! | [`check_gradient`] | the residual is the largest slope of the objective |
//! | [`check_rate`] | planted parts are recovered, intervals cover, as often as claimed |
//! | [`check_definition`] | the objective of a fit is its definition, computed of its parameters |
//! | [`check_units`], [`check_per_unit`] | data in another unit give the same fit in that unit |
//! | [`check_neighbours`] | what is said of an observation does not depend on the others |
//! | [`check_starts`] | of several starts the best is kept |
//!
//! ```
//! use plca_fit::laws::{Claims, Law, Rounding, check};
//! use plca_fit::{blocks::{Axes, BlockSpec, Constraint}, em::Stepped, Algorithm, FitError, Parameters, Solver};
//!
//! /// Goes a part of the way to 3, or walks past it.
//! #[derive(Debug)]
//! struct Towards { part: f64, blocks: [BlockSpec<f64>; 1] }
//!
//! impl Algorithm<f64> for Towards {
//!     fn blocks(&self) -> &[BlockSpec<f64>] { &self.blocks }
//!     fn step(&self, at: &mut Parameters<f64>, measure: bool) -> Result<Stepped, FitError> {
//!         let value = if measure { Some(self.objective(at)?) } else { None };
//!         at.change(|_, x| x[0] += (3.0 - x[0]) * self.part);
//!         at.count();
//!         Ok(Stepped { value, ..Stepped::default() })
//!     }
//!     fn objective(&self, at: &Parameters<f64>) -> Result<f64, FitError> { Ok(-(at.at(0)[0] - 3.0).powi(2)) }
//!     fn unit(&self) -> f64 { 1.0 }
//!     fn extrapolates(&self, _: &Parameters<f64>) -> Result<(), FitError> { Ok(()) }
//! }
//!
//! let towards = |part| Towards { part, blocks: [BlockSpec::values("x", (1, 1), Axes::SINGLE, Constraint::Free)] };
//! let start = Parameters::new(&towards(0.5).blocks, vec![nalgebra::dmatrix![0.0]])?;
//! let claims = Claims::new(Rounding::derived(f64::EPSILON, 3, 9.0));
//! assert!(check(&towards(0.5), Solver::Em, &start, &claims).is_ok());
//! let violation = check(&towards(2.5), Solver::Em, &start, &claims).unwrap_err();
//! assert_eq!((violation.law, violation.block.as_deref(), violation.entry), (Law::Block, Some("x"), Some((0, 0))));
//! # Ok::<(), FitError>(())
//! ```

mod counts;
mod definition;
mod gradient;
mod model;
mod moved;
mod neighbours;
mod places;
mod rate;
mod renewal;
mod starts;
mod steps;
mod units;
mod unsupported;

use std::fmt;

pub use counts::check_counts;
pub use definition::{Terms, check_definition};
pub use gradient::{Way, check_gradient};
pub use model::check_model;
pub use moved::{Agreement, Point, agree, blocks, check_moved, check_threads, follow};
pub use neighbours::check_neighbours;
pub use rate::check_rate;
pub use renewal::{Renewal, check_steps, check_valid};
pub use starts::check_starts;
pub use steps::{check, check_failure, check_resumed, never_worse};
pub use units::{Units, check_per_unit, check_units};
pub use unsupported::check_unsupported;

use plca_tensor::Real;

use crate::{Algorithm, FitError, Memory, Parameters, Solver, Steps};

/// A law that every model or algorithm obeys.
///
/// ```
/// use plca_fit::laws::{Law, check_threads};
/// let violation = check_threads(rayon::current_num_threads).unwrap_err();
/// assert_eq!(violation.law, Law::Threads);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Law {
    /// A step from a valid state succeeds, and leaves a state whose objective is finite.
    Accepts,
    /// What a step measures is the objective of the state it was given.
    Measured,
    /// A step that measures and one that does not are bit-identical.
    MeasuringChangesNothing,
    /// The objective is never worse after a step.
    Monotone,
    /// After a step every block satisfies its constraint.
    Valid,
    /// What is frozen keeps its bits.
    Frozen,
    /// The new value of one block, the others as before, is not worse.
    Block,
    /// A block whose step gains nothing has no slope.
    Stuck,
    /// The counts of the E-step, less the exposure, are the slope of the value.
    Expectation,
    /// The value is the one whose slope the counts are.
    Value,
    /// What counts are divided by is what the value loses.
    Exposure,
    /// A datum that no component explains is named, the first one.
    Unsupported,
    /// The residual is a number that is not negative.
    Residual,
    /// A step that fails leaves the state as it was.
    Atomic,
    /// An interrupted run, resumed, is the run without the interruption.
    Resume,
    /// Parameters that are taken apart for extrapolation and put together again are the parameters.
    Extrapolated,
    /// The number of threads changes no bit.
    Threads,
    /// Another order of indices, components or modes is another order of the result.
    Permutation,
    /// Another unit of the data is another unit of the result.
    Scale,
    /// Two ways to state the same problem give the same result.
    Same,
    /// The residual is the largest slope of the objective.
    Gradient,
    /// What is promised to happen so often does.
    Rate,
    /// The objective that is reported is its definition, of the parameters that are reported.
    Definition,
    /// What is said of an observation does not depend on the other observations.
    Neighbours,
    /// The best of several starts is kept.
    Starts,
}

/// The law that was broken, and how.
///
/// ```
/// use plca_fit::laws::check_threads;
/// let violation = check_threads(rayon::current_num_threads).unwrap_err();
/// assert_eq!(violation.to_string(), "law `Threads` is broken: 1 with one thread, 2 with 2");
/// ```
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("law `{law:?}` is broken{}: {details}", place(*.law, .block.as_deref(), *.entry))]
pub struct Violation {
    /// The law.
    pub law: Law,
    /// The block in which it is, if it is in one.
    pub block: Option<String>,
    /// The row and the column of the entry in which it is seen best.
    pub entry: Option<(usize, usize)>,
    /// Where, and the numbers.
    pub details: String,
}

/// What was wrong where, in words.
fn place(law: Law, block: Option<&str>, entry: Option<(usize, usize)>) -> String {
    let what = match law.part() {
        "" => String::new(),
        part => format!(" by {part}"),
    };
    match (block, entry) {
        (None, _) => what,
        (Some(block), None) => format!("{what}, in `{block}`"),
        (Some(block), Some((row, column))) => {
            format!("{what}, in `{block}` at row {row}, column {column}")
        }
    }
}

impl Law {
    /// The part of a model that is wrong where this law is broken; empty where that may be any.
    pub const fn part(self) -> &'static str {
        match self {
            Self::Valid | Self::Frozen | Self::Block | Self::Stuck => "the step",
            Self::Expectation => "the expectation, the counts of the E-step",
            Self::Value | Self::Definition => "the value of the objective",
            Self::Exposure => "the exposure",
            Self::Unsupported => "what is called unsupported",
            _ => "",
        }
    }
}

impl Violation {
    fn new(law: Law, details: impl fmt::Display) -> Self {
        Self {
            law,
            block: None,
            entry: None,
            details: details.to_string(),
        }
    }

    /// The same, in this block, at this row and column of it.
    fn at(self, block: String, entry: Option<(usize, usize)>) -> Self {
        let block = Some(block);
        Self {
            block,
            entry,
            ..self
        }
    }
}

/// The amount by which rounding may move an objective, derived or stated.
///
/// ```math
/// \text{allowed} = \text{relative} \cdot |J| + \text{absolute}
/// ```
///
/// `J` is the objective.
///
/// ```
/// use plca_fit::laws::Rounding;
/// // A likelihood of 3 components, 2 modes of at most 10 indices, in single precision, of data with the mass 1000.
/// let rounding = Rounding::derived(f32::EPSILON.into(), 3 + 2 + 10, 1000.0);
/// assert!((rounding.allowed(-500.0) - 15.0 * 1500.0 * f64::from(f32::EPSILON)).abs() < 1e-12);
/// // One that was stated, for an objective in the unit of squared data.
/// let rounding = Rounding { relative: 0.0, absolute: 1e-14 };
/// assert_eq!(rounding.allowed(7.0), 1e-14);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rounding {
    /// In units of the objective's size; has no unit.
    pub relative: f64,
    /// Whatever the objective is, in its unit.
    pub absolute: f64,
}

impl Rounding {
    /// The rounding of a sum of terms.
    ///
    /// `depth` rounded operations stand behind one term: components added up, factors multiplied, and the length of the longest column
    /// that is normalised. Each errs by at most half an `epsilon`, the distance from 1 to the next number of the scalar, relative to its
    /// result. So a term errs by `depth epsilon / 2` times what it is made of; two objectives that are compared err by twice as much:
    ///
    /// ```math
    /// \text{allowed} = \text{depth} \cdot \text{epsilon} \cdot (|J| + \text{size})
    /// ```
    ///
    /// `size` is what the terms are made of where they cancel, in the unit of the objective. Of a log-likelihood `Σ V ln P` that is the
    /// mass `Σ |V|`: a relative error of `P` moves the sum by as many times the mass, however small the sum is. Add the absolute values
    /// of the terms of priors.
    ///
    /// ```
    /// use plca_fit::laws::Rounding;
    /// assert_eq!(Rounding::derived(0.5, 4, 10.0), Rounding { relative: 2.0, absolute: 20.0 });
    /// ```
    pub const fn derived(epsilon: f64, depth: usize, size: f64) -> Self {
        let relative = depth as f64 * epsilon;
        Self {
            relative,
            absolute: relative * size,
        }
    }

    /// The distance that two objectives near `value` may be apart by rounding.
    pub fn allowed(&self, value: f64) -> f64 {
        self.relative * value.abs() + self.absolute
    }
}

/// The promises of a method beyond the laws of all methods.
///
/// ```
/// use plca_fit::laws::{Claims, Renewal, Rounding};
/// let rounding = Rounding::derived(f64::EPSILON, 10, 100.0);
/// // An annealed method: its objective changes on the way, and steps raise another.
/// let claims = Claims { monotone: false, renewal: Renewal::Otherwise, ..Claims::new(rounding) };
/// assert_eq!(claims.iterations, 10);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claims {
    /// Iterations that are watched (default 10).
    pub iterations: usize,
    /// No step makes the objective worse, and every step that is asked to measure does (default).
    pub monotone: bool,
    /// How a plain step renews the blocks (default [`Renewal::Apart`]).
    pub renewal: Renewal,
    /// Counts and exposures of an E-step are the slopes of the value (default): not where hidden cells are imputed at another scale than the
    /// model's.
    pub counts: bool,
    /// Plain iterations after those that are watched, to reach a step without gain (default 1000): there no block may have a slope.
    pub settles: usize,
    /// How far rounding may move the objective.
    pub rounding: Rounding,
    /// Iterations after which two runs of one problem are compared (default 3): few, for iterations amplify rounding.
    pub compared: usize,
    /// Difference of two parameters of such runs, relative to the largest of their block; 0 asks for equal numbers. Default: the root of
    /// [`Rounding::relative`].
    pub entries: f64,
}

impl Claims {
    /// Promises everything, except for rounding.
    pub fn new(rounding: Rounding) -> Self {
        Self {
            iterations: 10,
            monotone: true,
            renewal: Renewal::Apart,
            counts: true,
            settles: 1000,
            rounding,
            compared: 3,
            entries: rounding.relative.sqrt(),
        }
    }
}

/// Why something was refused that must not be.
fn refused(iteration: usize, e: &FitError) -> Violation {
    let details = format!("refused at iteration {iteration}: {e}");
    Violation::new(Law::Accepts, details)
}

/// An algorithm under a solver, and where it stands.
struct Walk<'a, T: Real> {
    algorithm: &'a dyn Algorithm<T>,
    steps: Box<dyn Steps<T> + 'a>,
    at: Parameters<T>,
    iteration: usize,
}

impl<'a, T: Real> Walk<'a, T> {
    fn new(
        algorithm: &'a dyn Algorithm<T>,
        solver: Solver,
        (at, memory, iteration): (&Parameters<T>, Memory, usize),
    ) -> Result<Self, Violation> {
        let steps = solver.on(algorithm, memory);
        Ok(Self {
            algorithm,
            steps: steps.map_err(|e| refused(iteration, &e))?,
            at: at.clone(),
            iteration,
        })
    }

    /// One iteration; what it measured.
    fn step(&mut self, measure: bool) -> Result<Option<f64>, Violation> {
        self.iteration += 1;
        let stepped = self.steps.step(&mut self.at, measure);
        Ok(stepped.map_err(|e| refused(self.iteration, &e))?.value)
    }

    fn objective(&self) -> Result<f64, Violation> {
        objective(self.algorithm, &self.at, self.iteration)
    }
}

/// An objective, which is to be finite.
fn objective<T: Real>(
    algorithm: &dyn Algorithm<T>,
    at: &Parameters<T>,
    iteration: usize,
) -> Result<f64, Violation> {
    let value = algorithm.objective(at);
    let value = value.map_err(|e| refused(iteration, &e))?;
    match value.is_finite() {
        true => Ok(value),
        false => {
            let details = format!("the objective after {iteration} iterations is {value}");
            Err(Violation::new(Law::Accepts, details))
        }
    }
}
