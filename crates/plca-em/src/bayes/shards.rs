//! Variational Bayes of data that are cut along their samples.

use std::borrow::Cow;

use nalgebra::DMatrix;
use plca_dist::{digamma, gamma_shape_kl_slice};
use plca_fit::shards::{ACROSS, GlobalModel, Shard, Sharded, Shared, Survey};
use plca_fit::{
    FitError, Parameters, Sense, Settings,
    blocks::BlockSpec,
    em::{Counts, Wanted},
    setting::BlockSettings,
};
use plca_priors::{Components, Entries};
use plca_tensor::{Data, Real};

use super::counts::{Form, START, VbCounts, add};
use super::dirichlet::{divergence, means, refuse_probabilities, sums};
use super::plca::specs as plca_specs;
use super::plsa::{TOTALS, specs as plsa_specs};
use super::{PlcaVb, PlsaVb, prior_of};
use crate::plsa::check_order;
use crate::product::conflict;

impl<T: Real> Shard<T> for VbCounts<'_, T> {
    /// The update from distributions, those drawn or the means of posteriors, which are taken for the geometric means.
    fn expect_drawn(
        &self,
        at: &Parameters<T>,
        pass: u32,
        wanted: &Wanted<'_>,
    ) -> Result<Counts<T>, FitError> {
        let blocks = at
            .matrices()
            .iter()
            .enumerate()
            .map(|(j, block)| match pass {
                0 => Cow::Borrowed(block),
                _ if self.is_of_rows(j) => Cow::Owned(means_of_rows(at, block)),
                _ => Cow::Owned(means(block)),
            });
        let (blocks, value) = self.update(&blocks.collect(), wanted.blocks, wanted.value)?;
        Ok(Counts { blocks, value })
    }
}

/// Makes the geometric means of the rows of a shard those of columns that run across all of them.
pub(super) fn across<T: Real>(at: &Parameters<T>, shapes: &DMatrix<T>, means: &mut DMatrix<T>) {
    let Some(all) = at.fact(ACROSS) else { return };
    let psi = |x: f64| digamma(x).unwrap_or(f64::NAN);
    let pairs = sums(shapes).into_iter().zip(all);
    for (mut column, (own, &all)) in means.column_iter_mut().zip(pairs) {
        // [EXT 3] exp(ψ(a) - ψ(Σ a)), Σ over all shards
        let scale = T::lit((psi(own) - psi(all)).exp());
        column.apply(|x| *x *= scale);
    }
}

/// The rows of a shard of the means of columns that run across all shards.
fn means_of_rows<T: Real>(at: &Parameters<T>, shapes: &DMatrix<T>) -> DMatrix<T> {
    let mut means = shapes.clone();
    let all = at.fact(ACROSS).unwrap_or_default();
    for (mut column, &all) in means.column_iter_mut().zip(all) {
        column.apply(|x| *x = T::lit(x.to_f64() / all));
    }
    means
}

/// What the divergence of Dirichlet laws has of the sums of their free columns, of which these have this number of rows.
fn divergence_of_sums<T: Real>(
    spec: &BlockSpec<T>,
    sums: &[f64],
    prior: &Entries,
    rows: usize,
) -> Result<f64, FitError> {
    let frozen = spec.frozen_components();
    let free = sums.iter().enumerate();
    let free = free.filter(|(z, _)| frozen.get(*z) != Some(&true));
    let (a, a0): (Vec<f64>, Vec<f64>) = free
        .map(|(z, &sum)| {
            (
                sum,
                rows as f64 * prior.get(z * rows, Components::Columns(rows)),
            )
        })
        .unzip();
    let mut kl = vec![0.0; a.len()];
    gamma_shape_kl_slice(&a, &a0, &mut kl).map_err(|_| FitError::NotFinite {
        what: format!("`{}`", spec.name),
        value: sums.iter().sum(),
    })?;
    Ok(kl.iter().sum())
}

