//! Parameters of PLSA, and their starts.

use nalgebra::DMatrix;
use plca_tensor::{Cp, Factor, Real};

use super::Given;
use crate::EmError;
use crate::blocks::check_power;
use crate::init::{check_block, check_sums};

/// The parameters, and all that changes from iteration to iteration.
///
/// ```
/// use plca_em::{before::Plsa, PlsaInit};
/// use plca_tensor::{DenseTensor, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
/// let mut rng = ChaCha8Rng::seed_from_u64(0);
/// let state = Plsa::builder(3).build()?.init(&v, &PlsaInit::default(), &mut rng)?;
/// assert_eq!((state.basis.shape(), state.mixture.shape()), ((2, 3), (3, 2)));
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
pub struct PlsaState<T: Real> {
    /// `P(x | z)`: explained mode x `K`, columns sum to 1.
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "plca_tensor::checked::matrix")
    )]
    pub basis: DMatrix<T>,
    /// `P(z | y)`: `K` x given mode, columns sum to 1.
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "plca_tensor::checked::matrix")
    )]
    pub mixture: DMatrix<T>,
    /// Tempering power of the next step.
    pub power: f64,
    /// EM steps done, which schedules of priors go by.
    pub iteration: usize,
}

/// Blocks that a start gives; the others are drawn.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_em::{before::Plsa, PlsaInit};
/// use plca_tensor::{DenseTensor, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
/// let mut rng = ChaCha8Rng::seed_from_u64(0);
/// let init = PlsaInit { basis: Some(dmatrix![3.0, 1.0; 1.0, 1.0]), mixture: None };
/// let state = Plsa::builder(2).build()?.init(&v, &init, &mut rng)?;
/// assert_eq!(state.basis, dmatrix![0.75, 0.5; 0.25, 0.5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct PlsaInit<T: Real> {
    /// `P(x | z)`, columns normalised; default: uniform draws from the simplex.
    pub basis: Option<DMatrix<T>>,
    /// `P(z | y)`, columns normalised; default: uniform draws from the simplex.
    pub mixture: Option<DMatrix<T>>,
}

impl<T: Real> Default for PlsaInit<T> {
    fn default() -> Self {
        Self {
            basis: None,
            mixture: None,
        }
    }
}

/// Calls `f` with the model in the order of the data's modes.
pub(super) fn with_model<T: Real, O>(
    given: Given,
    basis: &DMatrix<T>,
    mixture: &DMatrix<T>,
    f: impl FnOnce(&Cp<'_, T>) -> O,
) -> O {
    let (basis, mixture) = (Factor::Columns(basis), Factor::Rows(mixture));
    let factors = match given {
        Given::Columns => [basis, mixture],
        Given::Rows => [mixture, basis],
    };
    f(&Cp {
        weights: None,
        factors: &factors,
    })
}

impl<T: Real> PlsaState<T> {
    /// Calls `f` with the state as a model for the kernels, of the conditional distributions `P(x | y)`; `given` is the mode that
    /// holds `y`.
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_em::{before::PlsaState, Given, posterior};
    /// let state = PlsaState { basis: dmatrix![1.0, 0.5; 0.0, 0.5], mixture: dmatrix![0.5; 0.5], power: 1.0, iteration: 0 };
    /// let p = state.with_model(Given::Columns, |model| model.cell(&[1, 0]));
    /// assert_eq!(p, 0.25);
    /// assert_eq!(state.with_model(Given::Rows, |model| posterior(model, &[0, 1])), Some(vec![0.0, 1.0]));
    /// ```
    pub fn with_model<O>(&self, given: Given, f: impl FnOnce(&Cp<'_, T>) -> O) -> O {
        with_model(given, &self.basis, &self.mixture, f)
    }

    /// Refuses a state that is no model of data of this shape. States that this crate made always are.
    ///
    /// # Errors
    ///
    /// [`EmError`]: data that are no matrix, a block of another shape or with a negative or non-finite value, a power outside
    /// `(0, 1]`.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_em::{before::PlsaState, EmError, Given};
    /// let state = PlsaState { basis: dmatrix![0.5; 0.5], mixture: dmatrix![1.0, 1.0, -1.0], power: 1.0, iteration: 0 };
    /// assert!(matches!(state.check(&[2, 2], Given::Columns), Err(EmError::Shape { .. })));
    /// assert!(matches!(state.check(&[2, 3], Given::Columns), Err(EmError::Value { column: 2, .. })));
    /// ```
    pub fn check(&self, shape: &[usize], given: Given) -> Result<(), EmError> {
        self.check_blocks(shape, given, self.basis.ncols())?;
        self.check_sums()
    }

    /// Whether columns are distributions.
    pub(super) fn check_sums(&self) -> Result<(), EmError> {
        check_sums("basis", Factor::Columns(&self.basis))?;
        check_sums("mixture", Factor::Columns(&self.mixture))
    }

    /// [`check`](Self::check) but for sums, and whether there are `k` components: what every iteration asks.
    pub(super) fn check_blocks(
        &self,
        shape: &[usize],
        given: Given,
        k: usize,
    ) -> Result<(), EmError> {
        let [explained, along] = given.sizes(shape)?;
        check_block("basis", &self.basis, (explained, k))?;
        check_block("mixture", &self.mixture, (k, along))?;
        Ok(check_power(self.power)?)
    }
}
