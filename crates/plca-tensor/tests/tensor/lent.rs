//! Data that others hold: read where they lie, with the bits of a copy.

use std::sync::Arc;

use nalgebra::DMatrix;
use plca_tensor::arrange::Rows;
use plca_tensor::{
    Compressed, Coordinates, Cp, Data, DataError, DenseTensor, Expected, Factor, Modes, Order,
    Real, Request, RowTerms, SparseTensor, Summary,
};

/// Data that offer their visits and nothing else: all that is made of them is a copy.
#[derive(Debug)]
struct Visited<'a, T>(&'a dyn Data<T>);

impl<T: Real> Data<T> for Visited<'_, T> {
    fn shape(&self) -> &[usize] {
        self.0.shape()
    }

    fn summary(&self) -> &Summary {
        self.0.summary()
    }

    fn visit(&self, each: &mut dyn FnMut(&[usize], f64)) -> Result<(), DataError> {
        self.0.visit(each)
    }

    fn visit_mask(&self, each: &mut dyn FnMut(&[usize])) -> Result<(), DataError> {
        self.0.visit_mask(each)
    }
}

fn factors<T: Real>(shape: &[usize], k: usize) -> Vec<DMatrix<T>> {
    let value = |i: usize, z: usize| T::lit(0.1 + ((7 * i + 3 * z) % 11) as f64);
    let factor = |&n: &usize| DMatrix::from_fn(n, k, value);
    shape.iter().map(factor).collect()
}

/// Every mode's rows improved, with the likelihoods.
fn improved<T: Real>(data: &dyn Data<T>) -> Vec<(DMatrix<T>, u64)> {
    let (k, shape) = (5, data.shape());
    let rows = Rows::new(data, Modes::all(shape.len())).unwrap();
    let factors = factors::<T>(shape, k);
    let linear = DMatrix::from_element(k, 1, T::one());
    let terms = RowTerms {
        linear: &linear,
        pseudo: None,
    };
    let columns: Vec<_> = factors.iter().map(Factor::Columns).collect();
    let of_mode = |mode: usize| {
        let mut block = factors[mode].transpose();
        let ln_lik = rows.improve(mode, &columns, terms, &mut block, 2, true);
        (block, ln_lik.to_bits())
    };
    (0..shape.len()).map(of_mode).collect()
}

fn step<T: Real>(data: &dyn Data<T>) -> Expected<T> {
    let factors = factors::<T>(data.shape(), 5);
    let factors: Vec<_> = factors.iter().map(Factor::Columns).collect();
    let model = Cp {
        weights: None,
        factors: &factors,
    };
    let request = Request::counts(Modes::all(factors.len())).value(true);
    data.e_step(&model, &request).unwrap()
}

/// Whole numbers, of which about one in `of` is not 0, and some are hidden if `holes`.
fn cells(shape: &[usize], of: usize, holes: bool) -> Vec<f64> {
    let cell = |at: usize| match at * 2654435761 % 1009 {
        hash if holes && hash % 31 == 0 => f64::NAN,
        hash if hash % of == 0 => 1.0 + (hash % 13) as f64,
        _ => 0.0,
    };
    (0..shape.iter().product()).map(cell).collect()
}

#[test]
fn rows_of_dense_data_are_those_of_a_copy() {
    // Long and short modes, more rows than are read at a time, an order that is not that of memory.
    for shape in [
        vec![331, 70],
        vec![3, 900],
        vec![40, 9, 33],
        vec![8, 5, 6, 7],
        vec![50],
    ] {
        // Most cells are positive; many are; few are, so that there is a copy.
        for of in [1, 5, 40] {
            for order in [Order::RowMajor, Order::ColumnMajor] {
                for scale in [1.0, 1e-310] {
                    let values: Vec<f64> = cells(&shape, of, of == 1)
                        .iter()
                        .map(|x| x * scale)
                        .collect();
                    let dense = DenseTensor::shared_masked(shape.clone(), &values, order).unwrap();
                    let case = format!("{shape:?} {of} {order:?} {scale}");
                    assert_eq!(improved(&dense), improved(&Visited(&dense)), "{case}");
                    let single: Vec<f32> = values.iter().map(|&x| x as f32).collect();
                    let Ok(dense) = DenseTensor::masked(shape.clone(), single, order) else {
                        continue;
                    };
                    if scale == 1.0 {
                        assert_eq!(improved(&dense), improved(&Visited(&dense)), "{case}");
                    }
                }
            }
        }
    }
}

#[test]
fn shared_values_are_not_copied() {
    let shape = vec![7, 9];
    let values = cells(&shape, 2, true);
    for order in [Order::RowMajor, Order::ColumnMajor] {
        let own = DenseTensor::masked(shape.clone(), values.clone(), order).unwrap();
        let shared: Arc<[f64]> = values.clone().into();
        let lent = DenseTensor::shared_masked(shape.clone(), Arc::clone(&shared), order).unwrap();
        // Column-major values are copied once, into row-major order.
        let holders = match order {
            Order::RowMajor => 2,
            Order::ColumnMajor => 1,
        };
        assert_eq!(Arc::strong_count(&shared), holders);
        assert_eq!(lent.summary(), own.summary());
        let [a, b] = [step(&own), step(&lent)];
        assert_eq!(a.value().to_bits(), b.value().to_bits());
        assert!((0..2).all(|j| a.counts(j) == b.counts(j)));
        drop(lent);
        assert_eq!(Arc::strong_count(&shared), 1);
        let bad = DenseTensor::shared(shape.clone(), &values, order).unwrap_err();
        let same = DenseTensor::new(shape.clone(), values.clone(), order).unwrap_err();
        assert_eq!(bad.to_string(), same.to_string());
    }
}

