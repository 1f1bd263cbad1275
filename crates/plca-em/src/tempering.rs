//! Tempered EM on a schedule, stopped and cooled by what held-out counts say.

use plca_fit::{Algorithm, Direction, Outcome, Stop, StopReason};
use plca_tensor::{Data, Real};
use rand::Rng;

use crate::plca::Missing;
use crate::{
    EmError, ParamError, PlcaEm, PlcaInit, PlsaEm, PlsaInit,
    before::{Plca, PlcaState, Plsa, PlsaState},
    hold_out, perplexity,
};

/// When the power of tempered EM falls, and when the run is given up.
///
/// Iterations run at one power as long as each lowers the perplexity of the held-out counts. Then the power is multiplied by
/// `eta` and the run goes on from the best state so far. It ends when a lower power does not lower the perplexity at all.
///
/// ```
/// use plca_em::Cooling;
/// let cooling = Cooling { start: 0.95, share: 0.2, ..Cooling::default() };
/// assert_eq!(cooling.eta, 0.9);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Cooling {
    /// First power, in `(0, 1]` (default 1, plain EM).
    pub start: f64,
    /// What the power is multiplied by, in `(0, 1)` (default 0.9).
    pub eta: f64,
    /// An iteration counts as an improvement if it lowers the perplexity by more than `tol` times its value (default 1e-6).
    /// With 0 the power falls for ever: the run ends with its iterations alone.
    pub tol: f64,
    /// Every count is held out with this probability (default 0.1).
    pub share: f64,
}

impl Default for Cooling {
    fn default() -> Self {
        Self {
            start: 1.0,
            eta: 0.9,
            tol: 1e-6,
            share: 0.1,
        }
    }
}

impl Cooling {
    /// Refuses schedules that mean nothing.
    ///
    /// # Errors
    ///
    /// [`ParamError`] with the offending value.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{Cooling, ParamError};
    /// assert!(Cooling::default().check().is_ok());
    /// assert_eq!(Cooling { eta: 1.0, ..Cooling::default() }.check(), Err(ParamError::Eta(1.0)));
    /// ```
    pub fn check(&self) -> Result<(), ParamError> {
        if !(self.start > 0.0 && self.start <= 1.0) {
            Err(ParamError::Temper(self.start))
        } else if !(self.eta > 0.0 && self.eta < 1.0) {
            Err(ParamError::Eta(self.eta))
        } else if !(self.share > 0.0 && self.share < 1.0) {
            Err(ParamError::Share(self.share))
        } else if !(self.tol.is_finite() && self.tol >= 0.0) {
            Err(ParamError::Tolerance(self.tol))
        } else {
            Ok(())
        }
    }
}

/// An algorithm whose next step has a tempering power.
///
/// ```
/// use plca_em::{before::Plca, PlcaInit, Tempered};
/// use plca_tensor::{DenseTensor, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// fn halve<A: Tempered>(_: &A, state: &mut A::State) { *A::power(state) *= 0.5; }
/// let v = DenseTensor::<f64>::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
/// let plca = Plca::builder(2).build()?;
/// let mut state = plca.init(&v, &PlcaInit::default(), &mut ChaCha8Rng::seed_from_u64(0))?;
/// let em = plca.on(&v)?;
/// halve(&em, &mut state);
/// assert_eq!((state.power, Tempered::total(&em)), (0.5, 6.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Tempered: Algorithm<Error = EmError> {
    /// The power of the next step.
    fn power(state: &mut Self::State) -> &mut f64;
    /// Log-likelihood of the data, untempered and without priors.
    ///
    /// # Errors
    ///
    /// A state that is no model of the data, data that could not be read.
    fn ln_lik(&self, state: &Self::State) -> Result<f64, EmError>;
    /// Sum of the data.
    fn total(&self) -> f64;
}

impl<T: Real> Tempered for PlcaEm<'_, T> {
    fn power(state: &mut PlcaState<T>) -> &mut f64 {
        &mut state.power
    }

    fn ln_lik(&self, state: &PlcaState<T>) -> Result<f64, EmError> {
        PlcaEm::ln_lik(self, state)
    }

    fn total(&self) -> f64 {
        self.data.total()
    }
}

