//! New data under learnt blocks, with a certified distance to the optimum.
//!
//! With all blocks but one fixed the log-likelihood `L` is concave in the rest. Every start ends at the same value, and the multiplier `g` of a
//! free parameter (its gradient relative to that of the optimum) bounds what the objective can still gain:
//!
//! ```math
//! L^* - L \le v \, \text{gap},
//! \qquad \text{gap} = \max_z g_z - 1
//! ```
//!
//! with `v` the sum of the observation for PLSA and NMF (one gap for every observation), of all the data for PLCA.

use nalgebra::DMatrix;
use plca_tensor::arrange::{Ending, Rows, Until};
use plca_tensor::{
    Cp, Data, Factor, Modes, Part, Real, Request, RowTerms, Rule, times_power_of_two,
};

use super::solver::fast::floored;
use super::stop::setters;
use super::{
    Algorithm, Checkpoint, Fit, FitError, Interrupt, Need, Outcome, Parameters, Run, Solver, State,
    Status, Stop,
};

/// The treatment of counts that no learnt component can explain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Impossible {
    /// The data are refused, with the first such cell.
    #[default]
    Refuse,
    /// They are left out, and counted. Where nothing is left of all data, as of a single observation that cannot be explained, the error is
    /// [`DataError::NoMass`](plca_tensor::DataError::NoMass).
    Drop,
}

/// The settings for the transform of new data under learnt blocks.
///
/// ```
/// use plca_fit::{Impossible, Transform};
/// let how = Transform::default().impossible(Impossible::Drop);
/// assert_eq!(how.stop.residual_tol, Some(1e-6));                      // of the gap
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Transform {
    /// The mode of the new observations, counted from 0 (default: the last). PLSA knows its own.
    pub along: Option<usize>,
    /// When to stop; the residual is the gap (default: 1e-6, or a change of 1e-12 per count and iteration). `auto` and `fast` solve the
    /// observations of PLSA, NMF and PLCA one by one, each checked after every iteration: it ends by its own gap, or before where rounding is all
    /// that still changes it; without a gap to reach, by its own change. Other solvers end all of them by the largest gap.
    pub stop: Stop,
    /// The treatment of counts that no component can explain.
    pub impossible: Impossible,
    /// The solver.
    pub solver: Solver,
    /// What ends the explanation from outside (default: nothing). Its status is then [`Interrupted`](super::Status::Interrupted).
    pub interrupt: Option<Interrupt>,
}

impl Default for Transform {
    fn default() -> Self {
        Self {
            along: None,
            stop: Stop::default().tol(1e-12).residual_tol(1e-6),
            impossible: Impossible::default(),
            solver: Solver::default(),
            interrupt: None,
        }
    }
}

setters! {
    Transform:
    along: usize;
    stop: Stop;
    impossible: Impossible;
    solver: Solver;
    interrupt: Interrupt;
}

impl Transform {
    /// The mode of the new observations, of a model with this number of modes.
    ///
    /// # Errors
    ///
    /// [`FitError::Mode`].
    pub fn mode(&self, modes: usize) -> Result<usize, FitError> {
        let mode = self.along.unwrap_or(modes.saturating_sub(1));
        match mode < modes {
            true => Ok(mode),
            false => Err(FitError::Mode { mode, modes }),
        }
    }
}

/// The transform of new data under learnt blocks, with a bound on its distance from the optimum.
///
/// ```math
/// L^* - L \le v \cdot \text{gap}, \qquad \text{gap} = \max_z g_z - 1
/// ```
///
/// `L` is the log-likelihood of an observation, of all the data for PLCA, `L*` the largest that it can have, and `v` the sum of the counts;
/// `g_z` is the derivative of `L` by the share of component `z`, divided by `v`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Explained<S: State> {
    /// The learnt blocks with those of the new data, and how the run came to them.
    pub fit: Fit<S>,
    /// The gap, in nats per count: what the objective can still gain at most, one number, or one for every observation.
    pub gap: Vec<f64>,
    /// The sum of the counts that were left out.
    pub dropped: f64,
    /// Observations without a count: their blocks are those of the start.
    pub empty: Vec<usize>,
}

