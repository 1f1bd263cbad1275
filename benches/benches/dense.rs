//! The E-step on dense data; the bench `dense_library` does the same with a library's matrix product.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use plca_benches::{dense, factors, flops, name, with_model};
use plca_tensor::{Data, Modes, Real, Request};
use rayon::ThreadPoolBuilder;

fn e_step<T: Real>(c: &mut Criterion, precision: &str, shape: &[usize], k: usize) {
    let (data, factors) = (dense::<T>(shape), factors::<T>(shape, k));
    let request = Request::counts(Modes::all(shape.len()));
    let mut group = c.benchmark_group(format!("plca/e_step/dense/{precision}"));
    group
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2))
        .throughput(Throughput::Elements(flops(shape, k) as u64));
    for threads in [1, 2] {
        let pool = (ThreadPoolBuilder::new().num_threads(threads).build()).expect("threads");
        group.bench_function(
            BenchmarkId::new(name(shape, k), format!("{threads}t")),
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

fn spectrogram(c: &mut Criterion) {
    e_step::<f64>(c, "f64", &[1025, 3000], 40);
    e_step::<f32>(c, "f32", &[1025, 3000], 40);
}

fn faces(c: &mut Criterion) {
    e_step::<f64>(c, "f64", &[361, 2429], 50);
}

fn tensor(c: &mut Criterion) {
    e_step::<f64>(c, "f64", &[200, 200, 200], 20);
}

criterion_group!(benches, spectrogram, faces, tensor);
criterion_main!(benches);