impl<T: Real> Tempered for PlsaEm<'_, T> {
    fn power(state: &mut PlsaState<T>) -> &mut f64 {
        &mut state.power
    }

    fn ln_lik(&self, state: &PlsaState<T>) -> Result<f64, EmError> {
        PlsaEm::ln_lik(self, state)
    }

    fn total(&self) -> f64 {
        self.data.total()
    }
}

/// Where a scheduled run stands.
///
/// ```
/// use plca_em::{before::{Plca, PlcaState}, CooledEm, Cooling, hold_out};
/// use nalgebra::{dmatrix, dvector};
/// use plca_tensor::{DenseTensor, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let v = DenseTensor::<f64>::new(vec![2, 2], vec![30.0, 10.0, 0.0, 60.0], Order::RowMajor)?;
/// let (plca, parts) = (Plca::builder(1).build()?, hold_out(&v, 0.2, &mut ChaCha8Rng::seed_from_u64(0))?);
/// let cooled = CooledEm::new(plca.on(&v)?, plca.on(&parts.train)?, plca.on(&parts.held)?, Cooling::default())?;
/// let even = PlcaState { weights: dvector![1.0], factors: vec![dmatrix![0.5; 0.5]; 2], power: 1.0, iteration: 0 };
/// let state = cooled.start(even)?;
/// assert_eq!((state.improved, state.ended, state.best.power), (true, false, 1.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct CooledState<S> {
    /// The state of the lowest held-out perplexity so far: what the run is for.
    pub best: S,
    /// Held-out perplexity of [`best`](Self::best).
    pub perplexity: f64,
    /// The state that the next iteration starts from.
    pub current: S,
    /// Whether the present power has lowered the perplexity, or is the first.
    pub improved: bool,
    /// Whether the run was given up.
    pub ended: bool,
}

/// Tempered EM of the training part under a [`Cooling`] that the held-out part drives.
///
/// The objective is that of the best state on the whole data, untempered; it is what the run reports, not what it maximises.
///
/// ```
/// use plca_em::{before::{Plca, PlcaState}, CooledEm, Cooling, Stop, hold_out, run};
/// use nalgebra::{dmatrix, dvector};
/// use plca_tensor::{DenseTensor, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let v = DenseTensor::<f64>::new(vec![2, 2], vec![30.0, 10.0, 0.0, 60.0], Order::RowMajor)?;
/// let (plca, parts) = (Plca::builder(1).build()?, hold_out(&v, 0.2, &mut ChaCha8Rng::seed_from_u64(0))?);
/// let cooled = CooledEm::new(plca.on(&v)?, plca.on(&parts.train)?, plca.on(&parts.held)?, Cooling::default())?;
/// let even = PlcaState { weights: dvector![1.0], factors: vec![dmatrix![0.5; 0.5]; 2], power: 1.0, iteration: 0 };
/// let start = cooled.start(even)?;
/// let before = start.perplexity;
/// let fit = run(&cooled, start, &Stop { max_iter: 5, ..Stop::default() }, ())?;
/// assert!(fit.state.perplexity <= before);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct CooledEm<W, P> {
    whole: W,
    train: P,
    held: P,
    schedule: Cooling,
}

