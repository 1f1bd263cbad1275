//! Transformed kernels as the kernels of a shifted model: one for every component and transformation. No table is read.
//!
//! ```math
//! P[x] = \sum_{z,t} P(z) \sum_{u'} K_{zt}[u'] \, H[z,t,x-u'],
//! \qquad K_{zt}[u'] = \sum_u A_t[u',u] \, K[z,u]
//! ```

use std::ops::Range;

use plca_tensor::parallel::for_each_part;
use plca_tensor::{Data, DataError, Real};

use super::maps::MapEntry;
use super::set::{Positions, Transformation};
use crate::placed::Placing;
use crate::shifted::evaluate::{Counts, Parts, Wanted};
use crate::shifted::geometry::Geometry;
use crate::shifted::model::{Evaluator, Layout};
use crate::{Evaluation, Likelihood, Support};

/// Where kernels go under one transformation.
#[derive(Clone, Debug)]
struct Rotation {
    /// Cell of the kernel, cell of the largest box, weight.
    shares: Vec<(usize, usize, f64)>,
    /// The first cell of its own box, by row and by column.
    places: [Range<isize>; 2],
}

impl Rotation {
    /// The number of its maps.
    fn maps(&self) -> Option<usize> {
        let [rows, columns] = &self.places;
        rows.len().checked_mul(columns.len())
    }
}

/// Kinds of positions, by the numbers that files give them.
const POSITIONS: [Positions; 3] = [Positions::Valid, Positions::Full, Positions::Centred];

/// Transformations on data of a shape.
#[derive(Clone, Debug)]
pub(super) struct Set {
    shape: Vec<usize>,
    /// Extents of the largest box, and of the dimensions that are not transformed.
    extents: Vec<usize>,
    supports: Vec<Support>,
    /// Whether all copies lie inside the data.
    inside: bool,
    /// Cells of a kernel, and of the dimensions that are not transformed.
    cells: [usize; 2],
    turns: Vec<Rotation>,
    transformations: Vec<Transformation>,
    positions: Positions,
}

impl Set {
    /// Kernels of the first two extents of `kernel` on data of `shape`, which has those of the rest too. All boxes have a place.
    pub(super) fn new(
        transformations: &[Transformation],
        kernel: &[usize],
        shape: &[usize],
        positions: Positions,
    ) -> Self {
        let turned = transformations
            .iter()
            .map(|t| t.shares([kernel[0], kernel[1]]));
        let turned: Vec<_> = turned.collect();
        let largest = [0, 1].map(|d: usize| turned.iter().map(|(e, _)| e[d]).max().unwrap_or(1));
        let like = turned.iter().all(|(extents, _)| *extents == largest);
        let support = match positions {
            Positions::Valid if like => Support::Valid,
            // Places beyond the last one of a box are not used.
            Positions::Valid => Support::Same,
            Positions::Full | Positions::Centred => Support::Full,
        };
        let turns = turned.into_iter().map(|(extents, shares)| Rotation {
            shares: (shares.into_iter())
                .map(|(from, to, weight)| {
                    let (row, column) = (to / extents[1], to % extents[1]);
                    (from, row * largest[1] + column, weight)
                })
                .collect(),
            places: [0, 1].map(|d| positions.of(shape[d], extents[d])),
        });
        let rest = &shape[2..];
        let mut supports = vec![support; 2];
        supports.resize(shape.len(), Support::Valid);
        Self {
            turns: turns.collect(),
            shape: shape.to_vec(),
            extents: [&largest[..], rest].concat(),
            supports,
            inside: positions == Positions::Valid,
            cells: [kernel.iter().product(), rest.iter().product()],
            transformations: transformations.to_vec(),
            positions,
        }
    }

    /// What it was made of, as numbers: the kind of positions, then matrix and scale of every transformation.
    pub(super) fn numbers(&self) -> Vec<f64> {
        let kind = POSITIONS.iter().position(|&kind| kind == self.positions);
        let mut numbers = vec![kind.unwrap_or_default() as f64];
        for t in &self.transformations {
            numbers.extend(t.matrix.as_flattened());
            numbers.push(t.scale);
        }
        numbers
    }

    /// What [`numbers`](Self::numbers) say; `None` if they are no such numbers.
    pub(super) fn read(numbers: &[f64]) -> Option<(Vec<Transformation>, Positions)> {
        let (&kind, rest) = numbers.split_first()?;
        let positions = *POSITIONS
            .iter()
            .enumerate()
            .find(|(at, _)| *at as f64 == kind)?
            .1;
        let (parts, left) = rest.as_chunks::<5>();
        let read = |&[a, b, c, d, scale]: &[f64; 5]| {
            let matrix = [[a, b], [c, d]];
            // Its columns are as long as the scale says, and at right angles.
            let near = |x: f64, y: f64| (x - y).abs() <= 1e-9 * scale * scale;
            let good = scale > 0.0
                && scale.is_finite()
                && near(a * a + c * c, scale * scale)
                && near(b * b + d * d, scale * scale)
                && near(a * b + c * d, 0.0);
            good.then_some(Transformation { matrix, scale })
        };
        let all: Option<Vec<_>> = parts.iter().map(read).collect();
        all.filter(|_| left.is_empty()).map(|all| (all, positions))
    }

