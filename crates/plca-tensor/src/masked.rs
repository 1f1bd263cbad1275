//! Data of which some cells were not observed.
//!
//! Hidden values are never read: a dense hidden cell is overwritten with NaN, a sparse one dropped. Zero-filling
//! is not a treatment of missing data; the models use [`Observed::exposure`] instead ([SPEC 4]).

use nalgebra::DMatrix;

use crate::dense::{checked_grid, for_each_positive, unravel};
use crate::exposure::remaining;
use crate::kernel::aligned::Pool;
use crate::kernel::dense::Grid;
use crate::observed::{Pass, finite_total, require_mass};
use crate::sparse::{Cells, check_indices, mass};
use crate::{
    Coordinates, DenseTensor, Expected, Factor, Mask, Model, Observed, Order, Real, TensorError,
    Wanted,
};

/// A dense tensor some of whose cells are hidden.
///
/// ```
/// use plca_tensor::{MaskedTensor, Observed, Order};
/// let v = MaskedTensor::new(vec![2, 2], vec![1.0, f64::NAN, 2.0, 0.0], Order::RowMajor)?;
/// assert_eq!((v.total(), v.hidden()), (3.0, 1));
/// # Ok::<(), plca_tensor::TensorError>(())
/// ```
#[derive(Clone, Debug)]
pub struct MaskedTensor<T> {
    grid: Grid<T>,
    scale: T,
    total: f64,
    pool: Pool<T>,
    hidden: usize,
}

impl<T: Real> MaskedTensor<T> {
    /// From values in which NaN marks a hidden cell.
    ///
    /// # Errors
    ///
    /// As [`DenseTensor::new`]; [`TensorError::NoMass`] if no observed cell is positive.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_tensor::{MaskedTensor, Observed, Order};
    /// let v = MaskedTensor::new(vec![3], vec![1.0, f64::NAN, 2.0], Order::RowMajor)?;
    /// assert_eq!((v.total(), v.is_complete()), (3.0, false));
    /// # Ok::<(), plca_tensor::TensorError>(())
    /// ```
    pub fn new(shape: Vec<usize>, values: Vec<T>, order: Order) -> Result<Self, TensorError> {
        let (grid, scale, total) = checked_grid(shape, values, order, true)?;
        let hidden = grid.values.iter().filter(|x| x.is_nan()).count();
        Ok(Self {
            grid,
            scale,
            pool: Pool::default(),
            total,
            hidden,
        })
    }

    /// From values and a mask in the same memory order, `true` where the cell was observed. Values under the mask are not read.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), and [`TensorError::Length`] if the mask has another size.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_tensor::{MaskedTensor, Observed, Order};
    /// let v = MaskedTensor::with_mask(vec![3], vec![1.0, -99.0, 2.0], Order::RowMajor, &[true, false, true])?;
    /// assert_eq!(v.total(), 3.0);
    /// # Ok::<(), plca_tensor::TensorError>(())
    /// ```
    pub fn with_mask(
        shape: Vec<usize>,
        mut values: Vec<T>,
        order: Order,
        observed: &[bool],
    ) -> Result<Self, TensorError> {
        if observed.len() != values.len() {
            return Err(TensorError::Length {
                shape,
                expected: values.len(),
                got: observed.len(),
            });
        }
        for (x, &seen) in values.iter_mut().zip(observed) {
            if !seen {
                *x = T::lit(f64::NAN);
            }
        }
        Self::new(shape, values, order)
    }

    pub(crate) fn into_grid(self) -> (Grid<T>, T) {
        (self.grid, self.scale)
    }

    /// Number of hidden cells.
    ///
    /// ```
    /// use plca_tensor::{MaskedTensor, Order};
    /// let v = MaskedTensor::new(vec![2, 2], vec![1.0, f64::NAN, 2.0, 0.0], Order::RowMajor)?;
    /// assert_eq!(v.hidden(), 1);
    /// # Ok::<(), plca_tensor::TensorError>(())
    /// ```
    pub fn hidden(&self) -> usize {
        self.hidden
    }

    /// Whether one cell was observed.
    ///
    /// # Panics
    ///
    /// If `index` lies outside the shape.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_tensor::{MaskedTensor, Order};
    /// let v = MaskedTensor::new(vec![2, 2], vec![1.0, f64::NAN, 2.0, 0.0], Order::RowMajor)?;
    /// assert!(v.is_observed(&[1, 1]) && !v.is_observed(&[0, 1]));
    /// # Ok::<(), plca_tensor::TensorError>(())
    /// ```
    pub fn is_observed(&self, index: &[usize]) -> bool {
        !self.grid.values[crate::dense::position(index, &self.grid.shape, self.grid.order)].is_nan()
    }
}

