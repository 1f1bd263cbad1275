//! Non-negative factorization of any order on the simplex, under squared error.

use nalgebra::{DMatrix, DVector};
use plca_fit::{Outcome, Stop};
use plca_tensor::arrange::Products;
use plca_tensor::{Cp, Data, Factor, Real};
use rand::Rng;

mod descent;

pub use descent::PntfSweep;

use crate::init::{Start, start};
use crate::sweep::{gram, widen};
use crate::{ParamError, PntfError, Projection};

/// A checked configuration of `min ‖G - P‖²` with `P` as in [`PntfState`] and `G` the data divided by their sum `[PNTF 1]`; see
/// [`Pntf::builder`].
///
/// ```
/// use plca_tensor::{DenseTensor, Order};
/// use pntf_l2::{Algorithm, Pntf, PntfInit};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let g = DenseTensor::new(vec![2, 2], vec![4.0, 1.0, 2.0, 1.0], Order::RowMajor)?;
/// let pntf = Pntf::builder(2).build()?;
/// let mut state = pntf.init(&g, &PntfInit::default(), &mut ChaCha8Rng::seed_from_u64(0))?;
/// pntf.on(&g)?.step(&mut state, false)?;
/// assert!((state.weights.sum() - 1.0f64).abs() < 1e-14 && state.factors[0].min() >= 0.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Pntf {
    pub(crate) components: usize,
    pub(crate) start: Start,
    projection: Projection,
    revive: bool,
    normalise: bool,
    pub(crate) freeze_weights: bool,
    pub(crate) frozen: Vec<usize>,
}

/// Settings of [`Pntf`], not yet checked.
///
/// ```
/// use plca_tensor::{DenseTensor, Order};
/// use pntf_l2::{Pntf, PntfInit};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let g = DenseTensor::new(vec![2, 2], vec![4.0, 1.0, 2.0, 1.0], Order::RowMajor)?;
/// let pntf = Pntf::builder(2).freeze_weights().build()?;
/// let error = pntf.init(&g, &PntfInit::default(), &mut ChaCha8Rng::seed_from_u64(0)).unwrap_err();
/// assert_eq!(error.to_string(), "`weights` is to stay fixed but no initial value was given");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "call `.build()`"]
pub struct PntfBuilder(Pntf);

impl PntfBuilder {
    /// Where blocks that are not given come from (default: random).
    ///
    /// ```
    /// use plca_tensor::{DenseTensor, Order};
    /// use pntf_l2::{Pntf, PntfInit, Start};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let g = DenseTensor::new(vec![2, 2], vec![4.0, 0.0, 0.0, 1.0], Order::RowMajor)?;
    /// let pntf = Pntf::builder(2).start(Start::Deflation).build()?;
    /// let state = pntf.init(&g, &PntfInit::default(), &mut ChaCha8Rng::seed_from_u64(0))?;
    /// assert!(state.factors[0][(0, 0)] > 0.97);                           // the larger block comes first
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn start(mut self, start: Start) -> Self {
        self.0.start = start;
        self
    }

