//! Shift-invariant PLCA of any order.
//!
//! ```text
//! P(x) = Σ_z P(z) Σ_t K(t | z) H(x - t + o | z)
//! ```
//!
//! Every component is a kernel, placed wherever its impulse is positive. Each dimension may be shifted or not: a kernel as
//! long as the data does not move along that dimension, a kernel of extent 1 is an ordinary factor's index. `[SI eq. 6-15]`

mod em;
pub(crate) mod engine;
pub(crate) mod folded;
pub(crate) mod geometry;
pub(crate) mod model;
mod options;
pub(crate) mod setters;
pub(crate) mod settings;
pub(crate) mod shares;
mod state;
mod step;
mod window;

use plca_fit::{Outcome, Stop};
use plca_tensor::{Data, Real};
use rand::Rng;

use self::setters::block_setters;
use self::settings::Settings;
use crate::{EmError, ParamError, Prior};

pub use em::ShiftedEm;
pub use geometry::{Geometry, Support};
pub use options::{Evaluation, Likelihood};
pub use plca_fit::engine::Anneal;
pub use state::{ShiftedInit, ShiftedState};

/// A checked configuration; see [`Shifted::builder`].
///
/// ```
/// use plca_em::Shifted;
/// // Three spectra of 513 bands and 8 frames that start at any frame.
/// let shifted = Shifted::<f64>::builder(3, vec![513, 8]).build()?;
/// assert_eq!(shifted.geometry(&[513, 938])?.impulse_shape(), [1, 931]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "SI-PLCA")]
#[derive(Clone, Debug)]
pub struct Shifted<T: Real> {
    kernel: Vec<usize>,
    supports: Vec<Support>,
    likelihood: Likelihood,
    evaluation: Evaluation,
    settings: Settings<T>,
}

/// Settings of [`Shifted`], not yet checked.
///
/// ```
/// use plca_em::{Anneal, Shifted, Support};
/// let builder = Shifted::<f64>::builder(2, vec![9, 9]).support(Support::Full);
/// let shifted = builder.anneal(Anneal { alpha0: 0.7, over: 75.0 }).build()?;
/// # Ok::<(), plca_em::ParamError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "call `.build()`"]
pub struct ShiftedBuilder<T: Real>(Shifted<T>);

block_setters!(
    ShiftedBuilder,
    "Shifted",
    "Shifted::<f64>::builder(2, vec![9, 9])"
);

impl<T: Real> ShiftedBuilder<T> {
    /// Where kernels may lie, the same along every dimension (default: inside the data).
    ///
    /// ```
    /// use plca_em::{Shifted, Support};
    /// let shifted = Shifted::<f64>::builder(2, vec![9, 9]).support(Support::Full).build()?;
    /// assert_eq!(shifted.geometry(&[60, 60])?.impulse_shape(), [68, 68]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn support(self, support: Support) -> Self {
        self.supports(vec![support])
    }

    /// Where kernels may lie, dimension by dimension.
    ///
    /// ```
    /// use plca_em::{Shifted, Support};
    /// let shifted = Shifted::<f64>::builder(2, vec![9, 9]).supports(vec![Support::Valid, Support::Same]).build()?;
    /// assert_eq!(shifted.geometry(&[60, 60])?.impulse_shape(), [52, 60]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn supports(mut self, supports: Vec<Support>) -> Self {
        self.0.supports = supports;
        self
    }

    /// How the E-step is computed (default: whichever should be fastest).
    ///
    /// ```
    /// use plca_em::{Evaluation, Shifted};
    /// let shifted = Shifted::<f64>::builder(2, vec![9, 9]).evaluation(Evaluation::Direct).build()?;
    /// # Ok::<(), plca_em::ParamError>(())
    /// ```
    pub fn evaluation(mut self, evaluation: Evaluation) -> Self {
        self.0.evaluation = evaluation;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`ParamError`]: no components, a kernel without extent, a power out of range or that lasts no time.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{ParamError, Shifted};
    /// let refused = Shifted::<f64>::builder(2, vec![9, 0]).build();
    /// assert_eq!(refused.unwrap_err(), ParamError::Extent { dimension: 1 });
    /// ```
    pub fn build(self) -> Result<Shifted<T>, ParamError> {
        let shifted = self.0;
        shifted.settings.check()?;
        if let Some(dimension) = shifted.kernel.iter().position(|&k| k == 0) {
            return Err(ParamError::Extent { dimension });
        }
        if shifted.supports.len() != 1 && shifted.supports.len() != shifted.kernel.len() {
            return Err(ParamError::Supports {
                expected: shifted.kernel.len(),
                got: shifted.supports.len(),
            });
        }
        Ok(shifted)
    }
}

