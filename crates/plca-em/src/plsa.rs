//! Asymmetric PLSA, `P(x | y) = Σ_z P(x | z) P(z | y)`, in both directions.

use nalgebra::DMatrix;
use plca_fit::{Accelerate, Algorithm, Outcome, Stop};
use plca_tensor::{Expected, Factor, Model, Observed, Real, Wanted, normalise_columns};
use rand::Rng;

use crate::expectation::add_hidden;
use crate::init::{check_support, random_columns, stochastic_block};
use crate::plca::{Prior, untempered};
use crate::support::{emptying_step, in_force, restore};
use crate::{EmError, ParamError};

/// Which mode of the matrix is given.
///
/// ```
/// use plca_em::Given;
/// assert_eq!((Given::Columns.explained(), Given::Columns.mode()), (0, 1));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Given {
    /// `P(x_1 | x_0)`: mixtures belong to rows.
    Rows,
    /// `P(x_0 | x_1)`: mixtures belong to columns (the usual form: columns are documents or time frames).
    #[default]
    Columns,
}

impl Given {
    /// The mode that is given, 0 or 1; the other one is explained.
    ///
    /// ```
    /// assert_eq!(plca_em::Given::Rows.mode(), 0);
    /// ```
    pub fn mode(self) -> usize {
        match self {
            Self::Rows => 0,
            Self::Columns => 1,
        }
    }

    /// The mode that is explained.
    ///
    /// ```
    /// assert_eq!(plca_em::Given::Rows.explained(), 1);
    /// ```
    pub fn explained(self) -> usize {
        1 - self.mode()
    }
}

/// A checked configuration; see [`Plsa::builder`].
#[derive(Clone, Debug)]
pub struct Plsa<T: Real> {
    components: usize,
    given: Given,
    freeze_basis: bool,
    freeze_mixture: bool,
    basis_prior: Option<Prior<T>>,
    mixture_prior: Option<Prior<T>>,
    temper: f64,
}

/// Settings of [`Plsa`], not yet checked.
///
/// ```
/// use plca_em::{Given, Plsa};
/// let plsa = Plsa::<f64>::builder(5).given(Given::Rows).temper(0.8).build()?;
/// assert_eq!(plsa.given(), Given::Rows);
/// # Ok::<(), plca_em::ParamError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "call `.build()`"]
pub struct PlsaBuilder<T: Real>(Plsa<T>);

impl<T: Real> PlsaBuilder<T> {
    /// Which mode is given (default: the columns).
    ///
    /// ```
    /// use plca_em::{Given, Plsa};
    /// let words_per_row = Plsa::<f64>::builder(5).given(Given::Rows).build()?;
    /// # Ok::<(), plca_em::ParamError>(())
    /// ```
    pub fn given(mut self, given: Given) -> Self {
        self.0.given = given;
        self
    }

    /// Keeps `P(x | z)` as it was given.
    ///
    /// ```
    /// // New documents under known topics: only the mixtures are learned.
    /// let plsa = plca_em::Plsa::<f64>::builder(5).freeze_basis().build()?;
    /// # Ok::<(), plca_em::ParamError>(())
    /// ```
    pub fn freeze_basis(mut self) -> Self {
        self.0.freeze_basis = true;
        self
    }

    /// Keeps `P(z | y)` as it was given.
    ///
    /// ```
    /// let plsa = plca_em::Plsa::<f64>::builder(5).freeze_mixture().build()?;
    /// # Ok::<(), plca_em::ParamError>(())
    /// ```
    pub fn freeze_mixture(mut self) -> Self {
        self.0.freeze_mixture = true;
        self
    }

