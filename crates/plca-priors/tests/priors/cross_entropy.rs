//! The cross-entropy step against reference vectors, and its properties.

use nalgebra::{DMatrix, DVector};
use plca_priors::{
    CrossEntropy, CrossEntropyOrder, CrossEntropyStep, Flat, PriorRules, Schedule, Scheduled,
    SimplexPrior, Step, pair_divergences,
};
use proptest::prelude::*;
use serde_json::Value;

fn numbers(v: &Value) -> Vec<f64> {
    let list = v
        .as_array()
        .unwrap_or_else(|| v["data"].as_array().unwrap());
    list.iter().map(|x| x.as_f64().unwrap()).collect()
}

fn matrix(v: &Value) -> DMatrix<f64> {
    let size = |i: usize| v["shape"][i].as_u64().unwrap() as usize;
    DMatrix::from_row_slice(size(0), size(1), &numbers(v))
}

fn cases(kind: &str) -> Vec<Value> {
    let golden: Value =
        serde_json::from_str(include_str!("../../../testdata/golden/cross_entropy.json")).unwrap();
    let all = golden["cases"].as_array().unwrap().clone();
    all.into_iter()
        .filter(|c| c["name"].as_str().unwrap().starts_with(kind))
        .collect()
}

fn close(got: &DMatrix<f64>, want: &DMatrix<f64>) {
    for (got, want) in got.iter().zip(want) {
        assert!((got - want).abs() <= 1e-13, "{got} instead of {want}");
    }
}

/// The clipped Gauss-Seidel sweep [SPEC 8], groups that exclude each other and groups that are alike, and what is kept.
// [CE eq. 7]
#[test]
fn sweeps() {
    let cases = cases("step_");
    assert!(cases.len() >= 4);
    for case in cases {
        let groups: Vec<usize> = numbers(&case["groups"])
            .iter()
            .map(|&g| g as usize)
            .collect();
        let weight = |name: &str| case[name].as_f64().unwrap();
        let prior =
            CrossEntropy::groups(&groups, weight("alpha_between"), weight("beta_within")).unwrap();
        let (counts, mut q) = (matrix(&case["counts"]), matrix(&case["q"]));
        let old = q.clone();
        prior.update(&counts, &mut q, &Step::at(1)).unwrap();
        close(&q, &matrix(&case["q_new"]));
        for kept in numbers(&case["kept_unchanged"]) {
            assert_eq!(q.column(kept as usize), old.column(kept as usize));
        }
    }
}

/// The exact step for similar columns [SPEC 8].
#[test]
fn exact_similarity() {
    let cases = cases("exact_symmetric");
    assert!(cases.len() >= 2);
    for case in cases {
        let others = matrix(&case["q_others"]);
        let counts = numbers(&case["counts"]);
        let (rows, k) = (counts.len(), others.ncols() + 1);
        let a = case["weight"].as_f64().unwrap();
        // The first column is alike to the others; the others have no counts of their own and no partners but it.
        let weights = DMatrix::from_fn(k, k, |i, j| if (i == 0) != (j == 0) { -a } else { 0.0 });
        let prior = CrossEntropy::pairs(weights)
            .unwrap()
            .step(CrossEntropyStep::ExactSimilarity)
            .unwrap();
        let mut theta = DMatrix::from_element(rows, k, 1.0 / rows as f64);
        let mut n = DMatrix::zeros(rows, k);
        n.column_mut(0).copy_from_slice(&counts);
        for z in 1..k {
            theta.column_mut(z).copy_from(&others.column(z - 1));
        }
        prior.update(&n, &mut theta, &Step::at(1)).unwrap();
        for (got, want) in theta.column(0).iter().zip(numbers(&case["theta"])) {
            assert!((got - want).abs() <= 1e-12, "{got} instead of {want}");
        }
    }
}

fn block() -> impl Strategy<Value = (DMatrix<f64>, DMatrix<f64>)> {
    (2..8usize, 2..6usize).prop_flat_map(|(rows, k)| {
        let entry = || prop::collection::vec(0.01..10.0f64, rows * k);
        (entry(), entry()).prop_map(move |(n, q)| {
            let mut q = DMatrix::from_vec(rows, k, q);
            for mut column in q.column_iter_mut() {
                let sum = column.sum();
                column /= sum;
            }
            (DMatrix::from_vec(rows, k, n), q)
        })
    })
}

