//! PLCA of any order by variational Bayes.

use std::borrow::Cow;

use nalgebra::DMatrix;
use plca_fit::{
    Algorithm, Explained, Fit, FitError, Model, Parameters, Settings, State, Transform,
    blocks::{Axes, BlockSpec, Blocks, Constraint, Draw, Frozen, no_mode},
    em::Em,
    explain::{Each, begin, bounded, check_shape, empty, explain_each},
};
use plca_priors::Entries;
use plca_tensor::{Coordinates, Data, Factor, Real, SparseTensor};

use super::counts::{Form, VbCounts, add, check};
use super::dirichlet::{means, refuse_probabilities};
use super::documents::Words;
use super::{check_priors, freeze, priors_of};
use crate::PlcaState;

plca_fit::settings! {
    /// PLCA of data of any order by variational Bayes: the model of [`Plca`](crate::Plca), of which a distribution over its parameters is fitted instead
    /// of one value of them.
    ///
    /// ```math
    /// \begin{aligned}
    /// & q(P(z)) = \mathrm{Dirichlet}(a), \qquad q(P(x_j \mid z)) = \mathrm{Dirichlet}(A_j[\cdot,z]) \\
    /// & \text{maximise} \quad \sum_x V[x] \ln \tilde P(x) - \sum_\text{columns} \mathrm{KL}(q \,\Vert\, p),
    ///   \qquad \tilde P(x) = \sum_z \tilde a_z \prod_j \tilde A_j[x_j,z],
    ///   \qquad \tilde a = e^{\psi(a) - \psi(\sum a)}
    /// \end{aligned}
    /// ```
    ///
    /// The objective is a lower bound of the log-evidence (ELBO), without the multinomial coefficient. The blocks are `weights_shape`, `a` as a column of `K`, and
    /// `factor_0_shape`, `factor_1_shape`, …, `A_j` as an `I_j x K` matrix for every mode: positive numbers, those of the prior plus the counts
    /// that a component has. `p` are Dirichlet laws too, of shape 1 unless [`PlcaVb::prior`] says otherwise. Small shapes of the weights, with more
    /// components than are needed, leave those without counts empty; and the bound plus `ln K!` compares numbers of components.
    ///
    /// Cost: an iteration is one E-step, as one of [`Plca`](crate::Plca), and `e^ψ` of every shape. `[EXT 3]`
    ///
    /// ```
    /// use plca_em::{Model, PlcaVb};
    /// use plca_em::tensor::{DenseTensor, Order};
    /// let v = DenseTensor::<f64>::new(vec![2, 2], vec![30.0, 0.0, 0.0, 10.0], Order::RowMajor)?;
    /// let fit = PlcaVb::new(2).fit(&v, &mut plca_em::seed(0))?;
    /// assert!(fit.trace().windows(2).all(|w| w[1].objective >= w[0].objective - 1e-9));
    /// let means = fit.state().means()?;
    /// assert!((means.weights().iter().sum::<f64>() - 1.0).abs() < 1e-12);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct PlcaVb, priors "_shape" {}
}

