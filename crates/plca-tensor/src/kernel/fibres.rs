//! Sparse tensors of any order but 2, stored as fibres.
//!
//! A fibre holds the entries that differ in one mode only, the *leaf*: the mode that makes fibres longest. For every fibre
//! `u = Π_{m≠leaf} F_m` is formed once; an entry then costs `p = u·F_leaf`, `S_leaf += q u`, `g += q F_leaf`, and the other modes
//! receive `g` times the product of the rest at the fibre's end: `6K` operations an entry instead of `2K(N+1)`.
//!
//! Fibres are cut into at most 64 segments, a function of the data alone; each adds up in its own accumulators,
//! which are then added in order: the bits do not depend on the number of threads.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::aligned::Aligned;
use super::panel::Panel;
use super::strata::{add, dot, ratio};
use super::{Accumulate, Cells, Rule, Sums, bounds, part_rows};
use crate::parallel::{for_each_part, map_in_order, wide};
use crate::sum::CompensatedSum;
use crate::{Coordinates, Real};

/// Segments of fibres at most.
const SEGMENTS: usize = 64;
/// Beyond this number of groups, their accumulators together have at most one row for [`ENTRIES`] entries.
const FEW: usize = 16;
const ENTRIES: usize = 16;
/// Private accumulators may take this many times the factors, or [`SMALL`] bytes.
const SHARE: usize = 4;
const SMALL: usize = 32 << 20;
/// Bits of the sketch that counts distinct fibres.
const SKETCH: u64 = 1 << 24;

/// Entries of a sparse tensor, each stored once.
#[derive(Clone, Debug)]
pub(crate) struct Fibres<T> {
    shape: Vec<usize>,
    leaf: usize,
    /// The other modes, in the order in which fibres are sorted: the largest first.
    stem: Vec<usize>,
    /// Coordinates of every fibre in the stem's modes.
    coordinates: Vec<u32>,
    /// End of every fibre's entries.
    ends: Vec<usize>,
    leaves: Vec<u32>,
    values: Vec<T>,
    /// Bounds of the segments, in fibres.
    segments: Vec<usize>,
}

