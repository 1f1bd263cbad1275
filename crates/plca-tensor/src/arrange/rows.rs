//! Data as independent problems, one for every index of a mode.

use nalgebra::DMatrix;

use crate::kernel::aligned::{Aligned, Pool};
use crate::kernel::coordinate::{Entries, Full, Lent, Listed, RowGroup, gather};
use crate::kernel::dense_rows::DenseRows;
use crate::kernel::panel::unit_exponent;
use crate::kernel::panel::{Panel, pow2};
use crate::kernel::solve::{RowEnd, SolveGroup, Until};
use crate::kernel::{lanes, split};
use crate::parallel::{self, map_in_order};
use crate::{CompensatedSum, Data, DataError, Factor, Modes, Real, check_counts};

/// Groups of rows at most; the sum over the data adds up group by group.
const GROUPS: usize = 64;
/// Entries that are worth a group of their own.
const GROUP: usize = 1 << 12;
/// ModeRows from which on a group has whole pairs of them, which are solved in less time than two alone; of fewer the threads need every one.
const PAIRED: usize = 2 * GROUPS;

/// Data arranged row by row for every mode, so that one factor can be improved while the others stay: the rows of that factor are
/// then problems of `K` numbers each that know nothing of each other.
///
/// ```math
/// \text{minimise over } w \ge 0 \text{:}
/// \quad \sum_k s_k w_k - \sum_j v_j \ln \sum_k w_k U[j,k] - \sum_k c_k \ln w_k
/// ```
///
/// `v` are the row's data, `U` the products of the other factors' rows, `s` their sums over the row's observed cells and `c >= 0`
/// pseudo-counts.
///
/// Memory: rows are read where they lie in dense matrices of which more than a sixteenth is positive, and in the mode of sparse matrices that is
/// [listed](Data::listed). Otherwise there is a copy of the positive cells for every arranged mode, as a matrix where most cells are
/// positive. While it works it takes for every thread `K` numbers for every entry of the longest row, once for all threads where most cells
/// are positive, and up to an eighth of dense data for all threads.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_tensor::{DenseTensor, Factor, Modes, Order, RowTerms, arrange::Rows};
/// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 4.0], Order::RowMajor)?;
/// let rows = Rows::new(&v, Modes::one(0))?;
/// let (w, h) = (dmatrix![0.3; 0.2], dmatrix![0.25; 0.75]);
/// // One component: the row of a factor is the row's share of the data, whatever it was.
/// let mut block = w.transpose();
/// let terms = RowTerms { linear: &dmatrix![1.0], pseudo: None };
/// rows.improve(0, &[Factor::Columns(&w), Factor::Columns(&h)], terms, &mut block, 1, false);
/// assert_eq!(block, dmatrix![0.5, 0.5]);
/// # Ok::<(), plca_tensor::DataError>(())
/// ```
#[derive(Debug)]
pub struct Rows<'a, T> {
    shape: Vec<usize>,
    total: f64,
    /// Sums over the rows of every mode.
    totals: Vec<Vec<f64>>,
    modes: Vec<Option<ModeRows<'a, T>>>,
    pool: Pool<T>,
}

/// The terms that every row has besides its data.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_tensor::RowTerms;
/// // Two components, both factors with columns that sum to 1, no prior.
/// let terms = RowTerms { linear: &dmatrix![1.0; 1.0], pseudo: None };
/// # let _: RowTerms<'_, f64> = terms;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct RowTerms<'a, T> {
    /// The linear terms, `s`: `K x 1` for all rows, or `K x I`.
    pub linear: &'a DMatrix<T>,
    /// The pseudo-counts, `c`, in the unit of the data: `K x I`.
    pub pseudo: Option<&'a DMatrix<f64>>,
}

/// The rows of one mode.
#[derive(Debug)]
struct ModeRows<'a, T> {
    entries: Entries<'a, T>,
    /// Every row is stored times the power of two that brings its sum into `[1, 2)`.
    exponents: Vec<i32>,
    bounds: Vec<usize>,
    longest: usize,
}

/// Cuts rows into consecutive groups of about equal numbers of entries; returns the bounds.
fn cut(lengths: impl Iterator<Item = usize> + Clone) -> Vec<usize> {
    let entries: usize = lengths.clone().sum();
    let groups = (entries / GROUP).clamp(1, GROUPS);
    let (mut bounds, mut seen, mut rows) = (vec![0], 0, 0);
    for length in lengths {
        seen += length;
        rows += 1;
        if seen * groups >= entries * bounds.len() && bounds.len() < groups {
            bounds.push(rows);
        }
    }
    bounds.push(rows);
    bounds
}