impl PlcaVb {
    fn on_data<'a, T: Real>(&self, data: &'a dyn Data<T>) -> Result<Em<VbCounts<'a, T>>, FitError> {
        self.check()?;
        check(data)?;
        let blocks = self.specs_and_priors(data.shape())?;
        Ok(Em(VbCounts::new(data, blocks, Form::Joint)))
    }

    /// The blocks for data of this shape, with what is frozen, and their priors.
    pub(super) fn specs_and_priors<T: Real>(
        &self,
        shape: &[usize],
    ) -> Result<(Vec<BlockSpec<T>>, Vec<Entries>), FitError> {
        let mut specs = specs(shape, self.components);
        freeze(&self.blocks, &mut specs)?;
        let priors = priors_of(&self.blocks, &specs)?;
        Ok((specs, priors))
    }

    /// Transforms new data along one mode: the posteriors of the other factors are kept, and weights and factor of the mode start from their priors and even
    /// counts. The bound is that of the new data alone, without the divergences of what is kept. There are no gaps.
    ///
    /// `Auto` makes plain iterations. With a solver that extrapolates plain iterations are made, too, and the end with the higher bound is returned. Indices of other modes that have no data take no part in the iterations.
    ///
    /// # Errors
    ///
    /// [`FitError::Mode`], [`FitError::DataShape`], [`FitError::Probabilities`], those of [`Model::bind`] and of a run.
    pub fn transform<T: Real>(
        &self,
        learnt: &PlcaVbState<T>,
        data: &dyn Data<T>,
        how: &Transform,
    ) -> Result<Explained<PlcaVbState<T>>, FitError> {
        self.check()?;
        let factors = learnt.factors_shape();
        let along = how.mode(factors.len())?;
        let k = learnt.weights_shape().len();
        let kept = factors.iter().enumerate();
        let kept = kept.map(|(j, f)| (j != along).then_some(Factor::Columns(f)));
        check_shape(data.shape(), &kept.collect::<Vec<_>>())?;
        check(data)?;
        let mut config = self.clone();
        config.components = k;
        config.blocks = self.blocks.unfrozen();
        let (specs, priors) = config.specs_and_priors(data.shape())?;
        let occurring = Occurring::new(data, along)?;
        let mut fixed = vec![None; specs.len()];
        for (j, factor) in factors.iter().enumerate().filter(|&(j, _)| j != along) {
            let spec = &specs[j + 1];
            refuse_probabilities(spec, factor, &priors[j + 1])?;
            let indices = &occurring.indices[j];
            let means = Words::new(&spec.name, factor, indices.iter())?.means_of(indices);
            fixed[j + 1] = Some(means);
            // Divergences of what is kept are not counted.
            config.blocks.without_prior(&spec.name);
            config.blocks.freeze(spec.name.to_string(), Frozen::Whole);
        }
        let mut em = config.on_data(&occurring.data)?;
        let blocks = fixed.iter().enumerate().map(|(j, means)| match means {
            None => em.0.even_block(j),
            // The shapes of a block whose means are fixed are not looked at.
            Some(means) => Ok(means.map(|_| T::one())),
        });
        let blocks = blocks.collect::<Result<_, FitError>>()?;
        em.0.fixed = fixed;
        let start = begin(&em, blocks)?;
        let fit: Fit<PlcaVbState<T>> = bounded(&em, start, how)?;
        let restore = |j: usize, block: &mut DMatrix<T>| {
            if j > 0 && j - 1 != along {
                block.clone_from(&factors[j - 1]);
            }
        };
        Ok(Explained::new(
            fit.change(|at| at.change(restore))?,
            Vec::new(),
            0.0,
            empty(data, along)?,
        ))
    }

    /// Transforms every observation along a mode as a batch of one: its `weights_shape`, and `weights`, their mean, are those of [`transform`](Self::transform) of it
    /// alone, bit for bit. In a batch weights belong to all observations together.
    ///
    /// # Errors
    ///
    /// As [`transform`](Self::transform).
    pub fn transform_each<T: Real>(
        &self,
        learnt: &PlcaVbState<T>,
        data: &dyn Data<T>,
        how: &Transform,
    ) -> Result<Each, FitError> {
        self.check()?;
        let along = how.mode(learnt.factors_shape().len())?;
        let mut config = self.clone();
        config.components = learnt.weights_shape().len();
        config.blocks = self.blocks.unfrozen();
        let (specs, priors) = config.specs_and_priors(data.shape())?;
        let mut nothing = DMatrix::<T>::zeros(config.components, 1);
        add(&priors[0], &specs[0], &mut nothing);
        // A distribution of one index is 1, whatever its prior.
        config
            .blocks
            .without_prior(&format!("factor_{along}_shape"));
        let one = |one: &dyn Data<T>, how: &Transform| config.transform(learnt, one, how);
        let row = |state: Option<&PlcaVbState<T>>| {
            let shapes = state.map_or(&nothing, |state| state.0.at(0));
            let row = |block: &DMatrix<T>| block.iter().map(|x| x.to_f64()).collect();
            Ok(vec![
                ("weights_shape".to_string(), row(shapes)),
                ("weights".to_string(), row(&means(shapes))),
            ])
        };
        explain_each(data, (along, true), how, one, row)
    }
}