    /// A prior on every column of `P(x | z)`.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use plca_em::Plsa;
    /// use plca_priors::Dirichlet;
    /// let plsa = Plsa::<f64>::builder(5).basis_prior(Arc::new(Dirichlet::symmetric(1.01)?)).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn basis_prior(mut self, prior: Prior<T>) -> Self {
        self.0.basis_prior = Some(prior);
        self
    }

    /// A prior on every column of `P(z | y)`.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use plca_em::Plsa;
    /// use plca_priors::Dirichlet;
    /// let plsa = Plsa::<f64>::builder(5).mixture_prior(Arc::new(Dirichlet::symmetric(0.5)?)).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn mixture_prior(mut self, prior: Prior<T>) -> Self {
        self.0.mixture_prior = Some(prior);
        self
    }

    /// Tempered EM: both factors raised to `power` in the E-step (default 1, plain EM).
    ///
    /// ```
    /// use plca_em::{ParamError, Plsa};
    /// assert_eq!(Plsa::<f64>::builder(5).temper(0.0).build().unwrap_err(), ParamError::Temper(0.0));
    /// ```
    pub fn temper(mut self, power: f64) -> Self {
        self.0.temper = power;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`ParamError`]: no components, a tempering power outside `(0, 1]`.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{ParamError, Plsa};
    /// assert_eq!(Plsa::<f64>::builder(0).build().unwrap_err(), ParamError::NoComponents);
    /// ```
    pub fn build(self) -> Result<Plsa<T>, ParamError> {
        if self.0.components == 0 {
            return Err(ParamError::NoComponents);
        }
        if !(self.0.temper > 0.0 && self.0.temper <= 1.0) {
            return Err(ParamError::Temper(self.0.temper));
        }
        Ok(self.0)
    }
}

/// The parameters, and all that changes from iteration to iteration.
///
/// ```
/// use plca_em::{Plsa, PlsaInit};
/// use plca_tensor::{DenseTensor, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
/// let mut rng = ChaCha8Rng::seed_from_u64(0);
/// let state = Plsa::builder(3).build()?.init(&v, &PlsaInit::default(), &mut rng)?;
/// assert_eq!((state.basis.shape(), state.mixture.shape()), ((2, 3), (3, 2)));
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
pub struct PlsaState<T: Real> {
    /// `P(x | z)`: explained mode x `K`, columns sum to 1.
    pub basis: DMatrix<T>,
    /// `P(z | y)`: `K` x given mode, columns sum to 1.
    pub mixture: DMatrix<T>,
    /// Tempering power of the next step.
    pub power: f64,
    /// EM steps done, which schedules of priors go by.
    pub iteration: usize,
}

/// Blocks that a start gives; the others are drawn.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_em::{Plsa, PlsaInit};
/// use plca_tensor::{DenseTensor, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
/// let mut rng = ChaCha8Rng::seed_from_u64(0);
/// let init = PlsaInit { basis: Some(dmatrix![3.0, 1.0; 1.0, 1.0]), mixture: None };
/// let state = Plsa::builder(2).build()?.init(&v, &init, &mut rng)?;
/// assert_eq!(state.basis, dmatrix![0.75, 0.5; 0.25, 0.5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct PlsaInit<T: Real> {
    /// `P(x | z)`, columns normalised; default: uniform draws from the simplex.
    pub basis: Option<DMatrix<T>>,
    /// `P(z | y)`, columns normalised; default: uniform draws from the simplex.
    pub mixture: Option<DMatrix<T>>,
}

impl<T: Real> Default for PlsaInit<T> {
    fn default() -> Self {
        Self {
            basis: None,
            mixture: None,
        }
    }
}

