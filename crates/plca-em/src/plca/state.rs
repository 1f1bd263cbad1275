//! Fitted parameters, and what they say of data.

use nalgebra::{DMatrix, DVector};
use plca_fit::{
    Explained, Factored, FitError, Model, Parameters, State, Transform,
    blocks::{Axes, Blocks, no_mode},
    explain::{Each, Solved, empty, explain_each, gap, one_by_one, possible, share},
};
use plca_tensor::{Cp, Data, Factor, Modes, Real, Request, Rule};

use super::{Plca, specs};
use crate::explained::{explained, written};

/// The fitted parameters of [`Plca`]: weights and one factor for every mode, which together are a distribution over the cells.
///
/// ```math
/// P(x) = \sum_z P(z) \prod_j P(x_j \mid z)
/// ```
///
/// ```
/// use plca_em::nalgebra::{self, dmatrix, dvector};
/// use plca_em::PlcaState;
/// let state = PlcaState::new(dvector![0.5, 0.5], vec![dmatrix![0.5, 1.0; 0.5, 0.0], dmatrix![1.0, 1.0]])?;
/// assert_eq!(state.factor(0)[(0, 1)], 1.0);
/// assert!(PlcaState::new(dvector![0.5, 0.4], vec![dmatrix![1.0, 1.0]]).is_err());
/// # Ok::<(), plca_em::FitError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct PlcaState<T: Real>(Parameters<T>);

plca_fit::serialised!(PlcaState);

impl<T: Real> PlcaState<T> {
    /// The state of weights `P(z)` and one factor `P(x_j | z)`, `I_j x K`, for every mode.
    ///
    /// # Errors
    ///
    /// [`FitError::Shape`], [`FitError::Value`], [`FitError::Sum`], [`FitError::Setting`] without components, [`FitError::Count`] without factors.
    pub fn new(weights: DVector<T>, factors: Vec<DMatrix<T>>) -> Result<Self, FitError> {
        FitError::if_zero("components", weights.len())?;
        FitError::if_no_factor(factors.len())?;
        let shape: Vec<usize> = factors.iter().map(|f| f.nrows()).collect();
        let specs = specs(&shape, weights.len());
        let weights = DMatrix::from_column_slice(weights.len(), 1, weights.as_slice());
        let blocks = std::iter::once(weights).chain(factors);
        Ok(Self(Parameters::new(&specs, blocks.collect())?))
    }

    /// The weights of the components, `P(z)`: `K` probabilities that sum to 1.
    pub fn weights(&self) -> &[T] {
        self.0.at(0).as_slice()
    }

    /// The factor of a mode, `P(x_j | z)`: an `I_j x K` matrix of probabilities, every column of which sums to 1.
    ///
    /// # Panics
    ///
    /// If there is no such mode.
    pub fn factor(&self, mode: usize) -> &DMatrix<T> {
        let factors = self.factors();
        factors
            .get(mode)
            .unwrap_or_else(|| no_mode(mode, factors.len()))
    }

    /// The factors of all modes, each `I_j x K` with columns that sum to 1, in the order of the modes.
    pub fn factors(&self) -> &[DMatrix<T>] {
        &self.0.matrices()[1..]
    }

    /// Transforms new data along one mode: the factors of the other modes are kept, and the weights are those of the new data.
    ///
    /// # Errors
    ///
    /// [`FitError::Mode`], [`FitError::DataShape`], [`FitError::Impossible`], and those of a run.
    pub fn transform(
        &self,
        data: &dyn Data<T>,
        how: &Transform,
    ) -> Result<Explained<Self>, FitError> {
        let along = how.mode(self.factors().len())?;
        let factors = self.factors().iter().enumerate();
        let factors = factors.map(|(j, f)| (j != along).then_some(Factor::Columns(f)));
        let factors: Vec<_> = factors.collect();
        let (part, dropped) = possible(data, &factors, how.impossible)?;
        let data = part.as_ref().map_or(data, |part| part);
        let mut config = Plca::new(self.weights().len());
        for j in (0..data.shape().len()).filter(|&j| j != along) {
            config = config.freeze(format!("factor_{j}"));
        }
        let learnt = |j: usize| (j > 0 && j - 1 != along).then(|| self.0.at(j));
        let algorithm = config.bind(data)?;
        let empty = empty(data, along)?;
        if let Some(solved) = one_by_one(data, &factors, along, how)? {
            let (weights, factor) = joint(&solved);
            let write = |j: usize, block: &mut DMatrix<T>| match j {
                0 => block.copy_from(&weights),
                _ if j - 1 == along => block.copy_from(&factor),
                _ => {}
            };
            let fit = written(&*algorithm, learnt, &solved.ended, write)?;
            // Every observation has its share of the mass: the largest gap is that of all data.
            let gap = solved.gap.iter().copied().fold(0.0, f64::max);
            return Ok(Explained::new(fit, vec![gap], dropped, empty));
        }
        let gap = |at: &Parameters<T>| gap_of(data, at, along);
        explained(algorithm, learnt, how, dropped, empty, gap)
    }

