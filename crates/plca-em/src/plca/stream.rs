//! PLCA learnt from batches along its last mode.

use nalgebra::DMatrix;
use plca_fit::{BlockSpec, Em, FitError, Frozen, Parameters, State, begin};
use plca_tensor::{Data, Real};

use super::counts::PlcaCounts;
use super::{Plca, PlcaState, specs};
use crate::Missing;
use crate::online::{Explanation, Streamed, Turn, explain, sealed};

impl<T: Real> sealed::Sealed for Plca<T> {}

impl<T: Real> Streamed<T> for Plca<T> {
    fn streamed(&self, order: usize) -> usize {
        order.saturating_sub(1)
    }

    fn specs(&self, shape: &[usize]) -> Result<Vec<BlockSpec<T>>, FitError> {
        let mut specs = specs(shape, self.components);
        self.settings.apply(&mut specs)?;
        Ok(specs)
    }

    fn is_local(&self, block: usize, blocks: usize) -> bool {
        block == 0 || block + 1 == blocks
    }

    fn check_stream(&self) -> Result<(), FitError> {
        let settings = &self.settings;
        let what = if *settings.frozen("weights") != Frozen::No || settings.has_prior("weights") {
            "P(z) of a stream follows from its batches: it takes neither prior nor freezing"
        } else if self.missing == Missing::Multiplicative {
            "multiplicative treatment of missing cells has no counts to learn online from"
        } else {
            return Ok(());
        };
        Err(FitError::Conflict { what: what.into() })
    }

    fn explain(
        &self,
        shared: Vec<DMatrix<T>>,
        batch: &dyn Data<T>,
        start: Option<&PlcaState<T>>,
        how: Turn,
    ) -> Result<Explanation<T, PlcaState<T>>, FitError> {
        let em = Em(PlcaCounts::new(self, batch)?);
        if em.0.specs.last().is_some_and(|spec| spec.prior.is_some()) {
            let what = "the factor of the streamed mode belongs to the batches: it takes no prior";
            return Err(FitError::Conflict { what: what.into() });
        }
        let specs = &em.0.specs;
        let last = specs.len() - 1;
        let own = |j: usize| match start {
            Some(state) if j < state.parameters().blocks().count() => {
                state.parameters().at(j).clone()
            }
            _ => specs[j].even(),
        };
        let blocks = std::iter::once(own(0)).chain(shared).chain([own(last)]);
        let at = begin(&em, blocks.collect())?;
        let joint = |at: &Parameters<T>| {
            let columns = at.at(last).column_iter().zip(at.at(0).iter());
            let share = |(column, w): (nalgebra::DVectorView<'_, T>, &T)| {
                column.iter().map(|h| h.to_f64() * w.to_f64()).collect()
            };
            columns.map(share).collect::<Vec<Vec<f64>>>().concat()
        };
        explain(&em.0, |j| self.is_local(j, last + 1), joint, at, how)
    }
}
