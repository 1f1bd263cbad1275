//! New data under the posterior of learnt atoms.

use std::sync::Arc;

use plca_fit::{
    Explained, FitError, Reconstruct, Settings, Transform,
    blocks::Frozen,
    explain::{check_shape, each},
};
use plca_tensor::arrange::Signed;
use plca_tensor::{Data, Factor, Real};

use super::counts::{Held, VbCounts};
use super::start::{Started, at_prior};
use super::{NAMES, SnmfVb, SnmfVbState};
use crate::sides::split;
use crate::signed::{alone, along_columns, empty, explained_by_bound, joined};

impl SnmfVb {
    /// Finds the posterior of the activations of new columns under that of the atoms of a state, with the likelihood and the priors of this model.
    /// There is no bound on what the objective can gain.
    ///
    /// Each column is explained alone, from its prior until its own bound no longer changes: its posterior is bit-identical in any batch, in any storage and for any
    /// number of threads. `Auto` makes plain iterations. With a solver that extrapolates plain iterations are made, too, and the end with the higher bound is returned.
    ///
    /// # Errors
    ///
    /// [`FitError::Conflict`] for another mode than the columns, [`FitError::DataShape`], and those of [`on`](plca_fit::Model::on) and of a
    /// run.
    ///
    /// # Examples
    ///
    /// ```
    /// use skellam_snmf::nalgebra::{self, dmatrix};
    /// use skellam_snmf::Transform;
    /// use skellam_snmf::tensor::{DenseTensor, Order};
    /// use skellam_snmf::{Posterior, SnmfVb, SnmfVbState};
    /// let (plus, minus) = (dmatrix![40.0; 1.0], dmatrix![1.0; 40.0]);
    /// let learnt = SnmfVbState::new(Posterior { plus, minus, shape: dmatrix![1.0], rate: dmatrix![1.0] })?;
    /// let new = DenseTensor::new(vec![2, 2], vec![3.0, 6.0, -3.0, -6.0], Order::RowMajor)?;
    /// let explained = SnmfVb::new(1).transform(&learnt, &new, &Transform::default())?;
    /// let shapes = explained.fit.state().activations_shape();
    /// assert!(shapes[1] > shapes[0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn transform<T: Real>(
        &self,
        learnt: &SnmfVbState<T>,
        data: &dyn Data<T>,
        how: &Transform,
    ) -> Result<Explained<SnmfVbState<T>>, FitError> {
        self.check()?;
        along_columns(how)?;
        let [plus, _] = split(learnt.atoms_shape());
        check_shape(data.shape(), &[Some(Factor::Columns(&plus)), None])?;
        let cells = Signed::new(data)?;
        let empty = empty(
            |visit| cells.for_each(visit),
            cells.shape().1,
            |_, column| column,
        );
        let mut config = self.clone();
        config.components = learnt.components();
        let frozen = [Frozen::Whole, Frozen::No, Frozen::No];
        for (name, frozen) in NAMES.into_iter().zip(frozen) {
            config.blocks.freeze(name.into(), frozen);
        }
        let start = |bound: &Started<T>| {
            let VbCounts { prior, specs, .. } = &bound.0.0;
            let mut blocks = at_prior(prior, specs, 0.0, || 0.0);
            blocks[0].clone_from(learnt.atoms_shape());
            blocks
        };
        let mut whole = config.on_cells(cells)?;
        let held = Arc::new(Held::new(&learnt.posterior(), &self.laws())?);
        whole.0.0.held = Some(held.clone());
        let columns = each(data, 1, how, |y, column, how| {
            let mut config = config.clone();
            config.priors = config.laws().of_column(y);
            config.blocks = config.blocks.with_priors_that(|_, _| false);
            let mut bound = config.on_cells(Signed::new(column)?)?;
            bound.0.0.held = Some(held.clone());
            let start = start(&bound);
            let found = explained_by_bound::<SnmfVbState<T>>(&bound, start, how, Vec::new())?;
            Ok(Some(alone(&found)))
        })?;
        joined(&whole, (start(&whole), None), &columns, None, empty, 0.0)
    }
}

impl<T: Real> SnmfVbState<T> {
    /// Transforms new data as [`SnmfVb::transform`] does, with a model of default settings.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn transform(
        &self,
        data: &dyn Data<T>,
        how: &Transform,
    ) -> Result<Explained<Self>, FitError> {
        SnmfVb::new(self.components()).transform(self, data, how)
    }
}
