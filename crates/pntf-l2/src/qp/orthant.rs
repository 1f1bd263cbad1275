//! The least-squares problem of one observation under unconstrained components [PNTF 8].
//!
//! ```math
//! \min \tfrac{1}{2} x^\top H x - f^\top x,
//! \qquad x \ge 0
//! ```

use nalgebra::DMatrix;
use plca_tensor::exponent;

use super::search::{Domain, Problem};

/// A minimiser of [`orthant_qp`].
#[derive(Clone, Debug)]
pub(crate) struct OrthantSolution {
    pub(crate) x: Vec<f64>,
    pub(crate) objective: f64,
    /// The objective is at most this far above the least one.
    pub(crate) gap: f64,
}

/// Minimises `½ xᵀ H x - fᵀ x` over `x >= 0`, for a positive semi-definite `h` of entries `>= 0` and `f` in its range: what least
/// squares with components `>= 0` gives. Unknowns without curvature stay 0. Nothing may be NaN or infinite.
///
/// The support is searched as for [`simplex_qp`](super::simplex_qp), from 0; where the minimiser is not unique, the one that is met. With
/// unknowns `x` given nothing is searched: the answer is what they are worth.
pub(crate) fn orthant_qp(h: &DMatrix<f64>, f: &[f64], x: Option<&[f64]>) -> OrthantSolution {
    let k = f.len();
    // Powers of two, so that every curvature is near 1 and no bit changes: `x = unit ∘ z`.
    let unit: Vec<f64> = (h.diagonal().iter())
        .map(|&h| if h > 0.0 { power_of_two(h.sqrt()) } else { 0.0 })
        .map(|root| if root > 0.0 { root.recip() } else { 0.0 })
        .collect();
    let scaled = DMatrix::from_fn(k, k, |i, j| h[(i, j)] * unit[i] * unit[j]);
    let slopes: Vec<f64> = f.iter().zip(&unit).map(|(f, unit)| f * unit).collect();
    let largest = slopes.iter().fold(0.0, |a: f64, f| a.max(f.abs()));
    let size = if largest > 0.0 {
        power_of_two(largest)
    } else {
        1.0
    };
    let target: Vec<f64> = slopes.iter().map(|f| f / size).collect();
    let problem = Problem::new(&scaled, &target, Domain::Orthant);
    let z = match x {
        Some(x) => {
            let inside = |(x, unit): (&f64, &f64)| if *unit > 0.0 { x / unit / size } else { 0.0 };
            x.iter().zip(&unit).map(inside).collect()
        }
        None => {
            let mut z = vec![0.0; k];
            problem.solve(&mut z);
            z
        }
    };
    let g = problem.gradient(&z);
    // [PNTF 8] With H >= 0 a minimiser y has H_ii y_i <= (H y)_i = f_i wherever y_i > 0, and objective(z) - objective(y) <= g·(z - y).
    let gap: f64 = (0..k)
        .map(|i| {
            let most = if unit[i] > 0.0 {
                target[i].max(0.0) / scaled[(i, i)]
            } else {
                0.0
            };
            g[i] * z[i] + (-g[i]).max(0.0) * most
        })
        .sum();
    let objective: f64 = (0..k).map(|i| 0.5 * (g[i] - target[i]) * z[i]).sum();
    let back = size * size;
    OrthantSolution {
        x: z.iter()
            .zip(&unit)
            .map(|(z, unit)| z * unit * size)
            .collect(),
        // ½ zᵀ H z - fᵀ z = ½ (g·z - f·z)
        objective: objective * back,
        gap: gap.max(0.0) * back,
    }
}

/// The largest power of two that is not above `x > 0`, the smallest normal number for subnormal ones.
fn power_of_two(x: f64) -> f64 {
    2f64.powi(exponent(x).max(f64::MIN_EXP - 1))
}
