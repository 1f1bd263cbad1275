//! How a matrix is cut, found by looking at every entry once.

use crate::data::{check_index, check_shape, data_scale, matrix_shape};
use crate::kernel::strata::grid::{Grid, LANES};
use crate::{DataError, Real, SourceError};

/// Numbers of entries by row and by column, from which the [`Tiling`] follows.
///
/// Memory: 4 bytes for every row and every column.
///
/// ```
/// use plca_tensor::{DataError, TileCounts};
/// let mut counts = TileCounts::new(&[4, 3])?;
/// counts.add([3, 0], 2.0)?;
/// assert!(matches!(counts.add([3, 3], 2.0), Err(DataError::OutOfRange { position: 1, mode: 1, .. })));
/// assert!(matches!(counts.add([3, 2], -2.0), Err(DataError::Negative { .. })));
/// assert_eq!(counts.tiling().shape(), [4, 3]);
/// # Ok::<(), DataError>(())
/// ```
#[derive(Clone, Debug)]
pub struct TileCounts<T> {
    shape: [usize; 2],
    counts: [Vec<u32>; 2],
    entries: usize,
    largest: T,
}

impl<T: Real> TileCounts<T> {
    /// The counts of a matrix of this shape, without entries yet.
    ///
    /// # Errors
    ///
    /// [`DataError`]: a shape that is not a matrix, an empty mode, one that is too large.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_tensor::{DataError, TileCounts};
    /// assert!(matches!(TileCounts::<f64>::new(&[4, 3, 2]), Err(DataError::NotAMatrix { .. })));
    /// ```
    pub fn new(shape: &[usize]) -> Result<Self, DataError> {
        check_shape(shape)?;
        let shape = matrix_shape(shape)?;
        Ok(Self {
            shape,
            counts: shape.map(|n| vec![0; n]),
            entries: 0,
            largest: T::zero(),
        })
    }

    /// Counts an entry; zeros and duplicates count too.
    ///
    /// # Errors
    ///
    /// [`DataError`]: an index outside the shape, a value that is negative or not finite, more than `u32::MAX` entries.
    ///
    /// # Examples
    ///
    /// See [`TileCounts`].
    pub fn add(&mut self, index: [u32; 2], value: T) -> Result<(), DataError> {
        check_index(self.entries, &index, &self.shape)?;
        let index = index.map(|i| i as usize);
        if !value.is_finite() || value < T::zero() {
            let (index, value) = (index.into(), value.to_f64());
            return Err(match value.is_finite() {
                true => DataError::Negative { index, value },
                false => DataError::NotFinite { index, value },
            });
        }
        if self.entries == u32::MAX as usize {
            return Err(DataError::too_large(&self.shape));
        }
        self.entries += 1;
        for (counts, i) in self.counts.iter_mut().zip(index) {
            counts[i] += 1;
        }
        if value > self.largest {
            self.largest = value;
        }
        Ok(())
    }

    /// Numbers of entries in the rows that are visited in order, those of the larger mode.
    ///
    /// ```
    /// use plca_tensor::TileCounts;
    /// let mut counts = TileCounts::new(&[2, 3])?;
    /// counts.add([0, 2], 1.0)?;
    /// assert_eq!(counts.rows(), [0, 0, 1]);
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    pub fn rows(&self) -> &[u32] {
        &self.counts[usize::from(self.shape[1] > self.shape[0])]
    }

    /// How the matrix is cut: as [`SparseTensor`](crate::SparseTensor) cuts it.
    ///
    /// ```
    /// use plca_tensor::TileCounts;
    /// let mut counts = TileCounts::new(&[4, 3])?;
    /// counts.add([3, 0], 1e300)?;
    /// assert!(counts.tiling().scale() < 1.0);                         // sums of such values would overflow
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    pub fn tiling(&self) -> Tiling<T> {
        Tiling {
            shape: self.shape,
            grid: Grid::new(&self.counts, self.entries),
            scale: data_scale(self.largest),
        }
    }
}

/// The tiles that a matrix is cut into, and what its values are multiplied by.
///
/// The mode with more indices (the first, if they have as many) has the *rows* of the tiles, the other one their *columns*.
///
/// ```
/// use plca_tensor::{TileCounts, Tiling};
/// let counts = TileCounts::<f64>::new(&[4, 3])?;
/// let tiling = counts.tiling();
/// assert_eq!(Tiling::from_parts(&[4, 3], tiling.bounds().clone(), tiling.scale())?, tiling);
/// # Ok::<(), plca_tensor::DataError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Tiling<T> {
    shape: [usize; 2],
    pub(super) grid: Grid,
    scale: T,
}

