//! The E-step on dense data, and what it would be with a library's matrix product.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{
    BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main,
};
use faer::linalg::matmul::matmul;
use faer::traits::ComplexField;
use faer::{Accum, Mat, Par};
use plca_benches::{dense, factors, with_model};
use plca_tensor::{Observed, Real, Wanted};
use rayon::ThreadPoolBuilder;

/// Columns of the library's tile: the model's part of them stays in the cache of a core.
const TILE: usize = 128;

fn group<'a>(c: &'a mut Criterion, name: &str, flops: usize) -> BenchmarkGroup<'a, WallTime> {
    let mut group = c.benchmark_group(name);
    group
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2))
        .throughput(Throughput::Elements(flops as u64));
    group
}

/// `2 K` flops per cell for `P`, and as many for each mode's counts: `6 M N K` for a matrix.
fn flops(shape: &[usize], k: usize) -> usize {
    2 * (1 + shape.len()) * k * shape.iter().product::<usize>()
}

fn name(shape: &[usize], k: usize) -> String {
    let sizes: Vec<_> = shape.iter().map(usize::to_string).collect();
    format!("{}-k{k}", sizes.join("x"))
}

fn e_step<T: Real>(c: &mut Criterion, precision: &str, shape: &[usize], k: usize) {
    let (data, factors) = (dense::<T>(shape), factors::<T>(shape, k));
    let modes = vec![true; shape.len()];
    let mut group = group(
        c,
        &format!("plca/e_step/dense/{precision}"),
        flops(shape, k),
    );
    for threads in [1, 2] {
        let pool = (ThreadPoolBuilder::new().num_threads(threads).build()).expect("threads");
        group.bench_function(
            BenchmarkId::new(name(shape, k), format!("{threads}t")),
            |b| {
                pool.install(|| {
                    with_model(&factors, |model| {
                        b.iter(|| {
                            data.expect(
                                model,
                                Wanted {
                                    modes: &modes,
                                    ln_lik: false,
                                },
                            )
                        });
                    });
                });
            },
        );
    }
    group.finish();
}

/// The same sums, tile by tile of columns, by three matrix products and a division in between.
struct Tiled<T> {
    v: Mat<T>,
    w: Mat<T>,
    /// `K x N`, so that a tile of columns is contiguous.
    h: Mat<T>,
    /// `V / (W H)` of one tile.
    ratio: Mat<T>,
    w_counts: Mat<T>,
    h_counts: Mat<T>,
}

impl<T: Real + ComplexField> Tiled<T> {
    fn new(m: usize, n: usize, k: usize) -> Self {
        let (data, factors) = (dense::<T>(&[m, n]), factors::<T>(&[m, n], k));
        Self {
            v: Mat::from_fn(m, n, |i, j| data.get(&[i, j])),
            w: Mat::from_fn(m, k, |i, z| factors[0][(i, z)]),
            h: Mat::from_fn(k, n, |z, j| factors[1][(j, z)]),
            ratio: Mat::zeros(m, TILE),
            w_counts: Mat::zeros(m, k),
            h_counts: Mat::zeros(k, n),
        }
    }

    fn pass(&mut self) {
        let (m, n) = (self.v.nrows(), self.v.ncols());
        let one = || T::lit(1.0);
        for start in (0..n).step_by(TILE) {
            let width = TILE.min(n - start);
            let h = self.h.as_ref().subcols(start, width);
            let w = self.w.as_ref();
            let model = self.ratio.as_mut().subcols_mut(0, width);
            matmul(model, Accum::Replace, w, h, one(), Par::Seq);
            for j in 0..width {
                let v = self.v.col(start + j).try_as_col_major();
                let ratio = self.ratio.col_mut(j).try_as_col_major_mut();
                let (Some(v), Some(ratio)) = (v, ratio) else {
                    unreachable!("columns are contiguous");
                };
                for (r, &v) in ratio.as_slice_mut().iter_mut().zip(v.as_slice()) {
                    *r = v / *r;
                }
            }
            let ratio = self.ratio.as_ref().subcols(0, width);
            let accum = if start == 0 {
                Accum::Replace
            } else {
                Accum::Add
            };
            matmul(
                &mut self.w_counts,
                accum,
                ratio,
                h.transpose(),
                one(),
                Par::Seq,
            );
            let counts = self.h_counts.as_mut().subcols_mut(start, width);
            matmul(
                counts,
                Accum::Replace,
                w.transpose(),
                ratio,
                one(),
                Par::Seq,
            );
        }
        // The multipliers become counts.
        let k = self.w.ncols();
        for z in 0..k {
            for i in 0..m {
                self.w_counts[(i, z)] *= self.w[(i, z)];
            }
        }
        for j in 0..n {
            for z in 0..k {
                self.h_counts[(z, j)] *= self.h[(z, j)];
            }
        }
    }
}

/// One thread: the products are compared, not the schedulers.
fn library<T: Real + ComplexField>(
    c: &mut Criterion,
    precision: &str,
    m: usize,
    n: usize,
    k: usize,
) {
    let mut tiled = Tiled::<T>::new(m, n, k);
    agrees(&mut tiled);
    let mut group = group(
        c,
        &format!("plca/e_step/dense-faer-tiles/{precision}"),
        flops(&[m, n], k),
    );
    group.bench_function(BenchmarkId::new(name(&[m, n], k), "1t"), |b| {
        b.iter(|| tiled.pass());
    });
    group.finish();
}

/// What is not the same sum is no alternative: the total of the counts is the total of the data.
fn agrees<T: Real + ComplexField>(tiled: &mut Tiled<T>) {
    tiled.pass();
    let sum = |m: &Mat<T>| -> f64 {
        (0..m.ncols())
            .map(|j| (0..m.nrows()).map(|i| m[(i, j)].to_f64()).sum::<f64>())
            .sum()
    };
    let total = sum(&tiled.v);
    for counts in [&tiled.w_counts, &tiled.h_counts] {
        let relative = (sum(counts) / total - 1.0).abs();
        assert!(
            relative < 1e-4,
            "counts of {relative} too much or too little"
        );
    }
}

fn spectrogram(c: &mut Criterion) {
    e_step::<f64>(c, "f64", &[1025, 3000], 40);
    library::<f64>(c, "f64", 1025, 3000, 40);
    e_step::<f32>(c, "f32", &[1025, 3000], 40);
    library::<f32>(c, "f32", 1025, 3000, 40);
}

fn faces(c: &mut Criterion) {
    e_step::<f64>(c, "f64", &[361, 2429], 50);
    library::<f64>(c, "f64", 361, 2429, 50);
}

fn tensor(c: &mut Criterion) {
    e_step::<f64>(c, "f64", &[200, 200, 200], 20);
}

criterion_group!(benches, spectrogram, faces, tensor);
criterion_main!(benches);
