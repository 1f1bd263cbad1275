//! Counts drawn under known hyperparameters, for table III and figure 1 of the Skellam paper.

use nalgebra::DMatrix;
use plca_dist::{draw_poisson, random::uniform};
use plca_tensor::DenseTensor;
use rand_chacha::ChaCha8Rng;
use serde::Deserialize;
use skellam_snmf::{Hyperparameters, SnmfState};

use super::support::gamma;
use crate::Result;

/// Rows of the data.
pub(super) const F: usize = 3;
/// Components.
pub(super) const K: usize = 2;

/// Shapes and rates of one uncertainty.
#[derive(Clone, Debug, Deserialize)]
struct Level {
    alpha: Vec<f64>,
    alpha_low_variance: Vec<f64>,
    a: Vec<f64>,
    b: Vec<f64>,
}

#[derive(Clone, Debug, Deserialize)]
struct Case {
    hyper_seed: u64,
    low: Level,
    high: Level,
}

#[derive(Debug, Deserialize)]
struct Table2 {
    cases: Vec<Case>,
}

/// The four scenarios of table II.
pub(super) const SCENARIOS: [&str; 4] = ["low", "low, low variance", "high", "high, low variance"];

/// Seeds of table II whose hyperparameters are known.
pub(super) const SEEDS: [u64; 7] = [0, 4, 10, 26, 55, 123, 138];

/// Hyperparameters of a seed in a scenario, and which entry uses which.
pub(super) fn hyperparameters(seed: u64, scenario: usize) -> Result<Hyperparameters> {
    let text = include_str!("../../../crates/testdata/golden/table2_hyperparameters.json");
    let table: Table2 = serde_json::from_str(text)?;
    let case = table.cases.into_iter().find(|c| c.hyper_seed == seed);
    let case = case.ok_or_else(|| format!("table II has no seed {seed}"))?;
    let level = if scenario < 2 { case.low } else { case.high };
    let by_component = match scenario % 2 {
        0 => level.alpha,
        _ => level.alpha_low_variance,
    };
    // The file has component, row, side; the sharing map has row, component, side.
    let mut alpha = vec![0.0; 2 * F * K];
    for (at, &x) in by_component.iter().enumerate() {
        let (k, f, s) = (at / (2 * F), at / 2 % F, at % 2);
        alpha[2 * (f * K + k) + s] = x;
    }
    Ok(Hyperparameters {
        alpha,
        shape: level.a,
        rate: level.b,
    })
}

/// Draws other shapes of the atoms by the rule of table II: low uncertainty, low variance.
pub(super) fn low_variance(hyper: &mut Hyperparameters, rng: &mut ChaCha8Rng) {
    for pair in hyper.alpha.chunks_exact_mut(2) {
        let drawn = [0, 1].map(|_| 1.0 + 10.0 * uniform(rng));
        let smaller = usize::from(drawn[1] < drawn[0]);
        pair.copy_from_slice(&drawn);
        pair[smaller] = 0.02;
    }
}

/// Draws factors from the prior.
pub(super) fn factors(
    hyper: &Hyperparameters,
    n: usize,
    rng: &mut ChaCha8Rng,
) -> Result<SnmfState<f64>> {
    // [SKELLAM eq. 15]
    let activations = DMatrix::from_fn(K, n, |k, _| gamma(hyper.shape[k], rng) / hyper.rate[k]);
    let mut side = |s| DMatrix::from_fn(F, K, |f, k| gamma(hyper.alpha[2 * (f * K + k) + s], rng));
    let (mut plus, mut minus) = (side(0), side(1));
    for (mut p, mut m) in plus.column_iter_mut().zip(minus.column_iter_mut()) {
        // [SKELLAM eq. 16]
        let sum = p.sum() + m.sum();
        p /= sum;
        m /= sum;
        // A draw of shape 0.02 may underflow; no datum can tell.
        for x in p.iter_mut().chain(m.iter_mut()) {
            *x = x.max(f64::MIN_POSITIVE);
        }
    }
    Ok(SnmfState::new(&plus, &minus, activations)?)
}

/// Draws the data of these factors.
pub(super) fn counts(truth: &SnmfState<f64>, rng: &mut ChaCha8Rng) -> Result<DenseTensor<f64>> {
    let [plus, minus] = [truth.plus(), truth.minus()].map(|side| side * truth.activations());
    let mut v = DMatrix::zeros(plus.nrows(), plus.ncols());
    for ((v, &p), &q) in v.iter_mut().zip(&plus).zip(&minus) {
        // [SKELLAM eq. 20]
        *v = draw_poisson(p, rng)? as f64 - draw_poisson(q, rng)? as f64;
    }
    Ok(DenseTensor::try_from(v)?)
}

/// Prior means: atoms, and activations with `extra` added to the rate.
pub(super) fn prior_means(hyper: &Hyperparameters, n: usize, extra: f64) -> Result<SnmfState<f64>> {
    let side = |s| DMatrix::from_fn(F, K, |f, k| hyper.alpha[2 * (f * K + k) + s]);
    let (mut plus, mut minus) = (side(0), side(1));
    for (mut p, mut m) in plus.column_iter_mut().zip(minus.column_iter_mut()) {
        let sum = p.sum() + m.sum();
        p /= sum;
        m /= sum;
    }
    let activations = DMatrix::from_fn(K, n, |k, _| hyper.shape[k] / (hyper.rate[k] + extra));
    Ok(SnmfState::new(&plus, &minus, activations)?)
}

/// Mean over row, component `found[k]` against `k`, and column of the squared difference of `H (T⁺ - T⁻)` and of `H (T⁺ + T⁻)`.
pub(super) fn errors(truth: &SnmfState<f64>, found: &SnmfState<f64>, order: &[usize]) -> [f64; 2] {
    let mut sums = [0.0; 2];
    for (k, &z) in order.iter().enumerate() {
        for (sum, sign) in sums.iter_mut().zip([-1.0, 1.0]) {
            let t = truth.plus().column(k) + truth.minus().column(k) * sign;
            let e = found.plus().column(z) + found.minus().column(z) * sign;
            let (h, g) = (truth.activations().row(k), found.activations().row(z));
            // [SKELLAM eq. 56] and [SKELLAM eq. 57]: |t hᵀ - e gᵀ|²
            *sum += (t * h - e * g).norm_squared();
        }
    }
    let cells = truth.plus().len() as f64 * truth.activations().ncols() as f64;
    sums.map(|s| s / cells)
}

#[cfg(test)]
mod tests {
    use super::super::support::rng;
    use super::*;

    #[test]
    fn errors_vanish_at_the_truth_and_see_swapped_components() {
        let hyper = hyperparameters(10, 0).unwrap();
        let truth = factors(&hyper, 20, &mut rng(1, 0)).unwrap();
        assert_eq!(errors(&truth, &truth, &[0, 1]), [0.0, 0.0]);
        assert!(errors(&truth, &truth, &[1, 0])[1] > 1.0);
    }

    #[test]
    fn draws_have_the_means_of_the_prior() {
        let hyper = hyperparameters(0, 1).unwrap();
        let truth = factors(&hyper, 4000, &mut rng(1, 0)).unwrap();
        for k in 0..K {
            let mean = truth.activations().row(k).mean();
            let expected = hyper.shape[k] / hyper.rate[k];
            // Five standard errors.
            let error = expected / hyper.shape[k].sqrt() / 4000f64.sqrt();
            assert!((mean - expected).abs() < 5.0 * error, "{mean} {expected}");
            let sum = truth.atoms().column(k).sum();
            assert!((sum - 1.0).abs() < 1e-14);
        }
    }
}
