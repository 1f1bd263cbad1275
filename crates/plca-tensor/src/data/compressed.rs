//! Compressed sparse matrices of other programs, read where they lie.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::pass::Stored;
use super::sparse::summary;
use super::{Block, Data, Expected, ListedView, Mask, Request, Summary, check_shape, data_scale};
use crate::kernel::aligned::Pool;
use crate::kernel::coordinate::Lender;
use crate::kernel::panel::Panel;
use crate::kernel::strata::grid::Grid;
use crate::kernel::strata::{Entries, Strata, TilePass, grid_of, merge};
use crate::kernel::{Accumulate, Cells, Rule, Sums};
use crate::simplex::largest;
use crate::{CompensatedSum, Cp, DataError, Real};

/// A compressed matrix as another program holds it, checked, with the power of two that its values are multiplied by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Runs<'a, T, P, I> {
    shape: [usize; 2],
    outer: usize,
    ends: &'a [P],
    indices: &'a [I],
    values: &'a [T],
    pub(super) scale: T,
}

/// Index and value of an entry.
type Cell = (Vec<usize>, f64);

/// A checked whole number.
fn whole<I: Copy + TryInto<usize>>(x: I) -> usize {
    x.try_into().unwrap_or(usize::MAX)
}

impl<'a, T: Real, P: Copy + TryInto<usize>, I: Copy + TryInto<usize>> Runs<'a, T, P, I> {
    /// Checked arrays, and the first negative entry.
    pub(super) fn new(
        shape: [usize; 2],
        outer: usize,
        ends: &'a [P],
        indices: &'a [I],
        values: &'a [T],
    ) -> Result<(Self, Option<Cell>), DataError> {
        let mut runs = Self {
            shape,
            outer,
            ends,
            indices,
            values,
            scale: T::one(),
        };
        runs.check()?;
        if let Some((index, value)) = runs.first(|x| !x.is_finite()) {
            return Err(DataError::NotFinite { index, value });
        }
        let negative = runs.first(|&x| x < T::zero());
        runs.scale = data_scale(largest(values));
        Ok((runs, negative))
    }

    /// Refuses runs that do not follow one on the other, and indices outside the shape.
    fn check(&self) -> Result<(), DataError> {
        let (shape, stored) = (&self.shape[..], self.indices.len());
        check_shape(shape)?;
        if self.outer > 1 {
            return Err(DataError::Outer { outer: self.outer });
        }
        if self.values.len() != stored {
            let (shape, got) = (shape.to_vec(), self.values.len());
            return Err(DataError::Length {
                expected: stored,
                got,
                shape,
            });
        }
        if stored > u32::MAX as usize {
            return Err(DataError::too_large(shape));
        }
        let runs = self.shape[self.outer];
        let first = self.ends.first().map(|&end| whole(end));
        let last = self.ends.last().map(|&end| whole(end));
        if self.ends.len() != runs + 1 || first != Some(0) || last != Some(stored) {
            return Err(DataError::Runs { run: runs, stored });
        }
        let falls = |w: &[P]| whole(w[0]) > whole(w[1]);
        if let Some(run) = self.ends.windows(2).position(falls) {
            return Err(DataError::Runs { run, stored });
        }
        let (mode, size) = (1 - self.outer, self.shape[1 - self.outer]);
        let outside = self.indices.iter().position(|&i| whole(i) >= size);
        match outside {
            None => Ok(()),
            Some(position) if self.indices[position].try_into().is_err() => {
                Err(DataError::NoIndex {
                    position,
                    mode,
                    size,
                })
            }
            Some(position) => Err(DataError::OutOfRange {
                position,
                mode,
                index: whole(self.indices[position]),
                size,
            }),
        }
    }

    /// Index and value, as it was given, of the first entry that is bad.
    fn first(&self, bad: impl Fn(&T) -> bool) -> Option<Cell> {
        let at = self.values.iter().position(bad)?;
        let run = self.ends.partition_point(|&end| whole(end) <= at) - 1;
        let mut index = vec![run, whole(self.indices[at])];
        index.rotate_left(self.outer);
        Some((index, self.values[at].to_f64()))
    }

