//! Matricised sparse data times a Khatri-Rao product: every mode has its own copy of the entries, sorted by it.
//!
//! A row of the result belongs to one task, so nothing is added up across tasks and threads change no bit. Within a row,
//! entries that differ in the last mode alone share the product of the other factors: about `2K` operations for an entry and `K`
//! for a fibre and mode. Memory: `4 (N - 1)` bytes and one value for an entry and mode.

use std::ops::Range;

use super::bounds;
use super::mttkrp::Fill;
use super::panel::Panel;
use crate::parallel::{map_in_order, wide};
use crate::sum::CompensatedSum;
use crate::{Coordinates, Real};

/// Tasks that the rows of a mode are cut into, where there are enough entries.
const TASKS: usize = 32;
/// Fewer entries than this are one task.
const SMALL: usize = 4096;

/// The entries sorted by one mode.
#[derive(Clone, Debug)]
struct ByMode<T> {
    /// The other modes; entries of a row are sorted by them in this order.
    others: Vec<usize>,
    /// Ends of the rows.
    ends: Vec<usize>,
    /// One number per entry and other mode.
    coordinates: Vec<u32>,
    values: Vec<T>,
    /// Bounds of the tasks, in rows.
    tasks: Vec<usize>,
}

/// Entries of a sparse tensor, once for every mode.
#[derive(Clone, Debug)]
pub(crate) struct Sorted<T> {
    modes: Vec<ByMode<T>>,
}

impl<T: Real> Sorted<T> {
    /// Sorts checked entries; duplicates are summed.
    pub(crate) fn new(entries: &Coordinates<T>, keep_zeros: bool) -> Self {
        let order = entries.shape.len();
        let modes = (0..order)
            .map(|mode| ByMode::new(entries, mode, keep_zeros))
            .collect();
        Self { modes }
    }

    /// Values, duplicates merged, in a fixed order.
    pub(crate) fn values(&self) -> &[T] {
        &self.modes[0].values
    }

    /// Visits every entry, by the first mode's rows.
    pub(crate) fn for_each(&self, visit: &mut dyn FnMut(&[usize], T)) {
        let by = &self.modes[0];
        let mut index = vec![0; self.modes.len()];
        let mut first = 0;
        for (row, &end) in by.ends.iter().enumerate() {
            index[0] = row;
            for e in first..end {
                let coordinates = &by.coordinates[e * by.others.len()..][..by.others.len()];
                for (&m, &i) in by.others.iter().zip(coordinates) {
                    index[m] = i as usize;
                }
                visit(&index, by.values[e]);
            }
            first = end;
        }
    }

    /// `rows x stride` of one mode, and the sum of squares of what the entries contributed.
    pub(crate) fn contract(
        &self,
        panels: &[Panel<'_, T>],
        mode: usize,
        fill: Fill<'_, T>,
    ) -> (Vec<T>, f64) {
        let by = &self.modes[mode];
        let stride = panels[0].stride;
        let tasks: Vec<Range<usize>> = by.tasks.windows(2).map(|w| w[0]..w[1]).collect();
        let parts = map_in_order(tasks, |rows| {
            wide(|| by.rows(panels, mode, fill, rows.clone()))
        });
        let mut out = vec![T::zero(); by.ends.len() * stride];
        let mut squares = CompensatedSum::default();
        let mut at = 0;
        for (sums, part) in &parts {
            out[at..at + sums.len()].copy_from_slice(sums);
            at += sums.len();
            squares += *part;
        }
        (out, squares.value())
    }
}

impl<T: Real> ByMode<T> {
    fn new(entries: &Coordinates<T>, mode: usize, keep_zeros: bool) -> Self {
        let (shape, order) = (&entries.shape, entries.shape.len());
        let mut others: Vec<usize> = (0..order).filter(|&m| m != mode).collect();
        others.sort_by_key(|&m| shape[m]);
        let index = |e: u32| &entries.indices[e as usize * order..][..order];
        let mut sorted: Vec<u32> = (0..entries.values.len() as u32).collect();
        let modes: Vec<usize> = std::iter::once(mode)
            .chain(others.iter().copied())
            .collect();
        sorted.sort_by(|&a, &b| {
            let (a, b) = (index(a), index(b));
            modes.iter().map(|&m| a[m]).cmp(modes.iter().map(|&m| b[m]))
        });
        let mut by = Self {
            others,
            ends: vec![0; shape[mode]],
            coordinates: Vec::with_capacity(sorted.len() * (order - 1)),
            values: Vec::with_capacity(sorted.len()),
            tasks: Vec::new(),
        };
        let mut last: Option<u32> = None;
        for e in sorted {
            let value = entries.values[e as usize];
            // Stable: duplicates are added in the order they came in.
            if last.is_some_and(|last| index(last) == index(e)) {
                if let Some(x) = by.values.last_mut() {
                    *x += value;
                }
                continue;
            }
            if value == T::zero() && !keep_zeros {
                continue;
            }
            last = Some(e);
            by.coordinates
                .extend(by.others.iter().map(|&m| index(e)[m]));
            by.values.push(value);
            by.ends[index(e)[mode] as usize] = by.values.len();
        }
        let mut end = 0;
        for e in &mut by.ends {
            end = end.max(*e);
            *e = end;
        }
        let tasks = if by.values.len() < SMALL { 1 } else { TASKS };
        by.tasks = bounds(&by.ends, tasks);
        by
    }

