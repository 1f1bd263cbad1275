//! Data of any sign for squared-error models.

mod contract;
mod convert;

pub use contract::Memo;

use crate::data::{check_shape, data_scale, unravel};
use crate::kernel::dense::Grid;
use crate::kernel::mttkrp::Halves;
use crate::kernel::mttkrp_sparse::Sorted;
use crate::{CompensatedSum, Coordinates, DataError, Order, Real};

/// How the cells are kept.
#[derive(Clone, Debug)]
enum Storage<T> {
    /// NaN marks a hidden cell.
    Dense(Grid<T>, Halves),
    Sparse {
        cells: Sorted<T>,
        hidden: Hidden<T>,
    },
}

/// Which cells of sparse data are hidden.
#[derive(Clone, Debug)]
enum Hidden<T> {
    None,
    Listed(Sorted<T>),
    NotStored,
}

/// A tensor of finite numbers of any sign, dense or sparse, complete or with hidden cells: what a squared-error model needs of
/// its data is their product with a Khatri-Rao product ([`mttkrp`](Self::mttkrp)), which forms no unfolding.
///
/// Values are held times a power of two, [`scale`](Self::scale), which is 1 in the usual range; every result refers to the values
/// as held. Memory: dense, the values; sparse, one sorted copy of the entries for every mode.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_tensor::{Order, RealTensor};
/// let x = RealTensor::dense(vec![2, 2], vec![1.0, -2.0, 3.0, 4.0], Order::RowMajor)?;
/// assert_eq!((x.total(), x.squared_norm(), x.has_negative()), (6.0, 30.0, true));
/// let factors = [dmatrix![1.0; 0.0], dmatrix![0.5; 0.5]];
/// assert_eq!(x.mttkrp(&factors, 0), dmatrix![-0.5; 3.5]);       // X F_1
/// # Ok::<(), plca_tensor::DataError>(())
/// ```
#[derive(Clone, Debug)]
pub struct RealTensor<T> {
    shape: Vec<usize>,
    storage: Storage<T>,
    scale: T,
    total: f64,
    squares: f64,
    complete: bool,
    negative: bool,
}

fn check_finite<T: Real>(
    values: &[T],
    hidden: bool,
    index: impl Fn(usize) -> Vec<usize>,
) -> Result<(), DataError> {
    let bad = values
        .iter()
        .position(|x| !(x.is_finite() || hidden && x.is_nan()));
    match bad {
        Some(at) => Err(DataError::NotFinite {
            index: index(at),
            value: values[at].to_f64(),
        }),
        None => Ok(()),
    }
}

/// Brings values into a comfortable scale; returns that scale.
fn rescale<T: Real>(values: &mut [T]) -> T {
    let largest = values.iter().fold(T::zero(), |a, x| {
        let x = x.abs();
        if x > a { x } else { a }
    });
    let scale = data_scale(largest);
    if scale != T::one() {
        values.iter_mut().for_each(|x| *x *= scale);
    }
    scale
}

impl<T: Real> RealTensor<T> {
    /// Complete dense data in the given memory order.
    ///
    /// # Errors
    ///
    /// [`DataError`]: order 0, an empty mode, a wrong number of values, a value that is not finite.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_tensor::{Order, RealTensor};
    /// let x = RealTensor::dense(vec![2, 2], vec![1.0, -2.0, 3.0, 4.0], Order::ColumnMajor)?;
    /// assert_eq!((x.total(), x.is_complete()), (6.0, true));
    /// let error = RealTensor::dense(vec![2], vec![1.0, f64::NAN], Order::RowMajor).unwrap_err();
    /// assert_eq!(error.to_string(), "entry [1] is NaN, not a finite number");
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    pub fn dense(shape: Vec<usize>, values: Vec<T>, order: Order) -> Result<Self, DataError> {
        Self::from_values(shape, values, order, false)
    }

    /// Dense data in which NaN marks a hidden cell.
    ///
    /// # Errors
    ///
    /// As [`dense`](Self::dense); [`DataError::NothingObserved`] if every cell is hidden.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_tensor::{Order, RealTensor};
    /// let x = RealTensor::masked(vec![2, 2], vec![1.0, f64::NAN, 3.0, -8.0], Order::RowMajor)?;
    /// assert_eq!((x.total(), x.is_complete()), (-4.0, false));
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    pub fn masked(shape: Vec<usize>, values: Vec<T>, order: Order) -> Result<Self, DataError> {
        Self::from_values(shape, values, order, true)
    }

