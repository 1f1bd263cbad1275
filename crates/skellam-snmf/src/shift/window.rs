//! Where kernels meet the data, and the sums over them.

use plca_fit::FitError;
use plca_tensor::Real;
use plca_tensor::parallel::{for_each_part, wide};

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
    /// The number of places along a dimension of the data, for kernels of an extent, and the offset; `None` without a place.
    pub fn places(self, size: usize, extent: usize) -> Option<(usize, usize)> {
        if extent == 0 {
            return None;
        }
        // [SPEC 5.2]
        match self {
            Self::Valid => (size + 1).checked_sub(extent).map(|m| (m, 0)),
            Self::Same => Some((size, 0)),
            Self::Full => size.checked_add(extent - 1).map(|m| (m, extent - 1)),
        }
        .filter(|&(places, _)| places > 0)
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

/// A run of cells along the last dimension: the first cell of the data, the first place, and how many.
type Run = (usize, usize, usize);

impl Window {
    /// Kernels on data of a shape; one reach for all dimensions, or one for each.
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
        let (places, offset) = found.into_iter().unzip();
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

    /// The numbers of the supports.
    pub(super) fn supports(&self) -> Vec<f64> {
        self.reach.iter().map(|r| r.number() as f64).collect()
    }

    /// The index of the first dimension that a part of the data (0) or of the places (1) has; none where all is one part.
    fn row(&self, side: usize, part: usize) -> Option<(usize, usize)> {
        (self.shape.len() > 1).then_some((side, part))
    }

    /// Calls `f` with the runs of cells `x = h + t - o` of a tap `t`; only those of one index of the first dimension of the data (`rows` 0) or of the
    /// places (1), if there is one.
    fn runs(&self, tap: usize, only: Option<(usize, usize)>, mut f: impl FnMut(Run)) {
        let order = self.shape.len();
        let mut t = vec![0; order];
        let mut rest = tap;
        for d in (0..order).rev() {
            (t[d], rest) = (rest % self.kernel[d], rest / self.kernel[d]);
        }
        // Places from `low` on to before `high`.
        let mut low = vec![0; order];
        let mut high = vec![0; order];
        for d in 0..order {
            low[d] = self.offset[d].saturating_sub(t[d]);
            high[d] = (self.shape[d] + self.offset[d])
                .saturating_sub(t[d])
                .min(self.places[d]);
        }
        match only {
            Some((0, x)) => {
                let h = x + self.offset[0];
                if h < t[0] + low[0] || h >= t[0] + high[0] {
                    return;
                }
                (low[0], high[0]) = (h - t[0], h - t[0] + 1);
            }
            Some((_, h)) => {
                if h < low[0] || h >= high[0] {
                    return;
                }
                (low[0], high[0]) = (h, h + 1);
            }
            None => {}
        }
        if (0..order).any(|d| low[d] >= high[d]) {
            return;
        }
        let last = order - 1;
        let mut h = low.clone();
        loop {
            let (mut cell, mut place) = (0, 0);
            for d in 0..order {
                cell = cell * self.shape[d] + (h[d] + t[d] - self.offset[d]);
                place = place * self.places[d] + h[d];
            }
            f((cell, place, high[last] - low[last]));
            let mut d = last;
            loop {
                if d == 0 {
                    return;
                }
                d -= 1;
                h[d] += 1;
                if h[d] < high[d] {
                    break;
                }
                h[d] = low[d];
            }
        }
    }

    /// `Σ_k Σ_t θ[k,t,s] λ[k, x - t + o]` of all cells, of one component or of all. `atoms` holds both sides of a tap one after the other.
    pub(super) fn rates<T: Real>(
        &self,
        [atoms, activations]: [&[T]; 2],
        component: Option<usize>,
    ) -> [Vec<T>; 2] {
        let (taps, spots) = (self.taps(), self.spots());
        let inner = part_of(&self.shape);
        let k = atoms.len() / (2 * taps);
        [0, 1].map(|side| {
            let mut rates = vec![T::zero(); self.cells()];
            for_each_part(&mut rates, inner, |x, rates| {
                for z in (0..k).filter(|&z| component.is_none_or(|only| only == z)) {
                    let activations = &activations[z * spots..][..spots];
                    for tap in 0..taps {
                        let theta = atoms[2 * (z * taps + tap) + side];
                        if theta <= T::zero() {
                            continue;
                        }
                        self.runs(tap, self.row(0, x), |(cell, place, n)| {
                            let to = &mut rates[cell - x * inner..][..n];
                            // [EXT 5] L^s[x] = Σ_k Σ_t th[k,t,s] la[k, x - t + o]
                            wide(|| {
                                for (r, &l) in to.iter_mut().zip(&activations[place..][..n]) {
                                    *r += theta * l;
                                }
                            });
                        });
                    }
                }
            });
            rates
        })
    }

    /// Expected counts of the atoms from `E = G - 1` of both sides, 0 where nothing was observed: `θ (Σ_h λ + Σ_h λ E)`.
    pub(super) fn atom_counts<T: Real>(
        &self,
        [atoms, activations]: [&[T]; 2],
        e: &[Vec<T>; 2],
    ) -> Vec<T> {
        let (taps, spots) = (self.taps(), self.spots());
        let mut counts = atoms.to_vec();
        let totals: Vec<T> = activations
            .chunks_exact(spots)
            .map(|each| each.iter().copied().sum())
            .collect();
        for_each_part(&mut counts, 2, |part, both| {
            let (z, tap) = (part / taps, part % taps);
            let activations = &activations[z * spots..][..spots];
            let mut sums = [T::zero(); 2];
            self.runs(tap, None, |(cell, place, n)| {
                for (sum, e) in sums.iter_mut().zip(e) {
                    // [EXT 5] Σ_h la G = Σ la + corr(E, la)
                    *sum += dot(&activations[place..][..n], &e[cell..][..n]);
                }
            });
            for (theta, sum) in both.iter_mut().zip(sums) {
                *theta *= totals[z] + sum;
            }
        });
        counts
    }

    /// Expected counts of the activations: `λ (Σ θ + Σ_t (θ⁺ E⁺ + θ⁻ E⁻))`.
    pub(super) fn activation_counts<T: Real>(
        &self,
        [atoms, activations]: [&[T]; 2],
        e: &[Vec<T>; 2],
    ) -> Vec<T> {
        let (taps, spots) = (self.taps(), self.spots());
        let inner = part_of(&self.places);
        let rows = spots / inner.max(1);
        let mut counts = activations.to_vec();
        for_each_part(&mut counts, inner, |part, counts| {
            let (z, row) = (part / rows, part % rows);
            let atoms = &atoms[2 * z * taps..][..2 * taps];
            let mass: T = atoms.iter().copied().sum();
            let mut sums = vec![mass; inner];
            let first = row * inner;
            for tap in 0..taps {
                self.runs(tap, self.row(1, row), |(cell, place, n)| {
                    let to = &mut sums[place - first..][..n];
                    for (side, e) in e.iter().enumerate() {
                        let theta = atoms[2 * tap + side];
                        // [EXT 5] Σ th G = Σ th + corr(E, th)
                        wide(|| {
                            for (s, &e) in to.iter_mut().zip(&e[cell..][..n]) {
                                *s += theta * e;
                            }
                        });
                    }
                });
            }
            counts.iter_mut().zip(sums).for_each(|(c, s)| *c *= s);
        });
        counts
    }
}

/// Cells that are one part of the work: those of one index of the first dimension, or all where there is no other.
fn part_of(sizes: &[usize]) -> usize {
    match sizes {
        [all] => *all,
        sizes => sizes[1..].iter().product(),
    }
}

fn dot<T: Real>(a: &[T], b: &[T]) -> T {
    wide(|| {
        let (mut lanes, chunks) = ([T::zero(); 8], a.len() / 8);
        for at in 0..chunks {
            for (i, lane) in lanes.iter_mut().enumerate() {
                *lane += a[8 * at + i] * b[8 * at + i];
            }
        }
        let rest = a[8 * chunks..].iter().zip(&b[8 * chunks..]);
        lanes.into_iter().sum::<T>() + rest.map(|(&a, &b)| a * b).sum::<T>()
    })
}
