//! Coordinate descent with guarded extrapolation: optima of EM's objective in a fraction of the time.
//!
//! With all factors but one fixed the likelihood falls apart into one problem of `K` numbers for every row of that factor
//! ([`Rows`]). An iteration improves them mode after mode by scalar Newton steps and carries every factor on in the direction in
//! which it moved; it is kept only if the objective did not get worse, and repeated without the extrapolation otherwise.

mod models;
mod product;
mod separable;
mod state;
mod sweep;

use nalgebra::DMatrix;
use plca_fit::{Algorithm, Direction, Failure, StopReason};
use plca_tensor::Real;
use plca_tensor::arrange::Rows;

use crate::EmError;
use crate::blocks::following;
use crate::init::check_block;
use state::Place;
use sweep::Swept;

pub use product::Product;
pub use separable::{Plan, Separable};
pub use state::FastState;

/// How far an iteration goes and when extrapolation begins; the bench `fast` compares paces on several kinds of data.
///
/// ```
/// use plca_em::Pace;
/// assert_eq!(Pace { passes: 2, ..Pace::default() }.passes, 2);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Passes over the coordinates of a row before the next factor's turn (default 1).
    pub passes: usize,
    /// Extrapolation begins once an iteration gains less than this share of the divergence (default 0.2).
    pub below: f64,
    /// Iterations of EM before the first of coordinate descent (default 0).
    pub em_first: usize,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            passes: 1,
            below: 0.2,
            em_first: 0,
        }
    }
}

/// A model's EM algorithm turned into coordinate descent with guarded extrapolation: the same model, objective and optima, in fewer
/// and longer iterations.
///
/// For PLCA of any order, PLSA in both directions and KL-NMF, on all data, with frozen factors and with Dirichlet priors of shape
/// at least 1. Every state is an exact model and none is worse than the one before. Zeros of the start stay; other entries may fall
/// to a rounding error of what they belong to, from where they come back if the rest makes room. It may end at another local optimum
/// than EM: compare objectives. Unless its residual ends it, a run takes one step of EM more, for extrapolation goes too far by what
/// such a step gets back; a run that is resumed goes on from before it.
///
/// ```
/// use plca_em::{before::Plca, Fast, FastState, PlcaInit, Stop, run};
/// use plca_tensor::{DenseTensor, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let v = DenseTensor::new(vec![3, 3], vec![5.0, 1.0, 2.0, 1.0, 4.0, 3.0, 2.0, 2.0, 9.0], Order::RowMajor)?;
/// let plca = Plca::builder(2).build()?;
/// let start = plca.init(&v, &PlcaInit::default(), &mut ChaCha8Rng::seed_from_u64(1))?;
/// let stop = Stop { max_iter: 40, tol: 0.0, ..Stop::default() };
/// let em = run(&plca.on(&v)?, start.clone(), &stop, ())?;
/// let fast = Fast::new(plca.on(&v)?)?;
/// let found = run(&fast, FastState::new(start), &stop, ())?;
/// assert!(found.objective > em.objective);
/// let weights = &found.state.model().weights;
/// assert!((weights.sum() - 1.0f64).abs() < 1e-12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Fast<T: Real, A> {
    model: A,
    plan: Plan,
    rows: Rows<T>,
    /// `Σ V ln V` less what the best scale takes: minus the likelihood, the divergence.
    entropy: f64,
    pace: Pace,
}

impl<T: Real, A: Separable<T>> Fast<T, A> {
    /// Arranges the data; of every free mode there is a copy.
    ///
    /// # Errors
    ///
    /// [`EmError::NotSeparable`] if only EM can do it: tempering, frozen weights or mixtures, priors other than Dirichlet
    /// distributions of shape at least 1.
    pub fn new(model: A) -> Result<Self, EmError> {
        let plan = model.plan()?;
        let data = model.data();
        let rows = Rows::new(data, plan.free.iter().copied().collect())?;
        let x_ln_x = |x: &f64| if *x > 0.0 { x * x.ln() } else { 0.0 };
        let scales = match plan.given {
            Some(mode) => rows.totals(mode).iter().map(x_ln_x).sum(),
            None => x_ln_x(&data.total()),
        };
        let entropy = model.self_information()? - scales;
        let pace = Pace::default();
        Ok(Self {
            model,
            plan,
            rows,
            entropy,
            pace,
        })
    }

