//! Containers of Python as data of models.
//!
//! Python gives a dict: `shape`; `values`; for sparse data `coordinates`, an array of indices for every mode, or `indptr`, `indices` and
//! `outer`, 0 for rows that are compressed (CSR) and 1 for columns (CSC); what is hidden as `observed`, an array of flags of dense data,
//! `hidden`, coordinates of sparse data, or `missing`, `"nan"` or `"unstored"`.

use numpy::{
    Element as NumpyElement, PyArray1, PyArrayDyn, PyArrayMethods, PyReadonlyArray1,
    PyReadonlyArrayDyn, PyUntypedArrayMethods,
};
use plca::io::Array;
use plca::tensor::{Compressed, Coordinates, Data, DenseTensor, Order, SparseTensor};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{Refused, bad, wrong};

/// A scalar of fits.
pub(crate) trait Scalar: plca_run::Scalar + NumpyElement {}

impl Scalar for f32 {}
impl Scalar for f64 {}

/// Any array as numbers in double precision, in C order.
pub(crate) fn array_of(value: &Bound<'_, PyAny>) -> PyResult<Array<f64>> {
    fn of<T: Scalar>(array: &PyReadonlyArrayDyn<'_, T>) -> Array<f64> {
        let view = array.as_array();
        Array::new(
            array.shape().to_vec(),
            view.iter().map(|x| x.to_f64()).collect(),
        )
    }
    if let Ok(array) = value.extract::<PyReadonlyArrayDyn<'_, f64>>() {
        return Ok(of(&array));
    }
    match value.extract::<PyReadonlyArrayDyn<'_, f32>>() {
        Ok(array) => Ok(of(&array)),
        Err(_) => bad("expected an array of float32 or float64"),
    }
}

/// An array for Python, of numbers in this precision.
pub(crate) fn to_python<'py, T: Scalar>(
    py: Python<'py>,
    array: &Array<f64>,
) -> PyResult<Bound<'py, PyArrayDyn<T>>> {
    let values = array.values.iter().map(|&x| T::lit(x)).collect();
    PyArray1::from_vec(py, values).reshape(&array.shape[..])
}

/// Whole numbers of either width.
pub(crate) enum Integers<'py> {
    Short(PyReadonlyArray1<'py, i32>),
    Long(PyReadonlyArray1<'py, i64>),
}

impl<'py> Integers<'py> {
    fn of(name: &str, value: &Bound<'py, PyAny>) -> PyResult<Self> {
        if let Ok(array) = value.extract() {
            return Ok(Self::Short(array));
        }
        match value.extract() {
            Ok(array) => Ok(Self::Long(array)),
            Err(_) => bad(format!(
                "`{name}`: expected one dimension of int32 or int64 indices"
            )),
        }
    }

    fn view(&self, name: &str) -> PyResult<Indices<'_>> {
        let view = match self {
            Self::Short(array) => array.as_slice().map(Indices::Short),
            Self::Long(array) => array.as_slice().map(Indices::Long),
        };
        view.or_else(|_| bad(format!("`{name}`: expected a contiguous array")))
    }
}

/// The same without Python.
#[derive(Clone, Copy)]
pub(crate) enum Indices<'a> {
    Short(&'a [i32]),
    Long(&'a [i64]),
}

impl Indices<'_> {
    fn len(self) -> usize {
        match self {
            Self::Short(all) => all.len(),
            Self::Long(all) => all.len(),
        }
    }

    /// As an index; what is negative becomes the largest one, which lies outside of every shape.
    fn get(self, at: usize) -> usize {
        match self {
            Self::Short(all) => usize::try_from(all[at]).unwrap_or(usize::MAX),
            Self::Long(all) => usize::try_from(all[at]).unwrap_or(usize::MAX),
        }
    }
}

/// Arrays of Python while they are in use.
pub(crate) struct Held<'py, T: Scalar> {
    shape: Vec<usize>,
    values: PyReadonlyArrayDyn<'py, T>,
    coordinates: Vec<Integers<'py>>,
    compressed: Option<(usize, Integers<'py>, Integers<'py>)>,
    observed: Option<PyReadonlyArrayDyn<'py, bool>>,
    hidden: Vec<Integers<'py>>,
    missing: Option<String>,
}

