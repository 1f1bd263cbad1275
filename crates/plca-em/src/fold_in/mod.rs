//! New data under learned factors, with a certified distance to the optimum.
//!
//! With all factors but one fixed the log-likelihood `L` is concave in the rest, so every start ends at the same value, and the
//! multiplier `g` of a free parameter (its gradient relative to that of the optimum) bounds what is still to be gained:
//!
//! ```text
//! L* - L <= v gap,      gap = max_z g_z - 1
//! ```
//!
//! with `v` the sum of the observation for PLSA and NMF (one gap for every observation), of all the data for PLCA.

mod nmf;
mod plca;
mod plsa;
mod shifted;

use nalgebra::DMatrix;
use plca_fit::{Algorithm, Direction, Outcome, Stop, StopReason};
use plca_tensor::{Cp, Data, Factor, Modes, Part, Real, Request, Rule};

use crate::{EmError, Fast, FastState, ParamError, Separable};

/// What becomes of an observation where no learned component reaches.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_em::{before::PlsaState, FoldIn, Given, Impossible};
/// use plca_tensor::{DenseTensor, Order};
/// let learned = PlsaState { basis: dmatrix![1.0f64; 0.0], mixture: dmatrix![1.0], power: 1.0, iteration: 0 };
/// let new = DenseTensor::new(vec![2, 1], vec![3.0, 1.0], Order::RowMajor)?;
/// assert!(learned.fold_in(&new, Given::Columns, &FoldIn::default()).is_err());
/// let how = FoldIn { impossible: Impossible::Drop, ..FoldIn::default() };
/// assert_eq!(learned.fold_in(&new, Given::Columns, &how)?.dropped, 1.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Impossible {
    /// [`EmError::Impossible`] names the first one.
    #[default]
    Refuse,
    /// It is left out; [`Explained::dropped`] says how much was.
    Drop,
}

/// What new data are explained by.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_em::{before::PlsaState, FoldIn, Given, Solver};
/// use plca_tensor::{DenseTensor, Order};
/// let learned = PlsaState { basis: dmatrix![0.6f64, 0.3; 0.4, 0.7], mixture: dmatrix![1.0; 0.0], power: 1.0, iteration: 0 };
/// let new = DenseTensor::new(vec![2, 1], vec![4.0, 6.0], Order::RowMajor)?;
/// let by = |solver| learned.fold_in(&new, Given::Columns, &FoldIn { solver, ..FoldIn::default() });
/// let (em, fast) = (by(Solver::Em)?.outcome, by(Solver::Fast)?.outcome);
/// assert!(fast.iterations < em.iterations);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Solver {
    /// Expectation-maximisation.
    #[default]
    Em,
    /// Coordinate descent, [`Fast`]: far fewer and longer iterations. Not for shifted models.
    Fast,
}

/// How new data are explained.
///
/// ```
/// use plca_em::{FoldIn, Impossible};
/// let how = FoldIn { impossible: Impossible::Drop, ..FoldIn::default() };
/// assert_eq!(how.stop.residual_tol, Some(1e-6));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FoldIn {
    /// When to stop; the residual is the largest gap (default: at 1e-6, or after 1000 iterations, or once the objective
    /// changes by 1e-12 of its value only).
    pub stop: Stop,
    /// Observations that no component explains (default: refused).
    pub impossible: Impossible,
    /// By what (default: EM).
    pub solver: Solver,
}

impl Default for FoldIn {
    fn default() -> Self {
        Self {
            stop: Stop {
                tol: 1e-12,
                residual_tol: Some(1e-6),
                ..Stop::default()
            },
            impossible: Impossible::default(),
            solver: Solver::default(),
        }
    }
}

