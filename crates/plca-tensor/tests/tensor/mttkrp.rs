//! The matricised product against its definition, for every storage, order and mode.

use nalgebra::DMatrix;
use plca_tensor::arrange::Products;
use plca_tensor::{Coordinates, Data, DataError, DenseTensor, Order, Real, SparseTensor};

use crate::support::noise;

fn indices(shape: &[usize]) -> Vec<Vec<usize>> {
    let cells: usize = shape.iter().product();
    let index = |mut at: usize| {
        let mut index = vec![0; shape.len()];
        for m in (0..shape.len()).rev() {
            index[m] = at % shape[m];
            at /= shape[m];
        }
        index
    };
    (0..cells).map(index).collect()
}

/// Cells in row-major order; NaN is hidden. Some are 0, some negative.
fn cells(shape: &[usize], hidden: bool) -> Vec<f64> {
    let mut next = noise(5);
    (0..shape.iter().product::<usize>())
        .map(|_| {
            let (u, x) = (next(), next());
            match u {
                u if hidden && u < 0.2 => f64::NAN,
                u if u < 0.4 => 0.0,
                _ => 2.0 * x - 0.7,
            }
        })
        .collect()
}

fn entries<T: Real>(shape: &[usize], values: &[f64], keep: impl Fn(f64) -> bool) -> Coordinates<T> {
    let mut out = Coordinates {
        shape: shape.to_vec(),
        indices: Vec::new(),
        values: Vec::new(),
    };
    for (index, &x) in indices(shape).iter().zip(values).filter(|(_, x)| keep(**x)) {
        out.indices.extend(index.iter().map(|&i| i as u32));
        out.values.push(T::lit(x));
    }
    out
}

fn column_major(shape: &[usize], values: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; values.len()];
    for (index, &x) in indices(shape).iter().zip(values) {
        out[(0..shape.len())
            .rev()
            .fold(0, |at, m| at * shape[m] + index[m])] = x;
    }
    out
}

fn typed<T: Real>(values: &[f64]) -> Vec<T> {
    values.iter().map(|&x| T::lit(x)).collect()
}

fn factors<T: Real>(shape: &[usize], k: usize) -> Vec<DMatrix<T>> {
    let mut next = noise(7);
    shape
        .iter()
        .map(|&n| DMatrix::from_fn(n, k, |_, _| T::lit(next() - 0.2)))
        .collect()
}

/// `Σ_{x: x_mode=i} value(x) Π_{m≠mode} F_m[x_m,z]`, and `Σ w_z Π F` of a cell.
fn definition<T: Real>(
    shape: &[usize],
    f: &[DMatrix<T>],
    mode: usize,
    value: impl Fn(usize, f64) -> f64,
    w: &[f64],
) -> DMatrix<f64> {
    let mut out = DMatrix::zeros(shape[mode], f[0].ncols());
    for (at, index) in indices(shape).iter().enumerate() {
        let product = |z: usize, skip: usize| -> f64 {
            (0..shape.len())
                .filter(|&m| m != skip)
                .map(|m| f[m][(index[m], z)].to_f64())
                .product()
        };
        let model: f64 = w
            .iter()
            .enumerate()
            .map(|(z, w)| w * product(z, usize::MAX))
            .sum();
        let x = value(at, model);
        for z in 0..f[0].ncols() {
            out[(index[mode], z)] += x * product(z, mode);
        }
    }
    out
}

fn close(what: &str, got: &DMatrix<f64>, want: &DMatrix<f64>, tol: f64) {
    assert_eq!(got.shape(), want.shape());
    let worst = (got - want).amax();
    assert!(
        worst <= tol * want.amax().max(1.0),
        "{what}: off by {worst}"
    );
}

const SHAPES: [&[usize]; 8] = [
    &[17],
    &[1, 5],
    &[210, 101],
    &[3, 400],
    &[7, 19, 6],
    &[201, 2, 9],
    &[2, 3, 4, 5],
    &[3, 2, 4, 2, 3],
];

