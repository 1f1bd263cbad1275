//! Latent Dirichlet allocation learnt from batches of documents.

use nalgebra::DMatrix;
use plca_fit::{
    Algorithm, FitError, Parameters,
    blocks::{Axes, BlockSpec, Constraint, Draw, Frozen},
    em::Em,
    explain::begin,
};
use plca_tensor::{Data, Real};

use super::counts::components;
use super::plsa::{NAMES, PlsaVb, PlsaVbState};
use super::prior_of;
use crate::online::{After, BatchStep, Explanation, Streamed, explain, freeze_shared, sealed};
use crate::product::conflict;

impl sealed::Sealed for PlsaVb {
    fn check_stream(&self) -> Result<(), FitError> {
        let [basis, mixture] = NAMES.map(|name| self.blocks.frozen(name));
        let what = if *basis == Frozen::Whole {
            "with a frozen `basis_shape` there is nothing to learn online: use transform"
        } else if *mixture != Frozen::No {
            "the mixtures belong to the batches: they cannot be frozen"
        } else {
            return Ok(());
        };
        conflict(what)
    }
}

/// Documents, not their counts, are what a batch is measured in.
impl<T: Real> Streamed<T> for PlsaVb {
    fn streamed(&self, _: usize) -> usize {
        self.given.mode()
    }

    fn specs(&self, shape: &[usize]) -> Result<Vec<BlockSpec<T>>, FitError> {
        Ok(self.specs_and_priors(shape)?.0)
    }

    fn drawn(&self, size: usize) -> BlockSpec<T> {
        let shape = (size, self.components);
        let mut spec = BlockSpec::values(NAMES[0], shape, Axes::factor(0), Constraint::Positive);
        spec.draw = Draw::Around(1.0);
        spec
    }

    fn amount(&self, batch: &dyn Data<T>, _: f64) -> f64 {
        batch.shape()[self.given.mode()] as f64
    }

    fn renewed(
        &self,
        spec: &BlockSpec<T>,
        after: After<'_, T>,
        _: usize,
    ) -> Result<DMatrix<T>, FitError> {
        let [then, now] = after.statistics;
        let [before, all] = after.amounts;
        let old = 1.0 - after.rho;
        let prior = prior_of(&self.blocks, spec)?;
        let mut new = after.block.clone();
        prior.for_each(new.as_mut_slice(), components(spec), |x, eta| {
            *x = T::lit(old * x.to_f64() + after.rho * eta);
        });
        let (gained, kept) = (T::lit(all), T::lit(old * before));
        // [EXT 3] lam <- (1 - r) lam + r (eta + D / |B| C_B), of counts for each document s <- (1 - r) s + r C_B / |B|
        new.zip_zip_apply(now, then, |x, now, then| *x += gained * now - kept * then);
        spec.keep_frozen(after.block, &mut new);
        Ok(new)
    }

    fn explain(
        &self,
        mut shared: Vec<DMatrix<T>>,
        batch: &dyn Data<T>,
        start: Option<&PlsaVbState<T>>,
        how: BatchStep<'_>,
    ) -> Result<Explanation<T, PlsaVbState<T>>, FitError> {
        let is_local = |axes| Streamed::<T>::is_local(self, axes, 2);
        let basis = shared.swap_remove(0);
        let part = |by_means| {
            let mut counts = self.on_data(batch)?.0.of_part();
            freeze_shared(&mut counts.specs, is_local);
            counts.by_means = by_means;
            counts.fix(0, &basis)?;
            Ok::<_, FitError>(Em(counts))
        };
        let em = part(how.by_means)?;
        let sums = batch.marginal(self.given.mode())?;
        let mixture = match start {
            Some(state) => state.mixture_shape().clone(),
            None => em.0.even_block(1)?,
        };
        let at = begin(&em, vec![basis.clone(), mixture])?;
        let total: f64 = sums.iter().sum();
        // Counts and prior, of which a step moves counts alone.
        let joint = |at: &Parameters<T>| -> Vec<f64> {
            at.at(1).iter().map(|x| x.to_f64() / total).collect()
        };
        let mut found: Explanation<T, PlsaVbState<T>> = explain(&em, is_local, joint, at, how)?;
        if how.by_means {
            // The bound is one of geometric means.
            let mixture = found.state.mixture_shape().clone();
            let bound = part(false)?;
            let at = begin(&bound, vec![basis.clone(), mixture])?;
            found.ln_lik = bound.objective(&at)?;
        }
        Ok(found)
    }
}
