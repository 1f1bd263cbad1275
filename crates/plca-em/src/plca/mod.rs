//! Symmetric PLCA of any order.
//!
//! ```text
//! P(x) = Σ_z P(z) Π_j P(x_j | z)
//! ```
//!
//! fitted by expectation-maximisation, plain or tempered, with a prior on any block and any block frozen.

mod accelerate;
mod builder;
mod em;
mod multiplicative;
mod state;

use std::sync::Arc;

use nalgebra::{DMatrix, DVector};
use plca_fit::{Outcome, Stop};
use plca_priors::SimplexPrior;
use plca_tensor::{Data, Real, check_counts};
use rand::Rng;

use crate::EmError;
use crate::blocks::{check_prior, column};
use crate::init::{check_support, random_columns, stochastic_block};

pub use builder::PlcaBuilder;
pub use em::PlcaEm;
pub use state::{PlcaInit, PlcaState};

/// A prior shared by a configuration and its copies.
///
/// ```
/// use std::sync::Arc;
/// use plca_em::{before::Plca, Prior};
/// use plca_priors::Dirichlet;
/// let smooth: Prior<f64> = Arc::new(Dirichlet::symmetric(1.1)?);
/// let plca = Plca::builder(3).factor_prior(0, smooth.clone()).factor_prior(1, smooth).build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Prior<T> = Arc<dyn SimplexPrior<T>>;

/// How hidden cells are treated; of no effect on complete data.
///
/// Both reach the same optima. The simultaneous form goes with imputation [SPEC 4]: that is the default of PLCA, whose updates
/// treat all modes alike. KL-NMF takes the multiplicative updates, which are sequential, unless it is told otherwise.
///
/// ```
/// use plca_em::{before::Plca, Missing};
/// let plca = Plca::<f64>::builder(3).missing(Missing::Multiplicative);
/// assert!(plca.temper(0.9).build().is_err());                     // these updates know no tempering
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Missing {
    /// Imputation EM: hidden cells are replaced by their expectation. Any order, any prior.
    #[default]
    Imputation,
    /// Masked multiplicative updates, block after block: fewer iterations; matrices without priors.
    Multiplicative,
}

/// A checked configuration; see [`Plca::builder`].
///
/// ```
/// use plca_em::{before::Plca, PlcaInit, Stop};
/// use plca_tensor::{DenseTensor, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let v = DenseTensor::<f64>::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
/// let mut rng = ChaCha8Rng::seed_from_u64(0);
/// let fit = Plca::builder(1).build()?.fit(&v, &PlcaInit::default(), &Stop::default(), &mut rng)?;
/// assert!((fit.state.factors[1][(0, 0)] - 0.5).abs() < 1e-12);        // one component: the marginals
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Plca<T: Real> {
    components: usize,
    pub(crate) freeze_weights: bool,
    pub(crate) frozen: Vec<usize>,
    pub(crate) weights_prior: Option<Prior<T>>,
    factor_priors: Vec<(usize, Prior<T>)>,
    pub(crate) temper: f64,
    temper_prior: bool,
    pub(crate) missing: Missing,
}

impl<T: Real> Plca<T> {
    /// Starts a configuration with `components` components (`K`).
    ///
    /// ```
    /// let plca = plca_em::before::Plca::<f64>::builder(3).temper(0.9).build()?;
    /// assert!(plca_em::before::Plca::<f64>::builder(0).build().is_err());
    /// # Ok::<(), plca_em::ParamError>(())
    /// ```
    pub fn builder(components: usize) -> PlcaBuilder<T> {
        PlcaBuilder(Self {
            components,
            freeze_weights: false,
            frozen: Vec::new(),
            weights_prior: None,
            factor_priors: Vec::new(),
            temper: 1.0,
            temper_prior: false,
            missing: Missing::default(),
        })
    }

    /// Whether blocks can be updated one after the other, each at its optimum with the others fixed.
    fn separates(&self) -> bool {
        let weights_alone = [0, 1].iter().all(|j| self.frozen.contains(j));
        !self.has_priors() && self.temper == 1.0 && !self.freeze_weights && !weights_alone
    }

    fn has_priors(&self) -> bool {
        self.weights_prior.is_some() || !self.factor_priors.is_empty()
    }

    /// The prior on the factor of mode `j`: the last one set.
    pub(crate) fn factor_prior(&self, j: usize) -> Option<&Prior<T>> {
        let mut priors = self.factor_priors.iter().rev();
        priors.find(|(mode, _)| *mode == j).map(|(_, prior)| prior)
    }

    /// Number of components `K`.
    ///
    /// ```
    /// assert_eq!(plca_em::before::Plca::<f64>::builder(3).build()?.components(), 3);
    /// # Ok::<(), plca_em::ParamError>(())
    /// ```
    pub fn components(&self) -> usize {
        self.components
    }

