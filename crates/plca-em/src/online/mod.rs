//! PLSA, PLCA and KL-NMF learnt from batches of data, one after the other: stepwise EM, and variational Bayes of PLSA.
//!
//! Batches are parts of the data along one mode: documents of a corpus, frames of a recording. What belongs to the indices of that
//! mode (mixtures) is found within the batch under the parameters so far; what all batches share is learnt from its counts:
//!
//! ```math
//! \begin{aligned}
//! C_B &= \text{expected counts of batch } B \text{ under the factors so far and its own mixtures, of sum } v_B \\
//! s &\gets (1 - \rho_t) \, s + \rho_t \, C_B / v_B \\
//! F_j &\gets \text{M-step of the counts } v s_j
//! \end{aligned}
//! ```
//!
//! Only one batch is in memory. With the whole data as one batch, `ρ = 1` and one local iteration this is batch EM. `[SPEC 13]`
//!
//! By variational Bayes ([`PlsaVb`](crate::PlsaVb)) the shapes of the topics take the place of the factors, and documents are what batches are counted in. `[EXT 3]`

mod learn;
mod settings;
mod state;
mod step;
mod stream;
mod streamed;

use nalgebra::{DMatrix, DVector};
use plca_fit::blocks::Constraint;
use plca_fit::{FitError, Interrupt, Parameters, Settings, State};
use plca_tensor::{Data, Real};
use rand::Rng;

pub use settings::Local;
pub use state::OnlineState;
pub use step::StepSize;
pub use stream::{Pass, StreamError};
pub use streamed::{After, BatchStep, Explanation, Streamed};
pub(crate) use streamed::{explain, freeze_shared, sealed};

/// A learner of PLSA, PLCA or KL-NMF that takes the data in batches, one after the other.
///
/// ```math
/// \begin{aligned}
/// s &\gets (1 - \rho_t) \, s + \rho_t \, C_B / v_B \\
/// F_j &\gets \text{M-step of the counts } v \, s_j
/// \end{aligned}
/// ```
///
/// `C_B` are the expected counts of batch `B`, the `t`-th, under the factors so far and the mixtures of its own, `v_B` is their sum, and
/// `ρ_t` the [`StepSize`]; `s` are the statistics, in the shape of the factors, and `v` the sum of all data, which only a prior needs.
///
/// Of [`PlsaVb`](crate::PlsaVb) the factor is the posterior of the topics, `basis_shape`, and this is online LDA:
///
/// ```math
/// \lambda \gets (1 - \rho_t) \, \lambda + \rho_t \left( \eta + \frac{D}{|B|} C_B \right)
/// ```
///
/// `η` are the shapes of its prior, `|B|` and `D` the numbers of documents of the batch and of all data. The statistics are counts for each document. As long as `D`
/// is not given it grows with the first pass, and what was learnt before is scaled with it; but beside a random start the first batches then count for little: give it
/// where it is known.
///
/// ```
/// use plca_em::{Online, Plsa};
/// use plca_em::tensor::{Coordinates, SparseTensor};
///
/// let learner = Online::new(Plsa::new(2));
/// let mut state = learner.init(&[4], &mut plca_em::seed(0))?;
/// for pass in 0..200 {
///     // Four words; documents with words of the first two, or of the last two.
///     for words in [vec![0, 0, 1, 0, 2, 1, 3, 1], vec![2, 0, 3, 0, 0, 1, 1, 1]] {
///         let batch = Coordinates { shape: vec![4, 2], indices: words, values: vec![5.0; 4] };
///         learner.partial_fit(&mut state, &SparseTensor::new(batch)?)?;
///     }
///     state.end_pass();
/// }
/// let topic = state.factors[0].column(0);
/// assert!(topic[0] + topic[1] < 1e-3 || topic[0] + topic[1] > 0.999);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "settings alone learn nothing"]
pub struct Online<M> {
    model: M,
    step: StepSize,
    local: Local,
    total: Option<f64>,
    drawn: bool,
    interrupt: Option<Interrupt>,
}

/// The explanation of a batch, as it was found before the batch changed the learner.
///
/// ```
/// use plca_em::{Online, Plsa};
/// use plca_em::tensor::{DenseTensor, Order};
/// let learner = Online::new(Plsa::new(2));
/// let mut state = learner.init(&[2], &mut plca_em::seed(0))?;
/// let batch = DenseTensor::new(vec![2, 3], vec![3.0, 1.0, 0.0, 0.0, 2.0, 2.0], Order::RowMajor)?;
/// let learnt = learner.partial_fit(&mut state, &batch)?;
/// assert_eq!((learnt.state.mixture().shape(), learnt.mass), ((2, 3), 8.0));
/// assert_ne!(learnt.state.basis(), &state.factors[0]);                   // the one that the batch met
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Batch<S> {
    /// The model of the batch: the factors that it met, and what was found of its own.
    pub state: S,
    /// The log-likelihood of the batch under the factors that it met, one iteration short of `state`; of NMF minus the divergence, by variational Bayes the bound,
    /// less the divergences of the mixtures alone. In a first pass it is that of data which the model has not seen.
    pub ln_lik: f64,
    /// Sum of the batch, hidden cells imputed.
    pub mass: f64,
    /// The weight `ρ_t` that it had.
    pub rho: f64,
    /// E-steps that it took.
    pub iterations: usize,
    /// Names of blocks with priors that may empty them, which had nothing of what the data have here and were given a trace of it,
    /// 1e-12: `mixture`, `basis`, `factor_0`, ….
    pub restored: Vec<String>,
}

