//! Parameters of PLCA, and their starts.

use nalgebra::{DMatrix, DVector};
use plca_tensor::{Cp, Factor, Real};

use crate::EmError;
use crate::blocks::{check_power, column};
use crate::init::{check_block, check_sums, check_weights};

/// The parameters, and all that changes from iteration to iteration.
///
/// ```
/// use plca_em::{before::Plca, PlcaInit};
/// use plca_tensor::{DenseTensor, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
/// let mut rng = ChaCha8Rng::seed_from_u64(0);
/// let state = Plca::builder(3).build()?.init(&v, &PlcaInit::default(), &mut rng)?;
/// assert_eq!((state.weights.len(), state.factors[1].shape()), (3, (2, 3)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(bound(
        serialize = "T: serde::Serialize",
        deserialize = "T: serde::Deserialize<'de>"
    ))
)]
pub struct PlcaState<T: Real> {
    /// `P(z)`: `K` numbers that sum to 1.
    pub weights: DVector<T>,
    /// `P(x_j | z)`: for every mode an `I_j x K` matrix whose columns sum to 1.
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "plca_tensor::checked::matrices")
    )]
    pub factors: Vec<DMatrix<T>>,
    /// Tempering power of the next step.
    pub power: f64,
    /// EM steps done, which schedules of priors go by.
    pub iteration: usize,
}

/// Blocks that a start gives; the others are drawn.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_em::{before::Plca, PlcaInit};
/// use plca_tensor::{DenseTensor, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
/// let mut rng = ChaCha8Rng::seed_from_u64(0);
/// // Mode 0 is given, mode 1 is drawn.
/// let init = PlcaInit { factors: vec![Some(dmatrix![3.0, 1.0; 1.0, 1.0])], ..PlcaInit::default() };
/// let state = Plca::builder(2).build()?.init(&v, &init, &mut rng)?;
/// assert_eq!(state.factors[0], dmatrix![0.75, 0.5; 0.25, 0.5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct PlcaInit<T: Real> {
    /// `P(z)`, any non-negative numbers (they are normalised); default: uniform.
    pub weights: Option<DVector<T>>,
    /// `P(x_j | z)` by mode, columns normalised; default: uniform draws from the simplex. May be shorter than the order.
    pub factors: Vec<Option<DMatrix<T>>>,
}

impl<T: Real> Default for PlcaInit<T> {
    fn default() -> Self {
        Self {
            weights: None,
            factors: Vec::new(),
        }
    }
}

impl<T: Real> PlcaState<T> {
    /// Calls `f` with the state as a model for the kernels.
    ///
    /// ```
    /// use plca_em::{before::Plca, PlcaInit};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
    /// let mut rng = ChaCha8Rng::seed_from_u64(0);
    /// let state = Plca::builder(3).build()?.init(&v, &PlcaInit::default(), &mut rng)?;
    /// let mass: f64 = state.with_model(|model| model.mass());
    /// assert!((mass - 1.0).abs() < 1e-12);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_model<O>(&self, f: impl FnOnce(&Cp<'_, T>) -> O) -> O {
        let factors: Vec<_> = self.factors.iter().map(Factor::Columns).collect();
        f(&Cp {
            weights: Some(self.weights.as_slice()),
            factors: &factors,
        })
    }

    /// Refuses a state that is no model of data of this shape. States that this crate made always are.
    ///
    /// # Errors
    ///
    /// [`EmError`]: another order, a block of another shape or with a negative or non-finite value, a column that does not sum to 1, a power outside `(0, 1]`.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::{dmatrix, dvector};
    /// use plca_em::{before::PlcaState, EmError};
    /// let mut state = PlcaState {
    ///     weights: dvector![1.0],
    ///     factors: vec![dmatrix![0.5; 0.5], dmatrix![1.0]],
    ///     power: 1.0,
    ///     iteration: 0,
    /// };
    /// assert!(state.check(&[2, 1]).is_ok());
    /// assert!(matches!(state.check(&[3, 1]), Err(EmError::Shape { .. })));
    /// state.factors[0][1] = f64::NAN;
    /// assert!(matches!(state.check(&[2, 1]), Err(EmError::Value { row: 1, .. })));
    /// ```
    pub fn check(&self, shape: &[usize]) -> Result<(), EmError> {
        self.check_blocks(shape, self.weights.len())?;
        self.check_sums()
    }

    /// Whether weights and columns are distributions.
    pub(super) fn check_sums(&self) -> Result<(), EmError> {
        check_sums("weights", Factor::Columns(&column(&self.weights)))?;
        let factors = self.factors.iter().enumerate();
        let mut factors = factors.map(|(j, f)| (format!("factor_{j}"), Factor::Columns(f)));
        factors.try_for_each(|(name, f)| check_sums(&name, f))
    }

    /// [`check`](Self::check) but for sums, and whether there are `k` components: what every iteration asks.
    pub(crate) fn check_blocks(&self, shape: &[usize], k: usize) -> Result<(), EmError> {
        if self.factors.len() != shape.len() {
            return Err(EmError::Order {
                expected: self.factors.len(),
                got: shape.len(),
            });
        }
        check_weights(&self.weights, k)?;
        for (j, (factor, &size)) in self.factors.iter().zip(shape).enumerate() {
            check_block(&format!("factor_{j}"), factor, (size, k))?;
        }
        Ok(check_power(self.power)?)
    }
}