    /// How vectors are projected onto the simplex (default: by a rising bound and a sweep).
    ///
    /// ```
    /// use plca_tensor::{DenseTensor, Order};
    /// use pntf_l2::{Pntf, PntfInit, Projection, Stop};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let g = DenseTensor::new(vec![2, 2], vec![4.0, 1.0, 2.0, 1.0], Order::RowMajor)?;
    /// let weights = |method| -> Result<_, Box<dyn std::error::Error>> {
    ///     let pntf = Pntf::builder(2).projection(method).build()?;
    ///     Ok(pntf.fit(&g, &PntfInit::default(), &Stop::default(), &mut ChaCha8Rng::seed_from_u64(0))?.state.weights)
    /// };
    /// assert!((weights(Projection::Sort)? - weights(Projection::ActiveSet)?).amax() < 1e-9);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn projection(mut self, projection: Projection) -> Self {
        self.0.projection = projection;
        self
    }

    /// Puts components of weight 0 where the residual is largest and lets the weights decide (default: they stay as they are).
    ///
    /// ```
    /// use nalgebra::{dmatrix, dvector};
    /// use plca_tensor::{DenseTensor, Order};
    /// use pntf_l2::{Pntf, PntfInit, Stop};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let g = DenseTensor::new(vec![2, 2], vec![4.0, 0.0, 0.0, 1.0], Order::RowMajor)?;
    /// // The second component lies where the data are 0, and has no weight.
    /// let factors = vec![Some(dmatrix![1.0, 1.0; 0.0, 0.0]), Some(dmatrix![1.0, 0.0; 0.0, 1.0])];
    /// let init = PntfInit { weights: Some(dvector![1.0, 0.0]), factors };
    /// let objective = |revive| -> Result<f64, Box<dyn std::error::Error>> {
    ///     let pntf = Pntf::builder(2).revive(revive).build()?;
    ///     Ok(pntf.fit(&g, &init, &Stop::default(), &mut ChaCha8Rng::seed_from_u64(0))?.objective)
    /// };
    /// assert!(objective(true)? < 0.5 * objective(false)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn revive(mut self, yes: bool) -> Self {
        self.0.revive = yes;
        self
    }

    /// Divides the data by their sum (default: yes). Without, the model still sums to 1.
    ///
    /// ```
    /// use plca_tensor::{DenseTensor, Order};
    /// let g = DenseTensor::new(vec![2, 2], vec![4.0, 0.0, 0.0, 4.0], Order::RowMajor)?;
    /// assert_eq!(pntf_l2::Pntf::builder(1).normalise(false).build()?.on(&g)?.data_scale(), 1.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn normalise(mut self, yes: bool) -> Self {
        self.0.normalise = yes;
        self
    }

    /// Keeps the weights as they were given.
    ///
    /// ```
    /// use nalgebra::{dmatrix, dvector};
    /// use plca_tensor::{DenseTensor, Order};
    /// use pntf_l2::{Algorithm, Pntf, PntfState};
    /// let g = DenseTensor::new(vec![2, 2], vec![4.0, 0.0, 0.0, 1.0], Order::RowMajor)?;
    /// let apart = dmatrix![1.0, 0.0; 0.0, 1.0];
    /// let mut state = PntfState { weights: dvector![0.5, 0.5], factors: vec![apart.clone(), apart.clone()], mass: 1.0 };
    /// Pntf::builder(2).freeze_weights().build()?.on(&g)?.step(&mut state, false)?;
    /// assert_eq!(state.weights, dvector![0.5, 0.5]);
    /// assert_ne!(state.factors[0], apart);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn freeze_weights(mut self) -> Self {
        self.0.freeze_weights = true;
        self
    }

    /// Keeps the factor of mode `j` as it was given.
    ///
    /// ```
    /// use nalgebra::{dmatrix, dvector};
    /// use plca_tensor::{DenseTensor, Order};
    /// use pntf_l2::{Algorithm, Pntf, PntfState};
    /// let g = DenseTensor::new(vec![2, 2], vec![4.0, 0.0, 0.0, 1.0], Order::RowMajor)?;
    /// let apart = dmatrix![1.0, 0.0; 0.0, 1.0];
    /// let mut state = PntfState { weights: dvector![0.5, 0.5], factors: vec![apart.clone(), apart.clone()], mass: 1.0 };
    /// Pntf::builder(2).freeze_factor(0).freeze_factor(1).build()?.on(&g)?.step(&mut state, false)?;
    /// assert_eq!(state.factors, [apart.clone(), apart]);
    /// assert!((state.weights[0] - 0.8f64).abs() < 1e-12);                 // the weights are left, a convex problem
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn freeze_factor(mut self, j: usize) -> Self {
        self.0.frozen.push(j);
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`ParamError::NoComponents`] if `K` is 0.
    ///
    /// # Examples
    ///
    /// ```
    /// use pntf_l2::{ParamError, Pntf};
    /// assert_eq!(Pntf::builder(0).build().unwrap_err(), ParamError::NoComponents);
    /// ```
    pub fn build(self) -> Result<Pntf, ParamError> {
        if self.0.components == 0 {
            return Err(ParamError::NoComponents);
        }
        Ok(self.0)
    }
}