/// Data in either precision.
pub(crate) enum Input<'py> {
    Single(Held<'py, f32>),
    Double(Held<'py, f64>),
}

impl<'py> Input<'py> {
    pub(crate) fn of(data: &Bound<'py, PyDict>) -> PyResult<Self> {
        let Some(values) = item(data, "values")? else {
            return bad("`data` has no `values`");
        };
        if let Ok(values) = values.extract() {
            return Ok(Self::Single(Held::of(data, values)?));
        }
        match values.extract() {
            Ok(values) => Ok(Self::Double(Held::of(data, values)?)),
            Err(_) => bad("`values`: expected an array of float32 or float64"),
        }
    }
}

/// An item that is there and not `None`.
pub(crate) fn item<'py>(
    data: &Bound<'py, PyDict>,
    name: &str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(data.get_item(name)?.filter(|item| !item.is_none()))
}

fn all<'py>(data: &Bound<'py, PyDict>, name: &str) -> PyResult<Vec<Integers<'py>>> {
    let Some(arrays) = item(data, name)? else {
        return Ok(Vec::new());
    };
    let arrays = arrays.try_iter()?;
    arrays.map(|array| Integers::of(name, &array?)).collect()
}

impl<'py, T: Scalar> Held<'py, T> {
    fn of(data: &Bound<'py, PyDict>, values: PyReadonlyArrayDyn<'py, T>) -> PyResult<Self> {
        let shape = match item(data, "shape")? {
            Some(shape) => shape.extract()?,
            None => values.shape().to_vec(),
        };
        let compressed = match (item(data, "indptr")?, item(data, "indices")?) {
            (Some(indptr), Some(indices)) => {
                let outer = match item(data, "outer")? {
                    Some(outer) => outer.extract()?,
                    None => 0,
                };
                let indptr = Integers::of("indptr", &indptr)?;
                Some((outer, indptr, Integers::of("indices", &indices)?))
            }
            _ => None,
        };
        let observed = item(data, "observed")?;
        let missing = item(data, "missing")?;
        Ok(Self {
            shape,
            values,
            coordinates: all(data, "coordinates")?,
            compressed,
            observed: observed.map(|mask| mask.extract()).transpose()?,
            hidden: all(data, "hidden")?,
            missing: missing.map(|text| text.extract()).transpose()?,
        })
    }

    /// Arrays whose values are of this precision.
    pub(crate) fn typed(data: &Bound<'py, PyDict>) -> PyResult<Self> {
        match item(data, "values")?.map(|values| values.extract()) {
            Some(Ok(values)) => Self::of(data, values),
            _ => bad("`values`: expected an array of float32 or float64, as of all shards"),
        }
    }

    /// The numbers in them, to be read by other threads as long as the arrays are held.
    pub(crate) fn view(&self) -> PyResult<View<'_, T>> {
        let Ok(values) = self.values.as_slice() else {
            return bad("`values`: expected a contiguous array");
        };
        let order = match self.values.is_c_contiguous() {
            true => Order::RowMajor,
            false => Order::ColumnMajor,
        };
        let cells = if let Some((outer, indptr, indices)) = &self.compressed {
            Cells::Compressed {
                outer: *outer,
                indptr: indptr.view("indptr")?,
                indices: indices.view("indices")?,
            }
        } else if self.coordinates.is_empty() {
            Cells::Dense(order)
        } else {
            let modes = self.coordinates.iter();
            Cells::Coordinates(
                modes
                    .map(|m| m.view("coordinates"))
                    .collect::<PyResult<_>>()?,
            )
        };
        let observed = match &self.observed {
            None => None,
            Some(mask) => {
                let same = mask.shape() == self.values.shape()
                    && mask.is_c_contiguous() == self.values.is_c_contiguous();
                match mask.as_slice() {
                    Ok(mask) if same => Some(mask),
                    _ => return bad("`observed`: expected the shape and order of `values`"),
                }
            }
        };
        let hidden = self.hidden.iter();
        Ok(View {
            shape: &self.shape,
            values,
            cells,
            observed,
            hidden: hidden.map(|m| m.view("hidden")).collect::<PyResult<_>>()?,
            missing: self.missing.as_deref(),
        })
    }
}

