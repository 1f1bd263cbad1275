//! New data under learnt factors.

use nalgebra::DMatrix;
use plca_fit::{Explained, FitError, Frozen, Reconstruct, State, Transform, check_shape};
use plca_tensor::{Data, Factor, Real};

use super::others::Others;
use super::slabs::Slabs;
use super::{SignedCp, SignedCpState, specs};
use crate::sides::split;
use crate::signed::{empty, explained};

impl<T: Real> SignedCp<T> {
    /// Finds the factor of one mode, and the weights, of new data under the other factors of a state, with the likelihood and the priors of this
    /// model. There is no bound on what the objective can gain.
    ///
    /// Data that no component reaches are refused, or hidden and counted by their absolute values.
    ///
    /// # Errors
    ///
    /// [`FitError::Mode`], [`FitError::Conflict`] for the signed mode and, where a factor carries the scale, for any other mode than its own, [`FitError::DataShape`], [`FitError::Impossible`], and those of
    /// [`on`](plca_fit::Model::on) and of a run.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::{dmatrix, dvector};
    /// use plca_fit::Transform;
    /// use plca_tensor::{DenseTensor, Order};
    /// use skellam_snmf::{SignedCp, SignedCpState};
    /// let (plus, minus) = (dmatrix![0.5; 0.0], dmatrix![0.0; 0.5]);
    /// let learnt = SignedCpState::new(&plus, &minus, &dvector![1.0], vec![dmatrix![0.25; 0.75], dmatrix![1.0]], 0)?;
    /// let new = DenseTensor::new(vec![2, 2, 2], vec![1.0, 2.0, 3.0, 6.0, -1.0, -2.0, -3.0, -6.0], Order::RowMajor)?;
    /// let explained = SignedCp::builder(1).build()?.transform(&learnt, &new, &Transform::default())?;
    /// let state = explained.fit.state();
    /// assert!(f64::abs(state.weights()[0] - 24.0) < 1e-3);
    /// assert!(f64::abs(state.factor(2)[1] - 2.0 / 3.0) < 1e-6);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn transform(
        &self,
        learnt: &SignedCpState<T>,
        data: &dyn Data<T>,
        how: &Transform,
    ) -> Result<Explained<SignedCpState<T>>, FitError> {
        let mode = learnt.signed_mode();
        let along = how.mode(learnt.shape().len())?;
        if along == mode {
            return Err(FitError::Conflict {
                what: format!("mode {mode} is signed: expected `along` another one"),
            });
        }
        if let Some(scaled) = learnt.scale_mode()
            && scaled != along
        {
            return Err(FitError::Conflict {
                what: format!(
                    "the factor of mode {scaled} carries the scale of the data: expected `along` {scaled}"
                ),
            });
        }
        let [plus, minus] = split(learnt.atoms());
        let factor = |j: usize| match j {
            _ if j == along => None,
            _ if j == mode => Some(Factor::Columns(&plus)),
            _ => Some(Factor::Columns(learnt.factor(j))),
        };
        let fixed: Vec<_> = (0..learnt.shape().len()).map(factor).collect();
        check_shape(data.shape(), &fixed)?;
        let k = learnt.components();
        let mut cells = Slabs::new(data, mode, k)?;
        let scale = learnt.scale_mode();
        let specs = specs::<T>(&cells.folding, k, scale);
        let free = format!("factor_{along}");
        let name = |j: usize| &*specs[j].name;
        let mut blocks: Vec<_> = learnt.parameters().matrices().to_vec();
        let weights = scale.is_none().then_some(1);
        if let Some(j) = weights {
            blocks[j] = DMatrix::from_element(k, 1, T::one());
        }
        let place = (1..specs.len()).find(|&j| name(j) == free);
        if let Some(j) = place {
            blocks[j] = specs[j].even();
        }
        let others = cells.others(Others::new(&blocks, scale));
        let dropped = cells.possible([&plus, &minus], &others, how.impossible)?;
        let observation = |row, column| cells.folding.index(row, column)[along];
        let empty = empty(
            |visit| cells.for_each(visit),
            data.shape()[along],
            observation,
        );
        let mut config = self.clone();
        (config.components, config.signed_mode, config.scale_mode) = (k, mode, scale);
        for j in 0..specs.len() {
            let frozen = match Some(j) == weights || name(j) == free {
                true => Frozen::No,
                false => Frozen::Whole,
            };
            config.settings.freeze(name(j).into(), frozen);
        }
        let algorithm = config.on_cells(cells)?;
        let size = algorithm.0.size;
        if size > 0.0 {
            // What carries the scale, if it is free.
            let scaled = weights.or(place);
            if let Some(j) = scaled {
                let each = size / blocks[j].len() as f64;
                blocks[j].fill(T::lit(each));
            }
        }
        explained(algorithm, blocks, how, empty, dropped)
    }
}

impl<T: Real> SignedCpState<T> {
    /// Transforms new data as [`SignedCp::transform`] does, with a model of default settings.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn transform(
        &self,
        data: &dyn Data<T>,
        how: &Transform,
    ) -> Result<Explained<Self>, FitError> {
        let model = SignedCp::builder(self.components()).build()?;
        model.transform(self, data, how)
    }
}
