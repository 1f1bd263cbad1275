//! The passes for either scalar, compiled in this crate once and not again in every crate that calls them.

use plca_dist::simd::instruction_set;

use super::{coordinate, dense, fibres, lanes::Lanes, mttkrp, signed, solve, strata};
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
    /// Some rows of some blocks of signed data.
    fn signed_task(task: signed::Task<'_, Self>) -> signed::Part<Self>;
}

/// One scalar's passes, every one in a module of its own: the compiler works on modules in parallel.
macro_rules! passes {
    ($scalar:ty, $module:ident: $($name:ident($pass:ty) -> $part:ty;)*) => {
        mod $module {
            use super::*;

            type T = $scalar;

            $(mod $name {
                use super::*;

                pub(super) fn run(pass: $pass) -> $part {
                    instruction_set().dispatch(pass)
                }
            })*

            impl Passes for T {
                $(fn $name(pass: $pass) -> $part {
                    $name::run(pass)
                })*
            }
        }
    };
}

macro_rules! both {
    ($($passes:tt)*) => {
        passes!(f32, single: $($passes)*);
        passes!(f64, double: $($passes)*);
    };
}

both! {
    dense_block(dense::BlockPass<'_, T>) -> dense::Partial<T>;
    fibre_group(fibres::GroupPass<'_, T>) -> fibres::Partial<T>;
    strata_tile(strata::TilePass<'_, '_, T>) -> CompensatedSum;
    row_group(coordinate::RowGroup<'_, T>) -> f64;
    solve_group(solve::SolveGroup<'_, T>) -> Vec<solve::RowEnd>;
    product_task(mttkrp::Task<'_, T>) -> mttkrp::Part<T>;
    signed_task(signed::Task<'_, T>) -> signed::Part<T>;
}
