//! Symmetric PLCA of any order.
//!
//! ```text
//! P(x) = Σ_z P(z) Π_j P(x_j | z)
//! ```
//!
//! fitted by expectation-maximisation, plain or tempered, with a prior on any block and any block frozen.

use std::sync::Arc;

use nalgebra::{DMatrix, DVector};
use plca_fit::{Accelerate, Algorithm, Outcome, Stop};
use plca_priors::SimplexPrior;
use plca_tensor::{Factor, Model, Observed, Real, normalise_columns};
use rand::Rng;

use crate::expectation::completed;
use crate::init::{check_support, random_columns, stochastic_block};
use crate::support::{emptying_step, in_force, restore};
use crate::{EmError, ParamError};

/// A prior shared by a configuration and its copies.
///
/// ```
/// use std::sync::Arc;
/// use plca_em::{Plca, Prior};
/// use plca_priors::Dirichlet;
/// let smooth: Prior<f64> = Arc::new(Dirichlet::symmetric(1.1)?);
/// let plca = Plca::builder(3).factor_prior(0, smooth.clone()).factor_prior(1, smooth).build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Prior<T> = Arc<dyn SimplexPrior<T>>;

/// How hidden cells are treated; of no effect on complete data.
///
/// ```
/// use plca_em::{Missing, Plca};
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
#[derive(Clone, Debug)]
pub struct Plca<T: Real> {
    components: usize,
    freeze_weights: bool,
    frozen: Vec<usize>,
    weights_prior: Option<Prior<T>>,
    factor_priors: Vec<(usize, Prior<T>)>,
    temper: f64,
    temper_prior: bool,
    pub(crate) missing: Missing,
}

/// Settings of [`Plca`], not yet checked.
///
/// ```
/// let plca = plca_em::Plca::<f64>::builder(3).temper(0.9).freeze_factor(0).build()?;
/// assert_eq!(plca.components(), 3);
/// # Ok::<(), plca_em::ParamError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "call `.build()`"]
pub struct PlcaBuilder<T: Real>(Plca<T>);

