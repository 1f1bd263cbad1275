//! The E-step on sparse data: bags of words and order-3 counts.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use plca_benches::{factors, sparse, with_model};
use plca_tensor::{Data, Modes, Real, Request, SparseTensor};
use rayon::ThreadPoolBuilder;

fn e_step<T: Real>(
    c: &mut Criterion,
    precision: &str,
    name: &str,
    data: &SparseTensor<T>,
    k: usize,
) {
    let request = Request::counts(Modes::all(data.shape().len()));
    let factors = factors::<T>(data.shape(), k);
    let mut group = c.benchmark_group(format!("plca/e_step/sparse/{precision}"));
    group
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2));
    // As for a matrix: a product of 2 K flops per stored cell for P, and one for each mode's counts.
    let flops = 2 * (1 + data.shape().len()) * k * data.summary().nnz as usize;
    group.throughput(Throughput::Elements(flops as u64));
    for threads in [1, 2] {
        let pool = (ThreadPoolBuilder::new().num_threads(threads).build()).expect("threads");
        group.bench_function(
            BenchmarkId::new(format!("{name}-k{k}"), format!("{threads}t")),
            |b| {
                pool.install(|| {
                    with_model(&factors, |model| {
                        b.iter(|| data.e_step(model, &request));
                    });
                });
            },
        );
    }
    group.finish();
}

fn text(c: &mut Criterion) {
    // 0.5 % of 18000 x 10000 cells.
    let data = sparse::<f64>(&[18_000, 10_000], 900_000);
    e_step(c, "f64", "text-18000x10000", &data, 20);
    e_step(c, "f64", "text-18000x10000", &data, 100);
    let data = sparse::<f32>(&[18_000, 10_000], 900_000);
    e_step(c, "f32", "text-18000x10000", &data, 20);
}

/// Documents of a large collection: 2e7 words, less those of a pair that comes more than once.
fn large(c: &mut Criterion) {
    let data = sparse::<f64>(&[200_000, 30_000], 20_000_000);
    e_step(c, "f64", "large-200000x30000", &data, 32);
}

fn tensor(c: &mut Criterion) {
    let data = sparse::<f64>(&[5000, 4000, 500], 5_000_000);
    e_step(c, "f64", "tensor-5000x4000x500", &data, 16);
}

criterion_group!(benches, text, large, tensor);
criterion_main!(benches);
