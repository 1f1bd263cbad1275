//! Learning from blocks.

mod batch;
mod bayes;
mod explicit;
mod nmf;
mod priors;
mod streams;
mod unusual;

use plca_tensor::{Coordinates, SparseTensor};

/// A sparse matrix of words x documents from the words' counts in every document.
pub(crate) fn documents(words: usize, documents: &[Vec<f64>]) -> SparseTensor<f64> {
    let (mut indices, mut values) = (Vec::new(), Vec::new());
    for (y, document) in documents.iter().enumerate() {
        for (x, &count) in document.iter().enumerate().filter(|(_, c)| **c > 0.0) {
            indices.extend([x as u32, y as u32]);
            values.push(count);
        }
    }
    let shape = vec![words, documents.len()];
    SparseTensor::new(Coordinates {
        shape,
        indices,
        values,
    })
    .unwrap()
}
