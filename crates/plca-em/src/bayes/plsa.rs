//! PLSA by variational Bayes: latent Dirichlet allocation.

use std::borrow::Cow;

use nalgebra::DMatrix;
use plca_fit::{
    Algorithm, Explained, FitError, Model, Parameters, Settings, Solver, State, Transform,
    blocks::{Axes, BlockSpec, Blocks, Constraint, Frozen},
    em::Em,
    explain::{Outcome, begin, check_shape, empty, uncertified},
    setting::BlockSettings,
};
use plca_priors::Entries;
use plca_tensor::arrange::Observations;
use plca_tensor::parallel::{apart, map_in_order};
use plca_tensor::{CompensatedSum, Data, DenseTensor, Factor, Order, Real};

use super::counts::{Form, VbCounts, check};
use super::dirichlet::{components, means, refuse_probabilities};
use super::documents::{Document, Ends, Words};
use super::{check_priors, freeze, priors_of};
use crate::plsa::check_order;
use crate::product::conflict;
use crate::{Given, PlsaState};

plca_fit::settings! {
    /// PLSA of a matrix by variational Bayes, which is latent Dirichlet allocation (LDA): the model of [`Plsa`](crate::Plsa), of which a distribution over its
    /// parameters is fitted instead of one value of them.
    ///
    /// ```math
    /// \begin{aligned}
    /// & q(P(x \mid z)) = \mathrm{Dirichlet}(\lambda[\cdot,z]), \qquad q(P(z \mid y)) = \mathrm{Dirichlet}(\gamma[\cdot,y]) \\
    /// & \text{maximise} \quad \sum_{x,y} V[x,y] \ln \sum_z \tilde\lambda[x,z] \, \tilde\gamma[z,y] - \sum_\text{columns} \mathrm{KL}(q \,\Vert\, p),
    ///   \qquad \tilde\lambda = e^{\psi(\lambda) - \psi(\sum \lambda)}
    /// \end{aligned}
    /// ```
    ///
    /// The objective is a lower bound of the log-evidence (ELBO), without the multinomial coefficients. The blocks are `basis_shape`, `λ` as an `I x K` matrix, and
    /// `mixture_shape`, `γ` as a `K x J` matrix: positive numbers, those of the prior plus counts. `p` are Dirichlet laws too, of shape 1 unless
    /// [`PlsaVb::prior`] says otherwise. Both blocks move together; the perplexity of other programs is `exp(-ELBO / v)`, with `v` the sum of the data.
    ///
    /// Cost: an iteration is one E-step, as one of [`Plsa`](crate::Plsa), and `e^ψ` of every shape. `[EXT 3]`
    ///
    /// ```
    /// use plca_em::{Model, PlsaVb};
    /// use plca_em::priors::Entries;
    /// use plca_em::tensor::{DenseTensor, Order};
    /// let words = vec![9.0, 0.0, 8.0, 1.0, 0.0, 7.0, 0.0, 9.0];            // 4 words in 2 documents
    /// let v = DenseTensor::<f64>::new(vec![4, 2], words, Order::RowMajor)?;
    /// let lda = PlsaVb::new(2).prior("basis_shape", Entries::All(0.1)).prior("mixture_shape", Entries::All(0.1));
    /// let fit = lda.fit(&v, &mut plca_em::seed(1))?;
    /// assert!(fit.trace().windows(2).all(|w| w[1].objective >= w[0].objective - 1e-9));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct PlsaVb, priors "_shape" {
        /// The mode that is given (default: the columns).
        pub given: Given = Given::default();
    }
}

/// The names of the blocks.
pub(super) const NAMES: [&str; 2] = ["basis_shape", "mixture_shape"];
/// The fact that holds the sums of the data of every given index.
pub(super) const TOTALS: &str = "totals";

