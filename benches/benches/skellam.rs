//! Signed data: iterations of EM and of variational Bayes, the E-step of counts, the special functions by region.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::hint::black_box;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{
    BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main,
};
use nalgebra::DMatrix;
use plca_benches::{source, uniform};
use plca_dist::{
    bessel_rho, digamma, exp_digamma_slice, gamma_shape_kl_slice, ln_0f1, skellam_divergence_slice,
    skellam_ln_pmf, skellam_ratios_slice,
};
use plca_fit::{Init, Model, State};
use plca_tensor::DenseTensor;
use rayon::{ThreadPool, ThreadPoolBuilder};
use skellam_snmf::{Replicates, Snmf, SnmfVb};

fn group<'a>(c: &'a mut Criterion, name: &str) -> BenchmarkGroup<'a, WallTime> {
    let mut group = c.benchmark_group(name);
    group
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2));
    group
}

fn pool(threads: usize) -> ThreadPool {
    let builder = ThreadPoolBuilder::new().num_threads(threads);
    builder.build().expect("threads")
}

/// Whole numbers of either sign of a few tens.
fn data(f: usize, n: usize) -> DenseTensor<f64> {
    let mut rng = source(11);
    let v = DMatrix::from_fn(f, n, |_, _| (60.0 * uniform(&mut rng) - 25.0).round());
    DenseTensor::try_from(v).expect("finite cells")
}

/// One iteration of a model, and its objective.
fn steps<M: Model<f64>>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    model: &M,
    data: &DenseTensor<f64>,
    pool: &ThreadPool,
) {
    let start = model.init(data, Init::default(), &mut source(12));
    let start = start.expect("a start");
    let start = start.parameters();
    group.bench_function(name, |b| {
        pool.install(|| {
            let bound = model.bind(data).expect("whole numbers");
            let mut at = start.clone();
            b.iter(|| bound.step(&mut at, false));
        });
    });
    group.bench_function(format!("{name}-objective"), |b| {
        pool.install(|| {
            let bound = model.bind(data).expect("whole numbers");
            b.iter(|| bound.objective(start));
        });
    });
}

/// EM and variational Bayes.
fn iterations(c: &mut Criterion, (f, n, k): (usize, usize, usize), threads: usize, name: &str) {
    let v = data(f, n);
    let pool = pool(threads);
    for (m, replicates) in [("limit", Replicates::Limit), ("one", Replicates::One)] {
        let mut group = group(c, &format!("skellam/{name}/{m}/{threads}-threads"));
        group.throughput(Throughput::Elements((f * n) as u64));
        let snmf = Snmf::new(k).replicates(replicates);
        steps(&mut group, "em", &snmf, &v, &pool);
        let vb = SnmfVb::new(k).replicates(replicates);
        steps(&mut group, "vb", &vb, &v, &pool);
        group.finish();
    }
}

fn small(c: &mut Criterion) {
    iterations(c, (34, 351, 2), 1, "351x34-k2");
    iterations(c, (21, 5000, 3), 1, "5000x21-k3");
    iterations(c, (9, 14_500, 7), 1, "14500x9-k7");
}

/// With one thread and with two: what the second is worth.
fn large(c: &mut Criterion) {
    for threads in [1, 2] {
        iterations(c, (5000, 20_000, 20), threads, "20000x5000-k20");
    }
}

/// Numbers spread over decades.
fn spread(low: f64, high: f64, seed: u64) -> Vec<f64> {
    let mut rng = source(seed);
    let draw = || 10f64.powf(low + (high - low) * uniform(&mut rng));
    std::iter::repeat_with(draw).take(CALLS).collect()
}

const CALLS: usize = 4096;