    /// Places in the order of the indices in every run, those of a cell in the order given; `None` where they lie so.
    fn sorted(&self) -> Option<Vec<u32>> {
        let runs = || {
            self.ends
                .windows(2)
                .map(|ends| whole(ends[0])..whole(ends[1]))
        };
        if runs().all(|run| self.indices[run].is_sorted_by_key(|&i| whole(i))) {
            return None;
        }
        let mut places: Vec<u32> = (0..self.indices.len() as u32).collect();
        for run in runs() {
            places[run].sort_by_key(|&at| whole(self.indices[at as usize]));
        }
        Some(places)
    }
}

impl<T: Real, P: Copy + TryInto<usize>, I: Copy + TryInto<usize>> Entries<T> for Runs<'_, T, P, I> {
    fn shape(&self) -> [usize; 2] {
        self.shape
    }

    fn stored(&self) -> usize {
        self.values.len()
    }

    fn for_each(&self, mut visit: impl FnMut([usize; 2], T)) {
        for (run, ends) in self.ends.windows(2).enumerate() {
            let run_of = whole(ends[0])..whole(ends[1]);
            let entries = self.indices[run_of.clone()].iter();
            for (&inner, &value) in entries.zip(&self.values[run_of]) {
                let inner = whole(inner);
                let index = if self.outer == 0 {
                    [run, inner]
                } else {
                    [inner, run]
                };
                visit(index, value * self.scale);
            }
        }
    }
}

/// A sparse matrix whose rows are compressed (CSR), or whose columns are (CSC), over the arrays of another program.
///
/// It is a [`SparseTensor`](crate::SparseTensor) of the same entries, bit for bit. What it holds of its own depends on what is done with it,
/// in bytes for every entry of `f64`:
///
/// | | compressed mode is the longer one | it is the shorter one |
/// |---|---|---|
/// | E-steps | 12: a copy arranged for passes, made by the first | the same, made at once |
/// | [`Rows`](crate::arrange::Rows) of both modes | 12: a copy of the other mode's rows, theirs | none besides |
/// | runs whose indices are not sorted | 4 | 4 |
///
/// Once rows were asked for, passes are taken to be few, and a longer mode is no longer arranged for them: an E-step then reads it piece
/// by piece. A matrix in need of many fast passes after that is best made anew.
///
/// ```
/// use plca_tensor::{Compressed, Coordinates, Data, SparseTensor};
/// let (ends, indices, values) = ([0i32, 2, 3], [0i32, 2, 1], [1.0, 2.0, 3.0]);
/// let v = Compressed::new([2, 3], 0, &ends, &indices, &values)?;
/// let c = Coordinates { shape: vec![2, 3], indices: vec![0, 0,  0, 2,  1, 1], values: vec![1.0, 2.0, 3.0] };
/// assert_eq!(v.summary(), SparseTensor::new(c)?.summary());
/// # Ok::<(), plca_tensor::DataError>(())
/// ```
#[derive(Debug)]
pub struct Compressed<'a, T, P, I> {
    runs: Runs<'a, T, P, I>,
    grid: Grid,
    /// Where the entries of every run lie in the order of their indices, unless they lie so themselves.
    sorted: Option<Vec<u32>>,
    arranged: OnceLock<Strata<T>>,
    /// Whether rows were asked for.
    by_rows: AtomicBool,
    summary: Summary,
    pool: Pool<T>,
}

/// Entries that are read at a time: they stay in the second-level cache.
const BATCH: usize = 1 << 12;

