//! Where kernels meet the data.

use plca_fit::FitError;
use plca_tensor::shift::{Folded, Parts, advance, direct};
use plca_tensor::{DataError, Real};

/// Where kernels may lie along a dimension of the data.
///
/// ```math
/// L[x] = \sum_t \theta[t] \, \lambda[x - t + o]
/// ```
///
/// ```
/// use skellam_snmf::Reach;
/// // Kernels of 3 on data of 8: places, and the offset o.
/// assert_eq!(Reach::Valid.places(8, 3), Some((6, 0)));
/// assert_eq!(Reach::Same.places(8, 3), Some((8, 0)));
/// assert_eq!(Reach::Full.places(8, 3), Some((10, 2)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reach {
    /// Inside the data.
    #[default]
    Valid,
    /// They may run off the far border.
    Same,
    /// They may run off both borders.
    Full,
}

impl Reach {
    /// The number of places along a dimension of the data, for kernels of an extent, and the offset; `None` for kernels of no extent or larger than the data.
    pub fn places(self, size: usize, extent: usize) -> Option<(usize, usize)> {
        let before = extent.checked_sub(1)?;
        let inside = size.checked_sub(before).filter(|&places| places > 0)?;
        // [SPEC 5.2]
        match self {
            Self::Valid => Some((inside, 0)),
            Self::Same => Some((size, 0)),
            Self::Full => size.checked_add(before).map(|places| (places, before)),
        }
    }

    fn number(self) -> usize {
        match self {
            Self::Valid => 0,
            Self::Same => 1,
            Self::Full => 2,
        }
    }
}

/// Data, kernels and places, by dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) shape: Vec<usize>,
    pub(super) kernel: Vec<usize>,
    pub(super) places: Vec<usize>,
    pub(super) reach: Vec<Reach>,
    offset: Vec<usize>,
}

impl Window {
    /// Kernels on data of a shape; one reach for all dimensions, or one for each.
    ///
    /// # Errors
    ///
    /// [`FitError::Conflict`] for kernels without a place, [`FitError::Data`] for 2^31 cells, taps or places and more.
    pub(super) fn new(
        shape: &[usize],
        kernel: &[usize],
        reach: &[Reach],
    ) -> Result<Self, FitError> {
        let order = shape.len();
        let each: Vec<Reach> = match reach {
            [] => vec![Reach::default(); order],
            [one] => vec![*one; order],
            all => all.to_vec(),
        };
        let conflict = |what: String| FitError::Conflict { what };
        if kernel.len() != order || each.len() != order || order == 0 {
            return Err(conflict(format!(
                "kernels of {kernel:?} under {} supports on data of shape {shape:?}",
                each.len()
            )));
        }
        let found = (0..order).map(|d| {
            each[d].places(shape[d], kernel[d]).ok_or_else(|| {
                conflict(format!(
                    "a kernel of {kernel:?} has no place on data of shape {shape:?}"
                ))
            })
        });
        let found = found.collect::<Result<Vec<_>, _>>()?;
        let (places, offset): (Vec<_>, _) = found.into_iter().unzip();
        for extents in [shape, kernel, &places] {
            // The rows of both sides have numbers of 32 bits.
            let times = |rows: u32, &n: &usize| rows.checked_mul(u32::try_from(n).ok()?);
            if extents.iter().try_fold(2, times).is_none() {
                let shape = extents.to_vec();
                return Err(DataError::TooLarge { shape }.into());
            }
        }
        Ok(Self {
            shape: shape.to_vec(),
            kernel: kernel.to_vec(),
            places,
            reach: each,
            offset,
        })
    }

    pub(super) fn cells(&self) -> usize {
        self.shape.iter().product()
    }

    pub(super) fn taps(&self) -> usize {
        self.kernel.iter().product()
    }

    pub(super) fn spots(&self) -> usize {
        self.places.iter().product()
    }

    /// The taps that reach a cell, each with its place.
    pub(super) fn reaching(&self, cell: &[usize]) -> Vec<(usize, usize)> {
        let mut tap = vec![0; cell.len()];
        let pairs = (0..self.taps()).filter_map(|t| {
            // [EXT 5] h = x - t + o
            let place = (0..cell.len()).try_fold(0, |at, d| {
                let h = (cell[d] + self.offset[d]).checked_sub(tap[d])?;
                (h < self.places[d]).then_some(at * self.places[d] + h)
            });
            advance(&mut tap, &self.kernel);
            place.map(|h| (t, h))
        });
        pairs.collect()
    }

    /// The numbers of the supports.
    pub(super) fn supports(&self) -> Vec<f64> {
        self.reach.iter().map(|r| r.number() as f64).collect()
    }

    /// Of both sides, which are the last dimension of data and kernels: a channel `c` of the data is the channels `2c` and `2c + 1`.
    pub(super) fn folded(&self) -> Folded {
        let with = |extents: &[usize], last: usize| [extents, &[last]].concat();
        Folded::new([
            &with(&self.shape, 2),
            &with(&self.kernel, 2),
            &with(&self.places, 1),
            &with(&self.offset, 0),
        ])
    }

    /// Of one side.
    pub(super) fn folded_once(&self) -> Folded {
        Folded::new([&self.shape, &self.kernel, &self.places, &self.offset])
    }

    /// Cells in row-major order as `[c][d][x]`; `place` turns a position there into one of the result.
    pub(super) fn arranged<T: Real>(&self, cells: &[T], place: impl Fn(usize) -> usize) -> Vec<T> {
        let f = self.folded_once();
        let mut out = vec![T::zero(); cells.len()];
        let mut index = vec![0; self.shape.len()];
        for &cell in cells {
            let [c, d, x] = f.cell(&index);
            out[place((c * f.lanes + d) * f.positions() + x)] = cell;
            advance(&mut index, &self.shape);
        }
        out
    }

    /// `Σ_k Σ_t θ[k,t,s] λ[k, x - t + o]` of all cells, of one component or of all. `atoms` holds both sides of a tap one after the other.
    pub(super) fn rates<T: Real>(
        &self,
        blocks: [&[T]; 2],
        component: Option<usize>,
    ) -> [Vec<T>; 2] {
        let f = self.folded();
        let sizes = [2 * self.taps(), self.spots()];
        let k = blocks[0].len() / sizes[0];
        let (first, n) = component.map_or((0, k), |z| (z, 1));
        let [kernels, impulses] = [0, 1].map(|side| {
            let block = &blocks[side][first * sizes[side]..][..n * sizes[side]];
            f.fold(side, block)
        });
        // [EXT 5] L^s[x] = Σ_k Σ_t th[k,t,s] la[k, x - t + o]
        let rates = direct::model(
            &f,
            &Parts {
                weights: &vec![T::one(); n],
                kernels: &kernels,
                impulses: &impulses,
            },
        );
        [0, 1].map(|side| {
            let mut index = vec![0; self.shape.len() + 1];
            index[self.shape.len()] = side;
            let cells = (0..self.cells()).map(|_| {
                let [c, d, x] = f.cell(&index);
                advance(&mut index[..self.shape.len()], &self.shape);
                rates[(c * f.lanes + d) * f.positions() + x]
            });
            cells.collect()
        })
    }
}