impl<T: Real> From<DenseTensor<T>> for MaskedTensor<T> {
    /// Every cell observed.
    fn from(tensor: DenseTensor<T>) -> Self {
        let total = tensor.total();
        let (grid, scale) = tensor.into_grid();
        Self {
            grid,
            scale,
            pool: Pool::default(),
            total,
            hidden: 0,
        }
    }
}

impl<T: Real> Observed<T> for MaskedTensor<T> {
    fn shape(&self) -> &[usize] {
        &self.grid.shape
    }

    fn total(&self) -> f64 {
        self.total
    }

    fn is_complete(&self) -> bool {
        self.hidden == 0
    }

    fn for_each(&self, visit: &mut dyn FnMut(&[usize], f64)) {
        for_each_positive(&self.grid, self.scale, visit);
    }

    fn visit_mask(&self, visit: &mut dyn FnMut(&[usize])) -> Mask {
        for (position, x) in self.grid.values.iter().enumerate() {
            if x.is_nan() {
                visit(&unravel(position, &self.grid.shape, self.grid.order));
            }
        }
        Mask::Hidden
    }

    fn expect(&self, model: &Model<'_, T>, wanted: Wanted<'_>) -> Expected<T> {
        Pass::new(self.shape(), model, &self.pool).expect(
            &self.grid,
            1.0 / self.scale.to_f64(),
            self.total,
            wanted,
            |mode| self.marginal(mode),
        )
    }

    fn exposure(&self, model: &Model<'_, T>, modes: &[bool]) -> Vec<Option<DMatrix<T>>> {
        Pass::new(self.shape(), model, &self.pool).unit(&self.grid, modes)
    }

    fn multiplier(&self, model: &Model<'_, T>, mode: usize) -> DMatrix<T> {
        Pass::new(self.shape(), model, &self.pool).multiplier(
            &self.grid,
            1.0 / self.scale.to_f64(),
            mode,
        )
    }
}

/// Which cells of sparse data were observed.
#[derive(Clone, Debug)]
enum Pattern<T> {
    /// All but these.
    AllBut(Cells<T>),
    /// Those stored (zeros included), as for ratings.
    Stored,
}

/// Sparse data some of whose cells are hidden: either a list of hidden cells, or all cells that are not stored.
///
/// ```
/// use plca_tensor::{Coordinates, MaskedSparse, Observed};
/// let ratings = Coordinates { shape: vec![3, 2], indices: vec![0, 0, 1, 1, 2, 0], values: vec![4.0, 5.0, 0.0] };
/// let v = MaskedSparse::stored_only(ratings)?;        // the stored 0 is an observed 0
/// assert_eq!(v.total(), 9.0);
/// # Ok::<(), plca_tensor::TensorError>(())
/// ```
#[derive(Clone, Debug)]
pub struct MaskedSparse<T> {
    shape: Vec<usize>,
    cells: Cells<T>,
    pattern: Pattern<T>,
    /// Of every mode, the indices without an observed cell, where the hidden cells are listed.
    unseen: Vec<Vec<usize>>,
    scale: T,
    total: f64,
    pool: Pool<T>,
}

impl<T: Real> MaskedSparse<T> {
    /// Only the stored cells were observed; stored zeros are observations.
    ///
    /// # Errors
    ///
    /// As [`SparseTensor::new`](crate::SparseTensor::new).
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_tensor::{Coordinates, MaskedSparse, Observed};
    /// let ratings = Coordinates { shape: vec![2, 3], indices: vec![0, 0, 1, 1], values: vec![5.0, 0.0] };
    /// assert!(!MaskedSparse::stored_only(ratings)?.is_complete());     // two of six cells, one of them a 0
    /// # Ok::<(), plca_tensor::TensorError>(())
    /// ```
    pub fn stored_only(entries: Coordinates<T>) -> Result<Self, TensorError> {
        let shape = entries.shape.clone();
        Self::checked(shape, Cells::new(entries, true)?, Pattern::Stored)
    }

