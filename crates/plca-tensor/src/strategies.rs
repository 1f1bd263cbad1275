//! Strategies for property tests of models (feature `proptest-support`).
//!
//! A [`Table`] holds small data cell by cell and turns them into every storage, so that a property can compare
//! them; a [`Start`] holds factors on the simplex; both can be permuted.
//!
//! ```
//! use plca_tensor::{Data, Order, strategies};
//! use proptest::prelude::*;
//!
//! proptest! {
//!     // In a test module: `#[test]` here.
//!     fn dense_and_sparse_have_one_mass(table in strategies::tables::<f64>(1..=3, 1..=5)) {
//!         let (dense, sparse) = (table.dense(Order::RowMajor).unwrap(), table.sparse().unwrap());
//!         prop_assert!((dense.total() - sparse.total()).abs() <= 1e-12 * sparse.total());
//!     }
//! }
//! dense_and_sparse_have_one_mass();
//! ```

mod blocks;
mod claims;
mod real;

use std::ops::RangeInclusive;

use nalgebra::{DMatrix, DVector};
use proptest::prelude::*;

use crate::data::{position, unravel};
use crate::{Coordinates, DataError, DenseTensor, Order, Real, SparseTensor, normalise_columns};

pub use blocks::KeptBlocks;
pub use claims::{check_written, overclaimed, written};
pub use real::{real_problems, real_table_of_shape, signed_table_of_shape};

/// Small data, cell by cell.
///
/// ```
/// use plca_tensor::{Data, Order, strategies::Table};
/// let table = Table { shape: vec![2, 2], values: vec![1.0, 2.0, 0.0, 5.0], observed: vec![true, true, true, false] };
/// assert_eq!(table.masked(Order::RowMajor)?.total(), 3.0);
/// assert_eq!(table.all_but()?.total(), table.stored_only()?.total());
/// # Ok::<(), plca_tensor::DataError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Table<T> {
    /// Size of each mode.
    pub shape: Vec<usize>,
    /// All cells in row-major order, hidden ones included.
    pub values: Vec<T>,
    /// Which cells were observed, in the same order.
    pub observed: Vec<bool>,
}

impl<T: Real> Table<T> {
    /// Multi-index of a position in [`values`](Self::values).
    ///
    /// ```
    /// use plca_tensor::strategies::Table;
    /// let table = Table { shape: vec![2, 2], values: vec![1.0, 2.0, 0.0, 5.0], observed: vec![true, true, true, false] };
    /// assert_eq!(table.index(2), [1, 0]);
    /// ```
    pub fn index(&self, at: usize) -> Vec<usize> {
        unravel(at, &self.shape, Order::RowMajor)
    }

    /// Coordinates of the cells for which `keep` holds, zeros included.
    ///
    /// ```
    /// use plca_tensor::strategies::Table;
    /// let table = Table { shape: vec![2, 2], values: vec![1.0, 2.0, 0.0, 5.0], observed: vec![true, true, true, false] };
    /// let entries = table.coordinates(|at| at != 1);
    /// assert_eq!((entries.indices, entries.values), (vec![0, 0, 1, 0, 1, 1], vec![1.0, 0.0, 5.0]));
    /// ```
    pub fn coordinates(&self, keep: impl Fn(usize) -> bool) -> Coordinates<T> {
        let kept = (0..self.values.len()).filter(|&at| keep(at));
        let indices = kept.clone().flat_map(|at| self.index(at));
        Coordinates {
            shape: self.shape.clone(),
            indices: indices.map(|i| i as u32).collect(),
            values: kept.map(|at| self.values[at]).collect(),
        }
    }

    /// All cells, dense, the mask ignored.
    ///
    /// # Errors
    ///
    /// [`DataError`] if the fields were changed to something that a tensor refuses; so for all storages.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_tensor::{Order, strategies::Table};
    /// let table = Table { shape: vec![2, 2], values: vec![1.0, 2.0, 0.0, 5.0], observed: vec![true, true, true, false] };
    /// assert_eq!(table.dense(Order::ColumnMajor)?.get(&[0, 1]), 2.0);
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    pub fn dense(&self, order: Order) -> Result<DenseTensor<T>, DataError> {
        DenseTensor::new(
            self.shape.clone(),
            self.in_order(&self.values, order),
            order,
        )
    }

