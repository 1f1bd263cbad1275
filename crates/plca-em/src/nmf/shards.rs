//! KL-NMF of data that are cut along their columns.

use plca_fit::shards::{Apart, GlobalModel, Imputes, InTurn, Shard, Sharded, Survey};
use plca_fit::{
    Factored, FitError, Parameters, Sense, Settings,
    blocks::{BlockSpec, Exposure},
    em::{Counts, Expectation, Renewed, Wanted},
    explain::improve,
};
use plca_tensor::{Data, Expected, Factor, Modes, Real, normalise_columns};

use super::counts::{NmfCounts, plan, rate_unit};
use super::{Nmf, NmfState};
use crate::blocks::{SETTLING, is_free};
use crate::expectation::apart;
use crate::product::conflict;

/// KL-NMF on a shard.
#[derive(Debug)]
struct NmfShard<'a, T: Real> {
    counts: NmfCounts<'a, T>,
    simultaneous: bool,
}

impl<T: Real> Expectation<T> for NmfShard<'_, T> {
    fn blocks(&self) -> &[BlockSpec<T>] {
        self.counts.blocks()
    }

    fn expect(&self, at: &Parameters<T>, wanted: &Wanted<'_>) -> Result<Counts<T>, FitError> {
        self.counts.expect(at, wanted)
    }

    fn exposure(&self, block: usize, renewed: Renewed<'_, T>) -> Option<Exposure<T>> {
        self.counts.exposure(block, renewed)
    }

    fn unsupported(&self, at: &Parameters<T>) -> Result<Option<(Vec<usize>, f64)>, FitError> {
        self.counts.unsupported(at)
    }

    fn unit(&self) -> f64 {
        self.counts.unit()
    }
}

impl<T: Real> Shard<T> for NmfShard<'_, T> {
    fn in_turn(&self) -> Option<&dyn InTurn<T>> {
        (!self.simultaneous).then_some(&self.counts)
    }

    fn imputes(&self) -> Option<&dyn Imputes<T>> {
        (self.simultaneous && !self.counts.complete).then_some(self)
    }

    fn settle(&self, at: &mut Parameters<T>) -> Result<(), FitError> {
        let (data, total) = (self.counts.data, self.counts.data.total());
        if total <= 0.0 || !is_free(&self.counts.specs[1]) {
            return Ok(());
        }
        // In units in which every component has the mass 1, and the data have.
        let mut w = at.at(0).clone();
        let sums = normalise_columns(&mut w);
        // Rounded once: in single precision the sum of the data need not be a number.
        let by = |z: usize| sums[z].to_f64() / total;
        let mut block = at.at(1).clone();
        for (z, mut row) in block.row_iter_mut().enumerate() {
            row.apply(|h| *h = T::lit(h.to_f64() * by(z)));
        }
        let factors = [Factor::Columns(&w), Factor::Rows(at.at(1))];
        improve(data, &factors, 1, &mut block, SETTLING)?;
        at.change(|j, h| {
            for (z, mut row) in h.row_iter_mut().enumerate().filter(|_| j == 1) {
                for (h, new) in row.iter_mut().zip(&block.row(z)) {
                    *h = match by(z) > 0.0 {
                        true => T::lit(new.to_f64() / by(z)),
                        false => *h,
                    };
                }
            }
        });
        Ok(())
    }
}

impl<T: Real> Imputes<T> for NmfShard<'_, T> {
    fn apart(&self, at: &Parameters<T>, wanted: &Wanted<'_>) -> Result<Apart<T>, FitError> {
        let modes: Modes = (0..2).filter(|&j| wanted.blocks[j]).collect();
        let (mut e, mut hidden, seen) = NmfState::with_model_at(at, |model| {
            let data = self.counts.data;
            apart(data, model, modes, wanted.value.then(|| data.unit()))
        })?;
        let value = wanted
            .value
            .then(|| self.counts.divergence(e.value(), seen));
        let of_blocks =
            |e: &mut Expected<T>| [0, 1].map(|j| modes.contains(j).then(|| e.take(j))).into();
        Ok(Apart {
            observed: Counts {
                blocks: of_blocks(&mut e),
                value,
            },
            hidden: of_blocks(&mut hidden),
            seen,
        })
    }
}

/// `W` is shared, with the sums of the new `H` among the statistics; `H` belongs to the columns.
impl<T: Real> Sharded<T> for Nmf {
    fn along(&self, _: usize) -> usize {
        1
    }

    fn rate_unit(&self, survey: &Survey, block: usize) -> f64 {
        let [rows, columns] = [0, 1].map(|mode| survey.shape.get(mode).copied().unwrap_or(0));
        let shapes = [(rows, self.components), (self.components, columns)];
        let level = self.scale(&survey.shape, survey.total);
        level.map_or(1.0, |level| rate_unit(level[block], shapes[block]))
    }

    fn settles(&self) -> Result<(), FitError> {
        Ok(())
    }

    fn whole(&self, survey: &Survey) -> Result<GlobalModel<T>, FitError> {
        self.check()?;
        let imputed = !survey.complete && self.is_simultaneous(false);
        if imputed && self.blocks.has_priors() {
            return conflict(
                "hidden cells of KL-NMF on shards are imputed in the scale of the data, which priors on rates do not allow: expected the multiplicative form",
            );
        }
        let scale = self.scale(&survey.shape, survey.total)?;
        Ok(GlobalModel {
            blocks: self.drawn_around(scale, &survey.shape)?,
            sense: Sense::Minimise,
            mass: 1.0,
            power: 1.0,
            facts: Vec::new(),
            conditional: false,
        })
    }

    /// `Σ V ln (V / u)`, `u` the unit of the shard.
    fn read_off(&self, shard: &dyn Data<T>) -> Result<Vec<f64>, FitError> {
        Ok(vec![shard.self_information_in(shard.unit())?])
    }

    fn bind_shard<'a>(
        &'a self,
        shard: &'a dyn Data<T>,
        known: &[f64],
        survey: &Survey,
    ) -> Result<Box<dyn Shard<T> + 'a>, FitError> {
        self.check()?;
        let scale = self.scale(&survey.shape, survey.total)?;
        let specs = self.drawn_around(scale, shard.shape())?;
        let counts = NmfCounts {
            data: shard,
            complete: survey.complete,
            self_information: known.iter().sum(),
            plan: plan(self, &specs),
            specs,
        };
        Ok(Box::new(NmfShard {
            counts,
            simultaneous: self.is_simultaneous(survey.complete),
        }))
    }
}
