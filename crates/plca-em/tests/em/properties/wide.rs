//! Problems whose starts range over many orders of magnitude.

use std::ops::RangeInclusive;

use nalgebra::DVector;
use plca_tensor::strategies::{Start, Table, problems};
use plca_tensor::{Real, normalise_columns};
use proptest::prelude::*;

/// Orders of magnitude between the entries of a block, such that a product of one entry of every block is a normal number: two
/// less than a block's share of them, for the starts that are multiplied have entries down to 0.01.
fn decades<T: Real>(order: usize) -> f64 {
    -T::TINY.to_f64().log10() / (order + 1) as f64 - 2.0
}

/// Every entry of a start times `10^-d`, `d` uniform over the decades of its scalar; then distributions again.
pub(crate) fn wide_problems<T: Real>(
    orders: RangeInclusive<usize>,
    sizes: RangeInclusive<usize>,
    components: RangeInclusive<usize>,
) -> impl Strategy<Value = (Table<T>, Start<T>)> {
    problems::<T>(orders, sizes, components).prop_flat_map(|(table, start)| {
        let blocks = start.factors.iter().map(|f| f.len()).sum::<usize>();
        let exponents = prop::collection::vec(-1.0..0.0f64, blocks + start.weights.len());
        (Just(table), Just(start), exponents).prop_map(|(table, mut start, exponents)| {
            let decades = decades::<T>(table.shape.len());
            let mut factors = exponents.iter().map(|e| T::lit(10f64.powf(decades * e)));
            for block in &mut start.factors {
                block
                    .iter_mut()
                    .zip(&mut factors)
                    .for_each(|(x, f)| *x *= f);
                normalise_columns(block);
            }
            let weights = start.weights.iter().zip(factors).map(|(&w, f)| w * f);
            let weights = DVector::from_vec(weights.collect());
            start.weights = &weights / weights.sum();
            (table, start)
        })
    })
}
