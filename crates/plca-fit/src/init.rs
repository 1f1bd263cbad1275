//! Starts of runs.

use std::collections::BTreeMap;

use nalgebra::DMatrix;
use plca_tensor::Real;
use rand::Rng;

use super::block::check_known;
use super::{Algorithm, BlockSpec, Draw, FitError, Frozen, Parameters, SCALE, State};

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
#[derive(Clone, Debug, Default)]
pub struct Init<T: Real> {
    given: BTreeMap<String, DMatrix<T>>,
    start: Start,
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
        self.given.insert(name.into(), value);
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
        check_known(specs, self.given.keys())?;
        let is_data = |spec: &BlockSpec<T>| matches!(spec.draw, Draw::Data(_));
        let missing = |spec: &&BlockSpec<T>| {
            let given = self.given.contains_key(&*spec.name);
            spec.frozen != Frozen::No && !given && !is_data(spec)
        };
        if let Some(spec) = specs.iter().find(missing) {
            let block = spec.name.to_string();
            return Err(FitError::NotGiven { block });
        }
        if self.start != Start::Drawn {
            let given = specs.iter().enumerate().map(|(j, spec)| {
                let given = self.given.get(&*spec.name).cloned();
                given.map(|value| algorithm.given(j, value)).transpose()
            });
            let mut blocks = given.collect::<Result<Vec<_>, _>>()?;
            algorithm.fill(self.start, &mut blocks)?;
            // What a model does not fill has a value of its own.
            let blocks = blocks.into_iter().zip(specs);
            let blocks = blocks.map(|(block, spec)| block.unwrap_or_else(|| spec.even()));
            return begin(algorithm, blocks.collect());
        }
        // Random numbers are drawn for given blocks too, so that what is given changes no other block.
        let mut blocks = algorithm.draw(rng)?;
        let mut known = vec![false; specs.len()];
        for (j, (block, spec)) in blocks.iter_mut().zip(specs).enumerate() {
            let given = self.given.get(&*spec.name);
            known[j] = given.is_some();
            if let Some(value) = given.filter(|_| !is_data(spec)) {
                // The model says what it takes: some project what is no distribution.
                algorithm.given(j, value.clone())?;
                block.clone_from(value);
            }
        }
        algorithm.complete(&mut blocks, &known)?;
        begin(algorithm, blocks)
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
