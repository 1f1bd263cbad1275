//! New data under learnt components: a small convex problem for every observation, solved to rounding at once.
//!
//! An observation `g` is a slice of the data, and column `z` of `A` is component `z` as seen in a slice: the outer product of its columns in the
//! other factors. With `q` convex and the same `H` for all observations,
//!
//! ```math
//! \lVert g - A x \rVert^2 = \lVert g \rVert^2 + 2 q(x),
//! \qquad q(x) = \tfrac{1}{2} x^\top H x - f^\top x,
//! \qquad H = A^\top A, \quad f = A^\top g
//! ```
//!
//! `H` is the Hadamard product of the other factors' Grams, and the `f` of all observations are one product of the data with these factors: `A`
//! is never formed. `x` lies on the simplex for mixtures, in the orthant for sums. An active-set search ends at a point whose slopes `q' = H x - f`
//! say how far it is at most above the least value: `q(x) - q(y) <= q'·(x - y)` for all `y`, so on the simplex `q'·x - min q'`.

use std::fmt::Debug;

use nalgebra::{DMatrix, DVector};
use plca_fit::{
    Algorithm, Explained, FitError, Interrupt, Parameters, Sense, State, Transform,
    blocks::{Axis, BlockSpec, Frozen},
    em::Stepped,
    explain::{begin, check_shape, uncertified},
};
use plca_tensor::parallel::map_in_order;
use plca_tensor::{Data, Factor, Real, times_power_of_two};

use crate::blocks::finite;
use crate::ntf::{self, NtfState};
use crate::observations::{Observations, balance};
use crate::qp::orthant_qp;

/// The fact that holds the squared error of every observation.
pub(crate) const ERRORS: &str = "squared_errors";
/// The fact that holds the sum of every observation.
pub(crate) const TOTALS: &str = "totals";

/// The problems of all observations.
pub(crate) trait Problems: Debug + Sync {
    /// The best coefficients of an observation; `None` of one that says nothing.
    fn best(&self, observation: usize) -> Result<Option<Vec<f64>>, FitError>;

    /// The squared error of an observation under these coefficients, and how far it is at most above the least.
    fn judge(&self, observation: usize, x: &[f64]) -> Result<[f64; 2], FitError>;

    /// The sum of the squares of all observations, in the units of the errors.
    fn norm(&self) -> f64;
}

/// One iteration that puts every observation at its optimum.
#[derive(Clone, Debug)]
pub(crate) struct Exact<'a, T: Real> {
    pub(crate) specs: Vec<BlockSpec<T>>,
    /// The place of the coefficients.
    pub(crate) free: usize,
    pub(crate) facts: Vec<(&'static str, Vec<f64>)>,
    pub(crate) problems: &'a dyn Problems,
    /// Looked at between observations: there is one iteration.
    pub(crate) interrupt: Option<&'a Interrupt>,
}

impl<T: Real> Exact<'_, T> {
    /// Whether the coefficients of an observation are a column.
    fn is_mixture(&self) -> bool {
        self.specs[self.free].axes.components() == Axis::Rows
    }

    fn count(&self) -> usize {
        let (rows, columns) = self.specs[self.free].shape;
        if self.is_mixture() { columns } else { rows }
    }

    fn coefficients(&self, at: &Parameters<T>, i: usize) -> Vec<f64> {
        let block = at.at(self.free);
        match self.is_mixture() {
            true => block.column(i).iter().map(|x| x.to_f64()).collect(),
            false => block.row(i).iter().map(|x| x.to_f64()).collect(),
        }
    }

    /// A result of every observation.
    fn all<O: Send>(
        &self,
        one: impl Fn(usize) -> Result<O, FitError> + Sync + Send,
    ) -> Result<Vec<O>, FitError> {
        let one = |i| match self.interrupt {
            Some(interrupt) if interrupt.is_raised() => Err(FitError::Interrupted),
            _ => one(i),
        };
        let all = map_in_order((0..self.count()).collect(), one);
        all.into_iter().collect()
    }

    /// Squared error and gap of every observation.
    fn judged(&self, at: &Parameters<T>) -> Result<Vec<[f64; 2]>, FitError> {
        self.all(|i| self.problems.judge(i, &self.coefficients(at, i)))
    }
}

