//! Sparse tensors of any order.

use std::collections::HashSet;
use std::sync::Arc;

use super::compressed::Runs;
use super::pass::{Stored, check_sums, data_scale};
use super::{Data, Expected, ListedView, Mask, Request, Summary, Sums as CellSums, check_shape};
use crate::exposure::remaining;
use crate::kernel::aligned::Pool;
use crate::kernel::strata::{Strata, grid_of};
use crate::kernel::{Cells, fibres::Fibres};
use crate::simplex::largest;
use crate::{Cp, DataError, Real};

/// Stored cells in coordinate form, in any order, duplicates allowed (they are summed).
///
/// ```
/// use plca_tensor::{Coordinates, Data, SparseTensor};
/// let c = Coordinates { shape: vec![4, 3], indices: vec![0, 1,  3, 2,  0, 1], values: vec![1.0, 2.0, 0.5] };
/// let v = SparseTensor::new(c)?;
/// assert_eq!((v.summary().nnz, v.total()), (2, 3.5));
/// # Ok::<(), plca_tensor::DataError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Coordinates<T> {
    /// Size of each mode; the product may exceed `u64::MAX`.
    pub shape: Vec<usize>,
    /// The indices of the entries: `order` numbers for each, entry after entry.
    pub indices: Vec<u32>,
    /// The values of the entries, one number for each.
    pub values: Vec<T>,
}

impl<T> Coordinates<T> {
    /// No entries yet, of a tensor of this shape.
    pub fn empty(shape: &[usize]) -> Self {
        Self {
            shape: shape.to_vec(),
            indices: Vec::new(),
            values: Vec::new(),
        }
    }

    /// One more entry. An index beyond `u32` becomes `u32::MAX`, which is outside every shape.
    ///
    /// # Panics
    ///
    /// If there is not one index for each mode.
    pub fn push(&mut self, index: &[usize], value: T) {
        let pushed = self.try_push(index, value);
        pushed.unwrap_or_else(|error| panic!("one index for each mode: {error}"));
    }

    /// One more entry, as [`push`](Self::push) adds it.
    ///
    /// # Errors
    ///
    /// [`DataError::Indices`] if there is not one index for each mode.
    ///
    /// ```
    /// use plca_tensor::{Coordinates, DataError};
    /// let mut entries = Coordinates::<f64>::empty(&[4, 3]);
    /// entries.try_push(&[3, 2], 0.5)?;
    /// let error = entries.try_push(&[3], 0.5).unwrap_err();
    /// assert_eq!(error.to_string(), "1 stored values of a tensor of 2 modes need 2 index numbers, got 1");
    /// # Ok::<(), DataError>(())
    /// ```
    pub fn try_push(&mut self, index: &[usize], value: T) -> Result<(), DataError> {
        if index.len() != self.shape.len() {
            return Err(DataError::Indices {
                values: 1,
                order: self.shape.len(),
                got: index.len(),
            });
        }
        let index = index.iter().map(|&i| u32::try_from(i).unwrap_or(u32::MAX));
        self.indices.extend(index);
        self.values.push(value);
        Ok(())
    }
}

/// Cells, the power of two by which their values were multiplied, and the first negative entry.
type Arranged<T> = (Arc<dyn Cells<T>>, T, Option<(Vec<usize>, f64)>);

/// Checks and arranges the entries for the kernels, matrices as strata of tiles and other orders as fibres; duplicates are summed, zeros
/// dropped unless `keep_zeros`.
fn arrange<T: Real>(
    mut entries: Coordinates<T>,
    keep_zeros: bool,
) -> Result<Arranged<T>, DataError> {
    check_indices(&entries)?;
    let first = |bad: &dyn Fn(&T) -> bool| {
        let at = entries.values.iter().position(bad)?;
        let index = entries.indices.chunks_exact(entries.shape.len()).nth(at)?;
        let index = index.iter().map(|&i| i as usize).collect();
        Some((index, entries.values[at].to_f64()))
    };
    if let Some((index, value)) = first(&|x| !x.is_finite()) {
        return Err(DataError::NotFinite { index, value });
    }
    // Before values are scaled: a message shows the value as given.
    let negative = first(&|&x| x < T::zero());
    let scale = rescale(&mut entries.values);
    let cells: Arc<dyn Cells<T>> = match entries.shape.len() {
        2 => {
            let grid = grid_of(&entries);
            Arc::new(Strata::new(entries, grid, keep_zeros))
        }
        _ => Arc::new(Fibres::new(entries, keep_zeros)),
    };
    Ok((cells, scale, negative))
}