/// The parameters: `P[x] = Σ_z λ_z Π_j U_j[x_j, z]`.
///
/// ```
/// use nalgebra::{dmatrix, dvector};
/// let state = pntf_l2::PntfState {
///     weights: dvector![0.75, 0.25],
///     factors: vec![dmatrix![1.0, 0.5; 0.0, 0.5], dmatrix![0.5, 0.0; 0.5, 1.0]],
///     mass: 1.0,
/// };
/// assert_eq!(state.with_model(|p| p.cell(&[0, 1])), 0.5);             // 3/4 · 1 · 1/2 + 1/4 · 1/2 · 1
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
pub struct PntfState<T: Real> {
    /// `λ`: `>= 0`, sum 1.
    pub weights: DVector<T>,
    /// `U_j`, `I_j x K`: every column `>= 0` with sum 1.
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "plca_tensor::checked::matrices")
    )]
    pub factors: Vec<DMatrix<T>>,
    /// What the model must be multiplied by to fit the observed cells divided by their sum: 1 on complete data, at least
    /// about 1 where cells are hidden, because the model's mass covers them too.
    pub mass: f64,
}

impl<T: Real> PntfState<T> {
    /// Lends the parameters as a model (without the mass) and returns what `f` makes of it.
    ///
    /// ```
    /// use nalgebra::{dmatrix, dvector};
    /// let state = pntf_l2::PntfState { weights: dvector![1.0], factors: vec![dmatrix![0.25; 0.75]; 3], mass: 2.0 };
    /// assert_eq!(state.with_model(|p| p.cell(&[0, 0, 1])), 0.75 / 16.0);
    /// ```
    pub fn with_model<O>(&self, f: impl FnOnce(&Cp<'_, T>) -> O) -> O {
        let factors: Vec<_> = self.factors.iter().map(Factor::Columns).collect();
        f(&Cp {
            weights: Some(self.weights.as_slice()),
            factors: &factors,
        })
    }

    /// `λ_z s`: what multiplies component `z`.
    fn scaled_weights(&self) -> Vec<f64> {
        self.weights
            .iter()
            .map(|w| w.to_f64() * self.mass)
            .collect()
    }

    fn grams(&self) -> Vec<DMatrix<f64>> {
        self.factors.iter().map(|f| gram(&widen(f))).collect()
    }
}

/// Blocks that a start gives; the others come from [`PntfBuilder::start`].
///
/// ```
/// use nalgebra::{dmatrix, dvector};
/// use plca_tensor::{DenseTensor, Order};
/// use pntf_l2::{Pntf, PntfInit, PntfState};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let g = DenseTensor::new(vec![2, 2], vec![4.0, 1.0, 2.0, 1.0], Order::RowMajor)?;
/// let learned = PntfState { weights: dvector![1.0], factors: vec![dmatrix![0.25; 0.75]; 2], mass: 1.0 };
/// let init = PntfInit::from(learned.clone());
/// assert_eq!(Pntf::builder(1).build()?.init(&g, &init, &mut ChaCha8Rng::seed_from_u64(0))?, learned);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct PntfInit<T: Real> {
    /// `λ` (default: `1/K` each). Projected onto the simplex; zeros stay.
    pub weights: Option<DVector<T>>,
    /// `U_j`; a column that is no distribution is projected onto the simplex, one of zeros becomes uniform.
    pub factors: Vec<Option<DMatrix<T>>>,
}

impl<T: Real> Default for PntfInit<T> {
    fn default() -> Self {
        Self {
            weights: None,
            factors: Vec::new(),
        }
    }
}

impl<T: Real> From<PntfState<T>> for PntfInit<T> {
    fn from(state: PntfState<T>) -> Self {
        Self {
            weights: Some(state.weights),
            factors: state.factors.into_iter().map(Some).collect(),
        }
    }
}

impl Pntf {
    /// Starts a configuration with `components` components (`K`).
    ///
    /// ```
    /// use pntf_l2::Pntf;
    /// assert!(Pntf::builder(4).revive(true).build().is_ok() && Pntf::builder(0).build().is_err());
    /// ```
    pub fn builder(components: usize) -> PntfBuilder {
        PntfBuilder(Self {
            components,
            start: Start::default(),
            projection: Projection::default(),
            revive: false,
            normalise: true,
            freeze_weights: false,
            frozen: Vec::new(),
        })
    }