/// New data explained; the learned factors in the state are those given, bit for bit.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_em::{before::PlsaState, FoldIn, Given};
/// use plca_tensor::{DenseTensor, Order};
/// let learned = PlsaState { basis: dmatrix![1.0f64, 0.0; 0.0, 1.0], mixture: dmatrix![1.0; 0.0], power: 1.0, iteration: 0 };
/// let new = DenseTensor::new(vec![2, 2], vec![3.0, 0.0, 1.0, 0.0], Order::RowMajor)?;
/// let explained = learned.fold_in(&new, Given::Columns, &FoldIn::default())?;
/// assert_eq!((explained.gap.len(), explained.dropped, explained.empty), (2, 0.0, vec![1]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Explained<S> {
    /// The run; its state holds the learned factors and what was found.
    pub outcome: Outcome<S>,
    /// Certified gaps, one for every observation (PLCA: one for all): the log-likelihood is at most `v gap` below its maximum.
    pub gap: Vec<f64>,
    /// Sum of the observations that were left out.
    pub dropped: f64,
    /// Observations without any mass: their parameters are those of the start and mean nothing.
    pub empty: Vec<usize>,
}

/// A fold-in whose residual is its largest gap.
struct Certified<A, G> {
    algorithm: A,
    gap: G,
}

impl<A: Algorithm, G: Fn(&A::State) -> Result<Vec<f64>, A::Error>> Algorithm for Certified<A, G> {
    type State = A::State;
    type Error = A::Error;

    fn step(&self, state: &mut A::State, measure: bool) -> Result<Option<f64>, A::Error> {
        self.algorithm.step(state, measure)
    }

    fn objective(&self, state: &A::State) -> Result<f64, A::Error> {
        self.algorithm.objective(state)
    }

    fn direction(&self) -> Direction {
        self.algorithm.direction()
    }

    // [SPEC 1.5] stop by the gap
    fn residual(&self, state: &A::State) -> Result<Option<f64>, A::Error> {
        let gaps = (self.gap)(state)?;
        Ok(Some(gaps.into_iter().fold(0.0, f64::max)))
    }

    fn finish(&self, state: &mut A::State) -> Result<(), A::Error> {
        self.algorithm.finish(state)
    }

    fn finished(&self, state: &A::State) -> Option<StopReason> {
        self.algorithm.finished(state)
    }
}

/// Runs `algorithm`, or what is asked for in its place, from `state` and certifies where it ends.
fn certify<T: Real, A: Separable<T>>(
    algorithm: A,
    state: A::State,
    how: &FoldIn,
    gap: impl Fn(&A::State) -> Result<Vec<f64>, EmError>,
) -> Result<(Outcome<A::State>, Vec<f64>), EmError> {
    match how.solver {
        Solver::Em => certify_as_it_is(algorithm, state, &how.stop, gap),
        Solver::Fast => {
            let (fast, start) = (Fast::new(algorithm)?, FastState::new(state));
            let gap = |s: &FastState<T, A::State>| gap(s.model());
            let (outcome, gap) = certify_as_it_is(fast, start, &how.stop, gap)?;
            Ok((outcome.map(FastState::into_model), gap))
        }
    }
}

/// Runs `algorithm` from `state` and certifies where it ends.
fn certify_as_it_is<A: Algorithm<Error = EmError>>(
    algorithm: A,
    state: A::State,
    stop: &Stop,
    gap: impl Fn(&A::State) -> Result<Vec<f64>, EmError>,
) -> Result<(Outcome<A::State>, Vec<f64>), EmError> {
    stop.check()?;
    let certified = Certified { algorithm, gap };
    let outcome = plca_fit::run(&certified, state, stop, ())?;
    let gap = (certified.gap)(&outcome.state)?;
    Ok((outcome, gap))
}