impl<T: Real> PlcaBuilder<T> {
    /// Keeps `P(z)` as it was given.
    ///
    /// ```
    /// use nalgebra::{DVector};
    /// use plca_em::{Algorithm, Plca, PlcaInit};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
    /// let mut rng = ChaCha8Rng::seed_from_u64(0);
    /// let plca = Plca::builder(2).freeze_weights().build()?;
    /// let init = PlcaInit { weights: Some(DVector::from_vec(vec![0.25, 0.75])), ..PlcaInit::default() };
    /// let mut state = plca.init(&v, &init, &mut rng)?;
    /// plca.on(&v)?.step(&mut state, false)?;
    /// assert_eq!(state.weights.as_slice(), [0.25, 0.75]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn freeze_weights(mut self) -> Self {
        self.0.freeze_weights = true;
        self
    }

    /// Keeps the factor of mode `j` as it was given.
    ///
    /// ```
    /// use nalgebra::{dmatrix};
    /// use plca_em::{Algorithm, Plca, PlcaInit};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
    /// let mut rng = ChaCha8Rng::seed_from_u64(0);
    /// let known = dmatrix![0.75, 0.25; 0.25, 0.75];
    /// let plca = Plca::builder(2).freeze_factor(0).build()?;
    /// let init = PlcaInit { factors: vec![Some(known.clone())], ..PlcaInit::default() };
    /// let mut state = plca.init(&v, &init, &mut rng)?;
    /// plca.on(&v)?.step(&mut state, false)?;
    /// assert_eq!(state.factors[0], known);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn freeze_factor(mut self, j: usize) -> Self {
        self.0.frozen.push(j);
        self
    }

    /// A prior on `P(z)` (a single column).
    ///
    /// ```
    /// use std::sync::Arc;
    /// use plca_em::Plca;
    /// use plca_priors::Dirichlet;
    /// let plca = Plca::<f64>::builder(3).weights_prior(Arc::new(Dirichlet::symmetric(0.5)?)).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn weights_prior(mut self, prior: Prior<T>) -> Self {
        self.0.weights_prior = Some(prior);
        self
    }

    /// A prior on every column of the factor of mode `j`.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use plca_em::Plca;
    /// use plca_priors::Dirichlet;
    /// let plca = Plca::<f64>::builder(3).factor_prior(1, Arc::new(Dirichlet::symmetric(1.1)?)).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn factor_prior(mut self, j: usize, prior: Prior<T>) -> Self {
        self.0.factor_priors.push((j, prior));
        self
    }

    /// Tempered EM: factors raised to `power` in the E-step (default 1, plain EM).
    ///
    /// ```
    /// use plca_em::{ParamError, Plca};
    /// assert!(Plca::<f64>::builder(3).temper(0.9).build().is_ok());
    /// assert_eq!(Plca::<f64>::builder(3).temper(1.1).build().unwrap_err(), ParamError::Temper(1.1));
    /// ```
    pub fn temper(mut self, power: f64) -> Self {
        self.0.temper = power;
        self
    }

    /// Raises `P(z)` to the tempering power too (default: no, as in the original tempered EM).
    ///
    /// ```
    /// let plca = plca_em::Plca::<f64>::builder(3).temper(0.9).temper_prior(true).build()?;
    /// # Ok::<(), plca_em::ParamError>(())
    /// ```
    pub fn temper_prior(mut self, yes: bool) -> Self {
        self.0.temper_prior = yes;
        self
    }

    /// Treatment of hidden cells (default: imputation).
    ///
    /// ```
    /// use plca_em::{Missing, Plca};
    /// let plca = Plca::<f64>::builder(3).missing(Missing::Multiplicative).build()?;
    /// # Ok::<(), plca_em::ParamError>(())
    /// ```
    pub fn missing(mut self, missing: Missing) -> Self {
        self.0.missing = missing;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`ParamError`]: no components, a tempering power outside `(0, 1]`, multiplicative updates together with
    /// priors, tempering or a frozen block of weights.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{ParamError, Plca};
    /// assert_eq!(Plca::<f64>::builder(0).build().unwrap_err(), ParamError::NoComponents);
    /// ```
    pub fn build(self) -> Result<Plca<T>, ParamError> {
        let plca = self.0;
        if plca.components == 0 {
            return Err(ParamError::NoComponents);
        }
        if !(plca.temper > 0.0 && plca.temper <= 1.0) {
            return Err(ParamError::Temper(plca.temper));
        }
        let priors = plca.weights_prior.is_some() || !plca.factor_priors.is_empty();
        if plca.missing == Missing::Multiplicative
            && (priors || plca.temper != 1.0 || plca.freeze_weights)
        {
            return Err(ParamError::Conflict(
                "multiplicative treatment of missing cells goes with neither priors, tempering nor frozen weights",
            ));
        }
        Ok(plca)
    }
}

/// The parameters, and all that changes from iteration to iteration.
///
/// ```
/// use plca_em::{Plca, PlcaInit};
/// use plca_tensor::{DenseTensor, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
/// let mut rng = ChaCha8Rng::seed_from_u64(0);
/// let state = Plca::builder(3).build()?.init(&v, &PlcaInit::default(), &mut rng)?;
/// assert_eq!((state.weights.len(), state.factors[1].shape()), (3, (2, 3)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(bound(
        serialize = "T: serde::Serialize",
        deserialize = "T: serde::Deserialize<'de>"
    ))
)]
pub struct PlcaState<T: Real> {
    /// `P(z)`: `K` numbers that sum to 1.
    pub weights: DVector<T>,
    /// `P(x_j | z)`: for every mode an `I_j x K` matrix whose columns sum to 1.
    pub factors: Vec<DMatrix<T>>,
    /// Tempering power of the next step.
    pub power: f64,
    /// EM steps done, which schedules of priors go by.
    pub iteration: usize,
}

/// Blocks that a start gives; the others are drawn.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_em::{Plca, PlcaInit};
/// use plca_tensor::{DenseTensor, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
/// let mut rng = ChaCha8Rng::seed_from_u64(0);
/// // Mode 0 is given, mode 1 is drawn.
/// let init = PlcaInit { factors: vec![Some(dmatrix![3.0, 1.0; 1.0, 1.0])], ..PlcaInit::default() };
/// let state = Plca::builder(2).build()?.init(&v, &init, &mut rng)?;
/// assert_eq!(state.factors[0], dmatrix![0.75, 0.5; 0.25, 0.5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct PlcaInit<T: Real> {
    /// `P(z)`, any non-negative numbers (they are normalised); default: uniform.
    pub weights: Option<DVector<T>>,
    /// `P(x_j | z)` by mode, columns normalised; default: uniform draws from the simplex. May be shorter than the order.
    pub factors: Vec<Option<DMatrix<T>>>,
}