/// Data without the indices that have none, of all modes but one.
#[derive(Debug)]
struct Occurring<T: Real> {
    data: SparseTensor<T>,
    /// The indices that are left of every mode.
    indices: Vec<Vec<u32>>,
}

impl<T: Real> Occurring<T> {
    fn new(data: &dyn Data<T>, along: usize) -> Result<Self, FitError> {
        let mut occurs: Vec<Vec<bool>> = data.shape().iter().map(|&n| vec![false; n]).collect();
        occurs[along].fill(true);
        data.visit(&mut |index, _| {
            for (mode, &i) in index.iter().enumerate() {
                occurs[mode][i] = true;
            }
        })?;
        let indices = occurs.iter().map(|all| {
            let all = all.iter().enumerate().filter(|(_, occurs)| **occurs);
            all.map(|(i, _)| i as u32).collect()
        });
        let indices: Vec<Vec<u32>> = indices.collect();
        let places = occurs.iter().map(|all| {
            let mut next = 0;
            let place = |&occurs: &bool| {
                let place = next;
                next += usize::from(occurs);
                place
            };
            all.iter().map(place).collect()
        });
        let places: Vec<Vec<usize>> = places.collect();
        let shape: Vec<usize> = indices.iter().map(Vec::len).collect();
        let mut entries = Coordinates::empty(&shape);
        data.visit(&mut |index, value| {
            let place = index.iter().zip(&places).map(|(&i, places)| places[i]);
            entries.push(&place.collect::<Vec<_>>(), T::lit(value));
        })?;
        Ok(Self {
            data: SparseTensor::new(entries)?,
            indices,
        })
    }
}

plca_fit::by_name!(PlcaVb {});

impl Settings for PlcaVb {
    fn components(&self) -> usize {
        self.components
    }

    /// # Errors
    ///
    /// [`FitError::Setting`] without components, and for a shape that is not positive and finite.
    fn check(&self) -> Result<(), FitError> {
        FitError::if_zero("components", self.components)?;
        check_priors(&self.blocks)
    }
}

impl<T: Real> Model<T> for PlcaVb {
    type State = PlcaVbState<T>;

    /// # Errors
    ///
    /// Those of [`check_counts`](plca_tensor::check_counts); [`FitError::Conflict`] for hidden cells, and for frozen entries beside free ones of their column.
    fn bind<'a>(&'a self, data: &'a dyn Data<T>) -> Result<Box<dyn Algorithm<T> + 'a>, FitError> {
        Ok(Box::new(self.on_data(data)?))
    }
}

/// The blocks of data of this shape.
pub(super) fn specs<T: Real>(shape: &[usize], k: usize) -> Vec<BlockSpec<T>> {
    let positive = |name: Cow<'static, str>, shape, axes| {
        BlockSpec::values(name, shape, axes, Constraint::Positive)
    };
    let mut weights = positive("weights_shape".into(), (k, 1), Axes::WEIGHTS);
    weights.draw = Draw::Even;
    let factor = |(j, &n)| positive(format!("factor_{j}_shape").into(), (n, k), Axes::factor(j));
    let factors = shape.iter().enumerate().map(factor);
    std::iter::once(weights).chain(factors).collect()
}

