//! Expected counts.

use nalgebra::DMatrix;
use plca_fit::{BlockSpec, Counts, Expectation, Exposure, FitError, Parameters, Renewed, Wanted};
use plca_tensor::{Real, SignedWanted};
use rand::Rng;

use crate::sides::split;
use crate::signed::{SignedData, unsupported};

/// Skellam semi-NMF on data.
#[derive(Debug)]
pub(super) struct SnmfCounts<T: Real> {
    pub(super) data: SignedData<T>,
    pub(super) specs: Vec<BlockSpec<T>>,
}

impl<T: Real> Expectation<T> for SnmfCounts<T> {
    fn blocks(&self) -> &[BlockSpec<T>] {
        &self.specs
    }

    fn expect(&self, at: &Parameters<T>, wanted: &Wanted<'_>) -> Result<Counts<T>, FitError> {
        let pass = SignedWanted {
            left: wanted.blocks[0],
            right: wanted.blocks[1],
            value: wanted.value,
        };
        let factors = [at.at(0), at.at(1)];
        self.data.counts(&self.specs, factors, pass)
    }

    /// Atoms sum to 1, and hidden cells are counted: an activation is exposed to 1.
    fn exposure(&self, block: usize, _: Renewed<'_, T>) -> Option<Exposure<T>> {
        let components = self.specs[1].shape.0;
        (block == 1).then(|| Exposure::PerComponent(vec![T::one(); components]))
    }

    fn unsupported(&self, at: &Parameters<T>) -> Result<Option<(Vec<usize>, f64)>, FitError> {
        let [plus, minus] = split(at.at(0));
        let lost = unsupported(&self.data.cells, [&plus, &minus], at.at(1));
        Ok(lost.map(|(at, value)| (at.to_vec(), value)))
    }

    fn draw(&self, rng: &mut dyn Rng) -> Result<Vec<DMatrix<T>>, FitError> {
        let k = self.specs[1].shape.0;
        let atoms = self.data.atoms(k, rng);
        Ok(vec![atoms, self.data.activations(k, rng)])
    }

    /// The sum of the absolute values.
    fn unit(&self) -> f64 {
        self.data.size
    }
}