    /// Binds the configuration to data. Negative entries are accepted, see [`Summary::negative`](plca_tensor::Summary::negative).
    ///
    /// # Errors
    ///
    /// [`PntfError::Total`] if the data do not sum to a positive number; [`PntfError::Mode`] if a frozen mode does not exist.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_tensor::{DenseTensor, Order};
    /// use pntf_l2::{Pntf, PntfError};
    /// let g = DenseTensor::new(vec![2, 2], vec![1.0, -0.5, 0.0, 1.5], Order::RowMajor)?;
    /// assert_eq!(Pntf::builder(1).build()?.on(&g)?.data_scale(), 0.5);
    /// let error = Pntf::builder(1).freeze_factor(2).build()?.on(&g).unwrap_err();
    /// assert_eq!(error, PntfError::Mode { mode: 2, order: 2 });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on<'a, T: Real>(&'a self, data: &'a dyn Data<T>) -> Result<PntfSweep<'a, T>, PntfError> {
        let data = Products::new(data)?;
        if data.total() <= 0.0 {
            return Err(PntfError::Total(data.total() / data.scale()));
        }
        let order = data.shape().len();
        if let Some(&mode) = self.frozen.iter().find(|&&m| m >= order) {
            return Err(PntfError::Mode { mode, order });
        }
        let scale = if self.normalise {
            1.0 / data.total()
        } else {
            1.0 / data.scale()
        };
        Ok(PntfSweep {
            config: self,
            data,
            scale,
        })
    }

    /// A start: what `init` gives, checked; the rest drawn.
    ///
    /// # Errors
    ///
    /// [`PntfError`]: a given block of the wrong shape or with values that are not finite, negative weights, a frozen block that
    /// was not given; as [`on`](Self::on).
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dvector;
    /// use plca_tensor::{DenseTensor, Order};
    /// use pntf_l2::{Pntf, PntfInit};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let g = DenseTensor::new(vec![2, 2], vec![4.0, 1.0, 2.0, 1.0], Order::RowMajor)?;
    /// let init = PntfInit { weights: Some(dvector![0.5, 0.5, 0.0]), factors: vec![] };
    /// let error = Pntf::builder(2).build()?.init(&g, &init, &mut ChaCha8Rng::seed_from_u64(0)).unwrap_err();
    /// assert_eq!(error.to_string(), "initial `weights` is 3x1, expected 2x1");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn init<T: Real, R: Rng + ?Sized>(
        &self,
        data: &dyn Data<T>,
        init: &PntfInit<T>,
        rng: &mut R,
    ) -> Result<PntfState<T>, PntfError> {
        start(self, &self.on(data)?.data, init, rng)
    }

    /// Draws a start and sweeps until `stop` says so.
    ///
    /// One iteration is one sweep: the modes in order, inside each the components in order, then the weights. A relative tolerance of
    /// 1e-8 is sensible, as is checking at every sweep: the objective comes free.
    ///
    /// # Errors
    ///
    /// As [`init`](Self::init).
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_tensor::{DenseTensor, Order};
    /// use pntf_l2::{Pntf, PntfInit, Stop};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let g = DenseTensor::new(vec![2, 2], vec![4.0, 0.0, 0.0, 1.0], Order::RowMajor)?;
    /// let fit = Pntf::builder(2).build()?.fit(&g, &PntfInit::default(), &Stop::default(), &mut ChaCha8Rng::seed_from_u64(0))?;
    /// assert!(fit.objective < 1e-12);
    /// assert!((fit.state.weights.max() - 0.8f64).abs() < 1e-6);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fit<T: Real, R: Rng + ?Sized>(
        &self,
        data: &dyn Data<T>,
        init: &PntfInit<T>,
        stop: &Stop,
        rng: &mut R,
    ) -> Result<Outcome<PntfState<T>>, PntfError> {
        stop.check()?;
        let algorithm = self.on(data)?;
        let state = start(self, &algorithm.data, init, rng)?;
        plca_fit::run(&algorithm, state, stop, ())
    }
}