    /// Transforms every observation along a mode as a batch of one: its `weights`, `P(z)` of its own counts, are those of [`transform`](Self::transform) of it
    /// alone, bit for bit. In a batch weights belong to all observations together, and so does the gap that ends it.
    ///
    /// ```
    /// use plca_em::nalgebra::{self, dmatrix, dvector};
    /// use plca_em::{PlcaState, Transform};
    /// use plca_em::tensor::{DenseTensor, Order};
    /// let learnt = PlcaState::new(dvector![0.5, 0.5], vec![dmatrix![1.0, 0.0; 0.0, 1.0], dmatrix![1.0, 1.0]])?;
    /// let new = DenseTensor::<f64>::new(vec![2, 2], vec![3.0, 4.0, 1.0, 0.0], Order::RowMajor)?;
    /// let found = learnt.transform_each(&new, &Transform::default())?;
    /// let (name, weights) = &found.blocks[0];
    /// assert!(name == "weights" && (weights - dmatrix![0.75, 0.25; 1.0, 0.0]).amax() < 1e-12);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`transform`](Self::transform).
    pub fn transform_each(&self, data: &dyn Data<T>, how: &Transform) -> Result<Each, FitError> {
        let along = how.mode(self.factors().len())?;
        let factors = self.factors().iter().enumerate();
        let factors = factors.map(|(j, f)| (j != along).then_some(Factor::Columns(f)));
        let factors: Vec<_> = factors.collect();
        // The first cell of all that is to be refused.
        possible(data, &factors, how.impossible)?;
        let one = |one: &dyn Data<T>, how: &Transform| self.transform(one, how);
        let row = |state: Option<&Self>| {
            let k = self.weights().len();
            let weights = state.map(|state| state.weights().iter().map(|x| x.to_f64()).collect());
            Ok(vec![(
                "weights".to_string(),
                weights.unwrap_or(vec![1.0 / k as f64; k]),
            )])
        };
        explain_each(data, (along, true), how, one, row)
    }
}

impl<T: Real> Factored for PlcaState<T> {
    fn product(at: &Parameters<T>) -> (Option<&[T]>, Vec<Factor<'_, T>>) {
        let factors = at.matrices()[1..].iter().map(Factor::Columns);
        (Some(at.at(0).as_slice()), factors.collect())
    }
}

/// The weights and the factor, `I x K`, whose products observations were solved for. Entries of which no cell was seen have an even part of
/// their component.
fn joint<T: Real>(solved: &Solved<T>) -> (DMatrix<T>, DMatrix<T>) {
    // Shares of the whole have no unit: in that of the observation that is furthest from the data's.
    let found = solved.in_unit(solved.exponents.iter().copied().min().unwrap_or(0));
    let (k, size) = found.shape();
    let shared = solved.share.ncols() == 1;
    let is_seen = |z: usize, y: usize| solved.share[(z, if shared { 0 } else { y })] > T::zero();
    let even = 1.0 / size as f64;
    let mut masses = vec![0.0; k];
    let mut counts = vec![0usize; k];
    for (y, column) in found.column_iter().enumerate() {
        for (z, x) in column.iter().enumerate() {
            if is_seen(z, y) {
                masses[z] += x.to_f64();
                counts[z] += 1;
            }
        }
    }
    let seen: f64 = masses.iter().sum();
    for (mass, &count) in masses.iter_mut().zip(&counts) {
        // A component that was not seen at all may have any mass.
        let whole = *mass * (size as f64 / count as f64);
        *mass = if whole.is_finite() {
            whole
        } else {
            seen / k as f64
        };
    }
    let total: f64 = masses.iter().sum();
    let weights = DMatrix::from_fn(k, 1, |z, _| T::lit(masses[z] / total));
    let factor = DMatrix::from_fn(size, k, |y, z| match is_seen(z, y) && masses[z] > 0.0 {
        // [SPEC 1] P(z) P(y | z) is the share of a component and an observation
        true => T::lit(found[(z, y)].to_f64() / masses[z]),
        false => T::lit(even),
    });
    (weights, factor)
}

/// The free parameters of PLCA along a mode are the products `P(z) P(x_along | z)`.
fn gap_of<T: Real>(
    data: &dyn Data<T>,
    at: &Parameters<T>,
    along: usize,
) -> Result<Vec<f64>, FitError> {
    let mut free = at.at(along + 1).clone();
    for (mut column, &weight) in free.column_iter_mut().zip(at.at(0).iter()) {
        column *= weight;
    }
    let mut factors: Vec<_> = at.matrices()[1..].iter().map(Factor::Columns).collect();
    factors[along] = Factor::Columns(&free);
    let model = Cp {
        weights: None,
        factors: &factors,
    };
    let gradient = Request::counts(Modes::one(along)).rule(Rule::Gradient);
    let gradient = data.e_step(&model, &gradient)?.take(along);
    let share = share(data, &factors, along)?;
    let parameters = gradient.iter().zip(&share).zip(&free);
    let parameters = parameters.map(|((&g, &s), &x)| (g, s, x));
    Ok(vec![gap(parameters, data.total())])
}

impl<T: Real> State for PlcaState<T> {
    type Scalar = T;
    const NAME: &'static str = "plca";
    const BLOCKS: Blocks = &[("weights", Axes::WEIGHTS), ("factor_*", Axes::factor(0))];

    fn wrap(parameters: Parameters<T>) -> Result<Self, FitError> {
        let mut blocks = parameters.blocks();
        let k = blocks.next().map_or(0, |(_, weights)| weights.nrows());
        let shape: Vec<usize> = blocks.map(|(_, factor)| factor.nrows()).collect();
        parameters.check(&specs(&shape, k))?;
        FitError::if_no_factor(shape.len())?;
        parameters.check_scale(1)?;
        Ok(Self(parameters))
    }

    fn parameters(&self) -> &Parameters<T> {
        &self.0
    }
}