    /// All cells that are not 0, sparse, the mask ignored.
    ///
    /// # Errors
    ///
    /// As [`dense`](Self::dense).
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_tensor::{Data, strategies::Table};
    /// let table = Table { shape: vec![2, 2], values: vec![1.0, 2.0, 0.0, 5.0], observed: vec![true, true, true, false] };
    /// assert_eq!(table.sparse()?.summary().nnz, 3);
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    pub fn sparse(&self) -> Result<SparseTensor<T>, DataError> {
        SparseTensor::new(self.coordinates(|at| self.values[at] != T::zero()))
    }

    /// Observed cells, dense.
    ///
    /// # Errors
    ///
    /// As [`dense`](Self::dense).
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_tensor::{Order, strategies::Table};
    /// let table = Table { shape: vec![2, 2], values: vec![1.0, 2.0, 0.0, 5.0], observed: vec![true, true, true, false] };
    /// assert_eq!(table.masked(Order::RowMajor)?.hidden(), 1);
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    pub fn masked(&self, order: Order) -> Result<DenseTensor<T>, DataError> {
        DenseTensor::with_mask(
            self.shape.clone(),
            self.in_order(&self.values, order),
            order,
            &self.in_order(&self.observed, order),
        )
    }

    /// Observed cells stored, zeros included; what is not stored is hidden.
    ///
    /// # Errors
    ///
    /// As [`dense`](Self::dense).
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_tensor::{Data, strategies::Table};
    /// let table = Table { shape: vec![2, 2], values: vec![1.0, 2.0, 0.0, 5.0], observed: vec![true, true, true, false] };
    /// let v = table.stored_only()?;
    /// assert_eq!((v.total(), v.is_complete()), (3.0, false));
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    pub fn stored_only(&self) -> Result<SparseTensor<T>, DataError> {
        SparseTensor::stored_only(self.coordinates(|at| self.observed[at]))
    }

    /// Cells that are not 0 stored, hidden ones listed.
    ///
    /// # Errors
    ///
    /// As [`dense`](Self::dense).
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_tensor::{Data, strategies::Table};
    /// let table = Table { shape: vec![2, 2], values: vec![1.0, 2.0, 0.0, 5.0], observed: vec![true, true, true, false] };
    /// let v = table.all_but()?;
    /// assert_eq!((v.total(), v.is_complete()), (3.0, false));
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    pub fn all_but(&self) -> Result<SparseTensor<T>, DataError> {
        SparseTensor::all_but(
            self.coordinates(|at| self.values[at] != T::zero()),
            self.coordinates(|at| !self.observed[at]),
        )
    }

    /// The same cells, all of them observed.
    ///
    /// ```
    /// use plca_tensor::strategies::Table;
    /// let table = Table { shape: vec![2, 2], values: vec![1.0, 2.0, 0.0, 5.0], observed: vec![true, true, true, false] };
    /// assert_eq!(table.unmasked().observed, [true; 4]);
    /// ```
    pub fn unmasked(mut self) -> Self {
        self.observed.fill(true);
        self
    }

    /// Every value times `scale`.
    ///
    /// ```
    /// use plca_tensor::strategies::Table;
    /// let table = Table { shape: vec![2, 2], values: vec![1.0, 2.0, 0.0, 5.0], observed: vec![true, true, true, false] };
    /// assert_eq!(table.scaled(0.5).values, [0.5, 1.0, 0.0, 2.5]);
    /// ```
    pub fn scaled(mut self, scale: T) -> Self {
        self.values.iter_mut().for_each(|x| *x *= scale);
        self
    }

    /// Index `i` of mode `mode` becomes what was index `order[i]`.
    ///
    /// # Panics
    ///
    /// If `order` is not a permutation of the mode's indices; so for [`permute_modes`](Self::permute_modes).
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_tensor::strategies::Table;
    /// let table = Table { shape: vec![2, 2], values: vec![1.0, 2.0, 0.0, 5.0], observed: vec![true, true, true, false] };
    /// assert_eq!(table.permute_mode(1, &[1, 0]).values, [2.0, 1.0, 5.0, 0.0]);
    /// ```
    pub fn permute_mode(&self, mode: usize, order: &[usize]) -> Self {
        assert_eq!(order.len(), self.shape[mode], "one number per index");
        self.rearranged(self.shape.clone(), |index| index[mode] = order[index[mode]])
    }

