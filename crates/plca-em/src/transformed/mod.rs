//! PLCA that is invariant to a given finite set of transformations.
//!
//! ```text
//! P(x) = Σ_z P(z) Σ_s H(s | z) Σ_{u: T_s(u) = x} a(s,u) K(u | z)
//! ```
//!
//! A kernel `K` is placed on the data by maps `T_s` of its cells: rotations, scales, flips, shifts, in any combination. `[LV eq. 17]`

mod em;
pub(crate) mod evaluator;
mod maps;

use std::sync::Arc;

use plca_fit::{Outcome, Stop};
use plca_tensor::{Data, Real, check_counts};
use rand::Rng;

use self::evaluator::Evaluator;
use crate::shifted::setters::block_setters;
use crate::shifted::settings::Settings;
use crate::{Anneal, EmError, Likelihood, ParamError, Prior, ShiftedInit, ShiftedState};

pub use em::TransformedEm;
pub use maps::{IndexMaps, MapEntry};

/// A checked configuration; see [`Transformed::builder`].
///
/// ```
/// use plca_em::{IndexMaps, Transformed};
/// let model = Transformed::<f64>::builder(2, IndexMaps::new(3, 2, &[0, 1,  1, 0,  1, 2,  2, 1])?).build()?;
/// assert_eq!(model.components(), 2);
/// # Ok::<(), plca_em::ParamError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Transformed<T: Real> {
    maps: Arc<IndexMaps>,
    likelihood: Likelihood,
    settings: Settings<T>,
}

/// Settings of [`Transformed`], not yet checked.
///
/// ```
/// use plca_em::{Anneal, IndexMaps, Transformed};
/// let maps = IndexMaps::new(3, 2, &[0, 1,  1, 0,  1, 2,  2, 1])?;
/// let model = Transformed::<f64>::builder(2, maps).anneal(Anneal { alpha0: 0.8, over: 20.0 }).build()?;
/// # Ok::<(), plca_em::ParamError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "call `.build()`"]
pub struct TransformedBuilder<T: Real>(Transformed<T>);

block_setters!(
    TransformedBuilder,
    "IndexMaps, Transformed",
    "Transformed::<f64>::builder(2, IndexMaps::new(3, 2, &[0, 1, 1, 2])?)"
);

impl<T: Real> TransformedBuilder<T> {
    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`ParamError`]: no components, a power out of range or that lasts no time.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{IndexMaps, ParamError, Transformed};
    /// let refused = Transformed::<f64>::builder(0, IndexMaps::new(3, 2, &[0, 1,  1, 2])?).build();
    /// assert_eq!(refused.unwrap_err(), ParamError::NoComponents);
    /// # Ok::<(), ParamError>(())
    /// ```
    pub fn build(self) -> Result<Transformed<T>, ParamError> {
        self.0.settings.check()?;
        Ok(self.0)
    }
}

impl<T: Real> Transformed<T> {
    /// Starts a configuration with `components` kernels under `maps`. Its states have the cells of the kernels as rows of
    /// `kernels` and the maps as rows of `impulses`.
    ///
    /// ```
    /// use plca_em::{IndexMaps, ShiftedInit, Stop, Transformed};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// // The pattern 1 3 as it is, and turned round.
    /// let v = DenseTensor::new(vec![4], vec![1.0, 3.0, 6.0, 2.0], Order::RowMajor)?;
    /// let maps = IndexMaps::new(4, 2, &[0, 1,  1, 0,  1, 2,  2, 1,  2, 3,  3, 2])?;
    /// let fit = Transformed::builder(1, maps).build()?
    ///     .fit(&v, &ShiftedInit::default(), &Stop::default(), &mut ChaCha8Rng::seed_from_u64(0))?;
    /// assert_eq!((fit.state.kernels.shape(), fit.state.impulses.shape()), ((2, 1), (6, 1)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder(components: usize, maps: IndexMaps) -> TransformedBuilder<T> {
        TransformedBuilder(Self {
            maps: Arc::new(maps),
            likelihood: Likelihood::default(),
            settings: Settings::new(components),
        })
    }

    /// Number of components `K`.
    ///
    /// ```
    /// use plca_em::{IndexMaps, Transformed};
    /// assert_eq!(Transformed::<f64>::builder(2, IndexMaps::new(3, 2, &[0, 1,  1, 2])?).build()?.components(), 2);
    /// # Ok::<(), plca_em::ParamError>(())
    /// ```
    pub fn components(&self) -> usize {
        self.settings.components
    }

    /// Binds the configuration to data, as an algorithm for [`plca_fit::run`]. Copies the data.
    ///
    /// # Errors
    ///
    /// [`EmError`]: data of another number of cells than the maps were made for, hidden cells together with a literal
    /// likelihood, a prior that does not fit its block.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{Algorithm, IndexMaps, ShiftedInit, Transformed};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let v = DenseTensor::new(vec![3], vec![1.0, 5.0, 2.0], Order::RowMajor)?;
    /// let model = Transformed::builder(1, IndexMaps::new(3, 2, &[0, 1,  1, 2])?).build()?;
    /// let em = model.on(&v)?;
    /// let mut state = em.init(&ShiftedInit::default(), &mut ChaCha8Rng::seed_from_u64(0))?;
    /// let before: f64 = em.objective(&state)?;
    /// em.step(&mut state, false)?;
    /// assert!(em.objective(&state)? >= before);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on<'a>(&'a self, data: &'a dyn Data<T>) -> Result<TransformedEm<'a, T>, EmError> {
        check_counts(data)?;
        let shape = data.shape();
        let maps = &self.maps;
        if shape.iter().product::<usize>() != maps.cells {
            return Err(EmError::Cells {
                shape: shape.to_vec(),
                expected: maps.cells,
            });
        }
        let literal = self.likelihood == Likelihood::Literal;
        if literal && maps.any_outside && !data.is_complete() {
            return Err(EmError::LiteralWithHidden);
        }
        self.settings.check_priors([maps.kernel, maps.maps])?;
        let evaluator = Evaluator::new(self.maps.clone(), self.likelihood, data)?;
        Ok(TransformedEm {
            config: self,
            data,
            evaluator,
        })
    }

    /// Runs EM on `data` from `init` until `stop`.
    ///
    /// # Errors
    ///
    /// As [`on`](Self::on) and [`TransformedEm::init`].
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{IndexMaps, ShiftedInit, Stop, Transformed};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// // One map that changes nothing: the kernel is the data.
    /// let v = DenseTensor::<f64>::new(vec![2], vec![1.0, 3.0], Order::RowMajor)?;
    /// let fit = Transformed::builder(1, IndexMaps::new(2, 2, &[0, 1])?).build()?
    ///     .fit(&v, &ShiftedInit::default(), &Stop::default(), &mut ChaCha8Rng::seed_from_u64(0))?;
    /// assert!((fit.state.kernels[(1, 0)] - 0.75).abs() < 1e-6);
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
