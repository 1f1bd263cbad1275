//! What the figures of HS share: the four methods they compare, and a classifier of features.

use linfa::prelude::{Dataset, Fit as _};
use linfa_svm::Svm;
use nalgebra::{DMatrix, DVector};
use ndarray::{Array1, Array2};
use plca_em::{Plca, PlcaState};
use plca_tensor::Data;
use plca_tensor::arrange::Products;
use pntf_l2::{Fit as Fitted, Init, Model, Ntf, NtfState, Pntf, PntfState, Solver, State, Stop};

use super::support::rng;
use crate::Result;

/// Names of the methods, in the order of every list here.
pub(super) const METHODS: [&str; 4] = ["pNTF", "NTF", "EM", "tempered EM"];
/// Tempering power of the first half of the sweeps.
const POWER: f64 = 0.9;

/// Of the classifier's optimality conditions.
const TOLERANCE: f64 = 1e-3;

/// A fitted model of data that sum to 1, its strongest component first.
pub(super) struct Components {
    pub(super) weights: Vec<f64>,
    /// Columns sum to 1.
    pub(super) factors: Vec<DMatrix<f64>>,
}

impl Components {
    fn sorted(weights: &[f64], factors: &[DMatrix<f64>]) -> Self {
        let mut order: Vec<usize> = (0..weights.len()).collect();
        order.sort_by(|&a, &b| weights[b].total_cmp(&weights[a]));
        Self {
            weights: order.iter().map(|&z| weights[z]).collect(),
            factors: factors.iter().map(|f| f.select_columns(&order)).collect(),
        }
    }

    fn of_pntf(state: &PntfState<f64>) -> Self {
        Self::sorted(state.weights(), state.factors())
    }

    fn of_em(state: &PlcaState<f64>) -> Self {
        Self::sorted(state.weights(), state.factors())
    }

    /// Weights are the products of the column sums, for data that sum to `total`.
    fn of_ntf(state: &NtfState<f64>, total: f64) -> Self {
        let mut factors = state.factors().to_vec();
        let mut weights = vec![1.0 / total; factors[0].ncols()];
        for factor in &mut factors {
            for (mut column, weight) in factor.column_iter_mut().zip(&mut weights) {
                let sum = column.sum();
                *weight *= sum;
                if sum > 0.0 {
                    column /= sum;
                }
            }
        }
        Self::sorted(&weights, &factors)
    }

    /// `‖G - P‖² / ‖G‖²`.
    pub(super) fn relative_error(&self, data: &dyn Data<f64>) -> Result<f64> {
        let data = Products::new(data)?;
        let scale = 1.0 / data.total();
        let (_, squares) = data.completed_mttkrp(scale, &self.weights, &self.factors, 0);
        Ok(squares / (data.squared_norm() * scale * scale))
    }

    /// Share of the factors' entries that are exactly 0.
    pub(super) fn zeros(&self) -> f64 {
        let entries = || self.factors.iter().flatten();
        entries().filter(|&&x| x == 0.0).count() as f64 / entries().count() as f64
    }
}

/// The best of several runs, of equals the first.
pub(super) fn best<S: State>(runs: impl Iterator<Item = Result<Fitted<S>>>) -> Result<Fitted<S>> {
    let fits = runs.collect::<Result<Vec<_>>>()?.into_iter();
    let best = fits.min_by(|a, b| a.objective().total_cmp(&b.objective()));
    best.ok_or_else(|| "no starts".into())
}

/// Fits by the four methods from the same starts, drawn at random; of several starts each keeps its own best.
pub(super) fn factorize(
    data: &dyn Data<f64>,
    k: usize,
    sweeps: usize,
    starts: u64,
    seed: u64,
) -> Result<[Components; 4]> {
    let total = data.total();
    let pntf = Pntf::new(k);
    let draw = |start| pntf.init(data, Init::default(), &mut rng(seed, 1 + start));
    let stop = |max_iter| Stop::default().max_iter(max_iter).tol(None);

    let constrained = best((0..starts).map(|start| {
        let run = pntf.on(data)?.stop(stop(sweeps));
        Ok(run.run(&draw(start)?, &mut rng(seed, 0))?)
    }))?;
    let ntf = Ntf::new(k);
    let level = (total / k as f64).powf(1.0 / data.shape().len() as f64);
    let free = best((0..starts).map(|start| {
        let factors = draw(start)?.factors().iter().map(|f| f * level).collect();
        let run = ntf.on(data)?.stop(stop(sweeps));
        Ok(run.run(&NtfState::new(factors)?, &mut rng(seed, 0))?)
    }))?;
    let em = |power: f64, sweeps, from: &PlcaState<f64>| -> Result<Fitted<PlcaState<f64>>> {
        // [SPEC 1.5]
        let plca = Plca::new(k).temper(power);
        let run = plca.on(data)?.solver(Solver::Em);
        let run = run.stop(stop(sweeps));
        Ok(run.run(from, &mut rng(seed, 0))?)
    };
    let likely = |tempered: usize| -> Result<Components> {
        let one = |start| -> Result<_> {
            let drawn = draw(start)?;
            let weights = DVector::from_column_slice(drawn.weights());
            let drawn = PlcaState::new(weights, drawn.factors().to_vec())?;
            match tempered {
                0 => em(1.0, sweeps, &drawn),
                _ => em(1.0, sweeps - tempered, em(POWER, tempered, &drawn)?.state()),
            }
        };
        let fits = (0..starts).map(one).collect::<Result<Vec<_>>>()?;
        let best = fits
            .iter()
            .max_by(|a, b| a.objective().total_cmp(&b.objective()));
        Ok(Components::of_em(best.ok_or("no starts")?.state()))
    };
    Ok([
        Components::of_pntf(constrained.state()),
        Components::of_ntf(free.state(), total),
        likely(0)?,
        likely(sweeps / 2)?,
    ])
}

