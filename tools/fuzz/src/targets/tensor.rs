//! What must hold of entries that were read.

use plca_tensor::{Coordinates, Data, SparseTensor};

/// Shapes whose sizes add up to no more are made tensors of: their memory is proportional to the sizes.
const INDICES: usize = 1 << 18;

/// Whether a tensor of this shape is not to be made.
pub(super) fn is_large(shape: &[usize]) -> bool {
    let sum = |sum: usize, &n: &usize| sum.saturating_add(n);
    shape.iter().fold(0, sum) > INDICES
}

/// Indices are within the shape; a tensor of them is one or is refused.
pub(super) fn check(entries: Coordinates<f64>) {
    let order = entries.shape.len();
    assert_eq!(entries.indices.len(), order * entries.values.len());
    for index in entries.indices.chunks_exact(order) {
        let within = index
            .iter()
            .zip(&entries.shape)
            .all(|(&i, &n)| (i as usize) < n);
        assert!(within, "{index:?} in {:?}", entries.shape);
    }
    let most = entries.values.len() as u64;
    if !is_large(&entries.shape)
        && let Ok(tensor) = SparseTensor::new(entries)
    {
        assert!(tensor.summary().nnz <= most);
        let sums = tensor.marginal(0).expect("data in memory");
        assert!(tensor.total().is_finite() && sums.iter().all(|x| x.is_finite()));
        if tensor.summary().negative.is_none() {
            assert!(tensor.total() >= 0.0 && sums.iter().all(|x| *x >= 0.0));
        }
    }
}
