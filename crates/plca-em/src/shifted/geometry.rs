//! Where copies of a kernel may lie, and how data, kernels and impulses are indexed.

use plca_fit::FitError;
use plca_tensor::DataError;
use plca_tensor::shift::Folded;

/// Where copies of a kernel may lie along one dimension: `I` is the size of the data, `k` that of the kernel, both in cells. `[SPEC 5.2]`
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
#[non_exhaustive]
pub enum Support {
    /// Every copy lies inside the data, so all mass of the model does.
    #[default]
    Valid,
    /// Every copy starts inside the data and may run off the far border; the mass beyond it is lost.
    Same,
    /// Copies may run off both borders, as long as one cell along the dimension is inside.
    Full,
}

/// The shapes of data, kernels and impulses in a shift-invariant model, and which cells of them meet.
///
/// A kernel is a small pattern; the impulse of a component says how much of a copy of its kernel lies at every place. Along every dimension
///
/// ```math
/// x = h + t - o
/// ```
///
/// where `x` is the index of a cell of the data, `h` of the impulse and `t` of the kernel, all counted from 0, and `o` is the
/// [offset](Self::offset).
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
    /// The geometry for data of shape `data`. `kernel` has one extent for every dimension, `supports` one support for every dimension or
    /// one for all.
    ///
    /// # Errors
    ///
    /// [`FitError::DataShape`] unless there are as many extents as dimensions, and as many supports or one; also for an extent that is 0 or
    /// larger than the data. [`FitError::Data`] for kernels or impulses of 2^32 cells or more.
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

    /// The supports that it was made with, one for every dimension. Along a dimension of kernel extent 1 the three supports are the same,
    /// and [`Support::Valid`] is returned.
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

    /// The extents of a kernel, one for every dimension. In a block of kernels each row is one cell, in row-major order.
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

    /// The extents of an impulse, one for every dimension. In a block of impulses each row is one cell, in row-major order.
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

    /// The offset `o` along every dimension, in cells: a copy whose impulse has index `h` begins at cell `h - o` of the data, before its
    /// first cell if this is negative.
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

    /// The three kinds of dimensions, each folded.
    pub(crate) fn folded(&self) -> Folded {
        Folded::new([&self.data, &self.kernel, &self.impulse, &self.offset])
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
