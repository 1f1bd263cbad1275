//! The threshold by Michelot's active set: Algorithm 1 of the paper, mended.

/// `τ` of the unit simplex; of `y` only the support is kept.
///
/// The shifts of all rounds are equal on the survivors, so their sum is the threshold and no coordinate is moved.
pub(super) fn threshold(y: &mut Vec<f64>) -> f64 {
    loop {
        // [HS alg. 1] [PNTF 3] shift by (1 - Σ_I x)/|I|: over the coordinates left, not over all
        let tau = (y.iter().sum::<f64>() - 1.0) / y.len() as f64;
        let before = y.len();
        // A coordinate that leaves is 0 from now on.
        y.retain(|&y| y > tau);
        if y.len() == before || y.is_empty() {
            return tau;
        }
    }
}
