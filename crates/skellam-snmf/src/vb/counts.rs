//! The posteriors that a pass gives.

use nalgebra::DMatrix;
use plca_fit::{BlockSpec, Counts, Expectation, FitError, Parameters, Wanted};
use plca_tensor::{Real, SignedWanted};
use rand::Rng;

use super::state::posterior;
use crate::bayes::Bayes;
use crate::faint::Logs;
use crate::sides::{split, stack};
use crate::{Factors, Posterior};

/// Variational Bayes on data: what is expected of a block is its new posterior.
#[derive(Debug)]
pub(super) struct VbCounts<T: Real> {
    pub(super) bayes: Bayes<T>,
    pub(super) specs: Vec<BlockSpec<T>>,
}

const NOTHING: SignedWanted = SignedWanted {
    left: false,
    right: false,
    value: false,
};

impl<T: Real> VbCounts<T> {
    pub(super) fn components(&self) -> usize {
        self.specs[1].shape.0
    }

    /// The update from factors, taken for the geometric means.
    pub(super) fn updated(&self, means: &Factors<T>) -> Result<Posterior<T>, FitError> {
        let wanted = SignedWanted {
            left: true,
            right: true,
            ..NOTHING
        };
        let new = self.bayes.update(means, || Ok(Logs::of(means)), wanted);
        Ok(new?.0)
    }

    /// `Lfit` of the posterior means.
    pub(super) fn ln_lik(&self, at: &Parameters<T>) -> f64 {
        let wanted = SignedWanted {
            value: true,
            ..NOTHING
        };
        let means = posterior(at).means();
        let data = &self.bayes.data;
        data.cells.pass(&means.model(), &data.split, wanted).value
    }
}

/// The blocks of a posterior.
pub(super) fn blocks<T: Real>(q: Posterior<T>) -> Vec<DMatrix<T>> {
    vec![stack(&q.plus, &q.minus), q.shape, q.rate]
}

impl<T: Real> Expectation<T> for VbCounts<T> {
    fn blocks(&self) -> &[BlockSpec<T>] {
        &self.specs
    }

    fn expect(&self, at: &Parameters<T>, wanted: &Wanted<'_>) -> Result<Counts<T>, FitError> {
        let q = posterior(at);
        let means = q.geometric()?;
        let pass = SignedWanted {
            left: wanted.blocks[0],
            right: wanted.blocks[1],
            value: wanted.value,
        };
        let updated = self.bayes.update(&means, || q.ln_geometric(), pass);
        let (next, fit) = updated?;
        let bound = || self.bayes.bound(&q, &means, fit);
        let value = wanted.value.then(bound).transpose()?;
        let new = blocks(next).into_iter().zip(wanted.blocks);
        Ok(Counts {
            blocks: new
                .map(|(block, &wanted)| wanted.then_some(block))
                .collect(),
            value,
        })
    }

    /// Under a posterior everything has some probability.
    fn unsupported(&self, _: &Parameters<T>) -> Result<Option<(Vec<usize>, f64)>, FitError> {
        Ok(None)
    }

    /// The update from factors as EM draws them.
    fn draw(&self, rng: &mut dyn Rng) -> Result<Vec<DMatrix<T>>, FitError> {
        let data = &self.bayes.data;
        let [plus, minus] = split(&data.atoms(self.components(), rng));
        let start = Factors {
            plus,
            minus,
            activations: data.activations(self.components(), rng),
        };
        Ok(blocks(self.updated(&start)?))
    }

    /// The sum of the absolute values.
    fn unit(&self) -> f64 {
        self.bayes.data.size
    }
}
