//! PLSA with the basis fixed.

use nalgebra::DMatrix;
use plca_tensor::{Cp, Data, Factor, Modes, Real, Request, Rule};

use super::{Explained, FoldIn, certify, empty, gap, possible, share};
use crate::init::{check_block, stochastic_block};
use crate::{
    EmError, Given,
    before::{Plsa, PlsaState},
};

impl<T: Real> PlsaState<T> {
    /// `P(z | y)` of new observations, `P(x | z)` fixed; `given` is the mode of `data` that holds the observations. The start is
    /// uniform; every observation is a concave problem of its own, so that the start does not matter.
    ///
    /// # Errors
    ///
    /// As [`PlcaState::fold_in`](crate::before::PlcaState::fold_in).
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_em::{before::PlsaState, FoldIn, Given};
    /// use plca_tensor::{DenseTensor, Order};
    /// let learned = PlsaState { basis: dmatrix![1.0, 0.0; 0.0, 1.0], mixture: dmatrix![1.0; 0.0], power: 1.0, iteration: 0 };
    /// let new = DenseTensor::new(vec![2, 1], vec![3.0, 1.0], Order::RowMajor)?;
    /// let explained = learned.fold_in(&new, Given::Columns, &FoldIn::default())?;
    /// assert!((explained.outcome.state.mixture[(0, 0)] - 0.75f64).abs() < 1e-6);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fold_in(
        &self,
        data: &dyn Data<T>,
        given: Given,
        how: &FoldIn,
    ) -> Result<Explained<Self>, EmError> {
        check_block("basis", &self.basis, self.basis.shape())?;
        let mut learned = [None, None];
        learned[given.explained()] = Some(Factor::Columns(&self.basis));
        let (part, dropped) = possible(data, &learned, how.impossible)?;
        match &part {
            Some(part) => self.explain(part, given, how, dropped),
            None => self.explain(data, given, how, dropped),
        }
    }

    fn explain(
        &self,
        data: &dyn Data<T>,
        given: Given,
        how: &FoldIn,
        dropped: f64,
    ) -> Result<Explained<Self>, EmError> {
        let (k, along) = (self.basis.ncols(), given.mode());
        let config = Plsa::builder(k).given(given).freeze_basis().build()?;
        let uniform = T::one() / T::lit(k as f64);
        let state = Self {
            basis: stochastic_block("basis", self.basis.clone(), self.basis.shape())?,
            mixture: DMatrix::from_element(k, data.shape()[along], uniform),
            power: 1.0,
            iteration: 0,
        };
        let totals = data.marginal(along)?;
        let (mut outcome, gap) = certify(config.on(data)?, state, how, |s| {
            gaps(data, [&s.basis, &s.mixture], along, &totals)
        })?;
        outcome.state.basis.clone_from(&self.basis);
        Ok(Explained {
            outcome,
            gap,
            dropped,
            empty: empty(data, along)?,
        })
    }
}

/// One gap for every observation; `free` is component by observation.
pub(super) fn gaps<T: Real>(
    data: &dyn Data<T>,
    [fixed, free]: [&DMatrix<T>; 2],
    along: usize,
    totals: &[f64],
) -> Result<Vec<f64>, EmError> {
    let mut factors = [Factor::Columns(fixed), Factor::Rows(free)];
    if along == 0 {
        factors.reverse();
    }
    let model = Cp {
        weights: None,
        factors: &factors,
    };
    let gradient = Request::counts(Modes::one(along)).rule(Rule::Gradient);
    let gradient = data.e_step(&model, &gradient)?.take(along);
    let share = share(data, &factors, along)?;
    let gaps = (totals.iter().enumerate())
        .map(|(y, &total)| {
            let components = 0..free.nrows();
            gap(
                components.map(|z| (gradient[(z, y)], share[(y, z)], free[(z, y)])),
                total,
            )
        })
        .collect();
    Ok(gaps)
}
