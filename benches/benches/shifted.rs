//! One EM iteration of shifted models, by every arithmetic: what the cost model chooses between.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use plca_benches::{dense, source, sparse};
use plca_em::{Evaluation, Init, Model, Shifted, State};
use plca_tensor::{Data, Real};
use rayon::ThreadPoolBuilder;

/// Every arithmetic, and the choice between them.
const EVALUATIONS: [(&str, Evaluation); 5] = [
    ("auto", Evaluation::Auto),
    ("direct", Evaluation::Direct),
    ("sparse", Evaluation::Sparse),
    ("matrix", Evaluation::Matrix),
    ("fft", Evaluation::Fft),
];

/// A use of shifted models: name, extents of the data and of a kernel, components.
type Case = (&'static str, &'static [usize], &'static [usize], usize);

const CASES: [Case; 4] = [
    ("image", &[136, 511, 3], &[35, 25, 3], 1),
    ("constant-q", &[234, 317], &[180, 1], 1),
    ("handwriting", &[81, 113], &[15, 15], 3),
    ("speech", &[513, 938], &[513, 8], 20),
];

fn iteration<T: Real>(
    c: &mut Criterion,
    name: &str,
    data: &dyn Data<T>,
    (kernel, components): (&[usize], usize),
    skip: &[&str],
) {
    let mut group = c.benchmark_group(name);
    group
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2));
    for (evaluation, how) in EVALUATIONS.iter().filter(|e| !skip.contains(&e.0)) {
        let shifted = Shifted::new(components, kernel.to_vec()).evaluation(*how);
        let start = shifted.init(data, Init::default(), &mut source(4));
        let start = start.expect("a kernel smaller than the data");
        let start = start.parameters();
        for threads in [1, 2] {
            let pool = (ThreadPoolBuilder::new().num_threads(threads).build()).expect("threads");
            group.bench_function(BenchmarkId::new(*evaluation, format!("{threads}t")), |b| {
                pool.install(|| {
                    let em = shifted.bind(data).expect("the same data");
                    // Parameters move on, as in a fit: no iteration costs more than another.
                    let mut at = start.clone();
                    b.iter(|| em.step(&mut at, false).expect("a step"));
                });
            });
        }
    }
    group.finish();
}

/// The four cases on dense data.
fn dense_cases(c: &mut Criterion) {
    for (name, shape, kernel, components) in CASES {
        let data = dense::<f64>(shape);
        let group = format!("plca-em/shifted/{name}/f64");
        iteration::<f64>(c, &group, &data, (kernel, components), &["sparse"]);
    }
    let (name, shape, kernel, components) = CASES[3];
    let data = dense::<f32>(shape);
    let group = format!("plca-em/shifted/{name}/f32");
    iteration::<f32>(c, &group, &data, (kernel, components), &["sparse"]);
}

/// Where a list of the cells becomes worth it: one cell in a hundred and in a thousand of a matrix, small kernels.
fn sparse_cases(c: &mut Criterion) {
    for draws in [1000, 10_000] {
        let data = sparse::<f64>(&[1000, 1000], draws);
        let group = format!("plca-em/shifted/sparse-{draws}/f64");
        iteration::<f64>(c, &group, &data, (&[9, 9], 2), &["matrix"]);
    }
}

criterion_group!(benches, dense_cases, sparse_cases);
criterion_main!(benches);
