//! Data.

use plca_tensor::{Coordinates, Data, DenseTensor, Order, SparseTensor, check_counts};

use super::{ASSERTS, Kind, read, run, seeds, text};
use crate::Target;
use crate::targets::tensor::{check, is_large};

pub(in crate::targets) const TARGET: Target = Target {
    name: "json_tensor",
    asserts: ASSERTS,
    seeds: || seeds(KINDS),
    run: |input| run(KINDS, input),
};

fn entries() -> Coordinates<f64> {
    Coordinates {
        shape: vec![2, 3],
        indices: vec![0, 2, 1, 0],
        values: vec![3.0, 0.5],
    }
}

/// What models ask first: all of them, and those of counts of data that are counts.
fn ask(data: &dyn Data<f64>) {
    assert!(data.total().is_finite());
    let counts = check_counts(data).is_ok();
    assert!(!counts || data.total() > 0.0);
    for mode in 0..data.shape().len() {
        let sums = data.marginal(mode).expect("in memory");
        assert!(sums.iter().all(|x| !x.is_nan()));
        assert!(!counts || sums.iter().all(|x| *x >= 0.0));
    }
    let information = data.self_information().expect("in memory");
    assert!(!counts || information.is_finite());
}

const KINDS: &[Kind] = &[
    Kind {
        seed: || {
            let values = vec![3.0, 1.0, 0.0, 2.0];
            let data = DenseTensor::new(vec![2, 2], values, Order::ColumnMajor);
            text(&data.expect("good data"))
        },
        run: |input| {
            ask(&read::<DenseTensor<f64>>(input)?);
            Some(())
        },
    },
    Kind {
        seed: || text(&SparseTensor::new(entries()).expect("good data")),
        run: |input| {
            // The text of a tensor is that of its entries.
            if is_large(&read::<Coordinates<f64>>(input)?.shape) {
                return Some(());
            }
            ask(&read::<SparseTensor<f64>>(input)?);
            Some(())
        },
    },
    Kind {
        seed: || text(&entries()),
        run: |input| {
            let entries = read::<Coordinates<f64>>(input)?;
            // Those that are none of a tensor are refused by it.
            if !is_large(&entries.shape) && SparseTensor::new(entries.clone()).is_ok() {
                check(entries);
            }
            Some(())
        },
    },
];
