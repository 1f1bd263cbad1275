//! Data files as observed tensors.

use std::collections::HashSet;
use std::path::Path;

use plca_io::{Array, DataFile, Element, Mask, ReadOptions};
use plca_tensor::{Coordinates, Data, DenseTensor, Order, SparseTensor, check_counts};

use crate::args::{DataArgs, MissingCells};
use crate::failure::Failure;
use crate::models::{Kind, Takes};
use crate::precision;
use crate::signed;

/// Data of any storage.
pub(crate) type Loaded<T> = Box<dyn Data<T>>;

/// What the command says of data of any kind.
pub(crate) trait Dataset {
    /// Size of each mode.
    fn sizes(&self) -> &[usize];
    /// What a person should know of them.
    fn warnings(&self) -> Vec<String>;
}

impl<T: Element> Dataset for dyn Data<T> + '_ {
    fn sizes(&self) -> &[usize] {
        self.shape()
    }

    fn warnings(&self) -> Vec<String> {
        let unobserved = plca_tensor::unobserved(self);
        unobserved.map_or_else(|_| Vec::new(), unobserved_warnings)
    }
}

/// Reads data for a model and hides what is missing.
pub(crate) fn load_for<T: Element>(
    model: Kind,
    path: &Path,
    args: &DataArgs,
) -> Result<Loaded<T>, Failure> {
    match model.takes() {
        Takes::Counts => load(path, args),
        Takes::Numbers => load_any(path, args),
        Takes::SignedMatrix => signed::load(path, args, model.name()),
    }
}

/// What a person should know of the data of a model.
pub(crate) fn warnings<T: Element>(model: Kind, data: &dyn Data<T>) -> Vec<String> {
    let mut warnings = data.warnings();
    // Models that take no negative values have refused them.
    if model.takes() == Takes::Numbers && data.summary().negative.is_some() {
        warnings.push("some values are negative, which no distribution has".into());
    }
    warnings
}

/// Calls `visit` with the multi-index and a reference to every value, in memory order.
pub(crate) fn for_each_cell<T>(
    shape: &[usize],
    fortran: bool,
    values: &mut [T],
    mut visit: impl FnMut(&[usize], &mut T),
) {
    let mut index = vec![0; shape.len()];
    for value in values {
        visit(&index, value);
        let mut advance = |m: usize| {
            index[m] = (index[m] + 1) % shape[m];
            index[m] == 0
        };
        if fortran {
            (0..shape.len()).all(&mut advance);
        } else {
            (0..shape.len()).rev().all(&mut advance);
        }
    }
}

/// Flags in the memory order of an array of the same shape.
fn flags(mask: Array<f32>, fortran: bool) -> Vec<bool> {
    if mask.fortran == fortran || mask.shape.len() < 2 {
        return mask.values.iter().map(|&m| m != 0.0).collect();
    }
    let mut strides = vec![1; mask.shape.len()];
    for m in 1..mask.shape.len() {
        if fortran {
            strides[m] = strides[m - 1] * mask.shape[m - 1];
        } else {
            let back = mask.shape.len() - 1 - m;
            strides[back] = strides[back + 1] * mask.shape[back + 1];
        }
    }
    let mut out = vec![false; mask.values.len()];
    let (shape, from) = (mask.shape.clone(), mask.fortran);
    let mut values = mask.values;
    for_each_cell(&shape, from, &mut values, |index, value| {
        out[index
            .iter()
            .zip(&strides)
            .map(|(i, s)| i * s)
            .sum::<usize>()] = *value != 0.0;
    });
    out
}

/// Numbers that the arrangement of sparse data needs for every index of a mode.
const WORDS_PER_INDEX: usize = 16;

/// Dense or sparse data, with what is hidden of them.
pub(crate) enum Tensor<T> {
    Dense(DenseTensor<T>),
    Sparse(Box<SparseTensor<T>>),
}