fn complete<T: Real>() {
    let tol = if size_of::<T>() == 4 { 2e-4 } else { 1e-11 };
    for shape in SHAPES {
        let x = cells(shape, false);
        for k in [1, 3, 11] {
            let f = factors::<T>(shape, k);
            let rounded: Vec<f64> = x.iter().map(|&x| T::lit(x).to_f64()).collect();
            let columns = typed::<T>(&column_major(shape, &x));
            let storages: [Box<dyn Data<T>>; 3] = [
                Box::new(DenseTensor::new(shape.to_vec(), typed(&x), Order::RowMajor).unwrap()),
                Box::new(DenseTensor::new(shape.to_vec(), columns, Order::ColumnMajor).unwrap()),
                Box::new(SparseTensor::new(entries(shape, &x, |x| x != 0.0)).unwrap()),
            ];
            for data in &storages {
                let data = Products::new(&**data).unwrap();
                assert!(data.is_complete());
                let (mut memo, mut changing) = (data.memo(&f), f.clone());
                for mode in 0..shape.len() {
                    let want = definition(shape, &f, mode, |at, _| rounded[at], &[]);
                    close("alone", &data.mttkrp(&f, mode), &want, tol);
                    // In a sweep, where every factor changes after its turn.
                    let want = definition(shape, &changing, mode, |at, _| rounded[at], &[]);
                    close("memo", &memo.product(mode), &want, tol);
                    changing[mode] *= T::lit(0.5);
                    memo.set(mode, &changing[mode]);
                }
            }
        }
    }
}

#[test]
fn complete_data_f64() {
    complete::<f64>();
}

#[test]
fn complete_data_f32() {
    complete::<f32>();
}

fn squared_error(shape: &[usize], f: &[DMatrix<f64>], x: &[f64], scale: f64, w: &[f64]) -> f64 {
    let model = |index: &[usize]| -> f64 {
        let term = |z: usize| {
            w[z] * (0..shape.len())
                .map(|m| f[m][(index[m], z)])
                .product::<f64>()
        };
        (0..w.len()).map(term).sum()
    };
    let pairs = indices(shape);
    let seen = pairs.iter().zip(x).filter(|(_, x)| !x.is_nan());
    seen.map(|(index, x)| (scale * x - model(index)).powi(2))
        .sum()
}

type Stored = Box<dyn Data<f64>>;

#[test]
fn hidden_cells_are_0_or_filled_with_the_model() {
    let (scale, w) = (0.5, [0.3, 0.0, 1.5]);
    for shape in SHAPES.into_iter().filter(|s| s.len() > 1) {
        let f = factors::<f64>(shape, 3);
        let x = cells(shape, true);
        let hidden = entries::<f64>(shape, &x, f64::is_nan);
        let positive: Vec<f64> = x.iter().map(|x| x.abs()).collect();
        let none_hidden: Vec<f64> = x
            .iter()
            .map(|x| if x.is_nan() { 1.0 } else { *x })
            .collect();
        let masked = |x: &[f64], order| -> Stored {
            Box::new(DenseTensor::masked(shape.to_vec(), x.to_vec(), order).unwrap())
        };
        let stored = |x: &[f64]| -> Stored {
            Box::new(SparseTensor::stored_only(entries(shape, x, |x| !x.is_nan())).unwrap())
        };
        #[rustfmt::skip]
        let cases: [(Stored, &[f64]); 8] = [
            (masked(&x, Order::RowMajor), &x),
            (masked(&column_major(shape, &x), Order::ColumnMajor), &x),
            (stored(&x), &x),
            (Box::new(SparseTensor::all_but(entries(shape, &positive, |x| x > 0.0), hidden).unwrap()), &positive),
            (stored(&positive), &positive),
            (masked(&positive, Order::RowMajor), &positive),
            (masked(&none_hidden, Order::RowMajor), &none_hidden),
            (Box::new(SparseTensor::new(entries(shape, &none_hidden, |_| true)).unwrap()), &none_hidden),
        ];
        for (case, (data, x)) in cases.iter().enumerate() {
            let data = Products::new(&**data).unwrap();
            let mut memo = data.memo(&f);
            for mode in 0..shape.len() {
                let seen = |at: usize, _| if x[at].is_nan() { 0.0 } else { x[at] };
                let want = definition(shape, &f, mode, seen, &[]);
                close(
                    &format!("{shape:?} {case}"),
                    &data.mttkrp(&f, mode),
                    &want,
                    1e-11,
                );
                close(
                    &format!("{shape:?} {case}"),
                    &memo.product(mode),
                    &want,
                    1e-11,
                );
                let fill =
                    |at: usize, model: f64| if x[at].is_nan() { model } else { scale * x[at] };
                let want = definition(shape, &f, mode, fill, &w);
                let (got, error) = data.completed_mttkrp(scale, &w, &f, mode);
                close(&format!("{shape:?} {case}"), &got, &want, 1e-11);
                let want = squared_error(shape, &f, x, scale, &w);
                assert!(
                    (error - want).abs() <= 1e-11 * want,
                    "{shape:?} {case}: {error} {want}"
                );
            }
        }
    }
}

