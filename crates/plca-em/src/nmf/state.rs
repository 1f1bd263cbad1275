//! Parameters of KL-NMF, and their starts.

use nalgebra::{DMatrix, DVector};
use plca_tensor::{Cp, Factor, Real, normalise_columns};

use super::sizes;
use crate::init::check_block;
use crate::{EmError, ParamError, before::PlcaState};

/// The parameters.
///
/// ```
/// use nalgebra::dmatrix;
/// let state = plca_em::before::NmfState { w: dmatrix![1.0; 2.0], h: dmatrix![3.0, 4.0] };
/// assert_eq!(&state.w * &state.h, dmatrix![3.0, 4.0; 6.0, 8.0]);
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
pub struct NmfState<T: Real> {
    /// `W`, `I_0 x K`, in the units of the data together with `H`; never renormalised.
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "plca_tensor::checked::matrix")
    )]
    pub w: DMatrix<T>,
    /// `H`, `K x I_1`.
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "plca_tensor::checked::matrix")
    )]
    pub h: DMatrix<T>,
}

/// Blocks that a start gives; the others are drawn.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_em::{before::Nmf, NmfInit};
/// use plca_tensor::{DenseTensor, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
/// let mut rng = ChaCha8Rng::seed_from_u64(0);
/// let init = NmfInit { w: Some(dmatrix![1.0; 2.0]), h: None };
/// assert_eq!(Nmf::builder(1).build()?.init(&v, &init, &mut rng)?.w, dmatrix![1.0; 2.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct NmfInit<T: Real> {
    /// `W`; default: uniform on (0.5, 1.5), scaled so that `W H` has the mass of the data.
    pub w: Option<DMatrix<T>>,
    /// `H`; default as for `W`.
    pub h: Option<DMatrix<T>>,
}

impl<T: Real> Default for NmfInit<T> {
    fn default() -> Self {
        Self { w: None, h: None }
    }
}

