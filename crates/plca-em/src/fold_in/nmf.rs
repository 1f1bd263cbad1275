//! NMF with one factor fixed.

use nalgebra::DMatrix;
use plca_tensor::{Data, Factor, Real};

use super::plsa::gaps;
use super::{Explained, FoldIn, certify, empty, possible, share};
use crate::init::check_block;
use crate::{
    EmError,
    before::{Nmf, NmfState},
};

impl<T: Real> NmfState<T> {
    /// The activations of new observations: `H` for new columns (`along` is 1, `W` fixed) or `W` for new rows (`along` is 0,
    /// `H` fixed). The start is uniform; every observation is a convex problem of its own, so that the start does not matter.
    ///
    /// # Errors
    ///
    /// As [`PlcaState::fold_in`](crate::before::PlcaState::fold_in).
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_em::{before::NmfState, FoldIn};
    /// use plca_tensor::{DenseTensor, Order};
    /// let learned = NmfState { w: dmatrix![2.0; 1.0], h: dmatrix![1.0] };
    /// let new = DenseTensor::new(vec![2, 2], vec![4.0, 2.0, 2.0, 1.0], Order::RowMajor)?;
    /// let explained = learned.fold_in(&new, 1, &FoldIn::default())?;
    /// assert!((explained.outcome.state.h - dmatrix![2.0, 1.0]).norm() < 1e-12);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fold_in(
        &self,
        data: &dyn Data<T>,
        along: usize,
        how: &FoldIn,
    ) -> Result<Explained<Self>, EmError> {
        let (learned, name, fixed) = match along {
            0 => ([None, Some(Factor::Rows(&self.h))], "h", &self.h),
            1 => ([Some(Factor::Columns(&self.w)), None], "w", &self.w),
            _ => {
                return Err(EmError::Mode {
                    mode: along,
                    modes: 2,
                });
            }
        };
        check_block(name, fixed, fixed.shape())?;
        let (part, dropped) = possible(data, &learned, how.impossible)?;
        match &part {
            Some(part) => self.explain(part, along, how, dropped),
            None => self.explain(data, along, how, dropped),
        }
    }

    fn explain(
        &self,
        data: &dyn Data<T>,
        along: usize,
        how: &FoldIn,
        dropped: f64,
    ) -> Result<Explained<Self>, EmError> {
        let n = data.shape()[along];
        let (fixed, k) = if along == 1 {
            (&self.w, self.w.ncols())
        } else {
            (&self.h, self.h.nrows())
        };
        let ones = DMatrix::from_element(k, n, T::one());
        let mut factors = [Factor::Columns(&self.w), Factor::Rows(&self.h)];
        factors[along] = Factor::Rows(&ones);
        let (totals, share) = (data.marginal(along)?, share(data, &factors, along)?);
        // Every observation starts with a model of its own mass: from there on the gap is certified.
        let uniform = |y: usize| {
            let unit = share.row(y).sum();
            if unit > T::zero() {
                T::lit(totals[y]) / unit
            } else {
                T::one()
            }
        };
        let (config, state) = if along == 1 {
            let h = DMatrix::from_fn(k, n, |_, y| uniform(y));
            (
                Nmf::builder(k).freeze_w(),
                Self {
                    w: fixed.clone(),
                    h,
                },
            )
        } else {
            let w = DMatrix::from_fn(n, k, |y, _| uniform(y));
            (
                Nmf::builder(k).freeze_h(),
                Self {
                    w,
                    h: fixed.clone(),
                },
            )
        };
        let config = config.build()?;
        let (outcome, gap) = certify(config.on(data)?, state, how, |s| {
            if along == 1 {
                gaps(data, [&s.w, &s.h], along, &totals)
            } else {
                gaps(data, [&s.h.transpose(), &s.w.transpose()], along, &totals)
            }
        })?;
        Ok(Explained {
            outcome,
            gap,
            dropped,
            empty: empty(data, along)?,
        })
    }
}
