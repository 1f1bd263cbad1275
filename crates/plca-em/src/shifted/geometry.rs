//! Where copies of a kernel may lie, and how data, kernels and impulses are indexed.

use plca_fit::FitError;
use plca_tensor::DataError;

/// The places that a kernel may take along one dimension of size `I`, with kernel extent `k`. `[SPEC 5.2]`
///
/// | support | impulse extent `m` | offset `o` | a copy |
/// |---|---|---|---|
/// | `Valid` | `I - k + 1` | 0 | lies inside the data |
/// | `Same` | `I` | 0 | starts inside, may run off the far border |
/// | `Full` | `I + k - 1` | `k - 1` | overlaps the data in one sample at least |
///
/// ```
/// use plca_em::{Geometry, Support};
/// let places = |support| Geometry::new(&[10], &[4], &[support]).map(|g| g.impulse_cells());
/// assert_eq!([places(Support::Valid)?, places(Support::Same)?, places(Support::Full)?], [7, 10, 13]);
/// # Ok::<(), plca_em::FitError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Support {
    /// Every copy lies inside the data: the model has no mass elsewhere.
    #[default]
    Valid,
    /// Copies may run off the far border.
    Same,
    /// Copies may run off both borders.
    Full,
}

/// The shapes of a shifted model on data of one shape, and how their indices belong together in every dimension.
///
/// ```math
/// x = h + t - o
/// ```
///
/// `x` is a cell of the data, `h` of the impulse, `t` of the kernel, and `o` the [offset](Self::offset).
///
/// ```
/// use plca_em::{Geometry, Support};
/// let g = Geometry::new(&[513, 938], &[513, 8], &[Support::Valid, Support::Full])?;
/// assert_eq!((g.impulse_shape(), g.offset()), (&[1, 945][..], &[0, 7][..]));
/// # Ok::<(), plca_em::FitError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    pub(super) data: Vec<usize>,
    pub(super) kernel: Vec<usize>,
    pub(super) impulse: Vec<usize>,
    pub(super) offset: Vec<usize>,
}

impl Geometry {
    /// The shapes for data of shape `data`, with one kernel extent for every dimension, and one support for each or one for all.
    ///
    /// # Errors
    ///
    /// [`FitError::DataShape`] for another number of extents or supports than dimensions, and for an extent of 0 or larger than the data;
    /// [`FitError::Data`] for kernels or impulses of more cells than 32 bits can number.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{Geometry, Support};
    /// let refused = Geometry::new(&[20, 30], &[5, 31], &[Support::Valid]).unwrap_err();
    /// assert_eq!(refused.to_string(), "the data are 20 x 30, expected at least 5 x at least 31");
    /// ```
    pub fn new(data: &[usize], kernel: &[usize], supports: &[Support]) -> Result<Self, FitError> {
        let mut extents = kernel.iter().zip(data);
        let order = kernel.len() == data.len() && [1, data.len()].contains(&supports.len());
        if !order || extents.any(|(&k, &n)| k == 0 || k > n) {
            return Err(FitError::DataShape {
                got: data.to_vec(),
                expected: kernel.iter().map(|k| format!("at least {k}")).collect(),
            });
        }
        Ok(Self::placed(data, kernel, supports)?)
    }

    /// The same, for kernels that fit.
    pub(crate) fn placed(
        data: &[usize],
        kernel: &[usize],
        supports: &[Support],
    ) -> Result<Self, DataError> {
        let (mut impulse, mut offset) = (Vec::new(), Vec::new());
        for (dimension, (&size, &extent)) in data.iter().zip(kernel).enumerate() {
            // [SPEC 5.2]
            let (m, o) = match supports[dimension.min(supports.len() - 1)] {
                Support::Valid => (size - extent + 1, 0),
                Support::Same => (size, 0),
                Support::Full => (size + extent - 1, extent - 1),
            };
            impulse.push(m);
            offset.push(o);
        }
        for shape in [kernel, &impulse] {
            let cells = shape
                .iter()
                .try_fold(1u32, |cells, &n| cells.checked_mul(u32::try_from(n).ok()?));
            if cells.is_none() {
                let shape = shape.to_vec();
                return Err(DataError::TooLarge { shape });
            }
        }
        Ok(Self {
            data: data.to_vec(),
            kernel: kernel.to_vec(),
            impulse,
            offset,
        })
    }