    /// The number of maps; `None` if they cannot be counted.
    pub(super) fn maps(&self) -> Option<usize> {
        let counts = self.turns.iter().map(Rotation::maps);
        counts.sum::<Option<usize>>()
    }

    /// Whether a cell of a kernel lies outside of the data in any map.
    pub(super) fn any_outside(&self) -> bool {
        let width = self.extents[1];
        self.turns.iter().any(|turn| {
            turn.shares.iter().any(|&(_, to, _)| {
                let at = [to / width, to % width].map(|x| x as isize);
                (0..2).any(|d| {
                    let places = &turn.places[d];
                    let beyond = places.end - 1 + at[d] >= self.shape[d] as isize;
                    !places.is_empty() && (places.start + at[d] < 0 || beyond)
                })
            })
        })
    }

    /// The entries of one map. What falls outside of the data is one entry for a cell of the kernel.
    pub(super) fn entries(&self, map: usize) -> Vec<MapEntry> {
        let (mut left, mut all) = (map, Vec::new());
        let found = self.turns.iter().find(|turn| {
            let count = turn.maps().unwrap_or(usize::MAX);
            let here = left < count;
            if !here {
                left -= count;
            }
            here
        });
        let Some(turn) = found else { return all };
        let columns = turn.places[1].len();
        let row = turn.places[0].start + (left / columns) as isize;
        let column = turn.places[1].start + (left % columns) as isize;
        let ([_, inner], width) = (self.cells, self.extents[1]);
        let within = |first: isize, at: usize, d: usize| {
            let place = usize::try_from(first + at as isize).ok()?;
            (place < self.shape[d]).then_some(place)
        };
        for cell in turn.shares.chunk_by(|a, b| a.0 == b.0) {
            let mut lost = 0.0;
            let first = cell[0].0 * inner;
            for &(_, to, weight) in cell {
                let x = within(row, to / width, 0).zip(within(column, to % width, 1));
                let Some((i, j)) = x else {
                    lost += weight;
                    continue;
                };
                let to = (i * self.shape[1] + j) * inner;
                all.extend((0..inner).map(|c| MapEntry {
                    map,
                    from: first + c,
                    to: Some(to + c),
                    weight,
                }));
            }
            if lost > 0.0 {
                all.extend((0..inner).map(|c| MapEntry {
                    map,
                    from: first + c,
                    to: None,
                    weight: lost,
                }));
            }
        }
        all
    }

    /// `P` of one cell of the data.
    pub(super) fn reached<T: Real>(&self, at: Parts<'_, T>, x: usize) -> T {
        let ([cells, inner], width) = (self.cells, self.extents[1]);
        let (place, c) = (x / inner, x % inner);
        let (i, j) = (place / self.shape[1], place % self.shape[1]);
        let maps = at.impulses.len() / at.weights.len();
        let mut p = T::zero();
        for (z, &w) in at.weights.iter().enumerate() {
            let kernel = &at.kernels[z * cells..][..cells];
            let impulse = &at.impulses[z * maps..][..maps];
            let (mut sum, mut before) = (T::zero(), 0);
            for turn in &self.turns {
                let [rows, columns] = &turn.places;
                for &(from, to, weight) in &turn.shares {
                    let row = i as isize - (to / width) as isize;
                    let column = j as isize - (to % width) as isize;
                    if rows.contains(&row) && columns.contains(&column) {
                        let (row, column) = (row - rows.start, column - columns.start);
                        let map = before + row as usize * columns.len() + column as usize;
                        // [SPEC 5.7] P[x] = Σ_z P(z) Σ_s H[z,s] Σ_{u: T_s(u) = x} a[s,u] K[z,u]
                        sum += T::lit(weight) * kernel[from * inner + c] * impulse[map];
                    }
                }
                before += turn.maps().unwrap_or(0);
            }
            p += w * sum;
        }
        p
    }

    pub(super) fn shape(&self) -> &[usize] {
        &self.shape
    }
}

/// A shifted model of all transformed kernels.
#[derive(Clone, Debug)]
pub(super) struct SetModel<T: Real> {
    set: Set,
    geometry: Geometry,
    shifted: Evaluator<T>,
}

impl<T: Real> SetModel<T> {
    pub(super) fn new(
        set: &Set,
        likelihood: Likelihood,
        components: usize,
        data: &dyn Data<T>,
    ) -> Result<Self, DataError> {
        let geometry = Geometry::placed(&set.shape, &set.extents, &set.supports)?;
        let all = components * set.turns.len();
        let layout = match set.inside {
            true => Layout::inside(geometry.clone()),
            false => Layout::new(geometry.clone()),
        };
        let shifted = Evaluator::new(layout, likelihood, Evaluation::Auto, all, data)?;
        Ok(Self {
            set: set.clone(),
            geometry,
            shifted,
        })
    }

