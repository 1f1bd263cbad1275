//! Data with some of their counts left out.

use super::{
    Coordinates, Data, DenseTensor, Expected, Modes, Order, Request, Rule, SparseTensor, Summary,
    check_counts, e_step_by_visits,
};
use crate::{Cp, DataError, Factor, Real};
use nalgebra::DMatrix;

/// Values that are kept of other data: the same cells are observed, with values that may be smaller.
///
/// A count that is left out is not hidden: its cell was looked at. That is what sets the part of a data set that is
/// held out by thinning, or the part that a model can explain, apart from masked data.
///
/// ```
/// use plca_tensor::{DenseTensor, Data, Order, Part};
/// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
/// let first_row = Part::of(&v, |index, x| if index[0] == 0 { x } else { 0.0 })?;
/// assert_eq!((first_row.total(), first_row.is_complete()), (4.0, true));
/// # Ok::<(), plca_tensor::DataError>(())
/// ```
#[derive(Debug)]
pub struct Part<'a, T: Real> {
    observed: &'a dyn Data<T>,
    kept: Box<dyn Data<T>>,
    summary: Summary,
}

impl<'a, T: Real> Part<'a, T> {
    /// The part of `data` that `keep` returns for every positive cell: it is given index and value, in a fixed order.
    ///
    /// Memory: a copy of the kept cells, dense where more than a quarter of all cells are kept.
    ///
    /// # Errors
    ///
    /// [`DataError`]: a negative or non-finite value, nothing kept.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_tensor::Part;
    /// use plca_tensor::{DenseTensor, Data, Order};
    /// let v = DenseTensor::<f64>::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
    /// assert_eq!(Part::of(&v, |_, x| x / 2.0)?.total(), 3.0);
    /// assert!(Part::of(&v, |_, x| -x).is_err());
    /// # Ok::<(), plca_tensor::DataError>(())
    /// ```
    pub fn of(
        data: &'a dyn Data<T>,
        mut keep: impl FnMut(&[usize], f64) -> f64,
    ) -> Result<Self, DataError> {
        let mut entries = Coordinates::empty(data.shape());
        data.visit(&mut |index, value| {
            let kept = keep(index, value);
            if kept != 0.0 {
                entries.push(index, T::lit(kept));
            }
        })?;
        let (shape, stored) = (data.shape(), entries.values.len());
        let cells = shape.iter().try_fold(1usize, |n, &m| n.checked_mul(m));
        let kept: Box<dyn Data<T>> = match cells {
            Some(cells) if cells / 4 < stored => {
                let mut dense = vec![T::zero(); cells];
                let indices = entries.indices.chunks_exact(shape.len());
                for (index, &x) in indices.zip(&entries.values) {
                    let at = (index.iter().zip(shape)).fold(0, |at, (&i, n)| at * n + i as usize);
                    dense[at] = x;
                }
                Box::new(DenseTensor::new(shape.to_vec(), dense, Order::RowMajor)?)
            }
            _ => Box::new(SparseTensor::new(entries)?),
        };
        check_counts(&*kept)?;
        let mut summary = kept.summary().clone();
        summary.mask = data.summary().mask;
        Ok(Self {
            observed: data,
            kept,
            summary,
        })
    }
}

impl<T: Real> Data<T> for Part<'_, T> {
    fn shape(&self) -> &[usize] {
        self.observed.shape()
    }

    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn visit(&self, each: &mut dyn FnMut(&[usize], f64)) -> Result<(), DataError> {
        self.kept.visit(each)
    }

    fn visit_mask(&self, each: &mut dyn FnMut(&[usize])) -> Result<(), DataError> {
        self.observed.visit_mask(each)
    }

    fn e_step(
        &self,
        model: &Cp<'_, T>,
        request: &Request<'_, T>,
    ) -> Result<Expected<T>, DataError> {
        match request.rule {
            // The same cells are observed.
            Rule::Exposure => self.observed.e_step(model, request),
            // Zeros that are not hidden may count.
            Rule::Cell(_) => e_step_by_visits(self, model, request),
            _ => self.kept.e_step(model, request),
        }
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
/// use plca_tensor::unobserved;
/// use plca_tensor::{DenseTensor, Order};
/// let v = DenseTensor::masked(vec![2, 2], vec![1.0, f64::NAN, 2.0, f64::NAN], Order::RowMajor)?;
/// assert_eq!(unobserved(&v)?, [vec![], vec![1]]);
/// # Ok::<(), plca_tensor::DataError>(())
/// ```
pub fn unobserved<T: Real>(data: &dyn Data<T>) -> Result<Vec<Vec<usize>>, DataError> {
    let shape = data.shape();
    if data.is_complete() {
        return Ok(vec![Vec::new(); shape.len()]);
    }
    // Under a model that is 1 everywhere the exposure of an index is the number of its observed cells.
    let ones: Vec<_> = (shape.iter())
        .map(|&n| DMatrix::from_element(n, 1, T::one()))
        .collect();
    let factors: Vec<_> = ones.iter().map(Factor::Columns).collect();
    let model = Cp {
        weights: None,
        factors: &factors,
    };
    let exposure = Request::counts(Modes::all(shape.len())).rule(Rule::Exposure);
    let counts = data.e_step(&model, &exposure)?;
    let hidden = |mode| {
        let seen = counts.counts(mode).iter().enumerate();
        let hidden = seen.filter(|&(_, n)| *n <= T::zero());
        hidden.map(|(i, _)| i).collect()
    };
    Ok((0..shape.len()).map(hidden).collect())
}
