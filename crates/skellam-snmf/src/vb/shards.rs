//! Variational Bayes of data that are cut along their columns.

use nalgebra::DMatrix;
use plca_fit::shards::{GlobalModel, Shard, Sharded, Survey};
use plca_fit::{
    FitError, Parameters, Sense, Settings,
    blocks::BlockSpec,
    em::{Counts, Expectation, Wanted},
};
use plca_tensor::arrange::Signed;
use plca_tensor::{Data, Real};

use super::counts::{VbCounts, atoms_shapes, factors};
use super::start::at_prior;
use super::{SnmfVb, drawn};
use crate::Posterior;
use crate::faint::Logs;
use crate::posterior::check_held;
use crate::shards;
use crate::sides::{split, stack};

/// Variational Bayes on a shard.
#[derive(Debug)]
struct VbShard<T: Real>(VbCounts<T>);

impl<T: Real> Expectation<T> for VbShard<T> {
    fn blocks(&self) -> &[BlockSpec<T>] {
        self.0.blocks()
    }

    /// The posterior of the activations, of the atoms the counts alone.
    fn expect(&self, at: &Parameters<T>, wanted: &Wanted<'_>) -> Result<Counts<T>, FitError> {
        self.0.expect(at, wanted)
    }

    /// Refuses shapes too small to be fitted.
    fn unsupported(&self, at: &Parameters<T>) -> Result<Option<(Vec<usize>, f64)>, FitError> {
        check_held(at)?;
        Ok(None)
    }

    fn unit(&self) -> f64 {
        self.0.unit()
    }
}

impl<T: Real> Shard<T> for VbShard<T> {
    /// The update from drawn factors, which are taken for the geometric means.
    fn expect_drawn(
        &self,
        at: &Parameters<T>,
        _: u32,
        wanted: &Wanted<'_>,
    ) -> Result<Counts<T>, FitError> {
        let means = factors(at.at(0), at.at(1).clone());
        self.0.counted(&means, || Ok(Logs::of(&means)), wanted)
    }

    fn likelihood(&self, at: &Parameters<T>) -> Option<f64> {
        Some(self.0.ln_lik(at))
    }
}

impl SnmfVb {
    /// The blocks for data or a shard of this shape.
    fn specs_of<T: Real>(
        &self,
        shape: (usize, usize),
        survey: &Survey,
    ) -> Result<Vec<BlockSpec<T>>, FitError> {
        let specs = self.specs(shape)?;
        Ok(drawn(specs, survey.absolute, survey.observed as usize))
    }
}

/// The posterior of the atoms is shared, that of the activations belongs to the columns.
impl<T: Real> Sharded<T> for SnmfVb {
    fn along(&self, _: usize) -> usize {
        1
    }

    fn survey(&self, shard: &dyn Data<T>, first: usize) -> Result<Survey, FitError> {
        self.check()?;
        shards::survey(shard, first, self.replicates, self.real_data)
    }

    fn start_passes(&self) -> u32 {
        1
    }

    fn whole(&self, survey: &Survey) -> Result<GlobalModel<T>, FitError> {
        let shape = shards::shape(survey, Some(&self.laws()), "activations_shape")?;
        Ok(GlobalModel {
            blocks: self.specs_of(shape, survey)?,
            sense: Sense::Maximise,
            mass: 1.0,
            power: 1.0,
            facts: Vec::new(),
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
        Ok(Box::new(VbShard(VbCounts {
            specs: self.specs_of(cells.shape(), survey)?,
            data: shards::part(cells, self.replicates, survey),
            prior: self.laws(),
            is_shard: true,
            held: None,
        })))
    }

    fn add_prior(&self, _: usize, counts: &mut DMatrix<T>) -> Result<(), FitError> {
        let [mut plus, mut minus] = split(counts);
        atoms_shapes([&mut plus, &mut minus], &self.laws())?;
        *counts = stack(&plus, &minus);
        Ok(())
    }

    /// The divergence of the atoms from their prior, negated.
    fn value_of_shared(&self, shared: &Parameters<T>) -> Result<f64, FitError> {
        let [plus, minus] = split(shared.at(0));
        let none = || DMatrix::zeros(self.components, 0);
        let (shape, rate) = (none(), none());
        let atoms = Posterior {
            plus,
            minus,
            shape,
            rate,
        };
        Ok(-atoms.dirichlet_terms(&self.laws())?)
    }

    fn even(&self, survey: &Survey) -> Result<Option<Vec<DMatrix<T>>>, FitError> {
        let shape = shards::shape(survey, Some(&self.laws()), "activations_shape")?;
        let specs = self.specs_of(shape, survey)?;
        Ok(Some(at_prior(&self.laws(), &specs, 0.0, || 0.0)))
    }
}