    /// The supports that it was made with, one for every dimension. Where a kernel has one cell, all are the same: [`Support::Valid`].
    ///
    /// ```
    /// use plca_em::{Geometry, Support};
    /// let g = Geometry::new(&[20, 30], &[5, 6], &[Support::Valid, Support::Full])?;
    /// assert_eq!(g.supports(), [Support::Valid, Support::Full]);
    /// # Ok::<(), plca_em::FitError>(())
    /// ```
    pub fn supports(&self) -> Vec<Support> {
        let of = |d: usize| match (self.impulse[d], self.offset[d]) {
            (m, 0) if m + self.kernel[d] == self.data[d] + 1 => Support::Valid,
            (_, 0) => Support::Same,
            _ => Support::Full,
        };
        (0..self.data.len()).map(of).collect()
    }

    /// The extents of the data, one for every dimension.
    ///
    /// ```
    /// use plca_em::{Geometry, Support};
    /// let g = Geometry::new(&[20, 30], &[5, 6], &[Support::Valid, Support::Full])?;
    /// assert_eq!(g.data_shape(), [20, 30]);
    /// # Ok::<(), plca_em::FitError>(())
    /// ```
    pub fn data_shape(&self) -> &[usize] {
        &self.data
    }

    /// The extents of a kernel; the rows of a block of kernels are its cells in row-major order.
    ///
    /// ```
    /// use plca_em::{Geometry, Support};
    /// let g = Geometry::new(&[20, 30], &[5, 6], &[Support::Valid, Support::Full])?;
    /// assert_eq!(g.kernel_shape(), [5, 6]);
    /// # Ok::<(), plca_em::FitError>(())
    /// ```
    pub fn kernel_shape(&self) -> &[usize] {
        &self.kernel
    }

    /// The extents of an impulse; the rows of a block of impulses are its cells in row-major order.
    ///
    /// ```
    /// use plca_em::{Geometry, Support};
    /// let g = Geometry::new(&[20, 30], &[5, 6], &[Support::Valid, Support::Full])?;
    /// assert_eq!(g.impulse_shape(), [16, 35]);
    /// # Ok::<(), plca_em::FitError>(())
    /// ```
    pub fn impulse_shape(&self) -> &[usize] {
        &self.impulse
    }

    /// The offset `o` along every dimension, in cells: the place of a copy relative to the index of its impulse is `-o`.
    ///
    /// ```
    /// use plca_em::{Geometry, Support};
    /// let g = Geometry::new(&[20, 30], &[5, 6], &[Support::Valid, Support::Full])?;
    /// assert_eq!(g.offset(), [0, 5]);
    /// # Ok::<(), plca_em::FitError>(())
    /// ```
    pub fn offset(&self) -> &[usize] {
        &self.offset
    }

    /// The number of cells of a kernel, `|k|`.
    ///
    /// ```
    /// use plca_em::{Geometry, Support};
    /// let g = Geometry::new(&[20, 30], &[5, 6], &[Support::Valid, Support::Full])?;
    /// assert_eq!(g.kernel_cells(), 30);
    /// # Ok::<(), plca_em::FitError>(())
    /// ```
    pub fn kernel_cells(&self) -> usize {
        self.kernel.iter().product()
    }

    /// The number of cells of an impulse, `|m|`.
    ///
    /// ```
    /// use plca_em::{Geometry, Support};
    /// let g = Geometry::new(&[20, 30], &[5, 6], &[Support::Valid, Support::Full])?;
    /// assert_eq!(g.impulse_cells(), 16 * 35);
    /// # Ok::<(), plca_em::FitError>(())
    /// ```
    pub fn impulse_cells(&self) -> usize {
        self.impulse.iter().product()
    }

    /// `|k|` and `|m|`.
    pub(crate) fn cells(&self) -> [usize; 2] {
        [self.kernel_cells(), self.impulse_cells()]
    }

    /// Whether every copy lies inside the data, so that `Σ_x P = 1`.
    pub(crate) fn is_valid(&self) -> bool {
        (self.data.iter().zip(&self.kernel).zip(&self.impulse)).all(|((i, k), m)| k + m - 1 == *i)
    }
}

/// The next multi-index in row-major order; `false` after the last.
pub(crate) fn advance(index: &mut [usize], shape: &[usize]) -> bool {
    for (i, &n) in index.iter_mut().zip(shape).rev() {
        *i += 1;
        if *i < n {
            return true;
        }
        *i = 0;
    }
    false
}
