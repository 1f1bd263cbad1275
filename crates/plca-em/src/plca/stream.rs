//! PLCA learnt from batches along its last mode.

use nalgebra::DMatrix;
use plca_fit::{
    FitError, Parameters, State,
    blocks::{Axes, Axis, BlockSpec, Frozen},
    em::Em,
    explain::begin,
};
use plca_tensor::{Data, Real};

use super::counts::PlcaCounts;
use super::{Plca, PlcaState, specs};
use crate::Missing;
use crate::online::{BatchStep, Explanation, Streamed, explain, freeze_shared, sealed};
use crate::product::conflict;

impl sealed::Sealed for Plca {
    fn check_stream(&self) -> Result<(), FitError> {
        let blocks = &self.blocks;
        let what = if *blocks.frozen("weights") != Frozen::No || blocks.has_prior("weights") {
            "P(z) of an online fit follows from the batches: it can neither have a prior nor be frozen"
        } else if self.missing == Missing::Multiplicative {
            "the multiplicative treatment of missing cells cannot be used online: it has no expected counts"
        } else {
            return Ok(());
        };
        conflict(what)
    }
}

impl<T: Real> Streamed<T> for Plca {
    fn streamed(&self, order: usize) -> usize {
        order.saturating_sub(1)
    }

    fn specs(&self, shape: &[usize]) -> Result<Vec<BlockSpec<T>>, FitError> {
        let mut specs = specs(shape, self.components);
        self.blocks.apply(&mut specs)?;
        Ok(specs)
    }

    fn is_local(&self, block: Axes, order: usize) -> bool {
        // P(z) is the batch's own.
        block == Axes::WEIGHTS || block.samples(Streamed::<T>::streamed(self, order)) != Axis::None
    }

    fn explain(
        &self,
        shared: Vec<DMatrix<T>>,
        batch: &dyn Data<T>,
        start: Option<&PlcaState<T>>,
        how: BatchStep<'_>,
    ) -> Result<Explanation<T, PlcaState<T>>, FitError> {
        let mut counts = PlcaCounts::new(self, batch)?;
        if (counts.specs.last()).is_some_and(|spec| spec.prior.is_some()) {
            return conflict(
                "the factor of the streamed mode belongs to the batches: it cannot have a prior",
            );
        }
        let last = counts.specs.len() - 1;
        let is_local = |axes| Streamed::<T>::is_local(self, axes, last);
        freeze_shared(&mut counts.specs, is_local);
        let em = Em(counts);
        let specs = &em.0.specs;
        let own = |j: usize| match start {
            Some(state) if j < state.parameters().blocks().count() => {
                state.parameters().at(j).clone()
            }
            _ => specs[j].even(),
        };
        let blocks = std::iter::once(own(0)).chain(shared).chain([own(last)]);
        let at = begin(&em, blocks.collect())?;
        let joint = |at: &Parameters<T>| -> Vec<f64> {
            let (factor, weights) = (at.at(last), at.at(0));
            let weight = |i: usize| weights[i / factor.nrows()].to_f64();
            let entries = factor.iter().enumerate();
            entries.map(|(i, h)| h.to_f64() * weight(i)).collect()
        };
        explain(&em, is_local, joint, at, how)
    }
}
