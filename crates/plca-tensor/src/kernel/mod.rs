//! The one fused E-step behind every model.
//!
//! ```math
//! \begin{aligned}
//! p[x] &= \sum_z \prod_j F_j[x_j,z] \\
//! q[x] &= \mathrm{rule}(V[x], p[x]) \\
//! S_j[i,z] &= \sum_{x : x_j = i} q[x] \prod_{m \ne j} F_m[x_m,z]
//! \end{aligned}
//! ```
//!
//! Each storage implements [`Accumulate`]; what happens to a cell is a [`Rule`]. Component weights are
//! folded into the first factor before a kernel sees it.

pub(crate) mod aligned;
pub(crate) mod blocks;
pub(crate) mod coordinate;
pub(crate) mod dense;
pub(crate) mod dense_rows;
pub(crate) mod fibres;
pub(crate) mod lanes;
pub(crate) mod log;
pub(crate) mod mttkrp;
pub(crate) mod mttkrp_sparse;
pub(crate) mod panel;
pub(crate) mod passes;
pub(crate) mod signed;
pub(crate) mod solve;
pub(crate) mod strata;
mod tiles;

use std::fmt::Debug;

use aligned::Aligned;
use coordinate::Lender;
use panel::Panel;

/// What a cell contributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// `q = V / p`, and 0 where `V = 0`: the E-step.
    Ratio {
        /// Whether `Σ V ln p` is wanted.
        log: bool,
    },
    /// `q = 1` on every cell the storage visits (stored zeros included); `p` is not needed.
    Unit,
}

/// Sums over cells. `modes[j]` is `rows x stride` like the panel of mode `j`, or empty where not wanted.
#[derive(Debug)]
pub(crate) struct Sums<T> {
    pub(crate) modes: Vec<Aligned<T>>,
    /// `Σ V ln p`, in the panels' scale; 0 where not asked for.
    pub(crate) ln_lik: f64,
}

/// One pass over stored cells.
pub(crate) trait Accumulate<T> {
    /// Adds up what every mode in `wanted` receives, and `Σ V ln p` if the rule asks for it.
    ///
    /// `p` is floored at the smallest normal number before dividing, so 0/0 is an exact 0. A cell with
    /// `V > 0` and `p = 0` has no meaningful ratio; it shows in the logarithm alone, which is `-inf`.
    fn accumulate(&self, panels: &[Panel<'_, T>], rule: Rule, wanted: &[bool]) -> Sums<T>;
}

/// Entries of sparse data, each stored once, arranged for a pass.
pub(crate) trait Cells<T>: Accumulate<T> + Debug + Send + Sync {
    /// Number of entries.
    fn stored(&self) -> usize;
    /// Visits every entry in a fixed order.
    fn for_each(&self, visit: &mut dyn FnMut(&[usize], T));
    /// The rows of a mode, where they are stored so that they can be read.
    fn lender(&self, mode: usize) -> Option<&dyn Lender<T>> {
        let _ = mode;
        None
    }
}

/// Values that one thread takes at a time outside the kernels: enough to outweigh handing them over.
const PART: usize = 1 << 13;

/// Cuts rows that end at these entries into `parts` of about equal numbers of entries; returns the bounds, in rows.
pub(crate) fn bounds(ends: &[usize], parts: usize) -> Vec<usize> {
    let entries = ends.last().copied().unwrap_or(0);
    let bound = |part| ends.partition_point(|&end| end * parts <= entries * part);
    let mut bounds: Vec<usize> = (0..=parts).map(bound).collect();
    (bounds[0], bounds[parts]) = (0, ends.len());
    bounds
}

/// Splits rows of `stride` values between these bounds into disjoint parts; empty parts of no values.
pub(crate) fn split<'a, T>(
    mut values: &'a mut [T],
    bounds: &[usize],
    stride: usize,
) -> Vec<&'a mut [T]> {
    let stride = if values.is_empty() { 0 } else { stride };
    let part = |ends: &[usize]| {
        let size = (ends[1] - ends[0]) * stride;
        let (part, rest) = std::mem::take(&mut values).split_at_mut(size);
        values = rest;
        part
    };
    bounds.windows(2).map(part).collect()
}

/// Rows of `stride` values that make up about one part.
pub(crate) fn part_rows(stride: usize) -> usize {
    (PART / stride.max(1)).max(1)
}