impl<T: Real> Default for PlcaInit<T> {
    fn default() -> Self {
        Self {
            weights: None,
            factors: Vec::new(),
        }
    }
}

impl<T: Real> PlcaState<T> {
    fn model<'a>(&'a self, factors: &'a [Factor<'a, T>]) -> Model<'a, T> {
        Model {
            weights: Some(self.weights.as_slice()),
            factors,
        }
    }

    /// Calls `f` with the state as a model for the kernels.
    ///
    /// ```
    /// use plca_em::{Plca, PlcaInit};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
    /// let mut rng = ChaCha8Rng::seed_from_u64(0);
    /// let state = Plca::builder(3).build()?.init(&v, &PlcaInit::default(), &mut rng)?;
    /// let mass: f64 = state.with_model(|model| model.mass());
    /// assert!((mass - 1.0).abs() < 1e-12);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_model<O>(&self, f: impl FnOnce(&Model<'_, T>) -> O) -> O {
        let factors: Vec<_> = self.factors.iter().map(Factor::Columns).collect();
        f(&self.model(&factors))
    }
}

impl<T: Real> Plca<T> {
    /// Starts a configuration with `components` components (`K`).
    ///
    /// ```
    /// let plca = plca_em::Plca::<f64>::builder(3).temper(0.9).build()?;
    /// assert!(plca_em::Plca::<f64>::builder(0).build().is_err());
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

    /// Number of components `K`.
    ///
    /// ```
    /// assert_eq!(plca_em::Plca::<f64>::builder(3).build()?.components(), 3);
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
    /// use plca_em::{Algorithm, Plca, PlcaInit};
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
    pub fn on<'a, X: Observed<T> + ?Sized>(
        &'a self,
        data: &'a X,
    ) -> Result<PlcaEm<'a, T, X>, EmError> {
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
            return Err(EmError::Order {
                expected: j + 1,
                got: shape.len(),
            });
        }
        for (j, prior) in &self.factor_priors {
            prior
                .check(shape[*j], self.components)
                .map_err(|source| EmError::Prior {
                    block: format!("factor_{j}"),
                    source,
                })?;
        }
        if let Some(prior) = &self.weights_prior {
            prior
                .check(self.components, 1)
                .map_err(|source| EmError::Prior {
                    block: "weights".into(),
                    source,
                })?;
        }
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
    /// use plca_em::{Plca, PlcaInit};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
    /// let mut rng = ChaCha8Rng::seed_from_u64(0);
    /// let plca = Plca::builder(2).build()?;
    /// let [a, b] = [0, 0].map(|seed| plca.init(&v, &PlcaInit::default(), &mut ChaCha8Rng::seed_from_u64(seed)));
    /// assert_eq!(a?, b?);                                             // a seed is a start
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn init<X, R>(
        &self,
        data: &X,
        init: &PlcaInit<T>,
        rng: &mut R,
    ) -> Result<PlcaState<T>, EmError>
    where
        X: Observed<T> + ?Sized,
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
            Some(w) => stochastic_block(
                "weights",
                DMatrix::from_column_slice(w.len(), 1, w.as_slice()),
                (k, 1),
            )?,
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
    /// use plca_em::{Plca, PlcaInit, Stop};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    ///
    /// let v = DenseTensor::new(vec![2, 3], vec![4.0, 0.0, 1.0, 0.0, 6.0, 1.0], Order::RowMajor)?;
    /// let plca = Plca::builder(2).build()?;
    /// let fit = plca.fit(&v, &PlcaInit::default(), &Stop::default(), &mut ChaCha8Rng::seed_from_u64(0))?;
    /// assert!((fit.state.weights.sum() - 1.0f64).abs() < 1e-12);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fit<X, R>(
        &self,
        data: &X,
        init: &PlcaInit<T>,
        stop: &Stop,
        rng: &mut R,
    ) -> Result<Outcome<PlcaState<T>>, EmError>
    where
        X: Observed<T> + ?Sized,
        R: Rng + ?Sized,
    {
        stop.check()?;
        let algorithm = self.on(data)?;
        let state = self.init(data, init, rng)?;
        plca_fit::run(&algorithm, state, stop, ())
    }
}