    /// Sets the pace.
    ///
    /// ```
    /// use plca_em::{before::Nmf, Fast, Pace};
    /// use plca_tensor::{DenseTensor, Order};
    /// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
    /// let nmf = Nmf::builder(2).build()?;
    /// let fast = Fast::<f64, _>::new(nmf.on(&v)?)?.pace(Pace { passes: 2, ..Pace::default() });
    /// # Ok::<(), plca_em::EmError>(())
    /// ```
    #[must_use]
    pub fn pace(mut self, pace: Pace) -> Self {
        self.pace = pace;
        self
    }

    /// The algorithm that this one replaces.
    pub fn em(&self) -> &A {
        &self.model
    }

    /// Whether [`new`](Self::new) takes the model, without looking at the data.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new).
    pub fn check(model: &A) -> Result<(), EmError> {
        model.plan().map(drop)
    }

    /// Where a run begins.
    fn begin(&self, model: &A::State) -> Result<Place<T>, EmError> {
        let value = self.model.objective(model)?;
        if !value.is_finite() {
            // Its step names the cell that the model excludes.
            self.model.step(&mut model.clone(), true)?;
        }
        let mut kept = self.model.product(model);
        self.settle(&mut kept)?;
        Ok(Place {
            ahead: kept.clone(),
            kept,
            value,
            best: value,
            beta: 0.0,
            beta_max: 1.0,
            steps: 0,
        })
    }

    /// Refuses a place that is none of this model on these data.
    fn check_place(&self, place: &Place<T>) -> Result<(), EmError> {
        let shape = self.model.data().shape();
        let k = self.plan.components;
        for product in [&place.kept, &place.ahead] {
            let scale = DMatrix::from_column_slice(product.scale.len(), 1, &product.scale);
            check_block("scale", &scale, (k, 1))?;
            if product.factors.len() != shape.len() {
                let (expected, got) = (product.factors.len(), shape.len());
                return Err(EmError::Order { expected, got });
            }
            for (j, (factor, &size)) in product.factors.iter().zip(shape).enumerate() {
                check_block(&format!("factor_{j}"), factor, (k, size))?;
            }
        }
        Ok(())
    }

    /// Whether an objective is not worse than the best so far, but for rounding.
    fn accepts(&self, value: f64, best: f64) -> bool {
        let slack = 8.0 * T::EPSILON.to_f64() * (1.0 + best.abs());
        match self.model.direction() {
            Direction::Maximise => value >= best - slack,
            Direction::Minimise => value <= best + slack.max(self.noise()),
        }
    }

    /// Rounding of a divergence: of the model's cells in their scalar, and of a small difference of large numbers.
    fn noise(&self) -> f64 {
        let cells = T::EPSILON.to_f64() * self.model.data().total();
        8.0 * (cells + f64::EPSILON * self.entropy.abs())
    }

    /// Takes a sweep if it is not worse; whether it did.
    fn take(
        &self,
        model: &mut A::State,
        place: &mut Place<T>,
        swept: Swept<T>,
    ) -> Result<bool, EmError> {
        let faint = swept.product.is_faint();
        // The likelihood is known: only priors look at the new state.
        let new = (faint || self.plan.has_priors()).then(|| {
            let mut new = model.clone();
            self.model.write(&self.plan, &swept.product, &mut new);
            new
        });
        let value = match &new {
            // The E-step may take for 0 what the row problems do not.
            Some(new) if faint => self.model.objective(new)?,
            new => (self.model).reached(swept.ln_lik, new.as_ref().unwrap_or(model)),
        };
        if !self.accepts(value, place.best) {
            return Ok(false);
        }
        match new {
            Some(new) => *model = new,
            None => self.model.write(&self.plan, &swept.product, model),
        }
        let divergence = self.entropy - swept.ln_lik;
        if place.beta <= 0.0 && (value - place.value).abs() < self.pace.below * divergence {
            place.beta = FIRST;
        }
        place.kept = swept.product;
        place.ahead = swept.ahead;
        self.measured(place, value);
        Ok(true)
    }