/// Refuses lengths that disagree and indices outside the shape.
pub(crate) fn check_indices<T>(entries: &Coordinates<T>) -> Result<(), DataError> {
    let Coordinates {
        shape,
        indices,
        values,
    } = entries;
    check_shape(shape)?;
    let order = shape.len();
    if indices.len() != order * values.len() {
        return Err(DataError::Indices {
            values: values.len(),
            order,
            got: indices.len(),
        });
    }
    if values.len() > u32::MAX as usize {
        return Err(DataError::too_large(shape));
    }
    let mut places = indices.chunks_exact(order).enumerate();
    places.try_for_each(|(position, index)| check_index(position, index, shape))
}

/// Refuses the index of a stored entry outside the shape.
pub(crate) fn check_index(
    position: usize,
    index: &[u32],
    shape: &[usize],
) -> Result<(), DataError> {
    for (mode, (&index, &size)) in index.iter().zip(shape).enumerate() {
        let index = index as usize;
        if index >= size {
            return Err(DataError::OutOfRange {
                position,
                mode,
                index,
                size,
            });
        }
    }
    Ok(())
}

/// The summary of cells as `visit` goes through them, and of the first negative entry that was given.
pub(super) fn summary<T: Real>(
    visit: impl FnOnce(&mut dyn FnMut(&[usize], T)),
    scale: T,
    negative: Option<(Vec<usize>, f64)>,
    mask: Mask,
) -> Result<Summary, DataError> {
    let (mut sums, mut below) = (CellSums::default(), false);
    visit(&mut |_, x| {
        sums.add(x.to_f64(), x.to_f64() / scale.to_f64());
        below |= x < T::zero();
    });
    // Duplicates may have made up for it; what a scale leaves nothing of is negative nevertheless.
    let negative = negative.filter(|_| below || scale != T::one());
    check_sums(sums.summary(scale.to_f64(), negative, mask))
}

/// Which cells of a sparse tensor were observed.
#[derive(Clone, Debug)]
enum Pattern<T> {
    All,
    /// All but these.
    AllBut {
        hidden: Arc<dyn Cells<T>>,
        /// Of every mode, the indices whose cells are all hidden.
        unseen: Vec<Vec<usize>>,
    },
    /// The stored ones, zeros included.
    Stored,
}

/// A sparse tensor of order at least 1. Cells that are not stored are zeros, unless they are hidden.
///
/// Memory: about 12 bytes per entry in `f64`, whatever the product of the shape, and 12 per hidden cell that is listed.
///
/// ```
/// use plca_tensor::{Coordinates, Data, SparseTensor};
/// let v = SparseTensor::new(Coordinates { shape: vec![1000, 1000, 1000], indices: vec![7, 0, 999], values: vec![2.0] })?;
/// assert_eq!((v.summary().nnz, v.total(), v.is_complete()), (1, 2.0, true));
/// // Ratings: what is not stored was not observed.
/// let ratings = Coordinates { shape: vec![3, 2], indices: vec![0, 0, 1, 1], values: vec![4.0, 5.0] };
/// assert!(!SparseTensor::stored_only(ratings)?.is_complete());
/// # Ok::<(), plca_tensor::DataError>(())
/// ```
#[derive(Clone, Debug)]
pub struct SparseTensor<T> {
    shape: Vec<usize>,
    cells: Arc<dyn Cells<T>>,
    pattern: Pattern<T>,
    /// Stored values are those given times this power of two.
    scale: T,
    summary: Summary,
    pool: Pool<T>,
}

