//! Settings of online learning.

use plca_fit::{FitError, Interrupt, Settings};

use super::{Online, StepSize, sealed};

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

impl<M> Online<M> {
    /// A learner of this model with the defaults of all settings.
    ///
    /// ```
    /// use plca_em::{Local, Online, Plsa, Settings, StepSize};
    /// let learner = Online::new(Plsa::new(10))
    ///     .step(StepSize::Power { kappa: 0.6, t0: 10.0 })
    ///     .local(Local { max_iter: 20, ..Local::default() });
    /// assert!(learner.check().is_ok());
    /// ```
    pub fn new(model: M) -> Self {
        Self {
            model,
            step: StepSize::default(),
            local: Local::default(),
            total: None,
            drawn: false,
            interrupt: None,
        }
    }

    /// The step-size law (default `(t + 1)^-0.7`).
    ///
    /// ```
    /// use plca_em::{FitError, Online, Plsa, Settings, StepSize};
    /// let slow = StepSize::Power { kappa: 0.5, t0: 1.0 };
    /// let refused = Online::new(Plsa::new(2)).step(slow).check();
    /// assert!(matches!(refused, Err(FitError::Setting { name: "kappa", .. })));
    /// ```
    pub fn step(mut self, step: StepSize) -> Self {
        self.step = step;
        self
    }

    /// The rule that says when the mixtures of a batch are good enough.
    ///
    /// ```
    /// use plca_em::{FitError, Local, Online, Plsa, Settings};
    /// let none = Local { max_iter: 0, ..Local::default() };
    /// let refused = Online::new(Plsa::new(2)).local(none).check();
    /// assert!(matches!(refused, Err(FitError::Setting { name: "max_iter", .. })));
    /// ```
    pub fn local(mut self, local: Local) -> Self {
        self.local = local;
        self
    }

    /// The sum of all data, which counts of priors are weighed against (default: that of the largest pass so far, so that a prior is
    /// strong at first); by variational Bayes the number of all documents.
    ///
    /// ```
    /// use plca_em::{FitError, Online, Plsa, Settings};
    /// let refused = Online::new(Plsa::new(2)).total(-1.0).check();
    /// assert!(matches!(refused, Err(FitError::Setting { name: "total", .. })));
    /// ```
    pub fn total(mut self, mass: f64) -> Self {
        self.total = Some(mass);
        self
    }

    /// Whether the start of the stream is [drawn](Online::init) (default: no), so that its components are nearly the same. By variational Bayes the first
    /// documents, 200 for every component but no more than two passes where the [total](Self::total) is given, are then learnt from by EM: by means of the
    /// posteriors in place of geometric means, under which most components of such a start would never come to say anything. Of other models it changes
    /// nothing. It is about the whole stream: give it to every learner that goes on with it.
    ///
    /// ```
    /// use plca_em::{Online, PlsaVb};
    /// let learner = Online::new(PlsaVb::new(50)).drawn(true);
    /// ```
    pub fn drawn(mut self, yes: bool) -> Self {
        self.drawn = yes;
        self
    }

    /// What ends the work on a batch from another thread, between two E-steps (default: nothing): [`FitError::Interrupted`], and
    /// nothing has been learnt from it.
    ///
    /// ```
    /// use plca_em::{FitError, Interrupt, Online, Plsa};
    /// use plca_em::tensor::{DenseTensor, Order};
    /// let flag = Interrupt::default();
    /// let learner = Online::new(Plsa::new(2)).interrupt(flag.clone());
    /// let mut state = learner.init(&[2], &mut plca_em::seed(0))?;
    /// let (before, batch) = (state.clone(), DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?);
    /// flag.raise();
    /// assert!(matches!(learner.partial_fit(&mut state, &batch), Err(FitError::Interrupted)));
    /// assert_eq!(state, before);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn interrupt(mut self, interrupt: Interrupt) -> Self {
        self.interrupt = Some(interrupt);
        self
    }
}

impl<M: sealed::Sealed> Settings for Online<M> {
    fn components(&self) -> usize {
        self.model.components()
    }

    /// # Errors
    ///
    /// Those of the model. [`FitError::Setting`] for a step-size law or local stop rule out of range and for a total that is not positive.
    /// [`FitError::Conflict`] for frozen blocks and priors that tie the batches of a stream together.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{Online, Plca, Settings, StepSize};
    /// assert!(Online::new(Plca::new(2)).step(StepSize::Constant(2.0)).check().is_err());
    /// ```
    fn check(&self) -> Result<(), FitError> {
        self.model.check()?;
        self.model.check_stream()?;
        self.step.check()?;
        self.local.check()?;
        match self.total {
            Some(total) => {
                let good = total.is_finite() && total > 0.0;
                FitError::unless(good, "total", total, "a finite number > 0")
            }
            None => Ok(()),
        }
    }
}