/// The divergence of the rows of a shard, without what belongs to the sums of whole columns.
pub(super) fn divergence_of_rows<T: Real>(
    spec: &BlockSpec<T>,
    shapes: &DMatrix<T>,
    prior: &Entries,
) -> Result<f64, FitError> {
    let sums = sums(shapes);
    // [EXT 3] KL of Dirichlet laws: those of gamma laws of the entries, less that of the sums
    Ok(divergence(spec, shapes, prior)? + divergence_of_sums(spec, &sums, prior, shapes.nrows())?)
}

/// The model of all shards, of these blocks.
fn whole<T: Real>(
    blocks: Vec<BlockSpec<T>>,
    settings: &BlockSettings,
    survey: &Survey,
) -> Result<GlobalModel<T>, FitError> {
    if !survey.complete {
        return conflict("variational Bayes needs complete data, some cells are hidden");
    }
    if let Some(spec) = blocks.last()
        && matches!(prior_of(settings, spec)?, Entries::Each(_))
    {
        return conflict(format!(
            "`{}` belongs to the samples of shards: its prior can be one shape, or one for each component",
            spec.name
        ));
    }
    Ok(GlobalModel {
        blocks,
        sense: Sense::Maximise,
        mass: survey.total,
        power: 1.0,
        facts: Vec::new(),
        conditional: false,
    })
}

/// Blocks that know nothing but how much was counted, each as much of it as any other, under their priors.
fn even<T: Real>(
    (specs, priors): (Vec<BlockSpec<T>>, Vec<Entries>),
    survey: &Survey,
) -> Option<Vec<DMatrix<T>>> {
    let blocks = specs.iter().zip(&priors).map(|(spec, prior)| {
        let (rows, columns) = spec.shape;
        let count = T::lit(survey.total / (rows * columns) as f64);
        let mut block = DMatrix::from_element(rows, columns, count);
        add(prior, spec, &mut block);
        block
    });
    Some(blocks.collect())
}

/// What shapes of a posterior are given, as all data at once take them.
fn given<T: Real>(
    settings: &BlockSettings,
    spec: &BlockSpec<T>,
    value: DMatrix<T>,
) -> Result<DMatrix<T>, FitError> {
    let value = spec.given(value)?;
    refuse_probabilities(spec, &value, &prior_of(settings, spec)?)?;
    Ok(value)
}

/// The divergence of shared blocks from their priors.
fn divergence_of<T: Real>(
    specs: &[BlockSpec<T>],
    shared: &Parameters<T>,
    settings: &BlockSettings,
) -> Result<f64, FitError> {
    let blocks = specs.iter().zip(shared.matrices());
    let terms = blocks.map(|(spec, shapes)| divergence(spec, shapes, &prior_of(settings, spec)?));
    terms.sum()
}

/// The posterior of the topics is shared, that of the mixtures belongs to the documents.
impl<T: Real> Sharded<T> for PlsaVb {
    fn along(&self, _: usize) -> usize {
        self.given.mode()
    }

    fn start_passes(&self) -> u32 {
        START as u32
    }

    fn whole(&self, survey: &Survey) -> Result<GlobalModel<T>, FitError> {
        self.check()?;
        let whole = whole(
            self.specs_and_priors(&survey.shape)?.0,
            &self.blocks,
            survey,
        )?;
        Ok(GlobalModel {
            facts: vec![("given", vec![self.given.mode() as f64])],
            ..whole
        })
    }

    fn read_off(&self, shard: &dyn Data<T>) -> Result<Vec<f64>, FitError> {
        check_order(shard.shape().len())?;
        Ok(shard.marginal(self.given.mode())?)
    }

    fn remembered(&self, known: &[&[f64]]) -> Vec<(&'static str, Vec<f64>)> {
        vec![(TOTALS, known.concat())]
    }

    fn given(&self, spec: &BlockSpec<T>, value: DMatrix<T>) -> Result<DMatrix<T>, FitError> {
        given(&self.blocks, spec, value)
    }