impl PlsaVb {
    pub(super) fn on_data<'a, T: Real>(
        &self,
        data: &'a dyn Data<T>,
    ) -> Result<Em<VbCounts<'a, T>>, FitError> {
        self.check()?;
        check_order(data.shape().len())?;
        check(data)?;
        let given = self.given;
        let mut counts = VbCounts::new(
            data,
            self.specs_and_priors(data.shape())?,
            Form::Given(given),
        );
        counts.facts = vec![
            ("given", vec![given.mode() as f64]),
            (TOTALS, data.marginal(given.mode())?),
        ];
        Ok(Em(counts))
    }

    /// The blocks for data of this shape, with what is frozen, and their priors.
    pub(super) fn specs_and_priors<T: Real>(
        &self,
        shape: &[usize],
    ) -> Result<(Vec<BlockSpec<T>>, Vec<Entries>), FitError> {
        check_order(shape.len())?;
        let sizes = [self.given.explained(), self.given.mode()].map(|mode| shape[mode]);
        let mut specs = specs(self.given, sizes, self.components);
        freeze(&self.blocks, &mut specs)?;
        let priors = priors_of(&self.blocks, &specs)?;
        Ok((specs, priors))
    }

    /// Transforms new observations: the posterior of the basis is kept, and mixtures start from their prior and even counts.
    ///
    /// Each observation is explained alone, from its own words, by plain iterations until its own bound no longer changes: its mixture is bit-identical in any
    /// batch, in any storage and for any number of threads. Of a solver that extrapolates the end is taken where its bound is higher than that of plain
    /// iterations.
    ///
    /// The objective is the bound of the new data, `Σ V ln P̃ - Σ KL` over the mixtures alone, so that `exp(-objective / v)` is the held-out perplexity of
    /// other programs. There are no gaps.
    ///
    /// Cost: `K` numbers for every word that occurs in an observation and iteration, and the sums of the topics once.
    ///
    /// # Errors
    ///
    /// [`FitError::DataShape`], [`FitError::Conflict`] for another mode than the given one, [`FitError::Probabilities`], [`FitError::Support`] for a word whose
    /// shapes are so small that no topic reaches it, those of [`Model::bind`] and of a run.
    pub fn transform<T: Real>(
        &self,
        learnt: &PlsaVbState<T>,
        data: &dyn Data<T>,
        how: &Transform,
    ) -> Result<Explained<PlsaVbState<T>>, FitError> {
        self.check()?;
        let (given, basis) = (learnt.given(), learnt.basis_shape());
        let along = given.mode();
        if how.along.is_some_and(|mode| mode != along) {
            return conflict(format!(
                "the observations of this PLSA lie along mode {along}"
            ));
        }
        how.stop.check()?;
        check_order(data.shape().len())?;
        let mut kept = [None, None];
        kept[given.explained()] = Some(Factor::Columns(basis));
        check_shape(data.shape(), &kept)?;
        check(data)?;
        let mut config = self.clone();
        (config.components, config.given) = (basis.ncols(), given);
        config.blocks = self.blocks.unfrozen();
        let (specs, priors) = config.specs_and_priors(data.shape())?;
        refuse_probabilities(&specs[0], basis, &priors[0])?;
        let observations = Observations::new(data, along)?;
        let n = observations.count();
        let all = (0..n).flat_map(|y| observations.cells(y).0);
        let words = Words::new(NAMES[0], basis, all)?;
        let ends = Ends {
            stop: &how.stop,
            interrupt: how.interrupt.as_ref(),
            limit: how.stop.deadline(),
        };
        let one = |y: usize| {
            let (own, counts) = observations.cells(y);
            let counts: Vec<f64> = counts.iter().map(|x| x.to_f64()).collect();
            let axis = components(&specs[1]);
            let prior: Vec<f64> = (0..config.components)
                .map(|z| priors[1].get(y * config.components + z, axis))
                .collect();
            let lost = |place: usize| {
                let mut index = vec![y; 2];
                index[given.explained()] = own[place] as usize;
                let value = counts[place];
                FitError::Support { index, value }
            };
            let plain = words.explain((own, &counts), &prior, ends);
            let plain = plain.map_err(lost)?;
            if !extrapolates(how) || counts.is_empty() || plain.status.is_cut() {
                return Ok(plain);
            }
            let means = words.means_of::<T>(own);
            let mut how = how.clone();
            how.stop.time_limit = ends.limit.left();
            let other = config.extrapolated(means, &counts, prior, &how)?;
            Ok(match other.bound > plain.bound {
                true => other,
                false => plain,
            })
        };
        let found = match extrapolates(how) {
            false => map_in_order((0..n).collect(), one),
            // Runs have loops of their own.
            true => apart(n, one),
        };
        let found = found
            .into_iter()
            .collect::<Result<Vec<Document>, FitError>>()?;
        let mut ended = Outcome::default();
        let mut mixture = DMatrix::zeros(config.components, n);
        for (document, mut column) in found.iter().zip(mixture.column_iter_mut()) {
            ended.and(document.iterations, &document.status);
            let entries = column.iter_mut().zip(&document.shapes);
            entries.for_each(|(x, &shape)| *x = T::lit(shape));
        }
        let bounds: CompensatedSum = found.iter().map(|document| document.bound).collect();
        let totals = data.marginal(along)?;
        let blocks = NAMES
            .map(String::from)
            .into_iter()
            .zip([basis.clone(), mixture]);
        let at = Parameters::named(blocks.collect(), data.total())
            .with_fact("given", vec![along as f64])
            .with_fact(TOTALS, totals);
        Ok(Explained::new(
            ended.fit_of(at, bounds.value())?,
            Vec::new(),
            0.0,
            empty(data, along)?,
        ))
    }

    /// A document of words with these means and counts, explained by the solver that was asked for.
    fn extrapolated<T: Real>(
        &self,
        means: DMatrix<T>,
        counts: &[f64],
        prior: Vec<f64>,
        how: &Transform,
    ) -> Result<Document, FitError> {
        let (n, k) = means.shape();
        let mut config = self.clone();
        config.blocks = BlockSettings::default();
        let prior = Entries::Each(DMatrix::from_vec(k, 1, prior));
        config.blocks.prior(NAMES[1].into(), prior);
        config.blocks.freeze(NAMES[0].into(), Frozen::Whole);
        let mut shape = vec![1; 2];
        shape[self.given.explained()] = n;
        let counts = counts.iter().map(|&v| T::lit(v)).collect();
        let document = DenseTensor::new(shape, counts, Order::RowMajor)?;
        let mut em = config.on_data(&document)?;
        let mixture = em.0.even_block(1)?;
        em.0.fixed[0] = Some(means);
        // The shapes of a block whose means are fixed are not looked at.
        let basis = DMatrix::from_element(n, k, T::one());
        let start = begin(&em, vec![basis, mixture])?;
        let fit = uncertified::<PlsaVbState<T>>(Box::new(em), start, how)?;
        let shapes = fit.state().mixture_shape().iter().map(|x| x.to_f64());
        Ok(Document {
            shapes: shapes.collect(),
            bound: fit.objective(),
            iterations: fit.iterations(),
            status: fit.status().clone(),
        })
    }
}