impl<T: Element> Tensor<T> {
    /// Hides what is missing.
    pub(crate) fn new(path: &Path, args: &DataArgs, file: DataFile<T>) -> Result<Self, Failure> {
        let tensor = match file {
            DataFile::Dense(mut array) => {
                let masked = hide(path, args, &mut array)?;
                let order = if array.fortran {
                    Order::ColumnMajor
                } else {
                    Order::RowMajor
                };
                let (shape, values) = (array.shape, array.values);
                let dense = match masked {
                    true => DenseTensor::masked(shape, values, order),
                    false => DenseTensor::new(shape, values, order),
                };
                dense.map(Self::Dense)
            }
            DataFile::Sparse(entries) => {
                let sparse = match hide_sparse(path, args, entries)? {
                    Entries::All(entries) => SparseTensor::new(entries),
                    Entries::Stored(entries) => SparseTensor::stored_only(entries),
                    Entries::AllBut(entries, hidden) => SparseTensor::all_but(entries, hidden),
                };
                sparse.map(|sparse| Self::Sparse(Box::new(sparse)))
            }
        };
        tensor.map_err(|e| precision::refused::<T>(path, args, e))
    }

    pub(crate) fn boxed(self) -> Loaded<T> {
        match self {
            Self::Dense(data) => Box::new(data),
            Self::Sparse(data) => data,
        }
    }
}

/// Reads a file of data, whose values may be `negative` or not.
pub(crate) fn read<T: Element>(
    path: &Path,
    args: &DataArgs,
    negative: bool,
) -> Result<DataFile<T>, Failure> {
    let options = ReadOptions {
        // What a mask may hide is refused later where it does not.
        allow_negative: negative || args.mask.is_some(),
        allow_infinite: args.mask.is_some(),
        ..args.reading()
    };
    Ok(plca_io::read_data_with::<T>(path, &options)?)
}

/// Reads data of either sign and hides what is missing.
pub(crate) fn load_any<T: Element>(path: &Path, args: &DataArgs) -> Result<Loaded<T>, Failure> {
    Ok(Tensor::new(path, args, read(path, args, true)?)?.boxed())
}

/// Reads non-negative data and hides what is missing.
pub(crate) fn load<T: Element>(path: &Path, args: &DataArgs) -> Result<Loaded<T>, Failure> {
    let data = Tensor::new(path, args, read(path, args, false)?)?.boxed();
    check_counts(&*data).map_err(|e| precision::refused::<T>(path, args, e))?;
    Ok(data)
}

/// Turns the hidden cells of an array into NaN; whether any cell could be hidden.
fn hide<T: Element>(path: &Path, args: &DataArgs, array: &mut Array<T>) -> Result<bool, Failure> {
    if args.missing == Some(MissingCells::Unstored) {
        let what = "--missing unstored needs sparse data, these are dense";
        return Err(Failure::of(path, what));
    }
    let seen = match &args.mask {
        None => None,
        Some(mask) => Some(match plca_io::read_mask(mask, &array.shape)? {
            Mask::Dense(mask) => flags(mask, array.fortran),
            Mask::Hidden(cells) => not_listed(&cells, array),
        }),
    };
    let is_seen = |at: usize| seen.as_ref().is_none_or(|seen| seen[at]);
    let nan_is_hidden = args.missing == Some(MissingCells::Nan);
    // A NaN that was observed is an error unless NaN was said to mean missing.
    let mut values = array.values.iter().enumerate();
    if !nan_is_hidden && let Some((at, _)) = values.find(|&(at, x)| x.is_nan() && is_seen(at)) {
        return Err(nan_failure(path, array, at));
    }
    for (_, value) in (array.values.iter_mut().enumerate()).filter(|(at, _)| !is_seen(*at)) {
        *value = T::lit(f64::NAN);
    }
    Ok(seen.is_some() || nan_is_hidden)
}

/// False where a cell is listed, in the memory order of the array.
fn not_listed<T>(cells: &Coordinates<f32>, array: &Array<T>) -> Vec<bool> {
    let order = cells.shape.len();
    let cells: HashSet<&[u32]> = cells.indices.chunks_exact(order).collect();
    let mut seen = vec![true; array.values.len()];
    let mut key = vec![0u32; order];
    for_each_cell(&array.shape, array.fortran, &mut seen, |index, seen| {
        key.iter_mut().zip(index).for_each(|(k, &i)| *k = i as u32);
        *seen = !cells.contains(&key[..]);
    });
    seen
}

/// Entries of sparse data by what the cells are that are not among them.
enum Entries<T> {
    /// Zeros.
    All(Coordinates<T>),
    /// Hidden.
    Stored(Coordinates<T>),
    /// Zeros, but for the listed ones, which are hidden.
    AllBut(Coordinates<T>, Coordinates<T>),
}

