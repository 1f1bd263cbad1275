//! The passes for either scalar, compiled in this crate once and not again in every crate that calls them.

use plca_dist::simd::instruction_set;

use super::{coordinate, dense, fibres, lanes::Lanes, mttkrp, solve, strata};
use crate::CompensatedSum;

/// What is compiled for the instruction sets that are chosen from at run time.
pub trait Passes: Lanes {
    /// A block of a dense tensor.
    fn dense_block(pass: dense::BlockPass<'_, Self>) -> dense::Partial<Self>;
    /// A group of fibres of a sparse tensor.
    fn fibre_group(pass: fibres::GroupPass<'_, Self>) -> fibres::Partial<Self>;
    /// A tile of a sparse matrix.
    fn strata_tile(pass: strata::TilePass<'_, '_, Self>) -> CompensatedSum;
    /// The row problems of a group of rows.
    fn row_group(group: coordinate::RowGroup<'_, Self>) -> f64;
    /// The row problems of a group of rows, each to its end.
    fn solve_group(group: solve::SolveGroup<'_, Self>) -> Vec<solve::RowEnd>;
    /// A part of a product with a Khatri-Rao product.
    fn product_task(task: mttkrp::Task<'_, Self>) -> mttkrp::Part<Self>;
}

macro_rules! passes {
    ($($t:ty),*) => {$(
        impl Passes for $t {
            fn dense_block(pass: dense::BlockPass<'_, $t>) -> dense::Partial<$t> {
                instruction_set().dispatch(pass)
            }
            fn fibre_group(pass: fibres::GroupPass<'_, $t>) -> fibres::Partial<$t> {
                instruction_set().dispatch(pass)
            }
            fn strata_tile(pass: strata::TilePass<'_, '_, $t>) -> CompensatedSum {
                instruction_set().dispatch(pass)
            }
            fn row_group(group: coordinate::RowGroup<'_, $t>) -> f64 {
                instruction_set().dispatch(group)
            }
            fn solve_group(group: solve::SolveGroup<'_, $t>) -> Vec<solve::RowEnd> {
                instruction_set().dispatch(group)
            }
            fn product_task(task: mttkrp::Task<'_, $t>) -> mttkrp::Part<$t> {
                instruction_set().dispatch(task)
            }
        }
    )*};
}

passes!(f32, f64);
