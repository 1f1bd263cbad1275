//! Squared error on the simplex: sweeps, projections, the weight programme.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::hint::black_box;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{
    BatchSize, BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main,
};
use nalgebra::DMatrix;
use plca_benches::{dense, factors, source, sparse, uniform};
use plca_tensor::{Data, Real};
use pntf_l2::{Init, Model, Ntf, NtfUpdate, Pntf, Projection, project_with, simplex_qp};
use rayon::ThreadPoolBuilder;

fn group<'a>(c: &'a mut Criterion, name: &str) -> BenchmarkGroup<'a, WallTime> {
    let mut group = c.benchmark_group(name);
    group
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2));
    group
}

/// Sweeps of the constrained model and of the baselines, from the same start, on one thread.
fn sweeps<T: Real>(c: &mut Criterion, name: &str, data: &dyn Data<T>, k: usize) {
    let given = factors::<T>(data.shape(), k).into_iter().enumerate();
    let start = given.fold(Init::default(), |init, (j, factor)| {
        init.block(format!("factor_{j}"), factor)
    });
    let mut group = group(c, &format!("pntf/sweep/{name}"));
    let pntf = Pntf::new(k);
    sweep(&mut group, "pntf", &pntf, data, &start);
    for (name, update) in [
        ("hals", NtfUpdate::Hals),
        ("multiplicative", NtfUpdate::Multiplicative),
    ] {
        let ntf = Ntf::new(k).update(update);
        sweep(&mut group, name, &ntf, data, &start);
    }
    group.finish();
}

fn sweep<T: Real, M: Model<T>>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    model: &M,
    data: &dyn Data<T>,
    start: &Init<T>,
) {
    let one = ThreadPoolBuilder::new().num_threads(1).build();
    let pool = one.expect("a thread");
    let at = model
        .bind(data)
        .and_then(|sweep| start.parameters(&*sweep, &mut source(4)));
    let mut at = at.expect("a start");
    group.bench_function(name, |b| {
        pool.install(|| {
            let sweep = model.bind(data).expect("data of the model");
            b.iter(|| sweep.step(&mut at, true));
        });
    });
}

fn faces(c: &mut Criterion) {
    let shape = [19, 19, 2429];
    sweeps(c, "19x19x2429-k50/f64", &dense::<f64>(&shape), 50);
    sweeps(c, "19x19x2429-k50/f32", &dense::<f32>(&shape), 50);
}

fn words(c: &mut Criterion) {
    let data = sparse::<f64>(&[16_242, 100], 65_451);
    sweeps(c, "16242x100-sparse-k4/f64", &data, 4);
}

fn projections(c: &mut Criterion) {
    for size in [100, 10_000, 10_000_000] {
        let mut rng = source(5);
        let b: Vec<f64> = (0..size).map(|_| 2.0 * uniform(&mut rng) - 1.0).collect();
        let mut group = group(c, &format!("pntf/projection/{size}"));
        group.throughput(Throughput::Elements(size as u64));
        for method in [
            Projection::Threshold,
            Projection::ActiveSet,
            Projection::Sort,
        ] {
            group.bench_function(
                BenchmarkId::from_parameter(format!("{method:?}")),
                |bench| {
                    bench.iter_batched_ref(
                        || b.clone(),
                        |x| project_with(x, 1.0, method),
                        BatchSize::PerIteration,
                    );
                },
            );
        }
        group.finish();
    }
}

/// The weight programme as sweeps pose it: the start is the solution of a problem a little off.
fn programme(c: &mut Criterion) {
    let mut group = group(c, "pntf/simplex_qp");
    for k in [10, 50] {
        let mut rng = source(6);
        let a = DMatrix::from_fn(2 * k, k, |_, _| uniform(&mut rng));
        let h = a.transpose() * &a;
        let h = (&h + h.transpose()) * 0.5;
        let truth = DMatrix::from_fn(k, 1, |_, _| uniform(&mut rng) / k as f64);
        let f = (&h * truth).as_slice().to_vec();
        let near: Vec<f64> = f
            .iter()
            .map(|f| f * (1.0 + 1e-3 * uniform(&mut rng)))
            .collect();
        let warm = simplex_qp(&h, &near, None).expect("a problem").weights;
        group.bench_function(BenchmarkId::new("warm", k), |b| {
            b.iter(|| simplex_qp(black_box(&h), black_box(&f), Some(&warm)));
        });
        group.bench_function(BenchmarkId::new("cold", k), |b| {
            b.iter(|| simplex_qp(black_box(&h), black_box(&f), None));
        });
    }
    group.finish();
}

criterion_group!(benches, faces, words, projections, programme);
criterion_main!(benches);
