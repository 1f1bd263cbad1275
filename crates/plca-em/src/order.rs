//! How many components: information criteria.

/// The number of free parameters of PLCA of any order.
///
/// ```math
/// p = K - 1 + K \sum_j (I_j - 1)
/// ```
///
/// `I_j` are the sizes of the modes and `K` the number of components. PLSA of the joint distribution, in either direction, has the same
/// number. 0 where there is no model: no components, an empty mode.
///
/// ```
/// assert_eq!(plca_em::nominal_parameters(&[6, 5], 3), 29);
/// ```
pub fn nominal_parameters(shape: &[usize], components: usize) -> usize {
    if components == 0 || shape.contains(&0) {
        return 0;
    }
    // [SPEC 9]
    components - 1 + components * shape.iter().map(|n| n - 1).sum::<usize>()
}

/// The dimension of the set of distributions that PLCA can express.
///
/// ```math
/// p = K (I_1 + I_2 - K) - 1 \quad \text{for matrices}
/// ```
///
/// For matrices `K(K-1)` parameters are not identified; other orders have their nominal number. Never more than the number of cells less
/// one; 0 where there is no model.
///
/// ```
/// assert_eq!(plca_em::effective_parameters(&[6, 5], 3), 23);
/// assert_eq!(plca_em::effective_parameters(&[4, 5, 6], 3), 38);
/// assert_eq!(plca_em::effective_parameters(&[2, 2, 2], 9), 7);
/// ```
pub fn effective_parameters(shape: &[usize], components: usize) -> usize {
    let nominal = nominal_parameters(shape, components);
    match *shape {
        _ if nominal == 0 => 0,
        [a, b] => {
            // Beyond full rank nothing new can be expressed.
            let k = components.min(a).min(b);
            // [SPEC 9] K (I_1 + I_2 - K) - 1
            k * (a + b - k) - 1
        }
        _ => {
            let cells = shape.iter().fold(1usize, |n, &size| n.saturating_mul(size));
            nominal.min(cells - 1)
        }
    }
}

/// The number of free parameters of a shift-invariant model.
///
/// ```math
/// p = K - 1 + K (|k| - 1) + K (|m| - 1)
/// ```
///
/// `cells` are `|k|` and `|m|`, those of one kernel and of one impulse. The term of the kernels is left out if they are fixed; 0 where
/// there is no component or no cell.
///
/// ```
/// assert_eq!(plca_em::shifted_parameters([24, 6], 2, false), 1 + 2 * 23 + 2 * 5);
/// assert_eq!(plca_em::shifted_parameters([24, 6], 2, true), 1 + 2 * 5);
/// ```
pub fn shifted_parameters(cells: [usize; 2], components: usize, fixed_kernels: bool) -> usize {
    if components == 0 || cells.contains(&0) {
        return 0;
    }
    let [kernel, impulse] = cells.map(|n| components * (n - 1));
    // [SPEC 9]
    components - 1 + impulse + if fixed_kernels { 0 } else { kernel }
}

/// Information criteria of one fit, to choose the number of components by; smaller is better.
///
/// ```math
/// \mathrm{AIC} = -2 L + 2 p, \qquad \mathrm{BIC} = -2 L + p \ln v
/// ```
///
/// `L` is the log-likelihood in nats, `p` the number of parameters, and `v` the number of counts.
///
/// ```
/// use plca_em::{ModelOrder, effective_parameters};
/// // Two components gain 25 nats over one, for 8 parameters more.
/// let score = |l, k| ModelOrder::with_parameters(l, effective_parameters(&[6, 5], k), 50.0);
/// let [one, two] = [score(-125.0, 1), score(-100.0, 2)];
/// assert!(two.bic < one.bic);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ModelOrder {
    /// Akaike's criterion, `-2 L + 2 p`.
    pub aic: f64,
    /// The Bayesian criterion, `-2 L + p ln v`: meaningful only where the data are counts.
    pub bic: f64,
    /// The number of parameters, `p`.
    pub parameters: usize,
}

impl ModelOrder {
    /// The scores from a log-likelihood `L`, a number of parameters and `v`, the number of counts.
    ///
    /// ```
    /// let parameters = plca_em::shifted_parameters([3, 8], 1, false);
    /// assert_eq!(plca_em::ModelOrder::with_parameters(-100.0, parameters, 50.0).aic, 218.0);
    /// ```
    pub fn with_parameters(ln_lik: f64, parameters: usize, total: f64) -> Self {
        let p = parameters as f64;
        Self {
            // [SPEC 9] AIC = -2L + 2p, BIC = -2L + p ln n
            aic: 2.0 * p - 2.0 * ln_lik,
            bic: p * total.ln() - 2.0 * ln_lik,
            parameters,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // [SPEC 9]
    #[test]
    fn criteria_are_their_formulas() {
        let score = ModelOrder::with_parameters(-100.0, 9, 50.0);
        assert_eq!((score.aic, score.bic), (218.0, 9.0 * 50f64.ln() + 200.0));
    }

    /// No more dimensions than distributions over the cells have, and none where there is no model.
    // [SPEC 9]
    #[test]
    fn counts_are_bounded() {
        for (shape, most) in [
            (&[2, 2, 2][..], 7),
            (&[3], 2),
            (&[6, 5], 29),
            (&[2, 3, 4], 23),
        ] {
            for k in 1..50 {
                assert!(effective_parameters(shape, k) <= most, "{shape:?} {k}");
            }
            assert_eq!(effective_parameters(shape, 49), most, "{shape:?}");
            assert_eq!(
                (nominal_parameters(shape, 0), effective_parameters(shape, 0)),
                (0, 0)
            );
        }
        for (cells, k) in [([0, 4], 2), ([4, 0], 2), ([4, 3], 0)] {
            assert_eq!(shifted_parameters(cells, k, false), 0);
        }
        for shape in [&[0][..], &[0, 4], &[3, 0, 2]] {
            assert_eq!(
                (nominal_parameters(shape, 3), effective_parameters(shape, 3)),
                (0, 0)
            );
        }
    }

    // [SPEC 9]
    #[test]
    fn counts_match_the_reference() {
        let golden = include_str!("../../testdata/golden/free_parameters.json");
        let golden: serde_json::Value = serde_json::from_str(golden).unwrap();
        let mut checked = [0, 0];
        for case in golden["cases"].as_array().unwrap() {
            let count = |name: &str| case[name].as_u64().map(|n| n as usize);
            let shape = |name: &str| -> Vec<usize> {
                let sizes = case[name].as_array().unwrap().iter();
                sizes.map(|n| n.as_u64().unwrap() as usize).collect()
            };
            let (k, nominal) = (count("K").unwrap(), count("nominal").unwrap());
            if case["model"] == "plca" {
                let shape = shape("shape");
                assert_eq!(nominal_parameters(&shape, k), nominal);
                let effective = count("effective").unwrap_or(nominal);
                assert_eq!(effective_parameters(&shape, k), effective);
                checked[0] += 1;
            } else if case["model"] == "siplca" {
                let cells = ["kernel_shape", "impulse_shape"].map(|s| shape(s).iter().product());
                assert_eq!(shifted_parameters(cells, k, false), nominal);
                checked[1] += 1;
            }
        }
        assert!(checked[0] > 3);
        assert_eq!(checked[1], 3);
    }
}