    fn measured(&self, place: &mut Place<T>, value: f64) {
        place.value = value;
        if self.model.direction().not_worse(value, place.best) {
            place.best = value;
        }
    }

    /// One step of EM, unless rounding makes it worse.
    fn em_step(&self, model: &mut A::State, place: &mut Place<T>) -> Result<(), EmError> {
        let mut new = model.clone();
        self.model.step(&mut new, false)?;
        let value = self.model.objective(&new)?;
        if self.accepts(value, place.best) {
            place.kept = self.model.product(&new);
            self.settle(&mut place.kept)?;
            *model = new;
            self.measured(place, value);
        }
        place.ahead = place.kept.clone();
        Ok(())
    }

    /// One iteration.
    fn advance(&self, model: &mut A::State, place: &mut Place<T>) -> Result<(), EmError> {
        place.steps = following(place.steps);
        if place.steps <= self.pace.em_first {
            return self.em_step(model, place);
        }
        if place.beta > 0.0 {
            let beta = place.beta;
            let swept = self.sweep(&place.kept, place.ahead.clone(), beta)?;
            if self.take(model, place, swept)? {
                // [AG alg. 1] [SPEC 10.1] β <- min(1.05 β, β_max), β_max <- min(1.01 β_max, 1)
                place.beta = (GROWTH * beta).min(place.beta_max);
                place.beta_max = (BOUND * place.beta_max).min(1.0);
                return Ok(());
            }
            // [AG alg. 1] [SPEC 10.1] β_max <- β, β <- β / 1.5
            place.beta_max = beta;
            place.beta = beta / FALL;
        }
        let swept = self.sweep(&place.kept, place.kept.clone(), 0.0)?;
        if self.take(model, place, swept)? {
            Ok(())
        } else {
            self.em_step(model, place)
        }
    }
}

/// The first `β`; its growth and that of its bound where an iteration was accepted, its fall where not.
const FIRST: f64 = 0.5;
const GROWTH: f64 = 1.05;
const BOUND: f64 = 1.01;
const FALL: f64 = 1.5;

impl<T: Real, A: Separable<T>> Algorithm for Fast<T, A> {
    type State = FastState<T, A::State>;
    type Error = EmError;

    fn step(&self, state: &mut Self::State, measure: bool) -> Result<Option<f64>, EmError> {
        self.model.check_state(&state.model)?;
        // A step that fails leaves the state as it was.
        let mut place = match &state.place {
            Some(place) => {
                self.check_place(place)?;
                place.clone()
            }
            None => self.begin(&state.model)?,
        };
        let before = measure.then_some(place.value);
        self.advance(&mut state.model, &mut place)?;
        state.place = Some(place);
        state.end = None;
        Ok(before)
    }

    fn objective(&self, state: &Self::State) -> Result<f64, EmError> {
        self.model.objective(state.model())
    }

    fn direction(&self) -> Direction {
        self.model.direction()
    }

    fn residual(&self, state: &Self::State) -> Result<Option<f64>, EmError> {
        // Of where the next iteration begins, so that a run ends alike whether or not it was resumed.
        self.model.residual(&state.model)
    }

    fn finish(&self, state: &mut Self::State) -> Result<(), EmError> {
        state.end = None;
        let mut end = state.model.clone();
        let value = match self.model.step(&mut end, true) {
            Ok(Some(value)) => value,
            Ok(None) => self.model.objective(&state.model)?,
            // The model stands as it is.
            Err(error) if error.rejects_point() => return Ok(()),
            Err(error) => return Err(error),
        };
        // [SPEC 10.1] a step of EM, kept if it is better
        let reached = self.model.objective(&end)?;
        let better = value != reached && self.direction().not_worse(reached, value);
        state.end = better.then_some(end);
        Ok(())
    }

    fn finished(&self, state: &Self::State) -> Option<StopReason> {
        self.model.finished(state.model())
    }
}
