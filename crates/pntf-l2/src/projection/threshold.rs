//! The threshold in one pass and a sweep over what is left (Condat 2016).

/// `τ` of the unit simplex; `v` and `delayed` are memory.
pub(super) fn threshold(
    y: impl Iterator<Item = f64>,
    v: &mut Vec<f64>,
    delayed: &mut Vec<f64>,
) -> f64 {
    v.clear();
    delayed.clear();
    let mut rho = f64::NEG_INFINITY;
    y.for_each(|y| {
        if v.is_empty() {
            v.push(y);
            // [PNTF 3] ρ = y_1 - 1
            rho = y - 1.0;
        } else if y > rho {
            rho += (y - rho) / (v.len() + 1) as f64;
            if rho <= y - 1.0 {
                // `y` alone already fills the simplex: what came before is only a candidate.
                delayed.append(v);
                rho = y - 1.0;
            }
            v.push(y);
        }
    });
    for &y in delayed.iter() {
        if y > rho {
            v.push(y);
            rho += (y - rho) / v.len() as f64;
        }
    }
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
