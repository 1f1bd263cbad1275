//! Matrices of either sign: read, hidden, and as blocks of a model file.

use std::path::Path;

use plca_io::{DataFile, Element};
use plca_tensor::{Data, Mask, SparseTensor};

use crate::args::DataArgs;
use crate::data::{Loaded, Tensor, read};
use crate::failure::Failure;
use crate::models::options::need_matrix;

/// Reads a matrix of either sign. `model` is named where it must be one.
fn matrix<T: Element>(path: &Path, args: &DataArgs, model: &str) -> Result<Tensor<T>, Failure> {
    let file = read::<T>(path, args, true)?;
    match &file {
        DataFile::Dense(array) => need_matrix(path, model, &array.shape)?,
        DataFile::Sparse(entries) => need_matrix(path, model, &entries.shape)?,
    }
    Tensor::new(path, args, file)
}

/// Reads a matrix of either sign, of which a dense copy is to be made, and hides what is missing.
pub(crate) fn load<T: Element>(
    path: &Path,
    args: &DataArgs,
    model: &str,
) -> Result<Loaded<T>, Failure> {
    let tensor = matrix(path, args, model)?;
    if let Tensor::Sparse(data) = &tensor
        && data.summary().mask != Mask::Observed
    {
        room(path, data)?;
    }
    Ok(tensor.boxed())
}

/// A dense matrix of more cells is not made from a sparse file.
const MOST_CELLS: usize = 1 << 31;

/// Refuses sparse data whose zeros cannot be held.
fn room<T: Element>(path: &Path, data: &SparseTensor<T>) -> Result<(), Failure> {
    let (rows, columns) = (data.shape()[0], data.shape()[1]);
    let size = rows.checked_mul(columns).filter(|&n| n <= MOST_CELLS);
    if size.is_none() {
        let what = format!(
            "{rows} x {columns} cells are too many to hold: cells that are not stored are zeros here, unless --missing unstored"
        );
        return Err(Failure::of(path, what));
    }
    plca_io::room::<T>(&[rows, columns]).map_err(|e| Failure::by(path, e))?;
    Ok(())
}
