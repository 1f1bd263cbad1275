//! PLCA of data that are cut along their last mode.

use plca_fit::shards::{Lie, Shard, Sharded, Survey, Whole};
use plca_fit::{FitError, Sense};
use plca_tensor::{Data, Real};

use super::Plca;
use super::counts::PlcaCounts;
use crate::online::Streamed;
use crate::product::conflict;

impl<T: Real> Shard<T> for PlcaCounts<'_, T> {}

/// Weights and factors are shared but for the factor of the last mode, whose columns run across the shards.
impl<T: Real> Sharded<T> for Plca<T> {
    fn along(&self, order: usize) -> usize {
        order.saturating_sub(1)
    }

    fn lies(&self, block: usize, blocks: usize) -> Option<Lie> {
        (block > 0 && block + 1 == blocks).then_some(Lie::Rows)
    }

    fn whole(&self, survey: &Survey) -> Result<Whole<T>, FitError> {
        if !survey.complete {
            return conflict(
                "hidden cells of PLCA are imputed in one scale for all shards: fit the data in one piece",
            );
        }
        Ok(Whole {
            blocks: self.specs(&survey.shape)?,
            sense: Sense::Maximise,
            mass: survey.total,
            power: self.temper,
            facts: Vec::new(),
        })
    }

    fn bind_shard<'a>(
        &'a self,
        shard: &'a dyn Data<T>,
        _: &[f64],
        _: &Survey,
    ) -> Result<Box<dyn Shard<T> + 'a>, FitError> {
        Ok(Box::new(PlcaCounts::new(self, shard)?))
    }
}