impl<S: State> Batch<S> {
    /// The same with plain parameters as its state: one type for all models.
    pub fn untyped(self) -> Batch<Parameters<S::Scalar>> {
        Batch {
            state: self.state.parameters().clone(),
            ln_lik: self.ln_lik,
            mass: self.mass,
            rho: self.rho,
            iterations: self.iterations,
            restored: self.restored,
        }
    }
}

impl<M> Online<M> {
    /// The model that is learnt.
    pub fn model(&self) -> &M {
        &self.model
    }

    /// A random start for batches whose modes other than the streamed one have these sizes: uniform draws from the simplex, the same as
    /// those of the batch model. The shapes of a model by variational Bayes are drawn uniformly between 0.5 and 1.5: see [`drawn`](Self::drawn()).
    ///
    /// # Errors
    ///
    /// Those of [`Settings::check`]; [`FitError`]: no mode besides the streamed one, a mode of size 0.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{Online, Plca};
    /// let learner = Online::new(Plca::new(2));
    /// let state = learner.init::<f64>(&[5, 7], &mut plca_em::seed(0))?;
    /// assert_eq!(state.factors[1].shape(), (7, 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn init<T: Real>(
        &self,
        sizes: &[usize],
        rng: &mut dyn Rng,
    ) -> Result<OnlineState<T>, FitError>
    where
        M: Streamed<T>,
    {
        self.check()?;
        let k = self.model.components();
        let factors = sizes.iter().map(|&n| self.model.drawn(n).drawn(rng));
        let factors = factors.collect();
        self.start(DVector::from_element(k, T::one()), factors)
    }

    /// The start of a stream from these weights and factors: [`OnlineState::new`], of a model by variational Bayes [`OnlineState::of_shapes`].
    ///
    /// # Errors
    ///
    /// Those of [`Settings::check`]; as there.
    pub fn start<T: Real>(
        &self,
        weights: DVector<T>,
        factors: Vec<DMatrix<T>>,
    ) -> Result<OnlineState<T>, FitError>
    where
        M: Streamed<T>,
    {
        self.check()?;
        match self.model.drawn(1).constraint {
            Constraint::Positive => OnlineState::of_shapes(factors),
            _ => OnlineState::new(weights, factors),
        }
    }

    /// Learns from a batch: any data of which all modes but the streamed one have the sizes of the state.
    ///
    /// Indices without mass (empty documents) take no part. Where the batch has something that no component reaches any more, a word
    /// not seen before, the components get a trace of it, 1e-12. Cost: an E-step without the counts of the factors for every local
    /// iteration, and one with them.
    ///
    /// # Errors
    ///
    /// Those of [`Settings::check`]; [`FitError`]; then nothing has changed. A state that [`check`](OnlineState::check) refuses or that has another number of
    /// components, a batch of another shape or without mass, something observed where a frozen factor has nothing, a prior that does not fit;
    /// [`FitError::Interrupted`] where [`interrupt`](Self::interrupt()) says so.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{Online, Plca};
    /// use plca_em::tensor::{DenseTensor, Order};
    /// let learner = Online::new(Plca::new(2));
    /// let mut state = learner.init(&[2], &mut plca_em::seed(0))?;
    /// for frames in [vec![3.0, 0.0, 1.0, 2.0], vec![0.0, 6.0, 4.0, 2.0]] {
    ///     learner.partial_fit(&mut state, &DenseTensor::new(vec![2, 2], frames, Order::RowMajor)?)?;
    /// }
    /// assert_eq!((state.batches, state.seen), (2, 18.0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn partial_fit<T: Real>(
        &self,
        state: &mut OnlineState<T>,
        batch: &dyn Data<T>,
    ) -> Result<Batch<M::State>, FitError>
    where
        M: Streamed<T>,
    {
        self.learn(state, batch, None)
    }

    /// Learns from a batch as [`partial_fit`](Self::partial_fit) does, starting from its mixtures of the last pass: for passes over batches
    /// whose mixtures fit into memory. Fewer local iterations are then enough.
    ///
    /// # Errors
    ///
    /// As there, and for mixtures of another shape.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{Local, Online, Plsa, StepSize};
    /// use plca_em::tensor::{DenseTensor, Order};
    /// // Batch EM: all data in one batch, of which nothing is remembered but the mixtures.
    /// let learner = Online::new(Plsa::new(2))
    ///     .step(StepSize::Constant(1.0))
    ///     .local(Local { max_iter: 1, tol: 0.0 });
    /// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
    /// let mut state = learner.init(&[2], &mut plca_em::seed(0))?;
    /// let mut last = learner.partial_fit(&mut state, &v)?;
    /// for _ in 0..50 {
    ///     let next = learner.partial_fit_from(&mut state, &v, &last.state)?;
    ///     assert!(next.ln_lik >= last.ln_lik - 1e-12);
    ///     last = next;
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn partial_fit_from<T: Real>(
        &self,
        state: &mut OnlineState<T>,
        batch: &dyn Data<T>,
        mixtures: &M::State,
    ) -> Result<Batch<M::State>, FitError>
    where
        M: Streamed<T>,
    {
        self.learn(state, batch, Some(mixtures))
    }
}
