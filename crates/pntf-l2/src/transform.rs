//! New data explained by a learned model.

use nalgebra::DMatrix;
use plca_tensor::arrange::Products;
use plca_tensor::{Data, Real};

use crate::init::check_block;
use crate::qp::{gram_qp, orthant_qp};
use crate::sweep::{gram, hadamard, widen};
use crate::{NtfState, PntfError, PntfState, SimplexQp};
use plca_tensor::parallel::map_in_order;

/// How new observations mix the learned components.
///
/// ```
/// use nalgebra::{dmatrix, dvector};
/// use plca_tensor::{DenseTensor, Order};
/// use pntf_l2::PntfState;
/// let topics = dmatrix![1.0, 0.0; 0.0, 1.0];
/// let learned = PntfState { weights: dvector![0.5, 0.5], factors: vec![topics, dmatrix![1.0, 1.0]], mass: 1.0 };
/// let new = DenseTensor::new(vec![2, 2], vec![3.0, 0.0, 1.0, 0.0], Order::RowMajor)?;
/// let mixture = learned.explain(&new, 1)?;
/// assert!((mixture.weights[(0, 0)] - 0.75).abs() < 1e-12 && mixture.squared_errors[0] < 1e-12);
/// assert_eq!((mixture.empty, mixture.weights[(0, 1)]), (vec![1], 0.5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Mixture {
    /// `K x n`, column `i` for observation `i`: entries `>= 0` with sum 1.
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "plca_tensor::checked::matrix")
    )]
    pub weights: DMatrix<f64>,
    /// `‖g - A l‖²` of every observation, `g` divided by its sum, exact up to rounding of `‖g‖²`.
    pub squared_errors: Vec<f64>,
    /// How far each squared error is at most above the least one.
    pub gaps: Vec<f64>,
    /// Observations whose sum is not positive: they say nothing, their weights are uniform, their error and gap 0.
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
    /// [`PntfError`]: another order, a mode that does not exist, slices of another shape, hidden cells, slices whose sum is so small
    /// beside their values that squares overflow.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::{dmatrix, dvector};
    /// use plca_tensor::{DenseTensor, Order};
    /// use pntf_l2::PntfState;
    /// let topics = dmatrix![0.5, 0.0; 0.5, 0.0; 0.0, 1.0];
    /// let learned = PntfState { weights: dvector![0.5, 0.5], factors: vec![topics, dmatrix![1.0, 1.0]], mass: 1.0 };
    /// let new = DenseTensor::new(vec![3, 1], vec![3.0, 3.0, 2.0], Order::RowMajor)?;
    /// let mixture = learned.explain(&new, 1)?;
    /// assert!((mixture.weights[(0, 0)] - 0.75).abs() < 1e-15 && mixture.gaps[0] < 1e-15);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn explain(&self, data: &dyn Data<T>, mode: usize) -> Result<Mixture, PntfError> {
        let data = &Products::new(data)?;
        agree(&self.factors, data, mode)?;
        let Observations { h, m, totals } = Observations::new(&self.factors, data, mode);
        let norms = squared_norms(data, mode, &totals);
        let (n, k) = m.shape();
        let solved = map_in_order((0..n).collect(), |i| {
            let f: Vec<f64> = m.row(i).iter().map(|m| m / totals[i]).collect();
            (totals[i] > 0.0).then(|| gram_qp(&h, &f, None))
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
                mixture.squared_errors.push(0.0);
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
            mixture
                .squared_errors
                .push(squared_error(norms[i], objective)?);
            mixture.gaps.push(2.0 * gap);
        }
        Ok(mixture)
    }
}