impl<'a, T: Real, P, I> Compressed<'a, T, P, I>
where
    P: Copy + Debug + Sync + TryInto<usize>,
    I: Copy + Debug + Sync + TryInto<usize>,
{
    /// A matrix over its arrays: the entries of run `i`, row or column `i`, are those from `ends[i]` to `ends[i + 1]`, each with its index in
    /// the other mode. `outer` is the compressed mode, 0 for CSR and 1 for CSC. Entries of a run may come in any order, and several of a cell
    /// are summed. Cost: some passes over the entries.
    ///
    /// # Errors
    ///
    /// As [`SparseTensor::from_compressed`](crate::SparseTensor::from_compressed).
    pub fn new(
        shape: [usize; 2],
        outer: usize,
        ends: &'a [P],
        indices: &'a [I],
        values: &'a [T],
    ) -> Result<Self, DataError> {
        let (runs, negative) = Runs::new(shape, outer, ends, indices, values)?;
        let mut matrix = Self {
            grid: grid_of(&runs),
            sorted: runs.sorted(),
            runs,
            arranged: OnceLock::new(),
            by_rows: AtomicBool::new(false),
            summary: Summary::of(Mask::Complete, |_| Ok(()))?,
            pool: Pool::default(),
        };
        if matrix.grid.outer != outer {
            matrix.arrange();
        }
        let scale = matrix.runs.scale;
        let visit = |each: &mut dyn FnMut(&[usize], T)| matrix.visit_held(each);
        matrix.summary = summary(visit, scale, negative, Mask::Complete)?;
        Ok(matrix)
    }

    /// The copy that passes are fast on.
    fn arrange(&self) -> &Strata<T> {
        if self.arranged.get().is_none() {
            // Not under a lock: a thread that waits for a part of this work may come here again.
            let arranged = Strata::new(self.runs, self.grid.clone(), false);
            let _ = self.arranged.set(arranged);
        }
        self.arranged.wait()
    }

    /// The entries of a run with indices in this range, counted from its start, as [`merge`] leaves them.
    fn piece(&self, run: usize, columns: &Range<usize>, into: &mut Vec<(u32, T)>) {
        let Runs {
            ends,
            indices,
            values,
            scale,
            ..
        } = self.runs;
        let place = |at: usize| {
            self.sorted
                .as_ref()
                .map_or(at, |sorted| sorted[at] as usize)
        };
        let index = |at: usize| whole(indices[place(at)]);
        let bound = |from: usize, column: usize| {
            let (mut low, mut high) = (from, whole(ends[run + 1]));
            while low < high {
                let middle = low.midpoint(high);
                match index(middle) < column {
                    true => low = middle + 1,
                    false => high = middle,
                }
            }
            low
        };
        let first = match columns.start {
            0 => whole(ends[run]),
            start => bound(whole(ends[run]), start),
        };
        let last = match columns.end == self.runs.shape[1 - self.runs.outer] {
            true => whole(ends[run + 1]),
            false => bound(first, columns.end),
        };
        into.clear();
        into.extend((first..last).map(|at| {
            let column = index(at) - columns.start;
            (column as u32, values[place(at)] * scale)
        }));
        let kept = merge(into, false);
        into.truncate(kept);
    }

    /// Every entry as it is held, in the order of arranged ones.
    fn visit_held(&self, visit: &mut dyn FnMut(&[usize], T)) {
        if let Some(arranged) = self.arranged.get() {
            return arranged.for_each(visit);
        }
        let [row_groups, groups] = self.grid.groups();
        let mut entries = Vec::new();
        for tile in 0..row_groups * groups {
            let (rows, columns) = (
                self.grid.rows(tile / groups),
                self.grid.columns(tile % groups),
            );
            let place = self.grid.place(tile);
            for run in rows.clone() {
                self.piece(run, &columns, &mut entries);
                for &(column, value) in &entries {
                    visit(&place((run - rows.start) as u32, column), value);
                }
            }
        }
    }
}

