//! The parameters and statistics learnt from a stream so far.

use nalgebra::{DMatrix, DVector};
use plca_fit::{
    FitError,
    blocks::{Axes, BlockSpec, Constraint},
};
use plca_tensor::Real;

use crate::product::conflict;

/// The parameters learnt from a stream so far, and the statistics from which it continues.
///
/// ```math
/// s_j[i,z] = P(x_j = i, z), \qquad P(x_j = i \mid z) = \frac{s_j[i,z]}{\sum_k s_j[k,z]}
/// ```
///
/// `s_j` are the statistics of mode `j`, `I_j x K`; the factors follow from them where there is no prior. A fit that
/// continues from a serialised state is bit-identical.
///
/// ```
/// use plca_em::nalgebra::{self, dmatrix, dvector};
/// use plca_em::OnlineState;
/// // Two topics of three words; the second is three times as frequent.
/// let state = OnlineState::new(dvector![1.0, 3.0], vec![dmatrix![1.0, 2.0; 1.0, 0.0; 2.0, 2.0]])?;
/// assert_eq!(state.factors[0].column(0).as_slice(), [0.25, 0.25, 0.5]);
/// assert_eq!(state.statistics[0][(0, 1)], 0.375);                     // P(x, z)
/// # Ok::<(), plca_em::FitError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct OnlineState<T: Real> {
    /// The weights of the components, `P(z)`: `K` numbers that sum to 1.
    pub weights: DVector<T>,
    /// The factors `P(x_j | z)`, `I_j x K`, of every mode but the streamed one, in the order of the modes; of PLSA the basis alone. By variational Bayes the shapes
    /// of its posterior.
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "plca_tensor::checked::matrices")
    )]
    pub factors: Vec<DMatrix<T>>,
    /// The joint distributions `P(x_j, z)`, `I_j x K`, as the batches have shown them, in the order of `factors`: expected counts divided
    /// by their sum. By variational Bayes divided by the number of documents.
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "plca_tensor::checked::matrices")
    )]
    pub statistics: Vec<DMatrix<T>>,
    /// The number of batches learnt.
    pub batches: u64,
    /// The expected counts of all batches learnt: the sum of the data, hidden cells imputed. By variational Bayes, here and below, their documents.
    pub seen: f64,
    /// The expected counts since the present pass began.
    pub pass: f64,
    /// The expected counts of the largest pass: what the statistics stand for beside a prior.
    pub total: f64,
}

impl<T: Real> OnlineState<T> {
    /// The start of a stream from `P(z)` and the factors of the modes that are not streamed; all are normalised.
    ///
    /// # Errors
    ///
    /// [`FitError`]: no components, no factor, blocks of different numbers of components, a bad value, a column of zeros.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::nalgebra::{self, dmatrix, dvector};
    /// use plca_em::{FitError, OnlineState};
    /// let refused = OnlineState::new(dvector![0.5, 0.5], vec![dmatrix![1.0]]);
    /// assert!(matches!(refused, Err(FitError::Shape { got: (1, 1), .. })));
    /// ```
    pub fn new(weights: DVector<T>, factors: Vec<DMatrix<T>>) -> Result<Self, FitError> {
        let k = weights.len();
        FitError::if_zero("components", k)?;
        if factors.is_empty() {
            return conflict("expected a factor for at least one mode besides the streamed one");
        }
        let weights = DMatrix::from_column_slice(k, 1, weights.as_slice());
        let weights = column::<T>("weights".into(), k, 1).given(weights)?;
        let normal = |(j, f): (usize, DMatrix<T>)| column(name(j), f.nrows(), k).given(f);
        let factors = factors.into_iter().enumerate().map(normal);
        let factors: Vec<_> = factors.collect::<Result<_, _>>()?;
        let joint = |f: &DMatrix<T>| {
            let mut joint = f.clone();
            for (mut column, &w) in joint.column_iter_mut().zip(&weights) {
                column *= w;
            }
            joint
        };
        Ok(Self {
            statistics: factors.iter().map(joint).collect(),
            weights: DVector::from_column_slice(weights.as_slice()),
            factors,
            batches: 0,
            seen: 0.0,
            pass: 0.0,
            total: 0.0,
        })
    }