    /// Of mode `mode` these indices alone, in this order; one may come more than once.
    ///
    /// # Panics
    ///
    /// If there is no such index.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_tensor::strategies::Table;
    /// let table = Table { shape: vec![2, 2], values: vec![1.0, 2.0, 0.0, 5.0], observed: vec![true, true, true, false] };
    /// assert_eq!(table.select(1, &[1]).values, [2.0, 5.0]);
    /// ```
    pub fn select(&self, mode: usize, indices: &[usize]) -> Self {
        let mut shape = self.shape.clone();
        shape[mode] = indices.len();
        self.rearranged(shape, |index| index[mode] = indices[index[mode]])
    }

    /// Mode `m` becomes what was mode `order[m]`.
    ///
    /// # Panics
    ///
    /// If `order` is not a permutation of the modes.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_tensor::strategies::Table;
    /// let table = Table { shape: vec![2, 2], values: vec![1.0, 2.0, 0.0, 5.0], observed: vec![true, true, true, false] };
    /// assert_eq!(table.permute_modes(&[1, 0]).values, [1.0, 0.0, 2.0, 5.0]);          // transposed
    /// ```
    pub fn permute_modes(&self, order: &[usize]) -> Self {
        assert_eq!(order.len(), self.shape.len(), "one number per mode");
        let shape = order.iter().map(|&m| self.shape[m]).collect();
        self.rearranged(shape, |index| {
            let new = index.to_vec();
            order.iter().zip(new).for_each(|(&m, i)| index[m] = i);
        })
    }

    /// A table of another shape; `source` turns an index into the one whose cell goes there.
    fn rearranged(&self, shape: Vec<usize>, source: impl Fn(&mut [usize])) -> Self {
        let from: Vec<usize> = (0..shape.iter().product())
            .map(|at| {
                let mut index = unravel(at, &shape, Order::RowMajor);
                source(&mut index);
                position(&index, &self.shape, Order::RowMajor)
            })
            .collect();
        Self {
            values: from.iter().map(|&at| self.values[at]).collect(),
            observed: from.iter().map(|&at| self.observed[at]).collect(),
            shape,
        }
    }

    fn in_order<V: Copy>(&self, row_major: &[V], order: Order) -> Vec<V> {
        let index = |at| unravel(at, &self.shape, order);
        let from = |at| position(&index(at), &self.shape, Order::RowMajor);
        (0..row_major.len()).map(|at| row_major[from(at)]).collect()
    }
}

/// Shapes with a number of modes within `orders` and sizes within `sizes`.
///
/// ```
/// use plca_tensor::strategies;
/// use proptest::{strategy::{Strategy, ValueTree}, test_runner::TestRunner};
/// let shape = strategies::shapes(2..=3, 4..=4).new_tree(&mut TestRunner::default()).unwrap().current();
/// assert!(shape == [4, 4] || shape == [4, 4, 4]);
/// ```
pub fn shapes(
    orders: RangeInclusive<usize>,
    sizes: RangeInclusive<usize>,
) -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(sizes, orders)
}

/// One value: often 0, else a small count, a number near 1, or one of several orders of magnitude less.
fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        3 => Just(0.0),
        2 => (1..9u8).prop_map(f64::from),
        4 => 0.05..10.0,
        1 => (-6.0..0.0).prop_map(|e| 10f64.powf(e)),
    ]
}

/// A mode and one of its indices.
fn slices(shape: Vec<usize>) -> impl Strategy<Value = (usize, usize)> {
    (0..shape.len()).prop_flat_map(move |mode| (Just(mode), 0..shape[mode]))
}

/// Non-negative data of a given shape: zeros, perhaps one slice of zeros, about a quarter of the cells hidden. At least one observed
/// cell is positive.
///
/// ```
/// use plca_tensor::strategies;
/// use proptest::{strategy::{Strategy, ValueTree}, test_runner::TestRunner};
/// let table = strategies::table_of_shape::<f64>(vec![2, 3]).new_tree(&mut TestRunner::default()).unwrap().current();
/// assert_eq!((table.values.len(), table.observed.len()), (6, 6));
/// ```
pub fn table_of_shape<T: Real>(shape: Vec<usize>) -> impl Strategy<Value = Table<T>> {
    let cells = shape.iter().product();
    let slice = slices(shape.clone());
    (
        prop::collection::vec(value(), cells),
        prop::collection::vec(prop::bool::weighted(0.75), cells),
        prop::option::weighted(0.3, slice),
        0..cells,
    )
        .prop_map(move |(values, observed, empty, positive)| {
            let mut table = Table {
                shape: shape.clone(),
                values: values.into_iter().map(T::lit).collect(),
                observed,
            };
            if let Some((mode, i)) = empty {
                for at in (0..cells).filter(|&at| unravel(at, &shape, Order::RowMajor)[mode] == i) {
                    table.values[at] = T::zero();
                }
            }
            if !(table.values.iter().zip(&table.observed)).any(|(&v, &seen)| seen && v > T::zero())
            {
                table.values[positive] = T::one();
                table.observed[positive] = true;
            }
            table
        })
}

