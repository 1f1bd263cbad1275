//! Hyperparameters learnt from one data set after another.

use plca_fit::FitError;
use plca_tensor::Real;

use crate::{Factors, Hyperparameters, Posterior, Prior, Sharing, Statistics};

/// The weight `r` of the `t`-th data set against all before. `[SKELLAM eq. 51]`
///
/// ```math
/// s \gets (1 - r) \, s + r \, s_t
/// ```
///
/// `s` are the [`Statistics`] so far and `s_t` those of the data set.
///
/// ```
/// use skellam_snmf::nalgebra::{self, dmatrix};
/// use skellam_snmf::{Factors, Hyperparameters, Learner, Rate, Sharing};
/// # let factors = |h| Factors { plus: dmatrix![0.5], minus: dmatrix![0.5], activations: dmatrix![h] };
/// let start = Hyperparameters { alpha: vec![1.0], shape: vec![2.0], rate: vec![0.5] };
/// let mut learner = Learner::new(Sharing::all(1, 1), start, Rate::AtLeast(0.5))?.iterations(0);
/// for h in [2.0, 4.0, 8.0] {
///     learner.learn_known(&factors(h))?;                              // weights 1, 1/2, 1/2
/// }
/// assert_eq!(learner.statistics().activations, [5.5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Rate {
    /// `1/t`: the mean over all data sets.
    Average,
    /// The same for all, in `(0, 1]`: earlier ones are forgotten.
    Constant(f64),
    /// `1/t` until that falls to this number in `(0, 1]`, which is kept: the start is forgotten at the first data set, early
    /// ones later.
    AtLeast(f64),
}