/// Refuses shapes whose indices alone could not be held.
fn indexable(path: &Path, shape: &[usize]) -> Result<(), Failure> {
    let indices = shape.iter().fold(0usize, |sum, &n| sum.saturating_add(n));
    match plca_io::room::<f64>(&[WORDS_PER_INDEX, indices]) {
        Ok(_) => Ok(()),
        Err(e) => Err(Failure::of(path, format!("data of shape {shape:?}: {e}"))),
    }
}

/// Sparse data with what is hidden of them.
fn hide_sparse<T: Element>(
    path: &Path,
    args: &DataArgs,
    entries: Coordinates<T>,
) -> Result<Entries<T>, Failure> {
    if args.missing == Some(MissingCells::Nan) {
        let what = "--missing nan needs a dense array, these are sparse";
        return Err(Failure::of(path, what));
    }
    indexable(path, &entries.shape)?;
    let hidden = match &args.mask {
        None => None,
        Some(mask) => Some(match plca_io::read_mask(mask, &entries.shape)? {
            Mask::Hidden(cells) => cells,
            Mask::Dense(mask) => hidden_cells(mask),
        }),
    };
    Ok(match (hidden, args.missing) {
        (None, None) => Entries::All(entries),
        (None, Some(_)) => Entries::Stored(entries),
        // Hidden by either: what is stored and not in the list was observed.
        (Some(hidden), Some(_)) => Entries::Stored(without(entries, &hidden)),
        (Some(hidden), None) => {
            let hidden = Coordinates {
                shape: hidden.shape,
                indices: hidden.indices,
                values: Vec::new(),
            };
            Entries::AllBut(entries, hidden)
        }
    })
}

/// Most indices that a warning lists.
const LISTED: usize = 8;

/// Indices, or how many they are and the first of them.
pub(crate) fn listed(indices: &[usize]) -> String {
    match indices.get(..LISTED) {
        Some(first) if indices.len() > LISTED => {
            format!("{} indices, the first {first:?}", indices.len())
        }
        _ => format!("{indices:?}"),
    }
}

/// Warnings of indices of which nothing was observed, dimension by dimension.
pub(crate) fn unobserved_warnings(hidden: Vec<Vec<usize>>) -> Vec<String> {
    let hidden = hidden.into_iter().enumerate();
    hidden
        .filter(|(_, indices)| !indices.is_empty())
        .map(|(j, indices)| {
            let at = listed(&indices);
            format!("nothing was observed of dimension {j} at {at}: what is written there is not identified")
        })
        .collect()
}

fn nan_failure<T: Element>(path: &Path, array: &Array<T>, at: usize) -> Failure {
    let mut position = 0;
    let mut found = Vec::new();
    let mut cells = vec![(); array.values.len().min(at + 1)];
    for_each_cell(&array.shape, array.fortran, &mut cells, |index, ()| {
        if position == at {
            found = index.to_vec();
        }
        position += 1;
    });
    Failure::of(
        path,
        format!("entry {found:?} is NaN; say --missing nan if NaN means not observed"),
    )
}

fn hidden_cells(mut mask: Array<f32>) -> Coordinates<f32> {
    let shape = mask.shape.clone();
    let mut indices = Vec::new();
    for_each_cell(
        &shape,
        mask.fortran,
        &mut mask.values,
        |index, &mut value| {
            if value == 0.0 {
                indices.extend(index.iter().map(|&i| i as u32));
            }
        },
    );
    Coordinates {
        shape,
        indices,
        values: Vec::new(),
    }
}

fn without<T: Element>(entries: Coordinates<T>, hidden: &Coordinates<f32>) -> Coordinates<T> {
    let order = entries.shape.len();
    let hidden: HashSet<&[u32]> = hidden.indices.chunks_exact(order).collect();
    let mut kept = Coordinates {
        shape: entries.shape,
        indices: Vec::new(),
        values: Vec::new(),
    };
    for (index, &x) in entries.indices.chunks_exact(order).zip(&entries.values) {
        if !hidden.contains(index) {
            kept.indices.extend(index);
            kept.values.push(x);
        }
    }
    kept
}
