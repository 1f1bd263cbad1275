//! New data as mixtures of learnt components.

use nalgebra::DMatrix;
use plca_fit::{
    Explained, Factored, FitError, Parameters, State, Transform,
    blocks::{Axes, BlockSpec, Blocks},
};
use plca_tensor::{Data, Factor, Real, times_power_of_two};

use crate::blocks::unsolved;
use crate::columns::{self, ColumnNmfState};
use crate::exact::{
    ERRORS, Exact, Problems, TOTALS, agree, check_errors, check_totals, explain as solve,
    squared_error,
};
use crate::observations::Observations;
use crate::qp::{gram_at, gram_qp};

/// The fact that holds the mode of the observations.
const ALONG: &str = "along";

/// New observations along one mode, each explained as a mixture of learnt components.
///
/// ```math
/// G[x] \approx t_y \sum_z V[z, y] \prod_{j \ne \text{along}} U_j[x_j, z],
/// \qquad y = x_\text{along}
/// ```
///
/// with `t_y` the sum of observation `y`. Its blocks are `mixture`, `V` as a `K x n` matrix whose columns are on the simplex, and `factor_0`,
/// `factor_1`, …, `U_j` for every mode but that of the observations.
///
/// ```
/// use pntf_l2::nalgebra::{self, dmatrix};
/// use pntf_l2::{MixtureState, Reconstruct};
/// let state = MixtureState::new(1, dmatrix![0.25; 0.75], vec![dmatrix![1.0, 0.0; 0.0, 1.0]])?;
/// assert_eq!((state.shape(), state.cell(&[1, 0])), (vec![2, 1], 0.75));
/// # Ok::<(), pntf_l2::FitError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct MixtureState<T: Real>(Parameters<T>);

plca_fit::serialised!(MixtureState);

/// The blocks for `n` observations along a mode, the other modes of these sizes.
fn specs<T: Real>(along: usize, n: usize, others: &[usize], k: usize) -> Vec<BlockSpec<T>> {
    let mixture = BlockSpec::simplex("mixture", (k, n), Axes::coefficients(along));
    let factor = |(j, &rows): (usize, &usize)| {
        let mode = j + usize::from(j >= along);
        BlockSpec::simplex(format!("factor_{mode}"), (rows, k), Axes::factor(mode))
    };
    let factors = others.iter().enumerate().map(factor);
    std::iter::once(mixture).chain(factors).collect()
}

impl<T: Real> MixtureState<T> {
    /// The state of mixtures, `K x n`, of observations along a mode, and one factor for every other mode; for observations that sum to 1.
    ///
    /// # Errors
    ///
    /// [`FitError::Mode`], [`FitError::Shape`], [`FitError::Value`], [`FitError::Sum`].
    pub fn new(
        along: usize,
        mixture: DMatrix<T>,
        factors: Vec<DMatrix<T>>,
    ) -> Result<Self, FitError> {
        let modes = factors.len() + 1;
        if along >= modes {
            return Err(FitError::Mode { mode: along, modes });
        }
        let others: Vec<usize> = factors.iter().map(|f| f.nrows()).collect();
        let specs = specs(along, mixture.ncols(), &others, mixture.nrows());
        let blocks = std::iter::once(mixture).chain(factors);
        let parameters = Parameters::new(&specs, blocks.collect())?;
        Ok(Self(parameters.with_fact(ALONG, vec![along as f64])))
    }

    /// The mode of the observations, counted from 0.
    pub fn along(&self) -> usize {
        along(&self.0)
    }

    /// The mixtures, `V`: a `K x n` matrix, `>= 0`, every column of which sums to 1.
    pub fn mixture(&self) -> &DMatrix<T> {
        self.0.at(0)
    }

    /// The factors of the modes but that of the observations, each its size `x K` with columns that sum to 1.
    pub fn factors(&self) -> &[DMatrix<T>] {
        &self.0.matrices()[1..]
    }

    /// The sum of every observation, `n` numbers in the units of the data; 1 of a state that comes from elsewhere.
    pub fn totals(&self) -> Vec<f64> {
        let ones = || vec![1.0; self.mixture().ncols()];
        self.0.fact(TOTALS).map_or_else(ones, <[f64]>::to_vec)
    }

    /// The squared error of every observation, divided by its sum, exact up to rounding of the sum of its squares; `None` of a state that comes
    /// from elsewhere.
    pub fn squared_errors(&self) -> Option<&[f64]> {
        self.0.fact(ERRORS)
    }
}

/// The mode of the observations.
fn along<T: Real>(at: &Parameters<T>) -> usize {
    let along = at.fact(ALONG).and_then(|fact| fact.first());
    along.map_or(0, |&along| along as usize)
}

/// The product is of observations that are divided by their sums.
impl<T: Real> Factored for MixtureState<T> {
    fn product(at: &Parameters<T>) -> (Option<&[T]>, Vec<Factor<'_, T>>) {
        let factors = at.matrices()[1..].iter().map(Factor::Columns);
        let mut factors: Vec<_> = factors.collect();
        factors.insert(along(at), Factor::Rows(at.at(0)));
        (None, factors)
    }

