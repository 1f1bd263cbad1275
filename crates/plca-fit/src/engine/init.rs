//! Starts of runs.

use nalgebra::DMatrix;
use plca_tensor::Real;
use rand::Rng;

use super::{Algorithm, FitError, Parameters, State};

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
        let blocks = specs.iter().map(|spec| {
            let given = self.given.iter().rev().find(|(name, _)| spec.name == *name);
            spec.start(given.map(|(_, value)| value), rng)
        });
        let at = Parameters::new(specs, blocks.collect::<Result<_, _>>()?)?;
        let at = at.with(algorithm.power(), algorithm.mass());
        let facts = algorithm.facts().into_iter();
        let at = facts.fold(at, |at, (name, numbers)| at.with_fact(name, numbers));
        algorithm.check_start(&at)?;
        Ok(at)
    }
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
