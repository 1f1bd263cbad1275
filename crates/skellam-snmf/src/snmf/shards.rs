//! Skellam semi-NMF of data that are cut along their columns.

use plca_fit::shards::{GlobalModel, Shard, Sharded, Survey};
use plca_fit::{
    FitError, Parameters, Sense, Settings,
    blocks::{BlockSpec, Exposure},
    em::{Counts, Expectation, Renewed, Wanted},
};
use plca_tensor::arrange::Signed;
use plca_tensor::{Data, Real};

use super::counts::SnmfCounts;
use super::{Snmf, around};
use crate::bounds::{Bounds, facts};
use crate::{Replicates, shards};

/// Skellam semi-NMF on a shard.
#[derive(Debug)]
struct SnmfShard<T: Real>(SnmfCounts<T>);

impl<T: Real> Expectation<T> for SnmfShard<T> {
    fn blocks(&self) -> &[BlockSpec<T>] {
        self.0.blocks()
    }

    // Sums over shards are to be of one unit.
    fn expect(&self, at: &Parameters<T>, wanted: &Wanted<'_>) -> Result<Counts<T>, FitError> {
        self.0.counted(at, wanted)
    }

    fn exposure(&self, block: usize, renewed: Renewed<'_, T>) -> Option<Exposure<T>> {
        self.0.exposure(block, renewed)
    }

    fn unsupported(&self, at: &Parameters<T>) -> Result<Option<(Vec<usize>, f64)>, FitError> {
        self.0.unsupported(at)
    }

    fn unit(&self) -> f64 {
        self.0.unit()
    }
}

impl<T: Real> Shard<T> for SnmfShard<T> {}

impl Snmf {
    /// The blocks for data or a shard of this shape.
    fn specs_of<T: Real>(
        &self,
        shape: (usize, usize),
        survey: &Survey,
    ) -> Result<Vec<BlockSpec<T>>, FitError> {
        let mut specs = self.specs(shape)?;
        specs[1].draw = around(survey.absolute, survey.observed as usize, &specs);
        Ok(specs)
    }
}

/// The atoms are shared, activations belong to the columns.
impl<T: Real> Sharded<T> for Snmf {
    fn along(&self, _: usize) -> usize {
        1
    }

    fn rate_unit(&self, survey: &Survey, _: usize) -> f64 {
        self.replicates.rate_unit(survey.absolute)
    }

    fn survey(&self, shard: &dyn Data<T>, first: usize) -> Result<Survey, FitError> {
        self.check()?;
        shards::survey(shard, first, self.replicates, self.real_data)
    }

    fn whole(&self, survey: &Survey) -> Result<GlobalModel<T>, FitError> {
        let shape = shards::shape(survey, self.laws().as_ref(), "activations")?;
        let blocks = self.specs_of(shape, survey)?;
        let noise = (self.replicates).noise(survey.absolute, survey.observed as usize);
        let bounds = match noise > 0.0 && self.is_bounded(&blocks) {
            true => Bounds::All(f64::INFINITY),
            false => Bounds::None,
        };
        Ok(GlobalModel {
            blocks,
            sense: Sense::Maximise,
            mass: 1.0,
            power: 1.0,
            facts: facts(noise, &bounds, Replicates::BOUND),
            conditional: false,
        })
    }

    fn bind_shard<'a>(
        &'a self,
        shard: &'a dyn Data<T>,
        _: &[f64],
        survey: &Survey,
    ) -> Result<Box<dyn Shard<T> + 'a>, FitError> {
        self.check()?;
        let cells = Signed::new(shard)?;
        let specs = self.specs_of(cells.shape(), survey)?;
        let data = shards::part(cells, self.replicates, survey);
        let data = data.with_noise(survey.absolute, survey.observed as usize);
        let bounds = self.bounds(&data, &specs);
        Ok(Box::new(SnmfShard(SnmfCounts {
            data,
            specs,
            bounds,
        })))
    }
}
