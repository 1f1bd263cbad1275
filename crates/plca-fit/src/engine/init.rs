//! Starts of runs.

use nalgebra::DMatrix;
use plca_tensor::Real;
use rand::Rng;

use super::{Algorithm, Draw, FitError, Frozen, Parameters, State};

/// What a run starts from: blocks that are given, the others drawn.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_fit::engine::Init;
/// let start = Init::default().block("weights", dmatrix![0.5; 0.5]);
/// ```
#[derive(Clone, Debug)]
pub struct Init<T: Real> {
    given: Vec<(String, DMatrix<T>)>,
}

impl<T: Real> Default for Init<T> {
    fn default() -> Self {
        Self { given: Vec::new() }
    }
}

impl<T: Real> Init<T> {
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
    /// [`Algorithm::check_start`].
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
        // Random numbers are drawn for given blocks too, so that what is given changes no other block.
        let drawn = algorithm.draw(rng)?;
        let mut blocks = Vec::with_capacity(specs.len());
        let mut known = Vec::with_capacity(specs.len());
        for (spec, drawn) in specs.iter().zip(drawn) {
            let given = self.given.iter().rev().find(|(name, _)| spec.name == *name);
            known.push(given.is_some());
            blocks.push(match given {
                Some(_) if matches!(spec.draw, Draw::Data(_)) => drawn,
                Some((_, value)) => {
                    spec.check_values(value)?;
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
    let blocks = specs
        .iter()
        .zip(blocks)
        .map(|(spec, block)| spec.given(block));
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
        }
    }
}