/// [`Plca`] bound to data: one EM iteration, its objective and its KKT residual.
///
/// ```
/// use plca_em::{Algorithm, Plca, PlcaInit};
/// use plca_tensor::{DenseTensor, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
/// let mut rng = ChaCha8Rng::seed_from_u64(0);
/// let plca = Plca::builder(2).build()?;
/// let mut state = plca.init(&v, &PlcaInit::default(), &mut rng)?;
/// let em = plca.on(&v)?;
/// for _ in 0..200 { em.step(&mut state, false)?; }
/// assert!(em.residual(&state)?.expect("PLCA has conditions") < 1e-6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct PlcaEm<'a, T: Real, X: ?Sized> {
    config: &'a Plca<T>,
    pub(crate) data: &'a X,
}

impl<T: Real, X: Observed<T> + ?Sized> PlcaEm<'_, T, X> {
    fn weights_prior(&self, iteration: usize) -> Option<Prior<T>> {
        in_force(self.config.weights_prior.as_ref(), iteration)
    }

    fn factor_prior(&self, j: usize, iteration: usize) -> Option<Prior<T>> {
        let mut priors = self.config.factor_priors.iter().rev();
        let (_, prior) = priors.find(|(mode, _)| *mode == j)?;
        in_force(Some(prior), iteration)
    }

    /// `Σ ln p(block)` over the blocks that have a prior, under those in force at the next iteration.
    fn ln_prior(&self, state: &PlcaState<T>) -> f64 {
        let iteration = state.iteration + 1;
        let weights = self
            .weights_prior(iteration)
            .map_or(0.0, |p| p.ln_density(&column(&state.weights)));
        (state.factors.iter().enumerate())
            .filter_map(|(j, f)| Some(self.factor_prior(j, iteration)?.ln_density(f)))
            .fold(weights, |a, b| a + b)
    }

    /// Log-likelihood of the observed data, without priors and untempered. One pass without counts.
    ///
    /// ```
    /// use plca_em::{Algorithm, Plca, PlcaInit};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
    /// let mut rng = ChaCha8Rng::seed_from_u64(0);
    /// let plca = Plca::builder(2).build()?;
    /// let mut state = plca.init(&v, &PlcaInit::default(), &mut rng)?;
    /// let em = plca.on(&v)?;
    /// assert_eq!(em.ln_lik(&state), em.objective(&state)?);           // there is no prior
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn ln_lik(&self, state: &PlcaState<T>) -> f64 {
        let none = vec![false; state.factors.len()];
        state.with_model(|model| completed(self.data, model, &none, true).ln_lik)
    }

    /// The modes whose counts a step needs: those of free factors, or any for the weights.
    fn wanted(&self, state: &PlcaState<T>) -> Vec<bool> {
        let mut modes: Vec<bool> = (0..state.factors.len())
            .map(|j| !self.config.frozen.contains(&j))
            .collect();
        if !modes.contains(&true) && !self.config.freeze_weights {
            modes[0] = true;
        }
        modes
    }

    /// The E-step: expected counts of every wanted mode, and the objective's data term if `measure`.
    fn e_step(
        &self,
        state: &PlcaState<T>,
        modes: &[bool],
        measure: bool,
    ) -> (Vec<Option<DMatrix<T>>>, Option<f64>) {
        if state.power == 1.0 {
            let e = state.with_model(|model| completed(self.data, model, modes, measure));
            return (e.counts, measure.then_some(e.ln_lik));
        }
        // [SPEC 1.4] the ordinary step on (P(z)^s, F^b); neither is normalised and that does not matter
        let b = T::lit(state.power);
        let tempered = PlcaState {
            weights: if self.config.temper_prior {
                state.weights.map(|w| w.powf(b))
            } else {
                state.weights.clone()
            },
            factors: state.factors.iter().map(|f| f.map(|x| x.powf(b))).collect(),
            power: 1.0,
            iteration: state.iteration,
        };
        let e = tempered.with_model(|model| completed(self.data, model, modes, false));
        (e.counts, measure.then(|| self.ln_lik(state)))
    }

    /// Masked multiplicative updates on `W = F_1`, `H = diag(P(z)) F_2^T`, mapped back.
    fn multiplicative_step(&self, state: &mut PlcaState<T>, measure: bool) -> Option<f64> {
        let mut first = None;
        for mode in 0..2 {
            let modes = [mode == 0, mode == 1];
            let (counts, seen, value) = state.with_model(|model| {
                let e = self.data.expect(
                    model,
                    plca_tensor::Wanted {
                        modes: &modes,
                        ln_lik: measure && mode == 0,
                    },
                );
                let seen = self.data.exposure(model, &modes);
                (e.counts, seen, e.ln_lik)
            });
            let (Some(counts), Some(seen)) = (&counts[mode], &seen[mode]) else {
                continue;
            };
            if measure && mode == 0 {
                let mass: f64 = seen.iter().map(|x| x.to_f64()).sum();
                first = Some(value - self.data.total() * mass.ln());
            }
            if self.config.frozen.contains(&mode) {
                continue;
            }
            // [SPEC 4] F <- F ∘ C / (s X), s = v_obs / Σ_obs P: the model keeps its scale, and so do rows that were not seen
            let mass: f64 = seen.iter().map(|x| x.to_f64()).sum();
            let s = T::lit(self.data.total() / mass);
            for ((f, &c), &x) in state.factors[mode].iter_mut().zip(counts).zip(seen) {
                if x > T::zero() {
                    *f *= c / s / x;
                }
            }
            let sums = normalise_columns(&mut state.factors[mode]);
            state
                .weights
                .iter_mut()
                .zip(sums)
                .for_each(|(w, s)| *w *= s);
            let total = state.weights.sum();
            state.weights /= total;
        }
        first
    }
}