impl<T: Real> Shifted<T> {
    /// Starts a configuration with `components` kernels, of one extent for every dimension of the data.
    ///
    /// ```
    /// use plca_em::{Shifted, ShiftedInit, Stop};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// // The pattern 1 3, twice.
    /// let v = DenseTensor::<f64>::new(vec![6], vec![0.0, 1.0, 3.0, 2.0, 6.0, 0.0], Order::RowMajor)?;
    /// let fit = Shifted::builder(1, vec![2]).build()?
    ///     .fit(&v, &ShiftedInit::default(), &Stop::default(), &mut ChaCha8Rng::seed_from_u64(2))?;
    /// // A kernel of 2 cells, an impulse distribution over the 5 places where it fits.
    /// assert_eq!((fit.state.kernels.shape(), fit.state.impulses.shape()), ((2, 1), (5, 1)));
    /// assert!((fit.state.kernels.sum() - 1.0).abs() < 1e-12);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder(components: usize, kernel: Vec<usize>) -> ShiftedBuilder<T> {
        ShiftedBuilder(Self {
            kernel,
            supports: vec![Support::default()],
            likelihood: Likelihood::default(),
            evaluation: Evaluation::default(),
            settings: Settings::new(components),
        })
    }

    /// Number of components `K`.
    ///
    /// ```
    /// assert_eq!(plca_em::Shifted::<f64>::builder(2, vec![9, 9]).build()?.components(), 2);
    /// # Ok::<(), plca_em::ParamError>(())
    /// ```
    pub fn components(&self) -> usize {
        self.settings.components
    }

    /// Shapes of kernels and impulses on data of this shape.
    ///
    /// # Errors
    ///
    /// As [`Geometry::new`].
    ///
    /// # Examples
    ///
    /// ```
    /// let shifted = plca_em::Shifted::<f64>::builder(2, vec![9, 9]).build()?;
    /// assert_eq!(shifted.geometry(&[60, 60])?.impulse_cells(), 52 * 52);
    /// assert!(shifted.geometry(&[60, 8]).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn geometry(&self, data: &[usize]) -> Result<Geometry, EmError> {
        Geometry::new(data, &self.kernel, &self.supports)
    }

    /// Binds the configuration to data, as an algorithm for [`plca_fit::run`]. Copies the data.
    ///
    /// # Errors
    ///
    /// [`EmError`]: data of another order or smaller than a kernel, hidden cells together with a literal likelihood, a
    /// prior that does not fit its block.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{Algorithm, Shifted, ShiftedInit};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let v = DenseTensor::<f64>::new(vec![6], vec![0.0, 1.0, 3.0, 2.0, 6.0, 0.0], Order::RowMajor)?;
    /// let shifted = Shifted::builder(1, vec![2]).build()?;
    /// let em = shifted.on(&v)?;
    /// let mut state = em.init(&ShiftedInit::default(), &mut ChaCha8Rng::seed_from_u64(2))?;
    /// let before = em.objective(&state)?;
    /// em.step(&mut state, false)?;                                    // one EM iteration
    /// assert!(em.objective(&state)? >= before);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on<'a>(&'a self, data: &'a dyn Data<T>) -> Result<ShiftedEm<'a, T>, EmError> {
        ShiftedEm::new(self, data)
    }

    /// A start for these data; see [`ShiftedEm::init`], which does not need to arrange the data anew.
    ///
    /// # Errors
    ///
    /// As [`on`](Self::on) and [`ShiftedEm::init`].
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{Shifted, ShiftedInit};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let v = DenseTensor::<f64>::new(vec![6], vec![0.0, 1.0, 3.0, 2.0, 6.0, 0.0], Order::RowMajor)?;
    /// let shifted = Shifted::builder(1, vec![2]).build()?;
    /// let state = shifted.init(&v, &ShiftedInit::default(), &mut ChaCha8Rng::seed_from_u64(0))?;
    /// assert_eq!((state.kernels.shape(), state.impulses.shape()), ((2, 1), (5, 1)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn init<R>(
        &self,
        data: &dyn Data<T>,
        init: &ShiftedInit<T>,
        rng: &mut R,
    ) -> Result<ShiftedState<T>, EmError>
    where
        R: Rng + ?Sized,
    {
        self.on(data)?.init(init, rng)
    }

    /// Runs EM on `data` from `init` until `stop`.
    ///
    /// # Errors
    ///
    /// As [`on`](Self::on) and [`ShiftedEm::init`].
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{Shifted, ShiftedInit, Stop};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// // A kernel of one cell: the impulses are the data.
    /// let v = DenseTensor::<f64>::new(vec![2], vec![1.0, 3.0], Order::RowMajor)?;
    /// let fit = Shifted::builder(1, vec![1]).build()?
    ///     .fit(&v, &ShiftedInit::default(), &Stop::default(), &mut ChaCha8Rng::seed_from_u64(0))?;
    /// assert!((fit.state.impulses[(1, 0)] - 0.75).abs() < 1e-6);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fit<R>(
        &self,
        data: &dyn Data<T>,
        init: &ShiftedInit<T>,
        stop: &Stop,
        rng: &mut R,
    ) -> Result<Outcome<ShiftedState<T>>, EmError>
    where
        R: Rng + ?Sized,
    {
        stop.check()?;
        let algorithm = self.on(data)?;
        let state = algorithm.init(init, rng)?;
        plca_fit::run(&algorithm, state, stop, ())
    }
}
