//! How far a block of parameters is from stationary, the same in all models.

use nalgebra::DMatrix;
use plca_fit::blocks::{BlockSpec, Frozen};
use plca_tensor::Real;

/// Passes over the coordinates of a sample that bring its block near the optimum, from where the last iteration has left it.
pub(crate) const SETTLING: usize = 4;

/// Whether an iteration may change something of a block.
pub(crate) fn is_free<T: Real>(spec: &BlockSpec<T>) -> bool {
    spec.frozen != Frozen::Whole
}

/// Whether some of the blocks have frozen components beside free ones.
pub(crate) fn any_partly_frozen<T: Real>(specs: &[BlockSpec<T>]) -> bool {
    specs.iter().any(BlockSpec::is_partly_frozen)
}

/// The largest of these over what is free of weights and block and the live components, from the counts `C` of a block `F` under weights `P(z)`; NaN if one
/// of them is not a number.
///
/// ```math
/// | n / v - P(z) |,
/// \qquad | F (g - 1) | = | C / (v P(z)) - F |,
/// \qquad | C / n - F | \text{ where the weights are frozen}
/// ```
pub(crate) fn residual<T: Real>(
    counts: &DMatrix<T>,
    block: &DMatrix<T>,
    weights: &[T],
    [free_weights, free_block]: [bool; 2],
) -> f64 {
    let mut worst: f64 = 0.0;
    let mut meet = |change: f64| worst = largest(worst, change.abs());
    // With hidden cells the completed data have more mass than was observed.
    let total: f64 = counts.iter().map(|c| c.to_f64()).sum();
    for (z, weight) in weights.iter().map(|w| w.to_f64()).enumerate() {
        let column = counts.column(z);
        let n: f64 = column.iter().map(|c| c.to_f64()).sum();
        if free_weights {
            meet(n / total - weight);
        }
        let n = if free_weights { weight * total } else { n };
        if !free_block || n <= 0.0 {
            continue;
        }
        for (c, f) in column.iter().zip(&block.column(z)) {
            // [SPEC 1.1] F g = C / (v P(z))
            meet(c.to_f64() / n - f.to_f64());
        }
    }
    worst
}

/// The larger of two numbers; NaN if one of them is.
pub(crate) fn largest(a: f64, b: f64) -> f64 {
    if a >= b || a.is_nan() { a } else { b }
}