    fn even(&self, survey: &Survey) -> Result<Option<Vec<DMatrix<T>>>, FitError> {
        Ok(even(self.specs_and_priors(&survey.shape)?, survey))
    }

    fn bind_shard<'a>(
        &'a self,
        shard: &'a dyn Data<T>,
        _: &[f64],
        _: &Survey,
    ) -> Result<Box<dyn Shard<T> + 'a>, FitError> {
        self.check()?;
        let blocks = self.specs_and_priors(shard.shape())?;
        let counts = VbCounts::new(shard, blocks, Form::Given(self.given));
        Ok(Box::new(counts.of_part()))
    }

    fn add_prior(&self, block: usize, counts: &mut DMatrix<T>) -> Result<(), FitError> {
        let spec = &plsa_specs(self.given, [counts.nrows(), 1], self.components)[block];
        add(&prior_of(&self.blocks, spec)?, spec, counts);
        Ok(())
    }

    fn value_of_shared(&self, shared: &Parameters<T>) -> Result<f64, FitError> {
        let shape = [shared.shape(0).0, 1];
        let mut specs = plsa_specs(self.given, shape, self.components);
        specs.truncate(1);
        specs[0].frozen = self.blocks.frozen(&specs[0].name).clone();
        Ok(-divergence_of(&specs, shared, &self.blocks)?)
    }
}

/// Weights and factors are shared except for the factor of the last mode, whose columns run across the shards.
impl<T: Real> Sharded<T> for PlcaVb {
    fn along(&self, order: usize) -> usize {
        order.saturating_sub(1)
    }

    fn start_passes(&self) -> u32 {
        START as u32
    }

    fn whole(&self, survey: &Survey) -> Result<GlobalModel<T>, FitError> {
        self.check()?;
        whole(
            self.specs_and_priors(&survey.shape)?.0,
            &self.blocks,
            survey,
        )
    }

    fn given(&self, spec: &BlockSpec<T>, value: DMatrix<T>) -> Result<DMatrix<T>, FitError> {
        given(&self.blocks, spec, value)
    }

    fn even(&self, survey: &Survey) -> Result<Option<Vec<DMatrix<T>>>, FitError> {
        Ok(even(self.specs_and_priors(&survey.shape)?, survey))
    }

    fn bind_shard<'a>(
        &'a self,
        shard: &'a dyn Data<T>,
        _: &[f64],
        _: &Survey,
    ) -> Result<Box<dyn Shard<T> + 'a>, FitError> {
        self.check()?;
        let counts = VbCounts::new(shard, self.specs_and_priors(shard.shape())?, Form::Joint);
        Ok(Box::new(counts.of_part()))
    }

    fn add_prior(&self, block: usize, counts: &mut DMatrix<T>) -> Result<(), FitError> {
        let shape = vec![counts.nrows(); block.max(1)];
        let spec = &plca_specs(&shape, self.components)[block];
        add(&prior_of(&self.blocks, spec)?, spec, counts);
        Ok(())
    }

    fn value_of_shared(&self, shared: &Parameters<T>) -> Result<f64, FitError> {
        let shape: Vec<_> = shared.matrices()[1..].iter().map(|f| f.nrows()).collect();
        let mut specs = plca_specs(&shape, self.components);
        for spec in &mut specs {
            spec.frozen = self.blocks.frozen(&spec.name).clone();
        }
        Ok(-divergence_of(&specs, shared, &self.blocks)?)
    }

    fn value_of_sums(&self, shared: &Shared<T>) -> Result<f64, FitError> {
        let shape = &shared.survey().shape;
        let (mut specs, last) = (plca_specs::<T>(shape, self.components), shape.len());
        let mut spec = specs.swap_remove(last);
        spec.frozen = self.blocks.frozen(&spec.name).clone();
        let prior = prior_of(&self.blocks, &spec)?;
        divergence_of_sums(&spec, shared.sums(last), &prior, spec.shape.0)
    }
}