impl<T: Real> NmfState<T> {
    /// Calls `f` with the state as a model for the kernels; its mass is that of `W H`.
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// let state = plca_em::before::NmfState { w: dmatrix![1.0; 2.0], h: dmatrix![3.0, 4.0] };
    /// assert_eq!(state.with_model(|model| (model.cell(&[1, 0]), model.mass())), (6.0, 21.0));
    /// ```
    pub fn with_model<O>(&self, f: impl FnOnce(&Cp<'_, T>) -> O) -> O {
        f(&Cp {
            weights: None,
            factors: &[Factor::Columns(&self.w), Factor::Rows(&self.h)],
        })
    }

    /// Refuses a state that is no model of data of this shape. States that this crate made always are.
    ///
    /// # Errors
    ///
    /// [`EmError`]: data that are no matrix, no components, a block of another shape or with a negative or non-finite value.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_em::{before::NmfState, EmError};
    /// let state = NmfState { w: dmatrix![1.0; 2.0], h: dmatrix![3.0, f64::NAN] };
    /// assert!(matches!(state.check(&[3, 2]), Err(EmError::Shape { .. })));
    /// assert!(matches!(state.check(&[2, 2]), Err(EmError::Value { column: 1, .. })));
    /// ```
    pub fn check(&self, shape: &[usize]) -> Result<(), EmError> {
        if self.w.ncols() == 0 {
            return Err(ParamError::NoComponents.into());
        }
        self.check_blocks(shape, self.w.ncols())
    }

    /// [`check`](Self::check), and whether there are `k` components.
    pub(super) fn check_blocks(&self, shape: &[usize], k: usize) -> Result<(), EmError> {
        let [rows, columns] = sizes(shape)?;
        check_block("w", &self.w, (rows, k))?;
        check_block("h", &self.h, (k, columns))
    }

    /// The PLCA model of the same product: `F_1 = W D⁻¹`, `P(z) ∝ D H 1`, `F_2 = (diag(H 1)⁻¹ H)ᵀ`, where `D` holds the column
    /// sums of `W`. A component of mass 0 gets weight 0 and uniform factors.
    ///
    /// # Errors
    ///
    /// [`EmError`]: not as many rows of `h` as columns of `w`, a negative or non-finite value.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// let plca = plca_em::before::NmfState { w: dmatrix![1.0; 3.0], h: dmatrix![2.0, 2.0] }.to_plca()?;
    /// assert_eq!((&plca.factors[0], &plca.factors[1]), (&dmatrix![0.25; 0.75], &dmatrix![0.5; 0.5]));
    /// assert_eq!(plca.weights.as_slice(), [1.0]);
    /// # Ok::<(), plca_em::EmError>(())
    /// ```
    pub fn to_plca(&self) -> Result<PlcaState<T>, EmError> {
        let k = self.w.ncols();
        self.check(&[self.w.nrows(), self.h.ncols()])?;
        let mut factors = vec![self.w.clone(), self.h.transpose()];
        // [SPEC 3] F_1 = W D⁻¹, P(z) = D H 1 / c, F_2 = (diag(H 1)⁻¹ H)ᵀ
        let sums: Vec<Vec<T>> = factors.iter_mut().map(normalise_columns).collect();
        let mut weights = DVector::from_fn(k, |z, _| sums[0][z] * sums[1][z]);
        for (factor, sums) in factors.iter_mut().zip(&sums) {
            let uniform = T::one() / T::lit(factor.nrows() as f64);
            for z in (0..k).filter(|&z| sums[z] <= T::zero()) {
                factor.column_mut(z).fill(uniform);
            }
        }
        let total = weights.sum();
        if total > T::zero() {
            weights /= total;
        }
        Ok(PlcaState {
            weights,
            factors,
            power: 1.0,
            iteration: 0,
        })
    }

    /// The product form of a PLCA model: `W = F_1 D`, `H = v D⁻¹ diag(P(z)) F_2ᵀ`, so that `W H = v P`. `d` holds the diagonal of
    /// `D`, the column sums that `W` shall have; `v` is the mass of the product. A component of weight 0 gets a row of zeros in `H`.
    ///
    /// # Errors
    ///
    /// [`EmError`]: a model of another order than 2 or with negative or non-finite values, not one number of `d`
    /// for every component, one that is negative or not finite, or 0 where the weight is not, the same of `v`; a product form with
    /// values beyond the range of `T`, as a very small `d` gives.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_em::{before::NmfState, EmError};
    /// let nmf = NmfState { w: dmatrix![1.0; 3.0], h: dmatrix![2.0, 2.0] };
    /// assert_eq!(NmfState::from_plca(&nmf.to_plca()?, &[4.0], 16.0)?, nmf);
    /// assert!(matches!(NmfState::from_plca(&nmf.to_plca()?, &[0.0], 16.0), Err(EmError::ZeroColumn { column: 0, .. })));
    /// # Ok::<(), EmError>(())
    /// ```
    pub fn from_plca(plca: &PlcaState<T>, d: &[T], v: T) -> Result<Self, EmError> {
        let shape: Vec<usize> = plca.factors.iter().map(|f| f.nrows()).collect();
        sizes(&shape)?;
        plca.check_blocks(&shape, plca.weights.len())?;
        let sums = DMatrix::from_column_slice(d.len(), 1, d);
        check_block("d", &sums, (plca.weights.len(), 1))?;
        check_block("v", &DMatrix::from_element(1, 1, v), (1, 1))?;
        let (mut w, mut h) = (plca.factors[0].clone(), plca.factors[1].transpose());
        for (z, &d) in d.iter().enumerate() {
            let weight = plca.weights[z];
            if d <= T::zero() && weight > T::zero() {
                let block = "w".into();
                return Err(EmError::ZeroColumn { block, column: z });
            }
            w.column_mut(z).iter_mut().for_each(|x| *x *= d);
            // [SI eq. 97] [SPEC 3] H = v D⁻¹ diag(P(z)) F_2ᵀ
            let scale = if weight > T::zero() {
                v * weight / d
            } else {
                T::zero()
            };
            h.row_mut(z).iter_mut().for_each(|x| *x *= scale);
        }
        check_block("w", &w, w.shape())?;
        check_block("h", &h, h.shape())?;
        Ok(Self { w, h })
    }
}