#[test]
fn totals_and_conversions() {
    let x = cells(&[4, 6], false);
    let positive: Vec<f64> = x.iter().map(|x| x.abs()).collect();
    let dense = DenseTensor::new(vec![4, 6], positive.clone(), Order::RowMajor).unwrap();
    let sparse = SparseTensor::new(entries::<f64>(&[4, 6], &positive, |x| x > 0.0)).unwrap();
    for data in [&dense as &dyn Data<f64>, &sparse] {
        let data = Products::new(data).unwrap();
        assert!(data.is_complete());
        assert!((data.total() - positive.iter().sum::<f64>()).abs() < 1e-14);
        let mut sum = 0.0;
        data.for_each(&mut |index, x| {
            assert_eq!(x, positive[index[0] * 6 + index[1]]);
            sum += x * x;
        });
        assert!((data.squared_norm() - sum).abs() < 1e-14);
    }
}

/// Values near the ends of the range are held in a scale where their squares are numbers.
#[test]
fn extreme_values_are_rescaled() {
    let tensor = |x| DenseTensor::new(vec![2, 2], vec![x, 0.0, -x / 4.0, x], Order::RowMajor);
    assert!(matches!(tensor(1e308), Err(DataError::Overflow { .. })));
    for x in [7e307, 1e-310] {
        let data = tensor(x).unwrap();
        let data = Products::new(&data).unwrap();
        assert!(data.squared_norm().is_normal() && data.scale() != 1.0);
        let ratio = data.total() / data.scale() / x;
        assert!(
            ratio == f64::INFINITY || (ratio - 1.75).abs() < 1e-9,
            "{ratio}"
        );
    }
}

#[test]
fn bad_values_are_named() {
    let dense = |x: Vec<f64>| DenseTensor::new(vec![2, 2], x, Order::RowMajor).unwrap_err();
    assert_eq!(
        dense(vec![0.0, 1.0, f64::INFINITY, 0.0]),
        DataError::NotFinite {
            index: vec![1, 0],
            value: f64::INFINITY
        }
    );
    assert!(matches!(dense(vec![0.0; 3]), DataError::Length { .. }));
    assert!(matches!(
        dense(vec![f64::NAN; 4]),
        DataError::NotFinite { .. }
    ));
    let masked = DenseTensor::masked(vec![2], vec![f64::NAN; 2], Order::RowMajor).unwrap();
    let none = || Coordinates {
        shape: vec![2],
        indices: vec![],
        values: vec![],
    };
    let all = Coordinates {
        shape: vec![2],
        indices: vec![0, 1],
        values: vec![1.0; 2],
    };
    let listed = SparseTensor::all_but(none(), all).unwrap();
    let stored = SparseTensor::stored_only(none()).unwrap();
    for data in [&masked as &dyn Data<f64>, &listed, &stored] {
        let refused = Products::new(data).unwrap_err();
        assert_eq!(refused, DataError::NothingObserved);
    }
    let sparse = |indices, values| {
        SparseTensor::new(Coordinates::<f64> {
            shape: vec![2, 3],
            indices,
            values,
        })
        .unwrap_err()
    };
    assert!(matches!(
        sparse(vec![0, 3], vec![1.0]),
        DataError::OutOfRange {
            mode: 1,
            index: 3,
            ..
        }
    ));
    assert!(matches!(
        sparse(vec![0, 2], vec![f64::NAN]),
        DataError::NotFinite { .. }
    ));
    let empty = DenseTensor::<f64>::new(vec![], vec![], Order::RowMajor);
    assert_eq!(empty.unwrap_err(), DataError::OrderZero);
}

