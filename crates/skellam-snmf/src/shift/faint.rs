//! Expected counts of shifted atoms from logarithms, for rates that lie below the exponents of the scalar.

use nalgebra::DMatrix;
use plca_tensor::shift::advance;
use plca_tensor::{CompensatedSum, Real};

use super::Placed;
use super::engine::Expected;
use crate::faint::{explained, narrow};

impl<T: Real> Placed<T> {
    /// Expected counts of both blocks and the likelihood, from the logarithms of atoms and activations. Cost: an exponential for every cell, component, tap
    /// and side.
    pub(super) fn faint(&self, [atoms, activations]: &[DMatrix<f64>; 2]) -> Expected<T> {
        let components = 0..atoms.ncols();
        // [EXT 5] What is latent counts its rates: all there are, less those of observed cells.
        let [mut theta, mut lambda] = [atoms, activations].map(|m| m.map(f64::exp));
        for z in components.clone() {
            let [of_atom, all] = [&theta, &lambda].map(|m| m.column(z).sum());
            theta.column_mut(z).scale_mut(all);
            lambda.column_mut(z).scale_mut(of_atom);
        }
        let mut value = CompensatedSum::default();
        let mut index = vec![0; self.window.shape.len()];
        for cell in &self.cells {
            let v = cell.to_f64();
            if !v.is_nan() {
                let pairs = self.window.reaching(&index);
                let places = |side: usize| {
                    let rows = pairs
                        .iter()
                        .map(move |&(tap, place)| (2 * tap + side, place));
                    rows.flat_map(|(i, h)| components.clone().map(move |z| (i, h, z)))
                };
                let mut shares = [0, 1].map(|side| {
                    let ln = |(i, h, z): (usize, usize, usize)| atoms[(i, z)] + activations[(h, z)];
                    places(side).map(ln).collect::<Vec<f64>>()
                });
                let ln = shares.each_mut().map(|ln| shared(ln));
                let (counts, own) = explained(self.split.replicates, v, ln);
                value += own;
                for side in [0, 1] {
                    let more = counts[side] - ln[side].exp();
                    for ((i, h, z), share) in places(side).zip(&shares[side]) {
                        theta[(i, z)] += more * share;
                        lambda[(h, z)] += more * share;
                    }
                }
            }
            advance(&mut index, &self.window.shape);
        }
        let counts = [theta, lambda].map(|m| m.iter().map(|&x| narrow(x)).collect());
        (counts, Some(value.value()))
    }
}

/// Logarithms become shares of their sum, of which the logarithm is returned.
fn shared(ln: &mut [f64]) -> f64 {
    let largest = ln.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if largest == f64::NEG_INFINITY {
        ln.fill(0.0);
        return largest;
    }
    ln.iter_mut().for_each(|x| *x = (*x - largest).exp());
    let sum: f64 = ln.iter().sum();
    ln.iter_mut().for_each(|x| *x /= sum);
    largest + sum.ln()
}
