//! The consensus of many fits against golden values, and what it refuses.

use nalgebra::{DMatrix, dmatrix};
use plca_fit::consensus::{Consensus, ConsensusError, Spectra, neighbours, usage_order};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::Value;

fn numbers(array: &Value) -> Vec<f64> {
    let numbers = array["data"].as_array().unwrap().iter();
    numbers.map(|x| x.as_f64().unwrap()).collect()
}

/// Rows of the file as columns.
fn columns(array: &Value) -> DMatrix<f64> {
    let size = |at: usize| array["shape"][at].as_u64().unwrap() as usize;
    DMatrix::from_vec(size(1), size(0), numbers(array))
}

fn close(got: &[f64], expected: &[f64], what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (got, expected) in got.iter().zip(expected) {
        let error = (got - expected).abs() / expected.abs().max(1.0);
        assert!(error < 1e-8, "{what}: {got} {expected}");
    }
}

fn consensus(spectra: &Spectra, kept: &[bool]) -> Consensus {
    let found = spectra.consensus(kept, &mut ChaCha8Rng::seed_from_u64(0));
    found.unwrap()
}

/// As golden files hold it.
fn check(found: &Consensus, case: &Value, name: &str) {
    let expected = case["inertia"].as_f64().unwrap();
    close(&[found.inertia], &[expected], &format!("{name}: inertia"));
    let labels: Vec<f64> = found.labels.iter().map(|&k| k as f64).collect();
    assert_eq!(labels, numbers(&case["labels"]), "{name}");
    let silhouette = case["silhouette"].as_f64().unwrap();
    close(
        &[found.silhouette.unwrap()],
        &[silhouette],
        &format!("{name}: silhouette"),
    );
}

#[test]
fn golden() {
    let golden = include_str!("../../../testdata/golden/consensus.json");
    let golden: Value = serde_json::from_str(golden).unwrap();
    for case in golden["cases"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let k = case["K"].as_u64().unwrap() as usize;
        let number = |name: &str| case[name].as_f64().unwrap();
        let spectra = Spectra::new(columns(&case["spectra"]), k).unwrap();
        let near = neighbours(spectra.count(), k, number("neighbourhood")).unwrap();
        assert_eq!(near as f64, number("neighbours"), "{name}");
        let density = spectra.local_density(number("neighbourhood")).unwrap();
        close(&density, &numbers(&case["local_density"]), name);
        let kept: Vec<bool> = density.iter().map(|&d| d < number("threshold")).collect();
        let expected: Vec<bool> = serde_json::from_value(case["kept"]["data"].clone()).unwrap();
        assert_eq!(kept, expected, "{name}");
        let found = consensus(&spectra, &kept);
        check(&found, case, name);
        let expected = columns(&case["consensus_spectra"]);
        close(found.spectra.as_slice(), expected.as_slice(), name);
        let all = consensus(&spectra, &vec![true; kept.len()]);
        check(&all, &case["selection"], &format!("{name}, selection"));
        let (share, order) = usage_order(&columns(&case["usage_least_squares"]));
        close(&share, &numbers(&case["share"]), name);
        let expected: Vec<usize> = serde_json::from_value(case["order"].clone()).unwrap();
        assert_eq!(order, expected, "{name}");
    }
}

#[test]
fn the_bits_do_not_depend_on_the_number_of_threads() {
    let golden = include_str!("../../../testdata/golden/consensus.json");
    let golden: Value = serde_json::from_str(golden).unwrap();
    let case = &golden["cases"][1];
    let of = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.unwrap().install(|| {
            let spectra = Spectra::new(columns(&case["spectra"]), 4).unwrap();
            let density = spectra.local_density(0.3).unwrap();
            (density, consensus(&spectra, &vec![true; spectra.count()]))
        })
    };
    let one = of(1);
    for threads in [2, 5] {
        assert_eq!(of(threads), one);
    }
}

#[test]
fn what_has_no_consensus_is_refused() {
    let two = dmatrix![1.0, 0.0, 1.0, 0.0; 0.0, 1.0, 0.0, 1.0];
    let refused = |columns: DMatrix<f64>, k| Spectra::new(columns, k).unwrap_err();
    assert_eq!(refused(two.clone(), 0), ConsensusError::Components);
    let zero = dmatrix![1.0, 0.0; 0.0, 0.0];
    assert_eq!(refused(zero, 1), ConsensusError::Zero { spectrum: 1 });
    let negative = dmatrix![1.0, 2.0; 0.0, -3.0];
    let expected = "spectrum 1 has -3 in row 1, expected a finite number >= 0";
    assert_eq!(refused(negative, 1).to_string(), expected);
    let spectra = Spectra::new(two, 2).unwrap();
    for neighbourhood in [0.3, 2.0, f64::NAN] {
        let refused = spectra.local_density(neighbourhood).unwrap_err();
        let is_right = matches!(refused, ConsensusError::Neighbours { spectra: 4, .. });
        assert!(is_right, "{refused}");
    }
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let kept = [true, false, false, false];
    let refused = spectra.consensus(&kept, &mut rng).unwrap_err();
    let expected = ConsensusError::Kept {
        kept: 1,
        components: 2,
    };
    assert_eq!(refused, expected);
    // Components without a common entry have no median.
    let apart = Spectra::new(DMatrix::identity(3, 3), 1).unwrap();
    let refused = apart.consensus(&[true; 3], &mut rng).unwrap_err();
    let expected = ConsensusError::Median {
        cluster: 0,
        members: 3,
    };
    assert_eq!(refused, expected);
}

/// Scales of components play no part, however large or small.
#[test]
fn only_directions_count() {
    let columns = dmatrix![1.0, 2.0, 1.5, 0.5, 3.0, 1.0; 1.0, 0.5, 1.0, 2.0, 0.25, 3.0];
    let mut scaled = columns.clone();
    scaled.column_mut(1).scale_mut(2f64.powi(-700));
    scaled.column_mut(4).scale_mut(2f64.powi(900));
    let of = |columns: DMatrix<f64>| {
        let spectra = Spectra::new(columns, 1).unwrap();
        (
            spectra.local_density(0.5).unwrap(),
            consensus(&spectra, &[true; 6]),
        )
    };
    assert_eq!(of(columns), of(scaled));
}