/// Calls `f` with the model in the order of the data's modes.
fn with_model<T: Real, O>(
    given: Given,
    basis: &DMatrix<T>,
    mixture: &DMatrix<T>,
    f: impl FnOnce(&Model<'_, T>) -> O,
) -> O {
    let (basis, mixture) = (Factor::Columns(basis), Factor::Rows(mixture));
    let factors = match given {
        Given::Columns => [basis, mixture],
        Given::Rows => [mixture, basis],
    };
    f(&Model {
        weights: None,
        factors: &factors,
    })
}

impl<T: Real> Plsa<T> {
    /// Starts a configuration with `components` components (`K`).
    ///
    /// ```
    /// use plca_em::{Given, Plsa};
    /// let plsa = Plsa::<f64>::builder(5).given(Given::Rows).build()?;
    /// # Ok::<(), plca_em::ParamError>(())
    /// ```
    pub fn builder(components: usize) -> PlsaBuilder<T> {
        PlsaBuilder(Self {
            components,
            given: Given::default(),
            freeze_basis: false,
            freeze_mixture: false,
            basis_prior: None,
            mixture_prior: None,
            temper: 1.0,
        })
    }

    /// Which mode is given.
    ///
    /// ```
    /// use plca_em::{Given, Plsa};
    /// assert_eq!(Plsa::<f64>::builder(5).build()?.given(), Given::Columns);
    /// # Ok::<(), plca_em::ParamError>(())
    /// ```
    pub fn given(&self) -> Given {
        self.given
    }

    /// Binds the configuration to a matrix.
    ///
    /// # Errors
    ///
    /// [`EmError`]: data that are not a matrix, a prior that does not fit its block.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{Algorithm, Plsa, PlsaInit};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
    /// let mut rng = ChaCha8Rng::seed_from_u64(0);
    /// let plsa = Plsa::builder(2).build()?;
    /// let mut state = plsa.init(&v, &PlsaInit::default(), &mut rng)?;
    /// let em = plsa.on(&v)?;
    /// let before = em.objective(&state)?;
    /// em.step(&mut state, false)?;
    /// assert!(em.objective(&state)? >= before);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on<'a, X: Observed<T> + ?Sized>(
        &'a self,
        data: &'a X,
    ) -> Result<PlsaEm<'a, T, X>, EmError> {
        let shape = data.shape();
        if shape.len() != 2 {
            return Err(EmError::Order {
                expected: 2,
                got: shape.len(),
            });
        }
        let (explained, given) = (shape[self.given.explained()], shape[self.given.mode()]);
        for (block, prior, rows, columns) in [
            ("basis", &self.basis_prior, explained, self.components),
            ("mixture", &self.mixture_prior, self.components, given),
        ] {
            if let Some(prior) = prior {
                prior
                    .check(rows, columns)
                    .map_err(|source| EmError::Prior {
                        block: block.into(),
                        source,
                    })?;
            }
        }
        Ok(PlsaEm {
            config: self,
            data,
            marginal: data.marginal(self.given.mode()),
        })
    }

    /// A start; see [`Plca::init`](crate::Plca::init).
    ///
    /// # Errors
    ///
    /// [`EmError`] as there.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{Plsa, PlsaInit};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
    /// let mut rng = ChaCha8Rng::seed_from_u64(0);
    /// let state = Plsa::builder(2).build()?.init(&v, &PlsaInit::default(), &mut rng)?;
    /// assert!((state.mixture.column(0).sum() - 1.0f64).abs() < 1e-12);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn init<X, R>(
        &self,
        data: &X,
        init: &PlsaInit<T>,
        rng: &mut R,
    ) -> Result<PlsaState<T>, EmError>
    where
        X: Observed<T> + ?Sized,
        R: Rng + ?Sized,
    {
        let (shape, k) = (data.shape(), self.components);
        if shape.len() != 2 {
            return Err(EmError::Order {
                expected: 2,
                got: shape.len(),
            });
        }
        let (explained, given) = (shape[self.given.explained()], shape[self.given.mode()]);
        let mut block = |name: &str, value: &Option<DMatrix<T>>, frozen: bool, (rows, columns)| {
            let drawn = random_columns(rows, columns, rng);
            match value {
                Some(m) => stochastic_block(name, m.clone(), (rows, columns)),
                None if frozen => Err(EmError::FixedWithoutValue { block: name.into() }),
                None => Ok(drawn),
            }
        };
        let basis = block("basis", &init.basis, self.freeze_basis, (explained, k))?;
        let mixture = block("mixture", &init.mixture, self.freeze_mixture, (k, given))?;
        with_model(self.given, &basis, &mixture, |model| {
            check_support(data, model)
        })?;
        Ok(PlsaState {
            basis,
            mixture,
            power: self.temper,
            iteration: 0,
        })
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
    /// use plca_em::{Plsa, PlsaInit, Stop};
    /// use plca_tensor::{Coordinates, SparseTensor};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    ///
    /// let words = Coordinates { shape: vec![3, 2], indices: vec![0, 0, 1, 0, 2, 1], values: vec![2.0, 2.0, 5.0] };
    /// let fit = Plsa::builder(2).build()?.fit(
    ///     &SparseTensor::new(words)?, &PlsaInit::default(), &Stop::default(), &mut ChaCha8Rng::seed_from_u64(0))?;
    /// assert!((fit.objective - 4.0 * 0.5f64.ln()).abs() < 1e-6);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fit<X, R>(
        &self,
        data: &X,
        init: &PlsaInit<T>,
        stop: &Stop,
        rng: &mut R,
    ) -> Result<Outcome<PlsaState<T>>, EmError>
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