/// Brings values into a comfortable scale; returns that scale.
pub(crate) fn rescale<T: Real>(values: &mut [T]) -> T {
    let scale = data_scale(largest(values));
    if scale != T::one() {
        values.iter_mut().for_each(|x| *x *= scale);
    }
    scale
}

impl<T: Real> SparseTensor<T> {
    /// Arranges entries for the kernels; duplicates are summed, explicit zeros dropped.
    /// Cost `O(nnz + Σ I_j)` time and memory.
    ///
    /// # Errors
    ///
    /// [`DataError`]: order 0, an empty mode, lengths that disagree, an index outside the shape, a value that
    /// is not finite, a sum that overflows.
    pub fn new(entries: Coordinates<T>) -> Result<Self, DataError> {
        Self::checked(entries, Pattern::All)
    }

    /// Arranges entries of which all cells but the stored ones are hidden; explicit zeros are observed.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn stored_only(entries: Coordinates<T>) -> Result<Self, DataError> {
        Self::checked(entries, Pattern::Stored)
    }

    /// Arranges entries of which the listed cells are hidden, whatever is stored there. Values of the list are not read.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), for the list too; [`DataError::Shape`] if the two differ in shape.
    pub fn all_but(
        mut entries: Coordinates<T>,
        mut hidden: Coordinates<T>,
    ) -> Result<Self, DataError> {
        if hidden.shape != entries.shape {
            return Err(DataError::Shape {
                what: "mask",
                got: hidden.shape,
                expected: entries.shape,
            });
        }
        check_indices(&entries)?;
        let order = entries.shape.len();
        let listed: HashSet<&[u32]> = hidden.indices.chunks_exact(order).collect();
        let mut kept = 0;
        for entry in 0..entries.values.len() {
            let index = entry * order..(entry + 1) * order;
            if listed.contains(&entries.indices[index.clone()]) {
                continue;
            }
            entries.indices.copy_within(index, kept * order);
            entries.values[kept] = entries.values[entry];
            kept += 1;
        }
        entries.indices.truncate(kept * order);
        entries.values.truncate(kept);
        hidden.values = vec![T::one(); hidden.indices.len() / order];
        let hidden = arrange(hidden, false)?.0;
        let pattern = match hidden.stored() {
            0 => Pattern::All,
            _ => Pattern::AllBut {
                unseen: wholly_listed(&entries.shape, &*hidden),
                hidden,
            },
        };
        Self::checked(entries, pattern)
    }

    /// Arranges a matrix whose rows are compressed (`outer` 0, CSR), or whose columns are (1, CSC), as other programs hold it, into a copy of
    /// its own; [`Compressed`](crate::Compressed) reads such arrays where they lie. The result is that of [`new`](Self::new) on the same entries in the same order, bit for bit.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), [`DataError::Runs`] where `ends` does not rise from 0 to the number of entries, [`DataError::Outer`] if `outer` is neither 0
    /// nor 1, [`DataError::NoIndex`] for a negative index.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_tensor::{Coordinates, Data, SparseTensor};
    /// let v = SparseTensor::from_compressed([2, 3], 0, &[0i32, 2, 3], &[0i64, 2, 1], &[1.0, 2.0, 3.0])?;
    /// let c = Coordinates { shape: vec![2, 3], indices: vec![0, 0,  0, 2,  1, 1], values: vec![1.0, 2.0, 3.0] };
    /// assert_eq!(v.to_coordinates(), SparseTensor::new(c)?.to_coordinates());
    /// assert!(SparseTensor::from_compressed([2, 3], 0, &[0, 2, 1], &[0, 2, 1], &[1.0, 2.0, 3.0]).is_err());
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    pub fn from_compressed<P, I>(
        shape: [usize; 2],
        outer: usize,
        ends: &[P],
        indices: &[I],
        values: &[T],
    ) -> Result<Self, DataError>
    where
        P: Copy + TryInto<usize>,
        I: Copy + TryInto<usize>,
    {
        let (entries, negative) = Runs::new(shape, outer, ends, indices, values)?;
        let (grid, scale) = (grid_of(&entries), entries.scale);
        let cells: Arc<dyn Cells<T>> = Arc::new(Strata::new(entries, grid, false));
        Self::of_cells(shape.to_vec(), (cells, scale, negative), Pattern::All)
    }

    fn checked(entries: Coordinates<T>, pattern: Pattern<T>) -> Result<Self, DataError> {
        let shape = entries.shape.clone();
        let keep_zeros = matches!(pattern, Pattern::Stored);
        Self::of_cells(shape, arrange(entries, keep_zeros)?, pattern)
    }

    fn of_cells(
        shape: Vec<usize>,
        (cells, scale, negative): Arranged<T>,
        pattern: Pattern<T>,
    ) -> Result<Self, DataError> {
        let all = shape.iter().try_fold(1usize, |n, &m| n.checked_mul(m));
        let mask = match &pattern {
            Pattern::All => Mask::Complete,
            Pattern::Stored if all == Some(cells.stored()) => Mask::Complete,
            Pattern::Stored => Mask::Observed,
            Pattern::AllBut { .. } => Mask::Hidden,
        };
        let summary = summary(|each| cells.for_each(each), scale, negative, mask)?;
        Ok(Self {
            shape,
            cells,
            pattern,
            scale,
            summary,
            pool: Pool::default(),
        })
    }

    /// The stored entries in the order of [`visit`](Data::visit), as they were given; of [`stored_only`](Self::stored_only) data zeros too.
    pub fn to_coordinates(&self) -> Coordinates<T> {
        let mut entries = Coordinates::empty(&self.shape);
        let scale = self.scale.to_f64();
        let mut add = |index: &[usize], x: T| entries.push(index, T::lit(x.to_f64() / scale));
        self.cells.for_each(&mut add);
        entries
    }
}