    /// Binds the configuration to data, as an algorithm for [`plca_fit::run`].
    ///
    /// # Errors
    ///
    /// [`EmError`]: multiplicative updates on data that are not a matrix, a prior that does not fit its block.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{before::Plca, Algorithm, PlcaInit};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
    /// let mut rng = ChaCha8Rng::seed_from_u64(0);
    /// let plca = Plca::builder(2).build()?;
    /// let mut state = plca.init(&v, &PlcaInit::default(), &mut rng)?;
    /// let em = plca.on(&v)?;
    /// let before = em.objective(&state)?;
    /// em.step(&mut state, false)?;                                    // one EM iteration
    /// assert!(em.objective(&state)? >= before);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on<'a>(&'a self, data: &'a dyn Data<T>) -> Result<PlcaEm<'a, T>, EmError> {
        check_counts(data)?;
        let shape = data.shape();
        if self.missing == Missing::Multiplicative && !data.is_complete() && shape.len() != 2 {
            return Err(EmError::Order {
                expected: 2,
                got: shape.len(),
            });
        }
        if let Some(&j) = self
            .frozen
            .iter()
            .chain(self.factor_priors.iter().map(|(j, _)| j))
            .find(|&&j| j >= shape.len())
        {
            return Err(EmError::Mode {
                mode: j,
                modes: shape.len(),
            });
        }
        for (j, prior) in &self.factor_priors {
            let block = (shape[*j], self.components);
            check_prior(&format!("factor_{j}"), Some(prior), block)?;
        }
        let weights = self.weights_prior.as_ref();
        check_prior("weights", weights, (self.components, 1))?;
        Ok(PlcaEm { config: self, data })
    }

    /// A start for data of this shape. Blocks that `init` does not give are drawn from `rng`, each consuming the same
    /// numbers whether or not the others are given.
    ///
    /// # Errors
    ///
    /// [`EmError`]: a given block of the wrong shape, with a bad value or a column of zeros; a frozen block that is not
    /// given; a model that is 0 where the data are positive.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{before::Plca, PlcaInit};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
    /// let mut rng = ChaCha8Rng::seed_from_u64(0);
    /// let plca = Plca::builder(2).build()?;
    /// let [a, b] = [0, 0].map(|seed| plca.init(&v, &PlcaInit::default(), &mut ChaCha8Rng::seed_from_u64(seed)));
    /// assert_eq!(a?, b?);                                             // a seed is a start
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn init<R>(
        &self,
        data: &dyn Data<T>,
        init: &PlcaInit<T>,
        rng: &mut R,
    ) -> Result<PlcaState<T>, EmError>
    where
        R: Rng + ?Sized,
    {
        let (shape, k) = (data.shape(), self.components);
        if init.factors.len() > shape.len() {
            return Err(EmError::Order {
                expected: init.factors.len(),
                got: shape.len(),
            });
        }
        let weights = match &init.weights {
            Some(w) => stochastic_block("weights", column(w), (k, 1))?,
            None if self.freeze_weights => {
                return Err(EmError::FixedWithoutValue {
                    block: "weights".into(),
                });
            }
            None => DMatrix::from_element(k, 1, T::one() / T::lit(k as f64)),
        };
        let mut factors = Vec::with_capacity(shape.len());
        for (j, &size) in shape.iter().enumerate() {
            let drawn = random_columns(size, k, rng);
            factors.push(match init.factors.get(j).and_then(Option::as_ref) {
                Some(f) => stochastic_block(&format!("factor_{j}"), f.clone(), (size, k))?,
                None if self.frozen.contains(&j) => {
                    return Err(EmError::FixedWithoutValue {
                        block: format!("factor_{j}"),
                    });
                }
                None => drawn,
            });
        }
        let weights = DVector::from_column_slice(weights.as_slice());
        let state = PlcaState {
            weights,
            factors,
            power: self.temper,
            iteration: 0,
        };
        state.with_model(|model| check_support(data, model))?;
        Ok(state)
    }

    /// Draws a start and runs EM until `stop` says so.
    ///
    /// # Errors
    ///
    /// As [`init`](Self::init) and [`on`](Self::on).
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{before::Plca, PlcaInit, Stop};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    ///
    /// let v = DenseTensor::new(vec![2, 3], vec![4.0, 0.0, 1.0, 0.0, 6.0, 1.0], Order::RowMajor)?;
    /// let plca = Plca::builder(2).build()?;
    /// let fit = plca.fit(&v, &PlcaInit::default(), &Stop::default(), &mut ChaCha8Rng::seed_from_u64(0))?;
    /// assert!((fit.state.weights.sum() - 1.0f64).abs() < 1e-12);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fit<R>(
        &self,
        data: &dyn Data<T>,
        init: &PlcaInit<T>,
        stop: &Stop,
        rng: &mut R,
    ) -> Result<Outcome<PlcaState<T>>, EmError>
    where
        R: Rng + ?Sized,
    {
        stop.check()?;
        let algorithm = self.on(data)?;
        let state = self.init(data, init, rng)?;
        plca_fit::run(&algorithm, state, stop, ())
    }
}
