//! Sparse tensors of any order.

use nalgebra::DMatrix;

use crate::dense::check_shape;
use crate::kernel::aligned::Pool;
use crate::kernel::{Accumulate, Rule, Sums, fibres::Fibres, panel::Panel, strata::Strata};
use crate::observed::{Pass, data_scale, finite_total, require_mass, whole_exposures};
use crate::{CompensatedSum, Expected, Model, Observed, Real, TensorError, Wanted};

/// Stored cells in coordinate form, in any order, duplicates allowed (they are summed).
///
/// ```
/// use plca_tensor::{Coordinates, SparseTensor};
/// let c = Coordinates { shape: vec![4, 3], indices: vec![0, 1,  3, 2,  0, 1], values: vec![1.0, 2.0, 0.5] };
/// let v = SparseTensor::new(c)?;
/// assert_eq!((v.stored(), v.total()), (2, 3.5));
/// # Ok::<(), plca_tensor::TensorError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Coordinates<T> {
    /// Size of each mode; the product may exceed `u64::MAX`.
    pub shape: Vec<usize>,
    /// `order` numbers for each entry, entry after entry.
    pub indices: Vec<u32>,
    /// One number per entry.
    pub values: Vec<T>,
}

/// Stored cells arranged for the kernels: strata of tiles for matrices, fibres for other orders.
#[derive(Clone, Debug)]
pub(crate) enum Cells<T> {
    Matrix(Strata<T>),
    Tensor(Fibres<T>),
}

impl<T: Real> Cells<T> {
    /// Checks and arranges the entries; duplicates are summed, zeros dropped unless `keep_zeros`. Also returns the power of two
    /// by which the values were multiplied.
    pub(crate) fn new(
        mut entries: Coordinates<T>,
        keep_zeros: bool,
    ) -> Result<(Self, T), TensorError> {
        check_indices(&entries)?;
        let order = entries.shape.len();
        let refused = |value: &T| !(value.is_finite() && *value >= T::zero());
        if let Some(at) = entries.values.iter().position(refused) {
            let index = &entries.indices[at * order..(at + 1) * order];
            return Err(TensorError::Value {
                index: index.iter().map(|&i| i as usize).collect(),
                value: entries.values[at].to_f64(),
            });
        }
        // Only after the check: a message shows the value as given.
        let scale = rescale(&mut entries.values);
        let cells = if order == 2 {
            Self::Matrix(Strata::new(entries, keep_zeros))
        } else {
            Self::Tensor(Fibres::new(entries, keep_zeros))
        };
        Ok((cells, scale))
    }

    pub(crate) fn stored(&self) -> usize {
        match self {
            Self::Matrix(s) => s.stored(),
            Self::Tensor(s) => s.stored(),
        }
    }

    /// Visits every stored cell in a fixed order.
    pub(crate) fn for_each(&self, visit: &mut dyn FnMut(&[usize], T)) {
        match self {
            Self::Matrix(s) => s.for_each(visit),
            Self::Tensor(s) => s.for_each(visit),
        }
    }
}

impl<T: Real> Accumulate<T> for Cells<T> {
    fn accumulate(&self, panels: &[Panel<T>], rule: Rule, wanted: &[bool], log: bool) -> Sums<T> {
        match self {
            Self::Matrix(s) => s.accumulate(panels, rule, wanted, log),
            Self::Tensor(s) => s.accumulate(panels, rule, wanted, log),
        }
    }
}

/// Refuses lengths that disagree and indices outside the shape.
pub(crate) fn check_indices<T>(entries: &Coordinates<T>) -> Result<(), TensorError> {
    let Coordinates {
        shape,
        indices,
        values,
    } = entries;
    check_shape(shape)?;
    let order = shape.len();
    if indices.len() != order * values.len() {
        return Err(TensorError::Length {
            expected: order * values.len(),
            got: indices.len(),
            shape: shape.clone(),
        });
    }
    if values.len() > u32::MAX as usize {
        return Err(TensorError::TooLarge {
            shape: shape.clone(),
        });
    }
    for (position, index) in indices.chunks_exact(order).enumerate() {
        for (mode, (&i, &size)) in index.iter().zip(shape).enumerate() {
            if i as usize >= size {
                return Err(TensorError::OutOfRange {
                    position,
                    mode,
                    index: i as usize,
                    size,
                });
            }
        }
    }
    Ok(())
}

/// A non-negative sparse tensor of order at least 1; cells that are not stored are zeros.
///
/// Memory: about 12 bytes per entry in `f64`, whatever the product of the shape.
///
/// See [`Coordinates`] for an example.
///
/// ```
/// use plca_tensor::{Coordinates, Observed, SparseTensor};
/// let v = SparseTensor::new(Coordinates { shape: vec![1000, 1000, 1000], indices: vec![7, 0, 999], values: vec![2.0] })?;
/// assert_eq!((v.stored(), v.total(), v.is_complete()), (1, 2.0, true));
/// # Ok::<(), plca_tensor::TensorError>(())
/// ```
#[derive(Clone, Debug)]
pub struct SparseTensor<T> {
    pub(crate) shape: Vec<usize>,
    pub(crate) cells: Cells<T>,
    /// Stored values are those given times this power of two.
    pub(crate) scale: T,
    total: f64,
    pool: Pool<T>,
}