/// Whether a solver was asked for that does not make plain iterations.
fn extrapolates(how: &Transform) -> bool {
    !matches!(how.solver, Solver::Auto | Solver::Em)
}

plca_fit::by_name!(PlsaVb { given: crate::plsa::GIVEN; });

impl Settings for PlsaVb {
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

impl<T: Real> Model<T> for PlsaVb {
    type State = PlsaVbState<T>;

    /// # Errors
    ///
    /// Those of [`check_counts`](plca_tensor::check_counts); [`FitError::Conflict`] for data that are not a matrix, for hidden cells, and for frozen entries beside
    /// free ones of their column.
    fn bind<'a>(&'a self, data: &'a dyn Data<T>) -> Result<Box<dyn Algorithm<T> + 'a>, FitError> {
        Ok(Box::new(self.on_data(data)?))
    }
}

/// The blocks for these numbers of explained and given indices.
pub(super) fn specs<T: Real>(
    mode: Given,
    [explained, given]: [usize; 2],
    k: usize,
) -> Vec<BlockSpec<T>> {
    let (basis, mixture) = mode.axes();
    let positive = |name, shape, axes| BlockSpec::values(name, shape, axes, Constraint::Positive);
    vec![
        positive(NAMES[0], (explained, k), basis),
        positive(NAMES[1], (k, given), mixture),
    ]
}

/// The fitted posterior of [`PlsaVb`]: Dirichlet laws of the columns of basis and mixture.
///
/// ```
/// use plca_em::nalgebra::{self, dmatrix};
/// use plca_em::{Given, PlsaVbState};
/// let state = PlsaVbState::new(Given::Columns, dmatrix![1.0; 3.0], dmatrix![2.0, 5.0])?;
/// assert_eq!(state.means()?.basis(), &dmatrix![0.25; 0.75]);
/// # Ok::<(), plca_em::FitError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct PlsaVbState<T: Real>(Parameters<T>);

plca_fit::serialised!(PlsaVbState);
by_means!(
    PlsaVbState,
    |state| {
        let mut shape = vec![state.mixture_shape().ncols(); 2];
        shape[state.given().explained()] = state.basis_shape().nrows();
        shape
    },
    state.basis_shape().ncols()
);

impl<T: Real> PlsaVbState<T> {
    /// The state of the shapes of the basis, `I x K`, and of the mixture, `K x J`.
    ///
    /// # Errors
    ///
    /// [`FitError::Shape`], [`FitError::Range`] for a shape that is not positive and finite.
    pub fn new(given: Given, basis: DMatrix<T>, mixture: DMatrix<T>) -> Result<Self, FitError> {
        let specs = specs(given, [basis.nrows(), mixture.ncols()], basis.ncols());
        let parameters = Parameters::new(&specs, vec![basis, mixture])?;
        let given = vec![given.mode() as f64];
        Ok(Self(parameters.with_fact("given", given)))
    }

