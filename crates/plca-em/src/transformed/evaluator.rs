//! The E-step of transformed models.

use std::sync::Arc;

use plca_tensor::parallel::for_each_part;
use plca_tensor::{Data, DataError, Real};

use super::maps::{Entry, IndexMaps};
use super::set_model::SetModel;
use crate::placed::{Placement, Placing, position};
use crate::shifted::evaluate::{Cells, Counts, Parts, Wanted};
use crate::shifted::geometry::Geometry;
use crate::{Likelihood, Support};

/// Maps to data of a shape.
#[derive(Clone, Debug)]
pub(super) struct Mapped {
    pub(super) maps: IndexMaps,
    pub(super) shape: Vec<usize>,
}

/// Kernels under index maps, on data.
#[derive(Clone, Debug)]
pub(crate) struct Evaluator<T: Real> {
    place: Mapped,
    how: How<T>,
}

/// By the table, or without one.
#[derive(Clone, Debug)]
enum How<T: Real> {
    Table(Likelihood, Arc<Cells<T>>),
    Set(Box<SetModel<T>>),
}

impl Placement for Mapped {
    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn sizes(&self) -> [usize; 2] {
        [self.maps.kernel_cells(), self.maps.maps()]
    }

    fn leaves(&self) -> bool {
        self.maps.any_outside()
    }

    fn cells<T: Real>(&self, at: Parts<'_, T>) -> Vec<T> {
        let mut p = vec![T::zero(); self.maps.cells];
        const PART: usize = 256;
        if let Some(set) = self.maps.set_on(&self.shape) {
            for_each_part(&mut p, PART, |part, p| {
                let cells = (part * PART..).zip(p);
                cells.for_each(|(x, p)| *p = set.reached(at, x));
            });
            return p;
        }
        for_each_part(&mut p, PART, |part, p| {
            let first = part * PART;
            for entries in self.maps.of_cells(first..first + p.len()) {
                p[entries[0].to as usize - first] = self.maps.reached(at, entries);
            }
        });
        p
    }

    fn cell<T: Real>(&self, at: Parts<'_, T>, index: &[usize]) -> f64 {
        let x = position(index, &self.shape);
        if let Some(set) = self.maps.set_on(&self.shape) {
            return set.reached(at, x).to_f64();
        }
        let mut entries = self.maps.of_cells(x..x + 1);
        (entries.next()).map_or(0.0, |e| self.maps.reached(at, e).to_f64())
    }

    /// From the cells that maps lead to.
    fn inside<T: Real>(&self, at: Parts<'_, T>) -> f64 {
        if let Some(set) = self.maps.set_on(&self.shape) {
            const PART: usize = 256;
            let mut sums = vec![0.0; self.maps.cells.div_ceil(PART)];
            for_each_part(&mut sums, 1, |part, sum| {
                let cells = part * PART..self.maps.cells.min((part + 1) * PART);
                sum[0] = cells.map(|x| set.reached(at, x).to_f64()).sum();
            });
            return sums.iter().sum();
        }
        let cells = self.maps.of_cells(0..self.maps.cells);
        let reached = cells.map(|entries| self.maps.reached(at, entries).to_f64());
        reached.sum()
    }
}

impl IndexMaps {
    /// `P` of the cell that these entries lead to.
    fn reached<T: Real>(&self, at: Parts<'_, T>, entries: &[Entry]) -> T {
        let mut p = T::zero();
        for (z, &w) in at.weights.iter().enumerate() {
            let kernel = &at.kernels[z * self.kernel..][..self.kernel];
            let impulse = &at.impulses[z * self.maps..][..self.maps];
            // [SPEC 5.7] P[x] = Σ_z P(z) Σ_s H[z,s] Σ_{u: T_s(u) = x} a[s,u] K[z,u]
            let terms = entries
                .iter()
                .map(|e| T::lit(e.weight) * kernel[e.from as usize] * impulse[e.map as usize]);
            p += w * terms.sum::<T>();
        }
        p
    }
}

