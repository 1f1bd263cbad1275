//! PLSA of data that are cut along their given index.

use plca_fit::shards::{GlobalModel, Shard, Sharded, Survey};
use plca_fit::{FitError, Parameters, Sense, Settings, blocks::Draw, explain::improve};
use plca_tensor::{Data, Factor, Real};

use super::Plsa;
use super::counts::{PlsaCounts, check_order, mix};
use crate::blocks::{SETTLING, is_free};
use crate::online::Streamed;

impl<T: Real> Shard<T> for PlsaCounts<'_, T> {
    fn settle(&self, at: &mut Parameters<T>) -> Result<(), FitError> {
        let (along, total) = (self.model.given.mode(), self.data.total());
        if total <= 0.0 || !is_free(&self.specs[1]) {
            return Ok(());
        }
        // Every given index has its share of the shard.
        let mut block = at.at(1).clone();
        for (mut column, &sum) in block.column_iter_mut().zip(&self.marginal) {
            column.apply(|x| *x = T::lit(x.to_f64() * (sum / total)));
        }
        let own = block.clone();
        let mut factors = [Factor::Columns(at.at(0)), Factor::Rows(&own)];
        if along == 0 {
            factors.reverse();
        }
        improve(self.data, &factors, along, &mut block, SETTLING)?;
        at.change(|j, mixture| {
            if j == 1 {
                mix(&block, &vec![1.0; mixture.nrows()], None, mixture);
            }
        });
        Ok(())
    }
}

/// The basis is shared; mixtures and marginal belong to the given indices.
impl<T: Real> Sharded<T> for Plsa {
    fn along(&self, _: usize) -> usize {
        self.given.mode()
    }

    fn settles(&self) -> Result<(), FitError> {
        Ok(())
    }

    fn whole(&self, survey: &Survey) -> Result<GlobalModel<T>, FitError> {
        self.check()?;
        check_order(survey.shape.len())?;
        let mut blocks = self.specs(&survey.shape)?;
        // Every shard has its own part of the marginal.
        blocks[2].draw = Draw::Data(Vec::new());
        Ok(GlobalModel {
            blocks,
            sense: Sense::Maximise,
            mass: survey.total,
            power: self.temper,
            facts: vec![("given", vec![self.given.mode() as f64])],
            conditional: false,
        })
    }

    fn read_off(&self, shard: &dyn Data<T>) -> Result<Vec<f64>, FitError> {
        check_order(shard.shape().len())?;
        Ok(shard.marginal(self.given.mode())?)
    }

    fn bind_shard<'a>(
        &'a self,
        shard: &'a dyn Data<T>,
        known: &[f64],
        survey: &Survey,
    ) -> Result<Box<dyn Shard<T> + 'a>, FitError> {
        self.check()?;
        let (marginal, total) = (known.to_vec(), survey.total);
        let bound = PlsaCounts::of_part(self, shard, marginal, total, survey.complete)?;
        Ok(Box::new(bound))
    }
}