    /// The mode that is given.
    pub fn given(&self) -> Given {
        match self.0.fact("given") {
            Some([0.0]) => Given::Rows,
            _ => Given::Columns,
        }
    }

    /// The shapes of the basis, `λ`: an `I x K` matrix of positive numbers.
    pub fn basis_shape(&self) -> &DMatrix<T> {
        self.0.at(0)
    }

    /// The shapes of the mixtures, `γ`: a `K x J` matrix of positive numbers.
    pub fn mixture_shape(&self) -> &DMatrix<T> {
        self.0.at(1)
    }

    /// The posterior means, shapes divided by the sums of their columns; with the marginal of the data that they were fitted to.
    ///
    /// # Errors
    ///
    /// Those of [`PlsaState::new`]: none for a state that was fitted.
    pub fn means(&self) -> Result<PlsaState<T>, FitError> {
        let n = self.mixture_shape().ncols();
        let even = vec![1.0; n];
        let totals = self.0.fact(TOTALS).unwrap_or(&even);
        let mass: f64 = totals.iter().sum();
        let marginal = totals.iter().map(|t| T::lit(t / mass));
        let blocks = vec![
            ("basis".into(), means(self.basis_shape())),
            ("mixture".into(), means(self.mixture_shape())),
            (
                "marginal".into(),
                DMatrix::from_iterator(totals.len(), 1, marginal),
            ),
        ];
        let at = Parameters::named(blocks, mass);
        PlsaState::wrap(at.with_fact("given", vec![self.given().mode() as f64]))
    }
}

impl<T: Real> State for PlsaVbState<T> {
    type Scalar = T;
    const NAME: &'static str = "plsa-vb";
    const BLOCKS: Blocks = &[
        (NAMES[0], Axes::factor(0)),
        (NAMES[1], Axes::coefficients(1)),
    ];

    fn derived(at: &Parameters<f64>) -> Vec<(Cow<'static, str>, DMatrix<f64>)> {
        let blocks = ["basis", "mixture"].into_iter().zip(at.matrices());
        let blocks = blocks.map(|(name, shapes)| (name.into(), means(shapes)));
        blocks.collect()
    }

    fn wrap(parameters: Parameters<T>) -> Result<Self, FitError> {
        let ((explained, k), (_, given)) = (parameters.shape(0), parameters.shape(1));
        parameters.check(&specs(Given::default(), [explained, given], k))?;
        Ok(Self(parameters))
    }

    fn parameters(&self) -> &Parameters<T> {
        &self.0
    }
}