    fn from_values(
        shape: Vec<usize>,
        mut values: Vec<T>,
        order: Order,
        hidden: bool,
    ) -> Result<Self, DataError> {
        let cells = check_shape(&shape)?.ok_or_else(|| DataError::TooLarge {
            shape: shape.clone(),
        })?;
        if cells != values.len() {
            return Err(DataError::Length {
                shape,
                expected: cells,
                got: values.len(),
            });
        }
        check_finite(&values, hidden, |at| unravel(at, &shape, order))?;
        if values.iter().all(|x| x.is_nan()) {
            return Err(DataError::NothingObserved);
        }
        let scale = rescale(&mut values);
        let grid = Grid {
            shape: shape.clone(),
            values,
            order,
        };
        let halves = Halves::new(&shape, order);
        Ok(Self::new(shape, Storage::Dense(grid, halves), scale))
    }

    /// Complete sparse data: cells that are not stored are zeros; duplicates are summed.
    ///
    /// # Errors
    ///
    /// [`DataError`]: order 0, an empty mode, lengths that disagree, an index outside the shape, a value that is not finite.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_tensor::{Coordinates, RealTensor};
    /// let x = RealTensor::sparse(Coordinates { shape: vec![9, 9], indices: vec![0, 8, 4, 4, 0, 8], values: vec![1.0, -2.0, 1.5] })?;
    /// assert_eq!((x.total(), x.squared_norm(), x.is_complete()), (0.5, 10.25, true));
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    pub fn sparse(entries: Coordinates<T>) -> Result<Self, DataError> {
        Self::from_entries(entries, Hidden::None)
    }

    /// Sparse data of which only the stored cells were observed; stored zeros are observations.
    ///
    /// # Errors
    ///
    /// As [`sparse`](Self::sparse); [`DataError::NothingObserved`] if nothing is stored.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_tensor::{Coordinates, RealTensor};
    /// let x = RealTensor::stored_only(Coordinates { shape: vec![2, 3], indices: vec![0, 0, 1, 1], values: vec![-5.0, 0.0] })?;
    /// assert_eq!((x.total(), x.is_complete()), (-5.0, false));             // two of six cells, one of them a 0
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    pub fn stored_only(entries: Coordinates<T>) -> Result<Self, DataError> {
        if entries.values.is_empty() {
            check_shape(&entries.shape)?;
            return Err(DataError::NothingObserved);
        }
        Self::from_entries(entries, Hidden::NotStored)
    }

    fn from_entries(mut entries: Coordinates<T>, hidden: Hidden<T>) -> Result<Self, DataError> {
        check_shape(&entries.shape)?;
        let order = entries.shape.len();
        if entries.indices.len() != order * entries.values.len() {
            return Err(DataError::Length {
                expected: order * entries.values.len(),
                got: entries.indices.len(),
                shape: entries.shape,
            });
        }
        if entries.values.len() > u32::MAX as usize {
            return Err(DataError::TooLarge {
                shape: entries.shape,
            });
        }
        for (at, &i) in entries.indices.iter().enumerate() {
            let (position, mode) = (at / order, at % order);
            if i as usize >= entries.shape[mode] {
                return Err(DataError::OutOfRange {
                    position,
                    mode,
                    index: i as usize,
                    size: entries.shape[mode],
                });
            }
        }
        check_finite(&entries.values, false, |e| {
            let index = &entries.indices[e * order..][..order];
            index.iter().map(|&i| i as usize).collect()
        })?;
        let scale = rescale(&mut entries.values);
        let cells = Sorted::new(&entries, matches!(hidden, Hidden::NotStored));
        Ok(Self::new(
            entries.shape,
            Storage::Sparse { cells, hidden },
            scale,
        ))
    }

