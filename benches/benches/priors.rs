//! Exact M-steps under priors: the entropic step on a block of 10000 x 50, cross-entropy on one of 10000 x 12.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use nalgebra::DMatrix;
use plca_benches::{source, uniform};
use plca_priors::{CrossEntropy, Entropic, SimplexPrior, Step};
use rayon::ThreadPoolBuilder;

/// Counts as of words: sizes that fall by a power, times noise; about a hundred per entry on average.
fn counts(rows: usize, columns: usize) -> DMatrix<f64> {
    let mut rng = source(3);
    DMatrix::from_fn(rows, columns, |i, _| {
        -uniform(&mut rng).max(1e-300).ln() * 1e5 / (i as f64 + 100.0)
    })
}

fn step(
    c: &mut Criterion,
    name: String,
    prior: &dyn SimplexPrior<f64>,
    rows: usize,
    columns: usize,
) {
    let counts = counts(rows, columns);
    let mut theta = DMatrix::from_element(rows, columns, 1.0 / rows as f64);
    prior
        .update(&counts, &mut theta, &Step::at(1))
        .expect("it fits");
    let pool = (ThreadPoolBuilder::new().num_threads(1).build()).expect("a thread");
    let mut group = c.benchmark_group("priors");
    group
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2))
        .throughput(Throughput::Elements((rows * columns) as u64));
    group.bench_function(BenchmarkId::new(name, format!("{rows}x{columns}")), |b| {
        pool.install(|| b.iter(|| prior.update(&counts, &mut theta, &Step::at(1))));
    });
    group.finish();
}

fn priors(c: &mut Criterion) {
    // Strength relative to the column's count: the easy signs and sizes, and those where one entry may take most.
    for rho in [-1.0, -0.01, 0.01, 0.25, 0.5, 2.0] {
        let prior = Entropic::relative(rho).expect("finite");
        step(c, format!("entropic/beta={rho}N"), &prior, 10_000, 50);
    }
    let groups: Vec<usize> = (0..12).map(|z| z / 2).collect();
    let prior = CrossEntropy::groups(&groups, 0.03, 0.3)
        .expect("positive")
        .relative();
    step(c, "cross-entropy".into(), &prior, 10_000, 12);
}

criterion_group!(benches, priors);
criterion_main!(benches);