/// How many distinct index tuples there are without mode `skip`: of many entries an estimate, by linear counting (Whang et al.
/// 1990), whose sketch takes no more than their hashes would.
fn distinct(indices: &[u32], order: usize, skip: usize) -> f64 {
    let hashes = indices.chunks_exact(order).map(|entry| {
        let mut hash = 0u64;
        for (_, &i) in entry.iter().enumerate().filter(|&(m, _)| m != skip) {
            hash = (hash ^ u64::from(i)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            hash ^= hash >> 29;
        }
        hash
    });
    if indices.len() / order <= (SKETCH / 64) as usize {
        let mut hashes: Vec<u64> = hashes.collect();
        hashes.sort_unstable();
        hashes.dedup();
        return hashes.len() as f64;
    }
    let mut bits = vec![0u64; (SKETCH / 64) as usize];
    for hash in hashes {
        let bit = hash % SKETCH;
        bits[(bit / 64) as usize] |= 1 << (bit % 64);
    }
    let set: u64 = bits.iter().map(|b| u64::from(b.count_ones())).sum();
    let free = (SKETCH - set).max(1) as f64 / SKETCH as f64;
    -free.ln() * SKETCH as f64
}

/// Reorders `permutation` stably by the coordinate of one mode.
fn counting_sort(
    permutation: &mut Vec<u32>,
    indices: &[u32],
    order: usize,
    mode: usize,
    size: usize,
) {
    let key = |&e: &u32| indices[e as usize * order + mode] as usize;
    let mut starts = vec![0usize; size + 1];
    permutation.iter().for_each(|e| starts[key(e) + 1] += 1);
    for i in 1..starts.len() {
        starts[i] += starts[i - 1];
    }
    let mut sorted = vec![0u32; permutation.len()];
    for e in permutation.iter() {
        let at = &mut starts[key(e)];
        sorted[*at] = *e;
        *at += 1;
    }
    *permutation = sorted;
}

impl<T: Real> Fibres<T> {
    /// Arranges checked entries by sorting a permutation of them, the leaf first and the root last.
    pub(crate) fn new(entries: Coordinates<T>, keep_zeros: bool) -> Self {
        let Coordinates {
            shape,
            indices,
            values,
        } = entries;
        let order = shape.len();
        let fibres = |m| match order {
            1 => 0.0,
            _ => distinct(&indices, order, m),
        };
        let fibres: Vec<f64> = (0..order).map(fibres).collect();
        let leaf = (0..order)
            .min_by(|&a, &b| fibres[a].total_cmp(&fibres[b]))
            .unwrap_or(0);
        let mut stem: Vec<usize> = (0..order).filter(|&m| m != leaf).collect();
        stem.sort_by_key(|&m| std::cmp::Reverse(shape[m]));

        let mut permutation: Vec<u32> = (0..values.len() as u32).collect();
        for &mode in std::iter::once(&leaf).chain(stem.iter().rev()) {
            counting_sort(&mut permutation, &indices, order, mode, shape[mode]);
        }
        let mut f = Self {
            shape,
            leaf,
            stem,
            coordinates: Vec::new(),
            ends: Vec::new(),
            leaves: Vec::with_capacity(values.len()),
            values: Vec::with_capacity(values.len()),
            segments: Vec::new(),
        };
        let mut fibre: Vec<u32> = Vec::new();
        for e in permutation {
            let index = &indices[e as usize * order..][..order];
            let value = values[e as usize];
            if !keep_zeros && value == T::zero() {
                continue;
            }
            let same =
                !f.values.is_empty() && f.stem.iter().zip(&fibre).all(|(&m, &i)| index[m] == i);
            if !same {
                if !f.values.is_empty() {
                    f.ends.push(f.values.len());
                }
                fibre.clear();
                fibre.extend(f.stem.iter().map(|&m| index[m]));
                f.coordinates.extend(&fibre);
            } else if f.leaves.last() == Some(&index[leaf]) {
                // Sorting was stable: duplicates are added in the order they came in.
                if let Some(last) = f.values.last_mut() {
                    *last += value;
                }
                continue;
            }
            f.leaves.push(index[leaf]);
            f.values.push(value);
        }
        if !f.values.is_empty() {
            f.ends.push(f.values.len());
        }
        f.segments = bounds(&f.ends, SEGMENTS);
        f
    }

    fn fibre(&self, at: usize) -> (&[u32], Range<usize>) {
        let n = self.stem.len();
        (
            &self.coordinates[at * n..][..n],
            if at == 0 { 0 } else { self.ends[at - 1] }..self.ends[at],
        )
    }

    /// Groups of fibres: as many segments as their accumulators may take memory.
    fn groups(&self, panels: &[Panel<'_, T>]) -> Vec<Range<usize>> {
        let root = self.stem.first().map_or(0, |&m| panels[m].values.len());
        let all: usize = panels.iter().map(|p| p.values.len()).sum();
        // The root's sums are disjoint but for the borders: every group holds only the rows it touches.
        let private = all - root;
        let rows = private / panels[0].stride;
        let affordable = |&groups: &usize| {
            let small = groups * private * size_of::<T>() <= SMALL;
            let worth = groups <= FEW || groups * rows * ENTRIES <= self.values.len();
            worth && (small || groups * private <= SHARE * all)
        };
        let sizes = [SEGMENTS, 32, FEW, 8, 4, 2];
        let groups = sizes.into_iter().find(affordable).unwrap_or(1);
        let starts = self.segments.iter().step_by(SEGMENTS / groups);
        let groups = starts.clone().zip(starts.skip(1));
        let groups = groups.map(|(&start, &end)| start..end);
        groups.filter(|group| !group.is_empty()).collect()
    }
}

impl<T: Real> Cells<T> for Fibres<T> {
    fn stored(&self) -> usize {
        self.values.len()
    }

    fn for_each(&self, visit: &mut dyn FnMut(&[usize], T)) {
        let mut index = vec![0; self.shape.len()];
        for at in 0..self.ends.len() {
            let (coordinates, entries) = self.fibre(at);
            for (&m, &i) in self.stem.iter().zip(coordinates) {
                index[m] = i as usize;
            }
            for e in entries {
                index[self.leaf] = self.leaves[e] as usize;
                visit(&index, self.values[e]);
            }
        }
    }
}

/// What one group of fibres adds up: all rows of a mode, or of the root a window of rows.
#[derive(Debug)]
pub struct Partial<T> {
    modes: Vec<(usize, Aligned<T>)>,
    ln_lik: f64,
}

/// One group of fibres and what it is to add up.
#[derive(Debug)]
pub struct GroupPass<'a, T> {
    fibres: &'a Fibres<T>,
    panels: &'a [Panel<'a, T>],
    range: Range<usize>,
    rule: Rule,
    wanted: &'a [bool],
}