proptest! {
    /// Columns stay distributions under every step and order; without weight all are the flat prior.
    #[test]
    fn stays_on_the_simplex((n, q) in block(), between in 0.0..20.0f64, within in 0.0..20.0f64, seed in 0..6usize) {
        let groups: Vec<usize> = (0..n.ncols()).map(|z| z / 2).collect();
        let order = [CrossEntropyOrder::Sequential, CrossEntropyOrder::Simultaneous, CrossEntropyOrder::Parity][seed % 3];
        let step = [CrossEntropyStep::Clipped, CrossEntropyStep::AdditiveCorrection][seed / 3];
        for f in [1.0, 0.0] {
            let prior = CrossEntropy::groups(&groups, f * between, f * within).unwrap().order(order).step(step).unwrap();
            let mut theta = q.clone();
            prior.update(&n, &mut theta, &Step::at(1)).unwrap();
            for column in theta.column_iter() {
                prop_assert!((column.sum() - 1.0).abs() < 1e-12 && column.iter().all(|&x| x >= 0.0));
            }
            if f == 0.0 {
                let mut flat = q.clone();
                Flat.update(&n, &mut flat, &Step::at(1)).unwrap();
                prop_assert!((flat - theta).amax() < 1e-14);
            }
        }
    }

    /// The exact step for similar columns never lowers the symmetric objective [SPEC 8]; the additive correction has no negative numerator to clip.
    #[test]
    fn similarity_is_monotone((n, q) in block(), a in 0.0..20.0f64) {
        let groups = vec![0; n.ncols()];
        let prior = CrossEntropy::groups(&groups, 0.0, a).unwrap().step(CrossEntropyStep::ExactSimilarity).unwrap();
        let objective = |q: &DMatrix<f64>| {
            n.iter().zip(q.iter()).map(|(n, q)| n * q.ln()).sum::<f64>() + prior.ln_density(q, &Step::at(1))
        };
        let mut theta = q.clone();
        prior.update(&n, &mut theta, &Step::at(1)).unwrap();
        let (before, after) = (objective(&q), objective(&theta));
        prop_assert!(after >= before - 1e-10 * before.abs(), "{before} -> {after}");
    }

    /// The value of the prior is that of its definition, over all ordered pairs.
    // [SPEC 8]
    #[test]
    fn the_value_is_the_cross_entropy((_, q) in block(), between in 0.0..20.0f64, within in 0.0..20.0f64) {
        let groups: Vec<usize> = (0..q.ncols()).map(|z| z / 2).collect();
        let prior = CrossEntropy::groups(&groups, between, within).unwrap();
        let (mut value, mut size) = (0.0, 0.0);
        for (i, a) in q.column_iter().enumerate() {
            for (k, b) in q.column_iter().enumerate().filter(|&(k, _)| k != i) {
                let weight = if groups[i] == groups[k] { -within } else { between };
                let h: f64 = a.iter().zip(b.iter()).map(|(a, b)| -a * b.ln()).sum();
                value += weight * h;
                size += (weight * h).abs();
            }
        }
        let got = prior.ln_density(&q, &Step::at(1));
        prop_assert!((got - value).abs() <= 1e-13 * size, "{got} instead of {value}");
    }

    /// Weights relative to the mass per component are those weights.
    #[test]
    fn relative_weights((n, q) in block(), between in 0.0..2.0f64) {
        let groups: Vec<usize> = (0..n.ncols()).collect();
        let unit = n.sum() / n.ncols() as f64;
        let (mut a, mut b) = (q.clone(), q);
        CrossEntropy::groups(&groups, between, 0.0).unwrap().relative().update(&n, &mut a, &Step::at(1)).unwrap();
        CrossEntropy::groups(&groups, between * unit, 0.0).unwrap().update(&n, &mut b, &Step::at(1)).unwrap();
        prop_assert!((a - b).amax() < 1e-13);
    }
}

