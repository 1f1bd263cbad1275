//! From the tensors of the probabilistic models.

use super::{Hidden, RealTensor, Storage};
use crate::data::Cells;
use crate::kernel::dense::Grid;
use crate::kernel::mttkrp::Halves;
use crate::kernel::mttkrp_sparse::Sorted;
use crate::{Coordinates, Data, DenseTensor, Mask, Real, SparseTensor};

impl<T: Real> From<DenseTensor<T>> for RealTensor<T> {
    /// Takes the values without copying them.
    fn from(tensor: DenseTensor<T>) -> Self {
        let (grid, scale) = tensor.into_grid();
        Self::from_grid(grid, scale)
    }
}

impl<T: Real> From<&SparseTensor<T>> for RealTensor<T> {
    fn from(tensor: &SparseTensor<T>) -> Self {
        let (cells, hidden, scale) = tensor.parts();
        let shape = tensor.shape();
        let hidden = match (hidden, tensor.summary().mask) {
            (Some(cells), _) => Hidden::Listed(Sorted::new(&coordinates(shape, cells), true)),
            (None, Mask::Observed) => Hidden::NotStored,
            (None, _) => Hidden::None,
        };
        let entries = coordinates(shape, cells);
        let cells = Sorted::new(&entries, matches!(hidden, Hidden::NotStored));
        Self::new(entries.shape, Storage::Sparse { cells, hidden }, scale)
    }
}

impl<T: Real> RealTensor<T> {
    fn from_grid(grid: Grid<T>, scale: T) -> Self {
        let shape = grid.shape.clone();
        let halves = Halves::new(&shape, grid.order);
        Self::new(shape, Storage::Dense(grid, halves), scale)
    }
}

fn coordinates<T: Real>(shape: &[usize], cells: &Cells<T>) -> Coordinates<T> {
    let mut entries = Coordinates {
        shape: shape.to_vec(),
        indices: Vec::with_capacity(cells.stored() * shape.len()),
        values: Vec::with_capacity(cells.stored()),
    };
    cells.for_each(&mut |index, value| {
        entries.indices.extend(index.iter().map(|&i| i as u32));
        entries.values.push(value);
    });
    entries
}