impl<W: Tempered, P: Tempered<State = W::State>> CooledEm<W, P>
where
    W::State: Clone,
{
    /// From one configuration bound to the whole data, to the training part and to the held-out part.
    ///
    /// # Errors
    ///
    /// [`ParamError`]: see [`Cooling::check`].
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{before::Plca, CooledEm, Cooling, hold_out};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let v = DenseTensor::<f64>::new(vec![2, 2], vec![30.0, 10.0, 0.0, 60.0], Order::RowMajor)?;
    /// let (plca, parts) = (Plca::builder(1).build()?, hold_out(&v, 0.2, &mut ChaCha8Rng::seed_from_u64(0))?);
    /// let (whole, train, held) = (plca.on(&v)?, plca.on(&parts.train)?, plca.on(&parts.held)?);
    /// assert!(CooledEm::new(whole, train, held, Cooling { eta: 1.0, ..Cooling::default() }).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(whole: W, train: P, held: P, schedule: Cooling) -> Result<Self, ParamError> {
        schedule.check()?;
        Ok(Self {
            whole,
            train,
            held,
            schedule,
        })
    }

    /// A run that begins at `state`, with the schedule's first power.
    ///
    /// # Errors
    ///
    /// As [`perplexity`](Self::perplexity).
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{before::{Plca, PlcaState}, CooledEm, Cooling, hold_out};
    /// use nalgebra::{dmatrix, dvector};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let v = DenseTensor::<f64>::new(vec![2, 2], vec![30.0, 10.0, 0.0, 60.0], Order::RowMajor)?;
    /// let (plca, parts) = (Plca::builder(1).build()?, hold_out(&v, 0.2, &mut ChaCha8Rng::seed_from_u64(0))?);
    /// let cooled = CooledEm::new(plca.on(&v)?, plca.on(&parts.train)?, plca.on(&parts.held)?, Cooling { start: 0.5, ..Cooling::default() })?;
    /// let even = PlcaState { weights: dvector![1.0], factors: vec![dmatrix![0.5; 0.5]; 2], power: 1.0, iteration: 0 };
    /// assert_eq!(cooled.start(even)?.current.power, 0.5);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn start(&self, mut state: W::State) -> Result<CooledState<W::State>, EmError> {
        *W::power(&mut state) = self.schedule.start;
        Ok(CooledState {
            perplexity: self.perplexity(&state)?,
            best: state.clone(),
            current: state,
            // The first power is no decrease that could fail to help.
            improved: true,
            ended: false,
        })
    }

    /// Held-out perplexity of a state.
    ///
    /// # Errors
    ///
    /// As [`Tempered::ln_lik`].
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{before::{Plca, PlcaState}, CooledEm, Cooling, hold_out};
    /// use nalgebra::{dmatrix, dvector};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let v = DenseTensor::<f64>::new(vec![2, 2], vec![30.0, 10.0, 0.0, 60.0], Order::RowMajor)?;
    /// let (plca, parts) = (Plca::builder(1).build()?, hold_out(&v, 0.2, &mut ChaCha8Rng::seed_from_u64(0))?);
    /// let cooled = CooledEm::new(plca.on(&v)?, plca.on(&parts.train)?, plca.on(&parts.held)?, Cooling::default())?;
    /// let even = PlcaState { weights: dvector![1.0], factors: vec![dmatrix![0.5; 0.5]; 2], power: 1.0, iteration: 0 };
    /// assert!((cooled.perplexity(&even)? - 4.0).abs() < 1e-12);            // four cells alike
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn perplexity(&self, state: &W::State) -> Result<f64, EmError> {
        Ok(perplexity(self.held.ln_lik(state)?, self.held.total()))
    }
}

impl<W: Tempered, P: Tempered<State = W::State>> Algorithm for CooledEm<W, P>
where
    W::State: Clone,
{
    type State = CooledState<W::State>;
    type Error = EmError;

    fn step(&self, state: &mut Self::State, measure: bool) -> Result<Option<f64>, EmError> {
        let value = if measure {
            Some(self.whole.objective(&state.best)?)
        } else {
            None
        };
        let mut next = state.current.clone();
        self.train.step(&mut next, false)?;
        let perplexity = self.perplexity(&next)?;
        state.current = next;
        // [HOFMANN alg. TEM] [SPEC 1.4] stop early, cool while it helps, give up when it no longer does
        if perplexity < state.perplexity * (1.0 - self.schedule.tol) {
            state.best = state.current.clone();
            state.perplexity = perplexity;
            state.improved = true;
        } else if state.improved || self.schedule.tol == 0.0 {
            let power = *W::power(&mut state.current) * self.schedule.eta;
            state.current = state.best.clone();
            // A power of 0 would forget the data.
            *W::power(&mut state.current) = power.max(f64::EPSILON);
            state.improved = false;
        } else {
            state.ended = true;
        }
        Ok(value)
    }

    fn objective(&self, state: &Self::State) -> Result<f64, EmError> {
        self.whole.objective(&state.best)
    }

    fn direction(&self) -> Direction {
        self.whole.direction()
    }

    fn finished(&self, state: &Self::State) -> Option<StopReason> {
        state.ended.then_some(StopReason::HeldOut)
    }
}

