//! What the tests of shifted models share.

use plca_em::Evaluation;
pub(crate) use plca_fit::seed as rng;
use plca_tensor::{Coordinates, Data, DenseTensor, Order, Real, SparseTensor};

/// Every way to compute the E-step.
pub(crate) const EVALUATIONS: [Evaluation; 5] = [
    Evaluation::Auto,
    Evaluation::Direct,
    Evaluation::Sparse,
    Evaluation::Matrix,
    Evaluation::Fft,
];

pub(crate) fn dense<T: Real>(shape: &[usize], values: &[f64]) -> DenseTensor<T> {
    let values = values.iter().map(|&x| T::lit(x)).collect();
    DenseTensor::new(shape.to_vec(), values, Order::RowMajor).unwrap()
}

/// The positive cells, or those that `keep` names.
fn list<T: Real>(shape: &[usize], values: &[f64], keep: impl Fn(usize) -> bool) -> Coordinates<T> {
    let kept: Vec<usize> = (0..values.len()).filter(|&i| keep(i)).collect();
    let index = |mut position: usize| {
        let mut index = vec![0; shape.len()];
        for (i, &n) in index.iter_mut().zip(shape).rev() {
            *i = (position % n) as u32;
            position /= n;
        }
        index
    };
    Coordinates {
        shape: shape.to_vec(),
        indices: kept.iter().flat_map(|&i| index(i)).collect(),
        values: kept.iter().map(|&i| T::lit(values[i])).collect(),
    }
}

pub(crate) type Storages<T> = Vec<(&'static str, Box<dyn Data<T>>)>;

/// Complete data in every storage.
pub(crate) fn complete<T: Real>(shape: &[usize], values: &[f64]) -> Storages<T> {
    let sparse = SparseTensor::new(list(shape, values, |i| values[i] > 0.0)).unwrap();
    vec![
        ("dense", Box::new(dense::<T>(shape, values))),
        ("sparse", Box::new(sparse)),
    ]
}

/// Data with hidden cells in every storage.
pub(crate) fn masked<T: Real>(
    shape: &[usize],
    values: &[f64],
    hidden: impl Fn(usize) -> bool,
) -> Storages<T> {
    let seen: Vec<bool> = (0..values.len()).map(|i| !hidden(i)).collect();
    let typed = values.iter().map(|&x| T::lit(x)).collect();
    let dense = DenseTensor::with_mask(shape.to_vec(), typed, Order::RowMajor, &seen).unwrap();
    let positive = list(shape, values, |i| values[i] > 0.0);
    let all_but = SparseTensor::all_but(positive, list(shape, values, &hidden)).unwrap();
    let stored = SparseTensor::stored_only(list(shape, values, |i| seen[i])).unwrap();
    vec![
        ("masked", Box::new(dense)),
        ("sparse, hidden cells listed", Box::new(all_but)),
        ("sparse, observed cells stored", Box::new(stored)),
    ]
}