/// Brings values into a comfortable scale; returns that scale.
fn rescale<T: Real>(values: &mut [T]) -> T {
    let largest = (values.iter()).fold(T::zero(), |a, &x| if x > a { x } else { a });
    let scale = data_scale(largest);
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
    /// [`TensorError`]: order 0, an empty mode, lengths that disagree, an index outside the shape, a value that
    /// is negative or not finite (the first one stored is named), no positive value, a sum that overflows.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_tensor::{Coordinates, SparseTensor};
    /// let v = SparseTensor::new(Coordinates { shape: vec![9, 9], indices: vec![0, 8, 4, 4, 0, 8], values: vec![1.0, 2.0, 1.5] })?;
    /// assert_eq!(v.stored(), 2);                                      // (0, 8) twice is one entry
    /// # Ok::<(), plca_tensor::TensorError>(())
    /// ```
    pub fn new(entries: Coordinates<T>) -> Result<Self, TensorError> {
        let shape = entries.shape.clone();
        let (cells, scale) = Cells::new(entries, false)?;
        let (positive, total) = mass(&cells);
        require_mass(positive)?;
        Ok(Self {
            shape,
            cells,
            scale,
            pool: Pool::default(),
            total: finite_total::<T>(total / scale.to_f64())?,
        })
    }

    /// Number of stored entries, duplicates merged.
    ///
    /// ```
    /// use plca_tensor::{Coordinates, SparseTensor};
    /// let v = SparseTensor::new(Coordinates { shape: vec![9, 9], indices: vec![0, 8, 4, 4, 0, 8], values: vec![1.0, 2.0, 1.5] })?;
    /// assert_eq!(v.stored(), 2);
    /// # Ok::<(), plca_tensor::TensorError>(())
    /// ```
    pub fn stored(&self) -> usize {
        self.cells.stored()
    }

    /// `v`: sum of all entries.
    ///
    /// ```
    /// use plca_tensor::{Coordinates, SparseTensor};
    /// let v = SparseTensor::new(Coordinates { shape: vec![9, 9], indices: vec![0, 8, 4, 4, 0, 8], values: vec![1.0, 2.0, 1.5] })?;
    /// assert_eq!(v.total(), 4.5);
    /// # Ok::<(), plca_tensor::TensorError>(())
    /// ```
    pub fn total(&self) -> f64 {
        self.total
    }

    /// The stored entries, duplicates merged, in the order of [`Observed::for_each`].
    ///
    /// ```
    /// use plca_tensor::{Coordinates, SparseTensor};
    /// let v = SparseTensor::new(Coordinates { shape: vec![4, 3], indices: vec![3, 2, 0, 1, 3, 2], values: vec![1.0, 2.0, 0.5] })?;
    /// let merged = Coordinates { shape: vec![4, 3], indices: vec![0, 1, 3, 2], values: vec![2.0, 1.5] };
    /// assert_eq!(v.to_coordinates(), merged);
    /// # Ok::<(), plca_tensor::TensorError>(())
    /// ```
    pub fn to_coordinates(&self) -> Coordinates<T> {
        let (mut indices, mut values) = (Vec::new(), Vec::with_capacity(self.stored()));
        self.for_each(&mut |index, value| {
            indices.extend(index.iter().map(|&i| i as u32));
            values.push(T::lit(value));
        });
        Coordinates {
            shape: self.shape.clone(),
            indices,
            values,
        }
    }
}

/// Whether any stored value is positive, and their sum.
pub(crate) fn mass<T: Real>(cells: &Cells<T>) -> (bool, f64) {
    let mut sum = CompensatedSum::default();
    cells.for_each(&mut |_, x| sum += x.to_f64());
    (sum.value() > 0.0, sum.value())
}

impl<T: Real> Observed<T> for SparseTensor<T> {
    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn total(&self) -> f64 {
        self.total
    }

    fn is_complete(&self) -> bool {
        true
    }

    fn for_each(&self, visit: &mut dyn FnMut(&[usize], f64)) {
        let scale = self.scale.to_f64();
        self.cells
            .for_each(&mut |index, x| visit(index, x.to_f64() / scale));
    }

    fn expect(&self, model: &Model<'_, T>, wanted: Wanted<'_>) -> Expected<T> {
        Pass::new(&self.shape, model, &self.pool).expect(
            &self.cells,
            1.0 / self.scale.to_f64(),
            self.total,
            wanted,
            |mode| self.marginal(mode),
        )
    }

    fn exposure(&self, model: &Model<'_, T>, modes: &[bool]) -> Vec<Option<DMatrix<T>>> {
        whole_exposures(&self.shape, model, modes)
    }

    fn multiplier(&self, model: &Model<'_, T>, mode: usize) -> DMatrix<T> {
        Pass::new(&self.shape, model, &self.pool).multiplier(
            &self.cells,
            1.0 / self.scale.to_f64(),
            mode,
        )
    }
}
