//! Starts by deflation: component after component, the non-negative rank-one term found by alternating steps on what the earlier ones left over;
//! then the best weights.
//!
//! For matrices close to NNDSVD, for any order defined alike. Draws nothing. Hidden cells count as 0 here, so that little of the start lies where
//! much is hidden; the sweeps fill them with the model.

use nalgebra::DMatrix;
use plca_fit::{FitError, Progress};
use plca_tensor::Real;
use plca_tensor::arrange::Products;

use crate::blocks::unsolved;
use crate::qp::gram_qp;
use crate::sweep::{contracted, grams, hadamard, widen};

/// Alternations for one component.
const ALTERNATIONS: usize = 6;
/// Share of uniform that is mixed into a deflated column, so that no entry starts at 0.
const UNIFORM: f64 = 0.05;

/// Rank-one terms of what is left over, one after the other, in the `free` ones of the `outcome`; and the best weights, if these are free.
pub(crate) fn deflate<T: Real>(
    data: &Products<'_, T>,
    outcome: &mut [DMatrix<T>],
    free: &[bool],
    k: usize,
    weights: Option<&mut [T]>,
    progress: &mut Progress<'_>,
) -> Result<(), FitError> {
    let n = outcome.len();
    let scale = 1.0 / data.total();
    let contract = |factors: &[DMatrix<T>], mode| data.mttkrp(factors, mode) * scale;
    let mut factors: Vec<DMatrix<f64>> = outcome.iter().map(widen).collect();
    // Strengths of the earlier components, unconstrained.
    let mut strengths: Vec<f64> = Vec::with_capacity(k);
    for t in 0..k {
        progress.step(t, k)?;
        let mut strength = 0.0;
        for round in 0..ALTERNATIONS {
            for mode in 0..n {
                if !free[mode] && (round, mode) != (0, 0) {
                    continue;
                }
                let column = |f: &DMatrix<f64>| f.columns(t, 1).map(T::lit);
                let one: Vec<_> = factors.iter().map(column).collect();
                let mut b = contract(&one, mode);
                let mut own = 1.0;
                for (_, f) in factors.iter().enumerate().filter(|&(m, _)| m != mode) {
                    own *= f.column(t).norm_squared();
                }
                for (j, s) in strengths.iter().enumerate() {
                    let overlap: f64 = (0..n)
                        .filter(|&m| m != mode)
                        .map(|m| factors[m].column(j).dot(&factors[m].column(t)))
                        .product();
                    b.column_mut(0)
                        .axpy(-s * overlap, &factors[mode].column(j), 1.0);
                }
                b.apply(|x| *x = x.max(0.0));
                let sum = b.sum();
                if sum <= 0.0 {
                    // Nothing positive is left in this direction.
                    break;
                }
                strength = sum / own;
                if free[mode] {
                    factors[mode].set_column(t, &(b.column(0) / sum));
                }
            }
        }
        strengths.push(strength);
    }
    for (j, factor) in factors.into_iter().enumerate() {
        if free[j] {
            let uniform = 1.0 / factor.nrows() as f64;
            outcome[j] = factor.map(|x| T::lit((1.0 - UNIFORM) * x + UNIFORM * uniform));
        }
    }
    if let Some(weights) = weights {
        let f = contracted(&contract(outcome, 0), &widen(&outcome[0]));
        let qp = gram_qp(&hadamard(&grams(outcome), None), &f, None).map_err(unsolved)?;
        // No component starts dead.
        let uniform = 1.0 / k as f64;
        for (w, l) in weights.iter_mut().zip(qp.weights) {
            *w = T::lit((1.0 - UNIFORM) * l + UNIFORM * uniform);
        }
    }
    Ok(())
}
