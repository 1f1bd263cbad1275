//! Hyperparameters learnt from one data set after another.

use plca_tensor::Real;

use crate::{Hyperparameters, Posterior, Prior, Sharing, SnmfError, SnmfState, Statistics};

/// Weight of a new data set against all before.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Rate {
    /// `1/t`: the mean over all data sets.
    Average,
    /// The same for all, in `(0, 1]`: earlier ones are forgotten.
    Constant(f64),
    /// `1/t` until that falls to this number in `(0, 1]`, which is kept: the start is forgotten at the first data set, early
    /// ones later.
    AtLeast(f64),
}

/// Learns hyperparameters online; serialised, it goes on as if it had not been interrupted.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_fit::Stop;
/// use skellam_snmf::{Hyperparameters, Learner, Rate, Sharing, SignedMatrix, SnmfVb, VbInit};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
///
/// let start = Hyperparameters { alpha: vec![1.0], shape: vec![1.0], rate: vec![0.1] };
/// let mut learner = Learner::new(Sharing::all(2, 1, 3), start, Rate::Average)?;
/// let mut rng = ChaCha8Rng::seed_from_u64(0);
/// for data in [dmatrix![9.0, 20.0, 3.0; -4.0, -9.0, -1.0], dmatrix![6.0, 8.0, 12.0; -5.0, -2.0, -7.0]] {
///     let vb = SnmfVb::builder(1).prior(learner.prior()?).build()?;
///     let fit = vb.fit(&SignedMatrix::new(&data)?, &VbInit::Random, &Stop::default(), &mut rng)?;
///     learner.learn(&fit.state)?;
/// }
/// assert_eq!(learner.seen(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Learner {
    sharing: Sharing,
    hyperparameters: Hyperparameters,
    statistics: Statistics,
    rate: Rate,
    iterations: usize,
    seen: u64,
}

impl Learner {
    /// From starting values; 100 iterations for each data set.
    ///
    /// # Errors
    ///
    /// As [`Hyperparameters::check`]; [`SnmfError::Value`] for a rate outside `(0, 1]`.
    pub fn new(
        sharing: Sharing,
        hyperparameters: Hyperparameters,
        rate: Rate,
    ) -> Result<Self, SnmfError> {
        if let Rate::Constant(r) | Rate::AtLeast(r) = rate
            && !(r > 0.0 && r <= 1.0)
        {
            return Err(SnmfError::Value {
                block: "learning rate",
                row: 0,
                column: 0,
                value: r,
                range: "in (0, 1]",
            });
        }
        Ok(Self {
            statistics: Statistics::of_prior(&sharing, &hyperparameters)?,
            sharing,
            hyperparameters,
            rate,
            iterations: 100,
            seen: 0,
        })
    }

    /// Another number of iterations for each data set. Their convergence is linear and can be slow.
    pub fn iterations(mut self, iterations: usize) -> Self {
        self.iterations = iterations;
        self
    }

    /// The prior as learnt so far.
    ///
    /// # Errors
    ///
    /// As [`Hyperparameters::prior`].
    pub fn prior(&self) -> Result<Prior, SnmfError> {
        self.hyperparameters.prior(&self.sharing)
    }

    /// The hyperparameters as learnt so far.
    pub fn hyperparameters(&self) -> &Hyperparameters {
        &self.hyperparameters
    }

    /// The statistics gathered so far.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Data sets seen.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Learns from the posterior of a data set, fitted under [`prior`](Self::prior).
    ///
    /// # Errors
    ///
    /// [`SnmfError`] for a posterior of another shape or with shapes that are no numbers; then nothing has changed.
    pub fn learn<T: Real>(&mut self, posterior: &Posterior<T>) -> Result<(), SnmfError> {
        let new = Statistics::of(posterior, &self.sharing, &self.hyperparameters)?;
        self.take(new)
    }

    /// Learns from a data set whose factors are known. Some of these at the start keep learning from going astray.
    ///
    /// # Errors
    ///
    /// As [`learn`](Self::learn), and for factors with zeros.
    pub fn learn_known<T: Real>(&mut self, factors: &SnmfState<T>) -> Result<(), SnmfError> {
        let new = Statistics::of_known(factors, &self.sharing, &self.hyperparameters)?;
        self.take(new)
    }

    fn take(&mut self, new: Statistics) -> Result<(), SnmfError> {
        let average = 1.0 / (self.seen + 1) as f64;
        let r = match self.rate {
            Rate::Average => average,
            Rate::Constant(r) => r,
            Rate::AtLeast(r) => average.max(r),
        };
        let (mut statistics, mut hyperparameters) =
            (self.statistics.clone(), self.hyperparameters.clone());
        statistics.blend(&new, r);
        for _ in 0..self.iterations {
            hyperparameters.improve(&self.sharing, &statistics)?;
        }
        (self.statistics, self.hyperparameters) = (statistics, hyperparameters);
        self.seen += 1;
        Ok(())
    }
}
