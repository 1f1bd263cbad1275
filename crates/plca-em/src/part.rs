//! Data with some of their counts left out.

use nalgebra::DMatrix;
use plca_tensor::{
    Coordinates, DenseTensor, Expected, Mask, Model, Observed, Order, Real, SparseTensor,
    TensorError, Wanted,
};

/// Values that are kept of other data: the same cells are observed, with values that may be smaller.
///
/// A count that is left out is not hidden: its cell was looked at. That is what sets the part of a data set that is
/// held out by thinning, or the part that a model can explain, apart from masked data.
///
/// ```
/// use plca_em::Part;
/// use plca_tensor::{DenseTensor, Observed, Order};
/// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
/// let first_row = Part::of(&v, |index, x| if index[0] == 0 { x } else { 0.0 })?;
/// assert_eq!((first_row.total(), first_row.is_complete()), (4.0, true));
/// # Ok::<(), plca_tensor::TensorError>(())
/// ```
#[derive(Debug)]
pub struct Part<'a, T, X: ?Sized> {
    observed: &'a X,
    kept: Kept<T>,
}

#[derive(Debug)]
enum Kept<T> {
    Dense(DenseTensor<T>),
    Sparse(SparseTensor<T>),
}

impl<'a, T: Real, X: Observed<T> + ?Sized> Part<'a, T, X> {
    /// The part of `data` that `keep` returns for every positive cell: it is given index and value, in a fixed order.
    ///
    /// Memory: a copy of the kept cells, dense where more than a quarter of all cells are kept.
    ///
    /// # Errors
    ///
    /// [`TensorError`]: a negative or non-finite value, nothing kept.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::Part;
    /// use plca_tensor::{DenseTensor, Observed, Order};
    /// let v = DenseTensor::<f64>::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
    /// assert_eq!(Part::of(&v, |_, x| x / 2.0)?.total(), 3.0);
    /// assert!(Part::of(&v, |_, x| -x).is_err());
    /// # Ok::<(), plca_tensor::TensorError>(())
    /// ```
    pub fn of(
        data: &'a X,
        mut keep: impl FnMut(&[usize], f64) -> f64,
    ) -> Result<Self, TensorError> {
        let shape = data.shape().to_vec();
        let (mut indices, mut values) = (Vec::new(), Vec::new());
        data.for_each(&mut |index, value| {
            let kept = keep(index, value);
            if kept != 0.0 {
                indices.extend(index.iter().map(|&i| i as u32));
                values.push(T::lit(kept));
            }
        });
        if let Some(failure) = data.failure() {
            return Err(failure);
        }
        let cells = shape.iter().try_fold(1usize, |n, &m| n.checked_mul(m));
        let kept = match cells {
            Some(cells) if cells / 4 < values.len() => {
                let mut dense = vec![T::zero(); cells];
                for (index, &x) in indices.chunks_exact(shape.len()).zip(&values) {
                    let at = (index.iter().zip(&shape)).fold(0, |at, (&i, n)| at * n + i as usize);
                    dense[at] = x;
                }
                Kept::Dense(DenseTensor::new(shape, dense, Order::RowMajor)?)
            }
            _ => Kept::Sparse(SparseTensor::new(Coordinates {
                shape,
                indices,
                values,
            })?),
        };
        Ok(Self {
            observed: data,
            kept,
        })
    }

    fn kept(&self) -> &dyn Observed<T> {
        match &self.kept {
            Kept::Dense(v) => v,
            Kept::Sparse(v) => v,
        }
    }
}

impl<T: Real, X: Observed<T> + ?Sized> Observed<T> for Part<'_, T, X> {
    fn shape(&self) -> &[usize] {
        self.observed.shape()
    }

    fn total(&self) -> f64 {
        self.kept().total()
    }

    fn is_complete(&self) -> bool {
        self.observed.is_complete()
    }

    fn for_each(&self, visit: &mut dyn FnMut(&[usize], f64)) {
        self.kept().for_each(visit);
    }

    fn visit_mask(&self, visit: &mut dyn FnMut(&[usize])) -> Mask {
        self.observed.visit_mask(visit)
    }

    fn expect(&self, model: &Model<'_, T>, wanted: Wanted<'_>) -> Expected<T> {
        self.kept().expect(model, wanted)
    }

    fn exposure(&self, model: &Model<'_, T>, modes: &[bool]) -> Vec<Option<DMatrix<T>>> {
        self.observed.exposure(model, modes)
    }

    fn multiplier(&self, model: &Model<'_, T>, mode: usize) -> DMatrix<T> {
        self.kept().multiplier(model, mode)
    }

    fn failure(&self) -> Option<TensorError> {
        self.observed.failure()
    }
}

/// Indices, mode by mode, of which no cell was observed: their entries of a factor are not identified and stay as they
/// started or were imputed.
///
/// # Errors
///
/// Data that could not be read.
///
/// # Examples
///
/// ```
/// use plca_em::unobserved;
/// use plca_tensor::{MaskedTensor, Order};
/// let v = MaskedTensor::new(vec![2, 2], vec![1.0, f64::NAN, 2.0, f64::NAN], Order::RowMajor)?;
/// assert_eq!(unobserved(&v)?, [vec![], vec![1]]);
/// # Ok::<(), plca_tensor::TensorError>(())
/// ```
pub fn unobserved<T: Real, X: Observed<T> + ?Sized>(
    data: &X,
) -> Result<Vec<Vec<usize>>, TensorError> {
    let shape = data.shape();
    if data.is_complete() {
        return Ok(vec![Vec::new(); shape.len()]);
    }
    // Under a model that is 1 everywhere the exposure of an index is the number of its observed cells.
    let ones: Vec<_> = (shape.iter())
        .map(|&n| DMatrix::from_element(n, 1, T::one()))
        .collect();
    let factors: Vec<_> = ones.iter().map(plca_tensor::Factor::Columns).collect();
    let model = Model {
        weights: None,
        factors: &factors,
    };
    let counts = data.exposure(&model, &vec![true; shape.len()]);
    let hidden = |seen: Option<DMatrix<T>>| {
        let seen = seen
            .into_iter()
            .flat_map(|m| m.iter().copied().collect::<Vec<_>>());
        (seen.enumerate())
            .filter(|&(_, n)| n <= T::zero())
            .map(|(i, _)| i)
            .collect()
    };
    let failure = data.failure();
    failure.map_or_else(|| Ok(counts.into_iter().map(hidden).collect()), Err)
}
