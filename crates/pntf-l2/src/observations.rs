//! What the problems of new observations are made of.

use nalgebra::DMatrix;
use plca_tensor::Real;
use plca_tensor::arrange::Products;

use crate::sweep::{grams, hadamard};

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
    m: DMatrix<f64>,
    /// What observations are divided by: `Σ g`, or 1.
    pub(crate) totals: Vec<f64>,
    /// `‖g‖²` of every observation, divided before it is squared: small ones are not lost beside large ones.
    pub(crate) norms: Vec<f64>,
}

impl Observations {
    /// Of complete data, divided by their sums or not, and of factors of which only that of the observations has another number of rows.
    pub(crate) fn new<T: Real>(
        factors: &[DMatrix<T>],
        data: &Products<'_, T>,
        mode: usize,
        divided: bool,
    ) -> Self {
        let n = data.shape()[mode];
        let mut factors = factors.to_vec();
        factors[mode] = DMatrix::zeros(n, factors[mode].ncols());
        let mut totals = vec![if divided { 0.0 } else { 1.0 }; n];
        if divided {
            data.for_each(&mut |index, x| totals[index[mode]] += x);
        }
        let mut norms = vec![0.0; n];
        data.for_each(&mut |index, x| norms[index[mode]] += (x / totals[index[mode]]).powi(2));
        Self {
            h: hadamard(&grams(&factors), Some(mode)),
            m: data.mttkrp(&factors, mode),
            totals,
            norms,
        }
    }

    /// `Aᵀ g` of an observation, divided.
    pub(crate) fn products(&self, i: usize) -> Vec<f64> {
        let products = self.m.row(i);
        products.iter().map(|m| m / self.totals[i]).collect()
    }
}
