//! Settings of online learning.

use plca_fit::{FitError, Interrupt};
use plca_tensor::Real;

use super::{Online, StepSize, Streamed};

/// The rule that says when the mixtures of a batch are good enough to learn from.
///
/// They start uniform. An iteration moves counts of the batch from one component to another; the last one also counts for the factors.
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
    /// Enough once at most this share of the batch's counts changed its component in an iteration (default 1e-3; 0: always
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
    pub(super) fn check(&self) -> Result<(), FitError> {
        FitError::if_zero("max_iter", self.max_iter)?;
        let good = self.tol.is_finite() && self.tol >= 0.0;
        FitError::unless(good, "tol", self.tol, "a finite number >= 0")
    }
}

/// The settings of [`Online`], not yet checked.
///
/// ```
/// use plca_em::{Local, Online, Plsa, StepSize};
/// let learner = Online::builder(Plsa::<f64>::builder(10).build()?)
///     .step(StepSize::Power { kappa: 0.6, t0: 10.0 })
///     .local(Local { max_iter: 20, ..Local::default() })
///     .build()?;
/// # Ok::<(), plca_fit::FitError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "call `.build()`"]
pub struct OnlineBuilder<M, T: Real>(pub(super) Online<M, T>);

impl<M, T: Real> OnlineBuilder<M, T> {
    /// Sets the step-size law (default `(t + 1)^-0.7`).
    ///
    /// ```
    /// use plca_em::{Online, Plsa, StepSize};
    /// use plca_fit::FitError;
    /// let plsa = Plsa::<f64>::builder(2).build()?;
    /// let slow = StepSize::Power { kappa: 0.5, t0: 1.0 };
    /// assert!(matches!(Online::builder(plsa).step(slow).build(), Err(FitError::Setting { name: "kappa", .. })));
    /// # Ok::<(), FitError>(())
    /// ```
    pub fn step(mut self, step: StepSize) -> Self {
        self.0.step = step;
        self
    }

    /// Sets when the mixtures of a batch are good enough.
    ///
    /// ```
    /// use plca_em::{Local, Online, Plsa};
    /// use plca_fit::FitError;
    /// let plsa = Plsa::<f64>::builder(2).build()?;
    /// let none = Local { max_iter: 0, ..Local::default() };
    /// assert!(matches!(Online::builder(plsa).local(none).build(), Err(FitError::Setting { name: "max_iter", .. })));
    /// # Ok::<(), FitError>(())
    /// ```
    pub fn local(mut self, local: Local) -> Self {
        self.0.local = local;
        self
    }

    /// Sets the sum of all data, which counts of priors are weighed against (default: that of the largest pass so far, so that a prior is
    /// strong at first); by variational Bayes the number of all documents.
    ///
    /// ```
    /// use plca_em::{Online, Plsa};
    /// use plca_fit::FitError;
    /// let plsa = Plsa::<f64>::builder(2).build()?;
    /// assert!(matches!(Online::builder(plsa).total(-1.0).build(), Err(FitError::Setting { name: "total", .. })));
    /// # Ok::<(), FitError>(())
    /// ```
    pub fn total(mut self, mass: f64) -> Self {
        self.0.total = Some(mass);
        self
    }

    /// Says that the start of the stream is [drawn](Online::init), so that its components are nearly the same. By variational Bayes the first documents, 200 for
    /// every component but no more than two passes where the [total](Self::total) is given, are then learnt from by EM: by means of the posteriors in place of
    /// geometric means, under which most components of such a start would never come to say anything. Of other models it changes nothing. It is about the whole
    /// stream: give it to every learner that goes on with it.
    ///
    /// ```
    /// use plca_em::{Online, PlsaVb};
    /// let learner = Online::builder(PlsaVb::<f64>::builder(50).build()?).drawn().build()?;
    /// # Ok::<(), plca_em::FitError>(())
    /// ```
    pub fn drawn(mut self) -> Self {
        self.0.drawn = true;
        self
    }

    /// Sets what ends the work on a batch from another thread, between two E-steps (default: nothing): [`FitError::Interrupted`], and
    /// nothing has been learnt from it.
    ///
    /// ```
    /// use plca_em::{Interrupt, Online, Plsa};
    /// use plca_fit::FitError;
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let flag = Interrupt::default();
    /// let learner = Online::builder(Plsa::<f64>::builder(2).build()?).interrupt(flag.clone()).build()?;
    /// let mut state = learner.init(&[2], &mut ChaCha8Rng::seed_from_u64(0))?;
    /// let (before, batch) = (state.clone(), DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?);
    /// flag.raise();
    /// assert!(matches!(learner.partial_fit(&mut state, &batch), Err(FitError::Interrupted)));
    /// assert_eq!(state, before);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn interrupt(mut self, interrupt: Interrupt) -> Self {
        self.0.interrupt = Some(interrupt);
        self
    }
}

impl<T: Real, M: Streamed<T>> OnlineBuilder<M, T> {
    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`FitError::Setting`] for a step-size law or local stop rule out of range and for a total that is not positive. [`FitError::Conflict`]
    /// for frozen blocks and priors that tie the batches of a stream together.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{Online, Plca, StepSize};
    /// use plca_fit::FitError;
    /// let plca = Plca::<f64>::builder(2).build()?;
    /// assert!(Online::builder(plca).step(StepSize::Constant(2.0)).build().is_err());
    /// # Ok::<(), FitError>(())
    /// ```
    pub fn build(self) -> Result<Online<M, T>, FitError> {
        let online = self.0;
        online.model.check_stream()?;
        online.step.check()?;
        online.local.check()?;
        if let Some(total) = online.total {
            let good = total.is_finite() && total > 0.0;
            FitError::unless(good, "total", total, "a finite number > 0")?;
        }
        Ok(online)
    }
}
