//! Matrices of either sign: read, hidden, and as blocks of a model file.

use std::path::Path;

use nalgebra::DMatrix;
use plca_io::{Array, DataFile, Element};
use plca_tensor::arrange::Signed;
use plca_tensor::{CompensatedSum, Data, Mask, SparseTensor};

use crate::args::DataArgs;
use crate::data::{Dataset, Tensor, read, unobserved_warnings};
use crate::failure::Failure;
use crate::models::options::need_matrix;
use crate::precision;

/// Indices that were not seen.
fn unseen(seen: &[bool]) -> Vec<usize> {
    let indices = seen.iter().enumerate().filter(|(_, seen)| !**seen);
    indices.map(|(at, _)| at).collect()
}

/// A matrix of either sign, and what the command says of it.
#[derive(Debug)]
pub(crate) struct SignedData<T> {
    pub(crate) cells: Signed<T>,
    sizes: [usize; 2],
}

impl<T: Element> SignedData<T> {
    pub(crate) fn shape(&self) -> (usize, usize) {
        self.cells.shape()
    }

    /// Sum of the absolute values of what was observed.
    pub(crate) fn absolute_sum(&self) -> f64 {
        let mut sum = CompensatedSum::default();
        self.cells.for_each(&mut |_, _, v| sum += v.abs());
        sum.value()
    }
}

impl<T: Element> Dataset for SignedData<T> {
    fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    fn sum(&self) -> f64 {
        let mut sum = CompensatedSum::default();
        self.cells.for_each(&mut |_, _, v| sum += v);
        sum.value()
    }

    fn warnings(&self) -> Vec<String> {
        let mut seen = self.sizes.map(|n| vec![false; n]);
        self.cells.for_each(&mut |row, column, _| {
            seen[0][row] = true;
            seen[1][column] = true;
        });
        unobserved_warnings(seen.iter().map(|seen| unseen(seen)).collect())
    }
}

/// Reads a matrix of either sign. `model` is named where it must be one.
fn matrix<T: Element>(path: &Path, args: &DataArgs, model: &str) -> Result<Tensor<T>, Failure> {
    let file = read::<T>(path, args, true)?;
    match &file {
        DataFile::Dense(array) => need_matrix(path, model, &array.shape)?,
        DataFile::Sparse(entries) => need_matrix(path, model, &entries.shape)?,
    }
    Tensor::new(path, args, file)
}

/// Reads a matrix of either sign and hides what is missing.
pub(crate) fn load<T: Element>(
    path: &Path,
    args: &DataArgs,
    model: &str,
) -> Result<SignedData<T>, Failure> {
    let cells = match matrix(path, args, model)? {
        Tensor::Dense(data) => Signed::from_dense(data),
        Tensor::Sparse(data) => {
            if data.summary().mask != Mask::Observed {
                room(path, &*data)?;
            }
            Signed::new(&*data)
        }
    };
    let cells = cells.map_err(|e| precision::refused::<T>(path, args, e))?;
    let (rows, columns) = cells.shape();
    let sizes = [rows, columns];
    Ok(SignedData { cells, sizes })
}

/// A matrix without hidden cells.
#[derive(Debug)]
pub(crate) struct Complete<T> {
    pub(crate) values: DMatrix<T>,
    sizes: [usize; 2],
}

impl<T: Element> Dataset for Complete<T> {
    fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    fn sum(&self) -> f64 {
        self.values
            .iter()
            .map(|x| x.to_f64())
            .collect::<CompensatedSum>()
            .value()
    }

    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A complete matrix, for models that cannot do without a cell.
pub(crate) fn load_complete<T: Element>(
    path: &Path,
    args: &DataArgs,
    model: &str,
) -> Result<Complete<T>, Failure> {
    let fail = |e| precision::refused::<T>(path, args, e);
    let values = match matrix(path, args, model)? {
        Tensor::Dense(data) if data.is_complete() => DMatrix::try_from(data).map_err(fail)?,
        Tensor::Sparse(data) if data.is_complete() => {
            room(path, &*data)?;
            let mut values = DMatrix::zeros(data.shape()[0], data.shape()[1]);
            data.visit(&mut |index, v| values[(index[0], index[1])] = T::lit(v))
                .map_err(fail)?;
            values
        }
        _ => {
            let what = format!("{model} needs every cell, and here are hidden ones");
            return Err(Failure::of(path, what));
        }
    };
    let sizes = [values.nrows(), values.ncols()];
    Ok(Complete { values, sizes })
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

/// The two sides of an array of `F x K x 2`.
pub(crate) fn sides<T: Element>(
    path: &Path,
    name: &str,
    array: Array<f64>,
) -> Result<(DMatrix<T>, DMatrix<T>), Failure> {
    let &[f, k, 2] = &array.shape[..] else {
        let what = format!("`{name}` has shape {:?}, F x K x 2 is needed", array.shape);
        return Err(Failure::of(path, what));
    };
    let side = |s| DMatrix::from_fn(f, k, |i, z| T::lit(array.values[2 * (i * k + z) + s]));
    Ok((side(0), side(1)))
}

/// The inverse of [`sides`].
pub(crate) fn join<T: Element>(plus: &DMatrix<T>, minus: &DMatrix<T>) -> Array<f64> {
    let (f, k) = plus.shape();
    let cells = (0..f).flat_map(|i| (0..k).map(move |z| (i, z)));
    let values = cells.flat_map(|at| [plus[at].to_f64(), minus[at].to_f64()]);
    Array::new(vec![f, k, 2], values.collect())
}