/// The fitted posterior of [`PlcaVb`]: Dirichlet laws of the weights and of the columns of every factor.
///
/// ```
/// use plca_em::nalgebra::{self, dmatrix};
/// use plca_em::PlcaVbState;
/// let state = PlcaVbState::new(dmatrix![3.0; 1.0], vec![dmatrix![1.0, 2.0; 3.0, 2.0]])?;
/// assert_eq!(state.means()?.factor(0), &dmatrix![0.25, 0.5; 0.75, 0.5]);
/// # Ok::<(), plca_em::FitError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct PlcaVbState<T: Real>(Parameters<T>);

plca_fit::serialised!(PlcaVbState);
by_means!(
    PlcaVbState,
    |state| state.factors_shape().iter().map(|f| f.nrows()).collect(),
    state.weights_shape().len()
);

impl<T: Real> PlcaVbState<T> {
    /// The state of the shapes of weights, `K x 1`, and factors, `I_j x K`.
    ///
    /// # Errors
    ///
    /// [`FitError::Shape`], [`FitError::Range`] for a shape that is not positive and finite, [`FitError::Count`] without factors.
    pub fn new(weights: DMatrix<T>, factors: Vec<DMatrix<T>>) -> Result<Self, FitError> {
        FitError::if_no_factor(factors.len())?;
        let shape: Vec<usize> = factors.iter().map(|f| f.nrows()).collect();
        let specs = specs(&shape, weights.nrows());
        let blocks = std::iter::once(weights).chain(factors);
        Ok(Self(Parameters::new(&specs, blocks.collect())?))
    }

    /// The shapes of the weights, `a`: `K` positive numbers.
    pub fn weights_shape(&self) -> &[T] {
        self.0.at(0).as_slice()
    }

    /// The shapes of the factor of a mode, `A_j`: an `I_j x K` matrix of positive numbers.
    ///
    /// # Panics
    ///
    /// If there is no such mode.
    pub fn factor_shape(&self, mode: usize) -> &DMatrix<T> {
        let factors = self.factors_shape();
        factors
            .get(mode)
            .unwrap_or_else(|| no_mode(mode, factors.len()))
    }

    /// The shapes of the factors of all modes, in the order of the modes.
    pub fn factors_shape(&self) -> &[DMatrix<T>] {
        &self.0.matrices()[1..]
    }

    /// The posterior means: shapes divided by the sums of their columns.
    ///
    /// # Errors
    ///
    /// Those of [`PlcaState::new`]: none for a state that was fitted.
    pub fn means(&self) -> Result<PlcaState<T>, FitError> {
        let blocks = self.0.matrices().iter().map(means);
        let names = PlcaState::<T>::block_names(self.0.matrices().len() - 1);
        let blocks = names.into_iter().zip(blocks).collect();
        PlcaState::wrap(Parameters::named(blocks, self.0.mass()))
    }
}

impl<T: Real> State for PlcaVbState<T> {
    type Scalar = T;
    const NAME: &'static str = "plca-vb";
    const BLOCKS: Blocks = &[
        ("weights_shape", Axes::WEIGHTS),
        ("factor_*_shape", Axes::factor(0)),
    ];

    fn derived(at: &Parameters<f64>) -> Vec<(Cow<'static, str>, DMatrix<f64>)> {
        let blocks = at.blocks().map(|(name, shapes)| {
            let name = name.trim_end_matches("_shape").to_string();
            (name.into(), means(shapes))
        });
        blocks.collect()
    }

    fn wrap(parameters: Parameters<T>) -> Result<Self, FitError> {
        let k = parameters.shape(0).0;
        let factors = parameters.matrices().iter().skip(1);
        let shape: Vec<usize> = factors.map(|factor| factor.nrows()).collect();
        parameters.check(&specs(&shape, k))?;
        FitError::if_no_factor(shape.len())?;
        Ok(Self(parameters))
    }

    fn parameters(&self) -> &Parameters<T> {
        &self.0
    }
}
