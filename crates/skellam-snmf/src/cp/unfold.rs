//! Tensors as matrices: a row for every index of the signed mode, a column for every index of the others, of which the last runs fastest.

use plca_fit::FitError;
use plca_tensor::arrange::Signed;
use plca_tensor::{Coordinates, Data, DataError, DenseTensor, Mask, Order, Real, SparseTensor};

/// The shape of a tensor, and which of its modes is signed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Folding {
    shape: Vec<usize>,
    mode: usize,
}

impl Folding {
    /// # Errors
    ///
    /// [`FitError::Mode`], [`FitError::Conflict`] for a single mode.
    pub(super) fn new(shape: Vec<usize>, mode: usize) -> Result<Self, FitError> {
        let modes = shape.len();
        if mode >= modes {
            return Err(FitError::Mode { mode, modes });
        }
        if modes < 2 {
            return Err(FitError::Conflict {
                what: "the data have order 1, expected a mode besides the signed one".into(),
            });
        }
        Ok(Self { shape, mode })
    }

    pub(super) fn shape(&self) -> &[usize] {
        &self.shape
    }

    pub(super) fn mode(&self) -> usize {
        self.mode
    }

    pub(super) fn rows(&self) -> usize {
        self.shape[self.mode]
    }

    /// The other modes with their sizes.
    pub(super) fn others(&self) -> impl DoubleEndedIterator<Item = (usize, usize)> {
        let modes = self.shape.iter().copied().enumerate();
        modes.filter(|&(j, _)| j != self.mode)
    }

    /// Refuses a mode of the scale that is not there, or signed.
    pub(super) fn check_scale(&self, scale: Option<usize>) -> Result<(), FitError> {
        let modes = self.shape.len();
        match scale {
            Some(mode) if mode >= modes => Err(FitError::Mode { mode, modes }),
            Some(mode) if mode == self.mode => Err(FitError::Conflict {
                what: format!("mode {mode} is signed: expected another one to carry the scale"),
            }),
            _ => Ok(()),
        }
    }

    /// The sizes of the other modes.
    pub(super) fn sizes(&self) -> Vec<usize> {
        self.others().map(|(_, n)| n).collect()
    }

    /// The column of a cell.
    fn column(&self, index: &[usize]) -> usize {
        self.others().fold(0, |at, (j, n)| at * n + index[j])
    }

    /// The cell of a row and a column.
    pub(super) fn index(&self, row: usize, column: usize) -> Vec<usize> {
        let mut index = vec![row; self.shape.len()];
        let mut rest = column;
        for (j, n) in self.others().rev() {
            index[j] = rest % n;
            rest /= n;
        }
        index
    }

    /// A refusal that names the cell of the tensor.
    pub(super) fn refused(&self, error: FitError) -> FitError {
        let cell = |at: Vec<usize>| match at[..] {
            [row, column] => self.index(row, column),
            _ => at,
        };
        match error {
            FitError::Entry {
                index,
                value,
                expected,
            } => FitError::Entry {
                index: cell(index),
                value,
                expected,
            },
            FitError::Impossible { index, value } => FitError::Impossible {
                index: cell(index),
                value,
            },
            other => other,
        }
    }

    /// Values of a matrix, row by row, as those of the tensor.
    pub(super) fn folded<T: Copy>(&self, matrix: Vec<T>) -> Vec<T> {
        if self.mode == 0 {
            return matrix;
        }
        let rows = self.rows();
        let columns = matrix.len() / rows.max(1);
        let inner: usize = self.shape[self.mode + 1..].iter().product();
        let cell = |at: usize| {
            let (outer, row) = (at / inner / rows, at / inner % rows);
            matrix[row * columns + outer * inner + at % inner]
        };
        (0..matrix.len()).map(cell).collect()
    }
}

/// A tensor unfolded: as a list of its observed cells where the data are one, else as a dense matrix.
pub(super) fn unfold<T: Real>(
    data: &dyn Data<T>,
    mode: usize,
) -> Result<(Signed<T>, Folding), FitError> {
    let folding = Folding::new(data.shape().to_vec(), mode)?;
    if folding.shape.len() == 2 && mode == 0 {
        return Ok((Signed::new(data)?, folding));
    }
    let too_large = || DataError::TooLarge {
        shape: data.shape().to_vec(),
    };
    let sizes = folding.sizes();
    let mut sizes = sizes.iter();
    let columns = sizes.try_fold(1usize, |all, &n| all.checked_mul(n));
    let columns = columns.ok_or_else(too_large)?;
    let (rows, shape) = (folding.rows(), vec![folding.rows(), columns]);
    if data.summary().mask == Mask::Observed {
        if u32::try_from(columns).is_err() {
            return Err(too_large().into());
        }
        let mut cells = Coordinates::empty(&shape);
        let mut push = |index: &[usize], value: f64| {
            cells.push(&[index[mode], folding.column(index)], T::lit(value));
        };
        // Zeros are observed too; entries of one cell are added up.
        data.visit_mask(&mut |index| push(index, 0.0))?;
        data.visit(&mut push)?;
        let cells = SparseTensor::stored_only(cells)?;
        return Ok((Signed::new(&cells)?, folding));
    }
    let cells = rows.checked_mul(columns).ok_or_else(too_large)?;
    let mut values = Vec::new();
    values.try_reserve_exact(cells).map_err(|_| too_large())?;
    values.resize(cells, T::zero());
    let at = |index: &[usize]| index[mode] * columns + folding.column(index);
    data.visit_mask(&mut |index| values[at(index)] = T::lit(f64::NAN))?;
    data.visit(&mut |index, value| values[at(index)] = T::lit(value))?;
    let dense = DenseTensor::masked(shape, values, Order::RowMajor)?;
    Ok((Signed::from_dense(dense)?, folding))
}