    /// The rows of one task, `stride` values each.
    #[inline(always)]
    fn rows(
        &self,
        panels: &[Panel<'_, T>],
        mode: usize,
        fill: Fill<'_, T>,
        rows: Range<usize>,
    ) -> (Vec<T>, f64) {
        let stride = panels[0].stride;
        let n = self.others.len();
        let (stem, leaf) = match self.others.split_last() {
            Some((&leaf, stem)) => (stem, Some(&panels[leaf].values[..])),
            None => (&[][..], None),
        };
        let ones = vec![T::one(); stride];
        let mut out = vec![T::zero(); rows.len() * stride];
        let (mut product, mut sum) = (vec![T::one(); stride], vec![T::zero(); stride]);
        let mut own = vec![T::zero(); stride];
        let mut squares = CompensatedSum::default();
        let mut first = rows.start.checked_sub(1).map_or(0, |row| self.ends[row]);
        for (row, out) in rows.zip(out.chunks_exact_mut(stride)) {
            let end = self.ends[row];
            while first < end {
                let at = |e: usize| &self.coordinates[e * n..][..n];
                let fibre = &at(first)[..stem.len()];
                let last = (first..end)
                    .find(|&e| &at(e)[..stem.len()] != fibre)
                    .unwrap_or(end);
                product.fill(T::one());
                for (&m, &i) in stem.iter().zip(fibre) {
                    let factor = panels[m].row(i as usize);
                    product.iter_mut().zip(factor).for_each(|(p, &f)| *p *= f);
                }
                if let Fill::Residual { weights, .. } = fill {
                    let factor = panels[mode].row(row);
                    for (((x, &w), &f), &p) in own.iter_mut().zip(weights).zip(factor).zip(&product)
                    {
                        *x = w * f * p;
                    }
                }
                sum.fill(T::zero());
                for e in first..last {
                    let h = match leaf {
                        Some(rows) => &rows[at(e)[n - 1] as usize * stride..][..stride],
                        None => &ones,
                    };
                    let mut q = self.values[e];
                    if let Fill::Residual { scale, .. } = fill {
                        q = scale * q - dot(&own, h);
                        squares += q.to_f64() * q.to_f64();
                    }
                    sum.iter_mut().zip(h).for_each(|(s, &h)| *s += q * h);
                }
                for ((o, &s), &p) in out.iter_mut().zip(&sum).zip(&product) {
                    *o += s * p;
                }
                first = last;
            }
        }
        (out, squares.value())
    }
}

/// `Σ a b` in eight interleaved parts.
#[inline(always)]
fn dot<T: Real>(a: &[T], b: &[T]) -> T {
    let (a_chunks, a_rest) = a.as_chunks::<8>();
    let (b_chunks, b_rest) = b.as_chunks::<8>();
    let mut parts = [T::zero(); 8];
    for (a, b) in a_chunks.iter().zip(b_chunks) {
        for (part, (&a, &b)) in parts.iter_mut().zip(a.iter().zip(b)) {
            *part += a * b;
        }
    }
    let rest = a_rest.iter().zip(b_rest).map(|(&a, &b)| a * b);
    parts
        .iter()
        .copied()
        .chain(rest)
        .fold(T::zero(), |a, x| a + x)
}