    /// The same without transforms, if it has any.
    pub(super) fn unmixed(&self, data: &dyn Data<T>) -> Result<Option<Self>, DataError> {
        let unmixed = self.shifted.unmixed(data)?.map(|shifted| Self {
            set: self.set.clone(),
            geometry: self.geometry.clone(),
            shifted,
        });
        Ok(unmixed)
    }

    /// Calls `f` with the places of a run of maps of a transformation in the impulses of the shifted model: the first, and the number of the first map.
    fn runs(&self, turn: usize, mut f: impl FnMut(Range<usize>, usize)) {
        let [rows, columns] = &self.set.turns[turn].places;
        let before = self.set.turns[..turn].iter().map(Rotation::maps);
        let mut map = before.sum::<Option<usize>>().unwrap_or(0);
        let (offset, width) = (self.geometry.offset(), self.geometry.impulse_shape()[1]);
        for row in rows.clone() {
            // A box of its own begins where the largest does.
            let row = row.wrapping_add_unsigned(offset[0]) as usize;
            let first = columns.start.wrapping_add_unsigned(offset[1]) as usize;
            let first = row * width + first;
            f(first..first + columns.len(), map);
            map += columns.len();
        }
    }

    /// `K_zt`, component after component, then transformation.
    fn kernels(&self, at: Parts<'_, T>) -> Vec<T> {
        let ([cells, inner], turns) = (self.set.cells, &self.set.turns);
        let size = self.geometry.kernel_cells();
        let mut out = vec![T::zero(); at.weights.len() * turns.len() * size];
        for_each_part(&mut out, size, |part, out| {
            let kernel = &at.kernels[part / turns.len() * cells..][..cells];
            for &(from, to, weight) in &turns[part % turns.len()].shares {
                // [EXT 2] K_zt = A_t K_z
                let to = out[to * inner..][..inner].iter_mut();
                let from = &kernel[from * inner..][..inner];
                to.zip(from).for_each(|(to, &k)| *to += T::lit(weight) * k);
            }
        });
        out
    }

    pub(super) fn expect(&self, at: Parts<'_, T>, wanted: Wanted) -> Counts<T> {
        let ([cells, inner], turns) = (self.set.cells, &self.set.turns);
        let [size, places] = self.geometry.cells();
        let k = at.weights.len();
        let maps = at.impulses.len() / k;
        let kernels = self.kernels(at);
        let mut impulses = vec![T::zero(); k * turns.len() * places];
        let mut weights = Vec::with_capacity(k * turns.len());
        for (part, out) in impulses.chunks_exact_mut(places).enumerate() {
            let (z, t) = (part / turns.len(), part % turns.len());
            let own = &at.impulses[z * maps..][..maps];
            let mut mass = T::zero();
            self.runs(t, |to, map| {
                let from = &own[map..][..to.len()];
                mass += from.iter().copied().sum::<T>();
                out[to].copy_from_slice(from);
            });
            if mass > T::zero() {
                out.iter_mut().for_each(|h| *h /= mass);
            }
            weights.push(at.weights[z] * mass);
        }
        let model = Parts {
            weights: &weights,
            kernels: &kernels,
            impulses: &impulses,
            window: None,
        };
        let counts = self.shifted.expect(model, wanted);
        let [of_kernels, of_impulses] = counts.blocks;
        let mut own = [Vec::new(), Vec::new()];
        if wanted.blocks[0] {
            own[0] = vec![T::zero(); at.kernels.len()];
            for_each_part(&mut own[0], cells, |z, out| {
                let kernel = &at.kernels[z * cells..][..cells];
                for (t, turn) in turns.iter().enumerate() {
                    let first = (z * turns.len() + t) * size;
                    let (turned, counts) =
                        (&kernels[first..][..size], &of_kernels[first..][..size]);
                    for &(from, to, weight) in &turn.shares {
                        for c in 0..inner {
                            let (from, to) = (from * inner + c, to * inner + c);
                            if turned[to] > T::zero() {
                                // [EXT 2] CK_z = pz K_z ∘ Σ_t A_tᵀ r_zt, r_zt = CK_zt / K_zt
                                let share = T::lit(weight) * kernel[from] / turned[to];
                                out[from] += share * counts[to];
                            }
                        }
                    }
                }
            });
        }
        if wanted.blocks[1] {
            own[1] = vec![T::zero(); at.impulses.len()];
            for (part, counts) in of_impulses.chunks_exact(places).enumerate() {
                let out = &mut own[1][part / turns.len() * maps..][..maps];
                self.runs(part % turns.len(), |from, map| {
                    out[map..][..from.len()].copy_from_slice(&counts[from]);
                });
            }
        }
        Counts {
            blocks: own,
            ..counts
        }
    }
}