/// Excluding pulls columns apart, similarity together, and both more than their half; a decreasing weight ends as none.
// [SPEC 8]
#[test]
fn pulls_apart_and_together() {
    let n = DMatrix::from_row_slice(
        4,
        3,
        &[9.0, 6.0, 3.0, 5.0, 5.0, 5.0, 3.0, 4.0, 8.0, 2.0, 6.0, 4.0],
    );
    let mut q = n.clone();
    for mut column in q.column_iter_mut() {
        let sum = column.sum();
        column /= sum;
    }
    let apart = |between: f64, within: f64| {
        let groups = if within > 0.0 { [0, 0, 0] } else { [0, 1, 2] };
        let mut theta = q.clone();
        CrossEntropy::groups(&groups, between, within)
            .unwrap()
            .update(&n, &mut theta, &Step::at(1))
            .unwrap();
        pair_divergences(&theta, &[0, 1, 2]).1
    };
    let order = [
        apart(4.0, 0.0),
        apart(2.0, 0.0),
        apart(0.0, 0.0),
        apart(0.0, 2.0),
        apart(0.0, 8.0),
    ];
    assert!(order.windows(2).all(|w| w[0] > w[1]), "{order:?}");

    let prior = CrossEntropy::groups(&[0, 1, 2], 4.0, 0.0).unwrap();
    let scheduled = Scheduled::new(prior.clone(), Schedule::Decreasing { over: 4.0 }).unwrap();
    for (iteration, weight) in [(1, 4.0), (3, 2.0), (5, 0.0), (50, 0.0)] {
        let (mut a, mut b) = (q.clone(), q.clone());
        scheduled.update(&n, &mut a, &Step::at(iteration)).unwrap();
        CrossEntropy::groups(&[0, 1, 2], weight, 0.0)
            .unwrap()
            .update(&n, &mut b, &Step::at(1))
            .unwrap();
        assert!((a - b).amax() < 1e-14, "iteration {iteration}");
    }
}

/// Groups that take turns have theirs by the iteration, whatever their numbers.
#[test]
fn groups_take_turns() {
    let n = nalgebra::dmatrix![6.0, 2.0; 2.0, 6.0];
    let q = nalgebra::dmatrix![0.5, 0.5; 0.5, 0.5];
    let apart = |groups: [usize; 2]| CrossEntropy::groups(&groups, 4.0, 0.0).unwrap();
    let both = |groups| {
        let mut theta = q.clone();
        apart(groups).update(&n, &mut theta, &Step::at(1)).unwrap();
        [0, 1].map(|z| theta[(z, z)])
    };
    let [first, _] = both([0, 1]);
    let [_, second] = both([0, 1]);
    assert!(first > 0.75 && second > 0.75);
    for (groups, iteration) in [
        ([0, 1], 1),
        ([1, 0], 2),
        ([usize::MAX - 1, usize::MAX], 1),
        ([usize::MAX, 0], usize::MAX - 1),
        ([0, usize::MAX], usize::MAX),
    ] {
        let prior = apart(groups).order(CrossEntropyOrder::Parity);
        let mut theta = q.clone();
        prior.update(&n, &mut theta, &Step::at(iteration)).unwrap();
        assert_eq!(
            [theta[(0, 0)], theta[(1, 1)]],
            [first, 0.75],
            "{groups:?} at {iteration}"
        );
    }
}

/// What cannot be meant is refused by name.
#[test]
fn refuses() {
    assert!(CrossEntropy::groups(&[0, 1], -1.0, 0.0).is_err());
    assert!(CrossEntropy::groups(&[0, 1], 0.0, f64::NAN).is_err());
    let prior = CrossEntropy::groups(&[0, 1], 1.0, 0.0).unwrap();
    assert!(
        prior
            .clone()
            .step(CrossEntropyStep::ExactSimilarity)
            .is_err()
    );
    assert!(prior.clone().floor(-1e-9).is_err());
    assert!(prior.check((5, 3)).is_err());
    assert!(Scheduled::new(prior, Schedule::Decreasing { over: 0.0 }).is_err());
}

