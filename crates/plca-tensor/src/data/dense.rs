//! Dense tensors of any order.

use std::fmt::Debug;

use nalgebra::DMatrix;

use super::pass::{Stored, check_sums, data_scale};
use super::{Data, Expected, Mask, Request, Summary, Sums};
use crate::kernel::aligned::Pool;
use crate::kernel::dense::Grid;
use crate::parallel::for_each_part;
use crate::simplex::largest;
use crate::{Cp, DataError, Real};

/// Which end of the shape is contiguous in memory.
///
/// ```
/// use plca_tensor::{DenseTensor, Order};
/// let values = vec![1.0, 2.0, 3.0, 4.0];
/// let c = DenseTensor::new(vec![2, 2], values.clone(), Order::RowMajor)?;
/// let fortran = DenseTensor::new(vec![2, 2], values, Order::ColumnMajor)?;
/// assert_eq!((c.get(&[0, 1]), fortran.get(&[0, 1])), (2.0, 3.0));
/// # Ok::<(), plca_tensor::DataError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Order {
    /// C order: the last index runs fastest.
    RowMajor,
    /// Fortran order: the first index runs fastest (the order of nalgebra).
    ColumnMajor,
}

/// A dense tensor of order at least 1, all of its cells observed or some hidden.
///
/// Values are checked once, here: finite numbers of either sign. Models of counts ask for more where they meet data:
/// [`check_counts`](crate::check_counts). Values are never normalised. A hidden cell is NaN in place of its value, which is never read.
///
/// Whatever order they are given in, values are held, and added up, in row-major order: results do not depend on how an array lay in memory, by a
/// single bit.
///
/// `S` holds the values: a vector of the tensor's own, or with [`shared`](Self::shared) anything that shows them, such as a slice or an `Arc`.
/// Memory: the values, which are not copied if they are in row-major order, and from the first pass on the buffers that passes work in.
///
/// ```
/// use plca_tensor::{Data, DenseTensor, Order};
/// let v = DenseTensor::new(vec![2, 3], vec![1.0, 0.0, 2.0, 3.0, 4.0, 0.5], Order::RowMajor)?;
/// assert_eq!(v.get(&[1, 0]), 3.0);
/// let err = DenseTensor::new(vec![2], vec![-1.0, f64::NAN], Order::RowMajor).unwrap_err();
/// assert_eq!(err.to_string(), "entry [1] is NaN, not a finite number");
/// let some = DenseTensor::with_mask(vec![3], vec![1.0, -99.0, 2.0], Order::RowMajor, &[true, false, true])?;
/// assert_eq!((some.total(), some.hidden()), (3.0, 1));
/// # Ok::<(), plca_tensor::DataError>(())
/// ```
#[derive(Clone, Debug)]
pub struct DenseTensor<T, S = Vec<T>> {
    shape: Vec<usize>,
    values: Values<T, S>,
    /// Stored values are those given times this power of two.
    scale: T,
    hidden: usize,
    /// Sums of the values, and of their squares, as they are held.
    sums: [f64; 2],
    summary: Summary,
    pool: Pool<T>,
}

/// Values as they are held.
#[derive(Clone, Debug)]
enum Values<T, S> {
    Given(S),
    /// Extreme ones, and those in another order, of which others may hold the original.
    Copied(Vec<T>),
}

/// The largest number of modes of a tensor, as in numpy: work is proportional to the square of it.
///
/// ```
/// use plca_tensor::{Coordinates, MAX_ORDER, SparseTensor, DataError};
/// let one = |order| Coordinates { shape: vec![1; order], indices: vec![0; order], values: vec![1.0] };
/// assert!(SparseTensor::<f64>::new(one(MAX_ORDER)).is_ok());
/// assert!(matches!(SparseTensor::<f64>::new(one(MAX_ORDER + 1)), Err(DataError::Order { order: 65 })));
/// ```
pub const MAX_ORDER: usize = 64;

/// Checks a shape; returns the number of cells, or `None` where it exceeds `usize`.
pub(crate) fn check_shape(shape: &[usize]) -> Result<Option<usize>, DataError> {
    if shape.is_empty() {
        return Err(DataError::OrderZero);
    }
    if shape.len() > MAX_ORDER {
        return Err(DataError::Order { order: shape.len() });
    }
    if let Some(mode) = shape.iter().position(|&n| n == 0) {
        let shape = shape.to_vec();
        return Err(DataError::EmptyMode { mode, shape });
    }
    if shape.iter().any(|&n| n > u32::MAX as usize) {
        return Err(DataError::too_large(shape));
    }
    Ok(shape.iter().try_fold(1usize, |n, &m| n.checked_mul(m)))
}