/// CSR arrays: runs of every length, sorted or not, and with several entries of a cell and zeros unless `canonical`.
fn compressed([runs, size]: [usize; 2], canonical: bool) -> (Vec<i32>, Vec<i32>, Vec<f64>) {
    let (mut ends, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for run in 0..runs {
        let start = indices.len();
        for entry in 0..(run % 5) * size / 12 {
            // One in seven has the cell of the one before it.
            let place = entry - usize::from(entry % 7 == 6);
            indices.push(((run * 31 + place * 17) % size) as i32);
            values.push(((run * 7 + entry * 3) % 11) as f64 / 3.0);
        }
        if canonical {
            indices[start..].sort_unstable();
            let (mut rest, mut last) = (indices.split_off(start), -1);
            rest.retain(|&i| std::mem::replace(&mut last, i) != i);
            indices.extend(rest);
            values.truncate(indices.len());
            values[start..].iter_mut().for_each(|x| *x += 1.0);
        }
        ends.push(indices.len() as i32);
    }
    (ends, indices, values)
}

#[test]
fn compressed_data_are_sparse_tensors_where_they_lie() {
    for (shape, canonical, scale) in [
        ([1500, 400], true, 1.0),
        ([1500, 400], false, 1.0),
        ([400, 1500], true, 1.0),
        ([400, 1500], false, 1.0),
        ([30, 30], false, 1e-310),
    ] {
        let (ends, indices, mut values) = compressed(shape, canonical);
        values.iter_mut().for_each(|x| *x *= scale);
        assert!(
            shape[0] < 100 || values.len() > 1 << 15,
            "one tile is not enough"
        );
        for outer in [0, 1] {
            let mut turned = shape;
            turned.rotate_left(outer);
            let new = || Compressed::new(turned, outer, &ends, &indices, &values).unwrap();
            let copied = SparseTensor::from_compressed(turned, outer, &ends, &indices, &values);
            let copied = copied.unwrap();
            let mut listed = Coordinates::empty(&turned);
            let mut add = |index: &[usize], x| listed.push(index, x);
            let lent = new();
            lent.visit(&mut add).unwrap();
            let mut expected = Coordinates::empty(&turned);
            copied
                .visit(&mut |index, x| expected.push(index, x))
                .unwrap();
            assert_eq!(listed, expected);
            assert_eq!(lent.summary(), copied.summary());
            // Both ways of a pass: arranged first, and after rows were asked for.
            let expected = step(&copied);
            let by_rows = new();
            let rows = improved(&Visited(&copied));
            assert_eq!(improved(&by_rows), rows);
            assert_eq!(improved(&copied), rows);
            for lent in [&lent, &by_rows] {
                let found = step(lent);
                assert_eq!(found.value().to_bits(), expected.value().to_bits());
                assert!((0..2).all(|j| found.counts(j) == expected.counts(j)));
            }
            assert_eq!(improved(&lent), rows);
        }
    }
}

#[test]
fn rows_of_full_sparse_matrices_are_those_of_a_copy() {
    let shape = [40, 30];
    let (mut entries, mut ends) = (Coordinates::empty(&shape), vec![0]);
    for i in 0..shape[0] {
        let stored = (0..shape[1]).filter(|j| (i + 3 * j) % 7 > 1);
        stored.for_each(|j| entries.push(&[i, j], 1.0 + (i * j % 5) as f64));
        ends.push(entries.values.len());
    }
    let columns: Vec<u32> = entries.indices.chunks(2).map(|index| index[1]).collect();
    let lent = Compressed::new(shape, 0, &ends, &columns, &entries.values).unwrap();
    let copied = SparseTensor::new(entries.clone()).unwrap();
    for data in [&lent as &dyn Data<f64>, &copied] {
        assert_eq!(improved(data), improved(&Visited(&copied)));
    }
}

#[test]
fn entries_that_cancel_are_not_there() {
    let (ends, indices, values) = ([0, 3, 5], [1, 0, 1], [3.0, 2.0, -3.0]);
    let ends = [ends[0], ends[1], ends[1]];
    for outer in [0, 1] {
        let lent = Compressed::new([2, 2], outer, &ends, &indices, &values).unwrap();
        let copied = SparseTensor::from_compressed([2, 2], outer, &ends, &indices, &values);
        assert_eq!(lent.summary(), copied.unwrap().summary());
        assert_eq!(improved(&lent), improved(&Visited(&lent)));
    }
}

#[test]
fn compressed_data_are_checked() {
    let refused = |ends: &[i64], indices: &[i64], values: &[f64]| {
        let by = Compressed::new([2, 3], 0, ends, indices, values).unwrap_err();
        let copied = SparseTensor::from_compressed([2, 3], 0, ends, indices, values);
        assert_eq!(by.to_string(), copied.unwrap_err().to_string());
        by
    };
    let error = refused(&[0, 1, 1], &[3], &[1.0]);
    assert!(matches!(
        error,
        DataError::OutOfRange {
            position: 0,
            mode: 1,
            index: 3,
            size: 3
        }
    ));
    assert!(matches!(
        refused(&[0, 2, 1], &[1], &[1.0]),
        DataError::Runs { .. }
    ));
    assert!(matches!(
        refused(&[0, 1, 1], &[-1], &[1.0]),
        DataError::NoIndex {
            position: 0,
            mode: 1,
            size: 3
        }
    ));
    let error = refused(&[0, 0, 1], &[2], &[f64::NAN]);
    assert!(matches!(error, DataError::NotFinite { index, .. } if index == [1, 2]));
}
