//! The number of threads never changes a bit.

use nalgebra::DMatrix;
use plca_tensor::{
    Coordinates, Cp, Data, DenseTensor, Factor, Modes, Order, Real, Request, Rule, SparseTensor,
};

use crate::support::noise;

fn bits<T: Real>(data: &dyn Data<T>, k: usize, threads: usize) -> Vec<u64> {
    let mut next = noise(3);
    let factors: Vec<DMatrix<T>> = data
        .shape()
        .iter()
        .map(|&n| DMatrix::from_fn(n, k, |_, _| T::lit(next())))
        .collect();
    let weights: Vec<T> = (0..k).map(|_| T::lit(next())).collect();
    let factors: Vec<_> = factors.iter().map(Factor::Columns).collect();
    let model = Cp {
        weights: Some(&weights),
        factors: &factors,
    };
    let all = Request::counts(Modes::all(factors.len())).value(true);
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .unwrap();
    pool.install(|| {
        let e = data.e_step(&model, &all).unwrap();
        let x = data.e_step(&model, &all.rule(Rule::Exposure)).unwrap();
        let modes = (0..factors.len()).flat_map(|m| [e.counts(m), x.counts(m)]);
        let values = modes.flat_map(|m| m.iter().map(|v| v.to_f64().to_bits()));
        [e.value().to_bits(), x.value().to_bits()]
            .into_iter()
            .chain(values)
            .collect()
    })
}

fn check<T: Real>() {
    let mut next = noise(1);
    let shape = vec![403, 317];
    let values: Vec<T> = (0..403 * 317).map(|_| T::lit(next())).collect();
    let holes: Vec<T> = values
        .iter()
        .map(|&v| if v < T::lit(0.3) { T::lit(f64::NAN) } else { v })
        .collect();
    let sparse = |shape: Vec<usize>, n: usize| {
        let mut next = noise(2);
        let indices = (0..n)
            .flat_map(|_| {
                shape
                    .iter()
                    .map(|&s| (next() * s as f64 * 0.999) as u32)
                    .collect::<Vec<_>>()
            })
            .collect();
        let values = (0..n).map(|_| T::lit(next())).collect();
        SparseTensor::new(Coordinates {
            shape,
            indices,
            values,
        })
        .unwrap()
    };
    let all: Vec<Box<dyn Data<T>>> = vec![
        Box::new(DenseTensor::new(shape.clone(), values.clone(), Order::RowMajor).unwrap()),
        Box::new(DenseTensor::new(vec![13, 31, 317], values.clone(), Order::ColumnMajor).unwrap()),
        Box::new(DenseTensor::new(vec![13, 31, 317], values, Order::RowMajor).unwrap()),
        Box::new(DenseTensor::masked(shape, holes, Order::RowMajor).unwrap()),
        Box::new(sparse(vec![900, 1100], 60_000)),
        Box::new(sparse(vec![2500, 20], 60_000)),
        Box::new(sparse(vec![90, 30, 50], 40_000)),
        Box::new(sparse(vec![50, 20, 30], 70_000)),
        Box::new(sparse(vec![1000], 5000)),
    ];
    for data in all {
        for k in [5, 40] {
            let one = bits(&*data, k, 1);
            for threads in [2, 5, 64] {
                assert!(
                    bits(&*data, k, threads) == one,
                    "{:?}, {k} components, {threads} threads",
                    data.shape()
                );
            }
        }
    }
}

#[test]
fn one_thread_equals_many_f64() {
    check::<f64>();
}

#[test]
fn one_thread_equals_many_f32() {
    check::<f32>();
}

/// Tasks with loops of their own: every one is done once, on threads that add up to those of the pool, and no task is begun within another.
#[test]
fn tasks_that_share_nothing_are_done_apart() {
    use plca_tensor::parallel::{apart, map_in_order};
    use std::sync::atomic::{AtomicUsize, Ordering};
    for threads in [1, 2, 3, 7] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.unwrap().install(|| {
            for count in [0, 1, 2, 5, 20] {
                let busy = AtomicUsize::new(0);
                let most = AtomicUsize::new(0);
                let squares = apart(count, |task| {
                    most.fetch_max(busy.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    let own = rayon::current_num_threads();
                    let sums = map_in_order((0..50).collect(), |i: usize| i * task);
                    busy.fetch_sub(1, Ordering::SeqCst);
                    (sums.iter().sum::<usize>(), own)
                });
                // Without the feature, one task comes after another, and what is below them has the whole pool.
                let workers = if cfg!(feature = "rayon") {
                    threads.min(count)
                } else {
                    count.min(1)
                };
                assert!(most.into_inner() <= workers);
                for (task, (sum, own)) in squares.into_iter().enumerate() {
                    assert_eq!(sum, 1225 * task);
                    assert!(own == threads / workers || own == threads.div_ceil(workers));
                }
            }
        });
    }
}
