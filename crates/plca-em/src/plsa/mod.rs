//! Asymmetric PLSA, `P(x | y) = Σ_z P(x | z) P(z | y)`, in both directions.

mod builder;
mod em;
mod expect;
mod state;

use nalgebra::DMatrix;
use plca_fit::{Outcome, Stop};
use plca_tensor::{Data, Real, check_counts};
use rand::Rng;

use crate::blocks::check_prior;
use crate::init::{check_support, random_columns, stochastic_block};
use crate::{EmError, Prior};

pub use builder::PlsaBuilder;
pub use em::PlsaEm;
pub use state::{PlsaInit, PlsaState};

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

    /// Sizes of the explained and of the given mode.
    fn sizes(self, shape: &[usize]) -> Result<[usize; 2], EmError> {
        match (shape, self) {
            (&[rows, columns], Self::Columns) => Ok([rows, columns]),
            (&[rows, columns], Self::Rows) => Ok([columns, rows]),
            _ => Err(EmError::Order {
                expected: 2,
                got: shape.len(),
            }),
        }
    }
}

/// A checked configuration; see [`Plsa::builder`].
///
/// ```
/// use plca_em::{before::Plsa, PlsaInit, Stop};
/// use plca_tensor::{DenseTensor, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let v = DenseTensor::<f64>::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
/// let mut rng = ChaCha8Rng::seed_from_u64(0);
/// let fit = Plsa::builder(1).build()?.fit(&v, &PlsaInit::default(), &Stop::default(), &mut rng)?;
/// assert!((fit.state.basis[(0, 0)] - 4.0 / 6.0).abs() < 1e-12);       // one component: the marginal of the rows
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Plsa<T: Real> {
    pub(crate) components: usize,
    pub(crate) given: Given,
    pub(crate) freeze_basis: bool,
    pub(crate) freeze_mixture: bool,
    pub(crate) basis_prior: Option<Prior<T>>,
    pub(crate) mixture_prior: Option<Prior<T>>,
    pub(crate) temper: f64,
}

impl<T: Real> Plsa<T> {
    /// Starts a configuration with `components` components (`K`).
    ///
    /// ```
    /// use plca_em::{before::Plsa, Given};
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

    fn has_priors(&self) -> bool {
        self.basis_prior.is_some() || self.mixture_prior.is_some()
    }

    /// Which mode is given.
    ///
    /// ```
    /// use plca_em::{before::Plsa, Given};
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
    /// use plca_em::{before::Plsa, Algorithm, PlsaInit};
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
    pub fn on<'a>(&'a self, data: &'a dyn Data<T>) -> Result<PlsaEm<'a, T>, EmError> {
        check_counts(data)?;
        let [explained, given] = self.given.sizes(data.shape())?;
        let k = self.components;
        check_prior("basis", self.basis_prior.as_ref(), (explained, k))?;
        check_prior("mixture", self.mixture_prior.as_ref(), (k, given))?;
        let marginal = data.marginal(self.given.mode())?;
        Ok(PlsaEm {
            config: self,
            data,
            marginal,
        })
    }

    /// A start; see [`Plca::init`](crate::before::Plca::init).
    ///
    /// # Errors
    ///
    /// [`EmError`] as there.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{before::Plsa, PlsaInit};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
    /// let mut rng = ChaCha8Rng::seed_from_u64(0);
    /// let state = Plsa::builder(2).build()?.init(&v, &PlsaInit::default(), &mut rng)?;
    /// assert!((state.mixture.column(0).sum() - 1.0f64).abs() < 1e-12);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn init<R>(
        &self,
        data: &dyn Data<T>,
        init: &PlsaInit<T>,
        rng: &mut R,
    ) -> Result<PlsaState<T>, EmError>
    where
        R: Rng + ?Sized,
    {
        let k = self.components;
        let [explained, given] = self.given.sizes(data.shape())?;
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
        let state = PlsaState {
            basis,
            mixture,
            power: self.temper,
            iteration: 0,
        };
        state.with_model(self.given, |model| check_support(data, model))?;
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
    /// use plca_em::{before::Plsa, PlsaInit, Stop};
    /// use plca_tensor::{Coordinates, SparseTensor};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    ///
    /// let words = Coordinates { shape: vec![3, 2], indices: vec![0, 0, 1, 0, 2, 1], values: vec![2.0, 2.0, 5.0] };
    /// let fit = Plsa::builder(2).build()?.fit(
    ///     &SparseTensor::new(words)?, &PlsaInit::default(), &Stop::default(), &mut ChaCha8Rng::seed_from_u64(0))?;
    /// assert!((fit.objective - 4.0 * 0.5f64.ln()).abs() < 1e-6);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fit<R>(
        &self,
        data: &dyn Data<T>,
        init: &PlsaInit<T>,
        stop: &Stop,
        rng: &mut R,
    ) -> Result<Outcome<PlsaState<T>>, EmError>
    where
        R: Rng + ?Sized,
    {
        stop.check()?;
        let algorithm = self.on(data)?;
        let state = self.init(data, init, rng)?;
        plca_fit::run(&algorithm, state, stop, ())
    }
}
