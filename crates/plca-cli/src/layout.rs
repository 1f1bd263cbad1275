//! Blocks of a model as the arrays of its files.

use std::path::Path;

use nalgebra::DMatrix;
use plca_fit::engine::Parameters;
use plca_io::Array;

use crate::blocks::{Arrays, matrix};
use crate::failure::Failure;
use crate::models::Kind;

/// How a block lies in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Rows and columns as they are.
    Matrix,
    /// One column, without the second dimension.
    Vector,
}

impl Layout {
    fn array(self, block: &DMatrix<f64>) -> Array<f64> {
        match self {
            Self::Matrix => matrix(block),
            Self::Vector => Array::new(vec![block.nrows()], block.as_slice().to_vec()),
        }
    }

    /// The block that an array of this name holds.
    pub(crate) fn block(
        self,
        path: &Path,
        name: &str,
        array: Array<f64>,
    ) -> Result<DMatrix<f64>, Failure> {
        let (shape, needed) = match (self, &array.shape[..]) {
            (Self::Matrix, &[rows, columns]) => ((rows, columns), ""),
            (Self::Vector, &[rows]) => ((rows, 1), ""),
            (Self::Matrix, _) => ((0, 0), "a matrix"),
            (Self::Vector, _) => ((0, 0), "one dimension"),
        };
        let bad = |what: String| Err(Failure::of(path, format!("`{name}` {what}")));
        if !needed.is_empty() {
            return bad(format!("has shape {:?}, {needed} is needed", array.shape));
        }
        // Sizes that nothing stands behind are counted all the same.
        if array.values.is_empty() {
            return bad(format!("is empty, of shape {:?}", array.shape));
        }
        let values = array.values.into_iter();
        Ok(DMatrix::from_row_iterator(shape.0, shape.1, values))
    }
}

/// The blocks by name.
pub(crate) fn arrays(kind: Kind, at: &Parameters<f64>) -> Arrays {
    let blocks = at.blocks();
    blocks
        .map(|(name, block)| (name.to_string(), kind.layout(name).array(block)))
        .collect()
}