/// Rows and columns.
pub(crate) fn matrix_shape(shape: &[usize]) -> Result<[usize; 2], DataError> {
    shape.try_into().map_err(|_| DataError::NotAMatrix {
        shape: shape.into(),
    })
}

/// The multi-index of a linear position.
pub(crate) fn unravel(mut position: usize, shape: &[usize], order: Order) -> Vec<usize> {
    let mut index = vec![0; shape.len()];
    let mut take = |m: usize| {
        index[m] = position % shape[m];
        position /= shape[m];
    };
    match order {
        Order::RowMajor => (0..shape.len()).rev().for_each(&mut take),
        Order::ColumnMajor => (0..shape.len()).for_each(&mut take),
    }
    index
}

/// Position in row-major order of a position in memory.
fn row_major(position: usize, shape: &[usize], order: Order) -> usize {
    match order {
        Order::RowMajor => position,
        Order::ColumnMajor => {
            let (mut rest, mut at, mut step) = (position, 0, shape.iter().product::<usize>());
            for &size in shape {
                step /= size;
                at += rest % size * step;
                rest /= size;
            }
            at
        }
    }
}

/// Sides of a tile of values that are brought into another order together: their lines stay in the first-level cache.
const TILE: usize = 32;

/// Values in column-major order as row-major ones; `None` where the two are the same.
fn to_row_major<T: Real>(shape: &[usize], values: &[T], order: Order) -> Option<Vec<T>> {
    let several = shape.iter().filter(|&&n| n > 1).count() > 1;
    let ([first, middle @ .., last], Order::ColumnMajor, true) = (shape, order, several) else {
        return None;
    };
    let inner: usize = middle.iter().product();
    let mut rows = vec![T::zero(); values.len()];
    // A row of the first mode: the middle ones, the last of them fastest, and the last mode.
    let row = inner * last;
    for_each_part(&mut rows, TILE * row, |part, rows| {
        let from = part * TILE;
        for at in 0..inner {
            // The same indices of the middle modes, the first of them fastest.
            let (mut rest, mut there, mut step) = (at, 0, inner);
            for &size in middle.iter().rev() {
                step /= size;
                there += rest % size * step;
                rest /= size;
            }
            for begin in (0..*last).step_by(TILE) {
                for j in begin..(begin + TILE).min(*last) {
                    let cells = &values[(j * inner + there) * first + from..];
                    for (to, &x) in rows[at * last + j..].iter_mut().step_by(row).zip(cells) {
                        *to = x;
                    }
                }
            }
        }
    });
    Some(rows)
}

/// Checks values; returns the largest absolute one. NaN marks a hidden cell where `nan_is_hidden`.
fn check_values<T: Real>(
    shape: &[usize],
    values: &[T],
    order: Order,
    nan_is_hidden: bool,
) -> Result<T, DataError> {
    let cells = check_shape(shape)?.ok_or_else(|| DataError::too_large(shape))?;
    if cells != values.len() {
        return Err(DataError::Length {
            shape: shape.to_vec(),
            expected: cells,
            got: values.len(),
        });
    }
    let refused = |&x: &T| !(x.is_finite() || nan_is_hidden && x.is_nan());
    // The first offending index in row-major order, whatever the memory order.
    let worst = values.iter().enumerate().filter(|(_, x)| refused(x));
    if let Some(at) = worst.map(|(at, _)| row_major(at, shape, order)).min() {
        let index = unravel(at, shape, Order::RowMajor);
        let value = values[position(&index, shape, order)].to_f64();
        return Err(DataError::NotFinite { index, value });
    }
    Ok(largest(values))
}

/// Checks a matrix in column-major order in which NaN marks a hidden cell; returns the number of hidden cells.
pub(crate) fn check_columns<T: Real>(
    [rows, columns]: [usize; 2],
    values: &[T],
) -> Result<usize, DataError> {
    let scale = data_scale(check_values(
        &[rows, columns],
        values,
        Order::ColumnMajor,
        true,
    )?);
    let mut sums = Sums::default();
    let observed = values.iter().filter(|x| !x.is_nan());
    let observed = observed.map(|&x| sums.add((x * scale).to_f64(), x.to_f64()));
    let hidden = values.len() - observed.count();
    check_sums(sums.summary(scale.to_f64(), None, Mask::Hidden))?;
    Ok(hidden)
}

/// What checking values finds.
struct Checked<T> {
    scale: T,
    hidden: usize,
    sums: [f64; 2],
    summary: Summary,
}

