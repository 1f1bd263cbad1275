//! The E-step on dense data as a library's matrix product would do it: tile by tile of columns, three products and a division in between.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use faer::linalg::matmul::matmul;
use faer::traits::ComplexField;
use faer::{Accum, Mat, Par};
use plca_benches::{dense, factors, flops, name};
use plca_tensor::Real;

/// Columns of the library's tile: the model's part of them stays in the cache of a core.
const TILE: usize = 128;

/// Data, model and sums of one shape.
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
    let mut group = c.benchmark_group(format!("plca/e_step/dense-faer-tiles/{precision}"));
    group
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2))
        .throughput(Throughput::Elements(flops(&[m, n], k) as u64));
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

fn matrices(c: &mut Criterion) {
    library::<f64>(c, "f64", 1025, 3000, 40);
    library::<f32>(c, "f32", 1025, 3000, 40);
    library::<f64>(c, "f64", 361, 2429, 50);
}

criterion_group!(benches, matrices);
criterion_main!(benches);
