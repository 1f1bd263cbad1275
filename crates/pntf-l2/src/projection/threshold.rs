//! The threshold in one pass and a sweep over what is left (Condat 2016).

/// `τ` of the unit simplex, for numbers in `(-1, 0]`; `v` is memory.
///
/// In that range no number alone fills the simplex, so none of those before it is ever put off, as the general method must.
pub(super) fn threshold(y: impl Iterator<Item = f64>, v: &mut Vec<f64>) -> f64 {
    v.clear();
    let mut rho = f64::NEG_INFINITY;
    y.for_each(|y| {
        if v.is_empty() {
            // [PNTF 3] ρ = y_1 - 1
            rho = y - 1.0;
            v.push(y);
        } else if y > rho {
            rho += (y - rho) / (v.len() + 1) as f64;
            v.push(y);
        }
    });
    loop {
        let before = v.len();
        let mut left = before;
        v.retain(|&y| {
            let stays = y > rho || left == 1;
            if !stays {
                left -= 1;
                rho += (rho - y) / left as f64;
            }
            stays
        });
        if v.len() == before {
            return rho;
        }
    }
}