/// How new observations add up from learned components.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_tensor::{DenseTensor, Order};
/// use pntf_l2::NtfState;
/// let learned = NtfState { factors: vec![dmatrix![2.0, 0.0; 0.0, 1.0], dmatrix![1.0, 1.0]] };
/// let new = DenseTensor::new(vec![2, 2], vec![4.0, 3.0, 1.0, -1.0], Order::RowMajor)?;
/// let found = learned.explain(&new, 1)?;
/// assert_eq!(found.factor, dmatrix![2.0, 1.0; 1.5, 0.0]);             // -1 is out of reach
/// assert_eq!(found.squared_errors, [0.0, 1.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Coefficients {
    /// `n x K`, row `i` for observation `i`, entries `>= 0`: the factor of the observations' mode.
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "plca_tensor::checked::matrix")
    )]
    pub factor: DMatrix<f64>,
    /// `‖g - A x‖²` of every observation, in the units of the data squared, exact up to rounding of `‖g‖²`.
    pub squared_errors: Vec<f64>,
    /// How far each squared error is at most above the least one.
    pub gaps: Vec<f64>,
}

impl<T: Real> NtfState<T> {
    /// Explains the slices of `data` along `mode` (the observations, any number of them) by the components' other factors.
    ///
    /// Every slice gets the coefficients `>= 0` with the least squared error: a convex problem, solved to rounding. The learned factor
    /// of `mode` plays no part, and components that are 0 get 0. Cost: one product and `n` programmes.
    ///
    /// # Errors
    ///
    /// [`PntfError`]: another order, a mode that does not exist, slices of another shape, factors that are negative or not finite,
    /// hidden cells, data whose squares overflow.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_tensor::{DenseTensor, Order};
    /// use pntf_l2::NtfState;
    /// let learned = NtfState { factors: vec![dmatrix![1.0, 1.0; 0.0, 1.0], dmatrix![1.0, 1.0]] };
    /// let new = DenseTensor::new(vec![2, 1], vec![1.0, 3.0], Order::RowMajor)?;
    /// // Without the constraint it would be (-2, 3).
    /// let found = learned.explain(&new, 1)?;
    /// assert!((&found.factor - dmatrix![0.0, 2.0]).amax() < 1e-15 && found.gaps[0] < 1e-14);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn explain(&self, data: &dyn Data<T>, mode: usize) -> Result<Coefficients, PntfError> {
        let data = &Products::new(data)?;
        agree(&self.factors, data, mode)?;
        for (j, factor) in self.factors.iter().enumerate().filter(|&(j, _)| j != mode) {
            check_block(&format!("factor_{j}"), factor, factor.shape(), false)?;
        }
        let balanced: Vec<_> = self.factors.iter().map(balance).collect();
        let scale = 1.0 / data.scale();
        // Added up as exponents: products of powers over many modes overflow where the coefficients do not.
        let units: Vec<i32> = (0..balanced[0].1.len())
            .map(|z| {
                let others = balanced.iter().enumerate().filter(|&(j, _)| j != mode);
                others.map(|(_, (_, units))| units[z]).sum::<i32>() + scale.log2() as i32
            })
            .collect();
        let factors: Vec<_> = balanced.into_iter().map(|(factor, _)| factor).collect();
        let Observations { h, m, .. } = Observations::new(&factors, data, mode);
        let (n, k) = m.shape();
        let norms = squared_norms(data, mode, &vec![1.0; n]);
        if !(data.squared_norm() * scale * scale).is_finite() {
            return Err(PntfError::Overflow);
        }
        // [PNTF 8] non-negative least squares, H = Aᵀ A and f = Aᵀ g
        let solved = map_in_order((0..n).collect(), |i| {
            let f: Vec<f64> = m.row(i).iter().copied().collect();
            orthant_qp(&h, &f)
        });
        let mut found = Coefficients {
            factor: DMatrix::zeros(n, k),
            squared_errors: Vec::with_capacity(n),
            gaps: Vec::with_capacity(n),
        };
        for (i, qp) in solved.into_iter().enumerate() {
            for (z, x) in qp.x.into_iter().enumerate() {
                found.factor[(i, z)] = times_power_of_two(x, units[z]);
            }
            let error = squared_error(norms[i], qp.objective)?;
            found.squared_errors.push(error * scale * scale);
            found.gaps.push(2.0 * qp.gap * scale * scale);
        }
        if found.factor.iter().any(|x| !x.is_finite()) {
            return Err(PntfError::Overflow);
        }
        Ok(found)
    }
}

