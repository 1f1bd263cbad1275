//! Models that learn batch by batch.

use nalgebra::{DMatrix, DVector};
use plca_em::{Batch, Local, Online, OnlineState, StepSize, Streamed};
use plca_fit::{FitError, Interrupt, Parameters, Settings};
use plca_tensor::{Data, Real};
use rand::Rng;

/// How a stream is learnt from.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// The step size of a batch.
    pub step: StepSize,
    /// How long a batch is explained.
    pub local: Local,
    /// The amount of all data, where it is known.
    pub total: Option<f64>,
    /// Whether the stream began with a random start.
    pub drawn: bool,
    /// What ends it from outside.
    pub interrupt: Option<Interrupt>,
}

impl Stream {
    pub(crate) fn of<T: Real, M: Streamed<T> + 'static>(&self, model: M) -> Box<dyn Learner<T>> {
        let mut learner = Online::new(model).step(self.step).local(self.local);
        learner = learner.drawn(self.drawn);
        if let Some(total) = self.total {
            learner = learner.total(total);
        }
        Box::new(match &self.interrupt {
            Some(interrupt) => learner.interrupt(interrupt.clone()),
            None => learner,
        })
    }
}

/// What learns from one batch after the other.
pub trait Learner<T: Real> {
    /// The dimension along which batches follow each other, of data of this order.
    fn along(&self, order: usize) -> usize;

    /// Whether its settings make sense.
    ///
    /// # Errors
    ///
    /// [`FitError`] with the setting that does not.
    fn check(&self) -> Result<(), FitError>;

    /// A random start, for batches whose other dimensions have these sizes.
    ///
    /// # Errors
    ///
    /// Those of [`check`](Self::check).
    fn init(&self, sizes: &[usize], rng: &mut dyn Rng) -> Result<OnlineState<T>, FitError>;

    /// A start of weights and factors.
    ///
    /// # Errors
    ///
    /// [`FitError`] for blocks that are none of the model.
    fn start(
        &self,
        weights: DVector<T>,
        factors: Vec<DMatrix<T>>,
    ) -> Result<OnlineState<T>, FitError>;

    /// Learns from a batch.
    ///
    /// # Errors
    ///
    /// [`FitError`] for a batch that the model refuses.
    fn learn(
        &self,
        known: &mut OnlineState<T>,
        batch: &dyn Data<T>,
    ) -> Result<Batch<Parameters<T>>, FitError>;
}

impl<T: Real, M: Streamed<T>> Learner<T> for Online<M> {
    fn along(&self, order: usize) -> usize {
        self.model().streamed(order)
    }

    fn check(&self) -> Result<(), FitError> {
        Settings::check(self)
    }

    fn init(&self, sizes: &[usize], rng: &mut dyn Rng) -> Result<OnlineState<T>, FitError> {
        Online::init(self, sizes, rng)
    }

    fn start(
        &self,
        weights: DVector<T>,
        factors: Vec<DMatrix<T>>,
    ) -> Result<OnlineState<T>, FitError> {
        Online::start(self, weights, factors)
    }

    fn learn(
        &self,
        known: &mut OnlineState<T>,
        batch: &dyn Data<T>,
    ) -> Result<Batch<Parameters<T>>, FitError> {
        Ok(self.partial_fit(known, batch)?.untyped())
    }
}
