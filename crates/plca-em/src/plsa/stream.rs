//! PLSA learnt from batches of its given index.

use nalgebra::DMatrix;
use plca_fit::{
    FitError, Parameters,
    blocks::{BlockSpec, Frozen},
    em::Em,
    explain::begin,
};
use plca_tensor::{Data, Real};

use super::counts::PlsaCounts;
use super::{Plsa, PlsaState, specs};
use crate::online::{BatchStep, Explanation, Streamed, explain, freeze_shared, sealed};
use crate::product::conflict;

impl sealed::Sealed for Plsa {
    fn check_stream(&self) -> Result<(), FitError> {
        let what = if *self.blocks.frozen("basis") == Frozen::Whole {
            "with a frozen `basis` there is nothing to learn online: use transform"
        } else if *self.blocks.frozen("mixture") != Frozen::No {
            "the mixtures belong to the batches: they cannot be frozen"
        } else {
            return Ok(());
        };
        conflict(what)
    }
}

impl<T: Real> Streamed<T> for Plsa {
    fn streamed(&self, _: usize) -> usize {
        self.given.mode()
    }

    fn specs(&self, shape: &[usize]) -> Result<Vec<BlockSpec<T>>, FitError> {
        let sizes = [self.given.explained(), self.given.mode()].map(|mode| shape[mode]);
        let mut specs = specs(self.given, sizes, self.components);
        self.blocks.apply(&mut specs[..2])?;
        Ok(specs)
    }

    fn explain(
        &self,
        mut shared: Vec<DMatrix<T>>,
        batch: &dyn Data<T>,
        start: Option<&PlsaState<T>>,
        how: BatchStep<'_>,
    ) -> Result<Explanation<T, PlsaState<T>>, FitError> {
        let mut counts = PlsaCounts::new(self, batch)?;
        let is_local = |axes| Streamed::<T>::is_local(self, axes, 2);
        freeze_shared(&mut counts.specs, is_local);
        let mixture = start.map_or_else(|| counts.specs[1].even(), |s| s.mixture().clone());
        let marginal = counts.specs[2].even();
        let em = Em(counts);
        let at = begin(&em, vec![shared.swap_remove(0), mixture, marginal])?;
        let sums = &em.0.marginal;
        let total: f64 = sums.iter().sum();
        let joint = |at: &Parameters<T>| -> Vec<f64> {
            let entries = at.at(1).iter().enumerate();
            let entries = entries.map(|(i, g)| g.to_f64() * sums[i / self.components] / total);
            entries.collect()
        };
        explain(&em, is_local, joint, at, how)
    }
}
