//! New data under a learnt state.

use plca_fit::{Explained, FitError, Parameters, Transform, explain::Each};
use plca_tensor::{Data, MAX_ORDER};

use crate::RunError;
use crate::options::wrong_value;

/// What new data are explained by.
#[derive(Debug)]
pub enum Answer {
    /// By a state of all observations.
    Together(Box<Explained<Parameters<f64>>>),
    /// By a row for every observation.
    Each(Each),
}

impl From<Explained<Parameters<f64>>> for Answer {
    fn from(all: Explained<Parameters<f64>>) -> Self {
        Self::Together(Box::new(all))
    }
}

/// What explains data, each observation as a batch of one where that is asked for.
type Explain = dyn Fn(&dyn Data<f64>, Transform, bool) -> Result<Answer, FitError>;

/// A learnt state that explains new data.
pub struct Explainer {
    /// The dimension of the observations.
    pub along: usize,
    /// How many numbers an observation has.
    pub numbers: usize,
    /// The blocks that describe the new data.
    pub blocks: Vec<String>,
    /// Whether all observations have one gap.
    pub one_gap: bool,
    /// Whether the objective is a bound of which the perplexity follows.
    pub bounds: bool,
    explain: Box<Explain>,
}

impl std::fmt::Debug for Explainer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Explainer")
            .field("along", &self.along)
            .field("blocks", &self.blocks)
            .finish_non_exhaustive()
    }
}

impl Explainer {
    /// One that explains all observations together, whether or not each is asked for alone.
    pub(crate) fn new(
        (along, numbers): (usize, usize),
        blocks: &[&str],
        explain: impl Fn(&dyn Data<f64>, Transform) -> Result<Explained<Parameters<f64>>, FitError>
        + 'static,
    ) -> Self {
        Self::of_each((along, numbers), blocks, move |data, how, _| {
            Ok(Answer::Together(Box::new(explain(data, how)?)))
        })
    }

    /// One that can explain each observation alone.
    pub(crate) fn of_each(
        (along, numbers): (usize, usize),
        blocks: &[&str],
        explain: impl Fn(&dyn Data<f64>, Transform, bool) -> Result<Answer, FitError> + 'static,
    ) -> Self {
        Self {
            along,
            numbers,
            blocks: blocks.iter().map(ToString::to_string).collect(),
            one_gap: false,
            bounds: false,
            explain: Box::new(explain),
        }
    }

    pub(crate) fn by_bounds(self) -> Self {
        Self {
            bounds: true,
            ..self
        }
    }

    pub(crate) fn with_one_gap(self) -> Self {
        Self {
            one_gap: true,
            ..self
        }
    }

    /// Explains data; with `each`, every observation as a batch of one.
    ///
    /// # Errors
    ///
    /// Those of the model.
    pub fn explain(
        &self,
        data: &dyn Data<f64>,
        how: Transform,
        each: bool,
    ) -> Result<Answer, FitError> {
        (self.explain)(data, how, each)
    }
}

/// The dimension of the observations: the one that is asked for, which a model may allow as it stands or only where it is `default`.
pub(crate) fn along(
    asked: Option<usize>,
    default: usize,
    allowed: impl Fn(usize) -> bool,
) -> Result<usize, RunError> {
    let along = asked.unwrap_or(default);
    if allowed(along) {
        return Ok(along);
    }
    let known: Vec<String> = (0..MAX_ORDER)
        .filter(|&d| allowed(d))
        .map(|d| d.to_string())
        .collect();
    let what = format!(
        "the observations of this model lie along dimension {}",
        known.join(" or ")
    );
    Err(wrong_value("along", along.to_string(), what))
}

/// Refuses a dimension, where data are transformed as a whole.
pub(crate) fn whole(asked: Option<usize>, what: &str) -> Result<(), RunError> {
    match asked {
        Some(_) => Err(crate::options::wrong("along", what)),
        None => Ok(()),
    }
}
