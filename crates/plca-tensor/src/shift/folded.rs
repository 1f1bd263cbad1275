//! A shifted model of any order as channels, lanes and shifted positions.

use super::advance;
use crate::Real;

/// The three kinds of dimensions, each kind folded.
///
/// A kernel-only dimension (impulse extent 1) indexes the kernels alone, an impulse-only one (kernel extent 1) the impulses
/// alone; so every model is one of channels `c`, lanes `d` and shifted positions `x`:
///
/// ```math
/// P[c,d,x] = \sum_z P(z) \sum_t K[z,c,t] \, H[z,d,x-t+o]
/// ```
#[derive(Clone, Debug)]
pub struct Folded {
    /// Number of kernel-only cells `c`.
    pub channels: usize,
    /// Number of impulse-only cells `d`.
    pub lanes: usize,
    /// Extents of the data along the shifted dimensions; never empty (without shifts: a single 1).
    pub size: Vec<usize>,
    /// Those of a kernel.
    pub kernel: Vec<usize>,
    /// Those of an impulse.
    pub impulse: Vec<usize>,
    /// The offsets along them.
    pub offset: Vec<usize>,
    /// Whether every copy with a share lies inside the data: there, entries of impulses and of kernels whose cells would meet beyond are 0.
    pub inside: bool,
    /// For every dimension of the data what one step along it adds to `c`, `d` and `x`.
    strides: Vec<[usize; 3]>,
    /// Row of a folded block for every row of the kernels, and of the impulses; `None` if they agree.
    orders: [Option<Vec<u32>>; 2],
}

/// Kernels or impulses of one component: `lines` boxes of `shape`, of `cells` cells in rows of `row`.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// Channels of the kernels, lanes of the impulses.
    pub lines: usize,
    /// Extents of a box.
    pub shape: &'a [usize],
    /// Cells of a box.
    pub cells: usize,
    /// Cells of a row, along the last dimension.
    pub row: usize,
}

impl Folded {
    /// From the extents of data, kernels and impulses, and the offsets.
    pub fn new([data, kernel, impulse, offset]: [&[usize]; 4]) -> Self {
        let order = data.len();
        let shifted: Vec<usize> = (0..order)
            .filter(|&d| kernel[d] > 1 && (impulse[d] > 1 || kernel[d] != data[d]))
            .collect();
        let of = |shape: &[usize], none: usize| -> Vec<usize> {
            let extents: Vec<usize> = shifted.iter().map(|&d| shape[d]).collect();
            if extents.is_empty() {
                vec![none]
            } else {
                extents
            }
        };
        let mut strides = vec![[0; 3]; order];
        let [mut channels, mut lanes, mut positions] = [1; 3];
        for d in (0..order).rev() {
            let (kind, cells) = if shifted.contains(&d) {
                (2, &mut positions)
            } else if kernel[d] > 1 {
                (0, &mut channels)
            } else {
                (1, &mut lanes)
            };
            strides[d][kind] = *cells;
            *cells *= data[d];
        }
        Self {
            channels,
            lanes,
            size: of(data, 1),
            kernel: of(kernel, 1),
            impulse: of(impulse, 1),
            offset: of(offset, 0),
            inside: false,
            orders: [
                order_of(kernel, &strides, 0),
                order_of(impulse, &strides, 1),
            ],
            strides,
        }
    }

    /// `|x|`: shifted positions.
    pub fn positions(&self) -> usize {
        self.size.iter().product()
    }

    /// `|t|`: shifted cells of a kernel.
    pub fn taps(&self) -> usize {
        self.kernel.iter().product()
    }

    /// `|h|`: shifted cells of an impulse.
    pub fn places(&self) -> usize {
        self.impulse.iter().product()
    }

    /// Extents along the last shifted dimension: data, kernel, impulse, offset.
    pub fn inner(&self) -> [usize; 4] {
        let last = self.size.len() - 1;
        let of = |extents: &[usize]| extents[last];
        [
            of(&self.size),
            of(&self.kernel),
            of(&self.impulse),
            of(&self.offset),
        ]
    }

    /// `c`, `d` and `x` of a cell of the data.
    pub fn cell(&self, index: &[usize]) -> [usize; 3] {
        let mut at = [0; 3];
        for (&i, strides) in index.iter().zip(&self.strides) {
            at.iter_mut().zip(strides).for_each(|(a, s)| *a += i * s);
        }
        at
    }

    /// Channels and extents of the kernels (side 0), or lanes and extents of the impulses (side 1).
    pub fn side(&self, side: usize) -> Side<'_> {
        let (lines, shape) = match side {
            0 => (self.channels, &self.kernel),
            _ => (self.lanes, &self.impulse),
        };
        let cells = shape.iter().product();
        Side {
            lines,
            shape,
            cells,
            row: shape[shape.len() - 1],
        }
    }

    /// The plane `[c][d]` of a line of one side and a line of the other.
    pub fn plane(&self, side: usize, own: usize, other: usize) -> usize {
        match side {
            0 => own * self.lanes + other,
            _ => other * self.lanes + own,
        }
    }

    /// Kernels (side 0) as `[z][c][t]`, or impulses (side 1) as `[z][d][h]`.
    pub fn fold<T: Real>(&self, side: usize, block: &[T]) -> Vec<T> {
        let Some(order) = &self.orders[side] else {
            return block.to_vec();
        };
        let mut out = vec![T::zero(); block.len()];
        let columns = out.chunks_exact_mut(order.len());
        for (from, to) in block.chunks_exact(order.len()).zip(columns) {
            for (&x, &at) in from.iter().zip(order) {
                to[at as usize] = x;
            }
        }
        out
    }

    /// Back from [`fold`](Self::fold).
    pub fn unfold<T: Real>(&self, side: usize, folded: Vec<T>) -> Vec<T> {
        let Some(order) = &self.orders[side] else {
            return folded;
        };
        let mut out = vec![T::zero(); folded.len()];
        let columns = out.chunks_exact_mut(order.len());
        for (from, to) in folded.chunks_exact(order.len()).zip(columns) {
            for (x, &at) in to.iter_mut().zip(order) {
                *x = from[at as usize];
            }
        }
        out
    }
}

/// Row of a folded block for every row of a block of this shape: the kind's own dimensions first, then the shifted ones.
/// `None` if they agree.
fn order_of(shape: &[usize], strides: &[[usize; 3]], kind: usize) -> Option<Vec<u32>> {
    let order = shape.len();
    let (mut steps, mut cells) = (vec![0; order], 1);
    for wanted in [2, kind] {
        for d in (0..order).rev().filter(|&d| strides[d][wanted] > 0) {
            steps[d] = cells;
            cells *= shape[d];
        }
    }
    let mut index = vec![0; order];
    let table: Vec<u32> = (0..shape.iter().product())
        .map(|_| {
            let at: usize = index.iter().zip(&steps).map(|(i, s)| i * s).sum();
            advance(&mut index, shape);
            at as u32
        })
        .collect();
    let agrees = (0..).zip(&table).all(|(i, &at)| i == at);
    (!agrees).then_some(table)
}