/// Dense data with at most one positive cell in this number of cells are copied: searching for the cells costs more than the work on them.
const RARE: usize = 16;
/// Rows that are read together where their cells lie side by side: what two lines of the cache hold.
const TOGETHER: usize = 16;
/// All threads together read this share of dense data at a time, or two rows each.
const SHARE: usize = 8;

impl<'a, T: Real> ModeRows<'a, T> {
    fn new(
        data: &'a dyn Data<T>,
        mode: usize,
        counts: &[usize],
        totals: &[f64],
    ) -> Result<Self, DataError> {
        let shape = data.shape();
        let positive: usize = counts.iter().sum();
        let rest = (shape.iter().enumerate()).filter(|&(m, _)| m != mode);
        let row = rest
            .clone()
            .try_fold(1usize, |n, (_, &size)| n.checked_mul(size));
        let exponent = |&v: &f64| if v > 0.0 { unit_exponent(v) } else { 0 };
        let exponents: Vec<i32> = totals.iter().map(exponent).collect();
        let scales: Vec<f64> = exponents.iter().map(|&e| pow2(e)).collect();
        let scaled = |i: usize, x: f64| T::lit(x * scales[i]);
        let (entries, bounds, longest);
        // Cells of a row of a tensor lie in many places: every pass would search for them again.
        let dense = data.dense().filter(|_| shape.len() == 2);
        match row {
            // Zeros cost less than a list where most cells are positive.
            Some(row) if 2 * positive > row.saturating_mul(shape[mode]) => {
                let (stride, rows) = (lanes::stride::<T>(row), shape[mode]);
                let cells = if let Some(dense) = dense {
                    let lent = DenseRows::new(dense.grid, mode);
                    let together = match lent.are_interleaved() {
                        true => (rows / (SHARE * parallel::threads())).clamp(2, TOGETHER),
                        false => 2,
                    };
                    Full::Lent {
                        lender: Lent::Dense(lent),
                        scale: dense.scale.to_f64(),
                        together: together.next_multiple_of(2),
                    }
                } else if let Some(listed) = data.listed(mode) {
                    Full::Lent {
                        lender: Lent::Sparse(listed.rows),
                        scale: listed.scale.to_f64(),
                        together: 2,
                    }
                } else {
                    let mut values = vec![T::zero(); stride * rows];
                    let (mut steps, mut step) = (vec![0; shape.len()], 1);
                    for (m, &size) in rest.rev() {
                        steps[m] = step;
                        step *= size;
                    }
                    steps[mode] = stride;
                    data.visit(&mut |index, x| {
                        let at: usize = index.iter().zip(&steps).map(|(i, n)| i * n).sum();
                        values[at] = scaled(index[mode], x);
                    })?;
                    Full::Copied(values)
                };
                let together = if rows < PAIRED { 1 } else { 2 };
                let groups = cut((0..rows.div_ceil(together)).map(|_| together * row));
                bounds = groups.iter().map(|b| (together * b).min(rows)).collect();
                longest = stride;
                entries = Entries::Full { stride, cells };
            }
            _ => {
                let others = shape.len() - 1;
                let mut starts = vec![0; counts.len() + 1];
                for (i, &n) in counts.iter().enumerate() {
                    starts[i + 1] = starts[i] + n;
                }
                let all = row.map_or(usize::MAX, |row| row.saturating_mul(shape[mode]));
                let cells = if let Some(dense) = dense.filter(|_| positive > all / RARE) {
                    Listed::Lent {
                        lender: Lent::Dense(DenseRows::new(dense.grid, mode)),
                        scale: dense.scale.to_f64(),
                    }
                } else if let Some(listed) = data.listed(mode) {
                    Listed::Lent {
                        lender: Lent::Sparse(listed.rows),
                        scale: listed.scale.to_f64(),
                    }
                } else {
                    let mut next = starts.clone();
                    let mut indices = vec![0u32; positive * others];
                    let mut values = vec![T::zero(); positive];
                    data.visit(&mut |index, x| {
                        let i = index[mode];
                        let at = next[i];
                        next[i] += 1;
                        values[at] = scaled(i, x);
                        let own = indices[at * others..].iter_mut();
                        own.zip(rest.clone())
                            .for_each(|(j, (m, _))| *j = index[m] as u32);
                    })?;
                    Listed::Copied { indices, values }
                };
                bounds = cut(counts.iter().copied());
                longest = counts.iter().copied().max().unwrap_or(0);
                entries = Entries::Listed { starts, cells };
            }
        }
        Ok(Self {
            entries,
            exponents,
            bounds,
            longest,
        })
    }
}

