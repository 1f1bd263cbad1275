//! New data under a learnt state.

use plca_fit::explain::Each;
use plca_fit::{Explained, FitError, Parameters, Transform};
use plca_tensor::{Data, MAX_ORDER, Real};

use crate::RunError;
use crate::kind::Kind;
use crate::options::wrong_value;

/// What new data are explained by.
#[derive(Debug)]
pub enum Answer<T: Real = f64> {
    /// By a state of all observations.
    Together(Box<Explained<Parameters<T>>>),
    /// By a row for every observation.
    Each(Each),
}

impl<T: Real> From<Explained<Parameters<T>>> for Answer<T> {
    fn from(all: Explained<Parameters<T>>) -> Self {
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
    /// The shape of the data of the fit, where new data may differ along their dimension alone.
    shape: Option<Vec<usize>>,
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
    /// Of a model and what it has learnt: the dimension of the observations, how many numbers each has, and the blocks that describe them.
    pub(crate) fn new<K: Kind>(
        model: K,
        learnt: K::State<f64>,
        (along, numbers): (usize, usize),
        blocks: &[&str],
    ) -> Self {
        Self {
            along,
            numbers,
            blocks: blocks.iter().map(ToString::to_string).collect(),
            one_gap: false,
            bounds: false,
            shape: None,
            explain: Box::new(move |data, how, each| {
                model.explain(&learnt, data, &how.along(along), each)
            }),
        }
    }

    pub(crate) fn by_bounds(self) -> Self {
        Self {
            bounds: true,
            ..self
        }
    }

    pub(crate) fn with_shape(self, shape: Vec<usize>) -> Self {
        Self {
            shape: Some(shape),
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
        if let Some(shape) = &self.shape {
            let (got, others) = (data.shape(), |d: usize| d != self.along);
            let differs = |d: usize| others(d) && got[d] != shape[d];
            if got.len() != shape.len() || (0..got.len()).any(differs) {
                let size = |d: usize| match others(d) {
                    true => shape[d].to_string(),
                    false => "any".into(),
                };
                return Err(FitError::DataShape {
                    got: got.to_vec(),
                    expected: (0..shape.len()).map(size).collect(),
                });
            }
        }
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

/// The same without a dimension, for models of which new data have one place to lie in.
pub(crate) fn without_dimension(how: &Transform) -> Transform {
    let mut how = how.clone();
    how.along = None;
    how
}