/// A coefficient in the scalar of the model.
fn narrow<T: Real>(x: f64, i: usize, z: usize) -> Result<T, FitError> {
    let narrow = T::lit(x);
    let what = format!("the coefficient of component {z} in observation {i}");
    finite(&what, narrow.to_f64()).map(|_| narrow)
}

impl<T: Real> Algorithm<T> for Exact<'_, T> {
    fn blocks(&self) -> &[BlockSpec<T>] {
        &self.specs
    }

    fn step(&self, at: &mut Parameters<T>, measure: bool) -> Result<Stepped, FitError> {
        // 1. The objective before, where it is asked for.
        let value = measure.then(|| self.objective(at)).transpose()?;
        // 2. The best coefficients of every observation.
        let solved = self.all(|i| self.problems.best(i))?;
        // 3. They take their places, in the scalar of the model; what says nothing keeps its start.
        let mut new = at.at(self.free).clone();
        for (i, x) in solved.into_iter().enumerate() {
            let Some(x) = x else { continue };
            let x = x.into_iter().enumerate().map(|(z, x)| narrow(x, i, z));
            let x = DVector::from_vec(x.collect::<Result<Vec<T>, _>>()?);
            match self.is_mixture() {
                true => new.set_column(i, &x),
                false => new.set_row(i, &x.transpose()),
            }
        }
        at.change(|j, block| {
            if j == self.free {
                block.copy_from(&new);
            }
        });
        at.count();
        Ok(Stepped::of(value))
    }

    fn objective(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        Ok(self.judged(at)?.iter().map(|[error, _]| error).sum())
    }

    fn sense(&self) -> Sense {
        Sense::Minimise
    }

    fn unit(&self) -> f64 {
        self.problems.norm()
    }

    fn facts(&self) -> Vec<(&'static str, Vec<f64>)> {
        self.facts.clone()
    }

    fn extrapolates(&self, _: &Parameters<T>) -> Result<(), FitError> {
        Err(FitError::Conflict {
            what: "new data are transformed in one step, without extrapolation: expected the solver `em`".into(),
        })
    }

    /// What was learnt is valid, and keeps its bits.
    fn given(&self, _: usize, value: DMatrix<T>) -> Result<DMatrix<T>, FitError> {
        Ok(value)
    }

    fn settled(&self, at: &Parameters<T>) -> bool {
        at.iteration() > 0
    }
}

/// Solves all problems, from what was learnt and coefficients of a start; the state with the error of every observation, and the gaps.
pub(crate) fn explain<T: Real, S: State<Scalar = T>>(
    mut exact: Exact<'_, T>,
    start: Vec<DMatrix<T>>,
    empty: Vec<usize>,
    how: &Transform,
) -> Result<Explained<S>, FitError> {
    for (j, spec) in exact.specs.iter_mut().enumerate() {
        if j != exact.free {
            spec.frozen = Frozen::Whole;
        }
    }
    let start = begin(&exact, start)?;
    let fit = uncertified::<S>(Box::new(exact.clone()), start, how)?;
    let judged = exact.judged(fit.state().parameters())?;
    let errors = judged.iter().map(|&[error, _]| error).collect();
    Ok(Explained::new(
        fit.change(|at| *at = at.clone().with_fact(ERRORS, errors))?,
        judged.iter().map(|&[_, gap]| gap).collect(),
        0.0,
        empty,
    ))
}

/// `‖g - A x‖²` from `‖g‖²` and `½ ‖A x‖² - g·A x`; below 0 it is rounding.
pub(crate) fn squared_error(i: usize, norm: f64, objective: f64) -> Result<f64, FitError> {
    let what = format!("the squared error of observation {i}");
    Ok(finite(&what, norm + 2.0 * objective)?.max(0.0))
}

/// The mode of the observations, of data that these factors of the others can explain.
pub(crate) fn agree<T: Real>(
    learnt: &[&DMatrix<T>],
    data: &dyn Data<T>,
    how: &Transform,
) -> Result<usize, FitError> {
    let mode = how.mode(learnt.len())?;
    let sizes = learnt.iter().enumerate();
    let sizes = sizes.map(|(j, f)| (j != mode).then_some(Factor::Columns(*f)));
    check_shape(data.shape(), &sizes.collect::<Vec<_>>())?;
    if !data.is_complete() {
        let what = "explaining new data needs complete data, some cells are hidden: a fit by pNTF whose other factors are frozen takes these";
        return Err(FitError::Conflict { what: what.into() });
    }
    Ok(mode)
}