impl<'a, T: Real> Rows<'a, T> {
    /// Arranges data for these modes, several at the same time. Account for hidden cells through [`RowTerms::linear`].
    ///
    /// # Errors
    ///
    /// As [`check_counts`] and [`Data::visit`].
    pub fn new(data: &'a dyn Data<T>, modes: Modes) -> Result<Self, DataError> {
        check_counts(data)?;
        let shape = data.shape().to_vec();
        let mut counts: Vec<Vec<usize>> = shape.iter().map(|&n| vec![0; n]).collect();
        let zeros = |&n: &usize| vec![CompensatedSum::default(); n];
        let mut totals: Vec<_> = shape.iter().map(zeros).collect();
        data.visit(&mut |index, x| {
            for (m, &i) in index.iter().enumerate() {
                counts[m][i] += 1;
                totals[m][i] += x;
            }
        })?;
        let value = |sums: Vec<CompensatedSum>| sums.into_iter().map(|s| s.value()).collect();
        let totals: Vec<Vec<f64>> = totals.into_iter().map(value).collect();
        let all = (0..shape.len()).collect();
        let modes = map_in_order(all, |m: usize| {
            let rows = || ModeRows::new(data, m, &counts[m], &totals[m]);
            modes.contains(m).then(rows).transpose()
        });
        let modes = modes.into_iter().collect::<Result<_, _>>()?;
        Ok(Self {
            modes,
            shape,
            total: data.total(),
            totals,
            pool: Pool::default(),
        })
    }

    /// The sums of the data over the rows of a mode.
    ///
    /// ```
    /// use plca_tensor::{DenseTensor, Modes, Order, arrange::Rows};
    /// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 4.0], Order::RowMajor)?;
    /// assert_eq!(Rows::<f64>::new(&v, Modes::one(0))?.totals(1), [3.0, 5.0]);
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    pub fn totals(&self, mode: usize) -> &[f64] {
        &self.totals[mode]
    }

