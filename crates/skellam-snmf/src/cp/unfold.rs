//! Cells of tensors as cells of matrices.

use plca_fit::FitError;

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
    pub(super) fn column(&self, index: &[usize]) -> usize {
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

    /// A refusal of a cell of a matrix, by the cell of the tensor; `place` is its index of the signed mode, and that of all others together.
    pub(super) fn refused(
        &self,
        error: FitError,
        place: impl Fn(usize, usize) -> [usize; 2],
    ) -> FitError {
        match error {
            FitError::Entry {
                index,
                value,
                expected,
            } => FitError::Entry {
                index: match index[..] {
                    [row, column] => {
                        let [row, column] = place(row, column);
                        self.index(row, column)
                    }
                    _ => index,
                },
                value,
                expected,
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
