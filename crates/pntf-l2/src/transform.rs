//! New data explained by a learned model.

use nalgebra::DMatrix;
use plca_tensor::{Real, RealTensor};

use crate::sweep::{gram, hadamard, widen};
use crate::{PntfError, PntfState, SimplexQp, simplex_qp};
use plca_tensor::parallel::map_in_order;

/// How new observations mix the learned components.
///
/// ```
/// use nalgebra::{dmatrix, dvector};
/// use plca_tensor::{Order, RealTensor};
/// use pntf_l2::PntfState;
/// let topics = dmatrix![1.0, 0.0; 0.0, 1.0];
/// let learned = PntfState { weights: dvector![0.5, 0.5], factors: vec![topics, dmatrix![1.0, 1.0]], mass: 1.0 };
/// let new = RealTensor::dense(vec![2, 2], vec![3.0, 0.0, 1.0, 0.0], Order::RowMajor)?;
/// let mixture = learned.explain(&new, 1)?;
/// assert!((mixture.weights[(0, 0)] - 0.75).abs() < 1e-12 && mixture.squared_errors[0] < 1e-12);
/// assert_eq!((mixture.empty, mixture.weights[(0, 1)]), (vec![1], 0.5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Mixture {
    /// `K x n`, column `i` for observation `i`: entries `>= 0` with sum 1.
    pub weights: DMatrix<f64>,
    /// `‖g - A l‖²` of every observation, `g` divided by its sum.
    pub squared_errors: Vec<f64>,
    /// How far each squared error is at most above the least one.
    pub gaps: Vec<f64>,
    /// Observations whose sum is not positive: they say nothing, their weights are uniform.
    pub empty: Vec<usize>,
}

impl<T: Real> PntfState<T> {
    /// Explains the slices of `data` along `mode` (the observations, any number of them) by the components' other factors.
    ///
    /// Every slice is divided by its sum and gets the weights on the simplex with the least squared error: a convex problem, solved
    /// to rounding. The learned weights and the factor of `mode` play no part. Cost: one product and `n` programmes.
    ///
    /// # Errors
    ///
    /// [`PntfError`]: another order, a mode that does not exist, slices of another shape, hidden cells.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::{dmatrix, dvector};
    /// use plca_tensor::{Order, RealTensor};
    /// use pntf_l2::PntfState;
    /// let topics = dmatrix![0.5, 0.0; 0.5, 0.0; 0.0, 1.0];
    /// let learned = PntfState { weights: dvector![0.5, 0.5], factors: vec![topics, dmatrix![1.0, 1.0]], mass: 1.0 };
    /// let new = RealTensor::dense(vec![3, 1], vec![3.0, 3.0, 2.0], Order::RowMajor)?;
    /// let mixture = learned.explain(&new, 1)?;
    /// assert!((mixture.weights[(0, 0)] - 0.75).abs() < 1e-15 && mixture.gaps[0] < 1e-15);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn explain(&self, data: &RealTensor<T>, mode: usize) -> Result<Mixture, PntfError> {
        let (order, shape) = (self.factors.len(), data.shape());
        if shape.len() != order {
            return Err(PntfError::Order {
                expected: order,
                got: shape.len(),
            });
        }
        if mode >= order {
            return Err(PntfError::Mode { mode, order });
        }
        if !data.is_complete() {
            return Err(PntfError::Incomplete("explaining new data"));
        }
        let k = self.weights.len();
        let others = (0..order).filter(|&m| m != mode);
        for m in others {
            if shape[m] != self.factors[m].nrows() {
                return Err(PntfError::Shape {
                    block: format!("factor_{m}"),
                    got: self.factors[m].shape(),
                    expected: (shape[m], k),
                });
            }
        }
        let n = shape[mode];
        let mut factors = self.factors.clone();
        factors[mode] = DMatrix::zeros(n, k);
        let grams: Vec<_> = factors.iter().map(|f| gram(&widen(f))).collect();
        let h = hadamard(&grams, Some(mode));
        let m = data.mttkrp(&factors, mode, None);
        let (mut totals, mut squares) = (vec![0.0; n], vec![0.0; n]);
        data.for_each(&mut |index, x| {
            totals[index[mode]] += x;
            squares[index[mode]] += x * x;
        });
        let solved = map_in_order((0..n).collect(), |i| {
            let f: Vec<f64> = m.row(i).iter().map(|m| m / totals[i]).collect();
            (totals[i] > 0.0).then(|| simplex_qp(&h, &f, None))
        });
        let mut mixture = Mixture {
            weights: DMatrix::from_element(k, n, 1.0 / k as f64),
            squared_errors: Vec::with_capacity(n),
            gaps: Vec::with_capacity(n),
            empty: Vec::new(),
        };
        for (i, qp) in solved.into_iter().enumerate() {
            let Some(qp) = qp else {
                mixture.empty.push(i);
                mixture.squared_errors.push(squares[i]);
                mixture.gaps.push(0.0);
                continue;
            };
            let SimplexQp {
                weights,
                objective,
                gap,
                ..
            } = qp?;
            mixture.weights.column_mut(i).copy_from_slice(&weights);
            let norm = squares[i] / (totals[i] * totals[i]);
            mixture
                .squared_errors
                .push((norm + 2.0 * objective).max(0.0));
            mixture.gaps.push(2.0 * gap);
        }
        Ok(mixture)
    }
}