    /// Improves every row of `block`, the factor of `mode` as `K x I`, by `passes` over its coordinates; that of `factors` is not
    /// looked at. The result is in units of the data's total: without pseudo-counts `Σ_k s_k w_k` is the row's share of the data.
    /// Returns `Σ v ln p` if `log`, with `p = Σ_k w_k U[j,k]` of the result, and 0 otherwise.
    ///
    /// Coordinates that are 0 stay 0; others do not become 0 where the row has data, but may fall until `s w` is half a rounding error of its sum. A row
    /// of which nothing was observed, `s = 0`, keeps its values. Bit-identical for any number of threads. Cost: `K` reciprocals per
    /// entry and pass. `[SPEC 10.1]`
    ///
    /// # Panics
    ///
    /// If the mode was not arranged, or if shapes do not fit the data.
    pub fn improve(
        &self,
        mode: usize,
        factors: &[Factor<'_, T>],
        terms: RowTerms<'_, T>,
        block: &mut DMatrix<T>,
        passes: usize,
        log: bool,
    ) -> f64 {
        let rows = self.rows_of(mode, terms.linear, block);
        let (k, size) = block.shape();
        assert!(
            terms.pseudo.is_none_or(|c| c.shape() == (k, size)),
            "pseudo-counts"
        );
        self.pool.next_pass();
        let (panels, shift) = self.panels(mode, factors, k, log);
        let room = lanes::stride::<T>(rows.longest);
        let mut table = Aligned::none();
        let room = match &rows.entries {
            Entries::Full { stride, cells } => {
                let stride = *stride;
                let sizes: Vec<usize> = panels.iter().map(|p| p.rows).collect();
                let n = sizes.iter().product::<usize>();
                table = self.pool.take(stride * k);
                gather(&panels, &every_index(&sizes), &mut table, (n, stride, k));
                match cells {
                    Full::Copied(_) => 2 * stride,
                    Full::Lent { together, .. } => (2 + together) * stride,
                }
            }
            Entries::Listed { .. } => (k + 2) * room,
        };
        let groups = rows.bounds.windows(2).map(|ends| ends[0]..ends[1]);
        let groups = groups.zip(split(block.as_mut_slice(), &rows.bounds, k));
        let logs = map_in_order(groups.collect(), |(group, block)| {
            let mut scratch = self.pool.take(room);
            T::row_group(RowGroup {
                rows: group,
                k,
                entries: &rows.entries,
                table: &table,
                panels: &panels,
                linear: terms.linear.as_slice(),
                pseudo: terms.pseudo.map_or(&[], |c| c.as_slice()),
                exponents: &rows.exponents,
                totals: &self.totals[mode],
                unit: self.total,
                block,
                scratch: &mut scratch,
                passes,
                log,
            })
        });
        let ln_lik: CompensatedSum = logs.into_iter().collect();
        if log { ln_lik.value() - shift } else { 0.0 }
    }

    /// Solves the problem of every row without pseudo-counts from `block`, the start, `K x I`: each iterates until it is at its own end. The result
    /// is in units of the data: `Σ_k s_k w_k` is the row's sum. Returns how every row ended.
    ///
    /// ```math
    /// f(w) - \min f \le v \, \text{gap}, \qquad
    /// \text{gap} = \frac{\sum_k s_k w_k}{v} \max_k \frac{1}{s_k} \sum_j \frac{v_j U[j,k]}{p_j} - 1
    /// ```
    ///
    /// `f` is the row's objective and `v` its sum. Coordinates are treated as by [`improve`](Self::improve), and no iteration makes `f` worse, but
    /// for rounding. A row's result is bit-identical whatever the other rows are, and for any number of threads. `cut` is asked
    /// after every iteration: where it is true a row ends, after one iteration at least. Cost of an iteration: `K` reciprocals per entry, and
    /// from the fifth or a later one on `K² / 2` products. `[SPEC 10.1]`
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_tensor::{DenseTensor, Factor, Modes, Order, arrange::{Rows, Until}};
    /// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 4.0], Order::RowMajor)?;
    /// let rows = Rows::new(&v, Modes::one(0))?;
    /// let (w, h) = (dmatrix![0.0, 0.0; 0.0, 0.0], dmatrix![1.0, 0.5; 0.0, 0.5]);
    /// let mut block = dmatrix![1.0, 1.0; 1.0, 1.0];
    /// let until = Until { gap: Some(1e-9), change: None, patience: 1, both: false, iterations: 100 };
    /// let ends = rows.solve(0, &[Factor::Columns(&w), Factor::Columns(&h)], &dmatrix![1.0; 1.0], &mut block, &until, &|| false);
    /// assert!(ends.iter().all(|end| end.gap <= 1e-9));
    /// assert!((block - dmatrix![2.0, 0.0; 2.0, 4.0]).abs().max() < 1e-6);
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    ///
    /// # Panics
    ///
    /// As [`improve`](Self::improve).
    pub fn solve(
        &self,
        mode: usize,
        factors: &[Factor<'_, T>],
        linear: &DMatrix<T>,
        block: &mut DMatrix<T>,
        until: &Until,
        cut: &(dyn Fn() -> bool + Sync),
    ) -> Vec<RowEnd> {
        let rows = self.rows_of(mode, linear, block);
        let k = block.nrows();
        self.pool.next_pass();
        let (panels, _) = self.panels(mode, factors, k, false);
        let sizes: Vec<usize> = panels.iter().map(|p| p.rows).collect();
        // Of rows with more cells than memory has none is half full.
        let cells = sizes.iter().try_fold(1usize, |n, &m| n.checked_mul(m));
        let cells = cells.unwrap_or(usize::MAX);
        let (mut every, mut table, mut longest) = (Vec::new(), Aligned::none(), rows.longest);
        let is_full = match &rows.entries {
            Entries::Full { .. } => true,
            Entries::Listed { .. } => rows.longest > cells / 2,
        };
        if is_full {
            let stride = lanes::stride::<T>(cells);
            (every, longest) = (every_index(&sizes), stride);
            table = self.pool.take(stride * k);
            gather(&panels, &every, &mut table, (cells, stride, k));
        }
        let room = (k + 4) * lanes::stride::<T>(longest);
        let groups = rows.bounds.windows(2).map(|ends| ends[0]..ends[1]);
        let groups = groups.zip(split(block.as_mut_slice(), &rows.bounds, k));
        let ends = map_in_order(groups.collect(), |(group, block)| {
            let mut scratch = self.pool.take(room);
            T::solve_group(SolveGroup {
                rows: group,
                k,
                entries: &rows.entries,
                cells,
                every: &every,
                table: &table,
                panels: &panels,
                linear: linear.as_slice(),
                exponents: &rows.exponents,
                block,
                scratch: &mut scratch,
                until,
                cut,
            })
        });
        ends.concat()
    }

    /// The rows of a mode, whose terms and block have the shapes of the data.
    fn rows_of(&self, mode: usize, linear: &DMatrix<T>, block: &DMatrix<T>) -> &ModeRows<'_, T> {
        let Some(rows) = &self.modes[mode] else {
            panic!("mode {mode} was not arranged");
        };
        let (k, size) = block.shape();
        assert_eq!(size, self.shape[mode], "rows of the block");
        let linear = linear.shape();
        assert!(linear == (k, 1) || linear == (k, size), "linear terms");
        rows
    }

    /// The other factors, their rows in `[1, 2)`, and what that adds to `Σ v ln p`.
    fn panels(
        &self,
        mode: usize,
        factors: &[Factor<'_, T>],
        k: usize,
        log: bool,
    ) -> (Vec<Panel<'_, T>>, f64) {
        assert_eq!(factors.len(), self.shape.len(), "one factor per mode");
        let (mut panels, mut exponents) = (Vec::new(), CompensatedSum::default());
        for (m, &factor) in factors.iter().enumerate().filter(|&(m, _)| m != mode) {
            assert_eq!(
                (factor.rows(), factor.components()),
                (self.shape[m], k),
                "factor shape"
            );
            let mut panel = Panel::pack(factor, None, lanes::stride::<T>(k), &self.pool);
            let rows = panel.balance_rows();
            if log {
                exponents += f64::from(panel.exponent) * self.total;
                let rows = rows.iter().zip(&self.totals[m]);
                exponents.extend(rows.map(|(&e, v)| f64::from(e) * v));
            }
            panels.push(panel);
        }
        (panels, exponents.value() * std::f64::consts::LN_2)
    }
}

/// Every index of these modes, the last one fastest.
fn every_index(sizes: &[usize]) -> Vec<u32> {
    let size = |sizes: &[usize]| sizes.iter().product::<usize>();
    let steps: Vec<_> = (1..=sizes.len()).map(|m| size(&sizes[m..])).collect();
    let index = |at: usize| (sizes.iter().zip(&steps)).map(move |(n, step)| (at / step % n) as u32);
    (0..size(sizes)).flat_map(index).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Compressed, DenseTensor, Order};

    /// The modes whose rows are a copy.
    fn copied(data: &dyn Data<f64>) -> Vec<usize> {
        let rows = Rows::new(data, Modes::all(data.shape().len())).unwrap();
        let is_copy = |rows: &ModeRows<'_, f64>| match &rows.entries {
            Entries::Full { cells, .. } => matches!(cells, Full::Copied(_)),
            Entries::Listed { cells, .. } => matches!(cells, Listed::Copied { .. }),
        };
        let modes = rows.modes.iter().flatten().enumerate();
        modes
            .filter(|(_, rows)| is_copy(rows))
            .map(|(m, _)| m)
            .collect()
    }