/// Time per call by region of orders and arguments; a call is an element.
fn functions(c: &mut Criterion) {
    let mut group = group(c, "skellam/functions");
    group.throughput(Throughput::Elements(CALLS as u64));
    // Decades of the order or the datum, then of the argument or the rates.
    for (region, order, argument) in [
        ("small", (-1.0, 1.0), (-2.0, 1.0)),
        ("to-1e3", (0.0, 3.0), (0.0, 3.0)),
        ("large", (3.0, 8.0), (3.0, 8.0)),
        ("order-above", (4.0, 8.0), (-2.0, 2.0)),
        ("argument-above", (-1.0, 1.0), (4.0, 8.0)),
    ] {
        let nu = spread(order.0, order.1, 1);
        let (p, q) = (
            spread(argument.0, argument.1, 2),
            spread(argument.0, argument.1, 3),
        );
        let (mut a, mut b) = (vec![0.0; CALLS], vec![0.0; CALLS]);
        let id = |name| BenchmarkId::new(name, region);
        group.bench_function(id("bessel_rho"), |bench| {
            let one = |i: usize| bessel_rho(nu[i], p[i]).unwrap_or(0.0);
            bench.iter(|| (0..CALLS).map(one).sum::<f64>());
        });
        group.bench_function(id("skellam_ratios"), |bench| {
            bench.iter(|| skellam_ratios_slice(black_box(&nu), &p, &q, &mut a, &mut b));
        });
        group.bench_function(id("skellam_divergence"), |bench| {
            bench.iter(|| skellam_divergence_slice(black_box(&nu), &p, &q, &mut a));
        });
        group.bench_function(id("skellam_ln_pmf"), |bench| {
            let one = |i: usize| skellam_ln_pmf(nu[i], p[i], q[i]).unwrap_or(0.0);
            bench.iter(|| (0..CALLS).map(one).sum::<f64>());
        });
        group.bench_function(id("ln_0f1"), |bench| {
            let one = |i: usize| ln_0f1(nu[i], p[i]).unwrap_or(0.0);
            bench.iter(|| (0..CALLS).map(one).sum::<f64>());
        });
    }
    for (region, low, high) in [
        ("below-1", -2.0, 0.0),
        ("to-1e3", 0.0, 3.0),
        ("large", 3.0, 12.0),
    ] {
        let (x, prior) = (spread(low, high, 4), vec![1.0; CALLS]);
        let mut a = vec![0.0; CALLS];
        let id = |name| BenchmarkId::new(name, region);
        group.bench_function(id("digamma"), |bench| {
            let one = |&x: &f64| digamma(x).unwrap_or(0.0);
            bench.iter(|| black_box(&x).iter().map(one).sum::<f64>());
        });
        group.bench_function(id("exp_digamma"), |bench| {
            bench.iter(|| exp_digamma_slice(black_box(&x), &mut a));
        });
        group.bench_function(id("gamma_shape_kl"), |bench| {
            bench.iter(|| gamma_shape_kl_slice(black_box(&x), &prior, &mut a));
        });
    }
    group.finish();
}

/// The same functions of the library in use elsewhere, where it has them.
fn library(c: &mut Criterion) {
    use special::Gamma;
    let mut group = group(c, "skellam/functions-of-special");
    group.throughput(Throughput::Elements(CALLS as u64));
    for (region, low, high) in [
        ("below-1", -2.0, 0.0),
        ("to-1e3", 0.0, 3.0),
        ("large", 3.0, 12.0),
    ] {
        let x = spread(low, high, 4);
        group.bench_function(BenchmarkId::new("digamma", region), |bench| {
            bench.iter(|| {
                black_box(&x)
                    .iter()
                    .map(|&x| Gamma::digamma(x))
                    .sum::<f64>()
            });
        });
        group.bench_function(BenchmarkId::new("ln_gamma", region), |bench| {
            bench.iter(|| {
                black_box(&x)
                    .iter()
                    .map(|&x| Gamma::ln_gamma(x).0)
                    .sum::<f64>()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, small, large, functions, library);
criterion_main!(benches);
