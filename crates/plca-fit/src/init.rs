//! Starts of runs.

use nalgebra::DMatrix;
use plca_tensor::Real;
use rand::Rng;

use super::{Algorithm, Draw, FitError, Frozen, Parameters, SCALE, State};

/// The source of the blocks that a start does not give.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Start {
    /// They are drawn, as [`BlockSpec::draw`](super::BlockSpec::draw) says.
    #[default]
    Drawn,
    /// Component after component from what the earlier ones leave over of the data. Draws nothing.
    Deflation,
}

impl Start {
    /// The name on the command line and in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Drawn => "drawing",
            Self::Deflation => "deflation",
        }
    }
}

/// The start of a run: blocks that are given, the others drawn or read off the data.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_fit::Init;
/// let start = Init::default().block("weights", dmatrix![0.5; 0.5]);
/// ```
#[derive(Clone, Debug)]
pub struct Init<T: Real> {
    given: Vec<(String, DMatrix<T>)>,
    start: Start,
}

impl<T: Real> Default for Init<T> {
    fn default() -> Self {
        Self {
            given: Vec::new(),
            start: Start::default(),
        }
    }
}

impl<T: Real> Init<T> {
    /// A start by [`Start::Deflation`].
    ///
    /// ```
    /// use plca_fit::{Init, Start};
    /// assert_eq!(Init::<f64>::deflation().start(), Start::Deflation);
    /// ```
    pub fn deflation() -> Self {
        Self {
            start: Start::Deflation,
            ..Self::default()
        }
    }

    /// The source of the blocks that are not given.
    pub fn start(&self) -> Start {
        self.start
    }

    /// Gives a block by its name; the last of one name counts.
    #[must_use]
    pub fn block(mut self, name: impl Into<String>, value: DMatrix<T>) -> Self {
        self.given.push((name.into(), value));
        self
    }

    /// The parameters that a run of this algorithm starts from.
    ///
    /// # Errors
    ///
    /// [`FitError::UnknownBlock`], [`FitError::NotGiven`], [`FitError::Shape`], [`FitError::Value`], [`FitError::Empty`], and those of
    /// [`Algorithm::fill`] and [`Algorithm::check_start`].
    pub fn parameters(
        &self,
        algorithm: &dyn Algorithm<T>,
        rng: &mut dyn Rng,
    ) -> Result<Parameters<T>, FitError> {
        let specs = algorithm.blocks();
        let unknown = |(name, _): &&(String, _)| !specs.iter().any(|spec| spec.name == **name);
        if let Some((name, _)) = self.given.iter().find(unknown) {
            return Err(FitError::UnknownBlock {
                name: name.clone(),
                expected: specs.iter().map(|spec| spec.name.to_string()).collect(),
            });
        }
        if self.start != Start::Drawn {
            return self.filled(algorithm);
        }
        // Random numbers are drawn for given blocks too, so that what is given changes no other block.
        let drawn = algorithm.draw(rng)?;
        let mut blocks = Vec::with_capacity(specs.len());
        let mut known = Vec::with_capacity(specs.len());
        for (j, (spec, drawn)) in specs.iter().zip(drawn).enumerate() {
            let given = self.of(&spec.name);
            known.push(given.is_some());
            blocks.push(match given {
                Some(_) if matches!(spec.draw, Draw::Data(_)) => drawn,
                Some(value) => {
                    // The model says what it takes: some project what is no distribution.
                    algorithm.given(j, value.clone())?;
                    value.clone()
                }
                None if spec.frozen == Frozen::No || matches!(spec.draw, Draw::Data(_)) => drawn,
                None => {
                    return Err(FitError::NotGiven {
                        block: spec.name.to_string(),
                    });
                }
            });
        }
        algorithm.complete(&mut blocks, &known)?;
        begin(algorithm, blocks)
    }

    /// The value that is given to a block.
    fn of(&self, name: &str) -> Option<&DMatrix<T>> {
        let mut given = self.given.iter().rev();
        let given = given.find(|(other, _)| name == *other);
        given.map(|(_, value)| value)
    }

    /// The parameters of a start that is read off the data.
    fn filled(&self, algorithm: &dyn Algorithm<T>) -> Result<Parameters<T>, FitError> {
        let specs = algorithm.blocks();
        let given = specs.iter().enumerate().map(|(j, spec)| {
            let given = self.of(&spec.name);
            if given.is_none() && spec.frozen != Frozen::No && !matches!(spec.draw, Draw::Data(_)) {
                let block = spec.name.to_string();
                return Err(FitError::NotGiven { block });
            }
            let given = given.map(|value| algorithm.given(j, value.clone()));
            given.transpose()
        });
        let mut blocks = given.collect::<Result<Vec<_>, _>>()?;
        algorithm.fill(self.start, &mut blocks)?;
        // What a model does not fill has a value of its own.
        let blocks = blocks.into_iter().zip(specs);
        let blocks = blocks.map(|(block, spec)| block.unwrap_or_else(|| spec.even()));
        begin(algorithm, blocks.collect())
    }
}

/// Parameters with what the model must be multiplied by to approximate the data, where that is not their sum alone.
pub(super) fn scaled<T: Real>(
    algorithm: &dyn Algorithm<T>,
    at: Parameters<T>,
) -> Result<Parameters<T>, FitError> {
    Ok(match algorithm.scale(&at)? {
        // A model without mass in the observed cells has no scale.
        Some(scale) if scale.iter().all(|x| x.is_finite()) => at.with_fact(SCALE, scale),
        _ => at.without_fact(SCALE),
    })
}

/// The parameters that blocks stand for, in the order of the algorithm.
///
/// # Errors
///
/// [`FitError::Shape`], [`FitError::Value`], [`FitError::Empty`], and those of [`Algorithm::check_start`].
pub fn begin<T: Real>(
    algorithm: &dyn Algorithm<T>,
    blocks: Vec<DMatrix<T>>,
) -> Result<Parameters<T>, FitError> {
    let specs = algorithm.blocks();
    let blocks = (0..specs.len()).zip(blocks);
    let blocks = blocks.map(|(j, block)| algorithm.given(j, block));
    let at = Parameters::new(specs, blocks.collect::<Result<_, _>>()?)?;
    let at = at.with(algorithm.power(), algorithm.mass());
    let facts = algorithm.facts().into_iter();
    let at = facts.fold(at, |at, (name, numbers)| at.with_fact(name, numbers));
    algorithm.check_start(&at)?;
    Ok(at)
}

/// A warm start: all blocks of a state.
impl<S: State> From<&S> for Init<S::Scalar> {
    fn from(state: &S) -> Self {
        let blocks = state.parameters().blocks();
        Self {
            given: blocks.map(|(name, b)| (name.into(), b.clone())).collect(),
            start: Start::default(),
        }
    }
}