impl<T: Real> WithSimd for GroupPass<'_, T> {
    type Output = Partial<T>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Partial<T> {
        macro_rules! by_vectors {
            ($($c:literal),*) => {
                match self.panels[0].stride / T::lanes::<S>() {
                    $($c => self.run::<S, $c>(simd),)*
                    _ => self.run_long(simd),
                }
            };
        }
        by_vectors!(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)
    }
}

impl<T: Real> GroupPass<'_, T> {
    /// Zeros for every wanted mode, with the first row that each holds.
    fn zeros(&self) -> Vec<(usize, Aligned<T>)> {
        let zeros = |m: usize| {
            let Panel {
                rows, stride, pool, ..
            } = self.panels[m];
            let root = |at: usize| self.fibres.fibre(at).0[0] as usize;
            let held = match self.fibres.stem.first() {
                _ if !self.wanted[m] => 0..0,
                Some(&first) if first == m => root(self.range.start)..root(self.range.end - 1) + 1,
                _ => 0..rows,
            };
            (held.start, pool.zeros(held.len() * stride))
        };
        (0..self.panels.len()).map(zeros).collect()
    }

    /// Rows of `C` registers.
    #[inline(always)]
    fn run<S: Simd, const C: usize>(self, simd: S) -> Partial<T> {
        let mut modes = self.zeros();
        let f = self.fibres;
        let (leaf, stem) = (f.leaf, &f.stem[..]);
        let mut leaf_sums = std::mem::replace(&mut modes[leaf].1, Aligned::none());
        let rows = |m: usize| T::vectors::<S>(&self.panels[m].values).0.as_chunks::<C>().0;
        let leaf_factor = rows(leaf);
        let leaf_wanted = self.wanted[leaf];
        let stem_wanted = stem.iter().any(|&m| self.wanted[m]);
        let rows: Vec<&[[T::Vector<S>; C]]> = stem.iter().map(|&m| rows(m)).collect();
        let mut ln_lik = CompensatedSum::default();
        let (one, zero) = (T::vsplat(simd, T::one()), T::vsplat(simd, T::zero()));
        let into_leaf = T::vectors_mut::<S>(&mut leaf_sums).0.as_chunks_mut::<C>().0;
        for at in self.range.clone() {
            let (coordinates, entries) = f.fibre(at);
            let mut u = [one; C];
            for (l, &i) in coordinates.iter().enumerate() {
                let row = &rows[l][i as usize];
                for c in 0..C {
                    u[c] = if l == 0 {
                        row[c]
                    } else {
                        T::vmul(simd, u[c], row[c])
                    };
                }
            }
            let mut g = [zero; C];
            for (&i, &value) in f.leaves[entries.clone()].iter().zip(&f.values[entries]) {
                let h = leaf_factor[i as usize];
                let q = match self.rule {
                    Rule::Unit => one,
                    Rule::Ratio { log } => {
                        let p = dot::<S, T>(simd, &u, &h);
                        ratio(simd, [value, p], log, &mut ln_lik)
                    }
                };
                add::<S, T>(simd, q, &h, &mut g);
                if leaf_wanted {
                    add::<S, T>(simd, q, &u, &mut into_leaf[i as usize]);
                }
            }
            if !stem_wanted {
                continue;
            }
            for (l, &m) in stem.iter().enumerate().filter(|&(_, &m)| self.wanted[m]) {
                let mut product = g;
                let others = coordinates.iter().enumerate();
                for (other, &i) in others.filter(|&(other, _)| other != l) {
                    let row = &rows[other][i as usize];
                    for c in 0..C {
                        product[c] = T::vmul(simd, product[c], row[c]);
                    }
                }
                let (first, sums) = &mut modes[m];
                let into = &mut T::vectors_mut::<S>(sums).0.as_chunks_mut::<C>().0
                    [coordinates[l] as usize - *first];
                for c in 0..C {
                    into[c] = T::vadd(simd, into[c], product[c]);
                }
            }
        }
        modes[leaf].1 = leaf_sums;
        Partial {
            modes,
            ln_lik: ln_lik.value(),
        }
    }

    /// Rows too long for the registers.
    #[inline(always)]
    fn run_long<S: Simd>(self, simd: S) -> Partial<T> {
        let mut modes = self.zeros();
        let f = self.fibres;
        let stride = self.panels[0].stride;
        let mut ln_lik = CompensatedSum::default();
        let one = T::vsplat(simd, T::one());
        let zeros = || self.panels[0].pool.zeros(stride);
        let (mut u, mut g, mut product) = (zeros(), zeros(), zeros());
        for at in self.range.clone() {
            let (coordinates, entries) = f.fibre(at);
            u.fill(T::one());
            for (&m, &i) in f.stem.iter().zip(coordinates) {
                u.iter_mut()
                    .zip(self.panels[m].row(i as usize))
                    .for_each(|(u, &x)| *u *= x);
            }
            g.fill(T::zero());
            for (&i, &value) in f.leaves[entries.clone()].iter().zip(&f.values[entries]) {
                let h = T::vectors::<S>(self.panels[f.leaf].row(i as usize)).0;
                let q = match self.rule {
                    Rule::Unit => one,
                    Rule::Ratio { log } => {
                        let mut dots = [T::vsplat(simd, T::zero()); 4];
                        for (c, (&u, &h)) in T::vectors::<S>(&u).0.iter().zip(h).enumerate() {
                            dots[c % 4] = T::vmul_add(simd, u, h, dots[c % 4]);
                        }
                        let [a, b, c, d] = dots;
                        let p = T::vsum(
                            simd,
                            T::vadd(simd, T::vadd(simd, a, b), T::vadd(simd, c, d)),
                        );
                        ratio(simd, [value, p], log, &mut ln_lik)
                    }
                };
                add::<S, T>(simd, q, h, T::vectors_mut::<S>(&mut g).0);
                if self.wanted[f.leaf] {
                    let into = &mut modes[f.leaf].1[i as usize * stride..][..stride];
                    let into = T::vectors_mut::<S>(into).0;
                    add::<S, T>(simd, q, T::vectors::<S>(&u).0, into);
                }
            }
            for (l, &m) in f.stem.iter().enumerate().filter(|&(_, &m)| self.wanted[m]) {
                product.copy_from_slice(&g);
                let others = coordinates.iter().enumerate();
                for (other, &i) in others.filter(|&(other, _)| other != l) {
                    let row = self.panels[f.stem[other]].row(i as usize);
                    product.iter_mut().zip(row).for_each(|(p, &x)| *p *= x);
                }
                let (first, sums) = &mut modes[m];
                let into = &mut sums[(coordinates[l] as usize - *first) * stride..][..stride];
                into.iter_mut()
                    .zip(product.iter())
                    .for_each(|(s, &p)| *s += p);
            }
        }
        Partial {
            modes,
            ln_lik: ln_lik.value(),
        }
    }
}

