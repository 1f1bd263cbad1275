//! How blocks lie in files, as arrays in C order.

use nalgebra::DMatrix;

/// The way in which a block lies in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileLayout {
    /// `rows x columns`, as the block itself.
    Matrix,
    /// A block of one column, without its second dimension.
    Vector,
    /// `K x extents`: an array for every column. The extents are the fact of this name.
    Stack(&'static str),
    /// Not in files: it is 1 when they are read, and what it says is in the scale.
    Absent,
    /// `F x K x 2`: plus and minus, whose rows stand one above the other in the block.
    Sides,
}

impl FileLayout {
    /// The shape of the array of a block; `extents` are those of [`Stack`](Self::Stack).
    pub fn shape(self, block: (usize, usize), extents: &[usize]) -> Vec<usize> {
        let (rows, columns) = block;
        match self {
            Self::Matrix => vec![rows, columns],
            Self::Vector => vec![rows],
            Self::Absent => Vec::new(),
            Self::Stack(_) => [&[columns], extents].concat(),
            Self::Sides => vec![rows / 2, columns, 2],
        }
    }

    /// The fact that holds the extents of a component.
    pub fn extents(self) -> Option<&'static str> {
        match self {
            Self::Stack(extents) => Some(extents),
            _ => None,
        }
    }

    /// What shape an array must have, in words.
    pub fn expected(self) -> &'static str {
        match self {
            Self::Matrix => "a matrix",
            Self::Vector => "one dimension",
            Self::Absent => "no array",
            Self::Stack(_) => "K x the extents of a component",
            Self::Sides => "F x K x 2",
        }
    }

    /// The values of an array, in C order, from its block.
    pub fn values(self, block: &DMatrix<f64>) -> Vec<f64> {
        let (rows, columns) = block.shape();
        match self {
            Self::Matrix | Self::Vector => block.transpose().as_slice().to_vec(),
            Self::Stack(_) => block.as_slice().to_vec(),
            Self::Absent => Vec::new(),
            Self::Sides => {
                let cells = (0..rows / 2).flat_map(|i| (0..columns).map(move |z| (i, z)));
                let values = cells.flat_map(|(i, z)| [block[(i, z)], block[(rows / 2 + i, z)]]);
                values.collect()
            }
        }
    }

    /// The block of an array with these values in C order; `None` for a shape that no block has.
    pub fn block(self, shape: &[usize], values: &[f64]) -> Option<DMatrix<f64>> {
        if shape.iter().product::<usize>() != values.len() {
            return None;
        }
        Some(match (self, shape) {
            (Self::Matrix, &[rows, columns]) => DMatrix::from_row_slice(rows, columns, values),
            (Self::Vector, &[rows]) => DMatrix::from_column_slice(rows, 1, values),
            (Self::Stack(_), [columns, extents @ ..]) if !extents.is_empty() => {
                DMatrix::from_column_slice(extents.iter().product(), *columns, values)
            }
            (Self::Sides, &[rows, columns, 2]) => DMatrix::from_fn(2 * rows, columns, |i, z| {
                values[2 * ((i % rows) * columns + z) + i / rows]
            }),
            _ => return None,
        })
    }
}