/// [`Plsa`] bound to data.
///
/// ```
/// use plca_em::{Algorithm, Plsa, PlsaInit};
/// use plca_tensor::{DenseTensor, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
/// let mut rng = ChaCha8Rng::seed_from_u64(0);
/// let plsa = Plsa::builder(2).build()?;
/// let mut state = plsa.init(&v, &PlsaInit::default(), &mut rng)?;
/// let em = plsa.on(&v)?;
/// let measured = em.step(&mut state, true)?;                      // of the state before the step
/// assert!(em.objective(&state)? >= measured.expect("asked for"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct PlsaEm<'a, T: Real, X: ?Sized> {
    config: &'a Plsa<T>,
    pub(crate) data: &'a X,
    /// `Σ V` over the observed cells of every given index.
    marginal: Vec<f64>,
}

impl<T: Real, X: Observed<T> + ?Sized> PlsaEm<'_, T, X> {
    /// `P(y)`: the share of every given index in the data.
    ///
    /// ```
    /// use plca_em::{Plsa};
    /// use plca_tensor::{DenseTensor, Order};
    /// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
    /// let plsa = Plsa::<f64>::builder(2).build()?;
    /// let em = plsa.on(&v)?;
    /// assert_eq!(em.marginal(), [0.5, 0.5]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn marginal(&self) -> Vec<f64> {
        let total: f64 = self.marginal.iter().sum();
        self.marginal.iter().map(|m| m / total).collect()
    }

    /// The priors in force at an iteration, counted from 1.
    fn priors(&self, iteration: usize) -> [Option<Prior<T>>; 2] {
        [&self.config.basis_prior, &self.config.mixture_prior]
            .map(|prior| in_force(prior.as_ref(), iteration))
    }

    /// `Σ ln p(block)` under the priors in force at the next iteration.
    fn ln_prior(&self, state: &PlsaState<T>) -> f64 {
        let [basis, mixture] = self.priors(state.iteration + 1);
        basis.map_or(0.0, |p| p.ln_density(&state.basis))
            + mixture.map_or(0.0, |p| p.ln_density(&state.mixture))
    }

    /// Conditional log-likelihood `Σ V ln P(x | y)`, given what was observed of every `y` where cells are hidden.
    ///
    /// ```
    /// use plca_em::{Algorithm, Plsa, PlsaInit};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
    /// let mut rng = ChaCha8Rng::seed_from_u64(0);
    /// let plsa = Plsa::builder(2).build()?;
    /// let state = plsa.init(&v, &PlsaInit::default(), &mut rng)?;
    /// let em = plsa.on(&v)?;
    /// assert_eq!(em.ln_lik(&state), em.objective(&state)?);           // there is no prior
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn ln_lik(&self, state: &PlsaState<T>) -> f64 {
        self.expect(&state.basis, &state.mixture, [false, false], true)
            .ln_lik
    }

    /// Counts in the data's mode order, hidden cells imputed with one scale for every given index.
    fn expect(
        &self,
        basis: &DMatrix<T>,
        mixture: &DMatrix<T>,
        modes: [bool; 2],
        measure: bool,
    ) -> Expected<T> {
        let given = self.config.given;
        let mut e = with_model(given, basis, mixture, |m| {
            self.data.expect(
                m,
                Wanted {
                    modes: &modes,
                    ln_lik: measure,
                },
            )
        });
        if self.data.is_complete() {
            return e;
        }
        let of_given = [given == Given::Rows, given == Given::Columns];
        let seen = with_model(given, basis, mixture, |m| self.data.exposure(m, &of_given));
        let Some(seen) = &seen[given.mode()] else {
            return e;
        };
        // [SPEC 4] one scale v_obs(y) / Σ_obs P(x | y) for every y
        let masses: Vec<f64> = seen
            .column_iter()
            .map(|c| c.iter().map(|x| x.to_f64()).sum())
            .collect();
        if measure {
            e.ln_lik -= (self.marginal.iter().zip(&masses))
                .filter(|&(&v, _)| v > 0.0)
                .map(|(v, mass)| v * mass.ln())
                .sum::<f64>();
        }
        let mut scaled = mixture.clone();
        let mut scaled_seen = seen.clone();
        for (y, (&v, &mass)) in self.marginal.iter().zip(&masses).enumerate() {
            let s = T::lit(if mass > 0.0 { v / mass } else { 0.0 });
            scaled.column_mut(y).iter_mut().for_each(|x| *x *= s);
            scaled_seen.column_mut(y).iter_mut().for_each(|x| *x *= s);
        }
        with_model(given, basis, &scaled, |model| {
            if let Some(counts) = &mut e.counts[given.mode()] {
                add_hidden(counts, &scaled_seen, model, given.mode(), T::one());
            }
            let explained = given.explained();
            if let Some(counts) = &mut e.counts[explained] {
                let seen = self.data.exposure(model, &[explained == 0, explained == 1]);
                if let Some(seen) = &seen[explained] {
                    add_hidden(counts, seen, model, explained, T::one());
                }
            }
        });
        e
    }
}