/// The schedule's own tests end a run, or its iterations.
fn only_iterations(stop: &Stop) -> Stop {
    Stop {
        tol: 0.0,
        residual_tol: None,
        ..*stop
    }
}

impl<T: Real> Plca<T> {
    /// Draws a start and runs tempered EM on a schedule. Of `stop` only the number of iterations and the distance of
    /// checks count; the configuration's own power is not used.
    ///
    /// # Errors
    ///
    /// As [`fit`](Self::fit) and [`hold_out`]; [`ParamError`] for a bad schedule or multiplicative updates of masked data.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{before::Plca, PlcaInit, Cooling, Stop};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let v = DenseTensor::new(vec![3, 3], vec![8.0, 1.0, 0.0, 7.0, 2.0, 1.0, 0.0, 1.0, 9.0], Order::RowMajor)?;
    /// let mut rng = ChaCha8Rng::seed_from_u64(1);
    /// let fit = Plca::builder(2).build()?.fit_tempered(&v, &Cooling::default(), &PlcaInit::default(), &Stop::default(), &mut rng)?;
    /// assert!(fit.state.best.power <= 1.0 && fit.state.perplexity < 9.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fit_tempered<R>(
        &self,
        data: &dyn Data<T>,
        schedule: &Cooling,
        init: &PlcaInit<T>,
        stop: &Stop,
        rng: &mut R,
    ) -> Result<Outcome<CooledState<PlcaState<T>>>, EmError>
    where
        R: Rng + ?Sized,
    {
        stop.check()?;
        if self.missing == Missing::Multiplicative && !data.is_complete() {
            let conflict = "multiplicative treatment of missing cells does not go with tempering";
            return Err(ParamError::Conflict(conflict).into());
        }
        let parts = hold_out(data, schedule.share, rng)?;
        let (train, held) = (self.on(&parts.train)?, self.on(&parts.held)?);
        let algorithm = CooledEm::new(self.on(data)?, train, held, *schedule)?;
        let state = algorithm.start(self.init(data, init, rng)?)?;
        plca_fit::run(&algorithm, state, &only_iterations(stop), ())
    }
}

impl<T: Real> Plsa<T> {
    /// As [`Plca::fit_tempered`]; the perplexity is that of the conditional distributions.
    ///
    /// # Errors
    ///
    /// As there.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{before::Plsa, Cooling, PlsaInit, Stop};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// // Of one row, nothing in a column is uncertain.
    /// let v = DenseTensor::<f64>::new(vec![1, 2], vec![800.0, 500.0], Order::RowMajor)?;
    /// let mut rng = ChaCha8Rng::seed_from_u64(0);
    /// let fit = Plsa::builder(1).build()?.fit_tempered(&v, &Cooling::default(), &PlsaInit::default(), &Stop::default(), &mut rng)?;
    /// assert!((fit.state.perplexity - 1.0).abs() < 1e-12);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fit_tempered<R>(
        &self,
        data: &dyn Data<T>,
        schedule: &Cooling,
        init: &PlsaInit<T>,
        stop: &Stop,
        rng: &mut R,
    ) -> Result<Outcome<CooledState<PlsaState<T>>>, EmError>
    where
        R: Rng + ?Sized,
    {
        stop.check()?;
        let parts = hold_out(data, schedule.share, rng)?;
        let (train, held) = (self.on(&parts.train)?, self.on(&parts.held)?);
        let algorithm = CooledEm::new(self.on(data)?, train, held, *schedule)?;
        let state = algorithm.start(self.init(data, init, rng)?)?;
        plca_fit::run(&algorithm, state, &only_iterations(stop), ())
    }
}