impl<T: Real> Checked<T> {
    /// Goes through values in row-major order, as they are given; `largest` is what checking them found.
    fn new(shape: &[usize], values: &[T], largest: T) -> Result<Self, DataError> {
        let scale = data_scale(largest);
        let (mut sums, mut hidden, mut negative) = (Sums::default(), 0, None);
        for (at, &x) in values.iter().enumerate() {
            if x.is_nan() {
                hidden += 1;
                continue;
            }
            let given = x.to_f64();
            if given < 0.0 && negative.is_none() {
                negative = Some((at, given));
            }
            sums.add((x * scale).to_f64(), given);
        }
        let mask = match hidden {
            0 => Mask::Complete,
            _ => Mask::Hidden,
        };
        let negative = negative.map(|(at, x)| (unravel(at, shape, Order::RowMajor), x));
        Ok(Self {
            scale,
            hidden,
            sums: [sums.total.value(), sums.squares.value()],
            summary: check_sums(sums.summary(scale.to_f64(), negative, mask))?,
        })
    }

    fn tensor<S>(self, shape: Vec<usize>, values: Values<T, S>) -> DenseTensor<T, S> {
        let Self {
            scale,
            hidden,
            sums,
            summary,
        } = self;
        DenseTensor {
            shape,
            values,
            scale,
            hidden,
            sums,
            summary,
            pool: Pool::default(),
        }
    }
}

impl<T: Real> DenseTensor<T> {
    /// A tensor from its values in the given memory order. Cost: some passes over the values, and a copy of column-major ones.
    ///
    /// # Errors
    ///
    /// [`DataError`]: order 0, an empty mode, a wrong number of values, a value that is
    /// not finite (the first one is named), a sum that overflows.
    pub fn new(shape: Vec<usize>, values: Vec<T>, order: Order) -> Result<Self, DataError> {
        Self::checked(shape, values, order, false)
    }

    /// A tensor from values in which NaN marks a hidden cell.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn masked(shape: Vec<usize>, values: Vec<T>, order: Order) -> Result<Self, DataError> {
        Self::checked(shape, values, order, true)
    }

    /// A tensor from values and a mask in the same memory order, `true` where the cell was observed. Values of hidden cells are not read.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), and [`DataError::Length`] if the mask has another size.
    pub fn with_mask(
        shape: Vec<usize>,
        mut values: Vec<T>,
        order: Order,
        observed: &[bool],
    ) -> Result<Self, DataError> {
        if observed.len() != values.len() {
            return Err(DataError::Length {
                shape,
                expected: values.len(),
                got: observed.len(),
            });
        }
        // An observed NaN is refused by its place, before hidden cells are NaN too.
        let bad = (values.iter().zip(observed)).any(|(x, &seen)| seen && x.is_nan());
        if bad {
            let shown = values.iter().zip(observed);
            let shown = shown.map(|(&x, &seen)| if seen { x } else { T::zero() });
            check_values(&shape, &shown.collect::<Vec<_>>(), order, false)?;
        }
        for (x, &seen) in values.iter_mut().zip(observed) {
            if !seen {
                *x = T::lit(f64::NAN);
            }
        }
        Self::masked(shape, values, order)
    }

    /// Checked values, brought into a comfortable scale where they lie.
    fn checked(
        shape: Vec<usize>,
        mut values: Vec<T>,
        order: Order,
        nan_is_hidden: bool,
    ) -> Result<Self, DataError> {
        let largest = check_values(&shape, &values, order, nan_is_hidden)?;
        if let Some(rows) = to_row_major(&shape, &values, order) {
            values = rows;
        }
        let checked = Checked::new(&shape, &values, largest)?;
        if checked.scale != T::one() {
            values.iter_mut().for_each(|x| *x *= checked.scale);
        }
        Ok(checked.tensor(shape, Values::Given(values)))
    }

    /// The values as they were given, in row-major order: shape, values, order. Where the largest lies outside the middle half of the
    /// scalar's exponents all are kept multiplied by a power of two, and those that underflow then come back as 0.
    ///
    /// ```
    /// use plca_tensor::{DenseTensor, Order};
    /// let v = DenseTensor::new(vec![2], vec![1e-310, 2e-310], Order::RowMajor)?;
    /// assert_eq!(v.into_parts(), (vec![2], vec![1e-310, 2e-310], Order::RowMajor));
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    pub fn into_parts(self) -> (Vec<usize>, Vec<T>, Order) {
        let (Values::Given(mut values) | Values::Copied(mut values)) = self.values;
        if self.scale != T::one() {
            values.iter_mut().for_each(|x| *x /= self.scale);
        }
        (self.shape, values, Order::RowMajor)
    }
}