/// Adds `values`, which begin at place `first`, to `out`, which begins at place `at`, where they overlap.
fn add_overlap<T: Real>(out: &mut [T], at: usize, values: &[T], first: usize) {
    let begin = at.max(first);
    let end = (at + out.len()).min(first + values.len());
    if begin < end {
        let values = &values[begin - first..end - first];
        let out = &mut out[begin - at..end - at];
        wide(|| out.iter_mut().zip(values).for_each(|(s, &x)| *s += x));
    }
}

impl<T: Real> Accumulate<T> for Fibres<T> {
    fn accumulate(&self, panels: &[Panel<'_, T>], rule: Rule, wanted: &[bool]) -> Sums<T> {
        let stride = panels[0].stride;
        let partials = map_in_order(self.groups(panels), |range| {
            T::fibre_group(GroupPass {
                fibres: self,
                panels,
                range,
                rule,
                wanted,
            })
        });
        let modes = (0..panels.len()).map(|m| {
            let mut sums = panels[m].room(wanted[m]);
            let size = part_rows(1);
            for_each_part(&mut sums, size, |part, out| {
                out.fill(T::zero());
                // In order: the bits do not depend on the number of threads.
                for (first, values) in partials.iter().map(|p| &p.modes[m]) {
                    add_overlap(out, part * size, values, first * stride);
                }
            });
            sums
        });
        let modes = modes.collect();
        let ln_lik: CompensatedSum = partials.iter().map(|p| p.ln_lik).collect();
        Sums {
            modes,
            ln_lik: ln_lik.value(),
        }
    }
}
