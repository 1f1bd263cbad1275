//! Compressed data of other programs: the bits of coordinates, and what is wrong with them.

use nalgebra::DMatrix;
use plca_tensor::{Coordinates, Cp, Data, DataError, Factor, Modes, Request, SparseTensor};

/// Rows in order, the indices of each in no order and some of them twice; more than one tile.
fn compressed(runs: usize, inner: usize) -> (Vec<i32>, Vec<i64>, Vec<f64>) {
    let (mut ends, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for run in 0..runs {
        // Every third run is empty.
        for entry in 0..(run % 3) * 60 {
            indices.push(((run * 31 + entry * 17) % inner) as i64);
            values.push(1.0 + ((run * 7 + entry * 3) % 11) as f64 / 3.0);
        }
        ends.push(indices.len() as i32);
    }
    (ends, indices, values)
}

fn coordinates(
    shape: [usize; 2],
    outer: usize,
    (ends, indices, values): &(Vec<i32>, Vec<i64>, Vec<f64>),
) -> Coordinates<f64> {
    let mut entries = Coordinates::empty(&shape);
    for (run, ends) in ends.windows(2).enumerate() {
        for at in ends[0] as usize..ends[1] as usize {
            let mut index = [run, indices[at] as usize];
            index.rotate_left(outer);
            entries.push(&index, values[at]);
        }
    }
    entries
}

#[test]
fn compressed_data_have_the_bits_of_coordinates() {
    let (runs, inner, k) = (800, 300, 5);
    let data = compressed(runs, inner);
    assert!(data.2.len() > 1 << 15, "one tile is not enough");
    for outer in [0, 1] {
        let mut shape = [runs, inner];
        shape.rotate_left(outer);
        let by_runs = SparseTensor::from_compressed(shape, outer, &data.0, &data.1, &data.2);
        let by_runs = by_runs.unwrap();
        let by_index = SparseTensor::new(coordinates(shape, outer, &data)).unwrap();
        assert_eq!(by_runs.summary(), by_index.summary());
        assert_eq!(by_runs.to_coordinates(), by_index.to_coordinates());
        let factors = shape.map(|n| DMatrix::from_fn(n, k, |i, z| 1.0 + ((i + z) % 7) as f64));
        let factors = [0, 1].map(|j| Factor::Columns(&factors[j]));
        let model = Cp {
            weights: None,
            factors: &factors,
        };
        let request = Request::counts(Modes::all(2)).value(true);
        let [a, b] = [&by_runs, &by_index].map(|v| v.e_step(&model, &request).unwrap());
        assert_eq!(a.value().to_bits(), b.value().to_bits());
        assert!((0..2).all(|j| a.counts(j) == b.counts(j)));
    }
}

#[test]
fn extreme_values_are_scaled_as_those_of_coordinates() {
    let tiny = (
        vec![0, 2, 3],
        vec![0i64, 1, 1],
        vec![1e-310, 2e-310, 5e-310],
    );
    let by_runs = SparseTensor::from_compressed([2, 2], 0, &tiny.0, &tiny.1, &tiny.2).unwrap();
    let by_index = SparseTensor::new(coordinates([2, 2], 0, &tiny)).unwrap();
    assert_eq!(by_runs.summary(), by_index.summary());
    assert_eq!(by_runs.to_coordinates(), by_index.to_coordinates());
}

#[test]
fn what_is_wrong_is_told_by_its_place() {
    let of = |ends: &[i32], indices: &[i32], values: &[f64]| {
        SparseTensor::from_compressed([2, 3], 0, ends, indices, values).unwrap_err()
    };
    let out = of(&[0, 1, 2], &[0, 3], &[1.0, 1.0]);
    assert!(matches!(
        out,
        DataError::OutOfRange {
            position: 1,
            mode: 1,
            index: 3,
            size: 3
        }
    ));
    let negative = of(&[0, 1, 2], &[0, -1], &[1.0, 1.0]);
    assert_eq!(
        negative.to_string(),
        "stored entry 1 has an index in mode 1 that is negative or too large, outside 0..3"
    );
    let outer = SparseTensor::from_compressed([2, 3], 7, &[0, 1, 2], &[0, 1], &[1.0, 1.0]);
    assert_eq!(
        outer.unwrap_err().to_string(),
        "the compressed mode is 7, expected 0 for rows or 1 for columns"
    );
    for ends in [
        &[0, 2][..],
        &[1, 1, 2],
        &[0, 1, 1],
        &[0, -1, 2],
        &[0, 3, 2],
        &[],
    ] {
        let refused = of(ends, &[0, 1], &[1.0, 1.0]);
        assert!(
            matches!(refused, DataError::Runs { stored: 2, .. }),
            "{ends:?}"
        );
    }
    let length = of(&[0, 1, 2], &[0, 1], &[1.0]);
    assert!(matches!(length, DataError::Length { got: 1, .. }));
    let nan = of(&[0, 0, 2], &[2, 1], &[1.0, f64::NAN]);
    assert!(matches!(nan, DataError::NotFinite { index, .. } if index == [1, 1]));
}

/// Whatever coordinates are refused for, or become, compressed data are and do.
#[test]
fn awkward_entries_are_those_of_coordinates() {
    let largest = f64::MAX;
    let cases = [
        // Nothing stored, and nothing but zeros.
        (vec![0, 0, 0], vec![], vec![]),
        (vec![0, 1, 2], vec![0, 2], vec![0.0, -0.0]),
        // A negative entry behind empty runs, one that its duplicate makes up for, and one that it leaves 0.
        (vec![0, 0, 2], vec![2, 1], vec![1.0, -2.0]),
        (vec![0, 2, 2], vec![1, 1], vec![-2.0, 3.0]),
        (vec![0, 2, 2], vec![1, 1], vec![-2.0, 2.0]),
        // Duplicates and totals beyond the numbers.
        (vec![0, 2, 2], vec![1, 1], vec![largest, largest]),
        (vec![0, 1, 2], vec![0, 1], vec![largest, -largest]),
        (vec![0, 1, 2], vec![0, 1], vec![1.0, f64::NEG_INFINITY]),
    ];
    for (ends, indices, values) in &cases {
        for outer in [0, 1] {
            let mut shape = [2, 3];
            shape.rotate_left(outer);
            let by_runs = SparseTensor::from_compressed(shape, outer, ends, indices, values);
            let data = (ends.clone(), indices.clone(), values.clone());
            let by_index = SparseTensor::new(coordinates(shape, outer, &data));
            match (by_runs, by_index) {
                (Ok(a), Ok(b)) => {
                    assert_eq!(a.summary(), b.summary());
                    assert_eq!(a.to_coordinates(), b.to_coordinates());
                }
                (a, b) => assert_eq!(a.unwrap_err(), b.unwrap_err()),
            }
        }
    }
    // More than any matrix has, before anything is made room for.
    let huge = SparseTensor::from_compressed([usize::MAX, 1], 0, &[0], &[0; 0], &[0.0; 0]);
    assert!(matches!(huge, Err(DataError::TooLarge { .. })));
}
