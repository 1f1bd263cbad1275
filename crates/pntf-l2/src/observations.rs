//! What the problems of new observations are made of.

use nalgebra::DMatrix;
use plca_fit::{FitError, units::squares_in_unit};
use plca_tensor::parallel::map_in_order;
use plca_tensor::{Data, Real, arrange, exponent, times_power_of_two};

use crate::sweep::{grams, hadamard};

/// A factor with every column times the power of two that brings its largest entry near 1, and the exponents: products over many
/// modes then neither overflow nor underflow.
pub(crate) fn balance<T: Real>(factor: &DMatrix<T>) -> (DMatrix<T>, Vec<i32>) {
    let mut balanced = factor.clone();
    let exponents = (balanced.column_iter_mut())
        .map(|mut column| {
            let exponent = near_one(column.amax().to_f64());
            column.apply(|x| *x = T::lit(times_power_of_two(x.to_f64(), exponent)));
            exponent
        })
        .collect();
    (balanced, exponents)
}

/// The exponent of the power of two that brings a positive number near 1; 0 of 0.
fn near_one(largest: f64) -> i32 {
    if largest > 0.0 { -exponent(largest) } else { 0 }
}

/// What the problems of all observations are made of. Each follows from the observation's own cells, in a scale of its own.
#[derive(Debug)]
pub(crate) struct Observations {
    /// `Aᵀ A`, `A` the components as seen in an observation.
    pub(crate) h: DMatrix<f64>,
    /// `Aᵀ g` of every observation, a column for each, in its scale.
    m: DMatrix<f64>,
    /// What observations are divided by: `Σ g` in its scale, or 1.
    pub(crate) totals: Vec<f64>,
    /// `‖g‖²` of every observation, divided before it is squared: small ones are not lost beside large ones.
    pub(crate) norms: Vec<f64>,
    /// The exponent of the power of two that every observation is multiplied by: its largest value is then near 1.
    pub(crate) exponents: Vec<i32>,
}

impl Observations {
    /// Of complete data, divided by their sums or not, and of factors of which only that of the observations has another number of rows.
    pub(crate) fn new<T: Real>(
        factors: &[DMatrix<T>],
        data: &dyn Data<T>,
        mode: usize,
        divided: bool,
    ) -> Result<Self, FitError> {
        let cells = arrange::Observations::new(data, mode)?;
        let k = factors[mode].ncols();
        let others = factors.iter().enumerate().filter(|&(j, _)| j != mode);
        // A component's entries of an index lie together.
        let others: Vec<DMatrix<f64>> = others
            .map(|(_, f)| f.map(|x| x.to_f64()).transpose())
            .collect();
        let found = map_in_order((0..cells.count()).collect(), |y: usize| {
            let (indices, values) = cells.cells(y);
            let values = values.iter().map(|x| x.to_f64());
            let largest = values.clone().fold(0.0, |a: f64, x| a.max(x.abs()));
            let exponent = near_one(largest);
            let values: Vec<f64> = values.map(|x| times_power_of_two(x, exponent)).collect();
            let total = if divided { values.iter().sum() } else { 1.0 };
            let mut m = vec![0.0; k];
            let mut product = vec![0.0; k];
            for (cell, &x) in values.iter().enumerate() {
                product.fill(x);
                let index = &indices[cell * others.len()..][..others.len()];
                for (factor, &i) in others.iter().zip(index) {
                    let own = factor.column(i as usize);
                    product
                        .iter_mut()
                        .zip(own.iter())
                        .for_each(|(p, f)| *p *= f);
                }
                m.iter_mut().zip(&product).for_each(|(m, p)| *m += p);
            }
            let norm = values.iter().map(|x| (x / total).powi(2)).sum();
            (m, total, norm, exponent)
        });
        let mut problems = Self {
            h: hadamard(&grams(factors), Some(mode)),
            m: DMatrix::zeros(k, found.len()),
            totals: Vec::with_capacity(found.len()),
            norms: Vec::with_capacity(found.len()),
            exponents: Vec::with_capacity(found.len()),
        };
        for (mut column, (m, total, norm, exponent)) in problems.m.column_iter_mut().zip(found) {
            column.copy_from_slice(&m);
            problems.totals.push(total);
            problems.norms.push(norm);
            problems.exponents.push(exponent);
        }
        Ok(problems)
    }

    /// The sum of the squares of all data that are not divided.
    ///
    /// # Errors
    ///
    /// [`FitError::Beyond`] where it has left the range of normal numbers.
    pub(crate) fn norm(&self) -> Result<f64, FitError> {
        let all = || self.norms.iter().zip(&self.exponents);
        let largest = all()
            .filter(|&(&norm, _)| norm > 0.0)
            .map(|(_, &e)| e)
            .min();
        let unit = largest.unwrap_or(0);
        let squares = all()
            .map(|(&norm, &e)| times_power_of_two(norm, 2 * (unit - e)))
            .sum();
        squares_in_unit("the sum of the squares of the data", squares, -unit)
    }

    /// `Aᵀ g` of an observation, divided.
    pub(crate) fn products(&self, i: usize) -> Vec<f64> {
        let products = self.m.column(i);
        products.iter().map(|m| m / self.totals[i]).collect()
    }
}