/// Of every mode, the indices whose cells are all listed.
fn wholly_listed<T>(shape: &[usize], cells: &dyn Cells<T>) -> Vec<Vec<usize>> {
    let mut listed: Vec<Vec<usize>> = shape.iter().map(|&size| vec![0; size]).collect();
    cells.for_each(&mut |index, _| {
        for (listed, &i) in listed.iter_mut().zip(index) {
            listed[i] += 1;
        }
    });
    let all = shape.iter().fold(1usize, |n, &size| n.saturating_mul(size));
    let each = listed.into_iter().zip(shape);
    each.map(|(listed, &size)| (0..size).filter(|&i| listed[i] == all / size).collect())
        .collect()
}

impl<T: Real> Data<T> for SparseTensor<T> {
    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn visit(&self, each: &mut dyn FnMut(&[usize], f64)) -> Result<(), DataError> {
        let scale = self.scale.to_f64();
        self.cells.for_each(&mut |index, x| {
            if x != T::zero() {
                each(index, x.to_f64() / scale);
            }
        });
        Ok(())
    }

    fn visit_mask(&self, each: &mut dyn FnMut(&[usize])) -> Result<(), DataError> {
        match (&self.pattern, self.summary.mask) {
            (_, Mask::Complete) | (Pattern::All, _) => {}
            (Pattern::AllBut { hidden, .. }, _) => hidden.for_each(&mut |index, _| each(index)),
            (Pattern::Stored, _) => self.cells.for_each(&mut |index, _| each(index)),
        }
        Ok(())
    }

    fn listed(&self, mode: usize) -> Option<ListedView<'_, T>> {
        let rows = self.cells.lender(mode)?;
        let scale = self.scale;
        Some(ListedView { rows, scale })
    }

    fn e_step(
        &self,
        model: &Cp<'_, T>,
        request: &Request<'_, T>,
    ) -> Result<Expected<T>, DataError> {
        let stored = Stored {
            cells: &*self.cells,
            scale: self.scale,
            pool: &self.pool,
            sparing: false,
        };
        stored.e_step(self, model, request, |pass, modes| match &self.pattern {
            Pattern::All => model.exposures(modes),
            Pattern::Stored => pass.unit(&*self.cells, modes),
            Pattern::AllBut { hidden, unseen } => {
                let listed = pass.unit(&**hidden, modes);
                remaining(model, (&**hidden, unseen), model.exposures(modes), listed)
            }
        })
    }
}
