//! Where copies of a kernel may lie, and how data, kernels and impulses are indexed.

use plca_tensor::Real;

use crate::EmError;

/// Which places a kernel may take along one dimension of size `I`, with kernel extent `k`. `[SPEC 5.2]`
///
/// | support | impulse extent `m` | offset `o` | a copy |
/// |---|---|---|---|
/// | `Valid` | `I - k + 1` | 0 | lies inside the data |
/// | `Same` | `I` | 0 | starts inside, may run off the far border |
/// | `Full` | `I + k - 1` | `k - 1` | overlaps the data in one sample at least |
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

/// Shapes of a shifted model on data of one shape: `x = h + t - o` in every dimension.
///
/// ```
/// use plca_em::{Geometry, Support};
/// let g = Geometry::new(&[513, 938], &[513, 8], &[Support::Valid, Support::Full])?;
/// assert_eq!((g.impulse_shape(), g.offset()), (&[1, 945][..], &[0, 7][..]));
/// # Ok::<(), plca_em::EmError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    data: Vec<usize>,
    kernel: Vec<usize>,
    impulse: Vec<usize>,
    offset: Vec<usize>,
}

impl Geometry {
    /// Shapes for data of shape `data`, with one kernel extent for every dimension, and one support for each or one for all.
    ///
    /// # Errors
    ///
    /// [`EmError`]: another number of extents or supports than dimensions, an extent of 0 or larger than the data.
    pub fn new(data: &[usize], kernel: &[usize], supports: &[Support]) -> Result<Self, EmError> {
        let wrong = [kernel.len(), supports.len()]
            .into_iter()
            .enumerate()
            .find(|&(at, n)| n != data.len() && !(at == 1 && n == 1));
        if let Some((_, expected)) = wrong {
            return Err(EmError::Order {
                expected,
                got: data.len(),
            });
        }
        let (mut impulse, mut offset) = (Vec::new(), Vec::new());
        for (dimension, (&size, &extent)) in data.iter().zip(kernel).enumerate() {
            if extent == 0 || extent > size {
                return Err(EmError::Kernel {
                    dimension,
                    extent,
                    size,
                });
            }
            // [SPEC 5.2]
            let (m, o) = match supports[dimension.min(supports.len() - 1)] {
                Support::Valid => (size - extent + 1, 0),
                Support::Same => (size, 0),
                Support::Full => (size + extent - 1, extent - 1),
            };
            impulse.push(m);
            offset.push(o);
        }
        Ok(Self {
            data: data.to_vec(),
            kernel: kernel.to_vec(),
            impulse,
            offset,
        })
    }

    /// Extents of the data.
    pub fn data_shape(&self) -> &[usize] {
        &self.data
    }

    /// Extents of a kernel; the rows of a block of kernels are its cells in row-major order.
    pub fn kernel_shape(&self) -> &[usize] {
        &self.kernel
    }

    /// Extents of an impulse; the rows of a block of impulses are its cells in row-major order.
    pub fn impulse_shape(&self) -> &[usize] {
        &self.impulse
    }

    /// `o`: the place of a copy relative to the index of its impulse is `-o`.
    pub fn offset(&self) -> &[usize] {
        &self.offset
    }

    /// Number of cells of a kernel, `|k|`.
    pub fn kernel_cells(&self) -> usize {
        self.kernel.iter().product()
    }

    /// Number of cells of an impulse, `|m|`.
    pub fn impulse_cells(&self) -> usize {
        self.impulse.iter().product()
    }

    /// Whether every copy lies inside the data, so that `Σ_x P = 1`.
    pub(crate) fn is_valid(&self) -> bool {
        (self.data.iter().zip(&self.kernel).zip(&self.impulse)).all(|((i, k), m)| k + m - 1 == *i)
    }
}

/// The three kinds of dimensions, each kind folded.
///
/// A kernel-only dimension (impulse extent 1) indexes the kernels alone, an impulse-only one (kernel extent 1) the impulses
/// alone; so every model is one of channels `c`, lanes `d` and shifted positions `x`:
///
/// ```text
/// P[c,d,x] = Σ_z P(z) Σ_t K[z,c,t] H[z,d,x-t+o]
/// ```
#[derive(Clone, Debug)]
pub(crate) struct Folded {
    /// Number of kernel-only cells `c`.
    pub(crate) channels: usize,
    /// Number of impulse-only cells `d`.
    pub(crate) lanes: usize,
    /// Extents of the data along the shifted dimensions; never empty (without shifts: a single 1).
    pub(crate) size: Vec<usize>,
    pub(crate) kernel: Vec<usize>,
    pub(crate) impulse: Vec<usize>,
    pub(crate) offset: Vec<usize>,
    /// For every dimension of the data what one step along it adds to `c`, `d` and `x`.
    strides: Vec<[usize; 3]>,
    /// Row of a folded block for every row of the kernels; `None` if they agree.
    kernel_order: Option<Vec<u32>>,
    impulse_order: Option<Vec<u32>>,
}

