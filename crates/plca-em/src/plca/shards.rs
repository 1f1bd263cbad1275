//! PLCA of data that are cut along their last mode.

use plca_fit::shards::{Imputes, Lie, Shard, Sharded, Survey, Whole};
use plca_fit::{BlockSpec, Counts, Expectation, FitError, Parameters, Sense, Wanted};
use plca_tensor::{Data, Real};

use super::Plca;
use super::counts::PlcaCounts;
use crate::Missing;
use crate::online::Streamed;
use crate::product::conflict;

/// PLCA on a shard.
#[derive(Debug)]
struct PlcaShard<'a, T: Real> {
    counts: PlcaCounts<'a, T>,
    complete: bool,
}

impl<T: Real> Expectation<T> for PlcaShard<'_, T> {
    fn blocks(&self) -> &[BlockSpec<T>] {
        self.counts.blocks()
    }

    fn expect(&self, at: &Parameters<T>, wanted: &Wanted<'_>) -> Result<Counts<T>, FitError> {
        self.counts.expect(at, wanted)
    }

    fn unsupported(&self, at: &Parameters<T>) -> Result<Option<(Vec<usize>, f64)>, FitError> {
        self.counts.unsupported(at)
    }

    fn unit(&self) -> f64 {
        self.counts.unit()
    }
}

impl<T: Real> Shard<T> for PlcaShard<'_, T> {
    fn imputes(&self) -> Option<&dyn Imputes<T>> {
        (!self.complete).then_some(&self.counts)
    }
}

/// Weights and factors are shared except for the factor of the last mode, whose columns run across the shards.
impl<T: Real> Sharded<T> for Plca<T> {
    fn along(&self, order: usize) -> usize {
        order.saturating_sub(1)
    }

    fn lies(&self, block: usize, blocks: usize) -> Option<Lie> {
        (block > 0 && block + 1 == blocks).then_some(Lie::Rows)
    }

    fn whole(&self, survey: &Survey) -> Result<Whole<T>, FitError> {
        if !survey.complete && (self.missing == Missing::Multiplicative || self.temper != 1.0) {
            return conflict(
                "hidden cells of PLCA on shards are imputed: multiplicative updates and tempering are not possible",
            );
        }
        Ok(Whole {
            blocks: self.specs(&survey.shape)?,
            sense: Sense::Maximise,
            mass: survey.total,
            power: self.temper,
            facts: Vec::new(),
            conditional: !survey.complete,
        })
    }

    fn bind_shard<'a>(
        &'a self,
        shard: &'a dyn Data<T>,
        _: &[f64],
        survey: &Survey,
    ) -> Result<Box<dyn Shard<T> + 'a>, FitError> {
        Ok(Box::new(PlcaShard {
            counts: PlcaCounts::new(self, shard)?,
            complete: survey.complete,
        }))
    }
}