impl<T: Real> Evaluator<T> {
    /// Of data that have as many cells as the maps.
    pub(crate) fn new(
        maps: IndexMaps,
        likelihood: Likelihood,
        components: usize,
        data: &dyn Data<T>,
    ) -> Result<Self, DataError> {
        let shape = data.shape().to_vec();
        let how = match maps.set_on(&shape) {
            Some(set) => How::Set(Box::new(SetModel::new(set, likelihood, components, data)?)),
            None => {
                // Every dimension indexes the kernel: the cells stay in row-major order.
                let geometry = Geometry::placed(&shape, &shape, &[Support::Valid])?;
                let cells = Cells::new(&geometry.folded(), data)?;
                How::Table(likelihood, Arc::new(cells))
            }
        };
        Ok(Self {
            place: Mapped { maps, shape },
            how,
        })
    }

    /// `Σ_s H[z,s] q[s,u]`, `[z][u]`.
    fn kernel_sums(&self, at: Parts<'_, T>, q: &[T]) -> Vec<T> {
        let maps = &self.place.maps;
        // [SPEC 5.7] H q, of CK = P(z) K ∘ (H q)
        let mut sums = vec![T::zero(); at.kernels.len()];
        for_each_part(&mut sums, maps.kernel, |z, sums| {
            let impulse = &at.impulses[z * maps.maps..][..maps.maps];
            for (s, &h) in impulse.iter().enumerate() {
                for e in maps.of_map(s) {
                    sums[e.from as usize] += h * ratio(e, q);
                }
            }
        });
        sums
    }

    /// `Σ_u K[z,u] q[s,u]`, `[z][s]`.
    fn impulse_sums(&self, at: Parts<'_, T>, q: &[T]) -> Vec<T> {
        let maps = &self.place.maps;
        // [SPEC 5.7] K qᵀ, of CH = P(z) H ∘ (K qᵀ)
        let mut sums = vec![T::zero(); at.impulses.len()];
        const PART: usize = 64;
        for_each_part(&mut sums, PART, |part, sums| {
            for (place, sum) in (part * PART..).zip(sums) {
                let kernel = &at.kernels[place / maps.maps * maps.kernel..][..maps.kernel];
                let terms = maps.of_map(place % maps.maps).iter();
                *sum = terms.map(|e| kernel[e.from as usize] * ratio(e, q)).sum();
            }
        });
        sums
    }
}

impl<T: Real> Placing<T> for Evaluator<T> {
    fn unmixed(&self, data: &dyn Data<T>) -> Result<Option<Self>, DataError> {
        let How::Set(set) = &self.how else {
            return Ok(None);
        };
        let unmixed = set.unmixed(data)?.map(|set| Self {
            place: self.place.clone(),
            how: How::Set(Box::new(set)),
        });
        Ok(unmixed)
    }

    fn cell(&self, at: Parts<'_, T>, index: &[usize]) -> f64 {
        self.place.cell(at, index)
    }

    fn expect(&self, at: Parts<'_, T>, wanted: Wanted) -> Counts<T> {
        let (likelihood, cells) = match &self.how {
            How::Set(set) => return set.expect(at, wanted),
            How::Table(likelihood, cells) => (likelihood, cells),
        };
        let mut q = self.place.cells(at);
        let mass = q.iter().map(|p| p.to_f64()).sum();
        let measured = cells.ratios(&mut q, wanted, mass);
        // Beyond the data: imputed like a hidden cell, or nothing.
        q.push(match (likelihood, wanted.imputed) {
            (Likelihood::Conditional, true) => T::lit(cells.total * cells.scale / measured.seen),
            _ => T::zero(),
        });
        let sums = |side| match side {
            0 => self.kernel_sums(at, &q),
            _ => self.impulse_sums(at, &q),
        };
        Counts::assemble(&at, wanted, cells.scale, measured, sums)
    }
}

/// `q[s,u] = a[s,u] Q[T_s(u)]`
fn ratio<T: Real>(e: &Entry, q: &[T]) -> T {
    T::lit(e.weight) * q[e.to as usize]
}