/// The corrected step, entry by entry: `D` is what the worst entry needs, at most a thousand times the mass; weights may be relative to
/// the mass per column.
// [SPEC 8]
#[test]
fn the_additive_correction_is_capped_by_the_mass() {
    let own = [0.7 - 1e-9, 1e-9, 0.3];
    let other = [0.2, 0.5, 0.3];
    for (scale, capped) in [(1.0, true), (0.25, true), (40.0, true), (1.0, false)] {
        let counts = [
            [4.0, 0.0, 1.0].map(|c| c * scale),
            [2.0, 3.0, 2.0].map(|c| c * scale),
        ];
        let mut own = own;
        if !capped {
            own = [0.6, 0.1, 0.3];
        }
        let mass: f64 = counts.iter().flatten().sum();
        let weight = 0.4 * mass / 2.0;
        let mut q = DMatrix::from_columns(&[own, other].map(|c| DVector::from_column_slice(&c)));
        let n = DMatrix::from_columns(&counts.map(|c| DVector::from_column_slice(&c)));
        let needed = (weight * other[1]) / own[1];
        assert_eq!(needed > 1e3 * mass, capped);
        let d = needed.min(1e3 * mass);
        let entry = |i: usize| (counts[0][i] - weight * other[i] + d * own[i]).max(0.0);
        let all: f64 = (0..3).map(entry).sum();
        let want = [entry(0) / all, entry(1) / all, entry(2) / all];
        let mut same = q.clone();
        let prior = |between: f64| {
            let prior = CrossEntropy::groups(&[0, 1], between, 0.0).unwrap();
            prior.step(CrossEntropyStep::AdditiveCorrection).unwrap()
        };
        prior(0.4)
            .relative()
            .update(&n, &mut q, &Step::at(1))
            .unwrap();
        prior(weight).update(&n, &mut same, &Step::at(1)).unwrap();
        for (i, want) in want.into_iter().enumerate() {
            assert!(
                (q[(i, 0)] - want).abs() < 1e-12,
                "{scale}: {} is not {want}",
                q[(i, 0)]
            );
        }
        assert!((q - same).amax() < 1e-12);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Frozen columns stand only in the sums of others, and free entries share what frozen ones of their column leave. [EXT 1]
    #[test]
    fn frozen_entries_and_columns(
        counts in prop::collection::vec(0.0..20.0f64, 12),
        start in prop::collection::vec(0.05..1.0f64, 12),
        weights in prop::collection::vec(-2.0..8.0f64, 3),
        flags in prop::collection::vec(any::<bool>(), 12),
        columns in prop::collection::vec(any::<bool>(), 3),
    ) {
        let counts = DMatrix::from_vec(4, 3, counts);
        let mut q = DMatrix::from_vec(4, 3, start);
        q.column_iter_mut().for_each(|mut c| c /= c.sum());
        let pair = |i: usize, k: usize| if i == k { 0.0 } else { weights[i + k - 1] };
        let pairs = DMatrix::from_fn(3, 3, pair);
        let flags = DMatrix::from_vec(4, 3, flags);
        // Flags are of columns that are partly frozen.
        let partly = |z: usize| flags.column(z).iter().any(|f| !f);
        let columns: Vec<bool> = (0..3).map(|z| columns[z] || !partly(z)).collect();
        let flags = DMatrix::from_fn(4, 3, |i, z| flags[(i, z)] && !columns[z]);
        let mut want = q.clone();
        for i in (0..3).filter(|&i| !columns[i]) {
            let sum = (0..3).fold(DVector::zeros(4), |s, k| s + want.column(k) * pair(i, k));
            let free = |at: usize| !flags[(at, i)];
            let new: Vec<f64> = (0..4).map(|at| (counts[(at, i)] - sum[at]).max(0.0)).collect();
            let total: f64 = (0..4).filter(|&at| free(at)).map(|at| new[at]).sum();
            let left = 1.0 - (0..4).filter(|&at| !free(at)).map(|at| want[(at, i)]).sum::<f64>();
            for at in (0..4).filter(|&at| free(at) && total > 0.0) {
                want[(at, i)] = left * new[at] / total;
            }
        }
        let prior = CrossEntropy::pairs(pairs).unwrap();
        let mut got = q.clone();
        let step = Step::at(1).frozen(&columns).entries(flags.as_slice());
        prior.update(&counts, &mut got, &step).unwrap();
        prop_assert!((&got - &want).amax() < 1e-12, "{got} {want}");
        for ((new, old), &frozen) in got.iter().zip(&q).zip(&flags) {
            prop_assert!(!frozen || new == old);
        }
    }
}