impl<T: Real, S: AsRef<[T]>> DenseTensor<T, S> {
    /// A tensor over values that the caller owns, in the given memory order: a slice, an `Arc<[T]>`, a memory map in a type of your own. They are
    /// read where they lie. The result is that of [`new`](DenseTensor::new) on the same values, bit for bit.
    ///
    /// Memory: none for values, except column-major ones, and those of which the largest lies outside the middle half of the scalar's exponents:
    /// they are copied, the latter multiplied by a power of two. The holder must always show the same values.
    ///
    /// # Errors
    ///
    /// As [`new`](DenseTensor::new).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use plca_tensor::{Data, DenseTensor, Order};
    /// let values = [3.0, 0.0, 1.0, 2.0];
    /// let v = DenseTensor::shared(vec![2, 2], &values[..], Order::ColumnMajor)?;
    /// assert_eq!((v.total(), v.get(&[0, 1])), (6.0, 1.0));
    /// let shared: Arc<[f32]> = Arc::new([1.0, 2.0]);
    /// let v = DenseTensor::shared(vec![2], Arc::clone(&shared), Order::RowMajor)?;
    /// assert_eq!((v.total(), Arc::strong_count(&shared)), (3.0, 2));
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    pub fn shared(shape: Vec<usize>, values: S, order: Order) -> Result<Self, DataError> {
        Self::over(shape, values, order, false)
    }

    /// The same with NaN for a hidden cell, as of [`masked`](DenseTensor::masked).
    ///
    /// # Errors
    ///
    /// As [`new`](DenseTensor::new).
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_tensor::{DenseTensor, Order};
    /// let v = DenseTensor::shared_masked(vec![2], &[3.0, f64::NAN], Order::RowMajor)?;
    /// assert_eq!(v.hidden(), 1);
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    pub fn shared_masked(shape: Vec<usize>, values: S, order: Order) -> Result<Self, DataError> {
        Self::over(shape, values, order, true)
    }

    fn over(
        shape: Vec<usize>,
        values: S,
        order: Order,
        nan_is_hidden: bool,
    ) -> Result<Self, DataError> {
        let largest = check_values(&shape, values.as_ref(), order, nan_is_hidden)?;
        let mut rows = to_row_major(&shape, values.as_ref(), order);
        let held = rows.as_deref().unwrap_or(values.as_ref());
        let checked = Checked::new(&shape, held, largest)?;
        let scale = checked.scale;
        if scale != T::one() {
            rows = Some(held.iter().map(|&x| x * scale).collect());
        }
        Ok(checked.tensor(shape, rows.map_or(Values::Given(values), Values::Copied)))
    }

    fn values(&self) -> &[T] {
        match &self.values {
            Values::Given(values) => values.as_ref(),
            Values::Copied(values) => values,
        }
    }

    fn grid(&self) -> Grid<'_, T> {
        Grid {
            shape: &self.shape,
            values: self.values(),
        }
    }

    /// The number of hidden cells.
    pub fn hidden(&self) -> usize {
        self.hidden
    }

    /// The value of one cell, NaN if it is hidden.
    ///
    /// # Panics
    ///
    /// If `index` has another order than the tensor or lies outside it.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_tensor::{DenseTensor, Order};
    /// let v = DenseTensor::new(vec![2, 1, 2], vec![1.0, 2.0, 3.0, 4.0], Order::RowMajor)?;
    /// assert_eq!(v.get(&[1, 0, 0]), 3.0);
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    pub fn get(&self, index: &[usize]) -> T {
        self.values()[position(index, &self.shape, Order::RowMajor)] / self.scale
    }
}

/// Dense values as they lie in memory, borrowed from a [`DenseTensor`]; what [`arrange`](crate::arrange) makes of them needs no copy.
///
/// ```
/// use plca_tensor::{Data, DenseTensor, Order};
/// let v = DenseTensor::new(vec![2], vec![1.0, -2.0], Order::RowMajor)?;
/// assert!(v.dense().is_some());
/// # Ok::<(), plca_tensor::DataError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct DenseView<'a, T> {
    pub(crate) grid: Grid<'a, T>,
    /// Held values are those given times this power of two.
    pub(crate) scale: T,
    pub(crate) hidden: usize,
    /// Sums of the values, and of their squares, as they are held.
    pub(crate) sums: [f64; 2],
}

