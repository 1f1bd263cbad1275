//! New data under learnt factors.

use nalgebra::DMatrix;
use plca_fit::{
    Explained, FitError, Reconstruct, Settings, State, Transform,
    blocks::Frozen,
    explain::{Each, check_shape, explain_each},
};
use plca_tensor::{Data, Factor, Real};

use super::others::Others;
use super::slabs::Slabs;
use super::{SignedCp, SignedCpState, SignedCpVb, SignedCpVbState, specs};
use crate::sides::split;
use crate::signed::{empty, explained, explained_by_bound};

impl SignedCp {
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
    /// use skellam_snmf::nalgebra::{self, dmatrix, dvector};
    /// use skellam_snmf::Transform;
    /// use skellam_snmf::tensor::{DenseTensor, Order};
    /// use skellam_snmf::{Replicates, SignedCp, SignedCpState};
    /// let (plus, minus) = (dmatrix![0.5; 0.0], dmatrix![0.0; 0.5]);
    /// let learnt = SignedCpState::new(&plus, &minus, &dvector![1.0], vec![dmatrix![0.25; 0.75], dmatrix![1.0]], 0)?;
    /// let new = DenseTensor::new(vec![2, 2, 2], vec![1.0, 2.0, 3.0, 6.0, -1.0, -2.0, -3.0, -6.0], Order::RowMajor)?;
    /// let explained = SignedCp::new(1).replicates(Replicates::Limit).transform(&learnt, &new, &Transform::default())?;
    /// let state = explained.fit.state();
    /// assert!(f64::abs(state.weights()[0] - 24.0) < 1e-3);
    /// assert!(f64::abs(state.factor(2)[1] - 2.0 / 3.0) < 1e-6);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn transform<T: Real>(
        &self,
        learnt: &SignedCpState<T>,
        data: &dyn Data<T>,
        how: &Transform,
    ) -> Result<Explained<SignedCpState<T>>, FitError> {
        self.check()?;
        let (mode, scale) = (learnt.signed_mode(), learnt.scale_mode());
        let along = explained_mode(&learnt.shape(), (mode, scale), data, how)?;
        let [plus, minus] = split(learnt.atoms());
        let k = learnt.components();
        let mut cells = Slabs::new(data, mode, k)?;
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
        let dropped = if self.replicates.is_noisy() {
            0.0
        } else {
            cells.possible([&plus, &minus], &others, how.impossible)?
        };
        let empty = empty_of(&cells, data.shape()[along], along);
        let mut config = self.clone();
        (config.components, config.signed_mode, config.scale_mode) = (k, mode, scale);
        for j in 0..specs.len() {
            let frozen = match Some(j) == weights || name(j) == free {
                true => Frozen::No,
                false => Frozen::Whole,
            };
            config.blocks.freeze(name(j).into(), frozen);
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

impl SignedCp {
    /// Transforms every observation along a mode as a batch of one: what carries its scale, its `weights` or its row of the factor, is that of
    /// [`transform`](Self::transform) of it alone, bit for bit. In a batch weights belong to all observations together.
    ///
    /// # Errors
    ///
    /// As [`transform`](Self::transform).
    pub fn transform_each<T: Real>(
        &self,
        learnt: &SignedCpState<T>,
        data: &dyn Data<T>,
        how: &Transform,
    ) -> Result<Each, FitError> {
        self.check()?;
        let along = how.mode(learnt.shape().len())?;
        let k = learnt.components();
        let name = scaled(learnt.scale_mode());
        let one = |one: &dyn Data<T>, how: &Transform| self.transform(learnt, one, how);
        let row = |state: Option<&SignedCpState<T>>| {
            let block = state.and_then(|state| state.parameters().block(&name));
            let row = block.map(|block| block.iter().map(|x| x.to_f64()).collect());
            Ok(vec![(name.clone(), row.unwrap_or(vec![0.0; k]))])
        };
        explain_each(data, (along, false), how, one, row)
    }
}

impl SignedCpVb {
    /// Transforms every observation along a mode as a batch of one: the posterior of what carries its scale, its `weights` or its row of the factor, is that of
    /// [`transform`](Self::transform) of it alone, bit for bit, with the mean. In a batch weights belong to all observations together.
    ///
    /// # Errors
    ///
    /// As [`transform`](Self::transform).
    pub fn transform_each<T: Real>(
        &self,
        learnt: &SignedCpVbState<T>,
        data: &dyn Data<T>,
        how: &Transform,
    ) -> Result<Each, FitError> {
        self.check()?;
        let along = how.mode(learnt.shape().len())?;
        let name = scaled(learnt.scale_mode());
        let names = ["shape", "rate"].map(|of| format!("{name}_{of}"));
        let one = |one: &dyn Data<T>, how: &Transform| self.transform(learnt, one, how);
        let row = |state: Option<&SignedCpVbState<T>>| {
            let block = |name: &String, nothing: f64| -> Vec<f64> {
                let block = state.and_then(|state| state.parameters().block(name));
                let row = block.map(|block| block.iter().map(|x| x.to_f64()).collect());
                row.unwrap_or(vec![nothing; learnt.components()])
            };
            let (shape, rate) = (block(&names[0], 0.0), block(&names[1], 1.0));
            let mean = shape
                .iter()
                .zip(&rate)
                .map(|(shape, rate)| shape / rate)
                .collect();
            let [of_shape, of_rate] = names.clone();
            Ok(vec![
                (of_shape, shape),
                (of_rate, rate),
                (name.clone(), mean),
            ])
        };
        explain_each(data, (along, false), how, one, row)
    }
}

/// The block that carries the scale.
fn scaled(scale: Option<usize>) -> String {
    scale.map_or("weights".into(), |mode| format!("factor_{mode}"))
}

/// The mode along which data are explained by a state of this shape and these modes: the signed one, and that of the scale. All other sizes are those of the state.
fn explained_mode<T: Real>(
    shape: &[usize],
    (signed, scale): (usize, Option<usize>),
    data: &dyn Data<T>,
    how: &Transform,
) -> Result<usize, FitError> {
    let along = how.mode(shape.len())?;
    let refused = |what| Err(FitError::Conflict { what });
    if along == signed {
        return refused(format!(
            "mode {signed} is signed: expected `along` another one"
        ));
    }
    if let Some(scaled) = scale.filter(|&scaled| scaled != along) {
        return refused(format!(
            "the factor of mode {scaled} carries the scale of the data: expected `along` {scaled}"
        ));
    }
    let sizes = shape.iter().map(|&n| DMatrix::<T>::zeros(n, 0));
    let sizes: Vec<_> = sizes.collect();
    let fixed = sizes.iter().enumerate();
    let fixed = fixed.map(|(j, size)| (j != along).then_some(Factor::Columns(size)));
    check_shape(data.shape(), &fixed.collect::<Vec<_>>())?;
    Ok(along)
}

/// Those of `n` observations along a mode in which nothing but zeros was observed.
fn empty_of<T: Real>(cells: &Slabs<T>, n: usize, along: usize) -> Vec<usize> {
    let observation = |row, column| cells.folding.index(row, column)[along];
    empty(|visit| cells.for_each(visit), n, observation)
}

impl SignedCpVb {
    /// Finds the posterior of the factor of one mode, and of the weights, of new data under those of the other factors of a state, with the likelihood and the
    /// priors of this model. There is no bound on what the objective can gain.
    ///
    /// No datum is impossible under a posterior. The start shares the data out evenly. `Auto` makes plain iterations; of a solver that extrapolates the end is
    /// taken where its bound is higher than that of plain iterations.
    ///
    /// # Errors
    ///
    /// [`FitError::Mode`], [`FitError::Conflict`] for the signed mode and, where a factor carries the scale, for any other mode than its own,
    /// [`FitError::DataShape`], and those of [`on`](plca_fit::Model::on) and of a run.
    ///
    /// # Examples
    ///
    /// ```
    /// use skellam_snmf::{Model, Transform};
    /// use skellam_snmf::tensor::{DenseTensor, Order};
    /// use skellam_snmf::SignedCpVb;
    /// let tensor = |values| DenseTensor::<f64>::new(vec![2, 2, 2], values, Order::RowMajor);
    /// let data = tensor(vec![20.0, 40.0, 10.0, 20.0, -40.0, -80.0, -20.0, -40.0])?;
    /// let model = SignedCpVb::new(1);
    /// let fit = model.fit(&data, &mut skellam_snmf::seed(0))?;
    /// let new = tensor(vec![40.0, 20.0, 20.0, 10.0, -80.0, -40.0, -40.0, -20.0])?;        // the last mode turned round
    /// let explained = model.transform(fit.state(), &new, &Transform::default().along(2))?;
    /// assert!(f64::abs(explained.fit.state().means()?.factor(2)[0] - 2.0 / 3.0) < 0.01);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn transform<T: Real>(
        &self,
        learnt: &SignedCpVbState<T>,
        data: &dyn Data<T>,
        how: &Transform,
    ) -> Result<Explained<SignedCpVbState<T>>, FitError> {
        self.check()?;
        let (mode, scale) = (learnt.signed_mode(), learnt.scale_mode());
        let along = explained_mode(&learnt.shape(), (mode, scale), data, how)?;
        let k = learnt.components();
        let cells = Slabs::new(data, mode, k)?;
        let empty = empty_of(&cells, data.shape()[along], along);
        let mut config = self.clone();
        (config.components, config.signed_mode, config.scale_mode) = (k, mode, scale);
        let free = ["weights", &*format!("factor_{along}")].map(|block| format!("{block}_"));
        let is_free = |name: &str| free.iter().any(|block| name.starts_with(block));
        for (name, _) in learnt.parameters().blocks() {
            let frozen = match is_free(name) {
                true => Frozen::No,
                false => Frozen::Whole,
            };
            config.blocks.freeze(name.to_string(), frozen);
        }
        let algorithm = config.on_cells(cells)?;
        let start = algorithm
            .0
            .even_but(learnt.parameters().matrices(), is_free);
        explained_by_bound(&algorithm, start, how, empty)
    }
}

impl<T: Real> SignedCpVbState<T> {
    /// Transforms new data as [`SignedCpVb::transform`] does, with a model of default settings.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn transform(
        &self,
        data: &dyn Data<T>,
        how: &Transform,
    ) -> Result<Explained<Self>, FitError> {
        SignedCpVb::new(self.components()).transform(self, data, how)
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
        SignedCp::new(self.components()).transform(self, data, how)
    }
}
