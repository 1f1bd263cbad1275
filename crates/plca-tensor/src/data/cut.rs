//! Data cut into shards along one mode.

use super::{Coordinates, Data, DenseTensor, Mask, Order, SparseTensor, position, unravel};
use crate::{DataError, Real};

/// Where to cut samples into this number of shards with about equal numbers of entries: the end of each, counted in samples.
///
/// `entries` has the number of entries of every sample. No sample is cut, and no shard is without entries: where fewer samples have any, there
/// are fewer shards.
///
/// ```
/// use plca_tensor::even_ends;
/// assert_eq!(even_ends(&[4, 1, 1, 2, 0, 4], 3), [1, 4, 6]);
/// assert_eq!(even_ends(&[9, 0, 1], 5), [1, 3]);
/// ```
pub fn even_ends(entries: &[u64], shards: u32) -> Vec<usize> {
    let total: u128 = entries.iter().map(|&n| u128::from(n)).sum();
    let mut left = entries.iter().filter(|&&n| n > 0).count();
    let shards = (shards as usize).min(left).max(1);
    let (mut ends, mut sum, mut some) = (Vec::new(), 0, false);
    for (sample, &n) in entries.iter().enumerate() {
        sum += u128::from(n);
        if n > 0 {
            (left, some) = (left - 1, true);
        }
        let to_come = shards - ends.len() - 1;
        let full = sum * shards as u128 >= total * (ends.len() as u128 + 1);
        // Every shard that is to come needs a sample.
        if to_come > 0 && some && (full || left == to_come) {
            ends.push(sample + 1);
            some = false;
        }
    }
    ends.push(entries.len());
    ends
}

/// The number of entries that are not 0 of every index of a mode.
///
/// # Errors
///
/// As [`Data::visit`].
///
/// # Panics
///
/// If the data have no such mode.
pub fn entries_along<T: Real>(data: &dyn Data<T>, mode: usize) -> Result<Vec<u64>, DataError> {
    let mut entries = vec![0; data.shape()[mode]];
    data.visit(&mut |index, _| entries[index[mode]] += 1)?;
    Ok(entries)
}

/// Cuts data into shards along a mode: copies, dense of dense data and sparse of others, with the same cells hidden.
///
/// `ends` are the ends of the shards along the mode, rising to its size.
///
/// # Errors
///
/// As [`Data::visit`]; [`DataError::EmptyMode`] for a shard without indices.
///
/// # Panics
///
/// If the data have no such mode, or `ends` do not rise to its size.
///
/// # Examples
///
/// ```
/// use plca_tensor::{Data, DenseTensor, Order, cut};
/// let v = DenseTensor::<f64>::new(vec![2, 3], vec![1.0, 0.0, 2.0, 3.0, 4.0, 5.0], Order::RowMajor)?;
/// let shards = cut(&v, 1, &[1, 3])?;
/// assert_eq!((shards[1].shape(), shards[1].total()), (&[2, 2][..], 11.0));
/// # Ok::<(), plca_tensor::DataError>(())
/// ```
pub fn cut<T: Real>(
    data: &dyn Data<T>,
    mode: usize,
    ends: &[usize],
) -> Result<Vec<Box<dyn Data<T>>>, DataError> {
    let rises = ends.is_sorted() && ends.last() == Some(&data.shape()[mode]);
    assert!(
        rises,
        "ends {ends:?} of mode {mode} do not rise to its size"
    );
    let firsts = || std::iter::once(0).chain(ends.iter().copied());
    let shape = |(first, end): (usize, &usize)| {
        let mut shape = data.shape().to_vec();
        shape[mode] = end - first;
        shape
    };
    let shapes = firsts().zip(ends).map(shape);
    if let Some(view) = data.dense() {
        let shards = firsts().zip(shapes).map(|(first, shape)| {
            let cell = |at| {
                let mut index = unravel(at, &shape, Order::RowMajor);
                index[mode] += first;
                view.grid.values[position(&index, data.shape(), Order::RowMajor)] / view.scale
            };
            let values = (0..shape.iter().product()).map(cell).collect();
            let shard = DenseTensor::masked(shape.clone(), values, Order::RowMajor)?;
            Ok(Box::new(shard) as Box<dyn Data<T>>)
        });
        return shards.collect();
    }
    // What is observed with its values, and what the mask lists.
    let mut shards: Vec<_> = shapes
        .map(|shape| [0; 2].map(|_| Coordinates::empty(&shape)))
        .collect();
    let firsts: Vec<_> = firsts().collect();
    let place = |index: &[usize]| {
        let shard = ends.partition_point(|&end| end <= index[mode]);
        let mut index = index.to_vec();
        index[mode] -= firsts[shard];
        (shard, index)
    };
    data.visit(&mut |index, value| {
        let (shard, index) = place(index);
        shards[shard][0].push(&index, T::lit(value));
    })?;
    let kind = data.summary().mask;
    data.visit_mask(&mut |index| {
        let (shard, index) = place(index);
        match kind {
            Mask::Hidden => shards[shard][1].push(&index, T::zero()),
            // A zero that was observed; others keep their value.
            _ => shards[shard][0].push(&index, T::zero()),
        }
    })?;
    let shards = shards.into_iter().map(|[entries, hidden]| {
        let shard = match kind {
            Mask::Complete => SparseTensor::new(entries)?,
            Mask::Observed => SparseTensor::stored_only(entries)?,
            Mask::Hidden => SparseTensor::all_but(entries, hidden)?,
        };
        Ok(Box::new(shard) as Box<dyn Data<T>>)
    });
    shards.collect()
}
