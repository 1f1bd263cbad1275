//! Settings of PLSA.

use plca_tensor::Real;

use super::{Given, Plsa};
use crate::blocks::check_power;
use crate::{ParamError, Prior};

/// Settings of [`Plsa`], not yet checked.
///
/// ```
/// use plca_em::{before::Plsa, Given};
/// let plsa = Plsa::<f64>::builder(5).given(Given::Rows).temper(0.8).build()?;
/// assert_eq!(plsa.given(), Given::Rows);
/// # Ok::<(), plca_em::ParamError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "call `.build()`"]
pub struct PlsaBuilder<T: Real>(pub(super) Plsa<T>);

impl<T: Real> PlsaBuilder<T> {
    /// Which mode is given (default: the columns).
    ///
    /// ```
    /// use plca_em::{before::Plsa, Given};
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
    /// let plsa = plca_em::before::Plsa::<f64>::builder(5).freeze_basis().build()?;
    /// # Ok::<(), plca_em::ParamError>(())
    /// ```
    pub fn freeze_basis(mut self) -> Self {
        self.0.freeze_basis = true;
        self
    }

    /// Keeps `P(z | y)` as it was given.
    ///
    /// ```
    /// let plsa = plca_em::before::Plsa::<f64>::builder(5).freeze_mixture().build()?;
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
    /// use plca_em::before::Plsa;
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
    /// use plca_em::before::Plsa;
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
    /// use plca_em::{before::Plsa, ParamError};
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
    /// use plca_em::{before::Plsa, ParamError};
    /// assert_eq!(Plsa::<f64>::builder(0).build().unwrap_err(), ParamError::NoComponents);
    /// ```
    pub fn build(self) -> Result<Plsa<T>, ParamError> {
        if self.0.components == 0 {
            return Err(ParamError::NoComponents);
        }
        check_power(self.0.temper)?;
        Ok(self.0)
    }
}