impl<S: State> Explained<S> {
    /// What a model of your own returns: the fit, its gaps, the sum of what was left out, and the observations without a count.
    pub fn new(fit: Fit<S>, gap: Vec<f64>, dropped: f64, empty: Vec<usize>) -> Self {
        Self {
            fit,
            gap,
            dropped,
            empty,
        }
    }

    /// The same result with plain parameters as its state: one type for all models.
    pub fn untyped(self) -> Explained<Parameters<S::Scalar>> {
        Explained::new(self.fit.untyped(), self.gap, self.dropped, self.empty)
    }
}

/// A run that ends where it is interrupted.
fn watched<'a, S: State>(
    algorithm: Box<dyn Algorithm<S::Scalar> + 'a>,
    how: &Transform,
) -> Run<'a, S> {
    let run = Run::new(algorithm);
    match &how.interrupt {
        Some(interrupt) => run.observe(interrupt.clone()),
        None => run,
    }
}

/// Runs an algorithm from a start until its gap is small enough; returns the gaps at the end.
///
/// # Errors
///
/// Those of the run.
pub fn certify<S: State>(
    algorithm: Box<dyn Algorithm<S::Scalar> + '_>,
    start: Parameters<S::Scalar>,
    how: &Transform,
    gap: impl Fn(&Parameters<S::Scalar>) -> Result<Vec<f64>, FitError>,
) -> Result<(Fit<S>, Vec<f64>), FitError> {
    let mut run = watched::<S>(algorithm, how);
    run = run.solver(how.solver).stop(how.stop.clone());
    // [SPEC 1.5] stop by the gap
    let residual = |at: &Parameters<S::Scalar>| {
        let gaps = gap(at)?.into_iter();
        Ok::<_, FitError>(gaps.fold(0.0, f64::max))
    };
    run.residual = Some(Box::new(residual));
    let fit = run.resume(Checkpoint::new(start))?;
    let gap = gap(fit.state().parameters())?;
    Ok((fit, gap))
}

/// The free factor of a product whose other factors are learnt, every observation's part of it solved on its own.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Solved<T: Real> {
    /// The factor, `K x I`, in units of the data times the powers of two below.
    pub factor: DMatrix<T>,
    /// Of every observation: 0, unless its part of the factor would leave the range of numbers.
    pub exponents: Vec<i32>,
    /// The mass that a component gives to the observed cells of an observation if its entry of the factor is 1, `K x 1` for all, or
    /// `K x I`. Where it is 0 the entry means nothing.
    pub share: DMatrix<T>,
    /// The gap of every observation.
    pub gap: Vec<f64>,
    /// How the observations ended.
    pub ended: Outcome,
}

impl<T: Real> Solved<T> {
    /// The factor in units of the data times 2 to this power, infinite where it leaves the range of numbers.
    pub fn in_unit(&self, exponent: i32) -> DMatrix<T> {
        let mut factor = self.factor.clone();
        for (mut column, &own) in factor.column_iter_mut().zip(&self.exponents) {
            if own != exponent {
                column.apply(|x| *x = T::lit(times_power_of_two(x.to_f64(), exponent - own)));
            }
        }
        factor
    }
}