/// Refuses data whose slices along `mode` the other factors cannot explain.
fn agree<T: Real>(
    factors: &[DMatrix<T>],
    data: &Products<'_, T>,
    mode: usize,
) -> Result<(), PntfError> {
    let (order, shape) = (factors.len(), data.shape());
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
    let k = factors[mode].ncols();
    for (m, factor) in factors.iter().enumerate().filter(|&(m, _)| m != mode) {
        if factor.shape() != (shape[m], k) {
            return Err(PntfError::Shape {
                block: format!("factor_{m}"),
                got: factor.shape(),
                expected: (shape[m], k),
            });
        }
    }
    Ok(())
}

/// A factor with every column times the power of two that brings its largest entry near 1, and the exponents: products over many
/// modes then neither overflow nor underflow.
pub(crate) fn balance<T: Real>(factor: &DMatrix<T>) -> (DMatrix<T>, Vec<i32>) {
    let mut balanced = factor.clone();
    let exponents = (balanced.column_iter_mut())
        .map(|mut column| {
            let largest = column.amax().to_f64();
            if largest <= 0.0 {
                return 0;
            }
            let exponent = -largest.log2().floor() as i32;
            column.apply(|x| *x = T::lit(times_power_of_two(x.to_f64(), exponent)));
            exponent
        })
        .collect();
    (balanced, exponents)
}

/// `x 2^exponent`, in steps whose powers are normal numbers.
pub(crate) fn times_power_of_two(mut x: f64, mut exponent: i32) -> f64 {
    while exponent != 0 && x != 0.0 {
        let step = exponent.clamp(-1000, 1000);
        x *= 2f64.powi(step);
        exponent -= step;
    }
    x
}

/// What the problems of all observations are made of, the data in the scale in which they are held.
#[derive(Debug)]
pub(crate) struct Observations {
    /// `Aᵀ A`, `A` the components as seen in an observation.
    pub(crate) h: DMatrix<f64>,
    /// `Aᵀ g` in rows.
    pub(crate) m: DMatrix<f64>,
    /// `Σ g`.
    pub(crate) totals: Vec<f64>,
}

impl Observations {
    /// Of data and factors that [`agree`].
    pub(crate) fn new<T: Real>(
        factors: &[DMatrix<T>],
        data: &Products<'_, T>,
        mode: usize,
    ) -> Self {
        let n = data.shape()[mode];
        let mut factors = factors.to_vec();
        factors[mode] = DMatrix::zeros(n, factors[mode].ncols());
        let grams: Vec<_> = factors.iter().map(|f| gram(&widen(f))).collect();
        let mut totals = vec![0.0; n];
        data.for_each(&mut |index, x| totals[index[mode]] += x);
        Self {
            h: hadamard(&grams, Some(mode)),
            m: data.mttkrp(&factors, mode),
            totals,
        }
    }
}

/// `‖g / unit‖²` of every observation, divided before it is squared: small ones are not lost beside large ones.
pub(crate) fn squared_norms<T: Real>(
    data: &Products<'_, T>,
    mode: usize,
    units: &[f64],
) -> Vec<f64> {
    let mut norms = vec![0.0; units.len()];
    data.for_each(&mut |index, x| norms[index[mode]] += (x / units[index[mode]]).powi(2));
    norms
}

/// `‖g - A x‖²` from `‖g‖²` and `½ ‖A x‖² - g·A x`; below 0 it is rounding.
fn squared_error(norm: f64, objective: f64) -> Result<f64, PntfError> {
    let error = norm + 2.0 * objective;
    if error.is_finite() {
        Ok(error.max(0.0))
    } else {
        Err(PntfError::Overflow)
    }
}