    fn new(shape: Vec<usize>, storage: Storage<T>, scale: T) -> Self {
        let values = match &storage {
            Storage::Dense(grid, _) => &grid.values[..],
            Storage::Sparse { cells, .. } => cells.values(),
        };
        let seen = || values.iter().filter(|x| !x.is_nan());
        let total: CompensatedSum = seen().map(|x| x.to_f64()).collect();
        let squares: CompensatedSum = seen().map(|x| x.to_f64() * x.to_f64()).collect();
        let complete = match &storage {
            Storage::Dense(grid, _) => seen().count() == grid.values.len(),
            Storage::Sparse { cells, hidden } => match hidden {
                Hidden::None => true,
                Hidden::Listed(hidden) => hidden.stored() == 0,
                Hidden::NotStored => {
                    let cells_of = |n: usize, &m: &usize| n.checked_mul(m);
                    shape.iter().try_fold(1usize, cells_of) == Some(cells.stored())
                }
            },
        };
        Self {
            negative: seen().any(|&x| x < T::zero()),
            total: total.value(),
            squares: squares.value(),
            shape,
            storage,
            scale,
            complete,
        }
    }

    /// Size of each mode.
    ///
    /// ```
    /// use plca_tensor::{Order, RealTensor};
    /// let x = RealTensor::masked(vec![1, 3], vec![1.0, f64::NAN, -2.0], Order::RowMajor)?;
    /// assert_eq!(x.shape(), [1, 3]);
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The power of two by which the values as given were multiplied.
    ///
    /// ```
    /// use plca_tensor::{Order, RealTensor};
    /// let x = RealTensor::dense(vec![1, 2], vec![1.5 * 2f64.powi(-600), 0.0], Order::RowMajor)?;
    /// assert_eq!((x.scale(), x.total()), (2f64.powi(600), 1.5));
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    pub fn scale(&self) -> f64 {
        self.scale.to_f64()
    }

    /// Sum of the observed values as held.
    ///
    /// ```
    /// use plca_tensor::{Order, RealTensor};
    /// let x = RealTensor::masked(vec![1, 3], vec![1.0, f64::NAN, -2.0], Order::RowMajor)?;
    /// assert_eq!(x.total(), -1.0);
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    pub fn total(&self) -> f64 {
        self.total
    }

    /// Sum of the squares of the observed values as held.
    ///
    /// ```
    /// use plca_tensor::{Order, RealTensor};
    /// let x = RealTensor::masked(vec![1, 3], vec![1.0, f64::NAN, -2.0], Order::RowMajor)?;
    /// assert_eq!(x.squared_norm(), 5.0);
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    pub fn squared_norm(&self) -> f64 {
        self.squares
    }

    /// Whether every cell was observed.
    ///
    /// ```
    /// use plca_tensor::{Order, RealTensor};
    /// let x = RealTensor::masked(vec![1, 3], vec![1.0, f64::NAN, -2.0], Order::RowMajor)?;
    /// assert!(!x.is_complete());
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Whether some observed value is negative.
    ///
    /// ```
    /// use plca_tensor::{Order, RealTensor};
    /// let x = RealTensor::masked(vec![1, 3], vec![1.0, f64::NAN, -2.0], Order::RowMajor)?;
    /// assert!(x.has_negative());
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    pub fn has_negative(&self) -> bool {
        self.negative
    }

    /// Visits the observed values as held that are not 0, in a fixed order.
    ///
    /// ```
    /// use plca_tensor::{Order, RealTensor};
    /// let x = RealTensor::masked(vec![1, 3], vec![1.0, f64::NAN, -2.0], Order::RowMajor)?;
    /// let mut cells = Vec::new();
    /// x.for_each(&mut |index, value| cells.push((index[1], value)));
    /// assert_eq!(cells, [(0, 1.0), (2, -2.0)]);
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    pub fn for_each(&self, visit: &mut dyn FnMut(&[usize], f64)) {
        match &self.storage {
            Storage::Dense(grid, _) => {
                for (at, x) in grid.values.iter().enumerate() {
                    if !x.is_nan() && *x != T::zero() {
                        visit(&unravel(at, &self.shape, grid.order), x.to_f64());
                    }
                }
            }
            Storage::Sparse { cells, .. } => cells.for_each(&mut |index, x| {
                if x != T::zero() {
                    visit(index, x.to_f64());
                }
            }),
        }
    }
}