impl<T: Real, X: Observed<T> + ?Sized> Algorithm for PlsaEm<'_, T, X> {
    type State = PlsaState<T>;
    type Error = EmError;

    fn step(&self, state: &mut PlsaState<T>, measure: bool) -> Result<Option<f64>, EmError> {
        let given = self.config.given;
        let mut modes = [false; 2];
        modes[given.explained()] = !self.config.freeze_basis;
        modes[given.mode()] = !self.config.freeze_mixture;
        let mut value = None;
        let mut e = if state.power == 1.0 {
            let e = self.expect(&state.basis, &state.mixture, modes, measure);
            value = measure.then_some(e.ln_lik);
            e
        } else {
            if measure {
                value = Some(self.ln_lik(state));
            }
            // [SPEC 1.4]
            let b = T::lit(state.power);
            self.expect(
                &state.basis.map(|x| x.powf(b)),
                &state.mixture.map(|x| x.powf(b)),
                modes,
                false,
            )
        };
        let value = value.map(|v| v + self.ln_prior(state));
        let iteration = state.iteration + 1;
        let [basis_prior, mixture_prior] = self.priors(iteration);
        let mut emptied = [false; 2];
        if let Some(counts) = e.counts[given.explained()].take() {
            emptied[0] = emptying_step("basis", basis_prior.as_ref(), counts, &mut state.basis)?;
        }
        if let Some(counts) = e.counts[given.mode()].take() {
            let block = &mut state.mixture;
            emptied[1] = emptying_step("mixture", mixture_prior.as_ref(), counts, block)?;
        }
        let support = |model: &Model<'_, T>| check_support(self.data, model);
        if emptied != [false; 2]
            && with_model(given, &state.basis, &state.mixture, support).is_err()
        {
            for (block, _) in [&mut state.basis, &mut state.mixture]
                .into_iter()
                .zip(emptied)
                .filter(|(_, emptied)| *emptied)
            {
                let rows = block.nrows();
                restore(block.as_mut_slice(), rows);
            }
        }
        state.iteration = iteration;
        Ok(value)
    }

    fn objective(&self, state: &PlsaState<T>) -> Result<f64, EmError> {
        Ok(self.ln_lik(state) + self.ln_prior(state))
    }

    /// `max |θ_new - θ|` over one plain EM step; 0 exactly at a stationary point of the likelihood.
    fn residual(&self, state: &PlsaState<T>) -> Result<Option<f64>, EmError> {
        if self.config.basis_prior.is_some() || self.config.mixture_prior.is_some() {
            return Ok(None);
        }
        let mut next = state.clone();
        self.step(&mut next, false)?;
        let moved = |a: &DMatrix<T>, b: &DMatrix<T>| {
            a.iter()
                .zip(b)
                .fold(0.0, |m: f64, (a, b)| m.max((a.to_f64() - b.to_f64()).abs()))
        };
        Ok(Some(
            moved(&next.basis, &state.basis).max(moved(&next.mixture, &state.mixture)),
        ))
    }
}

impl<T: Real, X: Observed<T> + ?Sized> Accelerate for PlsaEm<'_, T, X> {
    /// Refuses powers other than 1.
    fn accelerable(&self, state: &PlsaState<T>) -> Result<(), EmError> {
        untempered(state.power)
    }

    fn pack(&self, state: &PlsaState<T>) -> Vec<f64> {
        state
            .basis
            .iter()
            .chain(&state.mixture)
            .map(|x| x.to_f64())
            .collect()
    }

    fn unpack(&self, template: &PlsaState<T>, flat: &[f64], fallback: &[f64]) -> PlsaState<T> {
        let mut state = template.clone();
        let mut first = 0;
        for (block, frozen) in [
            (&mut state.basis, self.config.freeze_basis),
            (&mut state.mixture, self.config.freeze_mixture),
        ] {
            if !frozen {
                for (i, x) in block.iter_mut().enumerate() {
                    let at = first + i;
                    *x = T::lit(if flat[at] > 0.0 {
                        flat[at]
                    } else {
                        0.1 * fallback[at]
                    });
                }
                normalise_columns(block);
            }
            first += block.len();
        }
        state
    }
}