/// Features in rows, and the class of each.
pub(super) struct Sample {
    pub(super) features: DMatrix<f64>,
    pub(super) positive: Vec<bool>,
}

/// Scores of `test` by a support vector machine with kernel `exp(-γ |x - y|²)`, trained on `train`; features are
/// standardised by the training part. Larger scores speak for the positive class.
pub(super) fn svm_scores(train: &Sample, test: &Sample, c: f64, gamma: f64) -> Result<Vec<f64>> {
    let n = train.features.nrows() as f64;
    let standard: Vec<(f64, f64)> = (train.features.column_iter())
        .map(|column| {
            let mean = column.mean();
            let deviation = (column.map(|x| (x - mean).powi(2)).sum() / n).sqrt();
            (mean, if deviation > 0.0 { deviation } else { 1.0 })
        })
        .collect();
    let records = |features: &DMatrix<f64>| {
        Array2::from_shape_fn(features.shape(), |(i, j)| {
            (features[(i, j)] - standard[j].0) / standard[j].1
        })
    };
    let set = Dataset::new(
        records(&train.features),
        Array1::from(train.positive.clone()),
    );
    let svm = Svm::<f64, bool>::params()
        .eps(TOLERANCE)
        .pos_neg_weights(c, c)
        .gaussian_kernel(1.0 / gamma)
        .fit(&set)
        .map_err(|e| e.to_string())?;
    let unseen = records(&test.features);
    Ok(unseen
        .outer_iter()
        .map(|x| svm.weighted_sum(&x) - svm.rho)
        .collect())
}

/// The curve of true against false positive rates, and the area under it; equal scores count half.
pub(super) fn roc(scores: &[f64], positive: &[bool]) -> (Vec<(f64, f64)>, f64) {
    let mut ranked: Vec<(f64, bool)> = scores
        .iter()
        .copied()
        .zip(positive.iter().copied())
        .collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
    let positives = positive.iter().filter(|p| **p).count() as f64;
    let negatives = positive.len() as f64 - positives;
    let mut curve = vec![(0.0, 0.0)];
    let (mut hits, mut alarms, mut area) = (0.0, 0.0, 0.0);
    for tied in ranked.chunk_by(|a, b| a.0 == b.0) {
        let good = tied.iter().filter(|s| s.1).count() as f64;
        let bad = tied.len() as f64 - good;
        area += bad * (hits + 0.5 * good);
        hits += good;
        alarms += bad;
        curve.push((alarms / negatives, hits / positives));
    }
    (curve, area / (positives * negatives))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn area_under_the_curve_counts_ordered_pairs() {
        let positive = [true, false, true, false];
        // Of four pairs (positive, negative) three are in order; a tie is half a pair.
        assert_eq!(roc(&[0.9, 0.5, 0.4, 0.1], &positive).1, 0.75);
        assert_eq!(roc(&[0.9, 0.5, 0.5, 0.1], &positive).1, 0.875);
        assert_eq!(roc(&[0.0; 4], &positive).1, 0.5);
    }

    #[test]
    fn the_classifier_separates_a_ring_from_its_middle() {
        let ring = |n: usize, phase: f64| {
            let features = DMatrix::from_fn(n, 2, |i, j| {
                let (angle, radius) = (i as f64 * 2.4 + phase, if i % 2 == 0 { 0.3 } else { 2.0 });
                radius * if j == 0 { angle.cos() } else { angle.sin() }
            });
            Sample {
                features,
                positive: (0..n).map(|i| i % 2 == 0).collect(),
            }
        };
        let (train, test) = (ring(80, 0.0), ring(60, 0.7));
        let scores = svm_scores(&train, &test, 10.0, 0.5).unwrap();
        assert_eq!(roc(&scores, &test.positive).1, 1.0);
    }
}