/// Refuses to guard tempered steps by the likelihood, which they may lower.
pub(crate) fn untempered(power: f64) -> Result<(), EmError> {
    // [SPEC 1.4] at fixed b < 1 the monotone quantity is L_b, not L
    if power == 1.0 {
        Ok(())
    } else {
        Err(ParamError::Conflict("acceleration does not go with tempering").into())
    }
}

fn column<T: Real>(v: &DVector<T>) -> DMatrix<T> {
    DMatrix::from_column_slice(v.len(), 1, v.as_slice())
}

/// The M-step of one column-stochastic block; a column without counts keeps its values.
pub(crate) fn m_step<T: Real>(
    block: &str,
    prior: Option<&Prior<T>>,
    mut counts: DMatrix<T>,
    theta: &mut DMatrix<T>,
) -> Result<(), EmError> {
    let Some(prior) = prior else {
        // [SI eq. 4] [SPEC 1.1] F_j <- C_j / n
        let sums = normalise_columns(&mut counts);
        for (z, _) in sums.iter().enumerate().filter(|&(_, &s)| s <= T::zero()) {
            counts.set_column(z, &theta.column(z));
        }
        *theta = counts;
        return Ok(());
    };
    prior
        .update(&counts, theta)
        .map(drop)
        .map_err(|source| EmError::Prior {
            block: block.into(),
            source,
        })
}

