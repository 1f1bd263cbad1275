//! Settings of online learning.

use std::marker::PhantomData;

use plca_tensor::Real;

use super::{Online, StepSize, Streamed};
use crate::ParamError;

/// When the mixtures of a block are good enough to learn from.
///
/// They start uniform. An iteration moves counts of the block from one component to another; the last one also counts for the factors.
///
/// ```
/// let local = plca_em::Local::default();
/// assert_eq!((local.max_iter, local.tol), (50, 1e-3));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Local {
    /// E-steps at most, at least 1 (default 50).
    pub max_iter: usize,
    /// Enough once at most this share of the block's counts changed its component in an iteration (default 1e-3; 0: always
    /// `max_iter` iterations but where nothing changes at all).
    pub tol: f64,
}

impl Default for Local {
    fn default() -> Self {
        Self {
            max_iter: 50,
            tol: 1e-3,
        }
    }
}

impl Local {
    pub(super) fn check(&self) -> Result<(), ParamError> {
        if self.max_iter == 0 {
            return Err(ParamError::NoIterations);
        }
        if !(self.tol.is_finite() && self.tol >= 0.0) {
            return Err(ParamError::Tolerance(self.tol));
        }
        Ok(())
    }
}

/// Settings of [`Online`], not yet checked.
///
/// ```
/// use plca_em::{Local, Online, Plsa, StepSize};
/// let learner = Online::builder(Plsa::<f64>::builder(10).build()?)
///     .step(StepSize::Power { kappa: 0.6, t0: 10.0 })
///     .local(Local { max_iter: 20, ..Local::default() })
///     .build()?;
/// # Ok::<(), plca_em::ParamError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "call `.build()`"]
pub struct OnlineBuilder<M, T: Real>(pub(super) Online<M, T>);

impl<M, T: Real> OnlineBuilder<M, T> {
    pub(super) fn new(model: M) -> Self {
        Self(Online {
            model,
            step: StepSize::default(),
            local: Local::default(),
            total: None,
            scalar: PhantomData,
        })
    }

    /// The step-size law (default `(t + 1)^-0.7`).
    ///
    /// ```
    /// use plca_em::{Online, ParamError, Plsa, StepSize};
    /// let plsa = Plsa::<f64>::builder(2).build()?;
    /// let slow = StepSize::Power { kappa: 0.5, t0: 1.0 };
    /// assert!(matches!(Online::builder(plsa).step(slow).build(), Err(ParamError::StepSize { name: "kappa", .. })));
    /// # Ok::<(), ParamError>(())
    /// ```
    pub fn step(mut self, step: StepSize) -> Self {
        self.0.step = step;
        self
    }

    /// When the mixtures of a block are good enough.
    ///
    /// ```
    /// use plca_em::{Local, Online, ParamError, Plsa};
    /// let plsa = Plsa::<f64>::builder(2).build()?;
    /// let none = Local { max_iter: 0, ..Local::default() };
    /// assert_eq!(Online::builder(plsa).local(none).build().unwrap_err(), ParamError::NoIterations);
    /// # Ok::<(), ParamError>(())
    /// ```
    pub fn local(mut self, local: Local) -> Self {
        self.0.local = local;
        self
    }

    /// The sum of all data, which counts of priors are weighed against (default: that of the largest pass so far, so that a prior is strong
    /// at first).
    ///
    /// ```
    /// use plca_em::{Online, ParamError, Plsa};
    /// let plsa = Plsa::<f64>::builder(2).build()?;
    /// assert_eq!(Online::builder(plsa).total(-1.0).build().unwrap_err(), ParamError::Total(-1.0));
    /// # Ok::<(), ParamError>(())
    /// ```
    pub fn total(mut self, mass: f64) -> Self {
        self.0.total = Some(mass);
        self
    }
}

impl<T: Real, M: Streamed<T>> OnlineBuilder<M, T> {
    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`ParamError`]: a step-size law or local stop rule out of range, a total that is not positive, frozen blocks or priors that tie
    /// the blocks of a stream together.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{Online, ParamError, Plca, StepSize};
    /// let frozen = Plca::<f64>::builder(2).freeze_weights().build()?;
    /// assert!(matches!(Online::builder(frozen).build(), Err(ParamError::Conflict(_))));
    /// # Ok::<(), ParamError>(())
    /// ```
    pub fn build(self) -> Result<Online<M, T>, ParamError> {
        let Online {
            model,
            step,
            local,
            total,
            ..
        } = &self.0;
        model.check()?;
        step.check()?;
        local.check()?;
        match *total {
            Some(v) if !(v.is_finite() && v > 0.0) => Err(ParamError::Total(v)),
            _ => Ok(self.0),
        }
    }
}