    fn scaled_mode(&self) -> Option<usize> {
        Some(self.along())
    }

    fn scale(&self, observation: usize) -> f64 {
        let totals = self.0.fact(TOTALS);
        totals.map_or(1.0, |totals| totals[observation])
    }
}

impl<T: Real> State for MixtureState<T> {
    type Scalar = T;
    const NAME: &'static str = "pntf-mixture";
    const BLOCKS: Blocks = &[
        ("mixture", Axes::coefficients(1)),
        ("factor_*", Axes::factor(0)),
    ];

    fn wrap(parameters: Parameters<T>) -> Result<Self, FitError> {
        let modes = parameters.matrices().len();
        let along = match parameters.whole(ALONG)?[..] {
            [along] if along < modes.max(1) => along,
            ref other => {
                return Err(FitError::Fact {
                    name: ALONG,
                    got: format!("{other:?}"),
                    expected: format!("one mode of {modes}"),
                });
            }
        };
        let (k, n) = parameters.shape(0);
        let others: Vec<usize> = (1..modes).map(|j| parameters.shape(j).0).collect();
        parameters.check(&specs(along, n, &others, k))?;
        check_totals(&parameters, n)?;
        check_errors(&parameters, [n])?;
        Ok(Self(parameters))
    }

    fn parameters(&self) -> &Parameters<T> {
        &self.0
    }
}

impl Observations {
    fn is_empty(&self, i: usize) -> bool {
        self.totals[i] <= 0.0
    }

    fn empty(&self) -> Vec<usize> {
        let all = 0..self.norms.len();
        all.filter(|&i| self.is_empty(i)).collect()
    }

    /// The sums of the observations in the units of the data.
    fn sums(&self) -> Vec<f64> {
        let sums = self.totals.iter().zip(&self.exponents);
        sums.map(|(&t, &e)| times_power_of_two(t, -e)).collect()
    }
}

/// Observations, divided by their sums, as mixtures of components.
impl Problems for Observations {
    fn best(&self, i: usize) -> Result<Option<Vec<f64>>, FitError> {
        if self.is_empty(i) {
            return Ok(None);
        }
        let found = gram_qp(&self.h, &self.products(i), None);
        Ok(Some(found.map_err(unsolved)?.weights))
    }

    fn judge(&self, i: usize, x: &[f64]) -> Result<[f64; 2], FitError> {
        if self.is_empty(i) {
            return Ok([0.0; 2]);
        }
        let found = gram_at(&self.h, &self.products(i), x).map_err(unsolved)?;
        let error = squared_error(i, self.norms[i], found.objective)?;
        Ok([error, 2.0 * found.gap])
    }

    fn norm(&self) -> f64 {
        let norms = self.norms.iter().enumerate();
        norms
            .filter(|&(i, _)| !self.is_empty(i))
            .map(|(_, x)| x)
            .sum()
    }
}

/// Explains the slices of new data as mixtures of components that have these factors.
pub(crate) fn explain<T: Real>(
    factors: &[DMatrix<T>],
    data: &dyn Data<T>,
    how: &Transform,
) -> Result<Explained<MixtureState<T>>, FitError> {
    let along = agree(&factors.iter().collect::<Vec<_>>(), data, how)?;
    let problems = Observations::new(factors, data, along, true)?;
    let (n, k) = (data.shape()[along], factors[along].ncols());
    let others = factors.iter().enumerate().filter(|&(j, _)| j != along);
    let others: Vec<_> = others.map(|(_, f)| f.clone()).collect();
    let sizes: Vec<usize> = others.iter().map(|f| f.nrows()).collect();
    let specs = specs(along, n, &sizes, k);
    let mut blocks = vec![specs[0].even()];
    blocks.extend(others);
    let exact = Exact {
        specs,
        free: 0,
        facts: vec![(ALONG, vec![along as f64]), (TOTALS, problems.sums())],
        problems: &problems,
        interrupt: how.interrupt.as_ref(),
    };
    solve(exact, blocks, problems.empty(), how)
}

/// Explains new columns by a learnt `U`.
pub(crate) fn explain_columns<T: Real>(
    u: &DMatrix<T>,
    data: &dyn Data<T>,
    how: &Transform,
) -> Result<Explained<ColumnNmfState<T>>, FitError> {
    if how.along.is_some_and(|mode| mode != 1) {
        return Err(FitError::Conflict {
            what: "the observations of a factorization of columns lie along mode 1".into(),
        });
    }
    let along = agree(&[u, u], data, how)?;
    let problems = Observations::new(&[u.clone(), u.clone()], data, along, true)?;
    let specs = columns::specs([u.nrows(), data.shape()[along]], u.ncols());
    let blocks = vec![u.clone(), specs[1].even()];
    let exact = Exact {
        specs,
        free: 1,
        facts: vec![(TOTALS, problems.sums())],
        problems: &problems,
        interrupt: how.interrupt.as_ref(),
    };
    solve(exact, blocks, problems.empty(), how)
}