impl<T: Real> Tiling<T> {
    /// A tiling from its parts.
    ///
    /// # Errors
    ///
    /// [`DataError`]: a shape as [`TileCounts::new`] refuses it; [`Source`](DataError::Source) for bounds that do not cut the shape, numbers of
    /// groups of rows that are not 1, 2, … or 8 times those of columns, or a scale that is not a positive number.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_tensor::{DataError, Tiling};
    /// let two = [vec![0, 3, 4], vec![0, 2, 3]];
    /// assert_eq!(Tiling::from_parts(&[4, 3], two.clone(), 1.0)?.tiles(), 4);
    /// let four = [vec![0, 1, 2, 3, 4], vec![0, 2, 3]];
    /// assert_eq!(Tiling::from_parts(&[4, 3], four, 1.0)?.tiles(), 8);
    /// for rows in [vec![0, 1, 2, 4], [vec![0; 18], vec![4]].concat()] {   // 3 and 18 groups of rows, 2 of columns
    ///     assert!(matches!(Tiling::from_parts(&[4, 3], [rows, vec![0, 2, 3]], 1.0), Err(DataError::Source { .. })));
    /// }
    /// assert!(matches!(Tiling::from_parts(&[5, 3], two, 1.0), Err(DataError::Source { .. })));
    /// # Ok::<(), DataError>(())
    /// ```
    pub fn from_parts(
        shape: &[usize],
        bounds: [Vec<usize>; 2],
        scale: T,
    ) -> Result<Self, DataError> {
        check_shape(shape)?;
        let shape = matrix_shape(shape)?;
        let outer = usize::from(shape[1] > shape[0]);
        let cuts = |bounds: &[usize], size: usize| {
            bounds.len() > 1
                && bounds.first() == Some(&0)
                && bounds.last() == Some(&size)
                && bounds.is_sorted()
        };
        let fit = cuts(&bounds[0], shape[outer]) && cuts(&bounds[1], shape[1 - outer]);
        let lanes =
            |[rows, columns]: [usize; 2]| rows.is_multiple_of(columns) && rows <= LANES * columns;
        if !fit || !lanes([0, 1].map(|side| bounds[side].len() - 1)) {
            let what = format!("bounds {bounds:?} do not cut a matrix of shape {shape:?}");
            return Err(DataError::Source(SourceError::new(what)));
        }
        if !(scale > T::zero() && scale.is_finite()) {
            let what = format!("scale {} is not a finite number > 0", scale.to_f64());
            return Err(DataError::Source(SourceError::new(what)));
        }
        Ok(Self {
            shape,
            grid: Grid { outer, bounds },
            scale,
        })
    }

    /// Shape of the matrix.
    ///
    /// ```
    /// assert_eq!(plca_tensor::TileCounts::<f32>::new(&[4, 3])?.tiling().shape(), [4, 3]);
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    pub fn shape(&self) -> [usize; 2] {
        self.shape
    }

    /// Bounds of the groups of rows and of the `G` groups of columns: tile `r G + c` has group `r` of rows and `c` of columns.
    ///
    /// ```
    /// assert_eq!(plca_tensor::TileCounts::<f32>::new(&[3, 4])?.tiling().bounds(), &[vec![0, 4], vec![0, 3]]);
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    pub fn bounds(&self) -> &[Vec<usize>; 2] {
        &self.grid.bounds
    }

    /// Power of two by which values are multiplied before they are stored, so that their sums stay within range; 1 except for extreme data.
    ///
    /// ```
    /// assert_eq!(plca_tensor::TileCounts::<f32>::new(&[4, 3])?.tiling().scale(), 1.0);
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    pub fn scale(&self) -> T {
        self.scale
    }

    /// Number of tiles.
    ///
    /// ```
    /// assert_eq!(plca_tensor::TileCounts::<f32>::new(&[4, 3])?.tiling().tiles(), 1);
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    pub fn tiles(&self) -> usize {
        self.grid.groups().iter().product()
    }

    /// The tile of an entry, and its row and column within the tile.
    ///
    /// # Panics
    ///
    /// If the index is outside the shape.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_tensor::Tiling;
    /// let tiling = Tiling::from_parts(&[4, 3], [vec![0, 3, 4], vec![0, 2, 3]], 1.0)?;
    /// assert_eq!((tiling.place([1, 2]), tiling.place([3, 0])), ((1, 1, 0), (2, 0, 0)));
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    pub fn place(&self, index: [u32; 2]) -> (usize, u32, u32) {
        let Grid { outer, bounds } = &self.grid;
        let groups = self.grid.groups();
        let within = |side: usize, i: u32| {
            let i = i as usize;
            // The last of several groups that begin here: those before it are empty.
            let group = bounds[side].partition_point(|&b| b <= i) - 1;
            assert!(group < groups[side], "an index outside the shape");
            (group, (i - bounds[side][group]) as u32)
        };
        let (r, row) = within(0, index[*outer]);
        let (c, column) = within(1, index[1 - outer]);
        (r * groups[1] + c, row, column)
    }

    /// Rows and columns of a tile.
    pub(super) fn size(&self, tile: usize) -> (usize, usize) {
        let [_, groups] = self.grid.groups();
        (
            self.grid.rows(tile / groups).len(),
            self.grid.columns(tile % groups).len(),
        )
    }
}
