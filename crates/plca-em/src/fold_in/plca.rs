//! PLCA with all factors but one fixed.

use nalgebra::{DMatrix, DVector};
use plca_tensor::{Cp, Data, Factor, Modes, Real, Request, Rule};

use super::{Explained, FoldIn, certify, empty, gap, possible, share};
use crate::init::{check_block, stochastic_block};
use crate::{
    EmError,
    before::{Plca, PlcaState},
};

impl<T: Real> PlcaState<T> {
    /// `P(z)` and `P(x_D | z)` of new data along mode `D = along`, all other factors fixed. The start is uniform; the
    /// problem is concave, so that the start does not matter.
    ///
    /// # Errors
    ///
    /// [`EmError`]: a mode that the model does not have, no components, data of another shape, a factor that cannot be normalised, an
    /// impossible observation.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::{dmatrix, dvector};
    /// use plca_em::{before::PlcaState, FoldIn};
    /// use plca_tensor::{DenseTensor, Order};
    /// let learned = PlcaState {
    ///     weights: dvector![0.5, 0.5],
    ///     factors: vec![dmatrix![0.9, 0.2; 0.1, 0.8], dmatrix![1.0, 1.0]],
    ///     power: 1.0,
    ///     iteration: 0,
    /// };
    /// let new = DenseTensor::new(vec![2, 3], vec![9.0, 1.0, 2.0, 1.0, 4.0, 8.0], Order::RowMajor)?;
    /// let explained = learned.fold_in(&new, 1, &FoldIn::default())?;
    /// assert!(explained.gap[0] <= 1e-6);
    /// assert_eq!(explained.outcome.state.factors[0], learned.factors[0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fold_in(
        &self,
        data: &dyn Data<T>,
        along: usize,
        how: &FoldIn,
    ) -> Result<Explained<Self>, EmError> {
        if along >= self.factors.len() {
            return Err(EmError::Mode {
                mode: along,
                modes: self.factors.len(),
            });
        }
        for (j, f) in self.factors.iter().enumerate().filter(|&(j, _)| j != along) {
            check_block(&format!("factor_{j}"), f, (f.nrows(), self.weights.len()))?;
        }
        let learned: Vec<_> = (self.factors.iter().enumerate())
            .map(|(j, f)| (j != along).then_some(Factor::Columns(f)))
            .collect();
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
        let (k, n) = (self.weights.len(), data.shape()[along]);
        let mut config = Plca::builder(k);
        for j in (0..self.factors.len()).filter(|&j| j != along) {
            config = config.freeze_factor(j);
        }
        let config = config.build()?;
        let block = |(j, f): (usize, &DMatrix<T>)| {
            if j == along {
                return Ok(DMatrix::from_element(n, k, T::one() / T::lit(n as f64)));
            }
            stochastic_block(&format!("factor_{j}"), f.clone(), (f.nrows(), k))
        };
        let factors = self.factors.iter().enumerate().map(block);
        let state = Self {
            weights: DVector::from_element(k, T::one() / T::lit(k as f64)),
            factors: factors.collect::<Result<_, _>>()?,
            power: 1.0,
            iteration: 0,
        };
        let (mut outcome, gap) = certify(config.on(data)?, state, how, |s| gap_of(data, s, along))?;
        for (j, factor) in outcome.state.factors.iter_mut().enumerate() {
            if j != along {
                factor.clone_from(&self.factors[j]);
            }
        }
        Ok(Explained {
            outcome,
            gap,
            dropped,
            empty: empty(data, along)?,
        })
    }
}

/// One gap over components and indices of the free mode: the problem is linear in `P(z) P(x_D | z)`.
fn gap_of<T: Real>(
    data: &dyn Data<T>,
    state: &PlcaState<T>,
    along: usize,
) -> Result<Vec<f64>, EmError> {
    let mut free = state.factors[along].clone();
    for (mut column, &weight) in free.column_iter_mut().zip(&state.weights) {
        column *= weight;
    }
    let mut factors: Vec<_> = state.factors.iter().map(Factor::Columns).collect();
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