/// Refuses data of another shape than the learned factors; `None` stands for the observations.
pub(crate) fn check_shape<T: Real>(
    shape: &[usize],
    learned: &[Option<Factor<'_, T>>],
) -> Result<(), EmError> {
    let fits = shape.len() == learned.len()
        && (learned.iter().zip(shape)).all(|(f, &n)| f.is_none_or(|f| f.rows() == n));
    if fits {
        return Ok(());
    }
    let size = |f: &Option<Factor<'_, T>>| f.map_or("any".into(), |f| f.rows().to_string());
    Err(EmError::Data {
        got: shape.to_vec(),
        expected: learned.iter().map(size).collect::<Vec<_>>().join(" x "),
    })
}

/// What of the data some component reaches, and the mass of the rest; `None` for the part that is everything.
fn possible<'a, T: Real>(
    data: &'a dyn Data<T>,
    learned: &[Option<Factor<'_, T>>],
    impossible: Impossible,
) -> Result<(Option<Part<'a, T>>, f64), EmError> {
    check_shape(data.shape(), learned)?;
    if learned.iter().flatten().any(|f| f.components() == 0) {
        return Err(ParamError::NoComponents.into());
    }
    let factors = || {
        learned
            .iter()
            .enumerate()
            .filter_map(|(j, f)| f.map(|f| (j, f)))
    };
    let everywhere = factors().all(|(_, f)| f.values().iter().all(|&x| x > T::zero()));
    if everywhere {
        return Ok((None, 0.0));
    }
    let components = factors().next().map_or(0, |(_, f)| f.components());
    let reached = |index: &[usize]| {
        (0..components).any(|z| factors().all(|(j, f)| f.get(index[j], z) > T::zero()))
    };
    let (mut dropped, mut first) = (0.0, None);
    data.visit(&mut |index, value| {
        if !reached(index) {
            dropped += value;
            first.get_or_insert_with(|| (index.to_vec(), value));
        }
    })?;
    match (first, impossible) {
        (None, _) => Ok((None, 0.0)),
        (Some((index, value)), Impossible::Refuse) => Err(EmError::Impossible { index, value }),
        (Some(_), Impossible::Drop) => {
            let part = Part::of(data, |index, x| if reached(index) { x } else { 0.0 })?;
            Ok((Some(part), dropped))
        }
    }
}

/// Observations without mass.
fn empty<T: Real>(data: &dyn Data<T>, along: usize) -> Result<Vec<usize>, EmError> {
    let sums = data.marginal(along)?.into_iter().enumerate();
    Ok(sums.filter(|&(_, v)| v <= 0.0).map(|(y, _)| y).collect())
}

/// `Σ_x Π_m F_m[x_m, z]` over the observed cells of every index of the free mode: what a unit of a free parameter can
/// explain, index by component. The entry of `factors` for the free mode is not looked at.
fn share<T: Real>(
    data: &dyn Data<T>,
    factors: &[Factor<'_, T>],
    free: usize,
) -> Result<DMatrix<T>, EmError> {
    let (n, k) = (data.shape()[free], factors[free].components());
    let ones = DMatrix::from_element(n, k, T::one());
    let mut factors = factors.to_vec();
    factors[free] = Factor::Columns(&ones);
    let model = Cp {
        weights: None,
        factors: &factors,
    };
    let exposure = Request::counts(Modes::one(free)).rule(Rule::Exposure);
    Ok(data.e_step(&model, &exposure)?.take(free))
}

/// The gap of one problem from gradient, share and value of its free parameters; 0 where nothing was observed.
fn gap<T: Real>(parameters: impl Iterator<Item = (T, T, T)> + Clone, total: f64) -> f64 {
    if total <= 0.0 {
        return 0.0;
    }
    let seen = parameters.filter(|&(_, share, _)| share > T::zero());
    let mass: f64 = (seen.clone())
        .map(|(_, s, x)| s.to_f64() * x.to_f64())
        .sum();
    // [SPEC 1.1] [SPEC 1.5] g = 1 where the parameter is positive at the optimum, in units in which the model's mass is v
    let largest = seen.fold(0.0, |g: f64, (m, s, _)| g.max(m.to_f64() / s.to_f64()));
    (largest * mass / total - 1.0).max(0.0)
}