enum Cells<'a> {
    Dense(Order),
    Coordinates(Vec<Indices<'a>>),
    Compressed {
        outer: usize,
        indptr: Indices<'a>,
        indices: Indices<'a>,
    },
}

/// Data as Python holds them.
pub(crate) struct View<'a, T> {
    shape: &'a [usize],
    values: &'a [T],
    cells: Cells<'a>,
    observed: Option<&'a [bool]>,
    hidden: Vec<Indices<'a>>,
    missing: Option<&'a str>,
}

impl<T: Scalar> View<'_, T> {
    /// The data that models are fitted to, over the arrays themselves unless cells of them are hidden by a mask.
    pub(crate) fn tensor(&self) -> Result<Box<dyn Data<T> + '_>, Refused> {
        let shape = self.shape.to_vec();
        let entries = match &self.cells {
            Cells::Dense(order) => {
                let (values, order) = (self.values, *order);
                // A hidden cell is NaN in a copy.
                let masked = |seen: &[bool]| {
                    let copy = values.to_vec();
                    DenseTensor::with_mask(shape.clone(), copy, order, seen)
                };
                return Ok(match (self.observed, self.missing) {
                    (None, None) => Box::new(DenseTensor::shared(shape, values, order)?),
                    (None, Some("nan")) => {
                        Box::new(DenseTensor::shared_masked(shape, values, order)?)
                    }
                    (Some(seen), None) => Box::new(masked(seen)?),
                    (Some(seen), Some("nan")) => {
                        let both = values.iter().zip(seen);
                        let seen: Vec<bool> = both.map(|(x, &seen)| seen && !x.is_nan()).collect();
                        Box::new(masked(&seen)?)
                    }
                    (_, Some(other)) => {
                        return wrong(format!(
                            "`missing` is '{other}', X is dense: expected 'nan'"
                        ));
                    }
                });
            }
            Cells::Coordinates(modes) => self.coordinates(modes)?,
            &Cells::Compressed {
                outer,
                indptr,
                indices,
            } => {
                let runs = self.compressed(outer, indptr, indices)?;
                if self.hidden.is_empty() && self.missing.is_none() {
                    let (shape, values) = ([shape[0], shape[1]], &self.values[..runs]);
                    return Ok(match (indptr, indices) {
                        (Indices::Short(p), Indices::Short(i)) => {
                            Box::new(Compressed::new(shape, outer, p, &i[..runs], values)?)
                        }
                        (Indices::Short(p), Indices::Long(i)) => {
                            Box::new(Compressed::new(shape, outer, p, &i[..runs], values)?)
                        }
                        (Indices::Long(p), Indices::Short(i)) => {
                            Box::new(Compressed::new(shape, outer, p, &i[..runs], values)?)
                        }
                        (Indices::Long(p), Indices::Long(i)) => {
                            Box::new(Compressed::new(shape, outer, p, &i[..runs], values)?)
                        }
                    });
                }
                self.expanded(outer, indptr, indices, runs)?
            }
        };
        Ok(Box::new(self.sparse(entries)?))
    }

    /// The same data as copies, which need no arrays of Python.
    pub(crate) fn owned(&self) -> Result<Box<dyn Data<T>>, Refused> {
        let entries = match &self.cells {
            Cells::Dense(order) => {
                let (shape, values) = (self.shape.to_vec(), self.values.to_vec());
                return Ok(match (self.observed, self.missing) {
                    (None, None) => Box::new(DenseTensor::new(shape, values, *order)?),
                    (None, Some("nan")) => Box::new(DenseTensor::masked(shape, values, *order)?),
                    (Some(seen), None) => {
                        Box::new(DenseTensor::with_mask(shape, values, *order, seen)?)
                    }
                    _ => return wrong("`missing`: expected 'nan', or a mask"),
                });
            }
            Cells::Coordinates(modes) => self.coordinates(modes)?,
            &Cells::Compressed {
                outer,
                indptr,
                indices,
            } => {
                let runs = self.compressed(outer, indptr, indices)?;
                self.expanded(outer, indptr, indices, runs)?
            }
        };
        Ok(Box::new(self.sparse(entries)?))
    }

    /// Entries with what is hidden beside them.
    fn sparse(&self, entries: Coordinates<T>) -> Result<SparseTensor<T>, Refused> {
        Ok(match (self.hidden.is_empty(), self.missing) {
            (true, None) => SparseTensor::new(entries)?,
            (true, Some("unstored")) => SparseTensor::stored_only(entries)?,
            (false, None) => {
                let mut cells = Coordinates::empty(self.shape);
                cells.indices = interleaved(&self.hidden)?;
                SparseTensor::all_but(entries, cells)?
            }
            (_, Some(other)) => {
                return wrong(format!(
                    "`missing` is '{other}', X is sparse: expected 'unstored'"
                ));
            }
        })
    }

    fn coordinates(&self, modes: &[Indices<'_>]) -> Result<Coordinates<T>, Refused> {
        if modes.len() != self.shape.len() {
            return wrong("`coordinates`: expected one array for every dimension of `shape`");
        }
        Ok(Coordinates {
            shape: self.shape.to_vec(),
            indices: interleaved(modes)?,
            values: self.values.to_vec(),
        })
    }

    /// How many entries compressed data have: arrays of SciPy may be longer than what is stored.
    fn compressed(
        &self,
        outer: usize,
        indptr: Indices<'_>,
        indices: Indices<'_>,
    ) -> Result<usize, Refused> {
        let &[rows, columns] = self.shape else {
            return wrong("`shape`: compressed data are a matrix");
        };
        let runs = match outer {
            0 => rows,
            1 => columns,
            _ => return wrong(format!("`outer` is {outer}, expected 0 or 1")),
        };
        let held = indices.len().min(self.values.len());
        match indptr.len().checked_sub(1).map(|last| indptr.get(last)) {
            Some(stored) if indptr.len() == runs + 1 && stored <= held => Ok(stored),
            _ => wrong("`indptr`: does not fit `shape`, `indices` and `data`"),
        }
    }

    /// Compressed data as coordinates.
    fn expanded(
        &self,
        outer: usize,
        indptr: Indices<'_>,
        indices: Indices<'_>,
        stored: usize,
    ) -> Result<Coordinates<T>, Refused> {
        let mut entries = Vec::with_capacity(2 * stored);
        for run in 0..indptr.len() - 1 {
            let (from, to) = (indptr.get(run), indptr.get(run + 1));
            if from > to || to > stored || run == 0 && from > 0 {
                return wrong(format!(
                    "`indptr`: the bounds of run {run} must increase and lie within the {stored} stored entries"
                ));
            }
            for at in from..to {
                let inner = u32::try_from(indices.get(at)).unwrap_or(u32::MAX);
                match outer {
                    0 => entries.extend([run as u32, inner]),
                    _ => entries.extend([inner, run as u32]),
                }
            }
        }
        Ok(Coordinates {
            shape: self.shape.to_vec(),
            indices: entries,
            values: self.values[..stored].to_vec(),
        })
    }
}

/// The indices of entry after entry.
fn interleaved(modes: &[Indices<'_>]) -> Result<Vec<u32>, Refused> {
    let entries = modes.first().map_or(0, |first| first.len());
    if modes.iter().any(|mode| mode.len() != entries) {
        return wrong("coordinates: expected arrays of one length");
    }
    let mut indices = Vec::with_capacity(entries * modes.len());
    for at in 0..entries {
        let index = modes.iter().map(|mode| mode.get(at));
        indices.extend(index.map(|i| u32::try_from(i).unwrap_or(u32::MAX)));
    }
    Ok(indices)
}
