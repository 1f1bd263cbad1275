//! Settings of PLCA.

use plca_tensor::Real;

use super::{Missing, Plca, Prior};
use crate::ParamError;
use crate::blocks::check_power;

/// Settings of [`Plca`], not yet checked.
///
/// ```
/// let plca = plca_em::before::Plca::<f64>::builder(3).temper(0.9).freeze_factor(0).build()?;
/// assert_eq!(plca.components(), 3);
/// # Ok::<(), plca_em::ParamError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "call `.build()`"]
pub struct PlcaBuilder<T: Real>(pub(super) Plca<T>);

impl<T: Real> PlcaBuilder<T> {
    /// Keeps `P(z)` as it was given.
    ///
    /// ```
    /// use nalgebra::{DVector};
    /// use plca_em::{before::Plca, Algorithm, PlcaInit};
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
    /// use plca_em::{before::Plca, Algorithm, PlcaInit};
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
    /// use plca_em::before::Plca;
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
    /// use plca_em::before::Plca;
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
    /// use plca_em::{before::Plca, ParamError};
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
    /// let plca = plca_em::before::Plca::<f64>::builder(3).temper(0.9).temper_prior(true).build()?;
    /// # Ok::<(), plca_em::ParamError>(())
    /// ```
    pub fn temper_prior(mut self, yes: bool) -> Self {
        self.0.temper_prior = yes;
        self
    }

    /// Treatment of hidden cells (default: imputation).
    ///
    /// ```
    /// use plca_em::{before::Plca, Missing};
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
    /// priors, tempering, a frozen block of weights, or both factors frozen.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{before::Plca, ParamError};
    /// assert_eq!(Plca::<f64>::builder(0).build().unwrap_err(), ParamError::NoComponents);
    /// ```
    pub fn build(self) -> Result<Plca<T>, ParamError> {
        let plca = self.0;
        if plca.components == 0 {
            return Err(ParamError::NoComponents);
        }
        check_power(plca.temper)?;
        if plca.missing == Missing::Multiplicative && !plca.separates() {
            return Err(ParamError::Conflict(
                "multiplicative treatment of missing cells goes with neither priors, tempering, frozen weights nor both factors frozen",
            ));
        }
        Ok(plca)
    }
}
