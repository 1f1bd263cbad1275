//! PLCA of data that are cut along their last mode.

use nalgebra::DMatrix;
use plca_fit::shards::{GlobalModel, Imputes, Shard, Sharded, Survey};
use plca_fit::{
    FitError, Parameters, Sense, Settings,
    blocks::{BlockSpec, Frozen},
    em::{Counts, Expectation, Wanted},
    explain::improve,
    separable::refuse,
};
use plca_tensor::{Data, Factor, Real};

use super::Plca;
use super::counts::PlcaCounts;
use crate::Missing;
use crate::blocks::{SETTLING, is_free};
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

    fn settle(&self, at: &mut Parameters<T>) -> Result<(), FitError> {
        let (data, specs) = (self.counts.data, &self.counts.specs);
        let (own, total) = (specs.len() - 1, data.total());
        if total <= 0.0 || !is_free(&specs[own]) {
            return Ok(());
        }
        // P(z, y) as a share of the shard.
        let scales = at.at(0).map(|w| w.to_f64() * (at.mass() / total));
        let joint = |y: usize, z: usize| T::lit(at.at(own)[(y, z)].to_f64() * scales[z]);
        let mut block = DMatrix::from_fn(scales.len(), specs[own].shape.0, |z, y| joint(y, z));
        let factors = at.matrices()[1..].iter().map(Factor::Columns);
        improve(
            data,
            &factors.collect::<Vec<_>>(),
            own - 1,
            &mut block,
            SETTLING,
        )?;
        at.change(|j, factor| {
            let each = factor.column_iter_mut().enumerate().filter(|_| j == own);
            for (z, mut column) in each.filter(|&(z, _)| scales[z] > 0.0) {
                let row = block.row(z);
                let joint = column.iter_mut().zip(row.iter());
                joint.for_each(|(x, joint)| *x = T::lit(joint.to_f64() / scales[z]));
            }
        });
        Ok(())
    }
}

/// Weights and factors are shared except for the factor of the last mode, whose columns run across the shards.
impl<T: Real> Sharded<T> for Plca {
    fn along(&self, order: usize) -> usize {
        order.saturating_sub(1)
    }

    fn settles(&self) -> Result<(), FitError> {
        let blocks = &self.blocks;
        let tied = blocks.has_prior("weights") || *blocks.frozen("weights") != Frozen::No;
        // What samples have of a component is its weight.
        refuse(tied, "a prior on `weights`, or what is frozen of it,")
    }

    fn whole(&self, survey: &Survey) -> Result<GlobalModel<T>, FitError> {
        self.check()?;
        if !survey.complete && (self.missing == Missing::Multiplicative || self.temper != 1.0) {
            return conflict(
                "hidden cells of PLCA on shards are imputed: multiplicative updates and tempering are not possible",
            );
        }
        Ok(GlobalModel {
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
        self.check()?;
        Ok(Box::new(PlcaShard {
            counts: PlcaCounts::new(self, shard)?,
            complete: survey.complete,
        }))
    }
}