impl Folded {
    pub(crate) fn new(g: &Geometry) -> Self {
        let order = g.data.len();
        let shifted: Vec<usize> = (0..order)
            .filter(|&d| g.kernel[d] > 1 && g.impulse[d] > 1)
            .collect();
        let of = |shape: &[usize]| -> Vec<usize> {
            let extents: Vec<usize> = shifted.iter().map(|&d| shape[d]).collect();
            if extents.is_empty() { vec![1] } else { extents }
        };
        let mut strides = vec![[0; 3]; order];
        let (mut channels, mut lanes, mut positions) = (1, 1, 1);
        for d in (0..order).rev() {
            let (kind, cells) = if shifted.contains(&d) {
                (2, &mut positions)
            } else if g.kernel[d] > 1 {
                (0, &mut channels)
            } else {
                (1, &mut lanes)
            };
            strides[d][kind] = *cells;
            *cells *= g.data[d];
        }
        let folded = |shape: &[usize], kind: usize| {
            // The kind's own dimensions first, then the shifted ones.
            let mut steps = vec![0; order];
            let mut cells = 1;
            for wanted in [2, kind] {
                for d in (0..order).rev().filter(|&d| strides[d][wanted] > 0) {
                    steps[d] = cells;
                    cells *= shape[d];
                }
            }
            let mut index = vec![0; order];
            let table: Vec<u32> = (0..shape.iter().product())
                .map(|_| {
                    let at: usize = index.iter().zip(&steps).map(|(i, s)| i * s).sum();
                    advance(&mut index, shape);
                    at as u32
                })
                .collect();
            let agrees = (0..).zip(&table).all(|(i, &at)| i == at);
            (!agrees).then_some(table)
        };
        Self {
            channels,
            lanes,
            size: of(&g.data),
            kernel: of(&g.kernel),
            impulse: of(&g.impulse),
            offset: if shifted.is_empty() {
                vec![0]
            } else {
                shifted.iter().map(|&d| g.offset[d]).collect()
            },
            kernel_order: folded(&g.kernel, 0),
            impulse_order: folded(&g.impulse, 1),
            strides,
        }
    }

    /// `|x|`: shifted positions.
    pub(crate) fn positions(&self) -> usize {
        self.size.iter().product()
    }

    /// `|t|`: shifted cells of a kernel.
    pub(crate) fn taps(&self) -> usize {
        self.kernel.iter().product()
    }

    /// `|h|`: shifted cells of an impulse.
    pub(crate) fn places(&self) -> usize {
        self.impulse.iter().product()
    }

    /// Extents along the last shifted dimension: data, kernel, impulse, offset.
    pub(crate) fn inner(&self) -> [usize; 4] {
        let last = self.size.len() - 1;
        let of = |extents: &[usize]| extents[last];
        [
            of(&self.size),
            of(&self.kernel),
            of(&self.impulse),
            of(&self.offset),
        ]
    }

    /// `c`, `d` and `x` of a cell of the data.
    pub(crate) fn cell(&self, index: &[usize]) -> [usize; 3] {
        let mut at = [0; 3];
        for (&i, strides) in index.iter().zip(&self.strides) {
            at.iter_mut().zip(strides).for_each(|(a, s)| *a += i * s);
        }
        at
    }

    /// Kernels as `[z][c][t]`.
    pub(crate) fn fold_kernels<T: Real>(&self, kernels: &[T]) -> Vec<T> {
        fold(
            kernels,
            self.kernel_order.as_deref(),
            self.channels * self.taps(),
        )
    }

    /// Impulses as `[z][d][h]`.
    pub(crate) fn fold_impulses<T: Real>(&self, impulses: &[T]) -> Vec<T> {
        fold(
            impulses,
            self.impulse_order.as_deref(),
            self.lanes * self.places(),
        )
    }

    /// Back from `[z][c][t]`.
    pub(crate) fn unfold_kernels<T: Real>(&self, folded: Vec<T>) -> Vec<T> {
        unfold(
            folded,
            self.kernel_order.as_deref(),
            self.channels * self.taps(),
        )
    }

    /// Back from `[z][d][h]`.
    pub(crate) fn unfold_impulses<T: Real>(&self, folded: Vec<T>) -> Vec<T> {
        unfold(
            folded,
            self.impulse_order.as_deref(),
            self.lanes * self.places(),
        )
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

fn fold<T: Real>(block: &[T], order: Option<&[u32]>, cells: usize) -> Vec<T> {
    let Some(order) = order else {
        return block.to_vec();
    };
    let mut out = vec![T::zero(); block.len()];
    for (from, to) in block.chunks_exact(cells).zip(out.chunks_exact_mut(cells)) {
        for (&x, &at) in from.iter().zip(order) {
            to[at as usize] = x;
        }
    }
    out
}

fn unfold<T: Real>(folded: Vec<T>, order: Option<&[u32]>, cells: usize) -> Vec<T> {
    let Some(order) = order else {
        return folded;
    };
    let mut out = vec![T::zero(); folded.len()];
    for (from, to) in folded.chunks_exact(cells).zip(out.chunks_exact_mut(cells)) {
        for (x, &at) in to.iter_mut().zip(order) {
            *x = from[at as usize];
        }
    }
    out
}
