//! Parameters of shifted models, and their starts.

use nalgebra::{DMatrix, DVector};
use plca_tensor::{Factor, Real};

use super::settings::BLOCKS;
use crate::EmError;
use crate::blocks::column;
use crate::init::{check_block, check_sums, check_weights};

/// The parameters, and all that changes from iteration to iteration.
///
/// ```
/// use plca_em::{Shifted, ShiftedInit};
/// use plca_tensor::{DenseTensor, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let v = DenseTensor::<f64>::new(vec![2, 4], vec![1.0; 8], Order::RowMajor)?;
/// // The first dimension does not shift, the second does, to 3 places.
/// let shifted = Shifted::builder(5, vec![2, 2]).build()?;
/// let state = shifted.init(&v, &ShiftedInit::default(), &mut ChaCha8Rng::seed_from_u64(0))?;
/// assert_eq!((state.weights.len(), state.kernels.shape(), state.impulses.shape()), (5, (4, 5), (3, 5)));
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
pub struct ShiftedState<T: Real> {
    /// `P(z)`: `K` numbers that sum to 1.
    pub weights: DVector<T>,
    /// `K(t | z)`: a column of `|k|` numbers for every component, the cells of the kernel in row-major order.
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "plca_tensor::checked::matrix")
    )]
    pub kernels: DMatrix<T>,
    /// `H(h | z)`: a column of `|m|` numbers for every component, the cells of the impulse in row-major order.
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "plca_tensor::checked::matrix")
    )]
    pub impulses: DMatrix<T>,
    /// EM steps done, which powers and schedules of priors go by.
    pub iteration: usize,
}

impl<T: Real> ShiftedState<T> {
    /// Refuses a state whose blocks do not have the cells of a kernel and of an impulse, as [`Geometry`](crate::Geometry) or
    /// [`IndexMaps`](crate::IndexMaps) count them. States that this crate made for them always do.
    ///
    /// # Errors
    ///
    /// [`EmError`]: a block of another shape, or with a negative or non-finite value.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::{dmatrix, dvector};
    /// use plca_em::{EmError, ShiftedState};
    /// let mut state = ShiftedState { weights: dvector![1.0], kernels: dmatrix![0.5; 0.5], impulses: dmatrix![1.0], iteration: 0 };
    /// assert!(state.check([2, 1]).is_ok());
    /// assert!(matches!(state.check([2, 3]), Err(EmError::Shape { .. })));
    /// state.kernels[0] = -1.0;
    /// assert!(matches!(state.check([2, 1]), Err(EmError::Value { value: -1.0, .. })));
    /// ```
    pub fn check(&self, cells: [usize; 2]) -> Result<(), EmError> {
        self.check_blocks(cells, self.weights.len())?;
        self.check_sums()
    }

    /// Whether weights and columns are distributions.
    pub(crate) fn check_sums(&self) -> Result<(), EmError> {
        check_sums(BLOCKS[0], Factor::Columns(&column(&self.weights)))?;
        check_sums(BLOCKS[1], Factor::Columns(&self.kernels))?;
        check_sums(BLOCKS[2], Factor::Columns(&self.impulses))
    }

    /// [`check`](Self::check) but for sums, and whether there are `k` components: what every iteration asks.
    pub(crate) fn check_blocks(&self, cells: [usize; 2], k: usize) -> Result<(), EmError> {
        check_weights(&self.weights, k)?;
        check_block(BLOCKS[1], &self.kernels, (cells[0], k))?;
        check_block(BLOCKS[2], &self.impulses, (cells[1], k))
    }
}

/// Blocks that a start gives; the others are drawn.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_em::{Shifted, ShiftedInit};
/// use plca_tensor::{DenseTensor, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let v = DenseTensor::<f64>::new(vec![4], vec![1.0; 4], Order::RowMajor)?;
/// let known = ShiftedInit { kernels: Some(dmatrix![1.0; 3.0]), ..ShiftedInit::default() };
/// let state = Shifted::builder(1, vec![2]).build()?.init(&v, &known, &mut ChaCha8Rng::seed_from_u64(0))?;
/// assert_eq!(state.kernels, dmatrix![0.25; 0.75]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ShiftedInit<T: Real> {
    /// `P(z)`, any non-negative numbers (they are normalised); default: uniform.
    pub weights: Option<DVector<T>>,
    /// Kernels, columns normalised; default: uniform draws from the simplex.
    pub kernels: Option<DMatrix<T>>,
    /// Impulses, columns normalised; default: uniform draws from the simplex.
    pub impulses: Option<DMatrix<T>>,
}

impl<T: Real> Default for ShiftedInit<T> {
    fn default() -> Self {
        Self {
            weights: None,
            kernels: None,
            impulses: None,
        }
    }
}
