//! Expected counts.

use nalgebra::DMatrix;
use plca_fit::engine::{
    BlockSpec, Counts, Expectation, Exposure, FitError, Parameters, Renewed, Wanted,
};
use plca_tensor::{Real, SignedModel, SignedWanted};
use rand::Rng;

use crate::check::finite;
use crate::sides::{split, stack, tame};
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
        let ([plus, minus], right) = (split(at.at(0)), at.at(1));
        let model = SignedModel {
            plus: &plus,
            minus: &minus,
            right,
        };
        let pass = SignedWanted {
            left: wanted.blocks[0],
            right: wanted.blocks[1],
            value: wanted.value,
        };
        let sums = self.data.cells.pass(&model, &self.data.split, pass);
        let mut blocks = vec![None, None];
        if pass.left {
            // [SKELLAM 5] T± ∘ G± Hᵀ
            let mut atoms = stack(&sums.plus, &sums.minus);
            atoms.component_mul_assign(at.at(0));
            finite("atoms", &mut atoms)?;
            if self.specs[0].prior.is_none() {
                tame(&mut atoms);
            }
            blocks[0] = Some(atoms);
        }
        if pass.right {
            // [SKELLAM 5] H ∘ (T⁺ᵀ G⁺ + T⁻ᵀ G⁻)
            let mut activations = sums.right;
            activations.component_mul_assign(right);
            finite("activations", &mut activations)?;
            blocks[1] = Some(activations);
        }
        Ok(Counts {
            blocks,
            value: wanted.value.then_some(sums.value),
        })
    }

    /// Atoms sum to 1, and hidden cells are counted: an activation is exposed to 1.
    fn exposure(&self, block: usize, _: Renewed<'_, T>) -> Option<Exposure<T>> {
        let components = self.specs[1].shape.0;
        (block == 1).then(|| Exposure::PerComponent(vec![T::one(); components]))
    }

    fn unsupported(&self, at: &Parameters<T>) -> Result<Option<(Vec<usize>, f64)>, FitError> {
        let [plus, minus] = split(at.at(0));
        let lost = unsupported(&self.data.cells, [&plus, &minus], at.at(1));
        Ok(lost.map(|lost| (vec![lost.row, lost.column], lost.value)))
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
