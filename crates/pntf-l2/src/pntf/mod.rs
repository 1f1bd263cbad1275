//! Non-negative factorization of any order on the simplex, under squared error.

use nalgebra::{DMatrix, DVector};
use plca_fit::{Outcome, Stop};
use plca_tensor::{Factor, Model, Real, RealTensor};
use rand::Rng;

mod descent;

pub use descent::PntfSweep;

use crate::init::{Start, start};
use crate::sweep::{gram, widen};
use crate::{ParamError, PntfError, Projection};

/// A checked configuration; see [`Pntf::builder`].
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
#[derive(Clone, Debug)]
#[must_use = "call `.build()`"]
pub struct PntfBuilder(Pntf);

impl PntfBuilder {
    /// Where blocks that are not given come from (default: random).
    pub fn start(mut self, start: Start) -> Self {
        self.0.start = start;
        self
    }

    /// How vectors are projected onto the simplex (default: by online threshold).
    pub fn projection(mut self, projection: Projection) -> Self {
        self.0.projection = projection;
        self
    }

    /// Puts components of weight 0 where the residual is largest and lets the weights decide (default: they stay as they are).
    pub fn revive(mut self, yes: bool) -> Self {
        self.0.revive = yes;
        self
    }

    /// Divides the data by their sum (default: yes). Without, the model still sums to 1.
    pub fn normalise(mut self, yes: bool) -> Self {
        self.0.normalise = yes;
        self
    }

    /// Keeps the weights as they were given.
    pub fn freeze_weights(mut self) -> Self {
        self.0.freeze_weights = true;
        self
    }

    /// Keeps the factor of mode `j` as it was given.
    pub fn freeze_factor(mut self, j: usize) -> Self {
        self.0.frozen.push(j);
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`ParamError::NoComponents`].
    pub fn build(self) -> Result<Pntf, ParamError> {
        if self.0.components == 0 {
            return Err(ParamError::NoComponents);
        }
        Ok(self.0)
    }
}

/// The parameters: `P[x] = Σ_z λ_z Π_j U_j[x_j, z]`.
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
    pub factors: Vec<DMatrix<T>>,
    /// What the model must be multiplied by to fit the observed cells divided by their sum: 1 on complete data, at least
    /// about 1 where cells are hidden, because the model's mass covers them too.
    pub mass: f64,
}

impl<T: Real> PntfState<T> {
    /// Lends the parameters as a model (without the mass).
    pub fn with_model<O>(&self, f: impl FnOnce(&Model<'_, T>) -> O) -> O {
        let factors: Vec<_> = self.factors.iter().map(Factor::Columns).collect();
        f(&Model {
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
    /// let pntf = Pntf::builder(4).revive(true).build()?;
    /// # Ok::<(), pntf_l2::ParamError>(())
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

    /// Binds the configuration to data. Negative entries are accepted, see [`RealTensor::has_negative`].
    ///
    /// # Errors
    ///
    /// [`PntfError::Total`] if the data do not sum to a positive number; [`PntfError::Mode`] if a frozen mode does not exist.
    pub fn on<'a, T: Real>(
        &'a self,
        data: &'a RealTensor<T>,
    ) -> Result<PntfSweep<'a, T>, PntfError> {
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
    pub fn init<T: Real, R: Rng + ?Sized>(
        &self,
        data: &RealTensor<T>,
        init: &PntfInit<T>,
        rng: &mut R,
    ) -> Result<PntfState<T>, PntfError> {
        self.on(data)?;
        start(self, data, init, rng)
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
    /// use plca_tensor::{Order, RealTensor};
    /// use pntf_l2::{Pntf, PntfInit, Stop};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let g = RealTensor::dense(vec![2, 2], vec![4.0, 0.0, 0.0, 1.0], Order::RowMajor)?;
    /// let fit = Pntf::builder(2).build()?.fit(&g, &PntfInit::default(), &Stop::default(), &mut ChaCha8Rng::seed_from_u64(0))?;
    /// assert!(fit.objective < 1e-12);
    /// assert!((fit.state.weights.max() - 0.8f64).abs() < 1e-6);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fit<T: Real, R: Rng + ?Sized>(
        &self,
        data: &RealTensor<T>,
        init: &PntfInit<T>,
        stop: &Stop,
        rng: &mut R,
    ) -> Result<Outcome<PntfState<T>>, PntfError> {
        stop.check()?;
        let algorithm = self.on(data)?;
        let state = self.init(data, init, rng)?;
        plca_fit::run(&algorithm, state, stop, ())
    }
}