impl<T: Real, X: Observed<T> + ?Sized> Algorithm for PlcaEm<'_, T, X> {
    type State = PlcaState<T>;
    type Error = EmError;

    fn step(&self, state: &mut PlcaState<T>, measure: bool) -> Result<Option<f64>, EmError> {
        if self.config.missing == Missing::Multiplicative && !self.data.is_complete() {
            let value = self.multiplicative_step(state, measure);
            state.iteration += 1;
            return Ok(value);
        }
        let iteration = state.iteration + 1;
        let modes = self.wanted(state);
        let ln_prior = if measure { self.ln_prior(state) } else { 0.0 };
        let (counts, value) = self.e_step(state, &modes, measure);
        let (mut emptied_weights, mut emptied) = (false, Vec::new());
        if !self.config.freeze_weights
            && let Some(first) = counts.iter().flatten().next()
        {
            // [SI eq. 4] [SPEC 1.1] P(z) <- n / Σ n
            let n = DMatrix::from_vec(first.ncols(), 1, Factor::Columns(first).component_sums());
            let mut weights = column(&state.weights);
            let prior = self.weights_prior(iteration);
            emptied_weights = emptying_step("weights", prior.as_ref(), n, &mut weights)?;
            state.weights.copy_from_slice(weights.as_slice());
        }
        for (j, counts) in counts.into_iter().enumerate() {
            if let Some(counts) = counts
                && !self.config.frozen.contains(&j)
            {
                let (block, prior) = (format!("factor_{j}"), self.factor_prior(j, iteration));
                if emptying_step(&block, prior.as_ref(), counts, &mut state.factors[j])? {
                    emptied.push(j);
                }
            }
        }
        if (emptied_weights || !emptied.is_empty())
            && state
                .with_model(|model| check_support(self.data, model))
                .is_err()
        {
            if emptied_weights {
                restore(state.weights.as_mut_slice(), self.config.components);
            }
            for j in emptied {
                let rows = state.factors[j].nrows();
                restore(state.factors[j].as_mut_slice(), rows);
            }
        }
        state.iteration = iteration;
        Ok(value.map(|v| v + ln_prior))
    }

    fn objective(&self, state: &PlcaState<T>) -> Result<f64, EmError> {
        Ok(self.ln_lik(state) + self.ln_prior(state))
    }

    /// The largest of these over the free blocks and live components; 0 exactly at a stationary point of the likelihood:
    ///
    /// ```text
    /// |n / v - P(z)|,   |F_j (g_j - 1)| = |C_j / (v P(z)) - F_j|,   |C_j / n - F_j| where the weights are frozen
    /// ```
    fn residual(&self, state: &PlcaState<T>) -> Result<Option<f64>, EmError> {
        if !self.config.factor_priors.is_empty() || self.config.weights_prior.is_some() {
            return Ok(None);
        }
        let free_weights = !self.config.freeze_weights;
        let (counts, _) = self.e_step(state, &self.wanted(state), false);
        let mut worst: f64 = 0.0;
        for (j, (counts, factor)) in counts.iter().zip(&state.factors).enumerate() {
            let Some(counts) = counts else { continue };
            // With hidden cells the completed data have more mass than was observed.
            let total: f64 = counts.iter().map(|c| c.to_f64()).sum();
            for (z, weight) in state.weights.iter().map(|w| w.to_f64()).enumerate() {
                let column = counts.column(z);
                let n: f64 = column.iter().map(|c| c.to_f64()).sum();
                if free_weights {
                    worst = worst.max((n / total - weight).abs());
                }
                let n = if free_weights { weight * total } else { n };
                if self.config.frozen.contains(&j) || n <= 0.0 {
                    continue;
                }
                for (c, f) in column.iter().zip(&factor.column(z)) {
                    // [SPEC 1.1] F_j g_j = C_j / (v P(z))
                    worst = worst.max((c.to_f64() / n - f.to_f64()).abs());
                }
            }
        }
        Ok(Some(worst))
    }
}

impl<T: Real, X: Observed<T> + ?Sized> Accelerate for PlcaEm<'_, T, X> {
    /// Refuses powers other than 1.
    fn accelerable(&self, state: &PlcaState<T>) -> Result<(), EmError> {
        untempered(state.power)
    }

    /// `(P(z), F_1, F_2, …)`, the parameters in which extrapolation is measured.
    fn pack(&self, state: &PlcaState<T>) -> Vec<f64> {
        let weights = state.weights.iter().map(|w| w.to_f64());
        weights
            .chain(
                state
                    .factors
                    .iter()
                    .flat_map(|f| f.iter().map(|x| x.to_f64())),
            )
            .collect()
    }

    fn unpack(&self, template: &PlcaState<T>, flat: &[f64], fallback: &[f64]) -> PlcaState<T> {
        let mut state = template.clone();
        let k = state.weights.len();
        // [SPEC 10] an entry that left the orthant becomes a tenth of its last EM value
        let value = |at: usize| {
            T::lit(if flat[at] > 0.0 {
                flat[at]
            } else {
                0.1 * fallback[at]
            })
        };
        if !self.config.freeze_weights {
            state
                .weights
                .iter_mut()
                .enumerate()
                .for_each(|(z, w)| *w = value(z));
            let total = state.weights.sum();
            state.weights /= total;
        }
        let mut first = k;
        for (j, factor) in state.factors.iter_mut().enumerate() {
            if !self.config.frozen.contains(&j) {
                factor
                    .iter_mut()
                    .enumerate()
                    .for_each(|(i, x)| *x = value(first + i));
                normalise_columns(factor);
            }
            first += factor.len();
        }
        state
    }
}