    /// Every cell was observed but those of `hidden` (its values do not matter). Entries at hidden cells are
    /// dropped unread.
    ///
    /// # Errors
    ///
    /// As [`SparseTensor::new`](crate::SparseTensor::new), for either list.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_tensor::{Coordinates, MaskedSparse, Observed};
    /// let counts = Coordinates { shape: vec![2, 3], indices: vec![0, 0, 1, 1], values: vec![5.0, 3.0] };
    /// let hidden = Coordinates { shape: vec![2, 3], indices: vec![1, 1, 1, 2], values: vec![0.0, 0.0] };
    /// assert_eq!(MaskedSparse::all_but(counts, hidden)?.total(), 5.0);
    /// # Ok::<(), plca_tensor::TensorError>(())
    /// ```
    pub fn all_but(
        mut entries: Coordinates<T>,
        mut hidden: Coordinates<T>,
    ) -> Result<Self, TensorError> {
        if hidden.shape != entries.shape {
            return Err(TensorError::Shape {
                what: "mask",
                got: hidden.shape,
                expected: entries.shape,
            });
        }
        check_indices(&entries)?;
        let order = entries.shape.len();
        let listed: std::collections::HashSet<&[u32]> =
            hidden.indices.chunks_exact(order).collect();
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
        let shape = entries.shape.clone();
        let hidden = Cells::new(hidden, false)?.0;
        let unseen = wholly_listed(&shape, &hidden);
        let pattern = Pattern::AllBut(hidden);
        let checked = Self::checked(shape, Cells::new(entries, false)?, pattern)?;
        Ok(Self { unseen, ..checked })
    }

    /// Stored cells, the hidden ones if they are listed, and the scale.
    pub(crate) fn parts(&self) -> (&Cells<T>, Option<&Cells<T>>, T) {
        let hidden = match &self.pattern {
            Pattern::AllBut(hidden) => Some(hidden),
            Pattern::Stored => None,
        };
        (&self.cells, hidden, self.scale)
    }

    fn checked(
        shape: Vec<usize>,
        (cells, scale): (Cells<T>, T),
        pattern: Pattern<T>,
    ) -> Result<Self, TensorError> {
        let (positive, total) = mass(&cells);
        require_mass(positive)?;
        Ok(Self {
            shape,
            cells,
            pattern,
            unseen: Vec::new(),
            scale,
            pool: Pool::default(),
            total: finite_total::<T>(total / scale.to_f64())?,
        })
    }
}

/// Of every mode, the indices all of whose cells are listed.
fn wholly_listed<T: Real>(shape: &[usize], cells: &Cells<T>) -> Vec<Vec<usize>> {
    let mut listed: Vec<Vec<usize>> = shape.iter().map(|&size| vec![0; size]).collect();
    cells.for_each(&mut |index, _| {
        for (listed, &i) in listed.iter_mut().zip(index) {
            listed[i] += 1;
        }
    });
    let cells = shape.iter().fold(1usize, |n, &size| n.saturating_mul(size));
    (listed.into_iter().zip(shape))
        .map(|(listed, &size)| (0..size).filter(|&i| listed[i] == cells / size).collect())
        .collect()
}

impl<T: Real> Observed<T> for MaskedSparse<T> {
    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn total(&self) -> f64 {
        self.total
    }

    fn is_complete(&self) -> bool {
        match &self.pattern {
            Pattern::AllBut(hidden) => hidden.stored() == 0,
            Pattern::Stored => {
                let cells = self.shape.iter().try_fold(1usize, |n, &m| n.checked_mul(m));
                cells == Some(self.cells.stored())
            }
        }
    }

    fn for_each(&self, visit: &mut dyn FnMut(&[usize], f64)) {
        let scale = self.scale.to_f64();
        self.cells.for_each(&mut |index, x| {
            if x > T::zero() {
                visit(index, x.to_f64() / scale);
            }
        });
    }

    fn visit_mask(&self, visit: &mut dyn FnMut(&[usize])) -> Mask {
        let (cells, which) = match &self.pattern {
            Pattern::AllBut(hidden) => (hidden, Mask::Hidden),
            Pattern::Stored => (&self.cells, Mask::Observed),
        };
        cells.for_each(&mut |index, _| visit(index));
        which
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
        let pass = Pass::new(&self.shape, model, &self.pool);
        match &self.pattern {
            Pattern::Stored => pass.unit(&self.cells, modes),
            Pattern::AllBut(hidden) => {
                let (whole, listed) = (model.exposures(modes), pass.unit(hidden, modes));
                let mut all = remaining(model, hidden, whole, listed);
                for (mode, all) in all.iter_mut().enumerate() {
                    let Some(all) = all else { continue };
                    // Rounding must not turn "nothing observed" into a mass.
                    for &i in &self.unseen[mode] {
                        match model.factors[mode] {
                            Factor::Columns(_) => all.row_mut(i).fill(T::zero()),
                            Factor::Rows(_) => all.column_mut(i).fill(T::zero()),
                        }
                    }
                }
                all
            }
        }
    }

    fn multiplier(&self, model: &Model<'_, T>, mode: usize) -> DMatrix<T> {
        Pass::new(&self.shape, model, &self.pool).multiplier(
            &self.cells,
            1.0 / self.scale.to_f64(),
            mode,
        )
    }
}