/// A pass over entries that are not arranged, which has the bits of one over those that are.
impl<T: Real, P, I> Accumulate<T> for Compressed<'_, T, P, I>
where
    P: Copy + Debug + Sync + TryInto<usize>,
    I: Copy + Debug + Sync + TryInto<usize>,
{
    fn accumulate(&self, panels: &[Panel<'_, T>], rule: Rule, wanted: &[bool]) -> Sums<T> {
        let [_, groups] = self.grid.groups();
        self.grid.accumulate(panels, wanted, |mut share| {
            let rows = self.grid.rows(share.tile / groups);
            let columns = self.grid.columns(share.tile % groups);
            let (mut block, mut entries) = (Block::default(), Vec::new());
            let mut ln_lik = CompensatedSum::default();
            for run in rows.clone() {
                self.piece(run, &columns, &mut entries);
                block.push_row((run - rows.start) as u32, &mut entries);
                if block.values.len() >= BATCH {
                    let pass = TilePass::new(block.tile(), &mut share, rule, ln_lik);
                    ln_lik = T::strata_tile(pass);
                    block.clear();
                }
            }
            // If there was nothing, the sums are still to be zeroed.
            let pass = TilePass::new(block.tile(), &mut share, rule, ln_lik);
            T::strata_tile(pass).value()
        })
    }
}

impl<T: Real, P, I> Lender<T> for Compressed<'_, T, P, I>
where
    P: Copy + Debug + Sync + TryInto<usize>,
    I: Copy + Debug + Sync + TryInto<usize>,
{
    fn lend(&self, rows: Range<usize>, indices: &mut Vec<u32>, values: &mut Vec<T>) {
        let (columns, mut entries) = (0..self.runs.shape[1 - self.runs.outer], Vec::new());
        for run in rows {
            self.piece(run, &columns, &mut entries);
            for &(column, value) in entries.iter().filter(|(_, x)| *x != T::zero()) {
                indices.push(column);
                values.push(value);
            }
        }
    }
}

impl<T: Real, P, I> Data<T> for Compressed<'_, T, P, I>
where
    P: Copy + Debug + Send + Sync + TryInto<usize>,
    I: Copy + Debug + Send + Sync + TryInto<usize>,
{
    fn shape(&self) -> &[usize] {
        &self.runs.shape
    }

    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn visit(&self, each: &mut dyn FnMut(&[usize], f64)) -> Result<(), DataError> {
        let scale = self.runs.scale.to_f64();
        self.visit_held(&mut |index, x| {
            if x != T::zero() {
                each(index, x.to_f64() / scale);
            }
        });
        Ok(())
    }

    fn listed(&self, mode: usize) -> Option<ListedView<'_, T>> {
        self.by_rows.store(true, Ordering::Relaxed);
        let rows: &dyn Lender<T> = match self.arranged.get() {
            _ if mode == self.runs.outer => self,
            Some(arranged) if mode == self.grid.outer => arranged,
            _ => return None,
        };
        let scale = self.runs.scale;
        Some(ListedView { rows, scale })
    }

    fn e_step(
        &self,
        model: &Cp<'_, T>,
        request: &Request<'_, T>,
    ) -> Result<Expected<T>, DataError> {
        let cells: &dyn Accumulate<T> = match self.arranged.get() {
            None if self.by_rows.load(Ordering::Relaxed) => self,
            _ => self.arrange(),
        };
        let stored = Stored {
            cells,
            scale: self.runs.scale,
            pool: &self.pool,
            sparing: false,
        };
        stored.e_step(self, model, request, |_, modes| model.exposures(modes))
    }
}

#[cfg(test)]
mod tests {
    use nalgebra::DMatrix;

    use super::*;
    use crate::{Factor, Modes};

    #[test]
    fn a_matrix_is_arranged_for_passes_unless_rows_were_asked_for() {
        let step = |data: &Compressed<'_, f64, u32, u32>| {
            let ones = [3, 2].map(|n| DMatrix::from_element(n, 1, 1.0));
            let factors = [0, 1].map(|j| Factor::Columns(&ones[j]));
            let weights = None;
            let factors = &factors;
            let e = data.e_step(&Cp { weights, factors }, &Request::counts(Modes::all(2)));
            assert_eq!(e.unwrap().counts(1).as_slice(), [4.0, 2.0]);
        };
        let (ends, indices, values) = ([0, 2, 2, 3], [1, 0, 0], [2.0, 1.0, 3.0]);
        let new = || Compressed::new([3, 2], 0, &ends, &indices, &values).unwrap();
        let passes = new();
        assert!(passes.arranged.get().is_none());
        step(&passes);
        assert!(passes.arranged.get().is_some());
        let rows = new();
        assert!(rows.listed(0).is_some() && rows.listed(1).is_none());
        step(&rows);
        assert!(rows.arranged.get().is_none());
        // Of the shorter mode it is at once, and both modes' rows can be read.
        let shorter = Compressed::new([2, 3], 0, &[0u32, 2, 3], &[2u32, 0, 1], &values).unwrap();
        assert!(shorter.arranged.get().is_some());
        assert!(shorter.listed(0).is_some() && shorter.listed(1).is_some());
    }
}