    #[test]
    fn rows_are_copied_only_where_they_cannot_be_read() {
        let dense = |of: usize, shape: &[usize]| {
            let values = (0..6000).map(|at| f64::from(u8::from(at % of == 0)));
            DenseTensor::new(shape.to_vec(), values.collect(), Order::RowMajor).unwrap()
        };
        assert_eq!(copied(&dense(1, &[20, 300])), [0; 0]);
        assert_eq!(copied(&dense(15, &[20, 300])), [0; 0]);
        assert_eq!(copied(&dense(17, &[20, 300])), [0, 1]);
        assert_eq!(copied(&dense(1, &[20, 30, 10])), [0, 1, 2]);
        // One entry in each of 40 runs, of the longer mode and of the shorter one.
        let (ends, indices): (Vec<u32>, Vec<u32>) =
            ((0..=40).collect(), (0..40).map(|i| i % 9).collect());
        let values = vec![1.0; 40];
        for (inner, none) in [(9, vec![1]), (90, vec![])] {
            let csr = Compressed::new([40, inner], 0, &ends, &indices, &values).unwrap();
            assert_eq!(copied(&csr), none);
            let csc = Compressed::new([inner, 40], 1, &ends, &indices, &values).unwrap();
            let none: Vec<usize> = none.iter().map(|m| 1 - m).collect();
            assert_eq!(copied(&csc), none);
        }
    }
}