/// The same values, and the same cells hidden.
impl<T: Real, S: AsRef<[T]>> PartialEq for DenseTensor<T, S> {
    fn eq(&self, other: &Self) -> bool {
        let (mine, theirs) = (self.grid(), other.grid());
        let mut cells = mine.values.iter().zip(theirs.values);
        (mine.shape, self.scale) == (theirs.shape, other.scale)
            && cells.all(|(a, b)| a == b || a.is_nan() && b.is_nan())
    }
}

impl<T: Real, S: AsRef<[T]> + Debug + Send + Sync> Data<T> for DenseTensor<T, S> {
    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn visit(&self, each: &mut dyn FnMut(&[usize], f64)) -> Result<(), DataError> {
        let (grid, scale) = (self.grid(), self.scale.to_f64());
        let order = grid.shape.len();
        let mut index = vec![0; order];
        for &x in grid.values {
            if x != T::zero() && !x.is_nan() {
                each(&index, x.to_f64() / scale);
            }
            (0..order).rev().all(|m| {
                index[m] = (index[m] + 1) % grid.shape[m];
                index[m] == 0
            });
        }
        Ok(())
    }

    fn visit_mask(&self, each: &mut dyn FnMut(&[usize])) -> Result<(), DataError> {
        if self.hidden > 0 {
            for (position, _) in (self.values().iter().enumerate()).filter(|(_, x)| x.is_nan()) {
                each(&unravel(position, &self.shape, Order::RowMajor));
            }
        }
        Ok(())
    }

    fn dense(&self) -> Option<DenseView<'_, T>> {
        Some(DenseView {
            grid: self.grid(),
            scale: self.scale,
            hidden: self.hidden,
            sums: self.sums,
        })
    }

    fn e_step(
        &self,
        model: &Cp<'_, T>,
        request: &Request<'_, T>,
    ) -> Result<Expected<T>, DataError> {
        let grid = self.grid();
        let stored = Stored {
            cells: &grid,
            scale: self.scale,
            pool: &self.pool,
            sparing: false,
        };
        stored.e_step(self, model, request, |pass, modes| pass.unit(&grid, modes))
    }
}

/// Linear position of a multi-index.
pub(crate) fn position(index: &[usize], shape: &[usize], order: Order) -> usize {
    assert_eq!(index.len(), shape.len(), "one index per mode");
    let step = |acc: usize, m: usize| {
        assert!(
            index[m] < shape[m],
            "index {index:?} outside shape {shape:?}"
        );
        acc * shape[m] + index[m]
    };
    match order {
        Order::RowMajor => (0..shape.len()).fold(0, step),
        Order::ColumnMajor => (0..shape.len()).rev().fold(0, step),
    }
}

impl<T: Real> TryFrom<DMatrix<T>> for DenseTensor<T> {
    type Error = DataError;

    /// Takes the matrix and brings it into row-major order.
    fn try_from(m: DMatrix<T>) -> Result<Self, DataError> {
        let shape = vec![m.nrows(), m.ncols()];
        Self::new(shape, m.data.into(), Order::ColumnMajor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_others_lie_where_they_lay() {
        let values = [1.0, f64::NAN, 3.0, 0.5];
        let shared = DenseTensor::shared_masked(vec![2, 2], &values, Order::RowMajor).unwrap();
        assert_eq!(shared.grid().values.as_ptr(), values.as_ptr());
        // Only what needs another scale is copied.
        let tiny = [1e-310, 2e-310];
        let scaled = DenseTensor::shared(vec![2], &tiny, Order::RowMajor).unwrap();
        assert_ne!(scaled.grid().values.as_ptr(), tiny.as_ptr());
        assert_eq!(scaled.get(&[1]), 2e-310);
    }

    #[test]
    fn values_in_column_order_come_into_row_order() {
        for shape in [
            vec![3],
            vec![1, 70],
            vec![40, 1],
            vec![33, 70],
            vec![5, 1, 40],
            vec![3, 4, 2, 5],
        ] {
            let cells: usize = shape.iter().product();
            let of =
                |at: usize, order| position(&unravel(at, &shape, Order::RowMajor), &shape, order);
            let mut columns = vec![0.0; cells];
            (0..cells).for_each(|at| columns[of(at, Order::ColumnMajor)] = at as f64);
            let v = DenseTensor::new(shape.clone(), columns, Order::ColumnMajor).unwrap();
            let want: Vec<f64> = (0..cells).map(|at| at as f64).collect();
            assert_eq!(v.into_parts(), (shape, want, Order::RowMajor));
        }
    }
}