/// Non-negative data of any shape; see [`shapes`] and [`table_of_shape`].
///
/// ```
/// use plca_tensor::strategies;
/// use proptest::{strategy::{Strategy, ValueTree}, test_runner::TestRunner};
/// let table = strategies::tables::<f32>(2..=2, 3..=3).new_tree(&mut TestRunner::default()).unwrap().current();
/// assert_eq!(table.shape, [3, 3]);
/// ```
pub fn tables<T: Real>(
    orders: RangeInclusive<usize>,
    sizes: RangeInclusive<usize>,
) -> impl Strategy<Value = Table<T>> {
    shapes(orders, sizes).prop_flat_map(table_of_shape)
}

/// Powers of two, from nearly subnormal to nearly overflowing: scaling by one changes no bit of a mantissa.
///
/// ```
/// use plca_tensor::strategies;
/// use proptest::{strategy::{Strategy, ValueTree}, test_runner::TestRunner};
/// let scale: f32 = strategies::scales().new_tree(&mut TestRunner::default()).unwrap().current();
/// assert!(scale > 0.0 && scale.log2().fract() == 0.0);
/// ```
pub fn scales<T: Real>() -> impl Strategy<Value = T> {
    let most = T::MAX_EXPONENT - 26;
    (-most..=most).prop_map(|e| T::lit(2f64.powi(e)))
}

/// A model to start from: positive, weights and columns summing to 1.
///
/// ```
/// use nalgebra::{DVector, dmatrix};
/// use plca_tensor::strategies::Start;
/// let start = Start { weights: DVector::from_vec(vec![0.25, 0.75]), factors: vec![dmatrix![0.5, 1.0; 0.5, 0.0]] };
/// assert_eq!(start.permute_components(&[1, 0]).weights.as_slice(), [0.75, 0.25]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Start<T: Real> {
    /// `P(z)`.
    pub weights: DVector<T>,
    /// `P(x_j | z)` for every mode: `I_j x K`.
    pub factors: Vec<DMatrix<T>>,
}

impl<T: Real> Start<T> {
    /// Component `z` becomes what was component `order[z]`.
    ///
    /// # Panics
    ///
    /// If `order` is not a permutation of the components; so for the other permutations.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::{DVector, dmatrix};
    /// use plca_tensor::strategies::Start;
    /// let start = Start { weights: DVector::from_vec(vec![0.25, 0.75]), factors: vec![dmatrix![0.5, 1.0; 0.5, 0.0]] };
    /// assert_eq!(start.permute_components(&[1, 0]).factors[0], dmatrix![1.0, 0.5; 0.0, 0.5]);
    /// ```
    pub fn permute_components(&self, order: &[usize]) -> Self {
        assert_eq!(order.len(), self.weights.len(), "one number per component");
        Self {
            weights: DVector::from_fn(order.len(), |z, _| self.weights[order[z]]),
            factors: (self.factors.iter().map(|f| f.select_columns(order))).collect(),
        }
    }

    /// Index `i` of mode `mode` becomes what was index `order[i]`.
    ///
    /// # Panics
    ///
    /// If `order` is not a permutation of the mode's indices.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::{DVector, dmatrix};
    /// use plca_tensor::strategies::Start;
    /// let start = Start { weights: DVector::from_vec(vec![0.25, 0.75]), factors: vec![dmatrix![0.5, 1.0; 0.5, 0.0]] };
    /// assert_eq!(start.permute_mode(0, &[1, 0]).factors[0], dmatrix![0.5, 0.0; 0.5, 1.0]);
    /// ```
    pub fn permute_mode(&self, mode: usize, order: &[usize]) -> Self {
        assert_eq!(
            order.len(),
            self.factors[mode].nrows(),
            "one number per index"
        );
        let mut new = self.clone();
        new.factors[mode] = self.factors[mode].select_rows(order);
        new
    }