    /// The start of a stream of a model by variational Bayes, from the Dirichlet shapes of the blocks that the batches share, which are taken as they are: of
    /// [`PlsaVb`](crate::PlsaVb) `basis_shape`. They are forgotten as batches come.
    ///
    /// # Errors
    ///
    /// [`FitError`]: no block, no components, blocks of different numbers of components, a shape that is not positive and finite.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::nalgebra::{self, dmatrix};
    /// use plca_em::{Online, OnlineState, PlsaVb};
    /// use plca_em::tensor::{DenseTensor, Order};
    /// let learner = Online::new(PlsaVb::new(2)).total(100.0);
    /// let mut state = OnlineState::of_shapes(vec![dmatrix![1.2, 0.9; 0.8, 1.1]])?;
    /// let batch = DenseTensor::new(vec![2, 2], vec![3.0, 0.0, 1.0, 2.0], Order::RowMajor)?;
    /// let learnt = learner.partial_fit(&mut state, &batch)?;
    /// // Of 6 counts in a batch of 2 documents, 300 in all.
    /// let old = 4.0 * (1.0 - learnt.rho);
    /// assert!((state.factors[0].sum() - old - learnt.rho * (4.0 + 300.0)).abs() < 1e-9);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of_shapes(shapes: Vec<DMatrix<T>>) -> Result<Self, FitError> {
        let k = shapes.first().map_or(0, DMatrix::ncols);
        FitError::if_zero("components", k)?;
        for (j, shapes) in shapes.iter().enumerate() {
            let size = (shapes.nrows(), k);
            let spec = BlockSpec::values(name(j), size, Axes::factor(j), Constraint::Positive);
            spec.check_values(shapes)?;
        }
        Ok(Self {
            statistics: shapes.iter().map(|f| f * T::zero()).collect(),
            weights: DVector::from_element(k, T::one() / T::lit(k as f64)),
            factors: shapes,
            batches: 0,
            seen: 0.0,
            pass: 0.0,
            total: 0.0,
        })
    }

    /// Tells the state that a pass over all data has ended and that the next batch begins another pass. Only priors depend on this: their
    /// counts are weighed against the sum of a pass. [`fit_stream`](crate::Online::fit_stream) calls it.
    ///
    /// ```
    /// use plca_em::nalgebra::{self, dmatrix, dvector};
    /// use plca_em::{Online, OnlineState, Plsa};
    /// use plca_em::tensor::{DenseTensor, Order};
    /// let learner = Online::new(Plsa::new(1));
    /// let mut state = OnlineState::new(dvector![1.0], vec![dmatrix![0.5; 0.5]])?;
    /// let batch = DenseTensor::new(vec![2, 1], vec![3.0, 1.0], Order::RowMajor)?;
    /// for _ in 0..2 {
    ///     learner.partial_fit(&mut state, &batch)?;
    ///     state.end_pass();
    /// }
    /// assert_eq!((state.seen, state.total), (8.0, 4.0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn end_pass(&mut self) {
        self.pass = 0.0;
    }

    /// Refuses a state from which no stream can continue. States that this crate made are always accepted.
    ///
    /// # Errors
    ///
    /// [`FitError`]: blocks of different shapes or numbers of components, a negative or non-finite value.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::nalgebra::{self, dmatrix, dvector};
    /// use plca_em::{FitError, OnlineState};
    /// let mut state = OnlineState::new(dvector![1.0], vec![dmatrix![0.5; 0.5]])?;
    /// assert!(state.check().is_ok());
    /// state.statistics[0][(1, 0)] = f64::NAN;
    /// assert!(matches!(state.check(), Err(FitError::Value { row: 1, .. })));
    /// # Ok::<(), FitError>(())
    /// ```
    pub fn check(&self) -> Result<(), FitError> {
        let k = self.weights.len();
        let weights = DMatrix::from_column_slice(k, 1, self.weights.as_slice());
        column("weights".into(), k, 1).check_values(&weights)?;
        if self.statistics.len() != self.factors.len() {
            return Err(FitError::Count {
                got: self.statistics.len(),
                expected: (0..self.factors.len())
                    .map(|j| format!("statistics_{j}"))
                    .collect(),
            });
        }
        for (j, (factor, joint)) in self.factors.iter().zip(&self.statistics).enumerate() {
            column(name(j), factor.nrows(), k).check_values(factor)?;
            column(format!("statistics_{j}"), factor.nrows(), k).check_values(joint)?;
        }
        let masses = [self.seen, self.pass, self.total];
        match masses.into_iter().find(|m| !(m.is_finite() && *m >= 0.0)) {
            Some(value) => Err(FitError::Value {
                block: "mass".into(),
                row: 0,
                column: 0,
                value,
            }),
            None => Ok(()),
        }
    }
}

/// A block of columns that are distributions.
fn column<T: Real>(name: String, rows: usize, k: usize) -> BlockSpec<T> {
    BlockSpec::simplex(name, (rows, k), Axes::factor(0))
}

/// A factor by its place among those that are not streamed.
pub(super) fn name(j: usize) -> String {
    format!("factor_{j}")
}