/// Transforms observations one by one, each until its own gap is small enough; `None` for solvers that move all of them at once. An
/// observation's part is bit-identical whatever the others are, if no cell is hidden.
///
/// The objective of an observation may be that of PLSA, NMF or PLCA: they differ by the scale alone.
///
/// # Errors
///
/// Data that cannot be read.
pub fn one_by_one<T: Real>(
    data: &dyn Data<T>,
    learnt: &[Option<Factor<'_, T>>],
    along: usize,
    how: &Transform,
) -> Result<Option<Solved<T>>, FitError> {
    if !matches!(how.solver, Solver::Auto | Solver::Fast) {
        return Ok(None);
    }
    how.stop.check()?;
    let known = learnt.iter().flatten();
    let k = known.map(|f| f.components()).next().unwrap_or(0);
    // An even start.
    let mut factor = DMatrix::from_element(k, data.shape()[along], T::one());
    let ones = factor.clone();
    let factors = learnt.iter().map(|f| f.unwrap_or(Factor::Rows(&ones)));
    let factors: Vec<_> = factors.collect();
    let share = shares(data, &factors, along)?;
    let rows = Rows::new(data, Modes::one(along))?;
    let stop = &how.stop;
    let limit = stop.deadline();
    let until = Until {
        // [SPEC 1.5] stop by the gap
        gap: stop.residual_tol,
        // An observation that has a gap to reach goes on until rounding keeps it from there.
        change: match (stop.need, stop.residual_tol) {
            (Need::Any, Some(_)) => stop.tol.and(Some(0.0)),
            _ => stop.tol,
        },
        patience: stop.patience,
        both: stop.need == Need::All,
        iterations: stop.max_iter,
    };
    let interrupted = || how.interrupt.as_ref().is_some_and(Interrupt::is_raised);
    let late = || limit.is_past();
    let ends = rows.solve(along, &factors, &share, &mut factor, &until, &|| {
        interrupted() || late()
    });
    let ending = ends.iter().map(|end| end.ending).max();
    Ok(Some(Solved {
        factor,
        share,
        gap: ends.iter().map(|end| end.gap).collect(),
        exponents: ends.iter().map(|end| end.exponent).collect(),
        ended: Outcome {
            iterations: ends.iter().map(|end| end.iterations).max().unwrap_or(0),
            status: match ending.unwrap_or_default() {
                Ending::Near => Status::Stationary,
                Ending::Still => Status::Converged,
                Ending::Exhausted => Status::MaxIterations,
                Ending::Cut if interrupted() => Status::Interrupted,
                Ending::Cut => Status::TimeLimit,
            },
        },
    }))
}

/// What every component gives to the observed cells of an observation if its entry of the factor of mode `along` is 1: `K x 1` for all
/// observations, or `K x I`.
fn shares<T: Real>(
    data: &dyn Data<T>,
    factors: &[Factor<'_, T>],
    along: usize,
) -> Result<DMatrix<T>, FitError> {
    let share = if data.is_complete() {
        let others = factors.iter().enumerate().filter(|&(m, _)| m != along);
        let sums: Vec<_> = others.map(|(_, f)| f.component_sums()).collect();
        let k = factors[along].components();
        DMatrix::from_fn(k, 1, |z, _| sums.iter().fold(T::one(), |s, f| s * f[z]))
    } else {
        share(data, factors, along)?.transpose()
    };
    Ok(floored(&share).unwrap_or(share))
}

/// Improves the factor of mode `along` by passes over the coordinates of every observation on its own; `block` is that factor, `K x I`, as it was and as
/// it becomes, in units of the data's sum: the masses of an observation's components in its observed cells add up to its share of the data. That of
/// `factors` is not looked at.
///
/// # Errors
///
/// Data that cannot be read.
pub fn improve<T: Real>(
    data: &dyn Data<T>,
    factors: &[Factor<'_, T>],
    along: usize,
    block: &mut DMatrix<T>,
    passes: usize,
) -> Result<(), FitError> {
    let terms = RowTerms {
        linear: &shares(data, factors, along)?,
        pseudo: None,
    };
    // [SPEC 10.1]
    let rows = Rows::new(data, Modes::one(along))?;
    rows.improve(along, factors, terms, block, passes, false);
    Ok(())
}

/// Runs an algorithm without a certificate from a start: the objective alone ends the run. `Auto` is `squarem` if the model allows it.
///
/// # Errors
///
/// Those of the run.
pub fn uncertified<S: State>(
    algorithm: Box<dyn Algorithm<S::Scalar> + '_>,
    start: Parameters<S::Scalar>,
    how: &Transform,
) -> Result<Fit<S>, FitError> {
    let solver = match how.solver {
        Solver::Auto if algorithm.extrapolates(&start).is_ok() => Solver::Squarem,
        solver => solver,
    };
    let run = watched::<S>(algorithm, how).solver(solver);
    let stop = how.stop.clone().residual_tol(None);
    run.stop(stop).resume(Checkpoint::new(start))
}

/// As [`uncertified`], for variational Bayes from equal components. `Auto` makes plain iterations; where a solver that extrapolates ends lower than they do,
/// their end is kept.
///
/// # Errors
///
/// Those of the runs.
pub fn bounded<S: State>(
    algorithm: &dyn Algorithm<S::Scalar>,
    start: Parameters<S::Scalar>,
    how: &Transform,
) -> Result<Fit<S>, FitError> {
    let deadline = how.stop.deadline();
    let plainly = how.clone().solver(Solver::Em);
    let plain = uncertified(Box::new(algorithm), start.clone(), &plainly)?;
    if matches!(how.solver, Solver::Auto | Solver::Em) || plain.status().is_cut() {
        return Ok(plain);
    }
    let mut rest = how.clone();
    rest.stop.time_limit = deadline.left();
    let other: Fit<S> = uncertified(Box::new(algorithm), start, &rest)?;
    Ok(match other.compared() > plain.compared() {
        true => other,
        false => plain,
    })
}

/// Refuses data of other sizes than those of learnt factors.
///
/// # Errors
///
/// [`FitError::DataShape`].
pub fn check_shape<T: Real>(
    shape: &[usize],
    learnt: &[Option<Factor<'_, T>>],
) -> Result<(), FitError> {
    let fits = shape.len() == learnt.len()
        && (learnt.iter().zip(shape)).all(|(f, &n)| f.is_none_or(|f| f.rows() == n));
    if fits {
        return Ok(());
    }
    let size = |f: &Option<Factor<'_, T>>| f.map_or("any".into(), |f| f.rows().to_string());
    Err(FitError::DataShape {
        got: shape.to_vec(),
        expected: learnt.iter().map(size).collect(),
    })
}

/// The part of the data that learnt factors can explain, `None` for all of them, and the sum of the rest.
///
/// # Errors
///
/// [`FitError::Data`] for data that cannot be read, [`FitError::DataShape`] for other sizes than those of the learnt factors,
/// [`FitError::Impossible`] with the first cell that no component explains, where those are to be refused.
pub fn possible<'a, T: Real>(
    data: &'a dyn Data<T>,
    learnt: &[Option<Factor<'_, T>>],
    impossible: Impossible,
) -> Result<(Option<Part<'a, T>>, f64), FitError> {
    check_shape(data.shape(), learnt)?;
    let factors = || {
        learnt
            .iter()
            .enumerate()
            .filter_map(|(j, f)| Some((j, (*f)?)))
    };
    if factors().all(|(_, f)| f.values().iter().all(|&x| x > T::zero())) {
        return Ok((None, 0.0));
    }
    let components = factors().next().map_or(0, |(_, f)| f.components());
    let reached = |index: &[usize]| {
        (0..components).any(|z| factors().all(|(j, f)| f.get(index[j], z) > T::zero()))
    };
    self::reached(data, reached, impossible)
}

/// The part of the data in cells that learnt components reach, `None` for all of them, and the sum of the rest.
///
/// # Errors
///
/// [`FitError::Data`] for data that cannot be read, [`FitError::Impossible`] with the first cell that is not reached, where those are to be
/// refused.
pub fn reached<'a, T: Real>(
    data: &'a dyn Data<T>,
    reached: impl Fn(&[usize]) -> bool,
    impossible: Impossible,
) -> Result<(Option<Part<'a, T>>, f64), FitError> {
    let (mut dropped, mut first) = (0.0, None);
    data.visit(&mut |index, value| {
        if !reached(index) {
            dropped += value;
            first.get_or_insert_with(|| (index.to_vec(), value));
        }
    })?;
    match (first, impossible) {
        (None, _) => Ok((None, 0.0)),
        (Some((index, value)), Impossible::Refuse) => Err(FitError::Impossible { index, value }),
        (Some(_), Impossible::Drop) => {
            let part = Part::of(data, |index, x| if reached(index) { x } else { 0.0 })?;
            Ok((Some(part), dropped))
        }
    }
}

/// Observations without a count.
///
/// # Errors
///
/// Data that cannot be read.
pub fn empty<T: Real>(data: &dyn Data<T>, along: usize) -> Result<Vec<usize>, FitError> {
    let sums = data.marginal(along)?.into_iter().enumerate();
    Ok(sums.filter(|&(_, v)| v <= 0.0).map(|(y, _)| y).collect())
}

/// The mass that every component would give to the observed cells of every index of a mode if its own factor were 1, an `I x K` matrix.
///
/// ```math
/// S[i,z] = \sum_{x : x_j = i} \prod_{m \ne j} F_m[x_m, z], \qquad j = \text{along}
/// ```
///
/// `F_m` is the factor of mode `m`, `I_m x K`; the sum runs over the observed cells.
///
/// # Errors
///
/// Data that cannot be read.
pub fn share<T: Real>(
    data: &dyn Data<T>,
    factors: &[Factor<'_, T>],
    along: usize,
) -> Result<DMatrix<T>, FitError> {
    let (n, k) = (data.shape()[along], factors[along].components());
    let ones = DMatrix::from_element(n, k, T::one());
    let mut factors = factors.to_vec();
    factors[along] = Factor::Columns(&ones);
    let model = Cp {
        weights: None,
        factors: &factors,
    };
    let exposure = Request::counts(Modes::one(along)).rule(Rule::Exposure);
    Ok(data.e_step(&model, &exposure)?.take(along))
}

/// The gap of free parameters `x` with gradients `m` and shares `s`, given as `(m, s, x)`, for data of the sum `total`.
///
/// ```math
/// \text{gap} = \max \left( 0, \; \frac{\sum_z s_z x_z}{v} \max_z \frac{m_z}{s_z} - 1 \right), \qquad v = \text{total}
/// ```
///
/// Parameters without a share are left out.
pub fn gap<T: Real>(parameters: impl Iterator<Item = (T, T, T)> + Clone, total: f64) -> f64 {
    if total <= 0.0 {
        return 0.0;
    }
    let seen = parameters.filter(|&(_, share, _)| share > T::zero());
    let products = seen.clone().map(|(_, s, x)| s.to_f64() * x.to_f64());
    let mass: f64 = products.sum();
    // [SPEC 1.1] [SPEC 1.5] g = 1 where the parameter is positive at the optimum, in units in which the model's mass is v
    let largest = seen.fold(0.0, |g: f64, (m, s, _)| g.max(m.to_f64() / s.to_f64()));
    (largest * mass / total - 1.0).max(0.0)
}

/// One gap for every observation of a matrix, from the fixed factor `I x K` and the free one, `K x J`, which lies along this mode.
///
/// # Errors
///
/// Data that cannot be read.
pub fn gaps<T: Real>(
    data: &dyn Data<T>,
    [fixed, free]: [&DMatrix<T>; 2],
    along: usize,
    totals: &[f64],
) -> Result<Vec<f64>, FitError> {
    let mut factors = [Factor::Columns(fixed), Factor::Rows(free)];
    if along == 0 {
        factors.reverse();
    }
    let model = Cp {
        weights: None,
        factors: &factors,
    };
    let gradient = Request::counts(Modes::one(along)).rule(Rule::Gradient);
    let gradient = data.e_step(&model, &gradient)?.take(along);
    let share = share(data, &factors, along)?;
    let of = |(y, &total): (usize, &f64)| {
        let components = 0..free.nrows();
        gap(
            components.map(|z| (gradient[(z, y)], share[(y, z)], free[(z, y)])),
            total,
        )
    };
    Ok(totals.iter().enumerate().map(of).collect())
}