    /// Mode `m` becomes what was mode `order[m]`.
    ///
    /// # Panics
    ///
    /// If `order` is not a permutation of the modes.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::{DVector, dmatrix};
    /// use plca_tensor::strategies::Start;
    /// let start = Start { weights: DVector::from_vec(vec![1.0]), factors: vec![dmatrix![0.5; 0.5], dmatrix![0.25; 0.75]] };
    /// assert_eq!(start.permute_modes(&[1, 0]).factors[0], dmatrix![0.25; 0.75]);
    /// ```
    pub fn permute_modes(&self, order: &[usize]) -> Self {
        assert_eq!(order.len(), self.factors.len(), "one number per mode");
        Self {
            weights: self.weights.clone(),
            factors: order.iter().map(|&m| self.factors[m].clone()).collect(),
        }
    }
}

/// Matrices whose columns are positive and sum to 1.
///
/// ```
/// use plca_tensor::strategies;
/// use proptest::{strategy::{Strategy, ValueTree}, test_runner::TestRunner};
/// let m = strategies::stochastic::<f64>(3, 2).new_tree(&mut TestRunner::default()).unwrap().current();
/// assert!(m.column_iter().all(|column| (column.sum() - 1.0).abs() < 1e-12));
/// ```
pub fn stochastic<T: Real>(rows: usize, columns: usize) -> impl Strategy<Value = DMatrix<T>> {
    prop::collection::vec(0.05..1.0f64, rows * columns).prop_map(move |values| {
        let mut m = DMatrix::from_iterator(rows, columns, values.into_iter().map(T::lit));
        normalise_columns(&mut m);
        m
    })
}

/// Starts for data of a shape and a number of components.
///
/// ```
/// use plca_tensor::strategies;
/// use proptest::{strategy::{Strategy, ValueTree}, test_runner::TestRunner};
/// let start = strategies::starts::<f64>(&[3, 4], 2).new_tree(&mut TestRunner::default()).unwrap().current();
/// assert_eq!(start.factors[1].shape(), (4, 2));
/// assert!((start.weights.sum() - 1.0).abs() < 1e-15);
/// ```
pub fn starts<T: Real>(
    shape: &[usize],
    components: usize,
) -> impl Strategy<Value = Start<T>> + use<T> {
    let factors: Vec<_> = (shape.iter())
        .map(|&n| stochastic::<T>(n, components).boxed())
        .collect();
    (stochastic::<T>(components, 1), factors).prop_map(|(weights, factors)| Start {
        weights: DVector::from_column_slice(weights.as_slice()),
        factors,
    })
}

/// Non-negative data with a start for them.
///
/// ```
/// use plca_tensor::strategies;
/// use proptest::{strategy::{Strategy, ValueTree}, test_runner::TestRunner};
/// let (table, start) = strategies::problems::<f64>(2..=2, 1..=4, 3..=3).new_tree(&mut TestRunner::default()).unwrap().current();
/// assert_eq!(start.factors[1].shape(), (table.shape[1], 3));
/// ```
pub fn problems<T: Real>(
    orders: RangeInclusive<usize>,
    sizes: RangeInclusive<usize>,
    components: RangeInclusive<usize>,
) -> impl Strategy<Value = (Table<T>, Start<T>)> {
    starting(tables::<T>(orders, sizes), components)
}

/// Adds a start to data.
fn starting<T: Real>(
    tables: impl Strategy<Value = Table<T>>,
    components: RangeInclusive<usize>,
) -> impl Strategy<Value = (Table<T>, Start<T>)> {
    (tables, components).prop_flat_map(|(table, k)| {
        let start = starts::<T>(&table.shape, k);
        (Just(table), start)
    })
}

/// Permutations of `0..n`.
///
/// ```
/// use plca_tensor::strategies;
/// use proptest::{strategy::{Strategy, ValueTree}, test_runner::TestRunner};
/// let mut order = strategies::permutations(4).new_tree(&mut TestRunner::default()).unwrap().current();
/// order.sort();
/// assert_eq!(order, [0, 1, 2, 3]);
/// ```
pub fn permutations(n: usize) -> impl Strategy<Value = Vec<usize>> {
    Just((0..n).collect::<Vec<_>>()).prop_shuffle()
}