/// Refuses errors that are none, or of another number than any of these.
pub(crate) fn check_errors<T: Real>(
    parameters: &Parameters<T>,
    sizes: impl IntoIterator<Item = usize>,
) -> Result<(), FitError> {
    let sizes: Vec<usize> = sizes.into_iter().collect();
    let range = ("a finite number >= 0", |x: f64| x.is_finite() && x >= 0.0);
    check_fact(parameters, ERRORS, &sizes, range)
}

/// Refuses sums that are none, or of another number.
pub(crate) fn check_totals<T: Real>(
    parameters: &Parameters<T>,
    size: usize,
) -> Result<(), FitError> {
    let range = ("a finite number", f64::is_finite);
    check_fact(parameters, TOTALS, &[size], range)
}

fn check_fact<T: Real>(
    parameters: &Parameters<T>,
    name: &'static str,
    sizes: &[usize],
    (range, is_in): (&str, impl Fn(f64) -> bool),
) -> Result<(), FitError> {
    let Some(numbers) = parameters.fact(name) else {
        return Ok(());
    };
    let got = match numbers.iter().find(|&&x| !is_in(x)) {
        Some(x) => x.to_string(),
        None if sizes.contains(&numbers.len()) => return Ok(()),
        None => format!("{} numbers", numbers.len()),
    };
    Err(FitError::Fact {
        name,
        got,
        expected: format!("{range} for every observation"),
    })
}

/// Observations as sums of components.
#[derive(Debug)]
struct Sums {
    observations: Observations,
    /// Exponents of the powers of two that undo the balance of the components.
    units: Vec<i32>,
    /// `‖G‖²`.
    norm: f64,
}

impl Problems for Sums {
    fn best(&self, i: usize) -> Result<Option<Vec<f64>>, FitError> {
        // [PNTF 8] non-negative least squares, H = Aᵀ A and f = Aᵀ g
        let Observations { h, .. } = &self.observations;
        let found = orthant_qp(h, &self.observations.products(i), None);
        let scaled = self.observations.exponents[i];
        let units = found.x.into_iter().zip(&self.units);
        Ok(Some(
            units
                .map(|(x, &e)| times_power_of_two(x, e - scaled))
                .collect(),
        ))
    }

    fn judge(&self, i: usize, x: &[f64]) -> Result<[f64; 2], FitError> {
        let Observations {
            h,
            norms,
            exponents,
            ..
        } = &self.observations;
        let scaled = exponents[i];
        let units = x.iter().zip(&self.units);
        let x: Vec<f64> = units
            .map(|(&x, &e)| times_power_of_two(x, scaled - e))
            .collect();
        let found = orthant_qp(h, &self.observations.products(i), Some(&x));
        let error = squared_error(i, norms[i], found.objective)?;
        Ok([error, 2.0 * found.gap].map(|x| times_power_of_two(x, -2 * scaled)))
    }

    fn norm(&self) -> f64 {
        self.norm
    }
}

/// Explains the slices of new data as sums of components that have these factors.
pub(crate) fn explain_sums<T: Real>(
    factors: &[DMatrix<T>],
    data: &dyn Data<T>,
    how: &Transform,
) -> Result<Explained<NtfState<T>>, FitError> {
    let mode = agree(&factors.iter().collect::<Vec<_>>(), data, how)?;
    let balanced: Vec<_> = factors.iter().map(balance).collect();
    // Added up as exponents: products of powers over many modes overflow where the coefficients do not.
    let k = factors[mode].ncols();
    let others = || balanced.iter().enumerate().filter(|&(j, _)| j != mode);
    let unit = |z| others().map(|(_, (_, units))| units[z]).sum::<i32>();
    let units = (0..k).map(unit).collect();
    let balanced: Vec<_> = balanced.into_iter().map(|(factor, _)| factor).collect();
    let n = data.shape()[mode];
    let observations = Observations::new(&balanced, data, mode, false)?;
    let norm = observations.norm()?;
    let problems = Sums {
        observations,
        units,
        norm,
    };
    let mut blocks = factors.to_vec();
    blocks[mode] = DMatrix::zeros(n, k);
    let exact = Exact {
        specs: ntf::specs(data.shape(), k),
        free: mode,
        facts: Vec::new(),
        problems: &problems,
        interrupt: how.interrupt.as_ref(),
    };
    explain(exact, blocks, Vec::new(), how)
}
