//! The threshold by a sweep over what a bound has left (the second half of Condat 2016).

use super::total_of;

/// `τ` of the unit simplex; of `y`, one entry or more, only the support is kept.
pub(super) fn threshold(y: &mut Vec<f64>) -> f64 {
    // [PNTF 3] ρ = (Σ_I x - 1)/|I|
    let mut rho = (total_of(y) - 1.0) / y.len() as f64;
    loop {
        let before = y.len();
        let mut left = before;
        y.retain(|&y| {
            let stays = y > rho || left == 1;
            if !stays {
                left -= 1;
                rho += (rho - y) / left as f64;
            }
            stays
        });
        if y.len() == before {
            return rho;
        }
    }
}