/// Two stored values of one cell are summed.
#[test]
fn duplicates_are_summed() {
    let c = Coordinates {
        shape: vec![2, 2],
        indices: vec![0, 1, 1, 1, 0, 1],
        values: vec![1.0, 5.0, 2.0],
    };
    let data = SparseTensor::new(c).unwrap();
    assert_eq!((data.total(), data.summary().squares), (8.0, 34.0));
    let data = Products::new(&data).unwrap();
    assert_eq!((data.total(), data.squared_norm()), (8.0, 34.0));
}

/// The number of threads never changes a bit.
#[test]
fn threads_change_no_bit() {
    let shape = [61, 90, 113];
    let x = cells(&shape, false);
    let f = factors::<f64>(&shape, 20);
    let dense = DenseTensor::new(shape.to_vec(), x.clone(), Order::RowMajor).unwrap();
    let sparse = SparseTensor::new(entries(&shape, &x, |x| x != 0.0)).unwrap();
    let masked = cells(&shape, true);
    let masked = DenseTensor::masked(shape.to_vec(), masked, Order::ColumnMajor).unwrap();
    for data in [&dense as &dyn Data<f64>, &sparse, &masked] {
        let data = Products::new(data).unwrap();
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            pool.install(|| {
                (0..3)
                    .flat_map(|mode| {
                        let (completed, error) = data.completed_mttkrp(1.0, &[0.1; 20], &f, mode);
                        let plain = data.mttkrp(&f, mode);
                        let all = plain.iter().chain(&completed).map(|x| x.to_bits());
                        all.chain([error.to_bits()]).collect::<Vec<_>>()
                    })
                    .collect::<Vec<u64>>()
            })
        };
        assert_eq!(run(1), run(3));
    }
}

/// What a memo keeps is never that of other factors or of another half.
#[test]
fn memos_do_not_go_stale() {
    let shape = [3, 4, 2, 5];
    let values = typed::<f64>(&cells(&shape, false));
    let data = DenseTensor::new(shape.to_vec(), values, Order::RowMajor).unwrap();
    let data = Products::new(&data).unwrap();
    let mut f = factors::<f64>(&shape, 3);
    let mut memo = data.memo(&f);
    for changed in 0..4 {
        for mode in [0, 1, 2, 3, 3, 0, 2, 1] {
            assert_eq!(memo.product(mode), data.mttkrp(&f, mode), "{mode}");
            f[changed][(1, 2)] += 0.25;
            memo.set(changed, &f[changed]);
            assert_eq!(memo.product(mode), data.mttkrp(&f, mode), "{mode}");
        }
    }
    let line = DenseTensor::new(vec![3], vec![1.0, 2.0, 3.0], Order::RowMajor).unwrap();
    let line = Products::new(&line).unwrap();
    let mut memo = line.memo(&factors::<f64>(&[3], 2));
    for x in [2.0, 1.0] {
        let f = [DMatrix::from_element(3, 2, x)];
        memo.set(0, &f[0]);
        assert_eq!(memo.product(0), line.mttkrp(&f, 0));
    }
}
