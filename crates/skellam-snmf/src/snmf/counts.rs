//! Expected counts.

use nalgebra::DMatrix;
use plca_fit::{
    FitError, Parameters, Progress,
    blocks::{BlockSpec, Exposure},
    em::{Counts, Expectation, Renewed, Wanted},
};
use plca_tensor::{Real, SignedWanted};

use crate::Replicates;
use crate::bounds::{Bounds, facts};
use crate::sides::{split, tame};
use crate::signed::{SignedData, unsupported};

/// Skellam semi-NMF on data.
#[derive(Debug)]
pub(super) struct SnmfCounts<T: Real> {
    pub(super) data: SignedData<T>,
    pub(super) specs: Vec<BlockSpec<T>>,
    /// Of the activations.
    pub(super) bounds: Bounds,
}

impl<T: Real> SnmfCounts<T> {
    /// Expected counts, those of the atoms as large as they are.
    pub(super) fn counted(
        &self,
        at: &Parameters<T>,
        wanted: &Wanted<'_>,
    ) -> Result<Counts<T>, FitError> {
        let pass = SignedWanted {
            left: wanted.blocks[0],
            right: wanted.blocks[1],
            value: wanted.value,
        };
        let activations = self.bounds.held(at.at(1), &self.specs[1]);
        let factors = [at.at(0), &*activations];
        let mut counts = self
            .data
            .counts(&self.specs, factors, pass, wanted.count_unit)?;
        if let Some(activations) = &mut counts.blocks[1] {
            self.bounds
                .hold_in(wanted.count_unit, activations, &self.specs[1]);
        }
        Ok(counts)
    }
}

impl<T: Real> Expectation<T> for SnmfCounts<T> {
    fn blocks(&self) -> &[BlockSpec<T>] {
        &self.specs
    }

    fn expect(&self, at: &Parameters<T>, wanted: &Wanted<'_>) -> Result<Counts<T>, FitError> {
        let mut counts = self.counted(at, wanted)?;
        if let (None, Some(atoms)) = (&self.specs[0].prior, &mut counts.blocks[0]) {
            tame(atoms);
        }
        Ok(counts)
    }

    /// Atoms sum to 1, and hidden cells are counted: an activation is exposed to 1.
    fn exposure(&self, block: usize, _: Renewed<'_, T>) -> Option<Exposure<T>> {
        let components = self.specs[1].shape.0;
        (block == 1).then(|| Exposure::PerComponent(vec![T::one(); components]))
    }

    fn unsupported(&self, at: &Parameters<T>) -> Result<Option<(Vec<usize>, f64)>, FitError> {
        if self.data.split.is_noisy() {
            return Ok(None);
        }
        let [plus, minus] = split(at.at(0));
        let lost = unsupported(&self.data.cells, [&plus, &minus], at.at(1));
        Ok(lost.map(|(at, value)| (at.to_vec(), value)))
    }

    /// A start beyond the bound is brought within it, so that what is written is what was measured.
    fn complete(
        &self,
        blocks: &mut [DMatrix<T>],
        _: &[bool],
        _: &mut Progress<'_>,
    ) -> Result<(), FitError> {
        self.bounds.hold(&mut blocks[1], &self.specs[1]);
        Ok(())
    }

    fn facts(&self) -> Vec<(&'static str, Vec<f64>)> {
        facts(self.data.noise, &self.bounds, Replicates::BOUND)
    }

    fn rate_unit(&self, _: usize) -> Option<f64> {
        Some(self.data.split.replicates.rate_unit(self.data.size))
    }

    fn count_unit(&self) -> f64 {
        1.0 / self.data.split.scale()
    }

    /// The sum of the absolute values.
    fn unit(&self) -> f64 {
        self.data.unit()
    }
}
