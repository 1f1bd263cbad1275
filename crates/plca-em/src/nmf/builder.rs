//! Settings of KL-NMF.

use super::{Nmf, Update};
use crate::{Missing, ParamError};

/// Settings of [`Nmf`], not yet checked.
///
/// ```
/// let nmf = plca_em::before::Nmf::builder(4).freeze_w().build()?;
/// # Ok::<(), plca_em::ParamError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "call `.build()`"]
pub struct NmfBuilder(pub(super) Nmf);

impl NmfBuilder {
    /// Form of the update (default: simultaneous on complete data; with hidden cells it follows the treatment of these).
    ///
    /// ```
    /// use plca_em::{before::Nmf, Update};
    /// let as_most_packages_do = Nmf::builder(4).update(Update::Sequential).build()?;
    /// # Ok::<(), plca_em::ParamError>(())
    /// ```
    pub fn update(mut self, update: Update) -> Self {
        self.0.update = Some(update);
        self
    }

    /// Treatment of hidden cells (default: multiplicative, or imputation where the simultaneous form was asked for).
    ///
    /// ```
    /// use plca_em::{before::Nmf, Missing, Update};
    /// assert!(Nmf::builder(4).missing(Missing::Imputation).build().is_ok());
    /// assert!(Nmf::builder(4).update(Update::Simultaneous).missing(Missing::Multiplicative).build().is_err());
    /// assert!(Nmf::builder(4).update(Update::Sequential).missing(Missing::Imputation).build().is_err());
    /// ```
    pub fn missing(mut self, missing: Missing) -> Self {
        self.0.missing = Some(missing);
        self
    }

    /// Keeps `W` as it was given.
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_em::{before::Nmf, Algorithm, NmfInit};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
    /// let mut rng = ChaCha8Rng::seed_from_u64(0);
    /// let nmf = Nmf::builder(1).freeze_w().build()?;
    /// let init = NmfInit { w: Some(dmatrix![1.0; 2.0]), h: None };
    /// let mut state = nmf.init(&v, &init, &mut rng)?;
    /// nmf.on(&v)?.step(&mut state, false)?;
    /// assert_eq!(state.w, dmatrix![1.0; 2.0]);
    /// // Dividing by the column sum of W: H holds the masses of the columns.
    /// assert!((state.h[(0, 0)] * 3.0 - 3.0f64).abs() < 1e-12);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn freeze_w(mut self) -> Self {
        self.0.freeze_w = true;
        self
    }

    /// Keeps `H` as it was given.
    ///
    /// ```
    /// let nmf = plca_em::before::Nmf::builder(4).freeze_h().build()?;
    /// # Ok::<(), plca_em::ParamError>(())
    /// ```
    pub fn freeze_h(mut self) -> Self {
        self.0.freeze_h = true;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`ParamError`]: no components; simultaneous updates with the multiplicative treatment of hidden cells, which is
    /// sequential by nature; sequential updates with imputation, which is simultaneous by nature.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{before::Nmf, ParamError};
    /// assert_eq!(Nmf::builder(0).build().unwrap_err(), ParamError::NoComponents);
    /// ```
    pub fn build(self) -> Result<Nmf, ParamError> {
        if self.0.components == 0 {
            return Err(ParamError::NoComponents);
        }
        if self.0.update == Some(Update::Simultaneous)
            && self.0.missing == Some(Missing::Multiplicative)
        {
            return Err(ParamError::Conflict(
                "masked multiplicative updates have the sequential form only",
            ));
        }
        if self.0.update == Some(Update::Sequential) && self.0.missing == Some(Missing::Imputation)
        {
            return Err(ParamError::Conflict(
                "imputation of hidden cells has the simultaneous form only",
            ));
        }
        let mut nmf = self.0;
        // On complete data too: whether a cell is hidden should not change the form of the updates.
        if nmf.missing == Some(Missing::Multiplicative) {
            nmf.update = Some(Update::Sequential);
        }
        Ok(nmf)
    }
}
