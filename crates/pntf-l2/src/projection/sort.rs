//! The threshold by sorting.

/// `τ` of the unit simplex; `y` holds at least one entry and is sorted.
pub(super) fn threshold(y: &mut [f64]) -> f64 {
    y.sort_unstable_by(|a, b| b.total_cmp(a));
    let mut tau = y[0] - 1.0;
    let mut sum = 0.0;
    for (k, &u) in y.iter().enumerate() {
        sum += u;
        let candidate = (sum - 1.0) / (k + 1) as f64;
        // [PNTF 3] ρ = max{k : u_k > (Σ_{i<=k} u_i - 1)/k}
        if u <= candidate {
            break;
        }
        tau = candidate;
    }
    tau
}
