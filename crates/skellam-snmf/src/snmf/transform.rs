//! New data under learnt atoms.

use nalgebra::DMatrix;
use plca_fit::{
    Algorithm, Explained, FitError, Reconstruct, Settings, State, Transform,
    blocks::Frozen,
    explain::{check_shape, each},
};
use plca_priors::PriorSpec;
use plca_tensor::arrange::Signed;
use plca_tensor::{Data, Factor, Real};

use super::{Snmf, SnmfState};
use crate::sides::split;
use crate::signed::{Column, alone, along_columns, empty, explained, joined, possible};

/// What was found of a column, and its likelihood.
type Likely<T> = (Column<T>, f64);

impl Snmf {
    /// Finds the activations of new columns under the atoms of a state, with the likelihood and the priors of this model. There is no bound on what
    /// the objective can gain.
    ///
    /// Each column is explained alone, until its own objective no longer changes: its activations are bit-identical in any batch, in any storage and for any number
    /// of threads.
    ///
    /// Data that no atom reaches are refused, or hidden and counted by their absolute values.
    ///
    /// # Errors
    ///
    /// [`FitError::Conflict`] for another mode than the columns, [`FitError::DataShape`], [`FitError::Impossible`], and those of
    /// [`on`](plca_fit::Model::on) and of a run.
    ///
    /// # Examples
    ///
    /// ```
    /// use skellam_snmf::nalgebra::{self, dmatrix};
    /// use skellam_snmf::Transform;
    /// use skellam_snmf::tensor::{DenseTensor, Order};
    /// use skellam_snmf::{Replicates, Snmf, SnmfState};
    /// let learnt = SnmfState::new(&dmatrix![0.5; 0.0], &dmatrix![0.0; 0.5], dmatrix![1.0])?;
    /// let new = DenseTensor::new(vec![2, 2], vec![3.0, 6.0, -3.0, -6.0], Order::RowMajor)?;
    /// let explained = Snmf::new(1).replicates(Replicates::Limit).transform(&learnt, &new, &Transform::default())?;
    /// assert!((explained.fit.state().activations() - dmatrix![6.0, 12.0]).amax() < 1e-6);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn transform<T: Real>(
        &self,
        learnt: &SnmfState<T>,
        data: &dyn Data<T>,
        how: &Transform,
    ) -> Result<Explained<SnmfState<T>>, FitError> {
        self.check()?;
        along_columns(how)?;
        let [plus, minus] = split(learnt.atoms());
        check_shape(data.shape(), &[Some(Factor::Columns(&plus)), None])?;
        let mut cells = Signed::new(data)?;
        let (k, n) = (learnt.components(), cells.shape().1);
        let ones = DMatrix::from_element(k, n, T::one());
        let dropped = if self.replicates.is_noisy() {
            0.0
        } else {
            possible(&mut cells, [&plus, &minus], &ones, how.impossible)?
        };
        let empty = empty(|visit| cells.for_each(visit), n, |_, column| column);
        let mut config = self.clone();
        config.components = k;
        config.blocks.freeze("atoms".into(), Frozen::Whole);
        config.blocks.freeze("activations".into(), Frozen::No);
        let algorithm = config.on_cells(cells)?;
        let found = each(data, 1, how, |y, column, how| {
            let mut config = config.clone();
            config.priors = config.laws().map(|priors| priors.of_column(y));
            config.blocks = config
                .blocks
                .with_priors_that(|_, prior| !matches!(prior, PriorSpec::Gamma(..)));
            config.alone(learnt, column, how)
        })?;
        let start = vec![learnt.atoms().clone(), ones];
        // The noise is that of each column.
        let likelihoods = found.iter().flatten().map(|(_, likelihood)| likelihood);
        let own = (self.replicates.is_noisy()).then(|| likelihoods.sum());
        let columns: Vec<_> = found.into_iter().map(|one| Some(one?.0)).collect();
        let start = (start, Some(T::zero()));
        joined(&algorithm, start, &columns, own, empty, dropped)
    }

    /// The activations of one column and its likelihood; nothing of one that has nothing to explain and no prior.
    fn alone<T: Real>(
        &self,
        learnt: &SnmfState<T>,
        column: &dyn Data<T>,
        how: &Transform,
    ) -> Result<Option<Likely<T>>, FitError> {
        let [plus, minus] = split(learnt.atoms());
        let mut cells = Signed::new(column)?;
        let ones = DMatrix::from_element(learnt.components(), 1, T::one());
        if !self.replicates.is_noisy() {
            possible(&mut cells, [&plus, &minus], &ones, how.impossible)?;
        }
        let algorithm = self.on_cells(cells)?;
        let size = algorithm.0.data.size;
        let each = match size > 0.0 {
            true => size / ones.len() as f64,
            false if algorithm.0.specs[1].prior.is_none() => return Ok(None),
            false => 1.0,
        };
        let start = vec![learnt.atoms().clone(), ones.map(|_| T::lit(each))];
        let found: Explained<SnmfState<T>> = explained(&algorithm, start, how, Vec::new(), 0.0)?;
        let likelihood = algorithm.likelihood(found.fit.state().parameters())?;
        Ok(Some((alone(&found), likelihood)))
    }
}

impl<T: Real> SnmfState<T> {
    /// Transforms new data as [`Snmf::transform`] does, with a model of default settings.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn transform(
        &self,
        data: &dyn Data<T>,
        how: &Transform,
    ) -> Result<Explained<Self>, FitError> {
        Snmf::new(self.components()).transform(self, data, how)
    }
}