/// A learner of hyperparameters, which takes one data set after the other; serialised, it goes on as if it had not been interrupted.
///
/// ```math
/// s \gets (1 - r_t) \, s + r_t \, s_t, \qquad (\alpha, a, b) \gets \text{what raises the bound under } s
/// ```
///
/// `s` are the [`Statistics`] so far, `s_t` those of the `t`-th data set, and `r_t` its [`Rate`]; the second step is
/// [`Hyperparameters::improve`].
///
/// ```
/// use skellam_snmf::nalgebra::{self, dmatrix};
/// use skellam_snmf::Model;
/// use skellam_snmf::tensor::DenseTensor;
/// use skellam_snmf::{Hyperparameters, Learner, Rate, Sharing, SnmfVb};
///
/// let start = Hyperparameters { alpha: vec![1.0], shape: vec![1.0], rate: vec![0.1] };
/// let mut learner = Learner::new(Sharing::all(2, 1), start, Rate::Average)?;
/// let mut rng = skellam_snmf::seed(0);
/// for data in [dmatrix![9.0, 20.0, 3.0; -4.0, -9.0, -1.0], dmatrix![6.0, 8.0, 12.0; -5.0, -2.0, -7.0]] {
///     let vb = SnmfVb::new(1).priors(learner.prior()?);
///     let fit = vb.fit(&DenseTensor::try_from(data)?, &mut rng)?;
///     learner.learn(&fit.state().posterior())?;
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
    /// A learner from starting values, whose own expectations are the first statistics. They are those of one column until the first data
    /// set says how many there are; 100 iterations for each data set. Data sets may have different numbers of columns unless the sharing
    /// maps each entry: their statistics are sums, so that one with more columns weighs more.
    ///
    /// # Errors
    ///
    /// As [`Hyperparameters::check`]; [`FitError::Setting`] for a rate outside `(0, 1]`.
    ///
    /// # Examples
    ///
    /// ```
    /// use skellam_snmf::{Hyperparameters, Learner, Rate, Sharing};
    /// let start = Hyperparameters { alpha: vec![1.0], shape: vec![2.0], rate: vec![0.5] };
    /// let refused = Learner::new(Sharing::all(1, 1), start, Rate::Constant(0.0)).unwrap_err();
    /// assert_eq!(refused.to_string(), "`learning rate` is 0, expected a number in (0, 1]");
    /// ```
    pub fn new(
        sharing: Sharing,
        hyperparameters: Hyperparameters,
        rate: Rate,
    ) -> Result<Self, FitError> {
        if let Rate::Constant(r) | Rate::AtLeast(r) = rate
            && !(r > 0.0 && r <= 1.0)
        {
            return Err(FitError::Setting {
                name: "learning rate",
                value: r,
                expected: "a number in (0, 1]",
            });
        }
        let columns = sharing.columns().unwrap_or(1);
        Ok(Self {
            statistics: Statistics::of_prior(&sharing, &hyperparameters, columns)?,
            sharing,
            hyperparameters,
            rate,
            iterations: 100,
            seen: 0,
        })
    }

    /// Sets the number of iterations for each data set (default 100). Their convergence is linear and can be slow.
    ///
    /// ```
    /// use skellam_snmf::nalgebra::{self, dmatrix};
    /// use skellam_snmf::{Factors, Hyperparameters, Learner, Rate, Sharing};
    /// # let factors = |h| Factors { plus: dmatrix![0.5], minus: dmatrix![0.5], activations: dmatrix![h] };
    /// let start = Hyperparameters { alpha: vec![1.0], shape: vec![2.0], rate: vec![0.5] };
    /// let mut idle = Learner::new(Sharing::all(1, 1), start.clone(), Rate::Average)?.iterations(0);
    /// idle.learn_known(&factors(9.0))?;
    /// assert_eq!(idle.hyperparameters(), &start);                         // only the statistics changed
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn iterations(mut self, iterations: usize) -> Self {
        self.iterations = iterations;
        self
    }

    /// The prior as learnt so far: for the fit of the next data set.
    ///
    /// # Errors
    ///
    /// As [`Hyperparameters::prior`].
    ///
    /// # Examples
    ///
    /// ```
    /// use skellam_snmf::{Entries, Hyperparameters, Learner, Rate, Sharing};
    /// let start = Hyperparameters { alpha: vec![1.0], shape: vec![2.0], rate: vec![0.5] };
    /// let learner = Learner::new(Sharing::all(1, 1), start, Rate::Average)?;
    /// assert_eq!(learner.prior()?.rate, Entries::All(0.5));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn prior(&self) -> Result<Prior, FitError> {
        self.hyperparameters.prior(&self.sharing)
    }

    /// The hyperparameters as learnt so far.
    ///
    /// ```
    /// use skellam_snmf::nalgebra::{self, dmatrix};
    /// use skellam_snmf::{Factors, Hyperparameters, Learner, Rate, Sharing};
    /// # let factors = |h| Factors { plus: dmatrix![0.5], minus: dmatrix![0.5], activations: dmatrix![h] };
    /// let start = Hyperparameters { alpha: vec![1.0], shape: vec![2.0], rate: vec![0.5] };
    /// let mut learner = Learner::new(Sharing::all(1, 1), start, Rate::Average)?;
    /// learner.learn_known(&factors(2.0))?;
    /// learner.learn_known(&factors(4.0))?;
    /// let learnt = learner.hyperparameters();
    /// assert!((learnt.shape[0] / learnt.rate[0] - 3.0).abs() < 1e-9);     // a / b is the mean activation
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn hyperparameters(&self) -> &Hyperparameters {
        &self.hyperparameters
    }

    /// The statistics gathered so far.
    ///
    /// ```
    /// use skellam_snmf::nalgebra::{self, dmatrix};
    /// use skellam_snmf::{Factors, Hyperparameters, Learner, Rate, Sharing};
    /// # let factors = |h| Factors { plus: dmatrix![0.5], minus: dmatrix![0.5], activations: dmatrix![h] };
    /// let start = Hyperparameters { alpha: vec![1.0], shape: vec![2.0], rate: vec![0.5] };
    /// let mut learner = Learner::new(Sharing::all(1, 1), start, Rate::Average)?;
    /// assert_eq!(learner.statistics().activations, [4.0]);                // a / b of the start
    /// learner.learn_known(&factors(2.0))?;
    /// assert_eq!(learner.statistics().activations, [2.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// The number of data sets seen.
    ///
    /// ```
    /// use skellam_snmf::nalgebra::{self, dmatrix};
    /// use skellam_snmf::{Factors, Hyperparameters, Learner, Rate, Sharing};
    /// # let factors = |h| Factors { plus: dmatrix![0.5], minus: dmatrix![0.5], activations: dmatrix![h] };
    /// let start = Hyperparameters { alpha: vec![1.0], shape: vec![2.0], rate: vec![0.5] };
    /// let mut learner = Learner::new(Sharing::all(1, 1), start, Rate::Average)?;
    /// assert_eq!(learner.seen(), 0);
    /// learner.learn_known(&factors(2.0))?;
    /// assert_eq!(learner.seen(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Learns from the posterior of a data set, fitted under [`prior`](Self::prior).
    ///
    /// # Errors
    ///
    /// [`FitError`] for a posterior of another shape or with shapes that are not numbers; then nothing has changed.
    ///
    /// # Examples
    ///
    /// ```
    /// use skellam_snmf::nalgebra::{self, dmatrix};
    /// use skellam_snmf::{Hyperparameters, Learner, Posterior, Rate, Sharing};
    /// let start = Hyperparameters { alpha: vec![1.0], shape: vec![2.0], rate: vec![0.5] };
    /// let mut learner = Learner::new(Sharing::all(1, 1), start, Rate::Average)?;
    /// let mut q = Posterior { plus: dmatrix![3.0], minus: dmatrix![1.0], shape: dmatrix![5.0], rate: dmatrix![2.0] };
    /// learner.learn(&q)?;
    /// let learnt = learner.hyperparameters().clone();
    /// assert!((learnt.shape[0] / learnt.rate[0] - 2.5).abs() < 1e-9);     // ŝ / b̂
    /// (q.shape, q.rate) = (dmatrix![5.0, 5.0], dmatrix![2.0, 2.0]);       // of two columns
    /// learner.learn(&q)?;
    /// assert_eq!(learner.statistics().columns, 1.5);
    /// let learnt = learner.hyperparameters().clone();
    /// q.rate = dmatrix![2.0];                                             // not that of two columns
    /// assert!(learner.learn(&q).is_err() && learner.hyperparameters() == &learnt);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn learn<T: Real>(&mut self, posterior: &Posterior<T>) -> Result<(), FitError> {
        self.hyperparameters.check(&self.sharing)?;
        let new = Statistics::of(posterior, &self.sharing)?;
        self.take(new)
    }

    /// Learns from a data set whose factors are known. Some of these at the start keep learning from going astray.
    ///
    /// # Errors
    ///
    /// As [`learn`](Self::learn), and for factors with zeros.
    ///
    /// # Examples
    ///
    /// ```
    /// use skellam_snmf::nalgebra::{self, dmatrix};
    /// use skellam_snmf::{Factors, Hyperparameters, Learner, Rate, Sharing};
    /// # let factors = |h| Factors { plus: dmatrix![0.5], minus: dmatrix![0.5], activations: dmatrix![h] };
    /// let start = Hyperparameters { alpha: vec![1.0], shape: vec![2.0], rate: vec![0.5] };
    /// let mut learner = Learner::new(Sharing::all(1, 1), start, Rate::Average)?;
    /// assert!(learner.learn_known(&factors(0.0)).is_err());
    /// learner.learn_known(&factors(6.0))?;
    /// assert_eq!((learner.seen(), learner.statistics().activations[0]), (1, 6.0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn learn_known<T: Real>(&mut self, factors: &Factors<T>) -> Result<(), FitError> {
        self.hyperparameters.check(&self.sharing)?;
        let new = Statistics::of_known(factors, &self.sharing)?;
        self.take(new)
    }

    fn take(&mut self, new: Statistics) -> Result<(), FitError> {
        let average = 1.0 / self.seen.saturating_add(1) as f64;
        let r = match self.rate {
            Rate::Average => average,
            Rate::Constant(r) => r,
            Rate::AtLeast(r) => average.max(r),
        };
        let (mut statistics, mut hyperparameters) =
            (self.statistics.clone(), self.hyperparameters.clone());
        if self.seen == 0 && self.sharing.columns().is_none() {
            let columns = new.columns as usize;
            statistics = Statistics::of_prior(&self.sharing, &hyperparameters, columns)?;
        }
        statistics.blend(&new, r)?;
        for _ in 0..self.iterations {
            hyperparameters.improve(&self.sharing, &statistics)?;
        }
        (self.statistics, self.hyperparameters) = (statistics, hyperparameters);
        self.seen = self.seen.saturating_add(1);
        Ok(())
    }
}
